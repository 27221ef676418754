"""Find all processes that a command started.

become_subreaper() in the shell (prctl.py) → descendants(shell) − those before → end(…) (signals.py) → survivors

The shell is a child-subreaper. A daemon that forked twice and left its session goes back to the shell, not to init. So
everything that the shell ever started is below it. A process is identified by its pid *and* its start time, so a reused
pid is never signalled by mistake. Nothing here reaps, because these are not our children.

This module is made for Linux. Elsewhere it runs `ps`, once for each question. That path is tested on Linux, and was not
tried on macOS.
"""

# ruff: noqa: PTH110, PTH119, PTH208
# (names in /proc, asked for again and again: a Path would cost more than the question)

import os
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache

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


def seconds_on_processor(pid: int) -> float | None:
    """How long it has run; None when it is gone, or the kernel does not tell."""
    try:
        spent = int(read(f"/proc/{pid}/schedstat").split(None, 1)[0])
    except (OSError, IndexError):
        return None
    return spent / 1e9 or None


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


def sweep(
    *, session: int, cookie: bytes, bears_mark: Callable[[int], bool] | None = None, exclude: Collection[int] = ()
) -> set[Process]:
    """What a shell left behind when it died by surprise: by its session, `cookie` in the environment, or a mark.

    `cookie` is a whole entry, b"NAME=value". Call it once the shell is dead: if a process with the pid
    `session` lives, that number has been given to somebody else, and the session is not ours to end.
    One scan of all processes; environments we may not read are passed over, as are we ourselves.
    """
    spared = {os.getpid(), *exclude}
    living = _everyone()
    leader = living.get(session)
    ours = session if not (leader and leader.alive) else None
    return {
        each.process
        for pid, each in living.items()
        if pid not in spared
        and each.alive
        and (each.session == ours or (bears_mark and bears_mark(pid)) or cookie in entries(pid))
    }


def everyone() -> list[Process]:
    """All living processes."""
    return [each.process for each in _everyone().values() if each.alive]


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
    import subprocess  # here: Linux never needs it

    run = subprocess.run(["ps", *words], env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False)
    return run.stdout


def entries(pid: int) -> list[bytes]:
    """The environment that a process was started with; empty when we may not read it."""
    try:
        return read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return []
