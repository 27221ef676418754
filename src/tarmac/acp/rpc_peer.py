"""One side of a connection: requests out and in, each answered once, everything sent in the order it was said.

reader → Lines → notification: Handler.notified(), at once and in order
               → request:      Handler.requested() in a task of its own, begun in order → response
               → response:     wakes who asked

What a handler tells (`notify`) before it returns is on the wire before its response; what it must tell after it, it
returns in `Reply.then`. A peer that dies, floods or sends nonsense fails the calls that wait for it, and nothing else.
It knows JSON-RPC and `$/cancel_request`, and none of the protocol's own shapes.

Our standard input and output can be such a connection. Their descriptors are moved away; in their place stand /dev/null
and standard error. So a command we start does not eat the editor's messages, and a stray print is not among ours.
"""

import asyncio
import atexit
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from tarmac.acp.wire import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Bad,
    Error,
    Id,
    Json,
    LineFrames,
    Message,
    Notification,
    Response,
    RpcRequest,
    encode,
)
from tarmac.errors import PeerGone, PeerRefused, TarmacError
from tarmac.terminals.bell import until_ready

READ_SIZE: Final = 256 << 10
MOST_RUNNING: Final = 256  # requests of the other side at once
MOST_UNSENT: Final = 64 << 20  # bytes that the other side has not read
CROWDED: Final = 2 << 20  # of them, from which on output of commands is left out
MOST_DETAILS: Final = 500  # characters of what an error tells beside its message
LAST: Final = 0.2  # seconds for answers after the other side has closed its end
CANCEL_REQUEST: Final = "$/cancel_request"


class Reader(Protocol):
    """Where bytes come from: an asyncio.StreamReader, or what looks like one."""

    def read(self, n: int = ..., /) -> Awaitable[bytes]: ...


class Writer(Protocol):
    """Where bytes go: an asyncio.StreamWriter, or what looks like one."""

    def write(self, data: bytes, /) -> None: ...
    def drain(self) -> Awaitable[None]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PeerReply:
    """A result, and what to do once it is on the wire."""

    result: Json
    then: Callable[[], None]


class Refused(Exception):
    """Raised by a handler: this request gets an error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.error = Error(code, message, data)


class Handler(Protocol):
    """Who serves the other side."""

    async def requested(self, method: str, params: Json) -> Json | PeerReply:
        """The result. Refused gives the error it says; TarmacError its text; anything else is a fault of ours."""

    def notified(self, method: str, params: Json) -> None:
        """Must come back at once: nothing else is read meanwhile. Unknown ones are to be ignored."""

    def odd(self, message: Bad | Response) -> None:
        """Something came that is not a message, or answers nobody; for a log."""


class RpcPeer:
    """A connection. `run()` serves it until the other side is gone or `aclose()` ends it."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        handler: Handler,
        *,
        name: str = "the other side",
        answers_nonsense: bool = True,
    ) -> None:
        self.name = name
        self._answers_nonsense = answers_nonsense  # False: what is not a message is passed over, as a stray print is
        self._reader, self._writer, self._handler = reader, writer, handler
        self._lines = LineFrames()
        self._asked: dict[Id, asyncio.Future[Json]] = {}
        self._serving: dict[Id, asyncio.Task[None]] = {}
        self._numbers = 0
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._something = asyncio.Event()  # to send
        self._sent = asyncio.Event()  # all of it
        self._sent.set()
        self._gone: str | None = None
        self._given_up = False
        self._running: asyncio.Task[None] | None = None

    # What we ask and tell

    async def request(self, method: str, params: Json = None, *, timeout: float | None = None) -> Json:
        """Ask and wait. PeerRefused: it answered with an error; PeerGone: it never will; TimeoutError: not in time.

        Cancelled or too late, the other side is told that nobody waits any more.
        """
        self._check()
        self._numbers += 1
        id = self._numbers
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked[id] = future
        try:
            self._send(RpcRequest(id, method, params))
            async with asyncio.timeout(timeout):
                return await future
        except (asyncio.CancelledError, TimeoutError):
            if self._gone is None:
                self._send(Notification(CANCEL_REQUEST, {"requestId": id}))
            raise
        finally:
            self._asked.pop(id, None)

    def notify(self, method: str, params: Json = None) -> None:
        """Tell; it is sent after all that was said before. To somebody who is gone nothing is said."""
        if self._gone is None:
            self._send(Notification(method, params))

    async def flushed(self) -> None:
        """Wait until all that was said is written, or nobody is there to read it."""
        if self._gone is None:
            await self._sent.wait()

    async def room(self) -> None:
        """For who has much to say: wait until the other side has read most of what was said."""
        if self.crowded:
            await self.flushed()

    @property
    def crowded(self) -> bool:
        """The other side reads more slowly than we speak: what can be left out should be."""
        return self._gone is None and self._unsent_bytes > CROWDED

    @property
    def gone(self) -> bool:
        return self._gone is not None

    # Its life

    async def run(self) -> None:
        """Read and serve until the end. Returns when the other side closes; requests of its that run are cancelled."""
        self._running = asyncio.current_task()
        writing = asyncio.create_task(self._write())
        why = f"{self.name} closed the connection"
        try:
            while data := await self._reader.read(READ_SIZE):
                for message in self._lines.feed(data):
                    self._take(message)
                if self._gone is not None:
                    break
                await asyncio.sleep(0)  # who sends without end is not alone here
            if self._lines.half:
                why += f" in the middle of a line ({self._lines.half:,} bytes)"
            await self._last_answers()
        except (OSError, ValueError) as error:
            why = f"the connection to {self.name} broke: {error}"
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not self._given_up or current is None:
                why = "the connection was closed"
                raise
            current.uncancel()  # by ourselves: it can't be written to
        finally:
            self._end(why)
            tasks = [writing, *self._serving.values()]
            for each in tasks:
                each.cancel()
            try:
                await asyncio.wait(tasks, timeout=5)
            finally:  # cancelled once more
                self._writer.close()

    async def _last_answers(self) -> None:
        """It says no more, and may still listen: what is as good as answered is answered."""
        if self._serving:
            await asyncio.wait(list(self._serving.values()), timeout=LAST)
        try:
            async with asyncio.timeout(LAST):
                await self.flushed()
        except TimeoutError:
            pass

    async def aclose(self) -> None:
        """End it. May be called twice, and by a handler's own task."""
        running = self._running
        if running is None:
            self._end("the connection was closed")
        elif not running.done() and running is not asyncio.current_task():
            if self._gone is None:  # else it is on its way out
                running.cancel()
            await asyncio.wait([running], timeout=10)

    def _end(self, why: str) -> None:
        self._gone = self._gone or why
        for future in self._asked.values():
            if not future.done():
                future.set_exception(PeerGone(self._gone))
        self._sent.set()
        self._something.set()

    def _check(self) -> None:
        if self._gone is not None:
            raise PeerGone(self._gone)

    # Sending

    def _send(self, message: Message) -> None:
        line = encode(message)
        self._unsent.append(line)
        self._unsent_bytes += len(line)
        self._sent.clear()
        self._something.set()
        if self._unsent_bytes > MOST_UNSENT:
            self._give_up(f"{self.name} does not read what it is sent: {self._unsent_bytes:,} bytes wait")

    def _give_up(self, why: str) -> None:
        """Nothing can be sent any more: then there is no use in listening either."""
        if self._gone is None and self._running not in (None, asyncio.current_task()):  # itself sees that it is gone
            self._given_up = True
            self._running.cancel()
        self._end(why)

    async def _write(self) -> None:
        try:
            while self._gone is None:
                await self._something.wait()
                self._something.clear()
                while self._unsent and self._gone is None:
                    lines, self._unsent = self._unsent, []
                    data = b"".join(lines)
                    self._writer.write(data)
                    await self._writer.drain()
                    self._unsent_bytes -= len(data)
                self._sent.set()
        except (OSError, RuntimeError) as error:
            self._give_up(f"the connection to {self.name} broke: {error}")

    # What comes

    def _take(self, message: Message) -> None:
        match message:
            case Notification(method="$/cancel_request", params=params):
                id = params.get("requestId") if isinstance(params, dict) else None
                known = isinstance(id, str | int) and not isinstance(id, bool)
                if known and (serving := self._serving.get(id)) is not None:
                    serving.cancel()
            case Notification(method=method, params=params):
                self._handler.notified(method, params)
            case RpcRequest(id=id):
                self._serve(id, message)
            case Response(id=id):
                self._answered(id, message)
            case Bad(answer=answer):
                self._handler.odd(message)
                if answer and self._gone is None and (self._answers_nonsense or message.id is not None):
                    self._send(message)

    def _answered(self, id: Id, response: Response) -> None:
        future = self._asked.get(id)
        if future is None:
            self._handler.odd(response)  # late, or never asked
        elif not future.done():
            if response.error is None:
                future.set_result(response.result)
            else:
                error = response.error
                why = f"{self.name} refused: {error.message}{_details(error.data)}"
                future.set_exception(PeerRefused(why, code=error.code))

    def _serve(self, id: Id, request: RpcRequest) -> None:
        why = None
        if id in self._serving:
            why = f"a request with the id {id!r} is already running"
        elif len(self._serving) >= MOST_RUNNING:
            why = f"{MOST_RUNNING} requests are running already"
        if why is not None:
            self._send(Response(id, error=Error(INVALID_REQUEST, why)))
            return
        task = asyncio.get_running_loop().create_task(self._respond(id, request))
        self._serving[id] = task
        task.add_done_callback(lambda task: self._served(id, task))

    def _served(self, id: Id, task: "asyncio.Task[None]") -> None:
        del self._serving[id]
        if task.cancelled() and self._gone is None:  # before it made its first step
            self._send(Response(id, error=Error(CANCELLED, "the request was cancelled")))

    async def _respond(self, id: Id, request: RpcRequest) -> None:
        then: Callable[[], None] | None = None
        try:
            reply = await self._handler.requested(request.method, request.params)
            if isinstance(reply, PeerReply):
                response, then = Response(id, reply.result), reply.then
            else:
                response = Response(id, reply)
        except Refused as refused:
            response = Response(id, error=refused.error)
        except TarmacError as error:
            response = Response(id, error=Error(INTERNAL_ERROR, str(error)))
        except asyncio.CancelledError:
            response = Response(id, error=Error(CANCELLED, "the request was cancelled"))
        except Exception as error:  # ours: this request has no result, the connection goes on
            response = Response(id, error=Error(INTERNAL_ERROR, f"{type(error).__name__}: {error}"))
        if self._gone is None:
            self._send(response)
            if then is not None:
                then()


def unknown(method: str) -> Refused:
    """For a handler: there is no such method."""
    return Refused(METHOD_NOT_FOUND, f"there is no method {method}")


def _details(data: Json) -> str:
    """What an error tells beside its message, which is often "Internal error" and nothing else."""
    if isinstance(data, dict):
        data = data.get("details") or data.get("message") or data
    if not data:
        return ""
    text = " ".join((data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)).split())
    return f" ({text[:MOST_DETAILS]}{'…' * (len(text) > MOST_DETAILS)})"


T = TypeVar("T")


@dataclass(slots=True)
class FdReader:
    """A descriptor that does not block, to read from."""

    fd: int

    async def read(self, n: int = -1) -> bytes:
        while True:
            try:
                return os.read(self.fd, max(n, 1))
            except BlockingIOError:
                await until_ready(self.fd)


@dataclass(slots=True)
class FdWriter:
    """A descriptor that does not block, to write to."""

    fd: int
    data: bytes = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        view = memoryview(self.data)
        self.data = b""
        while view:
            try:
                view = view[os.write(self.fd, view) :]
            except BlockingIOError:
                await until_ready(self.fd, write=True)

    def close(self) -> None:
        pass  # the process ends with it


def take_stdio() -> tuple[int, int]:
    """Move standard input and output away, for us alone."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    for fd in (incoming, outgoing):
        os.set_inheritable(fd, False)
        if os.get_blocking(fd):
            os.set_blocking(fd, False)
            atexit.register(os.set_blocking, fd, True)  # a terminal is shared with the shell that started us
    return incoming, outgoing


def stdio_peer(handler: Handler) -> RpcPeer:
    """A peer on our standard input and output."""
    incoming, outgoing = take_stdio()
    return RpcPeer(FdReader(incoming), FdWriter(outgoing), handler, name="the editor")
