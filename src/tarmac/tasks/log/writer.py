"""Append facts to a task's log. They are on the disk before anything acts on them. One process writes a log at a time.

create_log, open_log → TaskLog, locked for this process; TaskInUse names the process that has it. A torn tail is copied
                       beside the log, then cut off

append(event) ─┐
append(event) ─┼→ one group: blobs, lines, one sync → sequence numbers → listeners, followers
add(event) ────┘   (events that arrive while a group is written form the next group)

Before a group is acknowledged, the log is compared with the file of its name. If the file was removed or replaced, the
group is not recorded and the log refuses everything from then on.

After an error nothing of the group is in the file. Events from `add` stay in line for the next group, in order. Events
from `append` do not: their callers were told that it failed.
"""

import asyncio
import fcntl
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from tarmac import __version__
from tarmac.errors import BadRequest, StateUnavailable, TaskInUse, TaskNotFound
from tarmac.events import TaskId
from tarmac.tasks.events import TaskEvent
from tarmac.tasks.log.disk import FULL, Blobs, WorkerThread, sync, sync_folder, unavailable, write_all
from tarmac.tasks.log.reader import BLOBS, LOG, Reading, read_all, wake_followers
from tarmac.tasks.log.records import Damage, Scanner, encode, frame, header_line

WRITER = "writer"  # a file with the writer's process id; the lock itself is on the log
_HEADER = 4096  # bytes that a header may have; what is torn of it is less
_AT_ONCE = 1 << 20  # bytes that are copied
LETTING_GO = 3.0  # seconds that the last child of a killed writer has to let go of the log
LINGER = 0.05  # seconds that what was added waits for company

Listener = Callable[[int, TaskEvent], None]
Result = TypeVar("Result")


@dataclass(slots=True)
class _Batch:
    """What one call wants recorded."""

    events: tuple[TaskEvent, ...]
    bodies: list[bytes]
    blobs: dict[str, bytes]
    done: asyncio.Future[int] | None  # None: nobody waits for it


class TaskLog:
    """An open log. Get one from `open_log` or `create_log`."""

    def __init__(self, folder: Path, fd: int, reading: Reading) -> None:
        self.folder = folder
        self.blobs = Blobs(folder / BLOBS)
        self.past = reading.events  # what was there when it was opened; clear it when it has been folded
        self.damage = reading.damage
        self.torn = reading.torn  # what was cut off at opening; the bytes are kept beside the log
        self.seq = len(reading.events)  # of the last record
        self.size = reading.size
        self.syncs = 0  # how often the disk was waited for
        self._fd = fd
        self._pending: list[_Batch] = []
        self._group: asyncio.Future[None] | None = None  # done when what is being written is
        self._writing = 0  # how many facts the group has
        self._timer: asyncio.TimerHandle | None = None
        self._listeners: list[Listener] = []
        self._failure: StateUnavailable | None = None  # of the last group
        self._broken = False
        self._closing: asyncio.Task[None] | None = None
        self._worker = WorkerThread(f"log of {folder.name}")

    async def append(self, *events: TaskEvent) -> int:
        """Record them, together and in order; they are durable on return. The number of the last.

        An error means that none of them is recorded. One who is cancelled while waiting does not take them back.
        """
        batch = self._batch(events, asyncio.get_running_loop().create_future())
        self._pending.append(batch)
        self._start()
        assert batch.done
        return await batch.done

    def add(self, event: TaskEvent) -> None:
        """Record it with the next group, or soon: for facts that nothing waits for."""
        self._pending.append(self._batch((event,), None))
        self._schedule()

    async def commit(self) -> None:
        """Return when all that was added is durable."""
        while self._pending or self._group:
            if self._broken and self._failure:
                raise self._failure
            self._start()
            assert self._group
            await asyncio.shield(self._group)
            if self._failure and not self._group:
                raise self._failure

    @property
    def pending(self) -> int:
        """How many facts have been given to it that listeners have not heard of yet."""
        return self._writing + sum(len(each.events) for each in self._pending)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(seq, event)` for each fact once it is durable, in order. What it returns takes it off."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def aclose(self) -> None:
        """Commit what is pending, then let others write. What could not be committed is an error, after closing."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await asyncio.wait([self._closing])  # the disk is being written to: not to be left in the middle
            raise

    # One group at a time

    def _batch(self, events: tuple[TaskEvent, ...], done: "asyncio.Future[int] | None") -> _Batch:
        if not events:
            raise BadRequest("there is nothing to record")
        if self._closing:
            raise StateUnavailable(f"the log in {self.folder} is closed")
        if self._broken and self._failure:
            raise self._failure
        bodies: list[bytes] = []
        blobs: dict[str, bytes] = {}
        for event in events:
            body, contents = encode(event)
            bodies.append(body)
            blobs |= contents
        return _Batch(events, bodies, blobs, done)

    def _schedule(self) -> None:
        """See to it that what is pending gets its turn."""
        if self._group or not self._pending:
            return
        if any(each.done for each in self._pending):
            self._start()
        elif self._timer is None and self._failure is None:  # after a failure, with the next who waits and is told
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._start)

    def _start(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._group is None and self._pending:
            self._group = asyncio.get_running_loop().create_future()
            self._commit()  # at once: whoever comes while it is being written is the next group

    def _commit(self) -> None:
        """Make a group of all that is pending now, and have it written."""
        group, self._pending = self._pending, []
        self._writing = sum(len(each.events) for each in group)
        self._worker.give(partial(self._write, group), partial(self._written, group))

    def _write(self, group: list[_Batch]) -> int:
        """In a thread: all of it is on the disk, so many bytes, or the log is as it was."""
        bodies = (body for each in group for body in each.bodies)
        data = b"".join(frame(seq, body) for seq, body in enumerate(bodies, self.seq + 1))
        check_unchanged(self.folder, self._fd, self.size)
        self.syncs += self.blobs.keep_all({name: content for each in group for name, content in each.blobs.items()})
        try:
            write_all(self._fd, data, self.size)
            self.syncs += 1
            sync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise
        check_unchanged(self.folder, self._fd, self.size + len(data))
        wake_followers(self.folder)
        return len(data)

    def _written(self, group: list[_Batch], size: int | None, error: BaseException | None) -> None:
        if isinstance(error, StateUnavailable):
            self._fail(group, error, broken=True)
        elif isinstance(error, OSError):
            self._fail(group, unavailable(self.folder / LOG, error), broken=error.errno not in FULL)
        elif error is not None:
            self._fail(group, StateUnavailable(f"{self.folder / LOG} can't be written: {error!r}"), broken=True)
        else:
            self._failure = None
            self.size += size or 0
            for each in group:
                self._recorded(each)
        assert self._group
        done, self._group, self._writing = self._group, None, 0
        done.set_result(None)
        self._schedule()

    def _recorded(self, batch: _Batch) -> None:
        for event in batch.events:
            self.seq += 1
            self._writing -= 1
            for listener in self._listeners[:]:
                try:
                    listener(self.seq, event)
                except Exception as error:  # a listener's trouble is not ours, nor that of whoever appended
                    context = {"message": "a listener of a task's log failed", "exception": error}
                    asyncio.get_running_loop().call_exception_handler(context)
        if batch.done and not batch.done.done():
            batch.done.set_result(self.seq)

    def _fail(self, group: list[_Batch], failure: StateUnavailable, *, broken: bool) -> None:
        self._failure, self._writing = failure, 0
        self._broken = broken  # after a failed sync nobody knows what the disk has: only opening it again tells
        self._pending = [each for each in group if each.done is None] + self._pending
        for each in group:
            if each.done and not each.done.done():
                each.done.set_exception(failure)

    async def _close(self) -> None:
        try:
            await self.commit()
        finally:
            if self._timer:
                self._timer.cancel()
            if is_here(self._fd, self.folder / LOG):
                try:
                    (self.folder / WRITER).unlink(missing_ok=True)
                except OSError:
                    pass
            self._worker.close()
            os.close(self._fd)


@asynccontextmanager
async def open_log(folder: Path) -> AsyncIterator[TaskLog]:
    """The log in `folder`, to be written to by this process alone. A torn tail is cut off and kept beside it."""
    fd = await locked(folder)
    reading = await to_its_end(lambda: recover(folder, fd), lambda _: os.close(fd))
    async with _closing(TaskLog(folder, fd, reading)) as log:
        yield log


@asynccontextmanager
async def create_log(folder: Path, task: TaskId) -> AsyncIterator[TaskLog]:
    """A new log in `folder`, which must not be there yet. It exists with its header or not at all."""
    fd, size = await to_its_end(lambda: create(folder, task), lambda made: os.close(made[0]) if made else None)
    reading = Reading(header=None, events=[], damage=(), torn=None, size=size)
    async with _closing(TaskLog(folder, fd, reading)) as log:
        yield log


@asynccontextmanager
async def _closing(log: TaskLog) -> AsyncIterator[TaskLog]:
    try:
        yield log
    finally:
        await log.aclose()


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
