"""list_files: what is in a folder, without what git ignores, bounded.

Level by level, so that a listing cut off at its limit still shows every part of the tree. Links are shown, not
followed. A folder that was asked for by name is listed even when git ignores it.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tarmac.errors import FileUnavailable
from tarmac.paths import check_directory, shown

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST = 200
_MOST_FOLDERS = 20_000
_MOST_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Listing:
    """Names relative to the folder; those of folders end in `/`."""

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
) -> Listing:
    """What is in `folder`: at most `most` names, folders first. `hidden` says what else must not be seen."""
    return await asyncio.to_thread(_listing, check_directory(folder), recursive, most, hidden)


def list_names(folder: Path, *, most: int, hidden: Callable[[Path], bool]) -> list[str]:
    """The files below a folder, relative to it. It blocks: for a thread."""
    found = _listing(check_directory(folder), True, most, hidden)
    return [each for each in found.names if not each.endswith("/")]


def _listing(folder: Path, recursive: bool, most: int, hidden: Callable[[Path], bool] | None) -> Listing:
    if not os.access(folder, os.R_OK | os.X_OK):
        raise FileUnavailable(f"{shown(folder)} can't be read: permission denied")
    found: list[tuple[str, bool]] = []
    waiting = deque([("", rules_for(folder))])
    folders = 0
    truncated = False
    while waiting and not truncated:
        inside, rules = waiting.popleft()
        here = folder / inside
        folders += 1
        rules = with_rules_of(here, rules)
        for name, is_folder in _entries(here):
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


def in_order(found: Iterable[tuple[str, bool]], *, truncated: bool) -> Listing:
    """Names, and which of them are folders, as they are shown."""
    ordered = sorted(found, key=lambda each: _order(*each))
    return Listing(tuple(printable(f"{name}/" if is_folder else name) for name, is_folder in ordered), truncated)


def _order(name: str, is_folder: bool) -> tuple[tuple[bool, str], ...]:
    """Each level folders first, then by name."""
    parts = name.split("/")
    return (*((False, part) for part in parts[:-1]), (not is_folder, parts[-1]))


def _entries(here: Path) -> list[tuple[str, bool]]:
    try:
        with os.scandir(here) as each:
            return sorted(((one.name, one.is_dir(follow_symlinks=False)) for one in each), key=lambda pair: pair[0])
    except OSError:  # may not be read, or is gone by now
        return []


Rules = tuple[tuple[Path, "GitIgnoreSpec"], ...]  # git's ignore files, the outermost first


def rules_for(folder: Path) -> Rules:
    """What git ignores in a folder that is looked at by name, by the rules above it."""
    rules = _above(folder)
    above = [each for each in (folder, *folder.parents) if rules and each.is_relative_to(rules[0][0])]
    return () if any(is_ignored(each, rules, True) for each in above) else rules


def with_rules_of(folder: Path, rules: Rules) -> Rules:
    """With those in the folder itself."""
    own = _ignored_by(folder)
    return (*rules, (folder, own)) if own is not None else rules


def _above(folder: Path) -> Rules:
    """The ignore files between the top of the repository and `folder`."""
    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if top is None:
        return ()
    places = [each for each in reversed((folder, *folder.parents)) if each != folder and each.is_relative_to(top)]
    specs = [(top, _ignored_by(top, ".git/info/exclude")), *((each, _ignored_by(each)) for each in places)]
    return tuple((each, spec) for each, spec in specs if spec is not None)


def _ignored_by(folder: Path, name: str = ".gitignore") -> "GitIgnoreSpec | None":
    from pathspec import GitIgnoreSpec

    try:
        fd = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        try:
            text = file.read(_MOST_IGNORE_BYTES).decode("utf-8", "surrogateescape")
            return GitIgnoreSpec.from_lines(text.splitlines())
        except (OSError, ValueError):
            return None


def is_ignored(path: Path, rules: Rules, is_folder: bool) -> bool:
    """The deepest ignore file that says anything decides, as in git."""
    text = str(path)  # paths as texts: there may be thousands to ask about
    for base, spec in reversed(rules):
        above = str(base).rstrip("/") + "/"
        if not text.startswith(above):
            continue
        found = spec.check_file(text[len(above) :] + ("/" if is_folder else ""))
        if found.include is not None:
            return bool(found.include)
    return False


def printable(name: str) -> str:
    """A name as it is told: always one line, and always characters."""
    return name if name.isprintable() else ascii(name)
