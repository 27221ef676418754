"""A program's connection to the daemon. It holds one terminal, and starts the daemon if none is running.

    connect(folder) → Connection → request(kind, …) → the answer; `on_exited`, `on_lost` are called by the event loop

Requests block until they are answered. The daemon is on this machine and answers within a millisecond.
"""

import array
import asyncio
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import BadFrame, DaemonUnavailable, TerminalBusy, TerminalNotFound
from tarmac.paths import private_dir, state_dir
from tarmac.terminals.daemon import VERSION, Refusal, RequestKind
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.process import birthmark

PATIENCE = 10.0  # seconds for an answer, on a very busy machine
START_PATIENCE = 20.0
TRIES = 5
_MOST_FDS = 16
_BOOT = """
import sys
sys.path.insert(0, sys.argv[1])
from tarmac.terminals.daemon.process import main
main(sys.argv[2])
"""


class NoDaemon(DaemonUnavailable):
    """None runs."""


class DaemonSilent(DaemonUnavailable):
    """It runs, and does not answer."""


class RequestRefused(DaemonUnavailable):
    """The daemon answered, and did not do it."""

    def __init__(self, header: Mapping[str, object]) -> None:
        self.code = str(header.get("code", ""))
        self.number = int(str(header.get("errno") or 0))
        self.file = str(header.get("file", ""))
        super().__init__(f"the terminal daemon refused: {header.get('what', 'no reason given')}")


@dataclass(frozen=True, slots=True)
class DaemonReply:
    header: Mapping[str, object]
    body: bytes
    fds: tuple[int, ...]

    def number(self, name: str) -> int:
        value = self.header.get(name)
        if not isinstance(value, int):
            raise BadFrame(f"the terminal daemon did not say its {name}")
        return value


def daemon_folder(environ: Mapping[str, str]) -> Path:
    """Where the daemon has its socket, and all it keeps of terminals."""
    return state_dir(environ) / "daemon"


class Connection:
    """One connection. Close it, and the daemon takes over what it had."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._parser = FrameParser()
        self._fds: list[int] = []
        self._requests = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exited: list[tuple[int, int]] = []  # before anybody listened
        self.version = 0
        self.daemon = 0  # its pid
        self.on_exited: Callable[[int, int], None] = lambda pid, status: None
        self.on_lost: Callable[[], None] = lambda: None

    @property
    def closed(self) -> bool:
        return self._stream.fileno() < 0

    def hello(self) -> None:
        reply = self.request(RequestKind.HELLO, {"version": VERSION})
        self.version, self.daemon = reply.number("version"), reply.number("pid")

    def request(self, kind: RequestKind, header: Mapping[str, object], fds: Sequence[int] = ()) -> DaemonReply:
        """Ask, and wait for the answer. RequestRefused, or DaemonUnavailable when it is gone."""
        self._requests += 1
        number = self._requests
        data = encode(Frame(kind, number, header))
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have said why before it closed
                sent = self._stream.sendmsg([data], extra)
                if sent < len(data):
                    self._stream.sendall(data[sent:])
            end = time.monotonic() + PATIENCE
            while (left := end - time.monotonic()) > 0:
                self._stream.settimeout(left)
                for frame in self._receive():
                    if frame.kind == RequestKind.ERROR and frame.request in (0, number):
                        raise RequestRefused(frame.header)
                    if frame.kind == RequestKind.OK and frame.request == number:
                        found, self._fds = tuple(self._fds), []
                        return DaemonReply(frame.header, frame.body, found)
                    self._event(frame)
        except TimeoutError:
            pass
        except (OSError, BadFrame) as error:
            if isinstance(error, RequestRefused):
                raise
            raise DaemonUnavailable(f"the terminal daemon is gone: {error}") from error
        pid = struct.unpack("iii", self._stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        raise DaemonSilent(
            f"the terminal daemon (process {pid}) did not answer within {PATIENCE:g} s",
            hint=f"if it is stopped, `kill -CONT {pid}` continues it",
        )

    def _receive(self) -> list[Frame]:
        room = socket.CMSG_SPACE(_MOST_FDS * struct.calcsize("i"))
        data, extra, _, _ = self._stream.recvmsg(1 << 18, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, raw in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(raw[: len(raw) - len(raw) % found.itemsize])
                self._fds += found
        if not data:
            raise ConnectionResetError("it closed the connection")
        return self._parser.feed(data)

    # Events

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have `on_exited` and `on_lost` called by the loop."""
        self._loop = loop
        loop.add_reader(self._stream.fileno(), self._readable)
        for pid, status in self._exited:
            loop.call_soon(self._tell, pid, status)
        self._exited.clear()

    def _readable(self) -> None:
        if not select.select([self._stream], [], [], 0)[0]:
            return
        try:
            for frame in self._receive():
                self._event(frame)
        except (OSError, BadFrame):
            self.close()
            self.on_lost()

    def _event(self, frame: Frame) -> None:
        match frame.kind, frame.header.get("pid"), frame.header.get("status"):
            case RequestKind.EXITED, int(pid), int(status) if self._loop is not None:
                self._loop.call_soon(self._tell, pid, status)
            case RequestKind.EXITED, int(pid), int(status):
                self._exited.append((pid, status))

    def _tell(self, pid: int, status: int) -> None:
        self.on_exited(pid, status)

    def close(self) -> None:
        """May be called twice."""
        if self._loop is not None:
            self._loop.remove_reader(self._stream.fileno())
            self._loop = None
        self._stream.close()
        for each in self._fds:
            os.close(each)
        self._fds = []


def connect(folder: Path, *, start: bool = True) -> Connection:
    """A connection to the daemon of `folder`. It blocks: a daemon that has to be started takes a while.

    Without `start` NoDaemon is raised where none runs.
    """
    problem: Exception | None = None
    for attempt in range(TRIES):
        try:
            connection = _connect(folder)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            problem = error
            if start:
                start_daemon(folder)
            elif not _is_running(folder):
                raise NoDaemon("no terminal daemon runs") from error
            time.sleep(0.05 * attempt)  # another one may be coming up, or leaving
            continue
        except OSError as error:
            raise DaemonUnavailable(f"cannot reach the terminal daemon: {error.strerror}") from error
        try:
            connection.hello()
        except RequestRefused as error:
            connection.close()
            if error.code == Refusal.PEER:
                error.hint = "programs that a terminal's commands start can't use other terminals"
            raise
        except DaemonSilent:
            connection.close()
            raise
        except DaemonUnavailable as error:  # it was just leaving
            connection.close()
            problem = error
            continue
        return connection
    if isinstance(problem, FileNotFoundError):
        raise DaemonUnavailable(
            "the terminal daemon runs, but somebody removed its socket",
            hint="it makes another one within 10 seconds: try again then",
        ) from problem
    raise DaemonUnavailable(
        f"the terminal daemon can't be reached: {problem}", hint=f"look at {folder}: it must be yours alone"
    ) from problem


def _is_running(folder: Path) -> bool:
    """Whether a daemon has locked the folder, so that a missing socket does not mean that there are no terminals."""
    return _is_locked(folder) or _is_locked(folder / "lock")


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a network file system can't lock a folder
        return False
    finally:
        os.close(fd)
    return False


def _connect(folder: Path) -> Connection:
    """Through the folder's descriptor: its path may be too long for an address."""
    here = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.settimeout(PATIENCE)
        stream.connect(f"/proc/self/fd/{here}/socket")
    except BaseException:
        stream.close()
        raise
    finally:
        os.close(here)
    return Connection(stream)


def start_daemon(folder: Path) -> None:
    """Start the daemon in a session of its own, as nobody's child. Returns when it listens, or another one does."""
    private_dir(folder)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    (folder / "terminals").mkdir(mode=0o700, exist_ok=True)
    if birthmark.is_marked(os.getpid()) or birthmark.COOKIE in os.environ:
        raise DaemonUnavailable(
            "a command of a terminal can't start the terminal daemon", hint="it would end with that terminal"
        )
    root = Path(__file__).parents[3]  # a folder, or a zip
    try:
        starter = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, str(root), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            said, problem = starter.communicate(timeout=START_PATIENCE)
        except subprocess.TimeoutExpired:
            starter.kill()
            starter.communicate()
            raise DaemonUnavailable(f"the terminal daemon did not come up within {START_PATIENCE:g} s") from None
    except OSError as error:
        raise DaemonUnavailable(f"cannot start the terminal daemon: {error.strerror}") from error
    if b"ready" not in said:
        last = problem.decode(errors="replace").strip().rpartition("\n")[2]
        raise DaemonUnavailable(f"the terminal daemon did not start: {last or 'it said nothing'}")


def refused(error: RequestRefused, id: str) -> Exception:
    """The error of an attachment, for the caller."""
    if error.code == Refusal.UNKNOWN_TERMINAL:
        return TerminalNotFound(f"Terminal {id} not found", hint="`tarmac terminals list` shows those there are")
    if error.code == Refusal.IN_USE:
        return TerminalBusy(f"terminal {id} is in use: {error.what.rpartition(': ')[2]}")
    return error
