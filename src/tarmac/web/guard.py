"""Who may use the server at all. These checks come before any route and before a body is read.

Host     exactly one of our names; a page with another name that resolves to us (DNS rebinding) is refused
Origin   ours, with the port, or none; a WebSocket and a POST of a browser always have one
type     a POST is JSON; browsers send other types across origins without a preflight
peer     no process of an agent, under /api/
"""

import asyncio
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tarmac.loopback.http_server import AsgiApp, Message, Receive, Send
from tarmac.loopback.peer import Peer, peer_of

LARGEST_BODY: Final = 1 << 20
AGENT_REFUSED: Final = "processes that run in Tarmac's terminals may not use the page"
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), usb=()"),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """Why a request is not served."""

    status: int
    what: str
    hint: str = ""


@dataclass(slots=True)
class Guard:
    """Passes permitted requests to `app`, answers the others, and adds our headers."""

    app: AsgiApp
    names: Collection[str]  # host:port

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope) or await self._peer(scope)
        if scope["type"] == "websocket":
            if refusal:
                await receive()  # "websocket.connect": to close before it is accepted answers 403
                await send({"type": "websocket.close", "code": 4403})
            else:
                await self.app(scope, receive, send)
            return
        if refusal:
            await _refuse(send, refusal)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in HEADERS if each[0] not in given)]
            await send(message)

        await self.app(scope, receive, with_headers)

    def refusal(self, scope: Message) -> HttpRefusal | None:
        """What is wrong with the headers; None: nothing."""
        given: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts, origins = given.get(b"host", []), given.get(b"origin", [])
        if len(hosts) != 1 or hosts[0] not in self.names:
            return HttpRefusal(421, "this server has another name", "open the address that `tarmac web` printed")
        if origins and (len(origins) != 1 or origins[0] not in [f"http://{name}" for name in self.names]):
            return HttpRefusal(403, "other web pages may not use this server")
        if scope["type"] == "websocket":
            return None
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return HttpRefusal(405, f"{scope['method']} is nothing that this server does")
        if scope["method"] == "POST":
            if [each.partition(";")[0].strip().lower() for each in given.get(b"content-type", [])] != [
                "application/json"
            ]:
                return HttpRefusal(415, "a POST must be application/json")
            length = given.get(b"content-length", ["0"])[0]
            if b"transfer-encoding" in given or not length.isdecimal() or int(length) > LARGEST_BODY:
                return HttpRefusal(413, "the body is too large, or does not say how large it is")
        return None

    async def _peer(self, scope: Message) -> HttpRefusal | None:
        if not scope["path"].startswith("/api/"):
            return None
        client, server = scope.get("client"), scope.get("server")
        if not client or not server:
            return HttpRefusal(403, "nobody can tell who asks")
        match await asyncio.to_thread(peer_of, tuple(client), tuple(server)):
            case Peer.AGENT:
                return HttpRefusal(403, AGENT_REFUSED, "a person answers in a browser of their own")
            case Peer.GONE:
                return HttpRefusal(403, "who asked is gone")
        return None


async def _refuse(send: Send, refusal: HttpRefusal) -> None:
    body = json.dumps({"error": {"what": refusal.what, "hint": refusal.hint}}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *HEADERS]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
