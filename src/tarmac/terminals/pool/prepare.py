"""Prepare a terminal that is used again, or was warm, for the first command of its lease."""

import time
from collections import deque
from enum import Enum, auto
from pathlib import Path

from tarmac.errors import ShellFailed, TarmacError, TerminalHeld
from tarmac.terminals.pool.entries import Entry, Lease, Switch
from tarmac.terminals.shell.shell_lifecycle import NoIntegration

MOST_SWITCHES = 20  # remembered of each terminal


class Prepared(Enum):
    READY = auto()
    HELD = auto()  # a person began to type in it
    LOST = auto()  # it is of no more use


async def prepare(entry: Entry, lease: Lease) -> Prepared:
    """Reset it or remember its environment, and have its next command run in the wanted directory.

    NoIntegration is raised when a reset could not bring up a shell.
    """
    terminal, choice, cwd = entry.terminal, lease.choice, lease.request.cwd
    try:
        if choice is not None and choice.reset:
            await terminal.reset(cwd)
            entry.users = frozenset()
            terminal.moves = int(choice.switch)
        elif choice is not None and choice.switch:
            await _note_environment(entry, cwd)
    except TerminalHeld:
        return Prepared.HELD
    except NoIntegration:
        raise
    except TarmacError:
        return Prepared.LOST
    if terminal.held or (terminal.current is not None and terminal.current.by_person):
        return Prepared.HELD
    if not terminal.alive or terminal.busy:
        return Prepared.LOST
    if choice is None:
        terminal.initial_cwd = cwd  # it was warm, so its first move does not count
    terminal.head_for(cwd, counts=choice is not None and choice.switch and not choice.reset)
    return Prepared.READY


async def _note_environment(entry: Entry, after: Path) -> None:
    before = entry.terminal.cwd
    found: dict[str, str | None] | None = None
    try:
        found = await entry.terminal.environment()
    except (ShellFailed, OSError):  # the disk may be full: no reason to lose the terminal
        pass
    if entry.switches is None:
        entry.switches = deque(maxlen=MOST_SWITCHES)
    entry.switches.append(Switch(at=time.time(), before=before, after=after, environment=found))
