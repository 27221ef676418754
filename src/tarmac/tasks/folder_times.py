"""Know whether a listing of a work tree still holds, without listing it again.

listed(started, …) → the times of its folders and ignore files        still_holds() → the same times?

A name that comes or goes changes the times of its folder. Nobody can set the time of a change (ctime) back, so equal
times mean equal names. Three things would break this, and each means that we list again: a change so soon before the
listing that a second one could have the same time, a file system that keeps no such times (a network's), and ignore
files with new rules.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

MOST: Final = 20_000  # folders; with more, looking at each is no quicker than listing
_TICK: Final = 50_000_000  # nanoseconds: longer than the clock of any kernel's file times stands still
_SECOND: Final = 1_000_000_000
_KEEPS_TIMES: Final = frozenset({"ext4", "xfs", "btrfs", "tmpfs", "overlay", "f2fs", "zfs", "bcachefs"})

Times: TypeAlias = tuple[int, ...]


class FolderTimes:
    """The folders of one work tree that git looks into."""

    def __init__(self, top: Path, rules: Iterable[Path]) -> None:
        """`rules`: ignore files elsewhere that count, too."""
        self._top = str(top)
        self._outer = [str(each) for each in rules]
        self._folders: dict[str, Times | None] = {}  # None: it must be listed again
        self._rules: dict[str, Times | None] = {}
        self._ignored: set[str] = set()
        self._stale: list[str] = []
        self._too_many = False

    def still_holds(self) -> bool:
        """Whether a listing now would find the same names."""
        if not self._folders:
            return False
        if any(_times(path) != times for path, times in self._rules.items()):
            self._folders.clear()  # other folders count now
            return False
        self._stale = [path for path, times in self._folders.items() if times is None or _times(path) != times]
        return not self._stale

    def listed(
        self, started: int, nested: Collection[str], ignored: Callable[[Sequence[str]], Collection[str]]
    ) -> None:
        """Remember a listing that began at `started`. `ignored`: those of some folders that git does not look into."""
        devices = steady_devices()
        if self._too_many or (not self._folders and Path(self._top).stat().st_dev not in devices):
            return
        if not self._folders:
            self._ignored = set()
            self._stale = [self._top]
            self._rules = {each: _settled(each, started, devices) for each in self._outer}
        waiting, self._stale = self._stale, []
        while waiting:
            found = [
                inner
                for folder in waiting
                for inner in self._look_at(folder, started, devices)
                if folder not in nested and inner not in self._folders and inner not in self._ignored
            ]
            self._ignored.update(ignored(found) if found else ())
            waiting = [each for each in found if each not in self._ignored]
            if len(self._folders) + len(waiting) > MOST:
                self._too_many = True
                self._folders.clear()
                return

    def _look_at(self, folder: str, started: int, devices: Collection[int]) -> list[str]:
        """Remember the times of a folder; the folders in it."""
        self._folders[folder] = _settled(folder, started, devices)
        rules = f"{folder}/.gitignore"
        self._rules.pop(rules, None)
        try:
            inner, has_rules = _look(folder)
        except PermissionError:  # its own times say when that is over
            return []
        except OSError:  # gone meanwhile: its parent's times say so
            del self._folders[folder]
            return []
        if has_rules:
            self._rules[rules] = _settled(rules, started, devices)
        return inner


def is_settled(there: os.stat_result, started: int) -> bool:
    """Whether a look that began at `started` saw the last change of a file: any later one has another time."""
    coarse = there.st_ctime_ns % _SECOND == 0
    return there.st_ctime_ns < started - (2 * _SECOND if coarse else _TICK)


def _look(folder: str) -> tuple[list[str], bool]:
    """The folders in a folder, and whether it has an ignore file."""
    inner: list[str] = []
    has_rules = False
    if Path(folder).is_symlink():
        raise NotADirectoryError(folder)
    with os.scandir(folder) as entries:
        for each in entries:
            if each.name == ".gitignore":
                has_rules = True
            elif each.name != ".git" and each.is_dir(follow_symlinks=False):
                inner.append(each.path)
    return inner, has_rules


def _times(path: str) -> Times:
    """Of a file or folder; () when there is none."""
    try:
        return times_of(os.lstat(path))
    except OSError:
        return ()


def times_of(there: os.stat_result) -> Times:
    size = 0 if stat.S_ISDIR(there.st_mode) else there.st_size
    return there.st_dev, there.st_ino, there.st_mode, there.st_mtime_ns, there.st_ctime_ns, size


def _settled(path: str, started: int, devices: Collection[int]) -> Times | None:
    """The times, where equal ones will mean that nothing has changed since `started`."""
    try:
        there = os.lstat(path)
    except OSError:
        return ()
    return times_of(there) if there.st_dev in devices and is_settled(there, started) else None


def steady_devices() -> set[int]:
    """The file systems that keep exact times of change."""
    found: set[int] = set()
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return found
    for line in lines:
        about, _, kind = line.partition(" - ")
        if kind.partition(" ")[0] in _KEEPS_TIMES:
            major, _, minor = about.split()[2].partition(":")
            found.add(os.makedev(int(major), int(minor)))
    return found
