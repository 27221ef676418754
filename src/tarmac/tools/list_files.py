"""The tool list_files: what is in a folder, without what git ignores.

The listing goes level by level, so one that is cut off still shows every part of the tree. Links are shown and not
followed. A folder that the caller names is listed even if git ignores it.
"""

import asyncio
import difflib
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import FileUnavailable, PlaceFailed, TarmacError, ToolFailed
from tarmac.file_system import LOCAL, FileSystem, entries_of, follow
from tarmac.paths import check_directory, shown
from tarmac.tools import file_access
from tarmac.tools.file_access import ResolvedPath, hides, show_name
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FOLDER = "The folder. `.` is the workspace."


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFiles(Tool):
    name: ClassVar[str] = "list_files"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "List the files and folders in a folder, without those that git ignores. Folder names end in `/`. At most 200 "
        "names are shown."
    )

    path: Annotated[str, Meta(description=FOLDER)] = "."
    recursive: Annotated[bool, Meta(description="Whether to list subfolders, too.")] = False

    async def prepare(self, bench: Bench) -> Ready:
        place, want = await file_access.looking(bench, file_access.to_read, self.path)

        async def act(_: Go) -> Done:
            try:
                now = file_access.fresh(bench)
                found = await list_files(
                    (await file_access.looking(bench, file_access.unmoved, place)).path,
                    recursive=self.recursive,
                    hidden=file_access.hides(now, contents=False),
                    system=now.files.system,
                )
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text(str(found))

        return Ready(title=f"Listing {place.name}", done=f"Listed {place.name}", wants=(want,), act=act)


MOST = 200
MOST_COMPARED = 5_000  # files that a path which does not exist is compared with
MOST_SUGGESTED = 2
_MOST_FOLDERS = 20_000
_MOST_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileList:
    """Names relative to a folder. Those of folders end in `/`."""

    names: tuple[str, ...]
    truncated: bool = False

    def __str__(self) -> str:
        if not self.names:
            return "No files found."
        cut = "(File list truncated: list a folder below, or search_files with a pattern.)"
        return "\n".join([*self.names, *([cut] if self.truncated else [])])


async def list_files(
    folder: Path,
    *,
    recursive: bool = False,
    most: int = MOST,
    hidden: Callable[[Path], bool] | None = None,
    system: FileSystem = LOCAL,
) -> FileList:
    """The names in `folder`, at most `most`, folders first. `hidden` says which other paths to leave out."""
    return await asyncio.to_thread(list_folder, folder, recursive=recursive, most=most, hidden=hidden, system=system)


def list_names(folder: Path, *, most: int, hidden: Callable[[Path], bool], system: FileSystem = LOCAL) -> list[str]:
    """The files below a folder, relative to it. Run it in a thread."""
    found = list_folder(folder, recursive=True, most=most, hidden=hidden, system=system)
    return [each for each in found.names if not each.endswith("/")]


def _directory(folder: Path, system: FileSystem) -> Path:
    """The folder, if it can be listed. The kernel of another place tells only when it is."""
    if not system.place:
        return check_directory(folder)
    try:
        system.entries(str(folder))
    except PlaceFailed:
        raise
    except OSError as error:
        raise FileUnavailable(f"{shown(folder)} can't be listed: {(error.strerror or '').lower()}") from None
    return folder


def list_folder(
    folder: Path,
    *,
    recursive: bool,
    most: int,
    hidden: Callable[[Path], bool] | None,
    system: FileSystem = LOCAL,
) -> FileList:
    """As list_files. Run it in a thread."""
    folder = _directory(folder, system)
    if not system.place and not os.access(folder, os.R_OK | os.X_OK):
        raise FileUnavailable(f"{shown(folder)} can't be read: permission denied")
    found: list[tuple[str, bool]] = []
    waiting = deque([("", rules_for(folder, system))])
    folders = 0
    truncated = False
    while waiting and not truncated:
        inside, rules = waiting.popleft()
        here = folder / inside
        folders += 1
        system.ahead([str(folder / each) for each, _ in waiting])
        entries = _entries(here, system)
        rules = with_rules_of(here, rules, system)
        for name, is_folder in entries:
            path = here / name
            if name == ".git" or is_ignored(path, rules, is_folder) or (hidden is not None and hidden(path)):
                continue
            if len(found) >= most or folders > _MOST_FOLDERS:
                truncated = True
                break
            whole = f"{inside}{name}"
            found.append((whole, is_folder))
            if recursive and is_folder:
                waiting.append((f"{whole}/", rules))
    return in_order(found, truncated=truncated)


def in_order(found: Iterable[tuple[str, bool]], *, truncated: bool) -> FileList:
    """A list of names, each with whether it is a folder, in the order in which they are shown."""
    ordered = sorted(found, key=lambda each: _order(*each))
    return FileList(tuple(printable(f"{name}/" if is_folder else name) for name, is_folder in ordered), truncated)


def _order(name: str, is_folder: bool) -> tuple[tuple[bool, str], ...]:
    """On each level folders first, then by name."""
    parts = name.split("/")
    return (*((False, part) for part in parts[:-1]), (not is_folder, parts[-1]))


def _entries(here: Path, system: FileSystem) -> list[tuple[str, bool]]:
    try:
        return sorted(system.entries(str(here)) if system.place else entries_of(here), key=lambda pair: pair[0])
    except PlaceFailed:
        raise
    except OSError:  # unreadable, or already gone
        return []


Rules = tuple[tuple[Path, "GitIgnoreSpec"], ...]  # git's ignore files, the outermost first


def rules_for(folder: Path, system: FileSystem = LOCAL) -> Rules:
    """The ignore rules from above a folder that the caller named. If they ignore the folder itself, none."""
    rules = _above(folder, system)
    above = [each for each in (folder, *folder.parents) if rules and each.is_relative_to(rules[0][0])]
    return () if any(is_ignored(each, rules, True) for each in above) else rules


def with_rules_of(folder: Path, rules: Rules, system: FileSystem = LOCAL) -> Rules:
    """The rules, with those in the folder itself."""
    own = _ignored_by(folder, system=system)
    return (*rules, (folder, own)) if own is not None else rules


def _above(folder: Path, system: FileSystem) -> Rules:
    """The ignore files between the top of the repository and `folder`."""
    top = next((each for each in (folder, *folder.parents) if _exists(each / ".git", system)), None)
    if top is None:
        return ()
    places = [each for each in reversed((folder, *folder.parents)) if each != folder and each.is_relative_to(top)]
    specs = [
        (top, _ignored_by(top, ".git/info/exclude", system=system)),
        *((each, _ignored_by(each, system=system)) for each in places),
    ]
    return tuple((each, spec) for each, spec in specs if spec is not None)


def _exists(path: Path, system: FileSystem) -> bool:
    try:
        system.stat(str(path))
    except PlaceFailed:
        raise
    except (OSError, ValueError):
        return False
    return True


def _ignored_by(folder: Path, name: str = ".gitignore", *, system: FileSystem = LOCAL) -> "GitIgnoreSpec | None":
    from pathspec import GitIgnoreSpec

    try:
        text = _first_bytes(folder / name, system).decode("utf-8", "surrogateescape")
        return GitIgnoreSpec.from_lines(text.splitlines())
    except PlaceFailed:
        raise
    except (OSError, ValueError):
        return None


def _first_bytes(path: Path, system: FileSystem) -> bytes:
    if system.place:
        system.stat(str(path))  # most folders have none, and that is known
        data = system.read(Path(follow(str(path), system=system)), most=_MOST_IGNORE_BYTES)
        if data is None:
            raise FileNotFoundError(path)
        return data
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        return file.read(_MOST_IGNORE_BYTES)


def is_ignored(path: Path, rules: Rules, is_folder: bool) -> bool:
    """Whether git ignores a path. As in git, the deepest ignore file with a matching rule decides."""
    text = str(path)  # faster than Path, and there may be thousands
    for base, spec in reversed(rules):
        above = str(base).rstrip("/") + "/"
        if not text.startswith(above):
            continue
        found = spec.check_file(text[len(above) :] + ("/" if is_folder else ""))
        if found.include is not None:
            return bool(found.include)
    return False


def printable(name: str) -> str:
    """A name in printable characters, always on one line."""
    return name if name.isprintable() else ascii(name)


def suggestion(bench: Bench, place: ResolvedPath) -> str:
    """` Did you mean 'src/app.py'?` for a path that does not exist; empty if no file is like it. Run it in a thread."""
    if not place.look.inside:
        return ""
    try:
        hidden = hides(bench, contents=False)
        found = list_names(bench.workspace, most=MOST_COMPARED, hidden=hidden, system=bench.files.system)
    except TarmacError:
        return ""
    names = [os.path.relpath(bench.workspace / each, bench.cwd) for each in found]
    wanted = os.path.relpath(place.full, bench.cwd)
    same = [each for each in names if _last(each).lower() == _last(wanted).lower()]
    near = difflib.get_close_matches(wanted, same, MOST_SUGGESTED, 0) or _similar(wanted, names)
    return f" Did you mean {' or '.join(repr(show_name(each)) for each in near)}?" if near else ""


def _similar(wanted: str, names: Sequence[str]) -> list[str]:
    """Paths whose last part is spelled almost like that of the wanted one."""
    by_last: dict[str, list[str]] = {}
    for each in names:
        by_last.setdefault(_last(each), []).append(each)
    close = difflib.get_close_matches(_last(wanted), by_last, MOST_SUGGESTED, 0.8)
    paths = [path for each in close for path in by_last[each]]
    return difflib.get_close_matches(wanted, paths, MOST_SUGGESTED, 0)


def _last(path: str) -> str:
    return path.rpartition("/")[2]
