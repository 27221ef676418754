"""The tree of processes a command started: find all, end all.

become_subreaper() in the shell → descendants(shell) − those before → end(…) → survivors

The shell is a child-subreaper: a daemon that forked twice and left its session comes back to the shell,
not to init, so "below the shell" is all it ever started. A process is known by its pid *and* its start
time, so that a pid used again is never signalled by mistake. Nothing here reaps: they are not our children.

Linux is the home of this file. Elsewhere it asks `ps`, once for each question; that way runs in our tests
on Linux, and has not been tried on macOS.
"""

# ruff: noqa: PTH110, PTH119, PTH208
# (names in /proc, asked for again and again: a Path would cost more than the question)

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache

from tarmac.dataclass import dataclass

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MOST_WALKS = 5  # of a tree that changes while we look


@dataclass(frozen=True, slots=True)
class Process:
    """One process and no other, even after its pid has been used again."""

    pid: int
    started: int  # in the kernel's own unit: only good for telling two apart


@dataclass(frozen=True, slots=True)
class Stat:
    """What the kernel tells anybody about a process, its owner or not."""

    process: Process
    state: str  # R running, S asleep, D in the disk's hands, T stopped, Z zombie …
    parent: int
    group: int
    session: int
    threads: int
    ticks: int = 0  # of processor time

    @property
    def alive(self) -> bool:
        """A main thread that has ended while others go on looks like a zombie, and is none."""
        return self.state not in "ZXx" or self.threads > 1


def prepare() -> None:
    """Load what `become_subreaper` needs; call it before the fork, where an import is still safe."""
    _prctl()


def become_subreaper() -> None:
    """Adopt the orphans among all descendants; for the child between fork and exec. Survives the exec.

    Does nothing where there is no prctl: orphans then go to init, and only `sweep` may find them.
    """
    if prctl := _prctl():
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(sig: int = signal.SIGTERM) -> None:
    """Get `sig` when the thread that forked us is gone, however; for the child between fork and exec, after `prepare`.

    For a process that must not outlive a host that was killed. Survives the exec; its own children don't inherit it.
    """
    if prctl := _prctl():
        prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)


@cache
def _prctl() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # here, for the many who open no terminal

    try:
        prctl = ctypes.PyDLL(None).prctl  # PyDLL: keeps the GIL, as after a fork there is nobody to hand it to
    except (OSError, AttributeError):
        return None
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    function: Callable[..., int] = prctl
    return function


def look(pid: int) -> Process | None:
    """The living process that has this pid now; a zombie is not living."""
    found = stat(pid)
    return found.process if found and found.alive else None


def state(pid: int) -> str | None:
    """The state letter of a process, zombies included; None when there is none."""
    return found.state if (found := stat(pid)) else None


def name(pid: int) -> str:
    """What the kernel calls it (15 bytes at most; a script has the script's name); empty when it is gone."""
    try:
        return read(f"/proc/{pid}/comm").decode(errors="replace").rstrip("\n")
    except FileNotFoundError:
        return "" if has_proc() else os.path.basename(_ask_ps("-p", str(pid), "-o", "comm=").strip())
    except OSError:
        return ""


def command_line(pid: int) -> list[str]:
    """Its words, as it was started or has renamed itself since; empty when it is gone or has none to show."""
    try:
        raw = read(f"/proc/{pid}/cmdline")
    except OSError:
        return []
    return [word.decode(errors="replace") for word in raw.removesuffix(b"\0").split(b"\0")] if raw else []


def sleeps(pid: int, thread: int = 0) -> int:
    """How often a thread has gone to sleep by itself; two equal answers are one sleep. 0 when it is gone."""
    try:
        status = read(f"/proc/{pid}/task/{thread or pid}/status")
    except OSError:
        return 0
    _, _, rest = status.partition(b"\nvoluntary_ctxt_switches:")
    return int(rest.split(None, 1)[0]) if rest else 0


def continue_if_stopped(pid: int) -> bool:
    """Wake a process that Ctrl-Z or SIGSTOP put to sleep; one held by a debugger is left to it."""
    found = stat(pid)
    return found is not None and found.state == "T" and signal_all([found.process], signal.SIGCONT) == 1


def descendants(pid: int) -> set[Process]:
    """All living processes below `pid`, however deep, whatever their session.

    One that forks and leaves while we look hands its child to a place we have already seen, so a walk that
    met somebody newly dead is walked again, a few times.
    """
    dead: set[int] = set()
    found: set[Process] = set()
    for _ in range(_MOST_WALKS):
        seen = list(below(pid))
        found = {each.process for _, each in seen if each and each.alive}
        met = {child for child, each in seen if not (each and each.alive)}
        if met <= dead:
            break
        dead |= met
    return found


def below(pid: int, everyone: dict[int, Stat] | None = None) -> Iterator[tuple[int, Stat | None]]:
    """Each process under `pid`, parents first, dead ones too, None for one that has just vanished.

    Lazy, as who looks for one of them may stop early. Asks the kernel for each one's children; where it
    keeps no such list, or `everyone` is given, goes by the parents in that one look at all processes.
    """
    if everyone is None and not _kernel_lists_children():
        everyone = _everyone()
    children = _children if everyone is None else _children_among(everyone)
    ask = stat if everyone is None else everyone.get
    waiting, seen = children(pid), {pid}
    while waiting:
        child = waiting.pop()
        if child in seen:
            continue
        seen.add(child)
        yield child, ask(child)
        waiting += children(child)


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


def sweep(
    *, session: int, cookie: bytes, bears_mark: Callable[[int], bool] | None = None, exclude: Collection[int] = ()
) -> set[Process]:
    """What a shell left behind when it died by surprise: by its session, `cookie` in the environment, or a mark.

    `cookie` is a whole entry, b"NAME=value". Call it once the shell is dead: if a process with the pid
    `session` lives, that number has been given to somebody else, and the session is not ours to end.
    One scan of all processes; environments we may not read are passed over, as are we ourselves.
    """
    spared = {os.getpid(), *exclude}
    everyone = _everyone()
    leader = everyone.get(session)
    ours = session if not (leader and leader.alive) else None
    return {
        each.process
        for pid, each in everyone.items()
        if pid not in spared
        and each.alive
        and (each.session == ours or (bears_mark and bears_mark(pid)) or cookie in _environment(pid))
    }


def stat(pid: int) -> Stat | None:
    """What the kernel says of one process, dead or alive; None when it is gone."""
    try:
        return _parse_stat(pid, read(f"/proc/{pid}/stat"))
    except OSError:
        return None if has_proc() else _by_ps("-p", str(pid)).get(pid)


def read(path: str) -> bytes:
    """The whole of a small file in /proc; half the price of open()."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        whole = b""
        while piece := os.read(fd, 65536):
            whole += piece
        return whole
    finally:
        os.close(fd)


@cache
def has_proc() -> bool:
    """Whether the kernel shows its processes as files: Linux does, macOS does not."""
    return os.path.exists("/proc/self/stat")


def _parse_stat(pid: int, raw: bytes) -> Stat:
    fields = raw[raw.rindex(b")") + 2 :].split()  # its name stands in brackets, and may hold any byte
    return Stat(
        process=Process(pid, started=int(fields[19])),
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        threads=int(fields[17]),
        ticks=int(fields[11]) + int(fields[12]),
    )


@cache
def _kernel_lists_children() -> bool:
    return os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def _children(pid: int) -> list[int]:
    """Any thread may have forked, and is then the parent."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
            except OSError:
                pass  # a thread that has ended; its children went to another
    except OSError:
        pass
    return found


def _children_among(everyone: dict[int, Stat]) -> Callable[[int], list[int]]:
    families: dict[int, list[int]] = {}
    for pid, each in everyone.items():
        families.setdefault(each.parent, []).append(pid)
    return lambda pid: list(families.get(pid, ()))


def _everyone() -> dict[int, Stat]:
    return _scan() if has_proc() else _by_ps("-ax")


def _scan() -> dict[int, Stat]:
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return {pid: found for pid in pids if (found := stat(pid))}


def _by_ps(*which: str) -> dict[int, Stat]:
    """For systems without /proc. Start times are whole seconds there: a weaker identity, but one."""
    found: dict[int, Stat] = {}
    for line in _ask_ps(*which, "-o", "pid=,ppid=,pgid=,stat=,lstart=").splitlines():
        pid, parent, group, letters, *started = line.split()
        when = time.mktime(time.strptime(" ".join(started), "%a %b %d %H:%M:%S %Y"))
        try:
            session = os.getsid(int(pid))
        except OSError:
            session = 0
        process = Process(int(pid), int(when))
        found[process.pid] = Stat(process, letters[0], int(parent), int(group), session, threads=1)
    return found


def _ask_ps(*words: str) -> str:
    run = subprocess.run(["ps", *words], env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False)
    return run.stdout


def _environment(pid: int) -> list[bytes]:
    try:
        return read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return []


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


def _surely(find: Callable[[], set[Process]]) -> set[Process]:
    """Those found that still live. A changing tree may look empty for a moment: believe "none" when told twice."""
    for _ in range(2):
        if found := {each for each in find() if look(each.pid) == each}:
            return found
    return set()


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
