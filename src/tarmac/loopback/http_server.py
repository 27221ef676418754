"""HTTP and WebSockets on a socket of ours, by uvicorn: with a limit on what strangers may take up.

Whoever can reach the port can open connections, token or not. One that does not come to a request is closed, and so is
one too many: their descriptors are what terminals are made of.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Message, Receive, Send], Awaitable[None]]

CLOSING: Final = 2  # seconds for requests under way when the server ends
TO_ASK: Final = 10.0  # seconds from a connection's first byte, or its opening, to the end of a request's headers
MOST_CONNECTIONS: Final = 256
LARGEST_FRAME: Final = 32 << 20  # bytes of a WebSocket message: a few pictures
PING: Final = 20.0  # seconds between the questions whether a WebSocket still has somebody at its end


class ImpatientProtocol(H11Protocol):
    """A connection that must come to its request. When there are too many, the longest silent one makes room."""

    alarm: asyncio.TimerHandle | None = None  # set while it has no request under way
    upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.alarm = self.loop.call_later(TO_ASK, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            theirs = (each for each in self.connections if isinstance(each, ImpatientProtocol))
            silent = [each for each in theirs if each.alarm is not None]
            min(silent, key=lambda each: each.alarm.when() if each.alarm else 0.0).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        asked = self.upgraded or (self.cycle is not None and not self.cycle.response_complete)
        if asked and self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None
        elif not asked and self.alarm is None:
            self.alarm = self.loop.call_later(TO_ASK, self.transport.abort)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self.upgraded = True
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        super().connection_lost(exc)


async def serve(
    app: AsgiApp, *listening: socket.socket, websockets: bool = False, ending: Callable[[], object] = bool
) -> None:
    """Serve until cancelled; then `ending` is called, and requests under way end first."""
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        ws="websockets-sansio" if websockets else "none",
        ws_max_size=LARGEST_FRAME,
        ws_per_message_deflate=False,  # of a terminal's bytes on one machine it takes more than it gives
        ws_ping_interval=PING,
        ws_ping_timeout=PING,
        log_level="critical",
        lifespan="on",
        timeout_graceful_shutdown=CLOSING,
        server_header=False,
        date_header=False,
    )
    server: Any = uvicorn.Server(config)
    server.capture_signals = nullcontext  # signals are for whoever runs us
    running = asyncio.create_task(server.serve(sockets=list(listening)))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        ending()
        server.should_exit = True
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # that answers were cut is no news
        await asyncio.wait({running}, timeout=2 * CLOSING)
        raise
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
