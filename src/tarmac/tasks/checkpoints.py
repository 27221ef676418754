"""Undo for a task: checkpoints before changes, and files brought back from them.

before a call → CheckpointCreated (images of the files that a tool writes; a snapshot before a command)
after it      → FilesChanged (what it changed)
restore       → CheckpointCreated, files written, FilesChanged, CheckpointRestored

Only files that the task changed are ever touched. A file that has another content than the task left is somebody
else's work: it is reported, and stays as it is unless the caller says otherwise.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from hashlib import sha1, sha256
from pathlib import Path
from typing import Final

from tarmac.calls.pipeline import Call
from tarmac.errors import BadRequest, FileUnavailable, StateUnavailable, TarmacError
from tarmac.events import CallId
from tarmac.file_system import read_bytes, save_file
from tarmac.policy import Execute, WriteFile
from tarmac.policy.verdict import SendInput
from tarmac.tasks.context import now
from tarmac.tasks.events import (
    CheckpointCreated,
    CheckpointRestored,
    FileEdit,
    FilesChanged,
    Noted,
    TaskEvent,
)
from tarmac.tasks.git_process import SnapshotFailed
from tarmac.tasks.log import TaskLog
from tarmac.tasks.snapshot import Snapshots, WorkspaceSnapshot
from tarmac.tasks.views.file_history import FileHistory
from tarmac.tools.edit.unified_diff import FileDiff, unified_diff
from tarmac.tools.execute_command import allowed_plan
from tarmac.tools.tool import Go, Ready

LIMIT: Final = 2.0  # seconds for a snapshot
FIRST: Final = 60.0  # seconds for the first one, of which a call waits for LIMIT
FOLDER: Final = "checkpoints"  # in the task's folder
BLOB: Final = 64  # characters of an id in the task's blobs; a git object has 40


class Fate(StrEnum):
    """What restoring does to a file."""

    RESTORED = "restored"
    UNCHANGED = "unchanged"  # it is as it was
    CHANGED_SINCE = "changed since"  # by somebody else, after the task
    NOT_KEPT = "not kept"  # its content is not in the checkpoint
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredFile:
    """One file of a restoration: `edit.before` is what it becomes, `edit.after` what the task left."""

    edit: FileEdit
    fate: Fate
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """What going back to the fact `to` does, or did."""

    to: int
    files: tuple[RestoredFile, ...]

    def of(self, *fates: Fate) -> list[Path]:
        return [each.edit.path for each in self.files if each.fate in fates]


@dataclass(frozen=True, slots=True)
class _Opened:
    checkpoint: str
    files: tuple[FileEdit, ...]
    snapshot: WorkspaceSnapshot | None


def _idle() -> bool:
    return False


class Checkpoints:
    """The checkpoints of one task."""

    def __init__(
        self,
        log: TaskLog,
        workspace: Path,
        past: Iterable[TaskEvent] = (),
        *,
        busy: Callable[[], bool] = _idle,
        place: str = "",
    ) -> None:
        """`busy`: whether a command of the task runs now, which nobody waits for. At a `place` nothing is kept."""
        self.place = place
        self.history = FileHistory()
        for event in past:
            self.history.add(event)
        log.subscribe(lambda _, event: self.history.add(event))
        self.workspace = Path(os.path.realpath(workspace))
        self._log = log
        self._busy = busy
        self._snapshots = Snapshots(log.folder / FOLDER, workspace)
        self._number = self.history.count
        self._first: asyncio.Future[WorkspaceSnapshot] | None = None
        self._last: WorkspaceSnapshot | None = None
        self._left_running = False  # when the last snapshot was taken
        self._ours: set[str] = set()  # checkpoints of which this process says, or has said, what came of them
        self._warned: set[str] = set()

    # Around a call

    @asynccontextmanager
    async def around(self, call: Call, ready: Ready, go: Go) -> AsyncIterator[None]:
        """Held while a call acts."""
        opened = await self._before(call, ready, go) if not self.place else None
        try:
            yield
        finally:
            if opened is not None:
                await self._after(opened)

    async def _before(self, call: Call, ready: Ready, go: Go) -> _Opened | None:
        command = _is_command(ready, go)
        paths = _written(ready)
        if not command and not paths:
            return None
        await self.settle()
        try:
            files = await asyncio.to_thread(self._images, paths)
        except TarmacError as error:
            self._warn(f"a file can't be kept, so this call can't be undone: {error.what}")
            files = ()
        snapshot, partial_because = await self._snapshot() if command else (None, "")
        self._number += 1
        opened = _Opened(str(self._number), files, snapshot)
        self._ours.add(opened.checkpoint)
        self._log.add(  # on disk with the next fact, which is that the call acts
            CheckpointCreated(
                at=now(),
                checkpoint=opened.checkpoint,
                why=ready.title,
                call=CallId(call.id),
                files=files,
                trees=snapshot.trees if snapshot else (),
                partial=partial_because,
            )
        )
        return opened

    async def _after(self, opened: _Opened) -> None:
        try:
            edits = await asyncio.to_thread(_made, opened.files)
            if opened.snapshot is not None:
                snapshot, _ = await self._snapshot()
                if snapshot is not None:
                    edits += await self._differences(opened.snapshot, snapshot)
                self._left_running = self._busy()
        except asyncio.CancelledError:  # `settle` does it later
            self._ours.discard(opened.checkpoint)
            raise
        self._log.add(FilesChanged(at=now(), checkpoint=opened.checkpoint, files=_joined(edits)))

    async def _snapshot(self) -> tuple[WorkspaceSnapshot | None, str]:
        """The workspace now; None and why, when that is not to be had in time."""
        wrote = self.history.paths
        try:
            if self._first is None:
                self._first = asyncio.ensure_future(
                    asyncio.to_thread(partial(self._snapshots.take, wrote, limit=FIRST))
                )
                self._first.add_done_callback(lambda each: each.cancelled() or each.exception())
                await asyncio.wait([self._first], timeout=LIMIT)
                if not self._first.done():
                    raise SnapshotFailed(f"the first look at the workspace takes longer than {LIMIT:g} s")
                snapshot = self._first.result()
            elif not self._first.done():
                await asyncio.wait([self._first], timeout=LIMIT)
                if not self._first.done():
                    raise SnapshotFailed("the first look at the workspace is not done yet")
                snapshot = await asyncio.to_thread(partial(self._snapshots.take, wrote, limit=LIMIT))
            else:
                snapshot = await asyncio.to_thread(partial(self._snapshots.take, wrote, limit=LIMIT))
        except (SnapshotFailed, OSError) as error:
            why = f"what commands change can't be undone now: {error}"
            self._warn(why)
            return None, why
        before, self._last = self._last, snapshot
        if before is not None and self._left_running:
            if edits := await self._differences(before, snapshot):
                self._log.add(FilesChanged(at=now(), checkpoint="", files=_joined(edits)))
            self._left_running = self._busy()
        return snapshot, snapshot.partial

    async def _differences(self, before: WorkspaceSnapshot, after: WorkspaceSnapshot) -> list[FileEdit]:
        try:
            found = await asyncio.to_thread(partial(self._snapshots.edits, before, after, limit=LIMIT))
            return await asyncio.to_thread(lambda: [_recognised(each) for each in found])
        except SnapshotFailed as error:
            self._warn(f"what this command changed is not known: {error}")
            return []

    def _warn(self, text: str) -> None:
        """Once each."""
        if text not in self._warned:
            self._warned.add(text)
            self._log.add(Noted(at=now(), what="notice", text=text))

    def _images(self, paths: Sequence[tuple[Path, str | None]]) -> tuple[FileEdit, ...]:
        """In a thread: the files as they are now, kept; each with what it is to become."""
        found: list[FileEdit] = []
        kept: dict[str, bytes] = {}
        for path, after in paths:
            data, mode = _look(path)
            before = None if data is None else sha256(data).hexdigest()
            if data is not None and before is not None:
                kept[before] = data
            found.append(FileEdit(path=path, before=before, after=after, before_mode=mode))
        try:
            self._log.blobs.keep_all(kept)
        except OSError as error:
            raise StateUnavailable(f"{self._log.folder} can't be written: {error.strerror}") from None
        return tuple(found)

    async def change(self, why: str, paths: Iterable[Path], make: Callable[[], None]) -> None:
        """Let `make` change these files, with a checkpoint before."""
        kept = [(each, "") for each in paths if ".git" not in each.parts]  # a repository's own files are never restored
        images = await asyncio.to_thread(self._images, kept)
        self._number += 1
        name = str(self._number)
        self._ours.add(name)
        await self._log.append(CheckpointCreated(at=now(), checkpoint=name, why=why, files=images))
        try:
            await asyncio.to_thread(make)
        finally:
            made = await asyncio.to_thread(_made, images)
            await self._log.append(FilesChanged(at=now(), checkpoint=name, files=tuple(made)))

    async def settle(self) -> None:
        """Find out what came of calls that were cut off, by a crash for example."""
        left = [each for each in self.history.open.values() if each.checkpoint not in self._ours]
        for each in left:
            self._ours.add(each.checkpoint)
            edits = await asyncio.to_thread(_made, each.files)
            if each.trees:
                snapshot, _ = await self._snapshot()
                if snapshot is not None:
                    edits += await self._differences(WorkspaceSnapshot(each.trees), snapshot)
            await self._log.append(FilesChanged(at=now(), checkpoint=each.checkpoint, files=_joined(edits)))

    async def aclose(self) -> None:
        """End what git does."""
        self._snapshots.close()
        if self._first is not None:
            await asyncio.wait([self._first])

    # Going back

    def find(self, to: int | None) -> int:
        """The fact to go back to; without one, that before the first change. BadRequest: there is none."""
        if to is None:
            if self.history.first is None:
                raise BadRequest("this task has changed no files", hint="`--to N` goes back in the conversation")
            return self.history.first
        if not self.history.is_point(to):
            near = ", ".join(str(each.seq) for each in self.history.points[-8:])
            raise BadRequest(f"{to} is not a checkpoint or message here", hint=f"some are {near}" if near else "")
        return to

    async def preview(self, to: int) -> Restoration:
        """What restoring would do."""
        await self.settle()
        edits = self.history.edits(to)
        return Restoration(to=to, files=tuple(await asyncio.to_thread(lambda: [_fate(each) for each in edits])))

    async def diff(self, to: int) -> list[tuple[RestoredFile, FileDiff | None]]:
        """What the task changed since: each file as it was, against the disk. None: it is not text."""
        found = [each for each in (await self.preview(to)).files if each.fate is not Fate.UNCHANGED]
        contents = await self._contents(each.edit.before for each in found)
        return await asyncio.to_thread(lambda: [(each, _diff(each.edit, contents)) for each in found])

    async def restore(self, to: int, *, force: bool = False) -> Restoration:
        """Bring the files back. `force`: also those that somebody else changed since."""
        plan = await self.preview(to)
        chosen = [
            each.edit
            for each in plan.files
            if each.fate is Fate.RESTORED or (force and each.fate is Fate.CHANGED_SINCE)
        ]
        contents = await self._contents(each.before for each in chosen)
        lost = {each.path for each in chosen if each.before is not None and each.before not in contents}
        chosen = [each for each in chosen if each.path not in lost]
        results = {each.edit.path: each for each in plan.files}
        for each in chosen:
            results[each.path] = RestoredFile(edit=each, fate=Fate.RESTORED)
        for path in lost:
            results[path] = RestoredFile(edit=results[path].edit, fate=Fate.NOT_KEPT)
        if chosen:
            await self._apply(to, chosen, contents, results)
        return Restoration(to=to, files=tuple(results.values()))

    async def _apply(
        self, to: int, chosen: Sequence[FileEdit], contents: dict[str, bytes], results: dict[Path, RestoredFile]
    ) -> None:
        images = await asyncio.to_thread(self._images, [(each.path, each.before) for each in chosen])
        self._number += 1
        name = str(self._number)
        self._ours.add(name)
        why = f"Restoring {len(chosen)} file{'s' if len(chosen) != 1 else ''} to {to}"
        await self._log.append(CheckpointCreated(at=now(), checkpoint=name, why=why, files=images))
        failed = await asyncio.to_thread(_write, chosen, contents)
        for path, why in failed.items():
            results[path] = RestoredFile(edit=results[path].edit, fate=Fate.FAILED, why=why)
        made = await asyncio.to_thread(_made, images)
        paths = tuple(each.path for each in chosen if each.path not in failed)
        await self._log.append(
            FilesChanged(at=now(), checkpoint=name, files=tuple(made)),
            CheckpointRestored(at=now(), checkpoint=name, paths=paths, to=to),
        )

    async def _contents(self, ids: Iterable[str | None]) -> dict[str, bytes]:
        wanted = {each for each in ids if each}

        def read() -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for each in wanted:
                if len(each) == BLOB and (data := self._log.blobs.read(each)) is not None:
                    found[each] = data
            return found | self._snapshots.contents((each for each in wanted if len(each) != BLOB), limit=30.0)

        try:
            return await asyncio.to_thread(read)
        except SnapshotFailed as error:
            raise FileUnavailable(f"the checkpoints can't be read: {error}") from None


def undone_text(paths: Sequence[Path]) -> str:
    """What the model is told."""
    names = "\n".join(f"- {each}" for each in paths[:100])
    more = f"\n… and {len(paths) - 100} more" if len(paths) > 100 else ""
    return f"[The person took back your changes of these files. Read them again before you edit them.\n{names}{more}]"


# What a call would change


def _is_command(ready: Ready, go: Go) -> bool:
    """Whether it runs something that may change files. What the policy allows without a question only reads."""
    acts = any(isinstance(each.action, Execute | SendInput) for each in ready.wants)
    return acts and allowed_plan(go) is None


def _written(ready: Ready) -> list[tuple[Path, str | None]]:
    """The files that a tool is about to write, and what they become ("": unknown)."""
    found: dict[Path, str | None] = {}
    for want in ready.wants:
        if isinstance(want.action, WriteFile):
            after = "" if want.content is None else sha256(want.content).hexdigest()
            found[_target(want.action.path, after)] = after
    for intent in ready.intents:
        found[_target(intent.path, intent.after)] = intent.after
    return list(found.items())


def _target(path: Path, after: str | None) -> Path:
    """Tools write the file behind a link, and remove the link itself."""
    return Path(os.path.realpath(path)) if after is not None else Path(os.path.realpath(path.parent)) / path.name


# The disk


def _look(path: Path) -> tuple[bytes | None, int]:
    """A file's content and mode; of a link where it leads; None: there is none."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None, 0
    if stat.S_ISDIR(mode) or os.path.realpath(path.parent) != str(path.parent):
        return None, 0  # a folder is not a file; and behind a link that was a folder is another file
    if stat.S_ISLNK(mode):
        return os.fsencode(os.readlink(path)), mode
    return read_bytes(path), mode


def _is(data: bytes | None, mode: int, id: str | None, wanted_mode: int) -> bool:
    """Whether a file on disk is this version."""
    if id is None or data is None:
        return id is None and data is None
    if wanted_mode and stat.S_ISLNK(mode) != stat.S_ISLNK(wanted_mode):
        return False
    if len(id) == BLOB:
        return sha256(data).hexdigest() == id
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == id


def _fate(edit: FileEdit) -> RestoredFile:
    try:
        data, mode = _look(edit.path)
    except FileUnavailable as error:  # nobody can say who changed it
        return RestoredFile(edit=edit, fate=Fate.FAILED, why=error.what)
    if _is(data, mode, edit.before, edit.before_mode) and _has_mode(edit, mode):
        fate = Fate.UNCHANGED
    elif edit.before == "":
        fate = Fate.NOT_KEPT
    elif _is(data, mode, edit.after, edit.after_mode):
        fate = Fate.RESTORED
    else:
        fate = Fate.CHANGED_SINCE
    return RestoredFile(edit=edit, fate=fate)


def _has_mode(edit: FileEdit, mode: int) -> bool:
    """Whether a file has the mode from before the edit, as far as that is known."""
    if not edit.before_mode or not stat.S_ISREG(mode):
        return True
    if _knows_mode(edit):
        return stat.S_IMODE(mode) == stat.S_IMODE(edit.before_mode)
    return bool(mode & 0o100) == bool(edit.before_mode & 0o100)


def _knows_mode(edit: FileEdit) -> bool:
    """Whether the mode is that of the disk, not of a git tree."""
    return edit.exact or (edit.before is not None and len(edit.before) == BLOB)


def _made(files: Iterable[FileEdit]) -> list[FileEdit]:
    """In a thread: those of the intended edits that were made."""
    found: list[FileEdit] = []
    for each in files:
        try:
            data, mode = _look(each.path)
        except FileUnavailable:
            continue
        if _is(data, mode, each.before, each.before_mode) and mode == each.before_mode:
            continue
        after = each.after
        if after == "":
            after = None if data is None else sha256(data).hexdigest()
        elif not _is(data, mode, after, 0):
            continue  # somebody else's
        found.append(
            FileEdit(path=each.path, before=each.before, after=after, before_mode=each.before_mode, after_mode=mode)
        )
    return found


def _recognised(edit: FileEdit) -> FileEdit:
    """In a thread: with the content that a command gave to a file which the snapshot left out."""
    if edit.after != "":
        return edit
    try:
        data, mode = _look(edit.path)
    except FileUnavailable:
        return edit
    return replace(edit, after=None if data is None else sha256(data).hexdigest(), after_mode=mode)


def _joined(edits: Iterable[FileEdit]) -> tuple[FileEdit, ...]:
    """One for each file; the first counts."""
    found: dict[Path, FileEdit] = {}
    for each in edits:
        found.setdefault(each.path, each)
    return tuple(found.values())


def _diff(edit: FileEdit, contents: dict[str, bytes]) -> FileDiff | None:
    try:
        data, _ = _look(edit.path)
        before = contents[edit.before].decode() if edit.before else None
        after = None if data is None else data.decode()
    except (FileUnavailable, UnicodeDecodeError, KeyError):
        return None
    if edit.before == "" or (before is not None and "\0" in before) or (after is not None and "\0" in after):
        return None
    return unified_diff(before, after, str(edit.path))


def _write(edits: Sequence[FileEdit], contents: dict[str, bytes]) -> dict[Path, str]:
    """In a thread: make the files as they were. Removals first, as a folder may have been a file. Why some failed."""
    failed: dict[Path, str] = {}
    for each in sorted(edits, key=lambda edit: edit.before is not None):
        try:
            _write_one(each, contents.get(each.before or "", b""))
        except (OSError, TarmacError) as error:
            failed[each.path] = str(error)
    return failed


def _write_one(edit: FileEdit, data: bytes) -> None:
    path, mode = edit.path, edit.before_mode
    if Path(os.path.realpath(path.parent)) != path.parent:
        raise FileUnavailable(f"a folder on the way to {path} is a link now", hint="remove it first")
    is_link = path.is_symlink()
    if edit.before is None:
        path.unlink(missing_ok=True)
        return
    if path.is_dir() and not is_link:
        path.rmdir()  # where a file was; one that is not empty is an error
    elif is_link or stat.S_ISLNK(mode):
        path.unlink(missing_ok=True)
    if stat.S_ISLNK(mode):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.fsdecode(data))
        return
    if path.exists() and not path.stat().st_mode & 0o200 and _knows_mode(edit):
        path.chmod(stat.S_IMODE(mode) | 0o200)
    save_file(path, data)
    if not mode:
        return
    if _knows_mode(edit):
        path.chmod(stat.S_IMODE(mode))
    else:
        there = stat.S_IMODE(path.stat().st_mode)
        readers = (there & 0o444) >> 2
        path.chmod(there | readers if mode & 0o100 else there & ~0o111)
