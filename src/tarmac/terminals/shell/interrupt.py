"""Ending a command in a live shell, rung by rung, and nothing but that command (T17).

interrupt: Ctrl-C → (asked, when the shell is back but lost its hooks) → terminate → kill → the shell itself
kill:      everything the command started, at once; the shell itself if even that does not bring it back

"Everything the command started" is what descends from the shell now and did not when the command began.
"""

import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tarmac.terminals.execution import Execution
from tarmac.terminals.process import processes, signals

if TYPE_CHECKING:
    from tarmac.terminals.shell.pty_terminal import PtyTerminal
    from tarmac.terminals.shell.session import Session

BACK = 0.08  # an interrupted shell is back at its prompt within this; then we ask
NEWBORN = 0.1
YOUNG = 3  # clock ticks: a process of that age may not have got to its own signal handling yet
PATIENCE = 1.0
BUSY_SHELL = 4.0
_TICKS = os.sysconf("SC_CLK_TCK")


async def interrupt(terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
    """Ctrl-C; then harder, until the command has ended.

    What it started in the background stays, as after a Ctrl-C in any shell, unless the command ran out of its time:
    then nobody is left who would want it. A program that was stopped can't act on the interrupt: it is ended.
    """
    before, settings = terminal.baseline, terminal.settings
    await _interrupt(terminal, session, execution)
    if execution.ending is not None and session.alive and session.has_children():
        left = processes.descendants(session.pid) - before
        if execution.cause == "interrupted":
            left = {each for each in left if _was_in_front(each, session, execution)}
        await signals.end(lambda: left, grace=settings.terminate_grace)


def _was_in_front(process: processes.Process, session: "Session", execution: Execution) -> bool:
    """Whether it is no daemon and no background job: it was meant to end, or stands still."""
    found = processes.stat(process.pid)
    if found is None:
        return False
    has_background = "&" in execution.command.replace("&&", "")
    return found.state == "T" or (found.session == session.pid and not has_background)


async def _interrupt(terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
    settings = terminal.settings
    if await _ctrl_c(terminal, session, execution, settings.interrupt_grace):
        return
    execution.signalled = execution.handled_signal = True
    execution.notes.append("it did not end on Ctrl-C: terminated")
    find = _own(terminal, session)
    if find():
        await signals.end(find, grace=settings.terminate_grace)
        if await execution.ended(BACK):
            return
    # With nothing else to end: a busy shell, deep in one of its builtins, heeds the interrupt when it comes out.
    elif _is_busy(session.pid) and await execution.ended(BUSY_SHELL):
        return
    await kill(terminal, session, execution)


async def _ctrl_c(terminal: "PtyTerminal", session: "Session", execution: Execution, grace: float) -> bool:
    """Ctrl-C for everything the command is, once each.

    A shell that is just starting a program takes our signal for the program's, which never sees it (and bash 5.2 may
    then find itself in the background and leave). So the shell is signalled only when it was in front a moment ago
    too; whoever comes to the foreground later gets a signal of its own, and one that was being born a second one.
    """
    shell = session.pid
    group, asked = -1, False
    newborn = time.monotonic() - execution.started_at < NEWBORN  # some of its processes may not be there yet
    waited, step = 0.0, 0.005
    before = session.pty.foreground()
    if before != shell:
        group, newborn = before, newborn or _is_young(before)
        _note_signal(execution, before, shell)
        session.pty.signal(signal.SIGINT)
    while waited < grace:
        if await execution.ended(step):
            return True
        waited += step
        step = 0.004 if waited < 0.2 else 0.04  # often at first: a loop of short programs is hard to hit
        now = session.pty.foreground()
        if group != -1 and _is_back(session):
            if waited > BACK and not asked:
                asked = True
                terminal.monitor.ask(execution, session)
        elif (now != group and (now != shell or before == shell)) or (newborn and waited > 0.02):
            newborn = now not in (group, shell) and (newborn or _is_young(now))
            group = now
            if now != shell:
                _note_signal(execution, now, shell)
            session.pty.signal(signal.SIGINT)
        before = now
    return execution.ending is not None


def _note_signal(execution: Execution, group: int, shell: int) -> None:
    """The group is about to get a signal. If its leader handles it, an exit code of its own may be the answer to it.

    A child of the shell that has not become a program yet still has the shell's handlers: it does not count.
    """
    execution.signalled = True
    handles = _signals(group, b"SigCgt:") >> (signal.SIGINT - 1) & 1
    if handles and processes.command_line(group) != processes.command_line(shell):
        execution.handled_signal = True


def _is_busy(pid: int) -> bool:
    return processes.state(pid) == "R" and not _ignores_interrupt(pid)


def _is_young(group: int) -> bool:
    process = processes.look(group) if group > 0 else None
    return process is not None and time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS - process.started < YOUNG


def _is_back(session: "Session") -> bool:
    """Whether the shell itself waits for a line, and would not take our question for input to a `read`."""
    return session.in_front() and not _ignores_interrupt(session.pid) and session.waits()


async def kill(terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
    """SIGKILL to all the command started. The shell is held still meanwhile: it must not go on with `a; b; c`."""
    find = _own(terminal, session)
    execution.signalled = execution.signalled or bool(find())
    execution.handled_signal = execution.handled_signal or execution.signalled
    _send(session.pid, signal.SIGSTOP)
    try:
        await signals.end(find, grace=0)
    finally:
        # The rest of a list must not run: the interrupt discards it (and bash says 130). Plain words have no rest.
        if session.shell.goes_on(execution.command):
            _send(session.pid, signal.SIGINT)
        _send(session.pid, signal.SIGCONT)
    if await execution.ended(PATIENCE / 4):
        return
    if not _ignores_interrupt(session.pid):  # else nothing but its own end stops what it goes on with
        _send(session.pid, signal.SIGINT)
        if await execution.ended(PATIENCE / 4):
            return
        if find():  # it started something more before the interrupt reached it
            await signals.end(find, grace=0)
        if _is_back(session):
            terminal.monitor.ask(execution, session)
        if await execution.ended(PATIENCE / 4):
            return
    execution.notes.append("the shell itself had to be killed")
    _send(session.pid, signal.SIGKILL)
    await execution.ended(PATIENCE)


def _own(terminal: "PtyTerminal", session: "Session") -> Callable[[], set[processes.Process]]:
    before = terminal.baseline
    return lambda: processes.descendants(session.pid) - before


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _ignores_interrupt(pid: int) -> bool:
    """Whether the shell ignores SIGINT (`trap '' INT`): then it may be in a `read` that our question would answer."""
    return bool(_signals(pid, b"SigIgn:") >> (signal.SIGINT - 1) & 1)


def _signals(pid: int, field: bytes) -> int:
    """A set of signals from the process's status; empty when it is gone."""
    try:
        status = processes.read(f"/proc/{pid}/status")
    except OSError:
        return 0
    _, found, rest = status.partition(b"\n" + field)
    return int(rest.split(None, 1)[0], 16) if found else 0
