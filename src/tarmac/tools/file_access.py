"""Resolve the paths that a model names, and refuse those that it may never touch.

A relative path starts at the directory of the call. A file that the policy always denies (hidden by an ignore file,
Tarmac's own, a device, a loop of links) is refused here, before its content is read.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import ToolFailed
from tarmac.policy import PolicySettings, ReadFile, WriteFile
from tarmac.policy.paths.files import PathStatus, follow
from tarmac.tools.tool import Bench, Want

_SETTINGS = PolicySettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPath:
    """A file or folder: the path from the model, the full path, and where its links lead."""

    said: str
    full: Path
    look: PathStatus

    @property
    def path(self) -> Path:
        """The file that is read or written, with all links resolved."""
        return self.look.path

    @property
    def name(self) -> str:
        """Its name in results, always on one line."""
        return show_name(self.said)


def find(bench: Bench, said: str) -> ResolvedPath:
    """Resolve a path. Nothing is refused yet."""
    text, full = _full(bench, said)
    return ResolvedPath(said=text, full=full, look=bench.files.look(full, cwd=bench.cwd, workspace=bench.workspace))


def directory(bench: Bench, said: str) -> Path:
    """The folder of a command, with all links resolved. The policy says whether a command may run there."""
    text, full = _full(bench, said) if said else (".", bench.cwd)
    try:
        led = follow(str(full))
        path = full if led == str(full) else Path(led)
    except (OSError, ValueError):  # a link that can't be resolved: use its own path, as Files.look does
        path = full
    if not path.is_dir():
        raise ToolFailed(f"Working directory '{show_name(text)}' does not exist.")
    return path


def _full(bench: Bench, said: str) -> tuple[str, Path]:
    """A path as the model wrote it, and in full."""
    text = said.strip() or "."
    if "\0" in text:
        raise ToolFailed(f"{text!r} is not a valid file name")
    path = Path(text)
    try:
        path = path.expanduser()
    except RuntimeError:  # ~nobody
        pass
    return text, bench.cwd / path


def refusal(bench: Bench, place: ResolvedPath, *, writing: bool = False) -> str:
    """Why it may never be read (or written); empty if it may, or if a person may be asked."""
    action = WriteFile(place.full) if writing else ReadFile(place.full)
    verdict = bench.files.judge(action, workspace=bench.workspace, settings=_SETTINGS)
    return verdict.reason if verdict.decision == "deny" else ""


def to_read(bench: Bench, said: str) -> tuple[ResolvedPath, Want]:
    """A path to read, and the permission that it needs."""
    place = find(bench, said)
    if why := refusal(bench, place):
        raise ToolFailed(f"'{place.name}' may not be read: {why}")
    return place, Want(action=ReadFile(place.full), outside=not place.look.inside)


def check_workspace(workspace: Path) -> None:
    """Raise ToolFailed if the workspace was moved or deleted. Writing would create an empty one in its place."""
    if not workspace.is_dir():
        raise ToolFailed(
            f"The workspace {workspace} is gone: it was moved or deleted. Nothing was done. "
            "Tell the person, and don't make it anew."
        )


def unmoved(bench: Bench, place: ResolvedPath) -> ResolvedPath:
    """Resolve a path again just before use. ToolFailed if it leads to another file now."""
    check_workspace(bench.workspace)
    now = find(bench, place.said)
    if now.path != place.path:
        raise ToolFailed(f"'{place.name}' leads to another file than before. Nothing was done.")
    return now


def show_name(said: str) -> str:
    return said if said.isprintable() else ascii(said)[1:-1]


def hides(bench: Bench, *, contents: bool) -> Callable[[Path], bool]:
    """A test for paths that a listing leaves out. `contents`: also those that need an approval to be read."""

    def hidden(path: Path) -> bool:
        look = bench.files.look(path, cwd=bench.cwd, workspace=bench.workspace)
        if look.trouble or look.own or look.ignored:
            return True
        return contents and bool(look.credential or look.linked or look.special)

    return hidden


def digest(data: bytes | None) -> str | None:
    """The SHA-256 of a file's content; None for no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()
