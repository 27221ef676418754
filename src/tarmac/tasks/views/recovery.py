"""Find the calls that were running when a task's process died, and whether they took effect.

Before a tool changes a file, the log has the file's hash before and after (`FileIntent`). So the file itself later
tells whether it was changed as intended, not changed, or changed by somebody else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from tarmac.errors import FileUnavailable
from tarmac.file_system import LOCAL, FileSystem
from tarmac.tasks.events import CallId, CommandOutput, FileIntent, TaskEvent, ToolFinished, ToolStarted

Fate = Literal["happened", "did not happen", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A call that was started and never came back."""

    seq: int
    started: ToolStarted
    output: CommandOutput | None  # of a command: what it had printed until then
    tail: bytes = b""  # the end of that, of one that has no terminal, as long as our process lives


def unfinished(events: Iterable[TaskEvent]) -> list[Unfinished]:
    """The calls that were under way at the end of the log, in the order of their start."""
    found: dict[CallId, Unfinished] = {}
    for seq, event in enumerate(events, 1):
        match event:
            case ToolStarted(call=call):
                found[call] = Unfinished(seq=seq, started=event, output=None)
            case CommandOutput(call=call) if call in found:
                found[call] = Unfinished(seq=found[call].seq, started=found[call].started, output=event)
            case ToolFinished(call=call):
                found.pop(call, None)
    return list(found.values())


def fate(intent: FileIntent, now: str | None) -> Fate:
    """Whether a file that is `now` so (a hash, None for no file) was changed as intended."""
    if now == intent.after:
        return "happened"  # also when nothing was to change
    return "did not happen" if now == intent.before else "unknown"


def fates(started: ToolStarted, digest: Callable[[Path], str | None]) -> list[tuple[FileIntent, Fate]]:
    """What became of each file that a call was to change; `digest` looks at one."""
    return [(intent, fate(intent, digest(intent.path))) for intent in started.intents]


def digest_of(path: Path, system: FileSystem = LOCAL) -> str | None:
    """The hash of a file's content as intents have it; None when there is no file. It never waits for a pipe."""
    try:
        data = system.read(path)
    except FileUnavailable:
        try:
            system.lstat(str(path))
        except (FileNotFoundError, NotADirectoryError):
            data = None  # a folder on the way is a file now
        else:
            raise
    return None if data is None else sha256(data).hexdigest()
