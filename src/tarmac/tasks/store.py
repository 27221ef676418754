"""All tasks of a user: where they are, which there are, what was said in them.

<state>/tasks/<id>/log.jsonl    the truth
                   blobs/       contents too large for a line
                   writer       who works on it · followers/ who looks on · torn-… what a crash left of a write
<state>/tasks/index.db          made of the logs; thrown away and made anew at any time

A list always looks at the folders themselves: no index can hide a task that exists.
"""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tarmac.errors import BadRequest, StateUnavailable, TaskNotFound
from tarmac.events import TaskId
from tarmac.paths import private_dir
from tarmac.tasks.events import (
    MessageQueued,
    ModelSaid,
    SubtaskFinished,
    TaskCompleted,
    TaskCreated,
    TaskEvent,
    ToolFinished,
    UserSaid,
)
from tarmac.tasks.index import Found, Index, Row, Words
from tarmac.tasks.log import TaskLog, create_log, open_log
from tarmac.tasks.log.disk import Blobs, unavailable
from tarmac.tasks.log.reader import BLOBS, LOG, RECORDINGS, Reading, opened, read_all, read_log
from tarmac.tasks.log.records import Scanner
from tarmac.tasks.log.writer import lock
from tarmac.tasks.views.metadata import Metadata, metadata
from tarmac.tasks.views.model_history import text_of

SEARCHED: Final = 4000  # characters of a tool's result that can be searched: its beginning
Sort = Literal["newest", "oldest", "cost", "tokens", "size"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A task in a list."""

    task: TaskId
    metadata: Metadata
    size: int  # bytes on the disk
    trouble: str = ""  # why it can't be read


class TaskStore:
    """The tasks in one folder (`tarmac.paths.state_dir(…) / "tasks"`). Its methods wait for the disk in threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = Index(folder / "index.db")

    # One task

    @asynccontextmanager
    async def create(
        self,
        *,
        workspace: Path,
        mode: str = "code",
        root: TaskId | None = None,
        parent: TaskId | None = None,
        task: TaskId | None = None,
        at: float | None = None,
        place: str = "",
    ) -> AsyncIterator[TaskLog]:
        """A new task, open for writing, with its first fact. One from elsewhere brings its id and its time."""
        task = task or TaskId(secrets.token_hex(5))
        number = await asyncio.to_thread(self._number)
        async with create_log(self.folder / task, task) as log:
            created = TaskCreated(
                at=time.time() if at is None else at,
                task=task,
                number=number,
                workspace=workspace,
                mode=mode,
                root=root,
                parent=parent,
                place=place,
            )
            await log.append(created)
            await self.refresh(task)
            try:
                yield log
            finally:
                await log.aclose()
                await self.refresh(task)

    @asynccontextmanager
    async def open(self, task: TaskId) -> AsyncIterator[TaskLog]:
        """A task, to go on with it."""
        async with open_log(self.path(task)) as log:
            try:
                yield log
            finally:
                await log.aclose()
                await self.refresh(task)

    async def read(self, task: TaskId) -> Reading:
        """All that a task's log holds."""
        return await asyncio.to_thread(read_log, self.path(task))

    def path(self, task: str) -> Path:
        """The folder of a task; the id, or as much of it as no other has."""
        if not task or "/" in task or task.startswith("."):
            raise BadRequest(f"{task!r} is no id of a task")
        if (self.folder / task / LOG).exists():
            return self.folder / task
        fit = [each for each in self.tasks() if each.startswith(task)]
        if len(fit) == 1:
            return self.folder / fit[0]
        hint = f"these begin so: {', '.join(sorted(fit)[:5])}" if fit else "`tarmac tasks` lists them"
        raise TaskNotFound(f"there is no task `{task}`", hint=hint)

    async def delete(self, task: TaskId) -> None:
        """Remove it for good; not while a process works on it."""
        await asyncio.to_thread(self._delete, self.path(task))

    def _delete(self, path: Path) -> None:
        fd = lock(path)
        try:
            gone = self.folder / f".deleted-{path.name}-{secrets.token_hex(2)}"
            path.rename(gone)  # at once and as a whole: half a task is never seen
        except OSError as error:
            raise unavailable(path, error, "removed") from None
        finally:
            os.close(fd)
        shutil.rmtree(gone, ignore_errors=True)
        self.index.remove(TaskId(path.name))

    # All of them

    async def listing(
        self, *, sort: Sort = "newest", workspace: Path | None = None, limit: int | None = None
    ) -> list[Listed]:
        """The tasks there are, by what their logs say now."""
        return await asyncio.to_thread(self._listing, sort, workspace, limit)

    async def search(self, text: str, *, limit: int = 50) -> list[Found]:
        """Where all of these words (or `"phrases"`) were said, in any task; the best first."""

        def look() -> list[Found]:
            if not self.folder.exists():
                return []
            self._refresh_all()
            return self.index.search(text, limit=limit)

        return await asyncio.to_thread(look)

    async def refresh(self, task: TaskId) -> None:
        """Bring the index up to date with a task's log. It may fail: a list does it, too."""
        try:
            await asyncio.to_thread(self._refresh, task)
        except (StateUnavailable, TaskNotFound):
            pass

    async def rebuild(self) -> list[Listed]:
        """Throw the index away and make it anew; finish what a crash left of deletions."""
        await asyncio.to_thread(self.index.destroy)
        for left in self.folder.glob(".deleted-*"):
            await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
        return await self.listing()

    def _number(self) -> int:
        private_dir(self.folder)
        if not self.index.places():  # made anew: it must know of those there are
            self._refresh_all()
        return self.index.next_number()

    def tasks(self) -> list[TaskId]:
        """The ids of all there are, by their folders."""
        try:
            folders = [each for each in self.folder.iterdir() if not each.name.startswith(".")]
            return [TaskId(each.name) for each in folders if (each / LOG).exists()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unavailable(self.folder, error, "read") from None

    def _listing(self, sort: Sort, workspace: Path | None, limit: int | None) -> list[Listed]:
        if not self.folder.exists():
            return []
        try:
            trouble = self._refresh_all()
            rows = self.index.rows()
        except StateUnavailable:  # a full disk, one that is read-only, an index that is held: the logs have it all
            rows, trouble = self._read_all()
        nothing = Row(Metadata(), 0, 0)
        found = [
            Listed(task, row.metadata, row.size, trouble.get(task, ""))
            for task in self.tasks()
            for row in (rows.get(task, nothing),)
            if workspace is None or row.metadata.workspace == workspace
        ]
        return sorted(found, key=_KEYS[sort])[:limit]

    def _read_all(self) -> tuple[dict[TaskId, Row], dict[TaskId, str]]:
        """What the index would say, read from the logs; why some could not be read."""
        rows: dict[TaskId, Row] = {}
        trouble: dict[TaskId, str] = {}
        for task in self.tasks():
            try:
                reading = read_log(self.folder / task)
                rows[task] = Row(metadata(reading.events), reading.size, _size(self.folder / task))
            except StateUnavailable as error:
                trouble[task] = error.what
            except TaskNotFound:  # deleted meanwhile
                continue
        return rows, trouble

    def _refresh_all(self) -> dict[TaskId, str]:
        """Read what is new in all logs; why some could not be read."""
        trouble: dict[TaskId, str] = {}
        tasks = self.tasks()
        places = self.index.places()
        for task in tasks:
            try:
                if places.get(task) != (self.folder / task / LOG).stat().st_size:
                    self._refresh(task)
            except StateUnavailable as error:
                trouble[task] = error.what
            except (TaskNotFound, FileNotFoundError):  # deleted meanwhile
                continue
        for task in places.keys() - set(tasks):
            self.index.remove(task)
        return trouble

    def _refresh(self, task: TaskId) -> None:
        folder = self.folder / task
        row = self.index.row(task)
        fetch = Blobs(folder / BLOBS).read
        with opened(folder) as fd:
            reading = None
            if row and os.fstat(fd).st_size >= row.offset:
                reading = read_all(fd, Scanner(seq=row.metadata.seq + 1, offset=row.offset, fetch=fetch))
            if row is None or reading is None or reading.damage:  # new to us, or another file than the one we know
                row, since = Row(Metadata(), 0, 0), None
                reading = read_all(fd, Scanner(fetch=fetch))
            else:
                since = row.offset
        if reading.size == since:
            return
        words: list[Words] = []
        for event in reading.events:
            row.metadata.add(event)
            words += _words(row.metadata.seq, event)
        self.index.put(task, Row(row.metadata, reading.size, _size(folder)), words, since=since)


_KEYS: Final = {
    "newest": lambda each: -each.metadata.at,
    "oldest": lambda each: each.metadata.at,
    "cost": lambda each: -each.metadata.cost,
    "tokens": lambda each: -each.metadata.usage.context,
    "size": lambda each: -each.size,
}


def _words(seq: int, event: TaskEvent) -> list[Words]:
    """What can be found of a fact."""
    match event:
        case UserSaid(text=text) | MessageQueued(text=text):
            found = Words(seq, "user", text)
        case ModelSaid(parts=parts):
            found = Words(seq, "model", text_of(parts))
        case TaskCompleted(result=text) | SubtaskFinished(result=text):
            found = Words(seq, "model", text)
        case ToolFinished(title=title, content=content):
            found = Words(seq, "tool", f"{title}\n{text_of(content)}"[:SEARCHED].strip())
        case _:
            return []
    return [found] if found.text else []


def _size(folder: Path) -> int:
    """Bytes on the disk: the log, its blobs, recordings of terminals, what is left of torn writes."""
    total = 0
    for place in (folder, folder / BLOBS, folder / RECORDINGS):
        try:
            with os.scandir(place) as entries:
                total += sum(each.stat().st_size for each in entries if each.is_file(follow_symlinks=False))
        except OSError:
            continue
    return total
