"""The tool codebase_search: find code by words, with an index that SQLite keeps (FTS5).

files of the workspace ─ definitions by tree-sitter, else pieces of 40 lines ─ identifiers split into words → index

Each search first brings the index up to date: files that changed are read again. One program does so at a time; the
others wait, then search what is there. A damaged index is made anew. Nothing is downloaded.
"""

import asyncio
import fcntl
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.file_system import read_bytes
from tarmac.paths import private_dir
from tarmac.tools import file_access
from tarmac.tools.child_process import program
from tarmac.tools.code_definitions import definitions, language_of
from tarmac.tools.list_files import FOLDER
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool

MOST_FILES: Final = 20_000
MOST_BYTES: Final = 512 << 10  # of a file
PIECE: Final = 40  # lines of a piece
PATIENCE: Final = 20.0  # seconds that one call may read files; the next goes on
MOST_FOUND: Final = 12
SHOWN_LINES: Final = 6
VERSION: Final = 2
HIDDEN: Final = "hidden "  # before the stamp of a file that was not read
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_IDENTIFIER = re.compile(r"[^\W\d]\w*|\d+")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_UNDERSCORES = re.compile(r"_+")
STOP: Final = frozenset(
    "a an and are as at be by do does for from how i in is it of on or that the this to what where which with".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodebaseSearch(Tool):
    name: ClassVar[str] = "codebase_search"
    group: ClassVar[Group] = "read"
    description: ClassVar[str] = "Find code by words, such as `retry failed request`. The best places come first."

    query: Annotated[str, Meta(min_length=1, description="Words that the code would have.")]
    path: Annotated[str, Meta(description=FOLDER)] = "."

    async def prepare(self, bench: Bench) -> Ready:
        place, want = await file_access.looking(bench, file_access.to_read, self.path)
        if not place.look.inside:
            raise ToolFailed("codebase_search searches the workspace. Use search_files elsewhere.")
        if not place.path.is_dir():
            raise ToolFailed(f"'{place.name}' is not a folder.")
        words = query_words(self.query)
        if not words:
            raise ToolFailed("The query has no words to search for.")

        async def act(_: Go) -> Done:
            root = file_access.unmoved(bench, place).path
            hidden = file_access.hides(bench, contents=True)
            found = await asyncio.to_thread(search, bench.workspace, root, words, bench.cache, hidden)
            return Done.text(found)

        shown = self.query if len(self.query) <= 60 else self.query[:59] + "…"
        return Ready(
            title=f"Searching the code for {shown!r}", done=f"Searched the code for {shown!r}", wants=(want,), act=act
        )


def split_words(text: str) -> Iterator[str]:
    """Each identifier, and the words that it is made of: `parseHTTPUrl` → parsehttpurl parse http url."""
    for match in _IDENTIFIER.finditer(text):
        whole = match[0].lower().strip("_")
        found = _PARTS.findall(match[0]) if match[0].isascii() else filter(None, _UNDERSCORES.split(match[0]))
        parts = [each.lower() for each in found]
        if whole:
            yield whole
        if len(parts) > 1:
            yield from parts


def query_words(query: str) -> list[str]:
    """The words of a question, without those that every text has."""
    words = dict.fromkeys(each for each in split_words(query) if each not in STOP)
    return list(words)[:24]


def search(workspace: Path, root: Path, words: list[str], cache: Path | None, hidden: Callable[[Path], bool]) -> str:
    """The best pieces of code for these words, as text for the model."""
    workspace = Path(os.path.realpath(workspace))
    below = "" if root == workspace else f"{root.relative_to(workspace).as_posix()}/"
    file = cache / f"{sha256(os.fsencode(workspace)).hexdigest()[:24]}.sqlite3" if cache is not None else None
    try:
        try:
            behind, rows = _searched(workspace, file, words, below, hidden)
        except sqlite3.DatabaseError as error:
            if file is None or getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                raise
            for suffix in ("", "-wal", "-shm"):
                file.with_name(file.name + suffix).unlink(missing_ok=True)
            behind, rows = _searched(workspace, file, words, below, hidden)
    except (sqlite3.Error, OSError) as error:
        raise ToolFailed(f"The index can't be used: {error}. Use search_files.") from None
    shown = [_shown(workspace, *row) for row in rows]
    shown = [each for each in shown if each]
    note = f"\n\n({behind:,} files are not in the index yet: search again, or use search_files.)" if behind else ""
    return ("\n\n".join(shown) or "Nothing was found. Try other words, or search_files with a pattern.") + note


def _searched(
    workspace: Path, file: Path | None, words: list[str], below: str, hidden: Callable[[Path], bool]
) -> tuple[int, list[tuple[str, int, int]]]:
    """How many files are not in the index yet, and the best places of the others."""
    with ExitStack() as stack:
        if file is not None:
            private_dir(file.parent)
        alone = file is None or stack.enter_context(_alone(file.with_suffix(".lock")))
        index = stack.enter_context(closing(_opened(file)))
        behind = update(index, workspace, hidden) if alone else 0
        return behind, _ranked(index, words, below, lambda name: hidden(workspace / name))


@contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Whether no other program brings the index up to date. Wait for one that does."""
    end = time.monotonic() + PATIENCE
    with lock.open("w") as held:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    yield False
                    return
                time.sleep(0.05)
            else:
                yield True
                return


def _opened(file: Path | None) -> sqlite3.Connection:
    index = sqlite3.connect(file or ":memory:", timeout=10)
    try:
        index.execute("PRAGMA journal_mode=WAL")  # who reads does not wait for the one that writes
        index.execute("PRAGMA synchronous=OFF")
        if index.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            index.executescript(
                "DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS pieces;"
                "CREATE TABLE files (path TEXT PRIMARY KEY, stamp TEXT);"
                "CREATE VIRTUAL TABLE pieces USING fts5("
                "path UNINDEXED, first UNINDEXED, last UNINDEXED, name, words, tokenize='unicode61');"
                f"PRAGMA user_version={VERSION};"
            )
    except BaseException:
        index.close()
        raise
    return index


def update(index: sqlite3.Connection, workspace: Path, hidden: Callable[[Path], bool]) -> int:
    """Bring the index up to date; how many files are still to be read."""
    end = time.monotonic() + PATIENCE
    known = dict(index.execute("SELECT path, stamp FROM files").fetchall())
    there: dict[str, str] = {}
    for name in _files(workspace):
        try:
            found = (workspace / name).lstat()
        except OSError:
            continue
        if found.st_size <= MOST_BYTES:
            there[name] = f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"
    for name in known.keys() - there.keys():
        _forget(index, name)
    changed = [
        name
        for name, stamp in there.items()
        if known.get(name) != stamp and not (known.get(name) == HIDDEN + stamp and hidden(workspace / name))
    ]
    for done, name in enumerate(changed):
        if time.monotonic() > end:
            index.commit()
            return len(changed) - done
        _forget(index, name)
        stamp = there[name]
        if hidden(workspace / name):
            stamp = HIDDEN + stamp
        else:
            rows = [
                (name, first, last, " ".join(split_words(f"{name} {title}")), words)
                for first, last, title, words in _pieces(workspace / name)
            ]
            index.executemany("INSERT INTO pieces VALUES (?, ?, ?, ?, ?)", rows)
        index.execute("INSERT INTO files VALUES (?, ?)", (name, stamp))
    index.commit()
    return 0


def _forget(index: sqlite3.Connection, name: str) -> None:
    if index.execute("DELETE FROM files WHERE path = ?", (name,)).rowcount:
        index.execute("DELETE FROM pieces WHERE path = ?", (name,))


def _files(workspace: Path) -> list[str]:
    """The files that git would not ignore."""
    ripgrep = program("rg")
    if ripgrep is None:
        raise ToolFailed("ripgrep is not installed. Install the package ripgrep.")
    argv = [ripgrep, "--files", "--null", "--no-messages", "--no-config", "--max-filesize", str(MOST_BYTES)]
    try:
        made = subprocess.run(
            argv, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolFailed(f"The files can't be listed: {error}.") from None
    names = [os.fsdecode(each).removeprefix("./") for each in made.stdout.split(b"\0") if each]
    return sorted(each for each in names if each.isprintable())[:MOST_FILES]


def _pieces(path: Path) -> Iterator[tuple[int, int, str, str]]:
    """First line, last line, what it defines, its words."""
    try:
        raw = read_bytes(path, links=False) or b""
    except TarmacError:
        return
    if b"\0" in raw[:4096]:
        return
    lines = raw.decode("utf-8", "replace").splitlines()
    starts: list[tuple[int, str]] = []
    if (language := language_of(path)) is not None:
        starts = [(each.first, each.text.strip()) for each in definitions(raw, language)]
    cuts = sorted({1: "", **dict(starts)}.items())
    for at, (first, title) in enumerate(cuts):
        after = cuts[at + 1][0] if at + 1 < len(cuts) else len(lines) + 1
        for start in range(first, after, PIECE):
            last = min(start + PIECE, after) - 1
            words = " ".join(split_words("\n".join(lines[start - 1 : last])))
            if words:
                yield start, last, title, words


def _ranked(
    index: sqlite3.Connection, words: list[str], below: str, hidden: Callable[[str], bool]
) -> list[tuple[str, int, int]]:
    query = " OR ".join(f'"{each}"' for each in words)
    rows = index.execute(
        "SELECT path, first, last FROM pieces WHERE pieces MATCH ? AND substr(path, 1, ?) = ? "
        "ORDER BY bm25(pieces, 0, 0, 0, 4.0, 1.0) LIMIT ?",
        (query, len(below), below, MOST_FOUND * 4),
    ).fetchall()
    now_hidden = {path for path in {row[0] for row in rows} if hidden(path)}  # since they were read
    best: dict[str, int] = {}
    kept = []
    for path, first, last in rows:  # at most three places of one file
        if path in now_hidden:
            continue
        best[path] = best.get(path, 0) + 1
        if best[path] <= 3:
            kept.append((path, int(first), int(last)))
    return kept[:MOST_FOUND]


def _shown(workspace: Path, name: str, first: int, last: int) -> str:
    try:
        text = (read_bytes(workspace / name, links=False) or b"").decode("utf-8", "replace")
    except TarmacError:
        return ""
    lines = text.splitlines()[first - 1 : last]
    filled = [(first + at, line) for at, line in enumerate(lines) if line.strip()][:SHOWN_LINES]
    rows = [f"{number} | {line[:160]}" for number, line in filled]
    return "\n".join([f"# {name}:{first}-{last}", *rows])
