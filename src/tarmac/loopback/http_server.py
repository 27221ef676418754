"""HTTP and WebSockets on our own listening socket, by uvicorn, with limits on connections.

Any process that reaches the port can open connections, also without a token, and terminals need these descriptors. A
connection that sends no whole request in time is closed. If there are too many, the one that waited longest is closed.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tarmac.errors import BadRequest

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Message, Receive, Send], Awaitable[None]]

CLOSING: Final = 2  # seconds for requests under way when the server ends
TO_ASK: Final = 10.0  # seconds from a connection's first byte, or its opening, to the end of a request's headers
TO_SEND: Final = 30.0  # seconds from the end of the headers to the end of the body
MOST_CONNECTIONS: Final = 256
LARGEST_FRAME: Final = 32 << 20  # bytes of a WebSocket message: a few pictures
PING: Final = 20.0  # seconds between the questions whether a WebSocket still has somebody at its end


class ImpatientProtocol(H11Protocol):
    """A connection that must come to a request, all of it. When there are too many, the slowest makes room."""

    alarm: asyncio.TimerHandle | None = None  # set while it has no whole request under way
    since = 0.0  # when the alarm was set
    in_body = False
    upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(TO_ASK)
        # One that was told to make room is still among them until the loop's next turn. Many may come before that.
        open_ones = [each for each in self.connections if not each.transport.is_closing()]
        if len(open_ones) > MOST_CONNECTIONS:
            slow = [each for each in open_ones if isinstance(each, ImpatientProtocol) and each.alarm is not None]
            min(slow, key=lambda each: each.since).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        asked = self.upgraded or (self.cycle is not None and not self.cycle.response_complete)
        before, self.in_body = self.in_body, asked and not self.upgraded and self.conn.their_state is h11.SEND_BODY
        if asked and not self.in_body:
            self._stop_waiting()
        elif self.in_body and not before:
            self._wait(TO_SEND)
        elif not asked and self.alarm is None:
            self._wait(TO_ASK)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self.since = self.loop.time()
        self.alarm = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self.upgraded = True
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
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


LOOPBACK = "127.0.0.1"


def listen(port: int, *, host: str = LOOPBACK, hint: str) -> socket.socket:
    """A listening socket. Port 0 chooses a free port."""
    # asyncio sets TCP_NODELAY only for this protocol number; without it every call waits 40 ms for an acknowledgement
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        why = "another program uses it" if error.errno == errno.EADDRINUSE else error.strerror
        raise BadRequest(f"can't listen on port {port}: {why}", hint=hint) from None
    return made


def own_names(port: int) -> tuple[str, ...]:
    """What a Host header may say: a page of another name that leads here (DNS rebinding) says something else."""
    return (f"{LOOPBACK}:{port}", f"localhost:{port}", f"[::1]:{port}")
