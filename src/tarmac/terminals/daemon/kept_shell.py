"""What the daemon has: shells, and the programs that are attached to them.

KeptShell        forks the shell, waits for it, and reads its PTY while no program does
AttachedClient   a program that talks to the daemon
"""

# ruff: noqa: PTH103, PTH108, PTH208
# (the daemon does without pathlib)

import array
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import termios
import time
from collections.abc import Mapping, Sequence

from tarmac.terminals.daemon import Refusal
from tarmac.terminals.daemon.journal import Journal
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.process import birthmark, prctl

DRAIN_BUDGET = 1 << 20  # bytes a turn of the loop, so that one flood does not keep others waiting


class KeptShell:
    """A shell, its PTY and its journal. `host` is the program that has it now, if any."""

    def __init__(
        self, id: str, folder: str, fds: Sequence[int], *, mark: int, time_to_live: float, journal_limit: int
    ) -> None:
        self.id = id
        self.folder = folder
        self.master, self.slave = fds
        self.mark = mark
        self.time_to_live = time_to_live
        self.pid = -1
        self.status: int | None = None
        self.pidfd = -1
        self.host: int | None = os.getpid()  # its pid; None: nobody is attached
        self.left_at = time.monotonic()  # when the last host went
        self.held: list[int] = []
        self.ending_at: float | None = None  # asked to end; by force from then on
        os.makedirs(f"{folder}/journal", 0o700, exist_ok=True)
        for each in os.listdir(f"{folder}/journal"):
            os.unlink(f"{folder}/journal/{each}")  # of a shell before this one
        self.pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.journal_limit = journal_limit
        self.drained_from = 0
        self._journal: Journal | None = None

    def start(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], *, umask: int, files: int) -> None:
        """Fork it, with its host's `umask` and limit on open `files`. OSError says which name is the cause."""
        told, tells = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
            if pid == 0:
                try:
                    self._become(argv, cwd, env, tells, umask, files)
                finally:
                    os._exit(127)
            os.close(tells)
            tells = -1
            problem = os.read(told, 8)
        finally:
            os.close(told)
            if tells >= 0:
                os.close(tells)
        if problem:
            os.waitpid(pid, 0)
            number, at_cwd = struct.unpack("ii", problem)
            raise OSError(number, os.strerror(number), cwd if at_cwd else argv[0])
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)

    def _become(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], tells: int, umask: int, files: int
    ) -> None:
        """In the child: lead a session on this terminal, and be the shell."""
        at_cwd = 0
        try:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            for number in (*range(1, 32), *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a blocked SIGINT would be inherited
            os.umask(umask)
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard) if hard >= 0 else files, hard))
            prctl.become_subreaper()
            prctl.die_with_parent(signal.SIGKILL)  # a daemon that was killed can't end it
            birthmark.put(self.mark)
            at_cwd = 1
            os.chdir(cwd)
            at_cwd = 0
            os.execvpe(argv[0], list(argv), dict(env))
        except OSError as error:
            os.write(tells, struct.pack("ii", error.errno or errno.EIO, at_cwd))

    # Its end

    def look(self) -> bool:
        """Whether it has ended, with `status` its exit code or minus the signal. It stays a zombie until close()."""
        if self.status is None and self.pid > 0:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                self.status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return self.status is not None

    # While nobody else reads

    @property
    def journal(self) -> Journal:
        """Opened when it is first needed: the host's file positions are its own."""
        if self._journal is None:
            self._journal = Journal(f"{self.folder}/journal", self.pipe, limit=self.journal_limit)
        return self._journal

    def left(self) -> None:
        """Its host is gone: what that one had in hand comes first."""
        self.host = None
        self.left_at = time.monotonic()
        try:
            self.journal.recover()
        except OSError:
            pass  # no room, or somebody removed its folder
        if self._journal is not None:
            self.drained_from = self._journal.end
            self.drain()

    def drain(self) -> None:
        """Read what there is, within a budget."""
        budget = DRAIN_BUDGET
        while budget > 0:
            try:
                moved = self.journal.absorb(self.master)
            except OSError:  # nothing there, or hung up
                return
            if not moved:
                return
            budget -= moved

    def given_away(self, host: int) -> None:
        """A program reads it from now on."""
        self.host = host
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @property
    def expires_at(self) -> float | None:
        """When nobody is believed to want it any more; None: somebody has it."""
        return self.left_at + self.time_to_live if self.host is None else None

    def signal(self, number: int) -> None:
        if self.pid > 0 and not self.look():
            try:
                os.kill(self.pid, number)
            except OSError:
                pass

    def hold(self, fds: Sequence[int]) -> None:
        for each in self.held:
            os.close(each)
        self.held = list(fds)

    def close(self) -> None:
        """Let go of everything: the kernel hangs up what still runs on its terminal."""
        if self._journal is not None:
            self._journal.close()
        for fd in (self.master, self.slave, *self.pipe, self.pidfd, *self.held):
            if fd >= 0:
                os.close(fd)
        if self.pid > 0:
            try:
                os.waitpid(self.pid, os.WNOHANG)
            except OSError:
                pass


MOST_FDS = 8  # beside one frame
SEND_PATIENCE = 5.0  # a client that does not read for so long is let go


class RequestRejected(Exception):
    """A request is not done; the client is told why."""

    def __init__(self, code: Refusal, what: str, number: int = 0) -> None:
        super().__init__(what)
        self.code, self.what, self.number = code, what, number


class AttachedClient:
    """A connected program, and the terminal it has."""

    def __init__(self, stream: socket.socket, pid: int) -> None:
        self.stream = stream
        self.pid = pid
        self.parser = FrameParser()
        self.fds: list[int] = []  # received, and of no frame yet
        self.shell: KeptShell | None = None

    def receive(self) -> list[Frame] | None:
        """The frames that have come; None: it is gone."""
        room = MOST_FDS * struct.calcsize("i")
        try:
            data, extra, _, _ = self.stream.recvmsg(1 << 18, socket.CMSG_SPACE(room), socket.MSG_CMSG_CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        for level, kind, raw in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(raw[: len(raw) - len(raw) % found.itemsize])
                self.fds += found
        return self.parser.feed(data) if data else None

    def send(self, frame: Frame, fds: tuple[int, ...] = ()) -> None:
        data = encode(frame)
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.stream.settimeout(SEND_PATIENCE)
        try:
            sent = self.stream.sendmsg([data], extra)
            if sent < len(data):
                self.stream.sendall(data[sent:])
        except OSError:
            pass  # its end is seen by the next read
        finally:
            self.stream.setblocking(False)

    def take_fds(self, number: int | None = None) -> list[int]:
        """The descriptors that came with this frame: so many, or all."""
        count = len(self.fds) if number is None else number
        if len(self.fds) < count:
            raise RequestRejected(Refusal.BAD_REQUEST, f"{count} descriptors belong to this request")
        found, self.fds = self.fds[:count], self.fds[count:]
        return found

    def close(self) -> None:
        self.stream.close()
        for each in self.fds:
            os.close(each)
        self.fds = []
