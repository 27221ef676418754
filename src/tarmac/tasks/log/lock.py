"""Create, lock and recover a task's log.

create(folder)  → a new log with its header, or none at all
lock(folder)    → the log, locked for this process; TaskInUse names the process that has it
recover(folder) → all events; a torn tail is copied beside the log, then cut off
"""

import asyncio
import fcntl
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tarmac import __version__
from tarmac.errors import BadRequest, StateUnavailable, TaskInUse, TaskNotFound
from tarmac.events import TaskId
from tarmac.tasks.log.disk import Blobs, sync, sync_folder, unavailable, write_all
from tarmac.tasks.log.reader import BLOBS, LOG, Reading, read_all
from tarmac.tasks.log.records import Damage, Scanner, header_line

WRITER = "writer"  # a file with the writer's process id; the lock itself is on the log
_HEADER = 4096  # bytes that a header may have; what is torn of it is less
_AT_ONCE = 1 << 20  # bytes that are copied
LETTING_GO = 3.0  # seconds that the last child of a killed writer has to let go of the log

Result = TypeVar("Result")


async def locked(folder: Path) -> int:
    """The log, locked. One that a dead process has is let go of in a moment: by a child that it was just starting."""
    end = time.monotonic() + LETTING_GO
    while True:
        try:
            return lock(folder)
        except TaskInUse as error:
            if error.pid is None or is_alive(error.pid) or time.monotonic() > end:
                raise
        await asyncio.sleep(0.02)


async def to_its_end(work: Callable[[], Result], otherwise: Callable[[Result | None], None]) -> Result:
    """`work`, in a thread. When it fails or is no longer wanted, `otherwise` is called: only once the thread is done,
    for it would go on with the number of a file that was closed, whosever that is by then."""
    future = asyncio.get_running_loop().run_in_executor(None, work)

    def tidy(future: asyncio.Future[Result]) -> None:
        otherwise(None if future.exception() else future.result())

    try:
        return await asyncio.shield(future)
    except BaseException:
        try:
            await asyncio.wait([future])
        finally:
            if future.done():
                tidy(future)
            else:  # cancelled a second time
                future.add_done_callback(tidy)
        raise


def create(folder: Path, task: TaskId) -> tuple[int, int]:
    """A new log, open and locked, and its size."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise BadRequest(f"{folder} is there already") from None
    except OSError as error:
        raise unavailable(folder, error, "made") from None
    new = folder / f".{LOG}"
    line = header_line(task, at=time.time(), by=f"tarmac {__version__}")
    fd = None
    try:
        fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write_all(fd, line, 0)
        sync(fd)
        new.rename(folder / LOG)
        sync_folder(folder)
        sync_folder(folder.parent)
    except OSError as error:
        if fd is not None:
            os.close(fd)
        new.unlink(missing_ok=True)
        if not (folder / LOG).exists():
            folder.rmdir()
        raise unavailable(folder / LOG, error, "made") from None
    _sign(folder)
    return fd, len(line)


def lock(folder: Path) -> int:
    """The log, open for writing and locked."""
    try:
        fd = os.open(folder / LOG, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise TaskNotFound(f"there is no task in {folder}") from None
    except OSError as error:
        raise unavailable(folder / LOG, error) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        pid = writer_of(folder)
        who = "this process" if pid == os.getpid() else f"process {pid}" if pid else "another process"
        hint = f"`tarmac tasks show {folder.name}` tells what it does; end that process to go on with it here"
        raise TaskInUse(f"{who} is working on the task {folder.name}", pid=pid, hint=hint) from None
    except OSError as error:  # a file system that knows no locks
        os.close(fd)
        raise unavailable(folder / LOG, error, "locked") from None
    if not is_here(fd, folder / LOG):  # deleted between our opening and our locking it
        os.close(fd)
        raise TaskNotFound(f"there is no task in {folder}")
    _sign(folder)
    return fd


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        pass
    return True


def is_here(fd: int, path: Path) -> bool:
    """Whether `fd` is still the file of that name."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def check_unchanged(folder: Path, fd: int, size: int) -> None:
    """StateUnavailable when the log is no longer the file of its name, or not as long as we left it."""
    path = folder / LOG
    hint = "nothing is recorded any more, so that the task stops here; what it did until then is not undone"
    try:
        ours, there = os.fstat(fd), path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise StateUnavailable(f"{path} was removed while the task was running", hint=hint) from None
    if not os.path.samestat(ours, there):
        raise StateUnavailable(f"{path} was replaced while the task was running", hint=hint)
    if there.st_size != size:
        raise StateUnavailable(f"{path} was changed by another program while the task was running", hint=hint)


def _sign(folder: Path) -> None:
    try:
        (folder / WRITER).write_text(f"{os.getpid()}\n")
    except OSError:  # a full disk: then nobody learns who we are
        pass


def writer_of(folder: Path) -> int | None:
    """The process that said it writes the log in `folder`; it may be dead by now: only the lock is proof."""
    try:
        return int((folder / WRITER).read_text())
    except (OSError, ValueError):
        return None


def recover(folder: Path, fd: int) -> Reading:
    """Read all of it and cut off a torn tail. Whatever is cut is kept first: nothing is thrown away unseen."""
    try:
        reading = read_all(fd, Scanner(fetch=Blobs(folder / BLOBS).read))
        if reading.size == 0 and reading.torn and reading.torn.size > _HEADER:
            raise StateUnavailable(
                f"no line of it is a record of a task: {folder / LOG}",
                hint="it is of another version, or damaged as a whole; it is left as it is",
            )
        if reading.torn:
            _keep_torn(folder, fd, reading.torn)
            os.ftruncate(fd, reading.size)
            sync(fd)
        if reading.size == 0:  # not even the header was whole
            line = header_line(folder.name, at=time.time(), by=f"tarmac {__version__}")
            write_all(fd, line, 0)
            sync(fd)
            return Reading(header=None, events=[], damage=(), torn=reading.torn, size=len(line))
    except StateUnavailable:
        raise
    except OSError as error:
        raise unavailable(folder / LOG, error, "recovered") from None
    return reading


def _keep_torn(folder: Path, fd: int, torn: Damage) -> None:
    copy = os.open(
        folder / f"torn-{torn.offset}-{secrets.token_hex(2)}",
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
        0o600,
    )
    try:
        at = 0
        while data := os.pread(fd, min(_AT_ONCE, torn.size - at), torn.offset + at):
            write_all(copy, data, at)
            at += len(data)
        sync(copy)
    finally:
        os.close(copy)
