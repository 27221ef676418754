"""A mark that every process of a terminal is born with: it stays, whatever becomes of parent, session and environment.

put(), between fork and exec or right after → inherited by all it starts → bears() of any process, its owner or not

The mark is a number in the limit on file locks (RLIMIT_LOCKS). Linux has counted no locks since 2.4.25, so that it
limits nothing; fork and exec hand it on; `env -i`, `setsid` and a second fork don't touch it; anybody may read it. What
does lose it: `ulimit -x`, and a login (`su`, `sshd`, cron) where PAM sets all limits anew.

end_survivors() ends what a killed host left running.
"""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tarmac.paths import state_dir
from tarmac.terminals.environment import COOKIE
from tarmac.terminals.process.processes import Process, command_line, entries, everyone, look, name, read, sweep
from tarmac.terminals.process.signals import end
from tarmac.terminals.settings import Settings

_FIRST = 1 << 52  # nobody's limit on anything
_ROW = b"Max file locks "
_LIMIT_ON_LOCKS = 10


def of(cookie: str) -> int | None:
    """The number of a terminal, from the random end of its cookie; None where there are no birthmarks."""
    try:
        return _FIRST + int(cookie.rpartition(".")[2], 16) if sys.platform == "linux" else None
    except ValueError:
        return None


def prepare() -> None:
    """Load what `put` needs, before the fork."""
    if sys.platform == "linux":
        import resource  # noqa: F401


def put(mark: int, *, pid: int = 0) -> None:
    """Mark a process (this one: for the child between fork and exec) and all it will start."""
    import resource

    try:
        _, hard = resource.getrlimit(_LIMIT_ON_LOCKS)
        resource.prlimit(pid, _LIMIT_ON_LOCKS, (mark, hard))
    except (OSError, ValueError):  # somebody limited the locks, on a system that lets us set no more: unmarked, then
        pass


def orphans(cookie: str, *, session: int = -1) -> set[Process]:
    """What a terminal's dead shell left behind: by its session, its cookie, its birthmark.

    One that forks and leaves while we look is neither seen nor is its child: nobody is believed when told three times.
    """
    mark = of(cookie)
    bears_mark: Callable[[int], bool] | None = partial(bears, mark=mark) if mark is not None else None
    entry = f"{COOKIE}={cookie}".encode()
    for _ in range(3):
        if found := sweep(session=session, cookie=entry, bears_mark=bears_mark, exclude={os.getpid()}):
            return found
    return set()


def bears(pid: int, mark: int) -> bool:
    """Whether that process has this mark."""
    return read_mark(pid) == mark


def is_marked(pid: int) -> bool:
    """Whether that process was started in a terminal, of this Tarmac or another."""
    return (read_mark(pid) or 0) >= _FIRST


def read_mark(pid: int) -> int | None:
    """The mark of a process; None when it has none."""
    try:
        limits = read(f"/proc/{pid}/limits")
    except OSError:
        return None
    _, _, row = limits.partition(_ROW)
    first = row.split(None, 1)[:1]
    return int(first[0]) if first and first[0].isdigit() else None


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
    marks = {mark for cookie in cookies(folder, host) if (mark := of(cookie)) is not None}

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
    if marks and read_mark(pid) in marks:
        return True
    start = f"{COOKIE}=".encode()
    values = (each.removeprefix(start) for each in entries(pid) if each.startswith(start))
    return any(_host(os.fsdecode(value)) == str(host) for value in values)


def _words(pid: int) -> str:
    words = shlex.join(command_line(pid)) or name(pid)
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
