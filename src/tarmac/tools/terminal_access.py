"""Which terminals a task may use by id: its own, and those without a task. Never a person's or another task's."""

from typing import Final
from weakref import WeakSet

from tarmac.errors import TarmacError, ToolFailed
from tarmac.terminals.execution import Execution
from tarmac.terminals.terminal import Terminal
from tarmac.tools.tool import Bench

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
