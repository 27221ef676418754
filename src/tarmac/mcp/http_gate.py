"""Who may use the HTTP server: programs on this machine that have the token, and no web page.

The checks run in this order, before the body is read. The Host header must be exactly ours, which stops DNS rebinding.
The Origin header must be absent or ours. The bearer token is compared in constant time.
"""

import logging
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sse_starlette.sse import AppStatus
from starlette.requests import ClientDisconnect

from tarmac.errors import BadRequest
from tarmac.loopback import http_server
from tarmac.loopback.http_server import AsgiApp, Message, Receive, Send

LEAST_TOKEN: Final = 16  # characters


@dataclass(slots=True)
class Gate:
    """Passes permitted requests to `app`, and rejects the others."""

    app: AsgiApp
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
        ours = http_server.own_names(self.port)
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
    return http_server.listen(port, hint="--http 0 chooses a free port")


def _is_news(record: logging.LogRecord) -> bool:
    """Not that a client went away in the middle of a body, or was too slow with it."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


async def serve(app: AsgiApp, listening: socket.socket) -> None:
    """Serve until cancelled; then requests under way end first."""

    def end_streams() -> None:
        AppStatus.should_exit = True  # open streams end: their library listens for signals, and for this
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # that streams were cut is no news

    AppStatus.should_exit = False
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_news)
    await http_server.serve(app, listening, ending=end_streams)
