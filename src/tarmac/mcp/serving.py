"""HTTP on a socket of ours, by uvicorn: with a limit on what strangers may take up, and an end that comes at once.

Whoever can reach the port can open connections, token or not. One that does not come to a request is closed, and so is
one too many: their descriptors are what terminals are made of.
"""

import asyncio
import logging
import socket
from contextlib import nullcontext
from typing import Any, Final

import uvicorn
from sse_starlette.sse import AppStatus
from uvicorn.protocols.http.h11_impl import H11Protocol

from tarmac.mcp.gate import App

CLOSING: Final = 2  # seconds for requests under way when the server ends
TO_ASK: Final = 10.0  # seconds from a connection's first byte, or its opening, to the end of a request's headers
MOST_CONNECTIONS: Final = 256


class Impatient(H11Protocol):
    """A connection that must come to its request."""

    alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self.alarm = self.loop.call_later(TO_ASK, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        asked = self.cycle is not None and not self.cycle.response_complete
        if asked and self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None
        elif not asked and self.alarm is None:
            self.alarm = self.loop.call_later(TO_ASK, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        super().connection_lost(exc)


async def serve(app: App, listening: socket.socket) -> None:
    """Serve until cancelled; then requests under way end first."""
    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=CLOSING,
        server_header=False,
        date_header=False,
    )
    server: Any = uvicorn.Server(config)
    server.capture_signals = nullcontext  # signals are for whoever runs us
    AppStatus.should_exit = False
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        server.should_exit = True
        AppStatus.should_exit = True  # open streams end: their library listens for signals, and for this
        for name in ("uvicorn.error", "mcp"):  # that answers and streams were cut is no news
            logging.getLogger(name).setLevel(logging.CRITICAL)
        await asyncio.wait({running}, timeout=2 * CLOSING)
        raise
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
