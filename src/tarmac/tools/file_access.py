"""Which file a model means by a name, and whether it may be touched at all.

A name is meant from the bench's directory. What the policy would deny whoever asks (hidden by an ignore file, Tarmac's
own, a device, a loop of links) fails here, before anything of its content is looked at.
"""

import difflib
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import TarmacError, ToolFailed
from tarmac.policy import PolicySettings, ReadFile, WriteFile
from tarmac.policy.files import Look, follow
from tarmac.tools.list_files import list_names
from tarmac.tools.tool import Bench, Want

MOST_COMPARED = 5_000  # files that a path which does not exist is compared with
MOST_SUGGESTED = 2
_SETTINGS = PolicySettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file or folder: as the model said it, as it is written in full, and what it leads to."""

    said: str
    full: Path
    look: Look

    @property
    def path(self) -> Path:
        """What is read or written: behind every link."""
        return self.look.path

    @property
    def name(self) -> str:
        """What it is called in results: always one line."""
        return _shown(self.said)


def find(bench: Bench, said: str) -> Place:
    """What `said` means now. Nothing is refused yet."""
    text, full = _full(bench, said)
    return Place(said=text, full=full, look=bench.files.look(full, cwd=bench.cwd, workspace=bench.workspace))


def directory(bench: Bench, said: str) -> Path:
    """The folder that `said` means now, behind every link: where a command may run is the policy's to say."""
    text, full = _full(bench, said) if said else (".", bench.cwd)
    try:
        led = follow(str(full))
        path = full if led == str(full) else Path(led)
    except (OSError, ValueError):  # as Files.look has it: what can't be followed is taken by its name
        path = full
    if not path.is_dir():
        raise ToolFailed(f"Working directory '{_shown(text)}' does not exist.")
    return path


def _full(bench: Bench, said: str) -> tuple[str, Path]:
    """A name as it was said, and in full."""
    text = said.strip() or "."
    if "\0" in text:
        raise ToolFailed(f"{text!r} can't be the name of a file")
    path = Path(text)
    try:
        path = path.expanduser()
    except RuntimeError:  # ~nobody
        pass
    return text, bench.cwd / path


def refusal(bench: Bench, place: Place, *, writing: bool = False) -> str:
    """Why it may not be read (or written), whatever a person says; empty when it may, or may be asked about."""
    action = WriteFile(place.full) if writing else ReadFile(place.full)
    verdict = bench.files.judge(action, workspace=bench.workspace, settings=_SETTINGS)
    return verdict.reason if verdict.decision == "deny" else ""


def to_read(bench: Bench, said: str) -> tuple[Place, Want]:
    """A place that may be read once the want is granted."""
    place = find(bench, said)
    if why := refusal(bench, place):
        raise ToolFailed(f"'{place.name}' may not be read: {why}")
    return place, Want(action=ReadFile(place.full), outside=not place.look.inside)


def unmoved(bench: Bench, place: Place) -> Place:
    """The same place, looked at again just before it is used: a link may lead elsewhere by now."""
    now = find(bench, place.said)
    if now.path != place.path:
        raise ToolFailed(f"'{place.name}' leads to another file than when this was prepared. Nothing was done.")
    return now


def suggestion(bench: Bench, place: Place) -> str:
    """` Did you mean 'src/app.py'?` for a path that does not exist; empty if no file is like it. Run it in a thread."""
    if not place.look.inside:
        return ""
    try:
        found = list_names(bench.workspace, most=MOST_COMPARED, hidden=hides(bench, contents=False))
    except TarmacError:
        return ""
    names = [os.path.relpath(bench.workspace / each, bench.cwd) for each in found]
    wanted = os.path.relpath(place.full, bench.cwd)
    same = [each for each in names if _last(each).lower() == _last(wanted).lower()]
    near = difflib.get_close_matches(wanted, same, MOST_SUGGESTED, 0) or _similar(wanted, names)
    return f" Did you mean {' or '.join(repr(_shown(each)) for each in near)}?" if near else ""


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


def _shown(said: str) -> str:
    return said if said.isprintable() else ascii(said)[1:-1]


def hides(bench: Bench, *, contents: bool) -> Callable[[Path], bool]:
    """What a listing leaves out; with `contents` also what may not be shown without asking: credentials, links."""

    def hidden(path: Path) -> bool:
        look = bench.files.look(path, cwd=bench.cwd, workspace=bench.workspace)
        if look.trouble or look.own or look.ignored:
            return True
        return contents and bool(look.credential or look.linked or look.special)

    return hidden


def digest(data: bytes | None) -> str | None:
    """The SHA-256 of a content; None for no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()
