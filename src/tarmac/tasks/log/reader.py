"""Read a task's log at once, or follow it as it grows. Any process may read while one writes.

read_log(folder) → Reading: the events, and each damaged place
follow(folder)   → (seq, event) …, including future ones; the writer wakes the follower

The event at index i has the sequence number i + 1. A lost record has an event of its own, so no number is missing.

Nobody polls: each follower has a named pipe in the task's `followers` folder, and the writer sends a byte into each
after a commit. A pipe gets its name only once its reader has it open. So a pipe that nobody reads belonged to a dead
follower, and the writer removes it. (Why not inotify: only Linux has it, the standard library has not, and a watch
would also wake for half a write.)
"""

import asyncio
import errno
import gc
import os
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import StateUnavailable, TaskNotFound
from tarmac.tasks.events import TaskEvent
from tarmac.tasks.log.disk import Blobs, unavailable
from tarmac.tasks.log.records import Damage, Header, Scanner

LOG = "log.jsonl"
FOLLOWERS = "followers"
BLOBS = "blobs"
RECORDINGS = "recordings"  # of terminals, beside the log
CHUNK = 256 << 10
MOST_BAD = 128 << 20  # bytes in a row without a record, in search of the next one
SLICE = 64 << 10  # read at once by a follower in an event loop: about a millisecond of work


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a log holds."""

    header: Header | None  # None: it is damaged
    events: list[TaskEvent]
    damage: tuple[Damage, ...]  # in the middle; each lost record has its RecordLost among the events
    torn: Damage | None  # bytes at the end that are not a record: a write that was cut off, acknowledged to nobody
    size: int  # of what is good


def read_log(folder: Path) -> Reading:
    """All that a task's log holds now."""
    with opened(folder) as fd:
        return read_all(fd, Scanner(fetch=Blobs(folder / BLOBS).read))


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """The log, for reading."""
    try:
        fd = os.open(folder / LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise TaskNotFound(f"there is no task in {folder}") from None
    except OSError as error:
        raise unavailable(folder / LOG, error, "read") from None
    try:
        yield fd
    except StateUnavailable:
        raise
    except OSError as error:  # while reading
        raise unavailable(folder / LOG, error, "read") from None
    finally:
        os.close(fd)


def read_all(fd: int, scanner: Scanner) -> Reading:
    """From where the scanner stands to the end."""
    events: list[TaskEvent] = []
    with uncollected():
        for found in _read(fd, scanner, CHUNK):
            events += found
    return Reading(
        header=scanner.header,
        events=events,
        damage=tuple(scanner.damage),
        torn=scanner.torn(os.fstat(fd).st_size),
        size=scanner.offset,
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """While much is read, or folded, and all of it stays: to look for garbage in it again and again is for nothing."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _read(fd: int, scanner: Scanner, chunk: int) -> Iterator[list[TaskEvent]]:
    """Events by the chunk, to the end of the file."""
    size = chunk
    while data := os.pread(fd, size, scanner.offset):
        before = scanner.offset
        yield scanner.scan(data)
        if scanner.offset > before:
            size = chunk
        elif len(data) < size:  # the rest is torn, or still being written
            return
        elif size < MOST_BAD:  # a line, or a damaged place, larger than the chunk
            size *= 2
        else:
            raise StateUnavailable(
                f"{len(data):,} bytes behind record {scanner.seq - 1} and more are not records",
                hint=f"what stands before them is whole; to go on with that: truncate -s {scanner.offset} {LOG}",
            )


async def follow(folder: Path, *, after: int = 0, patience: float = 0.5) -> AsyncGenerator[tuple[int, TaskEvent], None]:
    """Every event after the number `after`, in order, for as long as one listens.

    It may be ahead of the disk by the group that is being committed. A log that is cut under it (by hand, or when a
    full disk took back a group) is an error: follow again.
    """
    pipe = WakePipe(folder, patience=patience)
    with opened(folder) as fd:
        pipe.open()  # before the first look, so that nothing falls between
        try:
            scanner = Scanner(fetch=Blobs(folder / BLOBS).read)
            while True:
                for found in _read(fd, scanner, SLICE):
                    for seq, event in enumerate(found, scanner.seq - len(found)):
                        if seq > after:
                            yield seq, event
                    await asyncio.sleep(0)
                if os.fstat(fd).st_size < scanner.offset:
                    raise StateUnavailable(f"{folder / LOG} was cut while it was followed", hint="follow it again")
                await pipe.wait()
        finally:
            pipe.close()


def wake_followers(folder: Path) -> None:
    """Wake all who follow the log in `folder`. It never waits and never raises."""
    followers = f"{folder}/{FOLLOWERS}"
    if not os.access(followers, os.F_OK):  # with each commit, and mostly nobody follows: an error would cost more
        return
    try:
        names = os.listdir(followers)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        if name.startswith("."):
            continue
        path = folder / FOLLOWERS / name
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENXIO:
                _remove(path)
            continue
        try:
            os.write(fd, b"!")
        except OSError:  # full: it has enough to wake up for
            pass
        finally:
            os.close(fd)


class WakePipe:
    """A follower's end. Where no pipe can be made (a read-only disk, a full one) it looks every `patience` seconds."""

    __slots__ = ("_fds", "_path", "_patience")

    def __init__(self, folder: Path, *, patience: float = 0.5) -> None:
        self._patience = patience
        self._fds: list[int] = []
        self._path = folder / FOLLOWERS / secrets.token_hex(8)

    @property
    def polls(self) -> bool:
        return not self._fds

    def open(self) -> None:
        hidden = self._path.with_name(f".{self._path.name}")
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            os.mkfifo(hidden, 0o600)
            # its own writing end keeps it from being at its end whenever the writer has left
            self._fds.append(os.open(hidden, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            self._fds.append(os.open(hidden, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            hidden.rename(self._path)
        except OSError:
            self.close()
            _remove(hidden)

    async def wait(self) -> None:
        """Return once the writer has written more."""
        if self.polls:
            await asyncio.sleep(self._patience)
            return
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._fds[0], _set, woken)
        try:
            await woken
        finally:
            loop.remove_reader(self._fds[0])
        try:
            os.read(self._fds[0], 4096)
        except BlockingIOError:
            pass

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        if self._fds:
            _remove(self._path)
        self._fds.clear()


def _set(woken: "asyncio.Future[None]") -> None:
    if not woken.done():
        woken.set_result(None)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a disk that became read-only
        pass
