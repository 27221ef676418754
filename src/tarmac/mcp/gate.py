"""Who may speak HTTP with us: this machine, under its own name, from no web page, with the token (security B.4, B.5).

Checked in this order, before a byte of the body is read: Host exactly ours (a page under another name that leads here
has another), Origin absent or exactly ours, the bearer token by a comparison that takes equally long for every guess.
"""

import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from tarmac.errors import BadRequest

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LEAST_TOKEN: Final = 16  # characters


@dataclass(slots=True)
class Gate:
    """Lets through to `app` what may pass; the rest is answered here, in a word."""

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
        """The status and the reason; no reason: it may pass."""
        given: dict[bytes, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.lower(), []).append(value.decode("latin-1"))
        ours = (f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}")
        if len(given.get(b"host", ())) != 1 or given[b"host"][0] not in ours:
            return 421, "this server is not known by that name"
        if any(each not in [f"http://{name}" for name in ours] for each in given.get(b"origin", ())):
            return 403, "no web page may use this server"
        scheme, _, token = given.get(b"authorization", [""])[0].partition(" ")
        fits = secrets.compare_digest(token.strip().encode("utf-8", "replace"), self.token.encode())
        if len(given.get(b"authorization", ())) != 1 or scheme.lower() != "bearer" or not fits:
            return 401, "the bearer token is missing, or is not the one this server was started with"
        return 200, ""


def check_token(token: str) -> str:
    """BadRequest for one that can be guessed, or that no header can carry."""
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise BadRequest(
            f"the token must have at least {LEAST_TOKEN} plain characters",
            hint="python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


def listen(port: int) -> socket.socket:
    """A socket that only this machine reaches; port 0: any free one."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise BadRequest(
            f"port {port} can't be listened on: {error.strerror}", hint="--http 0 takes a free one"
        ) from None
    return made
