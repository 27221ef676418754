"""Files that people wrote for agents, read with care: they may come from a repository that nobody has looked at yet.

read_text(path, workspace) → Text, or Unread with the reason; files_below(folder, …) → those to read

Inside a workspace nothing is read that lies outside of it, through however many links; nothing that an ignore file
hides, nothing that may hold a secret, no device and no pipe. What the user has in their own folder may be a link to
anywhere: they made it.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tarmac.paths import read_plain, shown
from tarmac.policy.files import look

DEEPEST = 5
MOST_FILES = 200  # in one folder and all below
LONGEST = 2 << 20  # bytes that are read of one file, at most


class Unread(Exception):
    """A file was not read; the text says why."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file's content, as far as it was wanted."""

    text: str
    left_out: int = 0  # characters, or bytes where nobody counted them


def folders_of(workspace: Path) -> list[Path]:
    """The workspace, and before it the folders of its repository that it lies in, from the top.

    Only those that belong to whoever owns the workspace: in a folder that all may write to, anybody could put a
    repository around somebody's work, and instructions into it.
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
    """How a file is called in messages and prompts: as seen from the workspace; one of the user's own in full."""
    return shown(path if own else Path(os.path.relpath(path, workspace)))


def read_text(path: Path, *, workspace: Path | None, most: int) -> Text | None:
    """What `path` says, at most `most` characters of it; None when there is no such file."""
    try:
        there = _allowed(path, workspace) if workspace else path
        if there is None:
            return None
        raw, found = read_plain(there, most=min(most * 4 + 4, LONGEST), follow=workspace is None)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise Unread(f"it can't be read: {(why or str(error)).lower()}") from None
    return _text(raw, found.st_size, most)


def _text(raw: bytes, size: int, most: int) -> Text:
    if b"\0" in raw:
        raise Unread("it is binary")
    try:
        text = raw.decode("utf-8-sig", "strict" if len(raw) >= size else "ignore")
    except UnicodeDecodeError:
        raise Unread("it is not UTF-8") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    left_out = max(0, len(text) - most) + max(0, size - len(raw))
    return Text(text[:most], left_out)


def _allowed(path: Path, workspace: Path) -> Path | None:
    """What `path` leads to, when it may be read; None when there is nothing."""
    seen = look(path, cwd=workspace, workspace=workspace)
    if seen.trouble:
        raise Unread(seen.trouble)
    if not seen.inside:
        raise Unread("it leads out of the workspace")
    if not seen.exists:
        if path.is_symlink():
            raise Unread("it is a link to something that does not exist")
        return None
    if why := seen.ignored or seen.credential or seen.special:
        raise Unread(why)
    if ".git" in seen.path.parts[len(workspace.parts) :]:
        raise Unread("it leads into `.git`")
    return seen.path


def files_below(folder: Path, *, workspace: Path | None, suffixes: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files in `folder` and below whose names end so, in order; and what kept us from some."""
    found: list[Path] = []
    trouble: list[str] = []
    _walk(folder, workspace, tuple(suffixes), found, trouble, above=())
    if len(found) > MOST_FILES:
        trouble.append(f"{shown(folder)}: it has more than {MOST_FILES} files; the others are not read")
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
            trouble.append(f"{shown(folder)}: it leads out of the workspace")
            return
        here = folder.stat()
        if not stat.S_ISDIR(here.st_mode):
            return
        names = sorted(each.name for each in os.scandir(folder) if not each.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        trouble.append(f"{shown(folder)}: it can't be read: {(error.strerror or '').lower()}")
        return
    identity = (here.st_dev, here.st_ino)
    if identity in above:  # a link that leads back: its files were seen under their shorter name
        return
    for name in names:
        if len(found) > MOST_FILES:
            return
        path = folder / name
        if os.path.isdir(path):  # noqa: PTH112 not Path's: that raises where one may not look
            if len(above) + 1 < DEEPEST:
                _walk(path, workspace, suffixes, found, trouble, above=(*above, identity))
            else:
                trouble.append(f"{shown(path)}: it is nested too deeply")
        elif name.endswith(suffixes) and not name.endswith("~"):
            found.append(path)
