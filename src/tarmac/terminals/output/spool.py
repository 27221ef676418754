"""The raw bytes of one command, on disk and bounded: written once, read again by offset, line or search.

write() → memory (up to `buffer`) → file (up to `limit`, then the oldest out) → read() · lines() · search()

Offsets are those of the whole stream, also after bytes were dropped. A command that prints little costs one open, write
and close at its end. One that prints nothing costs no file. When the disk is full, the spool keeps the newest few bytes
in memory and tries again later. Then bytes are missing in the middle, and the offsets of read() jump. One thread
writes. Any thread may read, and compact(). For lines() and search() dropped bytes are a line end, and a line may be of
any length.
"""

import math
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from time import monotonic
from typing import Final, NamedTuple, Protocol
from weakref import WeakSet

from tarmac.errors import BadRequest, TarmacError
from tarmac.paths import private_dir, remove_scratch, state_dir
from tarmac.terminals.settings import Settings

BLOCK = 64 << 10  # how much is looked at in one go
SEAM = 4 << 10  # the longest match that is sure to be found where a very long line is cut into windows

_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rb"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS and the other strings
    rb"|[ -/]*[0-~])"  # the short ones
)


class Kept(Protocol):
    """Bytes by offset, as a spool has them."""

    end: int

    @property
    def start(self) -> int: ...
    def read(self, offset: int, size: int) -> tuple[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines, without their line ends."""

    first: int  # the number of lines[0], from 1
    lines: tuple[bytes, ...]
    total: int  # lines in the spool, an unfinished last one included
    cut: bool  # the range held more bytes than were asked for; the last line here may be a part


@dataclass(frozen=True, slots=True)
class Match:
    """A line that matched, as it was printed; of a very long one the window of 64 KiB or so that matched."""

    line_number: int
    line: bytes
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]


def lines_of(spool: Kept, first: int, last: int = -1, *, most: int = 256 << 10) -> Lines:
    """Lines `first` to `last`, both included, in at most `most` bytes; -1 is the last line, -2 the one before.

    Numbers count from the oldest line kept, which is a part of a line when `start` > 0. A hole ends a line.
    """
    if first == 0 or last == 0:
        raise BadRequest("there is no line 0", hint="lines count from 1, or from the end with -1")
    end = spool.end
    total, tail = 0, b"\n"
    for block in _blocks(spool, end):
        total += block.count(b"\n")
        tail = block[-1:]
    total += tail != b"\n"
    first = first if first > 0 else max(1, total + 1 + first)
    last = min(total, last if last > 0 else total + 1 + last)
    wanted = last - first + 1
    if wanted <= 0:
        return Lines(first, (), total, cut=False)
    text, complete = b"", 0
    for block in _from_line(spool, first, end):
        text += block
        complete += block.count(b"\n")
        if complete >= wanted or len(text) > most:
            break
    text = b"\n".join(text.split(b"\n", wanted)[:wanted])
    found = tuple(line.rstrip(b"\r") for line in text[:most].split(b"\n"))
    return Lines(first, found, total, cut=len(text) > most)


def search_in(spool: Kept, pattern: str | re.Pattern[bytes], *, limit: int = 100, context: int = 0) -> list[Match]:
    """The first `limit` lines that match, each with `context` lines around it; escape sequences do not count.

    Line numbers are those of lines(). A line longer than 64 KiB is searched in windows that overlap by
    4 KiB: a longer match than that may be missed there.
    """
    regex = _compiled(pattern)
    matches: list[tuple[int, bytes, tuple[bytes, ...], list[bytes]]] = []
    before: deque[bytes] = deque(maxlen=max(0, context))
    number, shown, begins = 1, b"", True  # of the line at hand: its number, what to show of it, is this its start
    hit = False
    for window, ends in _windows(spool):
        if begins:
            shown, hit = window, False
        if not hit and len(matches) < limit and _matches(regex, window, begins=begins, ends=ends):
            shown, hit = window, True
        begins = ends
        if not ends:
            continue
        for at, _, _, after in reversed(matches):
            if number - at > context:
                break
            after.append(shown)
        if hit:
            matches.append((number, shown, tuple(before), []))
        before.append(shown)
        if len(matches) >= limit and (not matches or number - matches[-1][0] >= context):
            break
        number += 1
    return [Match(number, line, around, tuple(after)) for number, line, around, after in matches]


def _blocks(spool: Kept, end: int) -> Iterator[bytes]:
    """All that is kept up to `end`, in pieces; a hole is a line end, lest two halves pass for one line."""
    here, tail = spool.start, b"\n"
    while here < end:
        at, block = spool.read(here, min(BLOCK, end - here))
        block = block[: max(0, end - at)]
        if not block:
            return
        if at > here and tail != b"\n":
            yield b"\n"
        yield block
        here, tail = at + len(block), block[-1:]


def _from_line(spool: Kept, number: int, end: int) -> Iterator[bytes]:
    """As _blocks(), from the start of a line."""
    skip = number - 1
    for block in _blocks(spool, end):
        if (found := block.count(b"\n")) < skip:
            skip -= found
            continue
        yield block.split(b"\n", skip)[skip] if skip else block
        skip = 0


def _windows(spool: Kept) -> Iterator[tuple[bytes, bool]]:
    """Line by line, a very long one in overlapping windows; True with the last (mostly: only) window of a line."""
    rest = b""
    for block in _blocks(spool, spool.end):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r"), True
        if len(rest) >= BLOCK:
            yield rest, False
            rest = rest[-SEAM:]
    if rest:
        yield rest.rstrip(b"\r"), True


def _matches(regex: re.Pattern[bytes], window: bytes, *, begins: bool, ends: bool) -> bool:
    """Whether it matches, `^` only where the line begins and `$` only where it ends."""
    text = _ESCAPE.sub(b"", window) if b"\x1b" in window else window
    first = 0 if begins else 1  # re takes `^` for the start of the text, not for where we ask it to start
    # A byte no pattern asks for stands for the rest of the line.
    return regex.search(text if ends else text + b"\0", first) is not None


def _compiled(pattern: str | re.Pattern[bytes]) -> re.Pattern[bytes]:
    if not isinstance(pattern, str):
        return pattern  # or what searches like one
    try:
        return re.compile(pattern.encode("utf-8", "surrogateescape"))
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise BadRequest(
            f"{pattern[:80]!a} is not a regular expression: {error}", hint="escape what is meant literally: `\\(`"
        ) from None


MOST_HOLES = 64  # a disk that is full again every second must not grow this list for days


class _Extent(NamedTuple):
    """Bytes that lie together both in the stream and in the file."""

    offset: int  # in the stream
    at: int  # in the file
    size: int


class Spool:
    """One command's output. Neither write() nor read() ever raises: see `error`, `lost` and `dropped`."""

    def __init__(
        self,
        path: Path,
        *,
        limit: int = 64 << 20,
        buffer: int = BLOCK,
        no_place: str = "",
        kept: set[str] | None = None,
    ) -> None:
        self.path = path
        self._no_place = no_place  # why its folder could not be made
        self._kept = set[str]() if kept is None else kept  # the names of those that are worth keeping
        self.end = 0  # bytes ever written
        self.lost = 0  # bytes that a full or broken disk took
        self.error: OSError | None = None  # the last one; it stays when the disk has recovered
        self._limit = limit = max(limit, 4)
        self._patience = limit  # the size at which to ask for compact(); more after it failed
        self._step = limit // 4  # of the file's growth: never more at once, so that its bound holds
        self._buffer = min(buffer, self._step)
        self._pending = bytearray()  # the newest bytes, not yet on disk
        self._extents: list[_Extent] = []
        self._size = 0  # of the file
        self._fd: int | None = None
        self._created = self._removed = False
        self._retry: tuple[float, int] | None = None  # while the disk fails: when, or at which end, to try again
        self._lock = RLock()  # held for single reads and writes; for a whole compaction only if write() has to do it
        self._compacting = Lock()

    @classmethod
    def of_file(cls, path: Path, end: int, *, kept: set[str] | None = None) -> "Spool":
        """One that another program has written and closed: of its `end` bytes, the last are in the file."""
        spool = cls(path, kept=kept)
        try:
            size = min(path.stat().st_size, end)
        except OSError as error:
            spool.error, size = error, 0
        spool.end, spool._size, spool._created = end, size, True
        spool._extents = [_Extent(end - size, 0, size)] if size else []
        return spool

    @property
    def worth_keeping(self) -> bool:
        """Its owner says so: more was printed than a result can show."""
        return self.path.name in self._kept

    @worth_keeping.setter
    def worth_keeping(self, worth: bool) -> None:
        if worth:
            self._kept.add(self.path.name)
        else:
            self._kept.discard(self.path.name)

    @property
    def complaint(self) -> str:
        """What kept bytes from the disk, in words; empty when nothing did."""
        return (self._no_place or str(self.error.strerror)) if self.error is not None else ""

    @property
    def start(self) -> int:
        """The offset of the oldest byte still kept."""
        with self._lock:
            return self._extents[0].offset if self._extents else self.end - len(self._pending)

    @property
    def dropped(self) -> int:
        """Bytes that were written and can no longer be read: over the limit, or lost."""
        with self._lock:
            return self.end - len(self._pending) - sum(extent.size for extent in self._extents)

    @property
    def crowded(self) -> bool:
        """The file is over its limit: time to compact() it, in a thread, or write() will have to."""
        return self._size > self._patience

    # --- writing ---

    def write(self, data: bytes) -> None:
        """Add to the end."""
        with self._lock:
            self.end += len(data)
            if self._removed:
                return
            self._pending += data
            if len(self._pending) > self._buffer:
                if self._retry is None or monotonic() >= self._retry[0] or self.end >= self._retry[1]:
                    self._drain()
                else:
                    self._forget()

    def flush(self) -> None:
        """Bring to disk what is still in memory, if the disk takes it."""
        with self._lock:
            self._drain()

    def close(self) -> None:
        """Flush and hold no descriptor any more. Reading goes on working; so would writing."""
        with self._lock:
            self._drain()
            self._let_go()

    def remove(self) -> None:
        """Close, and forget all of it; later bytes are only counted."""
        with self._lock:
            self._removed = True
            self._pending.clear()
            self._extents.clear()
            self._size = 0
            self._let_go()
            if self._created:
                try:
                    self.path.unlink(missing_ok=True)
                except OSError as error:
                    self.error = error

    def compact(self) -> None:
        """Keep the newest half of the limit, in a new file under the same name; does nothing unless crowded.

        Takes as long as copying that much does. Others may read and write meanwhile.
        """
        try:
            self._compact()
        except OSError as error:
            self.error = error
            self._patience = self._size + self._step // 4  # a full disk stays full for a while

    def _drain(self) -> None:
        """Move what is pending to the file; after an error only the newest of it stays, in memory."""
        try:
            while self._pending:
                self._append(min(len(self._pending), self._step))
            self._retry = None
        except OSError as error:
            self.error = error
            self._retry = (monotonic() + 1, self.end + (1 << 20))
            self._forget()

    def _append(self, size: int) -> None:
        if self._size + size > self._limit + self._limit // 4:  # nobody called compact()
            self._compact()
        fd = self._writable()
        with memoryview(self._pending) as pending, pending[:size] as piece:
            written = os.pwrite(fd, piece, self._size)
        new = _Extent(self.end - len(self._pending), self._size, written)
        last = self._extents[-1] if self._extents else None
        if last and last.offset + last.size == new.offset:
            self._extents[-1] = _Extent(last.offset, last.at, last.size + written)
        else:
            self._extents.append(new)
            del self._extents[:-MOST_HOLES]
        self._size += written
        del self._pending[:written]

    def _forget(self) -> None:
        """The disk does not take it: keep in memory no more than its share."""
        if (over := len(self._pending) - self._buffer) > 0:
            self.lost += over
            del self._pending[:over]

    def _writable(self) -> int:
        if self._fd is None:
            self._fd = _reopen(self.path, os.O_RDWR) if self._created else _create(self.path)
            self._created = True
        return self._fd

    def _let_go(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _compact(self) -> None:
        if not self._compacting.acquire(blocking=False):
            return  # it is being done
        try:
            with self._lock:
                if self._size <= self._limit:
                    return
                size = self._size
                source = (
                    os.dup(self._fd) if self._fd is not None else _reopen(self.path, os.O_RDONLY)
                )  # a close() does not hurt us
            # Half the limit; less when the file is far over it, so that both files together stay under 1.5 limits.
            cut = size - max(0, min(self._limit // 2, self._limit + self._limit // 2 - size))
            try:
                self._replace(source, cut, size)
            finally:
                os.close(source)
        finally:
            self._compacting.release()

    def _replace(self, source: int, cut: int, size: int) -> None:
        """Put a new file in our file's place that lacks its first `cut` bytes."""
        new = self.path.with_name(self.path.name + ".new")
        new.unlink(missing_ok=True)  # of a Tarmac that was killed just here
        target = _create(new)
        try:
            _copy(source, target, start=cut, stop=size, to=0)
            with self._lock:
                _copy(source, target, start=size, stop=self._size, to=size - cut)  # what was written meanwhile
                if self._removed:
                    new.unlink()
                    return
                new.rename(self.path)
                self._extents = [
                    _Extent(offset + gone, at + gone - cut, length - gone)
                    for offset, at, length in self._extents
                    if (gone := max(0, cut - at)) < length
                ]
                self._size -= cut
                self._patience = self._limit
                if self._fd is not None:
                    os.close(self._fd)
                    self._fd, target = target, -1
        except OSError:
            new.unlink(missing_ok=True)
            raise
        finally:
            if target >= 0:
                os.close(target)

    # --- reading ---

    def read(self, offset: int, size: int) -> tuple[int, bytes]:
        """Up to `size` bytes from `offset`, or from the next byte still kept; and the offset of the first of them.

        Fewer come before a hole and at the end; none only at the end.
        """
        pieces: list[bytes] = []
        with self._lock:
            first = here = max(0, min(offset, self.end))
            for extent in self._extents:
                if size <= 0:
                    break
                if here >= extent.offset + extent.size:
                    continue
                if here < extent.offset:
                    if pieces:
                        break
                    first = here = extent.offset
                skip = here - extent.offset
                if piece := self._pread(min(size, extent.size - skip), extent.at + skip):
                    pieces.append(piece)
                    here += len(piece)
                    size -= len(piece)
            memory = self.end - len(self._pending)
            if size > 0 and (here >= memory or not pieces):
                here = max(here, memory)
                first = first if pieces else here
                with memoryview(self._pending) as pending:
                    pieces.append(bytes(pending[here - memory : here - memory + size]))
        return first, b"".join(pieces)

    def _pread(self, size: int, at: int) -> bytes:
        """From the file; nothing when it cannot be read, as when somebody deleted it."""
        try:
            if self._fd is not None:
                return os.pread(self._fd, size, at)
            fd = _reopen(self.path, os.O_RDONLY)  # after close(): a finished command must not hold a descriptor
            try:
                return os.pread(fd, size, at)
            finally:
                os.close(fd)
        except OSError as error:
            self.error = error
            return b""

    def lines(self, first: int, last: int = -1, *, most: int = 256 << 10) -> Lines:
        """Lines `first` to `last`, both included: see `lines_of`."""
        return lines_of(self, first, last, most=most)

    def search(self, pattern: str | re.Pattern[bytes], *, limit: int = 100, context: int = 0) -> list[Match]:
        """The first `limit` lines that match: see `search_in`."""
        return search_in(self, pattern, limit=limit, context=context)


def _create(path: Path) -> int:
    """A new file for us alone; whatever already bears the name is not ours to write to."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _reopen(path: Path, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def _copy(source: int, target: int, *, start: int, stop: int, to: int) -> None:
    """Plain reads and writes: as fast here as sendfile and copy_file_range (32 MiB: 11 ms), and macOS has them."""
    while start < stop:
        block = os.pread(source, min(1 << 20, stop - start), start)
        if not block:
            raise OSError(f"the spool was cut short at {start}")
        written = os.pwrite(target, block, to)
        start += written
        to += written


SWEEP_EVERY: Final = 3600.0  # seconds: to look at all that is kept, for each command, would cost more the more there is
_swept: dict[Path, float] = {}  # when this process last looked through a folder


class Spools:
    """The spools of one terminal. Their folder is named by its cookie: `end_survivors` reads it there."""

    def __init__(self, cookie: str, settings: Settings) -> None:
        self._taken_over = False
        self.name = cookie
        self._settings = settings
        self._folder: Path | None = None
        self._live: WeakSet[Spool] = WeakSet()  # those somebody may still read; the others are known by their files
        self._kept: set[str] = set()  # the names of files that are worth keeping

    def new(self, number: int) -> Spool:
        """The spool of command `number`. It never fails: without a place it keeps little, and the result says why."""
        no_place = ""
        try:
            folder = self.folder()
        except OSError as error:  # no room, no right
            folder = Path(os.devnull)
            no_place = error.what if isinstance(error, TarmacError) else str(error)
        spool = Spool(folder / f"{number}.out", limit=self._settings.spool_limit, no_place=no_place, kept=self._kept)
        self._live.add(spool)
        return spool

    def take_over(self, finished: dict[int, int], *, name: str) -> dict[int, Spool]:
        """Go on in the folder of another program; the spools of these commands, by their number and size.

        `name` is that of the folder. Ours is another one if the terminal has another cookie by now.
        """
        self._taken_over = True
        if name != self.name:
            with suppress(OSError):  # nothing was printed
                (self._base() / name).rename(self._base() / self.name)
        folder = self.folder()
        for file in folder.iterdir():
            if file.stem not in map(str, finished):
                file.unlink()  # of the command that was running: it is read again from the journal
        found = {
            number: Spool.of_file(folder / f"{number}.out", size, kept=self._kept)
            for number, size in finished.items()
            if size
        }
        for spool in found.values():
            self._live.add(spool)
        return found

    def folder(self) -> Path:
        """The folder, made when it is first asked for."""
        if self._folder is None:
            base = self._base()
            private_dir(base)
            if time.monotonic() - _swept.get(base, -math.inf) > SWEEP_EVERY:
                _swept[base] = time.monotonic()
                sweep_old(base, older_than=self._settings.spool_days * 86400)
            folder = base / self.name
            folder.mkdir(mode=0o700, exist_ok=self._taken_over)
            self._folder = folder
        return self._folder

    def _base(self) -> Path:
        return self._settings.spool_directory or state_dir(os.environ) / "output"

    def clear(self) -> None:
        """Only what was too long for its result is worth keeping on disk after the terminal is gone."""
        if self._folder is None:
            return
        for spool in list(self._live):
            if not spool.worth_keeping:
                spool.remove()
        try:
            for file in self._folder.iterdir():
                if file.name not in self._kept:
                    file.unlink()
            self._folder.rmdir()
        except OSError:
            pass


def sweep_old(folder: Path, *, older_than: float) -> None:
    """Remove output that was kept by terminals long gone."""
    limit = time.time() - older_than
    try:
        for each in folder.iterdir():
            if each.stat().st_mtime < limit:
                remove_scratch(each)
    except OSError:
        pass
