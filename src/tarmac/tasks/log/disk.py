"""All that waits for the disk: synced writes, blobs, and the thread in which the waiting is done.

sync, write_all          files that survive a power cut; `unavailable` makes an error for the user of an OSError
Blobs                    contents too large for a line of the log, in files named by their SHA-256
WorkerThread.give, do    run blocking calls one after another, and report each result on the event loop

A blob is on the disk under its name before a record refers to it. It never changes. What is read is checked against the
name; a blob that does not match counts as lost.

Why not `asyncio.to_thread`: it takes half as long again. Idle threads of its pool wake each other up, its futures have
locks, and a log is written several times a turn (ADR 55).
"""

import asyncio
import errno
import fcntl
import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tarmac.errors import StateUnavailable
from tarmac.models.messages import Blob

FULL = (errno.ENOSPC, errno.EDQUOT)


def sync(fd: int) -> None:
    """What was written to `fd` survives a power cut from here on."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone stops at the drive's own cache
    else:
        os.fdatasync(fd)


def sync_folder(path: Path) -> None:
    """The names in a folder survive a power cut from here on."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, offset: int) -> None:
    """All of `data` at `offset`; pwrite may take a part of it."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        offset += written
        rest = rest[written:]


def unavailable(path: Path, error: OSError, wish: str = "written") -> StateUnavailable:
    """The error for a person."""
    if error.errno in FULL:
        return StateUnavailable(
            f"the disk is full: {path} can't be {wish}",
            hint="make room and go on: nothing that was recorded before is lost or damaged",
        )
    return StateUnavailable(f"{path} can't be {wish}: {error.strerror or error}")


class Blobs:
    """The blobs of one task."""

    __slots__ = ("folder",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        if len(name) != 64 or not name.isalnum():
            raise ValueError(f"{name!r} is not a SHA-256")
        return self.folder / name

    def read(self, name: str) -> bytes | None:
        """Its bytes; None when it is gone or not what its name says."""
        try:
            data = self.path(name).read_bytes()
        except (OSError, ValueError):
            return None
        return data if sha256(data).hexdigest() == name else None

    def keep(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        """Store `data`; it is durable on return. (It waits for the disk: not for the event loop.)"""
        name = sha256(data).hexdigest()
        try:
            self.keep_all({name: data})
        except OSError as error:
            raise unavailable(self.folder / name, error) from None
        return Blob(name, len(data), media_type)

    def keep_all(self, contents: Mapping[str, bytes]) -> int:
        """Store them by name; they are durable on return. How many syncs it took."""
        if not contents:
            return 0
        syncs = 1
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(self.folder.parent)  # else a power cut might take all of them at once
            syncs += 1
        for name, data in contents.items():
            if self.read(name) is None:  # a damaged one is written anew
                self._write(self.path(name), data)
                syncs += 1
        sync_folder(self.folder)  # also for one that was there: its writer may not have come this far
        return syncs

    def _write(self, path: Path, data: bytes) -> None:
        new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data, 0)
            sync(fd)
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)


Result = TypeVar("Result")


class WorkerThread:
    """The thread starts with the first call, ends with close(), and starts again with the next call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def give(self, work: Callable[[], Result], then: Callable[[Result | None, BaseException | None], None]) -> None:
        """Run `work` after everything that was given before it."""
        loop = asyncio.get_running_loop()

        def job() -> None:
            result, failed = None, None
            try:
                result = work()
            except BaseException as error:  # whatever it is, it is for the one who waits
                failed = error
            try:
                loop.call_soon_threadsafe(then, result, failed)
            except RuntimeError:  # the loop is closed: nobody waits
                pass

        if self._thread is None:
            thread = threading.Thread(target=_work, args=(self._waiting,), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system allows no more threads: do it here, and try again with the next
                job()
                return
            self._thread = thread
        self._waiting.put(job)

    async def do(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`. Cancelling the caller does not stop the work."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def then(result: Result | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]  # None only where that is the result

        self.give(work, then)
        return await done

    def close(self) -> None:
        """End the thread after all work it was given."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread, self._waiting = None, SimpleQueue()


def _work(waiting: "SimpleQueue[Callable[[], None] | None]") -> None:
    while (job := waiting.get()) is not None:
        job()
