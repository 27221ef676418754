"""A mark that every process of a terminal inherits. It stays when parent, session and environment change.

put(), between fork and exec or right after → inherited by all it starts → bears() of any process, its owner or not

The mark is a number in the limit on file locks (RLIMIT_LOCKS). Linux has not enforced this limit since 2.4.25. fork and
exec pass it on, and `env -i`, `setsid` and a second fork don't change it. Any process may read it. Two things remove
it: `ulimit -x`, and a login (`su`, `sshd`, cron) where PAM resets all limits.
"""

import os
import sys
from collections.abc import Callable
from functools import partial

from tarmac.terminals.process.processes import Process, read, sweep

COOKIE = "TARMAC_TERMINAL"  # a variable whose value is unique on the machine, so orphans can be found by it

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
