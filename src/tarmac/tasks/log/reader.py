"""Read a task's log at once, or follow it as it grows. Any process may read while one writes.

read_log(folder) → Reading: the events, and each damaged place
follow(folder)   → (seq, event) …, including future ones; the writer's doorbell wakes the follower

The event at index i has the sequence number i + 1. A lost record has an event of its own, so no number is missing.
"""

import asyncio
import gc
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import StateUnavailable, TaskNotFound
from tarmac.tasks.events import TaskEvent
from tarmac.tasks.log.blobs import Blobs
from tarmac.tasks.log.disk import unavailable
from tarmac.tasks.log.doorbell import Doorbell
from tarmac.tasks.log.records import Damage, Header, Scanner

LOG = "log.jsonl"
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
    torn: Damage | None  # bytes at the end that are no record: a write that was cut off, acknowledged to nobody
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
                f"{len(data):,} bytes behind record {scanner.seq - 1} and more are no records",
                hint=f"what stands before them is whole; to go on with that: truncate -s {scanner.offset} {LOG}",
            )


async def follow(folder: Path, *, after: int = 0, patience: float = 0.5) -> AsyncGenerator[tuple[int, TaskEvent], None]:
    """Every event after the number `after`, in order, for as long as one listens.

    It may be ahead of the disk by the group that is being committed. A log that is cut under it (by hand, or when a
    full disk took back a group) is an error: follow again.
    """
    bell = Doorbell(folder, patience=patience)
    with opened(folder) as fd:
        bell.open()  # before the first look, so that nothing falls between
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
                await bell.wait()
        finally:
            bell.close()
