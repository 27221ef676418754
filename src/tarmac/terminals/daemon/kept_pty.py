"""The PTY of a shell that the daemon forked. It is read through the journal, so killing this program loses no byte."""

import asyncio
import fcntl
import os
import resource
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tarmac.errors import DaemonUnavailable, DirectoryUnavailable, ShellFailed
from tarmac.terminals.daemon import RequestKind
from tarmac.terminals.daemon.connection import Connection, RequestRefused, connect, refused
from tarmac.terminals.daemon.journal import Journal
from tarmac.terminals.process import birthmark
from tarmac.terminals.process.child import USED_UP, used_up
from tarmac.terminals.process.pty import Pty, make_sane, open_pair
from tarmac.terminals.settings import Settings


class Keeper:
    """The daemon, for one terminal: it forks its shells, and has them while nobody else does."""

    def __init__(self, folder: Path, id: str, *, cookie: str, settings: Settings) -> None:
        self.daemon_folder = folder
        self.id = id
        self.on_lost: Callable[[], None] = lambda: None  # the daemon is gone
        self.use_cookie(cookie)
        self._default_time_to_live = settings.outlive_seconds
        self.time_to_live: float | None = None  # once nobody is attached; None: as the settings say
        self._journal_limit = settings.spool_limit
        self._connection: Connection | None = None

    @property
    def folder(self) -> Path:
        """What is kept of the terminal."""
        return self.daemon_folder / "terminals" / self.id

    def use_cookie(self, cookie: str) -> None:
        """The next shell, and all that it starts, is found by the mark of this cookie."""
        self._mark = birthmark.of(cookie) or 0

    @property
    def lost(self) -> bool:
        """Whether there was a connection, and it has ended."""
        return self._connection is not None and self._connection.closed

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    def connect(self) -> None:
        """Have a connection; in a thread, as the daemon may have to be started."""
        if not self.connected:
            self._connection = connect(self.daemon_folder)

    def listen(self) -> None:
        """Hear of the shell's end, and of the daemon's, in the running event loop."""
        connection = self._need()
        connection.on_lost = lambda: self.on_lost()
        connection.listen(asyncio.get_running_loop())

    def _need(self) -> Connection:
        if self._connection is None or self._connection.closed:
            raise DaemonUnavailable("the terminal daemon is gone", hint="its shells ended with it; open another one")
        return self._connection

    def spawn(self, pty: "KeptPty", argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> "DaemonChild":
        mask = os.umask(0o077)
        os.umask(mask)
        wanted = {
            "id": self.id,
            "argv": list(argv),
            "cwd": str(cwd),
            "env": dict(env),
            "mark": self._mark,
            "time_to_live": self._default_time_to_live,
            "journal_limit": self._journal_limit,
            "umask": mask,
            "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        }
        connection = self._need()
        try:
            reply = connection.request(RequestKind.SPAWN, wanted, (pty.master, pty.slave))
        except RequestRefused as error:
            if error.number and error.file == str(cwd):
                raise DirectoryUnavailable(f"cannot start in {cwd}: {os.strerror(error.number)}") from error
            if error.number in USED_UP:
                raise used_up(OSError(error.number, ""), f"cannot start {argv[0]}") from error
            if error.number:
                raise ShellFailed(f"cannot start {argv[0]}: {os.strerror(error.number)}") from error
            raise
        pty.pipe = (reply.fds[0], reply.fds[1])
        pty.journal = Journal(str(self.folder / "journal"), pty.pipe, limit=self._journal_limit)
        return DaemonChild(reply.number("pid"), connection)

    def attach(self) -> tuple["KeptPty", "DaemonChild", list[int], int]:
        """The PTY and the shell that another program left; what it held, and from where on the daemon has read."""
        connection = self._need()
        try:
            reply = connection.request(RequestKind.ATTACH, {"id": self.id})
        except RequestRefused as error:
            raise refused(error, self.id) from None
        master, slave, *pipe = reply.fds[:4]
        pty = KeptPty(self, fds=(master, slave))
        pty.pipe = (pipe[0], pipe[1])
        pty.journal = Journal(str(self.folder / "journal"), pty.pipe, limit=self._journal_limit)
        child = DaemonChild(reply.number("pid"), connection)
        status = reply.header.get("status")
        child.known = status if isinstance(status, int) else None
        return pty, child, list(reply.fds[4:]), reply.number("drained_from")

    def hold(self, fds: Sequence[int]) -> None:
        """Have these stay open while nobody is attached."""
        self._need().request(RequestKind.HOLD, {}, fds)

    def leave(self) -> None:
        """Let the daemon have the terminal."""
        if self.connected:
            header = {} if self.time_to_live is None else {"time_to_live": self.time_to_live}
            try:
                self._need().request(RequestKind.LEAVE, header)
            except DaemonUnavailable:
                pass  # it goes on without a word, or is gone
        self.close()

    def forget(self) -> None:
        """The terminal is closed: nothing of it is kept."""
        if self.connected:
            try:
                self._need().request(RequestKind.FORGET, {"id": self.id})
            except DaemonUnavailable:
                pass
        self.close()

    def read_hidden(self, pid: int, file: str, offset: int, size: int) -> bytes:
        """A file of /proc/PID that only an ancestor may read. OSError: the daemon may not, either."""
        wanted = {"pid": pid, "file": file, "offset": offset, "size": size}
        try:
            return self._need().request(RequestKind.SYSTEM_CALL, wanted).body
        except DaemonUnavailable as error:
            raise PermissionError(f"/proc/{pid}/{file}") from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class DaemonChild:
    """A shell whose parent is the daemon, which tells its end."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid = pid
        self.status: int | None = None
        self.known: int | None = None  # it had ended when we came
        self._connection = connection
        self._told: Callable[[int], None] = lambda status: None

    def watch(
        self, on_exit: Callable[[int], None], *, on_death: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        def told(status: int) -> None:
            def reap() -> None:
                if self.status is None:
                    self.status = status
                    on_exit(status)

            if on_death is None:
                reap()
            else:
                on_death(reap)

        def exited(pid: int, status: int) -> None:
            if pid == self.pid:
                told(status)

        self._told = told
        self._connection.on_exited = exited
        if self.known is not None:
            asyncio.get_running_loop().call_soon(told, self.known)

    def lost(self) -> None:
        """The daemon is gone, and the kernel ended the shell with it."""
        self._told(-9)

    def kill(self) -> None:
        if self.status is None:
            try:
                os.kill(self.pid, 9)
            except OSError:
                pass

    def forget(self) -> None:
        self._told = lambda status: None
        self._connection.on_exited = lambda pid, status: None


class KeptPty(Pty):
    """A PTY whose other holder is the daemon. With `fds` it is one that another program had."""

    journal: Journal
    pipe: tuple[int, int] = (-1, -1)

    def __init__(self, keeper: Keeper, *, rows: int = 0, columns: int = 0, fds: tuple[int, int] | None = None) -> None:
        self._keeper = keeper
        if fds is None:
            super().__init__(rows=rows, columns=columns)
            return
        scratch = open_pair()  # the modes of the one we get are its program's: ordinary ones are a fresh PTY's
        try:
            sane = make_sane(scratch[1])
        finally:
            os.close(scratch[0])
            os.close(scratch[1])
        self._take_over(fds, sane)

    def _take_over(self, fds: tuple[int, int], sane: tuple[list[Any], bytes]) -> None:
        self.master, self.slave = fds
        self.path = os.ttyname(self.slave)
        self.rows, self.columns = struct.unpack("HHHH", fcntl.ioctl(self.slave, termios.TIOCGWINSZ, bytes(8)))[:2]
        self._sane, self._sane_bytes = sane
        self.child = None
        self._unsent = bytearray()
        self._reading = self._closed = False

    def go_on(
        self,
        child: DaemonChild,
        *,
        on_data: Callable[[bytes], None],
        on_exit: Callable[[int], None],
        on_death: Callable[[Callable[[], None]], None],
    ) -> None:
        """Read from now on, and hear of the shell's end."""
        self._on_data, self._on_exit = on_data, on_exit
        self.child = child
        child.watch(self._exited, on_death=on_death)
        self.resume()

    def fork(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> DaemonChild:
        return self._keeper.spawn(self, argv, cwd, env)

    def read(self) -> bytes:
        return self.journal.take(self.master)

    def close(self) -> None:
        if self._closed:
            return
        super().close()
        if self.pipe[0] >= 0:
            self.journal.close()
            os.close(self.pipe[0])
            os.close(self.pipe[1])
