"""The terminals that a task may use by id, and what the model has seen of their screens.

A task may use its own terminals, and those without a task. Never a person's or another task's. A model gets all rows of
a screen first, then those that changed since its last look.
"""

from typing import Final
from weakref import WeakKeyDictionary, WeakSet

from tarmac.errors import TarmacError, ToolFailed
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.terminal_screen import ScreenLook, describe
from tarmac.terminals.result import Result
from tarmac.terminals.terminal import Terminal
from tarmac.tools.tool import Bench
from tarmac.vt.fold import show_invisibles

# Commands that a person approved, while they are known: a plain answer to what one asks is part of that approval.
APPROVED: Final[WeakSet[Execution]] = WeakSet()


def own(bench: Bench, id: str) -> Terminal:
    """The open terminal with this id; ToolFailed if the task has none."""
    try:
        terminal = bench.registry.get(id.strip())
    except TarmacError:
        raise ToolFailed(f"Terminal {id} not found. {known(bench)}") from None
    return _checked(bench, terminal)


def only_busy(bench: Bench) -> Terminal:
    """The only busy terminal of the task; ToolFailed if there is none, or more than one."""
    busy = bench.registry.listing(busy=True, task=bench.task)
    if len(busy) != 1:
        raise ToolFailed(f"Give an id: {len(busy) or 'no'} terminals of this task are busy. {known(bench)}")
    return _checked(bench, busy[0])


def readable(bench: Bench, id: str) -> Terminal:
    """The terminal with this id, open or closed, as long as it has output to read."""
    try:
        terminal = bench.registry.readable(id.strip())
    except TarmacError:
        raise ToolFailed(f"Terminal {id} not found. {known(bench)}") from None
    return _checked(bench, terminal)


def visible_to(bench: Bench) -> list[Terminal]:
    """All terminals that the task may use."""
    return [each for each in bench.registry.listing() if not _foreign(bench, each)]


def known(bench: Bench) -> str:
    """A sentence with the ids of open terminals."""
    ids = [f"'{each.id}'" for each in visible_to(bench)]
    return f"Open terminals: {', '.join(ids)}." if ids else "No terminal is open."


def _checked(bench: Bench, terminal: Terminal) -> Terminal:
    if why := _foreign(bench, terminal):
        raise ToolFailed(f"Terminal {terminal.id} {why}. {known(bench)}")
    return terminal


def _foreign(bench: Bench, terminal: Terminal) -> str:
    if terminal.origin == "person":
        return "belongs to the person"
    return "" if terminal.task in (bench.task, None) else "belongs to another task"


# The hash of the look that each viewer had last, for the differences of the next one.
_SEEN: Final[WeakKeyDictionary[Terminal, dict[str, str]]] = WeakKeyDictionary()
MOST_VIEWERS: Final = 16  # of one terminal; one that is forgotten sees all rows again


async def look(terminal: Terminal, viewer: str | None, *, full: bool = False) -> ScreenLook:
    """Look once the program has settled, compared with what this viewer saw last. ScreenUnavailable."""
    since = None if full or viewer is None else _SEEN.get(terminal, {}).get(viewer)
    return await terminal.look(since=since)


def text_for(terminal: Terminal, viewer: str | None, found: ScreenLook) -> str:
    """The screen as text, which this viewer now has seen."""
    if viewer is not None:
        seen = _SEEN.setdefault(terminal, {})
        seen.pop(viewer, None)
        seen[viewer] = found.hash
        if len(seen) > MOST_VIEWERS:
            del seen[next(iter(seen))]
    return show_invisibles(describe(found))


async def drawn(terminal: Terminal, result: Result, viewer: str | None) -> str:
    """What a full-screen program shows that a command left running; empty if it draws none, or nobody can see it."""
    placed = result.awaiting == "keys" and terminal.tape.drawn
    if not result.running or not (placed or terminal.tape.alternate):
        return ""
    try:
        return text_for(terminal, viewer, await look(terminal, viewer, full=True))
    except TarmacError:
        return ""
