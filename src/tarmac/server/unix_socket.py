"""The private socket of a process that has tasks open, and connections to the app of another process.

<state>/apps/PID    one for each process, in a folder of mode 0700
listen(running)       clients must be the same user, and no process of an agent
connect(state, pid)   servers must be the same user, and no process of an agent

Both send frames (`terminals/frames.py`): the text frames of docs/web.md, and the binary ones of a watched terminal.
In an AppConnection verbs go out, and replies and frames come in:

    connection = AppConnection(await connect(path), heard=…)
    await connection.open("cli")
    await connection.request("create", text="make the tests pass")
"""

import asyncio
import base64
import itertools
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, Literal

from tarmac.errors import BadFrame, BadRequest, DirectoryUnavailable, PeerGone, PeerRefused
from tarmac.events import TaskId
from tarmac.loopback.peer import Peer, peer_of_socket
from tarmac.paths import private_dir
from tarmac.policy.approval import Picture
from tarmac.tasks.log.writer import is_alive
from tarmac.terminals.frames import Frame, FrameParser, encode

FOLDER: Final = "apps"
AT_ONCE: Final = 64  # connections
READ_SIZE: Final = 256 << 10
TO_CONNECT: Final = 3.0  # seconds
REFUSED: Final = {
    Peer.AGENT: "processes that run in Tarmac's terminals may not join tasks",
    Peer.STRANGER: "it belongs to another user",
    Peer.GONE: "the process that asked has ended",
}


class FrameType(IntEnum):
    """The kind of a frame."""

    TEXT = 1
    BINARY = 2
    REFUSED = 3


class Channel:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._parser = FrameParser()
        self._frames: list[Frame] = []

    async def receive(self) -> str | bytes:
        """The next frame. PeerGone: there is none."""
        while not self._frames:
            try:
                data = await self._reader.read(READ_SIZE)
                self._frames = self._parser.feed(data)
            except (OSError, BadFrame) as error:
                raise PeerGone(f"the connection broke: {error}") from None
            if not data:
                raise PeerGone("the other side has closed the connection")
        frame = self._frames.pop(0)
        match frame.kind:
            case FrameType.TEXT:
                return frame.body.decode("utf-8", "replace")
            case FrameType.REFUSED:
                raise PeerRefused(frame.body.decode("utf-8", "replace"))
            case _:
                return frame.body

    async def send_text(self, text: str) -> None:
        await self._send(FrameType.TEXT, text.encode("utf-8", "surrogatepass"))

    async def send_bytes(self, data: bytes) -> None:
        await self._send(FrameType.BINARY, data)

    async def refuse(self, why: str) -> None:
        await self._send(FrameType.REFUSED, why.encode())

    async def _send(self, kind: FrameType, body: bytes) -> None:
        try:
            self._writer.write(encode(Frame(kind, body=body)))
            await self._writer.drain()
        except (OSError, RuntimeError):
            raise PeerGone("the other side has closed the connection") from None

    async def close(self, code: int = 1000, why: str = "") -> None:
        """(As a WebSocket is closed; the code is for those.)"""
        self._writer.close()


Serve = Callable[[Channel], Coroutine[object, object, None]]


@asynccontextmanager
async def listen(state: Path, serve: Serve) -> AsyncIterator[Path]:
    """Serve every client that connects, until the block ends. OSError, DirectoryUnavailable: no socket can be made."""
    folder = await asyncio.to_thread(private_dir, state / FOLDER)
    await asyncio.to_thread(_sweep, folder)
    served: set[asyncio.Task[None]] = set()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer)
        connection: socket.socket = writer.get_extra_info("socket")
        try:
            who = await asyncio.to_thread(peer_of_socket, connection, below_us=True)
            if why := REFUSED.get(who, "" if len(served) <= AT_ONCE else "too many clients have joined"):
                await channel.refuse(why)
                return
            await serve(channel)
        except (OSError, PeerGone):  # it left
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(receive(reader, writer))
        served.add(task)
        task.add_done_callback(served.discard)

    path, listening = _bound(folder)
    server = None
    try:
        server = await asyncio.start_unix_server(connected, sock=listening)
        yield path
    finally:
        path.unlink(missing_ok=True)
        if server is not None:
            server.close()
        else:
            listening.close()
        for each in list(served):
            each.cancel()
        await asyncio.gather(*served, return_exceptions=True)


def _bound(folder: Path) -> tuple[Path, socket.socket]:
    """A socket in the folder, named after this process. (A process may have several apps.)"""
    names = [str(os.getpid()), *(f"{os.getpid()}.{number}" for number in range(1, 100))]
    name = next(each for each in names if not os.path.lexists(folder / each))
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(folder) as short:
            listening.bind(f"{short}/{name}")
        (folder / name).chmod(0o600)
        listening.listen(16)
    except BaseException:
        listening.close()
        raise
    return folder / name, listening


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A name of the folder that is short enough for a socket's address, which takes 107 bytes."""
    if sys.platform != "linux":
        yield str(folder)
        return
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def _sweep(folder: Path) -> None:
    """Remove what killed processes left."""
    for path in folder.iterdir():
        pid = path.name.partition(".")[0]
        if pid.isdecimal() and (not is_alive(int(pid)) or int(pid) == os.getpid()) and _is_dead(path):
            path.unlink(missing_ok=True)


def _is_dead(path: Path) -> bool:
    """Whether no process listens there."""
    with _short(path.parent) as short, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect(f"{short}/{path.name}")
        except OSError:
            return True
    return False


def sockets_of(state: Path, pid: int) -> list[Path]:
    """Where a process listens."""
    folder = state / FOLDER
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
    return [folder / name for name in names if name.partition(".")[0] == str(pid)]


async def connect(path: Path) -> Channel:
    """Connect to another process. PeerGone: it does not run. PeerRefused: we don't trust it."""
    found = path.parent.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise DirectoryUnavailable(f"{path.parent} is open to other users", hint=f"chmod 700 {path.parent}")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        with _short(path.parent) as short:
            async with asyncio.timeout(TO_CONNECT):
                await asyncio.get_running_loop().sock_connect(connection, f"{short}/{path.name}")
        who = await asyncio.to_thread(peer_of_socket, connection, below_us=False)
        if who in REFUSED:
            raise PeerRefused(f"the process behind {path.name} is {who.value}")
        return Channel(*await asyncio.open_unix_connection(sock=connection))
    except (OSError, TimeoutError) as error:
        connection.close()
        raise PeerGone(f"process {path.name} does not answer: {error}") from None
    except BaseException:
        connection.close()
        raise


ClientName = Literal["cli", "acp", "web"]
Json = dict[str, Any]
TO_ANSWER: Final = 30.0  # seconds for a reply; what takes longer is told by events
TO_CREATE: Final = 60.0  # seconds for a new task: its workspace may be new to the server


class AppConnection:
    """One connection. `heard` gets text frames, `drawn` binary ones; `lost` is called when there are no more."""

    def __init__(
        self,
        channel: Channel,
        *,
        heard: Callable[[Json], object] = bool,
        drawn: Callable[[bytes], object] = bool,
        lost: Callable[[], object] = bool,
    ) -> None:
        self._channel = channel
        self._heard, self._drawn, self._lost = heard, drawn, lost
        self._ids = itertools.count(1)
        self._replies: dict[int, asyncio.Future[Json]] = {}
        self._gone = False
        self._reading: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    async def open(self, client: ClientName) -> None:
        """Say which front end this is, and read from now on."""
        await self._channel.send_text(json.dumps({"client": client}))
        self._reading = asyncio.create_task(self._read())

    async def request(self, do: str, *, timeout: float = TO_ANSWER, **fields: object) -> Json:
        """Send a verb, and wait for the reply. BadRequest: it was refused. PeerGone: the other process ended."""
        number = next(self._ids)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            if self._gone:
                raise PeerGone("the process that has the task has ended")
            if self._sending:  # in the order in which they were said
                await asyncio.wait(list(self._sending))
            await self._channel.send_text(json.dumps({"do": do, "id": number, **fields}))
            async with asyncio.timeout(timeout):
                found: Json = await reply
        except TimeoutError:
            raise PeerGone(f"the process that has the task did not answer within {timeout:g} s") from None
        finally:
            del self._replies[number]
        if error := found.get("error"):
            raise BadRequest(error["what"], hint=error["hint"])
        return dict(found.get("ok") or {})

    def post(self, do: str, **fields: object) -> None:
        """Send a verb without waiting."""
        before = list(self._sending)

        async def send() -> None:
            if before:
                await asyncio.wait(before)
            try:
                await self._channel.send_text(json.dumps({"do": do, **fields}))
            except PeerGone:  # `_read` tells
                pass

        task = asyncio.create_task(send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _read(self) -> None:
        why: Exception = PeerGone("the process that has the task has ended")
        try:
            while True:
                frame = await self._channel.receive()
                if isinstance(frame, bytes):
                    self._drawn(frame)
                else:
                    self._take(json.loads(frame))
        except (PeerGone, PeerRefused) as error:
            why = error
        except ValueError:
            why = PeerGone("the process that has the task sent an invalid message")
        finally:
            self._gone = True
            self._lost()
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(why)

    def _take(self, frame: Json) -> None:
        match frame:
            case {"type": "reply", "id": int(number)}:
                if (reply := self._replies.get(number)) is not None and not reply.done():
                    reply.set_result(frame)
            case _:
                self._heard(frame)

    async def aclose(self) -> None:
        """Send what is queued, and close. May be called twice."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=1)
        self._gone = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._channel.close()


def pasted(images: Iterable[Picture]) -> list[Json]:
    """Pictures as fields of a verb."""
    return [{"media_type": media, "base64": base64.b64encode(data).decode()} for data, media in images]


async def create_task_in(state: Path, pid: int, fields: Mapping[str, object]) -> TaskId:
    """Create a task in the app of another process; `fields` are those of the verb `create`."""
    why = "it does not accept connections"
    for path in sockets_of(state, pid):
        try:
            connection = AppConnection(await connect(path))
        except (PeerGone, PeerRefused, DirectoryUnavailable) as error:
            why = error.what
            continue
        try:
            await connection.open("cli")
            return TaskId((await connection.request("create", timeout=TO_CREATE, **fields))["task"])
        finally:
            await connection.aclose()
    raise BadRequest(f"process {pid} can't be asked for a task: {why}", hint="is it a `tarmac serve` of this version?")
