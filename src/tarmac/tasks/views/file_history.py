"""PURE: which files a task changed, in which versions, and to which facts it can be taken back.

CheckpointCreated → FilesChanged (what came of it) … CheckpointRestored → FileHistory.edits(to=N) → FileEdit …
"""

from dataclasses import dataclass, replace
from pathlib import Path

from tarmac.tasks.events import (
    CheckpointCreated,
    CheckpointRestored,
    FileEdit,
    FilesChanged,
    HistoryRewound,
    MessageDelivered,
    MessageQueued,
    ModelSaid,
    TaskEvent,
    UserSaid,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A moment to go back to: just before the fact `seq`."""

    seq: int
    at: float
    text: str  # the person's words, or the call
    said: bool  # by the person


@dataclass(frozen=True, slots=True)
class _Change:
    seq: int  # of its checkpoint
    edit: FileEdit


class FileHistory:
    """The fold, as it grows."""

    def __init__(self) -> None:
        self.seq = 0  # of the last fact that was added
        self.points: list[Point] = []
        self.open: dict[str, CheckpointCreated] = {}  # nobody has said yet what came of these
        self.count = 0  # of checkpoints
        self._created: dict[str, int] = {}  # checkpoint → the number of its fact
        self._changes: list[_Change] = []
        self._undone: frozenset[int] = frozenset()  # checkpoints whose changes were taken back, and those of restoring
        self._undone_at: dict[int, frozenset[int]] = {}  # checkpoint → what was undone when it was made
        self._queued: dict[str, str] = {}
        self._answers: list[int] = []  # of the model

    def add(self, event: TaskEvent) -> None:
        """The next fact of the log."""
        self.seq += 1
        match event:
            case UserSaid(text=text):
                self.points.append(Point(seq=self.seq, at=event.at, text=text, said=True))
            case MessageQueued(message=message, text=text):
                self._queued[message] = text
            case MessageDelivered(message=message):
                text = self._queued.pop(message, "")
                self.points.append(Point(seq=self.seq, at=event.at, text=text, said=True))
            case ModelSaid():
                self._answers.append(self.seq)
            case CheckpointCreated(checkpoint=checkpoint, why=why):
                self.count += 1
                self._created[checkpoint] = self.seq
                self._undone_at[self.seq] = self._undone
                self.open[checkpoint] = event
                self.points.append(Point(seq=self.seq, at=event.at, text=why, said=False))
            case FilesChanged(checkpoint=checkpoint, files=files):
                self.open.pop(checkpoint, None)
                seq = self._created.get(checkpoint, self.seq)
                self._changes += [_Change(seq, each) for each in files]
            case CheckpointRestored(checkpoint=checkpoint, to=to):
                was = next((undone for seq, undone in self._undone_at.items() if seq >= to), frozenset[int]())
                self._undone = was | {each.seq for each in self._changes if each.seq >= to}
                self._undone |= {self._created.get(checkpoint, 0)}
            case HistoryRewound(to=to):
                self.points = [each for each in self.points if each.seq <= to or not each.said]
                self._answers = [each for each in self._answers if each <= to]

    @property
    def paths(self) -> set[Path]:
        """All files that it ever changed."""
        return {each.edit.path for each in self._changes}

    @property
    def first(self) -> int | None:
        """The fact before which the task had changed nothing."""
        return min((each.seq for each in self._changes), default=None)

    @property
    def last_turn(self) -> int | None:
        """The person's words, or else the checkpoint, before the last changes that were not taken back."""
        last = max((each.seq for each in self._changes if each.seq not in self._undone), default=None)
        if last is None:
            return None
        said = [each.seq for each in self.points if each.said and each.seq <= last]
        return said[-1] if said else last

    def edits(self, to: int) -> list[FileEdit]:
        """The files changed since the fact `to`: `before` as they were just before it, `after` as they were left."""
        found: dict[Path, FileEdit] = {}
        for each in sorted(self._changes, key=lambda change: change.seq):
            if each.seq < to:
                continue
            edit = each.edit
            if there := found.get(edit.path):
                edit = replace(there, after=edit.after, after_mode=edit.after_mode)
            found[edit.path] = edit
        return list(found.values())

    def is_point(self, seq: int) -> bool:
        return any(each.seq == seq for each in self.points)

    def conversation_end(self, to: int) -> int:
        """The last fact of the conversation that stays: never between the model's call and its result."""
        if any(each.seq == to and each.said for each in self.points):
            return to - 1
        answers = [each for each in self._answers if each < to]
        return answers[-1] - 1 if answers else to - 1
