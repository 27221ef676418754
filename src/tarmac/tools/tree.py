"""Track the files of a workspace: which were added and removed since the last look.

A file that is added or removed changes the time of its folder. So one `stat` per folder says which folders to read
again. Files that git or `.tarmacignore` hide are left out. The tree is read level by level, up to a limit.

`look()` blocks, so run it in a thread. `glance()` is quick enough for the event loop, because it gives up where it
would take longer.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from tarmac.policy.files import IGNORE_FILES
from tarmac.tools import list_files
from tarmac.tools.list_files import FileList, Rules

MOST_FOLDERS: Final = 300
MOST_NAMES: Final = 5_000
FEW: Final = 16  # folders, and new names, of a glance
SMALL: Final = 300  # names in a folder that a glance reads
FRESH: Final = 50_000_000  # nanoseconds in which a second change may get the same time stamp
HIDING: Final = frozenset(IGNORE_FILES)
IGNORING: Final = ".gitignore"

_Kind = Literal["file", "folder", "link"]
_Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths of files relative to the root, sorted."""

    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()


@dataclass(slots=True)
class _TreeFolder:
    """A folder when it was last read."""

    stamp: _Stamp | None  # None: read it again
    rules: Rules
    guarded: bool  # an ignore file may hide some of it from agents
    entries: Mapping[str, _Kind]  # all that is in it
    shown: set[str]  # those that are not ignored


class Tree:
    """The files of a workspace. `hidden` is called for links, and for paths below a `.tarmacignore`."""

    def __init__(self, root: Path, hidden: Callable[[Path], bool]) -> None:
        self._root, self._hidden = root, hidden
        self._folders: dict[
            str, _TreeFolder
        ] = {}  # by name from the root, with a slash at its end; the root itself is ""
        self._rules: dict[str, _Stamp | None] = {}  # files that say what is ignored or hidden
        self._names = 0
        self._whole = True  # nothing was left out because of a limit
        self._looked = 0  # the time of the last look, from time.time_ns()

    def look(self) -> Changes:
        """The changes since the last look. The first look reports none."""
        first, last, self._looked = not self._folders, self._looked, time.time_ns()
        came: list[str] = []
        went: list[str] = []
        if first:
            self._read_all()
        elif not self._same_rules() or not self._read_changed(came, went):
            before = set(self._files(self._folders)).difference(came).union(went)
            self._read_all()
            now = set(self._files(self._folders))
            # A file that the new rules show or hide was neither added nor removed.
            came = [name for name in now - before if self._is_newer(name, last)]
            went = [name for name in before - now if not os.path.lexists(self._root / name)]
        return Changes(tuple(sorted({*came} - {*went})), tuple(sorted({*went} - {*came})))

    def glance(self) -> Changes | None:
        """The changes, if they are a few files in a few small folders; else None, and nothing is recorded."""
        if not self._folders or len(self._folders) > FEW or not self._same_rules():
            return None
        looked, root = time.time_ns(), str(self._root)
        read: list[tuple[str, _TreeFolder, _Stamp | None, _Difference]] = []
        for inside, folder in self._folders.items():
            if folder.stamp is None or _stamp(f"{root}/{inside}") != folder.stamp:
                stamp, now = _settled(f"{root}/{inside}"), _scan(f"{root}/{inside}", SMALL)
                difference = _Difference(folder.entries, now)
                if folder.guarded or len(now) >= SMALL or not difference.few_files:
                    return None
                read.append((inside, folder, stamp, difference))
        came: list[str] = []
        went: list[str] = []
        for inside, folder, stamp, difference in read:
            folder.stamp = stamp
            self._note(inside, folder, difference, came, went)
        self._looked = looked
        return Changes(tuple(sorted(came)), tuple(sorted(went)))

    def listing(self, most: int) -> FileList:
        """The first `most` names of the last look, level by level."""
        found: list[tuple[str, bool]] = []
        for inside, folder in self._folders.items():
            for name in sorted(folder.shown):
                if len(found) >= most:
                    return list_files.in_order(found, truncated=True)
                found.append((f"{inside}{name}", folder.entries[name] == "folder"))
        return list_files.in_order(found, truncated=not self._whole)

    def _files(self, names: Iterable[str]) -> Iterable[str]:
        for inside in names:
            folder = self._folders[inside]
            yield from (f"{inside}{name}" for name in folder.shown if folder.entries[name] != "folder")

    # Reading

    def _read_all(self) -> None:
        self._folders, self._rules, self._names, self._whole = {}, {}, 0, True
        rules = list_files.rules_for(self._root)
        for base, _ in rules:
            self._heed(f"{base}/{IGNORING}")
        self._read("", rules, guarded=False)

    def _read(self, top: str, rules: Rules, *, guarded: bool) -> list[str]:
        """Read a new folder and all below it. Returns the folders that were read."""
        waiting = deque([(top, rules, guarded)])
        read: list[str] = []
        while waiting:
            inside, rules, guarded = waiting.popleft()
            if len(self._folders) >= MOST_FOLDERS or self._names >= MOST_NAMES:
                self._whole = False
                break
            here = self._root / inside
            stamp, entries = _settled(here), _scan(here)
            for name in {IGNORING, *HIDING} & entries.keys():
                self._heed(f"{here}/{name}")
            rules = list_files.with_rules_of(here, rules) if IGNORING in entries else rules
            folder = _TreeFolder(stamp, rules, guarded or bool(HIDING & entries.keys()), entries, set())
            self._folders[inside] = folder
            read.append(inside)
            shown = self._show(inside, folder, sorted(entries))
            below = (f"{inside}{name}/" for name in shown if entries[name] == "folder")
            waiting.extend((each, rules, folder.guarded) for each in below)
        return read

    def _read_changed(self, came: list[str], went: list[str]) -> bool:
        """Read the folders that changed. False if ignore rules changed, so that everything must be read."""
        root = str(self._root)
        for inside in list(self._folders):
            folder = self._folders.get(inside)  # None: a folder above it was removed
            if folder is not None and (folder.stamp is None or _stamp(f"{root}/{inside}") != folder.stamp):
                before = folder.entries
                self._read_again(inside, folder, came, went)
                if {IGNORING, *HIDING} & (before.keys() ^ folder.entries.keys()):
                    return False
        return True

    def _read_again(self, inside: str, folder: _TreeFolder, came: list[str], went: list[str]) -> None:
        here = self._root / inside
        folder.stamp = _settled(here)
        self._note(inside, folder, _Difference(folder.entries, _scan(here)), came, went)

    def _note(self, inside: str, folder: _TreeFolder, found: "_Difference", came: list[str], went: list[str]) -> None:
        for name, kind in found.gone:
            if name not in folder.shown:
                continue
            folder.shown.discard(name)
            self._names -= 1
            if kind == "folder":
                self._forget(f"{inside}{name}/", went)
            else:
                went.append(f"{inside}{name}")
        folder.entries = found.now
        for name in self._show(inside, folder, sorted(name for name, _ in found.new)):
            if found.now[name] == "folder":
                came.extend(self._files(self._read(f"{inside}{name}/", folder.rules, guarded=folder.guarded)))
            else:
                came.append(f"{inside}{name}")

    def _forget(self, top: str, went: list[str]) -> None:
        below = [each for each in self._folders if each.startswith(top)]
        went.extend(self._files(below))
        for each in below:
            self._names -= len(self._folders.pop(each).shown)

    def _show(self, inside: str, folder: _TreeFolder, names: Iterable[str]) -> list[str]:
        """Record the names that are not hidden, and return them."""
        shown: list[str] = []
        here = self._root / inside
        for name in names:
            kind = folder.entries[name]
            if name == ".git" or (folder.rules and list_files.is_ignored(here / name, folder.rules, kind == "folder")):
                continue
            if (folder.guarded or kind == "link") and self._hidden(here / name):
                continue
            if self._names >= MOST_NAMES:
                self._whole = False
                break
            self._names += 1
            folder.shown.add(name)
            shown.append(name)
        return shown

    # Rules

    def _heed(self, file: str) -> None:
        self._rules[file] = _stamp(file)

    def _same_rules(self) -> bool:
        return all(_stamp(file) == stamp for file, stamp in self._rules.items())

    def _is_newer(self, name: str, than: int) -> bool:
        try:
            return os.lstat(self._root / name).st_ctime_ns >= than - FRESH
        except OSError:
            return False


class _Difference:
    """What was removed from a folder and added to it. An entry of another kind counts as both."""

    __slots__ = ("gone", "new", "now")

    def __init__(self, before: Mapping[str, _Kind], now: Mapping[str, _Kind]) -> None:
        self.now = now
        same = before == now
        self.gone = [] if same else [(name, kind) for name, kind in before.items() if now.get(name) != kind]
        self.new = [] if same else [(name, kind) for name, kind in now.items() if before.get(name) != kind]

    @property
    def few_files(self) -> bool:
        """Whether only a few files changed, and no ignore file."""
        changed = [*self.gone, *self.new]
        return len(changed) <= FEW and all(kind == "file" and name not in (IGNORING, *HIDING) for name, kind in changed)


def _scan(folder: str | Path, most: int | None = None) -> dict[str, _Kind]:
    try:
        with os.scandir(folder) as entries:
            return {
                each.name: "file" if each.is_file(follow_symlinks=False) else _unlike_a_file(each)
                for each in islice(entries, most)
            }
    except OSError:  # unreadable, or already gone
        return {}


def _unlike_a_file(entry: "os.DirEntry[str]") -> _Kind:
    return "folder" if entry.is_dir(follow_symlinks=False) else "link" if entry.is_symlink() else "file"


def _stamp(path: str | Path) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _settled(folder: str | Path) -> _Stamp | None:
    """The stamp of a folder; None if it changed so recently that another change might not show."""
    stamp = _stamp(folder)
    return stamp if stamp is not None and abs(time.time_ns() - stamp[0]) > FRESH else None
