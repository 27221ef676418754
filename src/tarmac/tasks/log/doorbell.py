"""How a process that follows a log is woken by the one that writes it, without polling.

Each follower has a named pipe in the task's `followers` folder; the writer sends a byte into each after a commit.
A pipe gets its name only once its reader has it open, so one that nobody reads is a dead follower's: the writer
removes it.

(Why not inotify: Linux alone has it, the standard library has not, and a watch would also wake for half a write.)
"""

import asyncio
import errno
import os
import secrets
from pathlib import Path

FOLDER = "followers"


def ring(folder: Path) -> None:
    """Wake all who follow the log in `folder`. It never waits and never raises."""
    followers = f"{folder}/{FOLDER}"
    if not os.access(followers, os.F_OK):  # with each commit, and mostly nobody follows: an error would cost more
        return
    try:
        names = os.listdir(followers)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        if name.startswith("."):
            continue
        path = folder / FOLDER / name
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


class Doorbell:
    """A follower's end. Where no pipe can be made (a read-only disk, a full one) it looks every `patience` seconds."""

    __slots__ = ("_fds", "_path", "_patience")

    def __init__(self, folder: Path, *, patience: float = 0.5) -> None:
        self._patience = patience
        self._fds: list[int] = []
        self._path = folder / FOLDER / secrets.token_hex(8)

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
        """Return after the next ring."""
        if self.polls:
            await asyncio.sleep(self._patience)
            return
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._fds[0], _set, rung)
        try:
            await rung
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


def _set(rung: "asyncio.Future[None]") -> None:
    if not rung.done():
        rung.set_result(None)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a disk that became read-only
        pass
