"""The client's side of a session with a host: calls, over a connection that may break at any byte.

call() → CALL, kept until its reply → … broken … → HELLO with what we received → the other side sends the rest, once

While the connection is broken, calls wait. It reconnects with growing pauses. After `patience` seconds, or when the
host no longer knows the session, the session is gone and every call raises.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tarmac.errors import BadFrame, ConnectionLost, PlaceFailed, PlaceUnavailable, TarmacError, Trouble
from tarmac.fleet.transport import Transport, garbage
from tarmac.terminals.bell import Bell
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.host.byte_stream import ByteStream
from tarmac.terminals.host.wire_values import (
    COUNTED,
    OLDEST,
    VERSION,
    Header,
    HostFrameKind,
    error_from_wire,
    text,
    whole,
)

ACK_EVERY = 64  # counted frames
WELCOME_PATIENCE = 15.0
SILENCE = 10.0  # seconds without a byte, after which the host is asked whether it is there
ANSWER = 10.0  # and how long it has to say so
PROMPT_ANSWER = 1.5  # the same where a person waits
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
GOODBYE = 5.0

Replied = Callable[[Header, bytes], None]


class HostListener(Protocol):
    """Who hears what the host tells by itself."""

    def on_output(self, header: Header, data: bytes) -> None: ...
    def on_event(self, header: Header) -> None: ...
    def on_lost(self) -> None:
        """The connection broke."""

    def on_gone(self, error: TarmacError) -> None:
        """It will not come back."""

    def have(self) -> dict[str, int]:
        """How much of each command's output is here."""


@dataclass(slots=True)
class _HostCall:
    data: bytes
    future: "asyncio.Future[tuple[Header, bytes]]"
    replied: Replied | None


class PlaceConnection:
    """A session with a host. `open` it, then `call`; `aclose` ends it and its terminals."""

    def __init__(self, transport: Transport, audience: HostListener, *, time_to_live: float, patience: float) -> None:
        self.transport = transport
        self.session = secrets.token_hex(16)
        self.welcome: Header = {}  # what the host said of itself
        self.gone: TarmacError | None = None
        self._audience = audience
        self._time_to_live = time_to_live
        self._patience = patience
        self._stream: ByteStream | None = None
        self._pending: dict[int, _HostCall] = {}
        self._numbers = 0
        self._seen = 0
        self._acked = 0
        self._heard_at = 0.0
        self._news = Bell()  # connected, lost, gone, or a byte came
        self._task: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._closing = False
        self._mute = False  # it did not answer when it was last asked

    @property
    def connected(self) -> bool:
        return self._stream is not None

    async def open(self) -> None:
        """Connect for the first time. PlaceUnavailable when that can't be done."""
        stream, parser, rest = await self._connect(new=True)
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._serve(stream, parser, rest))
        self._watch = loop.create_task(self._watch_silence())

    async def call(self, verb: str, body: bytes = b"", *, replied: Replied | None = None, **header: object) -> Header:
        """Call the host. It acts exactly once, also if the connection breaks meanwhile.

        `replied` is called with the reply before any later message is handled.
        """
        if self.gone is not None:
            raise self._again(self.gone)
        return (await self._send(verb, body, replied, header))[0]

    async def ask(self, verb: str, body: bytes = b"", **header: object) -> tuple[Header, bytes]:
        """The same, with the bytes of the reply."""
        if self.gone is not None:
            raise self._again(self.gone)
        return await self._send(verb, body, None, header)

    def _send(
        self, verb: str, body: bytes, replied: Replied | None, header: Header
    ) -> "asyncio.Future[tuple[Header, bytes]]":
        self._numbers += 1
        data = encode(Frame(HostFrameKind.CALL, self._numbers, {"verb": verb, "seen": self._seen, **header}, body))
        self._acked = self._seen
        future: asyncio.Future[tuple[Header, bytes]] = asyncio.get_running_loop().create_future()
        self._pending[self._numbers] = _HostCall(data, future, replied)
        if self._stream is not None:
            self._stream.write(data)
        return future

    def post(self, verb: str, body: bytes = b"", *, replied: Replied | None = None, **header: object) -> None:
        """The same without waiting. Nobody hears of a failure."""
        if self.gone is None:
            self._send(verb, body, replied, header).add_done_callback(_forget)

    async def answers(self, seconds: float = PROMPT_ANSWER) -> bool:
        """Whether the host answers within that time. If not, the connection is cut."""
        if self._stream is None:
            return False
        asked = time.monotonic()
        self._stream.write(encode(Frame(HostFrameKind.PING)))
        while (left := asked + seconds - time.monotonic()) > 0 and self._stream is not None:
            if self._heard_at > asked:
                return True
            await self._news.wait(left)
        if self._heard_at > asked:
            return True
        self._mute = True
        self.cut()
        return False

    def cut(self) -> None:
        """End the present connection, as if it had broken."""
        if self._stream is not None:
            self._stream.abort()
            self._lose()

    async def until_connected(self, seconds: float) -> bool:
        """Wait until it is connected again."""
        end = time.monotonic() + seconds
        while self._stream is None and self.gone is None and (left := end - time.monotonic()) > 0:
            await self._news.wait(left)
        return self._stream is not None

    async def aclose(self) -> None:
        """End the session: its terminals are closed there."""
        if self._stream is None and not self._mute:  # the host should hear that it is no longer needed
            await self.until_connected(GOODBYE)
        self._closing = True
        if self._stream is not None:
            self._stream.write(encode(Frame(HostFrameKind.BYE)))
            end = time.monotonic() + GOODBYE
            while self._stream is not None and (left := end - time.monotonic()) > 0:
                await self._news.wait(left)
        for task in (self._task, self._watch):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._give_up(ConnectionLost("the connection was closed"))

    # Connecting

    async def _connect(self, *, new: bool) -> tuple[ByteStream, FrameParser, list[Frame]]:
        stream = await self.transport.connect(self.session, new=new)
        try:
            hello: dict[str, object] = {
                "version": VERSION,
                "oldest": OLDEST,
                "session": self.session,
                "new": new,
                "seen": self._seen,
                "have": self._audience.have(),
                "ttl": self._time_to_live,
            }
            stream.write(encode(Frame(HostFrameKind.HELLO, 0, hello)))
            parser = FrameParser()
            async with asyncio.timeout(WELCOME_PATIENCE):
                frames = await self._first_frames(stream, parser)
            self._check(frames[0])
        except TimeoutError:
            await stream.aclose()
            raise PlaceUnavailable(
                f"{self.transport.name} does not answer", trouble=Trouble.SILENT, hint="its host may be stopped"
            ) from None
        except BadFrame:
            await stream.aclose()
            raise garbage(self.transport.name, "bytes that are not frames") from None
        except BaseException:
            await stream.aclose()
            raise
        return stream, parser, frames

    async def _first_frames(self, stream: ByteStream, parser: FrameParser) -> list[Frame]:
        while data := await stream.read():
            if frames := parser.feed(data):
                return frames
        raise PlaceUnavailable(
            f"{self.transport.name} ended the connection at once", hint="its host may have been killed: try again"
        )

    def _check(self, welcome: Frame) -> None:
        if welcome.kind == HostFrameKind.FAILED:
            raise error_from_wire(welcome.header)
        if welcome.kind != HostFrameKind.WELCOME:
            raise BadFrame("the first frame is not a welcome")
        if whole(welcome.header, "oldest", OLDEST) > VERSION or whole(welcome.header, "version", VERSION) < OLDEST:
            raise PlaceUnavailable(
                f"the host at {self.transport.name} has version {welcome.header.get('version')}, this Tarmac {VERSION}",
                trouble=Trouble.VERSION,
                hint="update the older of the two",
            )
        self.welcome = welcome.header

    def _begin(self, stream: ByteStream) -> None:
        """The connection stands: send the calls that the host has not got."""
        last = whole(self.welcome, "last_call", 0)
        for number, call in self._pending.items():
            if number > last:
                stream.write(call.data)
        self._stream = stream
        self._mute = False
        self._heard_at = time.monotonic()
        self._news.ring()

    # Serving

    async def _serve(self, stream: ByteStream, parser: FrameParser, frames: list[Frame]) -> None:
        """Read one connection after another, until the last one is gone."""
        try:
            while True:
                self._begin(stream)
                await self._read(stream, parser, frames[1:])
                self._lose()
                await stream.aclose()
                if self._closing:
                    return
                stream, parser, frames = await self._reconnect()
        except TarmacError as error:
            self._give_up(error)
        finally:
            self._lose()
            await stream.aclose()

    async def _read(self, stream: ByteStream, parser: FrameParser, frames: list[Frame]) -> None:
        def take(data: bytes) -> bool:
            self._heard_at = time.monotonic()
            for frame in parser.feed(data):
                self._hear(frame)
            if self._seen - self._acked >= ACK_EVERY and self._stream is stream:
                self._acked = self._seen
                stream.write(encode(Frame(HostFrameKind.ACK, 0, {"seen": self._seen})))
            return True

        try:
            for frame in frames:
                self._hear(frame)
            await stream.receive(take)
        except BadFrame:  # damaged on the way: a new connection brings it whole
            stream.abort()

    def _hear(self, frame: Frame) -> None:
        if frame.kind in COUNTED and not (frame.kind == HostFrameKind.FAILED and frame.request == 0):
            self._seen += 1
        match frame.kind:
            case HostFrameKind.OUTPUT:
                self._audience.on_output(frame.header, frame.body)
            case HostFrameKind.REPLY | HostFrameKind.FAILED if (
                call := self._pending.pop(frame.request, None)
            ) is not None:
                if frame.kind == HostFrameKind.FAILED:
                    if not call.future.done():
                        call.future.set_exception(error_from_wire(frame.header))
                    return
                if call.replied is not None:
                    call.replied(frame.header, frame.body)
                if not call.future.done():
                    call.future.set_result((frame.header, frame.body))
            case HostFrameKind.EVENT:
                self._audience.on_event(frame.header)
            case HostFrameKind.FAILED if frame.request == 0:
                raise BadFrame(text(frame.header, "what", "the host gave up"))
            case HostFrameKind.PONG:
                self._news.ring()

    async def _reconnect(self) -> tuple[ByteStream, FrameParser, list[Frame]]:
        end = time.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._connect(new=False)
            except PlaceUnavailable as error:
                if time.monotonic() + pause > end:
                    raise ConnectionLost(
                        f"the connection to {self.transport.name} is lost: {error.what}", hint=error.hint
                    ) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _watch_silence(self) -> None:
        """Cut a connection that is silent although something is due."""
        while self.gone is None:
            await asyncio.sleep(SILENCE / 2)
            if self._stream is not None and time.monotonic() - self._heard_at > SILENCE:
                await self.answers(ANSWER)

    def _lose(self) -> None:
        if self._stream is not None:
            self._stream = None
            if not self._closing:
                self._audience.on_lost()
            self._news.ring()

    def _give_up(self, error: TarmacError) -> None:
        if self.gone is not None:
            return
        self.gone = error
        calls, self._pending = self._pending, {}
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(self._again(error))
        self._audience.on_gone(error)
        self._news.ring()

    @staticmethod
    def _again(error: TarmacError) -> TarmacError:
        """A new error each time it is raised: one that is raised twice has two histories."""
        return (
            ConnectionLost(error.what, hint=error.hint) if isinstance(error, PlaceFailed) else PlaceFailed(str(error))
        )


def _forget(future: "asyncio.Future[tuple[Header, bytes]]") -> None:
    if not future.cancelled():
        future.exception()
