"""The screen of a terminal as text for a model: first all rows, then those that changed since its last look."""

from typing import Final
from weakref import WeakKeyDictionary

from tarmac.errors import TarmacError
from tarmac.terminals.output.terminal_screen import ScreenLook, describe
from tarmac.terminals.result import Result
from tarmac.terminals.terminal import Terminal
from tarmac.vt.fold import show_invisibles

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
