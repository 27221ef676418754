"""A limit on how much of the disk is looked at for one line: names, folders, time. Beyond it, a person is asked.

A line may name thousands of files, and a pattern may match the whole disk. Each look at the disk takes from the line's
budget. When the budget is used up, Spent is raised. Spent is a kind of Unproven, because nobody looked at the rest.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from tarmac.file_system import LOCAL, FileSystem
from tarmac.policy.verdict import Unproven

LOOKS = 8_000  # at single names
NAMES = 20_000  # seen in folders, for patterns
FOLDERS = 500  # read, for patterns
SECONDS = 0.15  # of our own work, for all of it
OFTEN = 8  # looks at the disk for each look at the clock
FEW = 64  # looks that every line has, also when its time is up: a garbage collection may have used it


class Spent(Unproven):
    """The line holds more than is looked at; `does` says it as an effect."""

    does = "names more files than are looked at"

    def __init__(self) -> None:
        super().__init__(f"it {self.does}")


@dataclass(slots=True)
class Budget:
    """What is left for one line."""

    looks: int = LOOKS
    names: int = NAMES
    folders: int = FOLDERS
    seconds: float = SECONDS
    since: float | None = None  # this thread's time when the judging began, or went on; None: it pauses
    found: dict[tuple[str, str, bool], list[str]] = field(default_factory=dict)  # patterns seen before
    seen: set[str] = field(default_factory=set)  # what need not be looked at again
    led: dict[tuple[str, str], str] = field(default_factory=dict)  # where paths led that were followed before
    system: FileSystem = LOCAL  # whose files the line is about

    def spend(self, *, looks: int = 0, names: int = 0, folders: int = 0) -> None:
        self.looks -= looks
        self.names -= names
        self.folders -= folders
        if min(self.looks, self.names, self.folders) < 0:
            raise Spent
        # Asking for the time is a system call, so it is done seldom.
        timely = looks != 1 or (self.looks % OFTEN == 0 and self.looks <= LOOKS - FEW)
        if timely and self.since is not None and time.thread_time() - self.since > self.seconds:
            raise Spent


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


def begin(system: FileSystem = LOCAL) -> None:
    """A new line: all that is looked at in this task from now on is for it, and in these files."""
    _budget.set(Budget(system=system))


def end() -> None:
    _budget.set(None)


@contextmanager
def working() -> Iterator[None]:
    """Count this thread's time from here to the end; a line is judged in several turns, not always in one thread."""
    budget = _budget.get()
    if budget is None:
        yield
        return
    budget.since = start = time.thread_time()
    try:
        yield
    finally:
        budget.seconds -= time.thread_time() - start
        budget.since = None


def current() -> Budget:
    """The budget of the line being judged; a fresh one outside of any."""
    return _budget.get() or Budget(since=time.thread_time())


def elsewhere() -> FileSystem | None:
    """The files of another place that the line is about; None: those of this machine."""
    budget = _budget.get()
    return budget.system if budget is not None and budget.system.place else None


def once(how: str, path: str, follow: Callable[[str], str]) -> str:
    """Where `path` leads, found out once for the line being judged: every command of it is told the same."""
    budget = _budget.get()
    if budget is None:
        return follow(path)
    there = budget.led.get((how, path))
    if there is None:
        there = budget.led[how, path] = follow(path)
    return there


def first(what: str) -> bool:
    """Whether `what` is looked at for the first time for the line being judged; outside of any, it always is."""
    budget = _budget.get()
    if budget is None:
        return True
    if what in budget.seen:
        return False
    budget.seen.add(what)
    return True


def spend() -> None:
    """One look at a name."""
    budget = _budget.get()
    if budget is not None:
        budget.spend(looks=1)


Found = tuple[int, int, int, int, int] | None  # device, inode, mode, links, and when it changed; None: nothing there
_noting: ContextVar[dict[str, Found] | None] = ContextVar("noting", default=None)


def begin_notes() -> dict[str, Found]:
    """Note all that is looked at in this task from now on."""
    noted: dict[str, Found] = {}
    _noting.set(noted)
    return noted


def end_notes() -> None:
    _noting.set(None)


def note(path: str) -> None:
    """`path` is being looked at."""
    noted = _noting.get()
    if noted is not None and path not in noted:
        noted[path] = _find(path)


def holds(noted: dict[str, Found]) -> bool:
    """Whether everything is still as it was noted."""
    return all(_find(path) == found for path, found in noted.items())


def _find(path: str) -> Found:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_nlink, found.st_ctime_ns  # nobody can set that one back
