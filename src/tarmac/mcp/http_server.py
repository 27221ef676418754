"""Who may use the HTTP server: programs on this machine that have the token, and no web page.

The checks run in this order, before the body is read. The Host header must be exactly ours, which stops DNS rebinding.
The Origin header must be absent or ours. The bearer token is compared in constant time.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from sse_starlette.sse import AppStatus
from uvicorn.protocols.http.h11_impl import H11Protocol

from tarmac.errors import BadRequest

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LEAST_TOKEN: Final = 16  # characters


@dataclass(slots=True)
class Gate:
    """Passes permitted requests to `app`, and rejects the others."""

    app: App
    port: int
    token: str = field(repr=False)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        status, why = self.refusal(scope["headers"])
        if not why:
            await self.app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        if status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="tarmac"'))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": f"{why}\n".encode()})

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str]:
        """The status and the reason; an empty reason if the request is permitted."""
        given: dict[bytes, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.lower(), []).append(value.decode("latin-1"))
        ours = (f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}")
        if len(given.get(b"host", ())) != 1 or given[b"host"][0] not in ours:
            return 421, "this server has another name"
        if any(each not in [f"http://{name}" for name in ours] for each in given.get(b"origin", ())):
            return 403, "web pages may not use this server"
        scheme, _, token = given.get(b"authorization", [""])[0].partition(" ")
        fits = secrets.compare_digest(token.strip().encode("utf-8", "replace"), self.token.encode())
        if len(given.get(b"authorization", ())) != 1 or scheme.lower() != "bearer" or not fits:
            return 401, "the bearer token is missing or wrong"
        return 200, ""


def check_token(token: str) -> str:
    """BadRequest if the token is too short, or invalid in a header."""
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise BadRequest(
            f"the token must have at least {LEAST_TOKEN} plain characters",
            hint="python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


def listen(port: int) -> socket.socket:
    """A listening socket on the loopback interface. Port 0 chooses a free port."""
    # asyncio sets TCP_NODELAY only for this protocol number; without it every call waits 40 ms for an acknowledgement
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise BadRequest(
            f"can't listen on port {port}: {error.strerror}", hint="--http 0 chooses a free port"
        ) from None
    return made


CLOSING: Final = 2  # seconds for requests under way when the server ends
TO_ASK: Final = 10.0  # seconds from a connection's first byte, or its opening, to the end of a request's headers
MOST_CONNECTIONS: Final = 256


class Impatient(H11Protocol):
    """A connection that must come to its request. When there are too many, the longest silent one makes room."""

    alarm: asyncio.TimerHandle | None = None  # set while it has no request under way

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.alarm = self.loop.call_later(TO_ASK, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            silent = [each for each in self.connections if isinstance(each, Impatient) and each.alarm is not None]
            min(silent, key=lambda each: each.alarm.when() if each.alarm else 0.0).transport.abort()

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
