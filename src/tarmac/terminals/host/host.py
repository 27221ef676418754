"""The host: it serves clients, in this process or as a process that outlives the one that started it.

Host.serve(stream)  says hello, then starts a new session or continues an old one
relay(session)      connects our standard input and output to the host process of that session
listen(path)        runs a host for every program of this user, until it is ended

Over ssh or `docker exec`, the connection is the standard input and output of `relay`. It passes both descriptors to the
host and waits. So the host reads and writes them itself, and survives when they break.
"""

import asyncio
import os
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from tarmac.errors import BadFrame, ConnectionLost, DirectoryUnavailable, PlaceUnavailable, TarmacError, Trouble
from tarmac.paths import private_dir, state_dir
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.host.byte_stream import ByteStream, stream_of_pipes, stream_of_socket
from tarmac.terminals.host.host_session import HostSession
from tarmac.terminals.host.wire_values import (
    OLDEST,
    VERSION,
    Header,
    HostFrameKind,
    error_to_wire,
    seconds,
    text,
    whole,
)
from tarmac.terminals.open import ThisMachine

TIME_TO_LIVE = 3600.0  # seconds that terminals go on without their client
SWEEP_EVERY = 1.0
HELLO_PATIENCE = 30.0  # a connection that says nothing for so long is ended


class Host:
    """Sessions, each with its terminals. `ended` is called when the last session is over."""

    def __init__(self, *, ended: Callable[[], None] | None = None) -> None:
        self.sessions: dict[str, HostSession] = {}
        self._machine = ThisMachine()
        self._ended = ended
        self._sweeper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await asyncio.gather(*self._closing, *(each.aclose() for each in self.sessions.values()))
        self.sessions.clear()

    async def serve(self, stream: ByteStream) -> None:
        """Serve one connection to its end. Its session outlives it."""
        parser = FrameParser()
        session: HostSession | None = None

        def take(data: bytes) -> bool:
            nonlocal session
            for frame in parser.feed(data):
                if session is not None:
                    session.receive(frame)
                elif frame.kind == HostFrameKind.HELLO:
                    session = self._session(frame.header)
                    session.attach(stream, frame.header)
                    patience.reschedule(None)
            return session is None or not session.over

        try:
            async with asyncio.timeout(HELLO_PATIENCE) as patience:
                await stream.receive(take)
            if session is not None and session.over:
                await asyncio.shield(self._end(session))
        except TarmacError as error:  # the client is told, if it still listens
            stream.write(encode(Frame(HostFrameKind.FAILED, 0, error_to_wire(error))))
        except TimeoutError:
            pass
        finally:
            if session is not None:
                session.detach(stream)
            await stream.aclose()

    def _session(self, hello: Header) -> HostSession:
        version = whole(hello, "version")
        if version < OLDEST or whole(hello, "oldest", version) > VERSION:
            raise PlaceUnavailable(
                f"the host there speaks version {OLDEST} to {VERSION}, and this Tarmac version {version}",
                trouble=Trouble.VERSION,
                hint="update the older of the two",
            )
        id = text(hello, "session")
        if not id:
            raise BadFrame("a session must have a name")
        known = self.sessions.get(id)
        if known is not None and not known.over:
            return known
        if hello.get("new") is not True:
            raise ConnectionLost("the host there no longer has these terminals", hint="open new ones")
        self.sessions[id] = HostSession(id, self._machine, time_to_live=seconds(hello, "ttl", TIME_TO_LIVE))
        return self.sessions[id]

    def _end(self, session: HostSession) -> "asyncio.Task[None]":
        self.sessions.pop(session.id, None)
        task = asyncio.get_running_loop().create_task(self._close(session))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _close(self, session: HostSession) -> None:
        await session.aclose()
        if not self.sessions and self._ended is not None:
            self._ended()

    async def _sweep(self) -> None:
        """End sessions whose client has been away for too long."""
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            now = time.monotonic()
            for each in list(self.sessions.values()):
                if not each.connected and now - each.left_at > each.time_to_live:
                    self._end(each)


HANDED = b"\xff"  # the first byte of a connection that hands over two descriptors; no frame begins with it
NOBODY = 60.0  # seconds that a new host waits for its first connection
LONGEST_PATH = 100  # of a socket: the kernel takes 107 bytes


def runtime_dir() -> Path:
    """A private folder for sockets, in $XDG_RUNTIME_DIR if that can be used, else in /tmp.

    Another user can make the one in /tmp first. Then it is in the state folder.
    """
    given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if given.is_absolute() and os.access(given, os.W_OK) and len(os.fsencode(given)) < LONGEST_PATH - 40:
        with suppress(DirectoryUnavailable):
            return private_dir(given / "tarmac")
    try:
        return private_dir(Path(f"/tmp/tarmac-run-{os.geteuid()}"))
    except DirectoryUnavailable:
        return private_dir(state_dir(os.environ) / "run")


def socket_path(session: str) -> Path:
    """Where the host of that session listens."""
    return runtime_dir() / f"{session[:16]}.sock"


def relay(session: str, *, new: bool, ready: Callable[[], None]) -> None:
    """Pass standard input and output to the host of `session`, and wait until the connection ends.

    `ready` is called when the host is there, before it writes anything.
    """
    path = socket_path(session)
    with _connect(path, new=new) as control:
        ready()
        socket.send_fds(control, [HANDED], [0, 1])
        poll = select.poll()
        poll.register(control, select.POLLIN)
        for fd in (0, 1):
            poll.register(fd, 0)  # only that the other side is gone
        while not poll.poll():
            pass


def ensure(session: str, *, new: bool) -> None:
    """See that the host of `session` runs."""
    _connect(socket_path(session), new=new).close()


def _connect(path: Path, *, new: bool) -> socket.socket:
    """Connect to the host, and start it first if it is wanted and not running."""
    if (found := _try(path)) is not None:
        return found
    if not new:
        raise PlaceUnavailable(
            "the host there no longer runs, and its terminals have ended with it",
            trouble=Trouble.NOT_FOUND,
            hint="open new terminals",
        )
    _sweep(path.parent)
    listening = bind(path)  # before the fork: then nobody has to wait for it
    if os.fork() == 0:
        _become_host(listening, path)
    listening.close()
    if (found := _try(path)) is None:
        raise PlaceUnavailable(f"the host does not answer at {path}")
    return found


def _try(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(os.fspath(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError:
        connection.close()
        raise
    return connection


def bind(path: Path) -> socket.socket:
    """Listen at `path`, in place of a host that is gone."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        listening.bind(os.fspath(path))
        path.chmod(0o600)
        listening.listen(64)
    except OSError:
        listening.close()
        raise
    return listening


def _sweep(folder: Path) -> None:
    """Remove the sockets of hosts that were killed."""
    for each in folder.glob("*.sock"):
        try:
            found = _try(each)
            if found is None:
                each.unlink(missing_ok=True)
            else:
                found.close()
        except OSError:
            pass


def _become_host(listening: socket.socket, path: Path) -> None:
    """In the child: leave the session that a broken connection would end, and serve. Never returns."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        os.close(nowhere)
        os.chdir(os.environ.get("HOME") or "/")
        asyncio.run(_serve(listening, path, lasting=False))
        code = 0
    except BaseException:
        pass
    finally:
        os._exit(code)


def listen(path: Path) -> None:
    """Serve all programs of this user at `path`, until SIGTERM or SIGINT."""
    asyncio.run(_serve(bind(path), path, lasting=True))


async def _serve(listening: socket.socket, path: Path, *, lasting: bool) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    served = False

    def ended() -> None:
        if not lasting:
            over.set()

    def nobody() -> None:
        if not host.sessions and not served:
            ended()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    listening.setblocking(False)
    connections: set[asyncio.Task[None]] = set()
    async with Host(ended=ended) as host:
        patience = loop.call_later(NOBODY, nobody)

        async def accept() -> None:
            nonlocal served
            while True:
                connection, _ = await loop.sock_accept(listening)
                served = True
                task = loop.create_task(_serve_one(host, connection))
                connections.add(task)
                task.add_done_callback(connections.discard)

        accepting = loop.create_task(accept())
        await over.wait()
        patience.cancel()
        accepting.cancel()
        if _is_ours(listening, path):
            path.unlink(missing_ok=True)
    listening.close()
    for each in connections:
        each.cancel()
    await asyncio.gather(accepting, *connections, return_exceptions=True)


def _is_ours(listening: socket.socket, path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode) and listening.getsockname() == os.fspath(path)
    except OSError:
        return False


async def _serve_one(host: Host, connection: socket.socket) -> None:
    """Serve a socket, or the two descriptors that it brings."""
    loop = asyncio.get_running_loop()
    connection.setblocking(False)
    if not _is_same_user(connection):
        connection.close()
        return
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await asyncio.wait_for(readable.wait(), NOBODY)
        first, fds, _, _ = socket.recv_fds(connection, 1, 2)
    except (OSError, TimeoutError):
        connection.close()
        return
    finally:
        loop.remove_reader(connection)
    stream: ByteStream
    if first == HANDED and len(fds) == 2:
        stream = await stream_of_pipes(fds[0], fds[1], ended=connection.close)
    elif first and not fds:
        stream = await stream_of_socket(connection, first=first)
    else:
        connection.close()
        return
    await host.serve(stream)


def _is_same_user(connection: socket.socket) -> bool:
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the folder is private
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (0, os.geteuid())


def main(arguments: list[str]) -> int:
    """`python -m tarmac.terminals.host SESSION` starts a host here; with `--listen PATH` it serves there."""
    if arguments[:1] == ["--listen"] and len(arguments) == 2:
        listen(Path(arguments[1]))
        return 0
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        ensure(arguments[0], new=True)
        return 0
    print("usage: python -m tarmac.terminals.host (SESSION | --listen PATH)", file=sys.stderr)
    return 2
