"""Serve clients. Each connection says hello, then starts a new session or continues an old one."""

import asyncio
import time
from collections.abc import Callable
from typing import Self

from tarmac.errors import BadFrame, ConnectionLost, PlaceUnavailable, TarmacError, Trouble
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.host.byte_stream import ByteStream
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
from tarmac.terminals.machine import Machine, ThisMachine

TIME_TO_LIVE = 3600.0  # seconds that terminals go on without their client
SWEEP_EVERY = 1.0
HELLO_PATIENCE = 30.0  # a connection that says nothing for so long is ended


class Host:
    """Sessions, each with its terminals. `ended` is called when the last session is over."""

    def __init__(self, machine: Machine | None = None, *, ended: Callable[[], None] | None = None) -> None:
        self.sessions: dict[str, HostSession] = {}
        self._machine = machine or ThisMachine()
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
        try:
            async with asyncio.timeout(HELLO_PATIENCE) as patience:
                while data := await stream.read():
                    for frame in parser.feed(data):
                        if session is not None:
                            session.receive(frame)
                        elif frame.kind == HostFrameKind.HELLO:
                            session = self._session(frame.header)
                            session.attach(stream, frame.header)
                            patience.reschedule(None)
                    if session is not None and session.over:
                        await asyncio.shield(self._end(session))
                        return
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
