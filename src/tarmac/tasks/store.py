"""All tasks of a user: where they are, which there are, what was said in them.

<state>/tasks/<id>/log.jsonl    the truth
                   blobs/       contents too large for a line
                   writer       who works on it · followers/ who looks on · torn-… what a crash left of a write
<state>/tasks/index.db          made of the logs; thrown away and made anew at any time

A list always looks at the folders themselves: no index can hide a task that exists.

The index (SQLite) is for lists, sorting and full-text search. It holds nothing that the logs do not. Each task's row
says how far its log was read, and carries the fold up to there: to bring it up to date costs only what is new. Search
is by substring (trigrams): it finds parts of names in code, and words of languages that put no space between them.
"""

import asyncio
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

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
from tarmac.tasks.log import TaskLog, create_log, open_log
from tarmac.tasks.log.disk import Blobs, unavailable
from tarmac.tasks.log.reader import BLOBS, LOG, RECORDINGS, Reading, opened, read_all, read_log
from tarmac.tasks.log.records import Scanner, from_plain, to_plain
from tarmac.tasks.log.writer import lock
from tarmac.tasks.views.metadata import Metadata, metadata
from tarmac.tasks.views.model_history import text_of

SCHEMA: Final = 1
PATIENCE: Final = 10.0  # seconds to wait for another process
LONGEST: Final = 100_000  # characters of one text that can be searched
_TABLES: Final = f"""
    CREATE TABLE tasks (
        id TEXT PRIMARY KEY, number INTEGER NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL,
        metadata BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE numbers (last INTEGER NOT NULL);
    INSERT INTO numbers VALUES (0);
    CREATE VIRTUAL TABLE words USING fts5 (text, task UNINDEXED, seq UNINDEXED, who UNINDEXED, tokenize = 'trigram');
    PRAGMA user_version = {SCHEMA};
"""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A task, as far as its log was read."""

    metadata: Metadata
    offset: int  # in the log
    size: int  # of the folder


@dataclass(frozen=True, slots=True)
class Words:
    """A text that can be found."""

    seq: int
    who: str  # "user", "model", "tool"
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """A place where a search hit."""

    task: TaskId
    seq: int
    who: str
    excerpt: str


class Index:
    """The index in one file. Every call opens and closes it: nothing is held while nobody asks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> dict[TaskId, Row]:
        def ask(db: sqlite3.Connection) -> dict[TaskId, Row]:
            found = db.execute("SELECT id, metadata, offset, size FROM tasks")
            return {TaskId(task): Row(from_plain(data, Metadata), offset, size) for task, data, offset, size in found}

        return self._do(ask)

    def places(self) -> dict[TaskId, int]:
        """How far each task was read."""
        return self._do(lambda db: {TaskId(task): at for task, at in db.execute("SELECT id, offset FROM tasks")})

    def row(self, task: TaskId) -> Row | None:
        def ask(db: sqlite3.Connection) -> Row | None:
            found = db.execute("SELECT metadata, offset, size FROM tasks WHERE id = ?", (task,)).fetchone()
            return Row(from_plain(found[0], Metadata), found[1], found[2]) if found else None

        return self._do(ask)

    def put(self, task: TaskId, row: Row, words: Iterable[Words], *, since: int | None) -> None:
        """Store a task's row, and the words in its log `since` that place; None: all of them, from the start."""

        def store(db: sqlite3.Connection) -> None:
            before = db.execute("SELECT offset FROM tasks WHERE id = ?", (task,)).fetchone()
            if before and since is None:
                db.execute("DELETE FROM words WHERE task = ?", (task,))
            elif since is not None and (before is None or before[0] != since):
                return  # another process was quicker; the next look goes on from there
            meta = row.metadata
            values = (task, meta.number, row.offset, row.size, to_plain(meta))
            db.execute("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?)", values)
            lines = ((_clean(each.text[:LONGEST]), task, each.seq, each.who) for each in words)
            db.executemany("INSERT INTO words (text, task, seq, who) VALUES (?, ?, ?, ?)", lines)

        self._do(store, write=True)

    def remove(self, task: TaskId) -> None:
        def store(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM words WHERE task = ?", (task,))
            db.execute("DELETE FROM tasks WHERE id = ?", (task,))

        self._do(store, write=True)

    def search(self, text: str, *, limit: int) -> list[Found]:
        """Texts that have every word of `text` in them, the best first; quotes make one of several words."""
        wanted = [_clean(word) for word in _phrases(text)]
        if not wanted:
            return []
        # trigrams can't find less than three characters: those are looked for one by one
        long = [word for word in wanted if len(word) > 2]
        clauses = ["words MATCH ?"] * bool(long) + ["text LIKE ? ESCAPE '\\'"] * (len(wanted) - len(long))
        values = [" ".join('"{}"'.format(word.replace('"', '""')) for word in long)] * bool(long)
        values += [f"%{_escaped(word)}%" for word in wanted if len(word) < 3]
        excerpt = "snippet(words, 0, '', '', '…', 24)" if long else "substr(text, 1, 200)"
        order = "rank" if long else "rowid DESC"
        query = f"SELECT task, seq, who, {excerpt} FROM words WHERE {' AND '.join(clauses)} ORDER BY {order} LIMIT ?"

        def ask(db: sqlite3.Connection) -> list[Found]:
            return [Found(TaskId(task), seq, who, text) for task, seq, who, text in db.execute(query, (*values, limit))]

        return self._do(ask)

    def next_number(self) -> int:
        """One more than the highest there is or was given out."""

        def store(db: sqlite3.Connection) -> int:
            db.execute("UPDATE numbers SET last = 1 + max(last, (SELECT coalesce(max(number), 0) FROM tasks))")
            return int(db.execute("SELECT last FROM numbers").fetchone()[0])

        return self._do(store, write=True)

    def check(self) -> str | None:
        """What is wrong with it, in SQLite's words."""
        try:
            with self._opened(write=True) as db:
                found = [line for (line,) in db.execute("PRAGMA integrity_check")]
                db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            return str(error)
        return None if found == ["ok"] else "; ".join(found[:5])

    def destroy(self) -> None:
        """Forget it all; the next look makes it anew."""
        try:
            for end in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)
        except OSError as error:
            raise StateUnavailable(f"the index of tasks {self.path} can't be removed: {error.strerror}") from None

    def _do(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Once; and once more with a new index, when the one there is damaged."""
        try:
            with self._opened(write=write) as db:
                return work(db)
        except sqlite3.OperationalError as error:  # locked, full, forbidden: mostly not damaged
            if not _is_damage(error):
                raise self._unavailable(error) from None
        except (sqlite3.DatabaseError, ValueError):
            pass
        self.destroy()
        try:
            with self._opened(write=write) as db:
                return work(db)
        except sqlite3.DatabaseError as error:
            raise self._unavailable(error) from None

    @contextmanager
    def _opened(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")  # a power cut may take the last rows: the logs have them
            if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                self._make(db)
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield db
            db.execute("COMMIT")
        finally:
            db.close()

    def _make(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN EXCLUSIVE")
        if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:  # else another process was quicker
            for table in ("words", "tasks", "numbers"):
                db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _TABLES.split(";")[:-1]:
                db.execute(statement)
        db.execute("COMMIT")

    def _unavailable(self, error: sqlite3.Error) -> StateUnavailable:
        return StateUnavailable(f"the index of tasks {self.path} can't be used: {error}")


def _is_damage(error: sqlite3.OperationalError) -> bool:
    """Tables that are gone, or not ours, come as operational errors, too."""
    return any(sign in str(error) for sign in ("no such table", "no such column", "has no column", "malformed"))


def _clean(text: str) -> str:
    """What SQLite takes: no lone surrogates, and no NUL, at which it would stop reading."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _phrases(text: str) -> Iterator[str]:
    for number, part in enumerate(text.split('"')):
        if number % 2:
            yield from (part,) if part else ()
        else:
            yield from part.split()


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
            raise BadRequest(f"{task!r} is not the id of a task")
        if (self.folder / task / LOG).exists():
            return self.folder / task
        fit = [each for each in self.tasks() if each.startswith(task)]
        if len(fit) == 1:
            return self.folder / fit[0]
        hint = f"these begin so: {', '.join(sorted(fit)[:5])}" if fit else "`tarmac tasks` lists them"
        raise TaskNotFound(f"there is no task `{task}`", hint=hint)

    async def below(self, task: TaskId) -> list[TaskId]:
        """Its subtasks, and theirs; those that are deepest first."""
        found, listed = [task], await self.listing()
        for above in found:
            found += [each.task for each in listed if each.metadata.parent == above and each.task not in found]
        return found[:0:-1]

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
