"""Read files for agents from a workspace that may be hostile.

read_text(path, workspace) → SafeText, or Unread with the reason · files_below(folder, …) → paths

Inside a workspace, a link may not lead out of it. Ignored files, credentials, devices and pipes are not read.
In the user's own folder, a link may lead anywhere.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tarmac.paths import read_plain, shown
from tarmac.policy.files import look

DEEPEST = 5
MOST_FILES = 200  # in a folder and its subfolders
LONGEST = 2 << 20  # bytes to read of one file


class Unread(Exception):
    """A file was not read, for the reason in the message."""


@dataclass(frozen=True, slots=True)
class SafeText:
    """The text of a file, up to a limit."""

    text: str
    left_out: int = 0  # characters, or bytes beyond the read limit


def folders_of(workspace: Path) -> list[Path]:
    """The parents of the workspace inside its repository, from the top, and the workspace.

    Only if all have the owner of the workspace. In a folder that everybody may write to, another user could create a
    repository around the workspace, with instructions in it.
    """
    above = [workspace, *workspace.parents]
    try:
        owner = os.stat(workspace).st_uid
        for number, folder in enumerate(above):
            if os.path.lexists(folder / ".git"):
                mine = os.lstat(folder / ".git").st_uid == owner
                mine = mine and all(os.stat(each).st_uid == owner for each in above[: number + 1])
                return above[number::-1] if mine else [workspace]
    except OSError:
        pass
    return [workspace]


def name_of(path: Path, workspace: Path, *, own: bool) -> str:
    """The name of a file in messages and prompts: relative to the workspace, or the full path of the user's own."""
    return shown(path if own else Path(os.path.relpath(path, workspace)))


def read_text(path: Path, *, workspace: Path | None, most: int) -> SafeText | None:
    """The first `most` characters of a file; None if it does not exist."""
    try:
        target = _allowed(path, workspace) if workspace else path
        if target is None:
            return None
        raw, found = read_plain(target, most=min(most * 4 + 4, LONGEST), follow=workspace is None)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise Unread(f"can't be read: {(why or str(error)).lower()}") from None
    return _text(raw, found.st_size, most)


def _text(raw: bytes, size: int, most: int) -> SafeText:
    if b"\0" in raw:
        raise Unread("is binary")
    try:
        text = raw.decode("utf-8-sig", "strict" if len(raw) >= size else "ignore")
    except UnicodeDecodeError:
        raise Unread("is not UTF-8") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    left_out = max(0, len(text) - most) + max(0, size - len(raw))
    return SafeText(text[:most], left_out)


def _allowed(path: Path, workspace: Path) -> Path | None:
    """The target of `path`, if it may be read; None if it does not exist."""
    seen = look(path, cwd=workspace, workspace=workspace)
    if seen.trouble:
        raise Unread(seen.trouble)
    if not seen.inside:
        raise Unread("leads out of the workspace")
    if not seen.exists:
        if path.is_symlink():
            raise Unread("is a link to a missing file")
        return None
    if why := seen.ignored or seen.credential or seen.special:
        raise Unread(why)
    if ".git" in seen.path.parts[len(workspace.parts) :]:
        raise Unread("leads into `.git`")
    return seen.path


def files_below(folder: Path, *, workspace: Path | None, suffixes: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files below `folder` with one of the suffixes, sorted, and the problems with others."""
    found: list[Path] = []
    trouble: list[str] = []
    _walk(folder, workspace, tuple(suffixes), found, trouble, above=())
    if len(found) > MOST_FILES:
        trouble.append(f"{shown(folder)}: has more than {MOST_FILES} files; the rest is ignored")
    return found[:MOST_FILES], trouble


def _walk(
    folder: Path,
    workspace: Path | None,
    suffixes: tuple[str, ...],
    found: list[Path],
    trouble: list[str],
    *,
    above: tuple[tuple[int, int], ...],
) -> None:
    try:
        if workspace and folder.exists() and not look(folder, cwd=workspace, workspace=workspace).inside:
            trouble.append(f"{shown(folder)}: leads out of the workspace")
            return
        here = folder.stat()
        if not stat.S_ISDIR(here.st_mode):
            return
        names = sorted(each.name for each in os.scandir(folder) if not each.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        trouble.append(f"{shown(folder)}: can't be read: {(error.strerror or '').lower()}")
        return
    identity = (here.st_dev, here.st_ino)
    if identity in above:  # a link to a parent
        return
    for name in names:
        if len(found) > MOST_FILES:
            return
        path = folder / name
        if os.path.isdir(path):  # noqa: PTH112 Path.is_dir() raises if the parent is unreadable
            if len(above) + 1 < DEEPEST:
                _walk(path, workspace, suffixes, found, trouble, above=(*above, identity))
            else:
                trouble.append(f"{shown(path)}: nested too deeply")
        elif name.endswith(suffixes) and not name.endswith("~"):
            found.append(path)
