"""Ending a command in a live shell, rung by rung, and nothing but that command (T17).

interrupt: Ctrl-C → (asked, when the shell is back but lost its hooks) → terminate → kill → the shell itself
kill:      everything the command started, at once; the shell itself if even that does not bring it back

"Everything the command started" is what descends from the shell now and did not when the command began.
"""

import os
import signal
from typing import TYPE_CHECKING

from tarmac.terminals import processes
from tarmac.terminals.execution import Execution

if TYPE_CHECKING:
    from tarmac.terminals.pty_terminal import PtyTerminal
    from tarmac.terminals.session import Session

BACK = 0.1  # an interrupted shell is back at its prompt within this; then we ask
PATIENCE = 1.0


async def interrupt(terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
    """Ctrl-C; then harder, until the command has ended."""
    settings = terminal.settings
    session.pty.signal(signal.SIGINT)
    if await execution.ended(min(BACK, settings.interrupt_grace)):
        return
    if session.in_front() and not _ignores_interrupt(session.pid) and session.reads_terminal():
        terminal.ask(execution, session)
    if await execution.ended(settings.interrupt_grace):
        return
    execution.notes.append("it did not end on Ctrl-C: terminated")
    find = _own(terminal, session)
    if find():
        await processes.end(find, grace=settings.terminate_grace)
        if await execution.ended(BACK):
            return
    await kill(terminal, session, execution)


async def kill(terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
    """SIGKILL to all the command started; the shell is held still meanwhile, so that it does not start the next of a list."""
    find = _own(terminal, session)
    _send(session.pid, signal.SIGSTOP)
    try:
        await processes.end(find, grace=0)
    finally:
        _send(session.pid, signal.SIGINT)
        _send(session.pid, signal.SIGCONT)
    if await execution.ended(PATIENCE / 4):
        return
    if find():  # it started something more before the interrupt reached it
        await processes.end(find, grace=0)
    if session.in_front() and not _ignores_interrupt(session.pid) and session.reads_terminal():
        terminal.ask(execution, session)
    if await execution.ended(PATIENCE / 4):
        return
    execution.notes.append("the shell itself had to be killed")
    _send(session.pid, signal.SIGKILL)
    await execution.ended(PATIENCE)


def _own(terminal: "PtyTerminal", session: "Session"):  # type: ignore[no-untyped-def]
    before = terminal.baseline
    return lambda: processes.descendants(session.pid) - before


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _ignores_interrupt(pid: int) -> bool:
    """Whether the shell ignores SIGINT (`trap '' INT`): then it may be in a `read` that our question would answer."""
    for line in processes.read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"SigIgn:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1)
    return False
