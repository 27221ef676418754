"""Signals to exactly the processes that are meant, and the wait until they are gone.

end(find) → asked to go, again while new ones are found → by force → who is left
end_survivors(host) → end() of what a killed program left running, found by the birthmarks and cookies of its terminals

Terminals that outlive their program have no host in their cookie, so they are never among the survivors.
"""

import asyncio
import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tarmac.paths import state_dir
from tarmac.terminals.process import birthmark
from tarmac.terminals.process.processes import (
    Process,
    Stat,
    command_line,
    entries,
    everyone,
    look,
    name,
    seconds_on_processor,
    stat,
)
from tarmac.terminals.settings import Settings

STARVED = 30.0  # so much longer at most we wait for processes that get no processor
LOOK = 0.1  # seconds between two looks at processes that are to end
A_TRY = 0.001


def signal_all(processes: Iterable[Process], sig: int) -> int:
    """Signal each that is still the same process; return how many there were to signal.

    One that may not be signalled (it changed its user) counts too: it is there. Oldest first, so that a
    parent which would replace its children goes before them.
    """
    count = 0
    for process in sorted(processes, key=lambda each: (each.started, each.pid)):
        try:
            _signal(process, sig)
        except ProcessLookupError:
            continue
        except PermissionError:
            pass
        count += 1
    return count


class TimeToAct:
    """How long processes could act on a signal: while they slept by themselves, or had a processor.

    The clock says nothing: on a busy machine, or under a limit, a process may wait for a processor for seconds. It did
    not ignore what it could not act on yet. (`sh` and Python end on Ctrl-C by a handler of their own; while `sh` starts
    a program it can't.) After `STARVED` seconds of such waits in all, the clock counts.
    """

    def __init__(self, find: Callable[[], Iterable[Stat | None]]) -> None:
        self._find = find
        self._spare = STARVED
        self.begin()

    def begin(self) -> None:
        """Look at them, and count from now on."""
        self._ran = self._look()

    def of(self, pause: float) -> float:
        """How much of a pause that is just over each of them had. One that was not there before has no say yet."""
        ran, self._ran = self._ran, self._look()
        had = min([pause, *(now - ran[each] for each, now in self._ran.items() if each in ran)])
        self._spare -= pause - had
        return had if self._spare > 0 else pause

    def _look(self) -> dict[Process, float]:
        """The processor time of each that wants a processor, or the disk. Others sleep, stand still or end."""
        return {
            each.process: seconds
            for each in self._find()
            if each is not None and each.state in "RD"
            if (seconds := seconds_on_processor(each.process.pid)) is not None
        }


async def end(find: Callable[[], set[Process]], *, grace: float, patience: float = 2.0) -> set[Process]:
    """End all that `find` returns, politely for `grace` seconds (0: not at all), then by force; return who is left.

    `find` is asked again and again, as they may fork meanwhile. What appears during the grace is asked to
    go only after all before it have gone: it may be their cleaning up. Force lasts `patience` seconds.
    """
    loop = asyncio.get_running_loop()
    found: set[Process] = set()
    time_to_act = TimeToAct(lambda: (stat(each.pid) for each in found))
    while grace > 0 and (found := _surely(find)):
        signal_all(found, signal.SIGTERM)
        signal_all(found, signal.SIGCONT)  # a stopped one can't act on the first before the second
        time_to_act.begin()
        while grace > 0 and not await _gone(found, loop.time() + LOOK):
            grace -= time_to_act.of(LOOK)
        grace -= A_TRY  # who forks faster than we look has an end, too, and does not starve the others in this loop
        await asyncio.sleep(0)
    deadline = loop.time() + patience
    while found := _surely(find):
        signal_all(found, signal.SIGKILL)
        await _gone(found, min(deadline, loop.time() + 0.05))  # then look again: who was forked in between?
        await asyncio.sleep(0)
        if loop.time() >= deadline:
            return _surely(find)
    return set()


def continue_if_stopped(pid: int) -> bool:
    """Wake a process that Ctrl-Z or SIGSTOP put to sleep; one held by a debugger is left to it."""
    found = stat(pid)
    return found is not None and found.state == "T" and signal_all([found.process], signal.SIGCONT) == 1


async def gone(processes: Iterable[Process]) -> None:
    """Return when all are gone."""
    for process in processes:
        await _one_gone(process)


async def _gone(processes: Iterable[Process], deadline: float) -> bool:
    """Whether all are gone before the deadline. One after the other: all have to go, so the order is free."""
    try:
        async with asyncio.timeout_at(deadline):
            await gone(processes)
    except TimeoutError:
        return False
    return True


async def _one_gone(process: Process) -> None:
    try:
        fd = _hold(process)
    except ProcessLookupError:
        return
    if fd is None:
        pause = 0.002
        while look(process.pid) == process:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _surely(find: Callable[[], set[Process]]) -> set[Process]:
    """Those found that still live. A changing tree may look empty for a moment: believe "none" when told twice."""
    for _ in range(2):
        if found := {each for each in find() if look(each.pid) == each}:
            return found
    return set()


def _signal(process: Process, sig: int) -> None:
    fd = _hold(process)
    if fd is None:
        os.kill(process.pid, sig)
        return
    try:
        if sys.platform == "linux":  # said for mypy; we would have no pidfd
            signal.pidfd_send_signal(fd, sig)
    finally:
        os.close(fd)


def _hold(process: Process) -> int | None:
    """A pidfd of exactly this process; None where the kernel has none. ProcessLookupError when it is gone.

    First the pidfd, then the look: whoever takes the pid after that, the pidfd is still the one we saw.
    """
    fd = None
    if sys.platform == "linux":
        try:
            fd = os.pidfd_open(process.pid)
        except OSError as error:  # an old kernel, a sandbox that forbids it, no descriptors left
            if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.EMFILE, errno.ENFILE):
                raise ProcessLookupError(errno.ESRCH, "gone") from None
    if look(process.pid) != process:
        if fd is not None:
            os.close(fd)
        raise ProcessLookupError(errno.ESRCH, "gone")
    return fd


GRACE = 1.0  # seconds between SIGTERM and SIGKILL
LONGEST = 200  # characters of a command line that are told


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that was left running."""

    pid: int
    command: str
    ended: bool = True  # False: it could not be ended


async def end_survivors(host: int, settings: Settings) -> list[Survivor]:
    """End what the Tarmac with the process id `host` left running, if that one is dead."""
    if look(host) is not None:
        return []
    folder = settings.spool_directory or state_dir(os.environ) / "output"
    marks = {mark for cookie in cookies(folder, host) if (mark := birthmark.of(cookie)) is not None}

    def find() -> set[Process]:
        return {each for each in everyone() if each.pid != os.getpid() and _belongs(each.pid, host, marks)}

    found = {each: _words(each.pid) for each in find()}
    if not found:
        return []
    left = await end(find, grace=GRACE)
    return [
        Survivor(each.pid, words, ended=each not in left)
        for each, words in sorted(found.items(), key=lambda item: item[0].started)
    ]


def cookies(folder: Path, host: int) -> list[str]:
    """The cookies of the terminals that a Tarmac had, by the names of their folders."""
    try:
        return [each for each in os.listdir(folder) if _host(each) == str(host)]  # noqa: PTH208
    except OSError:
        return []


def _host(cookie: str) -> str:
    """The process id in terminal.pid.random."""
    return cookie.rpartition(".")[0].rpartition(".")[2]


def _belongs(pid: int, host: int, marks: set[int]) -> bool:
    if marks and birthmark.read_mark(pid) in marks:
        return True
    start = f"{birthmark.COOKIE}=".encode()
    values = (each.removeprefix(start) for each in entries(pid) if each.startswith(start))
    return any(_host(os.fsdecode(value)) == str(host) for value in values)


def _words(pid: int) -> str:
    words = shlex.join(command_line(pid)) or name(pid)
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
