"""A SQLite index over the logs: lists, sorting, full-text search. It holds nothing that the logs do not.

Each task's row says how far its log was read, and carries the fold up to there: to bring it up to date costs only what
is new. A missing, damaged or older index is made anew. Search is by substring (trigrams): it finds parts of names in
code, and words of languages that put no space between them.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from tarmac.errors import StateUnavailable
from tarmac.events import TaskId
from tarmac.tasks.log.records import from_plain, to_plain
from tarmac.tasks.views.metadata import Metadata

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
