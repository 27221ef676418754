"""Signals to exactly the processes that are meant, and the wait until they are gone.

end(find) → asked to go, again while new ones are found → by force → who is left
"""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterable

from tarmac.terminals.process.processes import Process, look, stat


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


async def end(find: Callable[[], set[Process]], *, grace: float, patience: float = 2.0) -> set[Process]:
    """End all that `find` returns, politely for `grace` seconds (0: not at all), then by force; return who is left.

    `find` is asked again and again, as they may fork meanwhile. What appears during the grace is asked to
    go only after all before it have gone: it may be their cleaning up. Force lasts `patience` seconds.
    """
    loop = asyncio.get_running_loop()
    if grace > 0:
        deadline = loop.time() + grace
        while (found := _surely(find)) and loop.time() < deadline:
            signal_all(found, signal.SIGTERM)
            signal_all(found, signal.SIGCONT)  # a stopped one can't act on the first before the second
            await _gone(found, deadline)
            await asyncio.sleep(0)  # who forks faster than we look must not starve the others in this loop
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


async def _gone(processes: Iterable[Process], deadline: float) -> None:
    """Return when all are gone, or at the deadline. One after the other: all have to go, so the order is free."""
    try:
        async with asyncio.timeout_at(deadline):
            await gone(processes)
    except TimeoutError:
        pass


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
