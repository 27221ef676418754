"""Resolve the paths that a model names, and refuse those that it may never touch.

A relative path starts at the directory of the call. A file that the policy always denies (hidden by an ignore file,
Tarmac's own, a device, a loop of links) is refused here, before its content is read.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from tarmac.errors import PlaceFailed, ToolFailed
from tarmac.file_system import LOCAL, FileSystem, digest, follow, is_folder
from tarmac.policy import PolicySettings, ReadFile, WriteFile
from tarmac.policy.files import PathStatus
from tarmac.tools.tool import Bench, Want

MUCH = 64 << 10  # bytes; for less a thread would cost more than the work
P = ParamSpec("P")
T = TypeVar("T")


async def aside(size: int, work: Callable[P, T], *args: P.args, **values: P.kwargs) -> T:
    """What `work` gives, for a content of that size."""
    return work(*args, **values) if size < MUCH else await asyncio.to_thread(work, *args, **values)


async def looking(bench: Bench, work: Callable[Concatenate[Bench, P], T], *args: P.args, **values: P.kwargs) -> T:
    """What `work` finds on the disk. At another place it looks anew, in a thread, as each look waits for the place."""
    return work(bench, *args, **values) if not bench.files.elsewhere else await beside(bench, work, *args, **values)


async def beside(bench: Bench, work: Callable[Concatenate[Bench, P], T], *args: P.args, **values: P.kwargs) -> T:
    """The same for work that takes long: always in a thread."""
    return await asyncio.to_thread(work, fresh(bench), *args, **values)


def fresh(bench: Bench) -> Bench:
    """The bench with nothing remembered of another place."""
    return replace(bench, files=bench.files.afresh()) if bench.files.elsewhere else bench


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
        led = follow(str(full), system=bench.files.system)
        path = full if led == str(full) else Path(led)
    except PlaceFailed:
        raise
    except (OSError, ValueError):  # a link that can't be resolved: use its own path, as Files.look does
        path = full
    if not is_folder(str(path), bench.files.system):
        raise ToolFailed(f"Working directory '{show_name(text)}' does not exist.")
    return path


def _full(bench: Bench, said: str) -> tuple[str, Path]:
    """A path as the model wrote it, and in full."""
    text = said.strip() or "."
    if "\0" in text:
        raise ToolFailed(f"{text!r} is not a valid file name")
    path = Path(text)
    if bench.home is not None:
        path = bench.home / text[2:] if text == "~" or text.startswith("~/") else path
        return text, bench.cwd / path
    try:
        path = path.expanduser()
    except RuntimeError:  # ~nobody
        pass
    return text, bench.cwd / path


def refusal(bench: Bench, place: ResolvedPath, *, writing: bool = False) -> str:
    """Why it may never be read (or written); empty if it may, or if a person may be asked."""
    action = (WriteFile if writing else ReadFile)(place.full, leads_to=place.path)
    verdict = bench.files.judge(action, workspace=bench.workspace, settings=_SETTINGS)
    if verdict.decision == "deny" and place.look.ignored:
        bench.hidden(place.name)
    return verdict.reason if verdict.decision == "deny" else ""


def to_read(bench: Bench, said: str) -> tuple[ResolvedPath, Want]:
    """A path to read, and the permission that it needs."""
    place = find(bench, said)
    if why := refusal(bench, place):
        raise ToolFailed(f"'{place.name}' may not be read: {why}")
    return place, Want(
        action=ReadFile(place.full, leads_to=place.path),
        folder=is_folder(str(place.path), bench.files.system),
        outside=not place.look.inside,
    )


def to_write(bench: Bench, said: str) -> ResolvedPath:
    """A path to write. ToolFailed if that is never allowed."""
    place = find(bench, said)
    if why := refusal(bench, place, writing=True):
        raise ToolFailed(f"'{place.name}' may not be written: {why}")
    return place


def check_workspace(workspace: Path, system: FileSystem = LOCAL) -> None:
    """Raise ToolFailed if the workspace was moved or deleted. Writing would create an empty one in its place."""
    if not is_folder(str(workspace), system):
        raise ToolFailed(
            f"The workspace {workspace} is gone: it was moved or deleted. Nothing was done. "
            "Tell the person, and don't create it again."
        )


def unmoved(bench: Bench, place: ResolvedPath) -> ResolvedPath:
    """Resolve a path again just before use. ToolFailed if it leads to another file now."""
    check_workspace(bench.workspace, bench.files.system)
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


__all__ = [
    "ResolvedPath",
    "aside",
    "beside",
    "check_workspace",
    "digest",
    "directory",
    "find",
    "fresh",
    "hides",
    "looking",
    "refusal",
    "show_name",
    "to_read",
    "to_write",
    "unmoved",
]
