"""End a command in a live shell, step by step, and nothing but that command.

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
from tarmac.terminals.process.signals import TimeToAct

if TYPE_CHECKING:
    from tarmac.terminals.shell.pty_terminal import PtyTerminal
    from tarmac.terminals.shell.session import Session

BACK = 0.08  # an interrupted shell is back at its prompt within this; then we ask
HOOKS = 8  # looks: a shell whose program has just ended is about to run its prompt's hooks, and is not disturbed
NEWBORN = 0.1
YOUNG = 3  # clock ticks: a process of that age may not have got to its own signal handling yet
PATIENCE = 1.0
BUSY_SHELL = 4.0
SHORT, LONG = 0.004, 0.04  # between two looks
OFTEN = 0.2  # at first they are short: a loop of short programs is hard to hit
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
    """Whether it is neither a daemon nor a background job: it was meant to end, or stands still."""
    found = processes.stat(process.pid)
    if found is None:
        return False
    has_background = "&" in execution.command.replace("&&", "")
    return found.state == "T" or (found.session == session.pid and not has_background)


async def _interrupt(terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
    settings = terminal.settings
    time_to_act = _TimeToAct(session, terminal.baseline)
    if await _ctrl_c(terminal, session, execution, settings.interrupt_grace, time_to_act):
        return
    execution.signalled = execution.handled_signal = True
    execution.notes.append("it did not end on Ctrl-C: terminated")
    find = _own(terminal, session)
    if find():
        await signals.end(find, grace=settings.terminate_grace)
        if await time_to_act.ended(execution, BACK):
            return
    # With nothing else to end: a busy shell, deep in one of its builtins, heeds the interrupt when it comes out.
    elif _is_busy(session.pid) and await time_to_act.ended(execution, BUSY_SHELL):
        return
    await _kill(terminal, session, execution, time_to_act)


async def _ctrl_c(
    terminal: "PtyTerminal", session: "Session", execution: Execution, grace: float, time_to_act: "_TimeToAct"
) -> bool:
    """Ctrl-C for everything the command is, once each.

    A shell that is just starting a program takes our signal for the program's, which never sees it (and bash 5.2 may
    then find itself in the background and leave). So the shell is signalled only when it was in front for a while. One
    that is in its prompt's hooks is left alone: without them nobody tells of the end, and the prompt looks like output.
    Whoever comes to the foreground later gets a signal of its own. So does one that was being born. A program that was
    there gets no second one: it may be in the middle of its last words.
    """
    shell = session.pid
    group, asked, nudged = -1, False, not session.shell.skips_after_interrupt
    newborn = time.monotonic() - execution.started_at < NEWBORN  # some of its processes may not be there yet
    front = _Front(terminal, session, execution)
    waited = since_signal = 0.0  # in their time
    began = time.monotonic()
    now = session.pty.foreground()
    looks = int(now == shell)  # so often in a row the shell was in front
    if now != shell:
        group, newborn = now, newborn or _is_young(now)
        front.signal(now)
    while since_signal < grace and waited < 2 * grace:
        pause = SHORT if time.monotonic() - began < OFTEN else LONG
        if await execution.ended(pause):
            return True
        passed = time_to_act.of(pause)
        waited, since_signal = waited + passed, since_signal + passed
        now = session.pty.foreground()
        looks = looks + (passed > 0) if now == shell else 0
        is_in_shell = looks >= (2 if group == -1 else HOOKS)
        if group != -1 and _is_back(session):
            if waited > BACK and not nudged:
                nudged = True
                _send(shell, signal.SIGINT)
            elif waited > (2 * BACK if session.shell.skips_after_interrupt else BACK) and not asked:
                asked = True
                terminal.monitor.ask(execution, session)
        elif now == group != shell:
            front.signal_late(everyone=waited > grace / 2)
        elif (now != group and (now != shell or is_in_shell)) or (newborn and waited > BACK):
            newborn = now not in (group, shell) and (newborn or _is_young(now))
            front.signal_late()  # the first of a pipeline may be gone, and the shell in front, before the others came
            group = now
            front.signal(group)
            since_signal = 0.0
    return execution.ending is not None


class _TimeToAct(TimeToAct):
    """Of a command and its shell; what ran before it has no say."""

    def __init__(self, session: "Session", before: set[processes.Process]) -> None:
        def find() -> list[processes.Stat]:
            found = [processes.stat(session.pid), *(each for _, each in processes.below(session.pid))]
            return [each for each in found if each is not None and each.process not in before]

        super().__init__(find)

    async def ended(self, execution: Execution, seconds: float) -> bool:
        """Whether the command ends before its processes had so many seconds."""
        self.begin()
        while seconds > 0:
            pause = min(seconds, LONG)
            if await execution.ended(pause):
                return True
            seconds -= self.of(pause)
        return False


class _Front:
    """The processes in front, each of which gets one Ctrl-C: when it can act on it, and not in its last words."""

    def __init__(self, terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
        self._before = {each.pid for each in terminal.baseline}
        self._session = session
        self._execution = execution
        self._group = -1  # of a program, not the shell's
        self._reached: set[int] = set()  # they got it
        self._missed: set[int] = set()  # they were there, but not programs yet
        self._answers: set[int] = set()  # started by one that got it
        self._at = 0

    def signal(self, group: int) -> None:
        """Ctrl-C for the whole group, as the key would."""
        shell = self._session.pid
        if group == shell:
            self._session.pty.signal(signal.SIGINT)
            return
        self._group = group
        _note_signal(self._execution, group, shell)
        members = self._members()
        parents = {each.parent for each in members}
        self._missed = {each.process.pid for each in members if _is_being_born(each)} - parents
        self._reached = {each.process.pid for each in members} - self._missed
        self._session.pty.signal(signal.SIGINT)
        self._at = _now()

    def signal_late(self, *, everyone: bool = False) -> None:
        """Ctrl-C for those that have become programs since. What a program starts after its own is its answer.

        With `everyone` also for an answer that may have been started just before: nobody can tell.
        """
        for each in self._members():
            pid = each.process.pid
            if pid in self._reached or _is_being_born(each):
                continue
            is_answer = pid not in self._missed and each.parent in self._reached | self._answers
            if not is_answer or (everyone and each.process.started <= self._at):
                self._reached.add(pid)
                _send(pid, signal.SIGINT)
            else:
                self._answers.add(pid)

    def _members(self) -> list[processes.Stat]:
        """Of the group; and those of a pipeline that stayed in the shell's, as the first was gone before they came."""
        shell = self._session.pid
        return [
            each
            for pid, each in processes.below(shell)
            if each is not None and each.alive and each.group in (self._group, shell) and pid not in self._before
        ]


def _is_being_born(process: processes.Stat) -> bool:
    """Whether it is a copy of its parent still, with the parent's handlers. It loses a signal that comes now.

    On a busy machine it may be one for long, so its age says nothing.
    """
    pid = process.process.pid
    return _handles_interrupt(pid) and _copies(pid, process.parent)


def _copies(pid: int, parent: int) -> bool:
    return processes.command_line(pid) == processes.command_line(parent)


def _note_signal(execution: Execution, group: int, shell: int) -> None:
    """The group is about to get a signal. If its leader handles it, an exit code of its own may be the answer to it.

    A child of the shell that has not become a program yet still has the shell's handlers: it does not count.
    """
    execution.signalled = True
    if _handles_interrupt(group) and not _copies(group, shell):
        execution.handled_signal = True


def _is_busy(pid: int) -> bool:
    return processes.state(pid) == "R" and not _ignores_interrupt(pid)


def _is_young(group: int) -> bool:
    process = processes.look(group) if group > 0 else None
    return process is not None and _now() - process.started < YOUNG


def _now() -> int:
    """The time in the unit of `Process.started`."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def _is_back(session: "Session") -> bool:
    """Whether the shell itself waits for a line, and would not take our question for input to a `read`."""
    return session.in_front() and not _ignores_interrupt(session.pid) and session.waits()


async def kill(terminal: "PtyTerminal", session: "Session", execution: Execution) -> None:
    """SIGKILL to all the command started. The shell is held still meanwhile: it must not go on with `a; b; c`."""
    await _kill(terminal, session, execution, _TimeToAct(session, terminal.baseline))


async def _kill(terminal: "PtyTerminal", session: "Session", execution: Execution, time_to_act: "_TimeToAct") -> None:
    find = _own(terminal, session)
    execution.signalled = execution.signalled or bool(find())
    execution.handled_signal = execution.handled_signal or execution.signalled
    _send(session.pid, signal.SIGSTOP)
    try:
        if session.shell.goes_on(execution.command):
            signals.signal_all(find(), signal.SIGINT)  # bash surely discards the rest if a program died of this
        await signals.end(find, grace=0)
    finally:
        # The rest of a list must not run: the interrupt discards it (and bash says 130). Plain words have no rest.
        if session.shell.goes_on(execution.command):
            _send(session.pid, signal.SIGINT)
        _send(session.pid, signal.SIGCONT)
    if await time_to_act.ended(execution, PATIENCE / 4):
        return
    if not _ignores_interrupt(session.pid):  # else nothing but its own end stops what it goes on with
        _send(session.pid, signal.SIGINT)
        if await time_to_act.ended(execution, PATIENCE / 4):
            return
        if find():  # it started something more before the interrupt reached it
            await signals.end(find, grace=0)
        if _is_back(session):
            terminal.monitor.ask(execution, session)
        if await time_to_act.ended(execution, PATIENCE / 4):
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


def _handles_interrupt(pid: int) -> bool:
    return bool(_signals(pid, b"SigCgt:") >> (signal.SIGINT - 1) & 1)


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
