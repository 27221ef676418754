"""Who may use the server. The checks come before any route and before a body is read.

Host     exactly one of our names; a page with another name that resolves to us (DNS rebinding) is refused
Origin   ours, with the port, or none; a WebSocket and a POST of a browser always have one
type     a POST is JSON; browsers send other types across origins without a preflight
peer     no process of an agent or of another user of this machine, under /api/
proof    address#t=TOKEN → Access.redeem(token) → proof, kept by the browser → Access.knows(proof)

Tokens live in memory. Of a proof only the SHA-256 is kept, also on disk (run_file.py). So pages continue after the
server was killed, and a proof can't be read from the disk.
"""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from tarmac.loopback.http_server import AsgiApp, Message, Receive, Send
from tarmac.loopback.peer import Peer, peer_of

LARGEST_BODY: Final = 1 << 20
AGENT_REFUSED: Final = "processes that run in Tarmac's terminals may not use the page"
STRANGER_REFUSED: Final = "other users of this machine may not use the page"
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
            case Peer.STRANGER:
                return HttpRefusal(403, STRANGER_REFUSED, "open it as the user who runs Tarmac")
            case Peer.GONE:
                return HttpRefusal(403, "the process that asked has ended")
        return None


async def _refuse(send: Send, refusal: HttpRefusal) -> None:
    body = json.dumps({"error": {"what": refusal.what, "hint": refusal.hint}}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *HEADERS]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


TOKEN_LASTS: Final = 600.0  # seconds
PROOF_LASTS: Final = 7 * 86_400.0  # seconds after it was last used
MOST_PROOFS: Final = 100


class Access:
    """The tokens and proofs of one server."""

    def __init__(self, *, now: Callable[[], float] = time.time, proofs: Iterable[tuple[str, float]] = ()) -> None:
        self._now = now
        self._tokens: dict[str, float] = {}  # a token's digest, until when
        self._proofs = {digest: used for digest, used in proofs if used > now() - PROOF_LASTS}
        self.changed: Callable[[], object] = bool  # a proof is new: the disk should know it

    def token(self) -> str:
        """A new one-time token."""
        made = secrets.token_urlsafe(32)
        self._tokens[_digest(made)] = self._now() + TOKEN_LASTS
        return made

    def takes(self, token: str) -> bool:
        """Whether a token would be redeemed: it is neither wrong, used nor too old.

        Guesses are not counted. Nobody guesses 256 bits, and another user of the machine could lock the person out.
        """
        # By its digest: how long that takes tells nothing of the token.
        return self._tokens.get(_digest(token), 0.0) >= self._now()

    def redeem(self, token: str) -> str | None:
        """A proof for a token, which is used up by it; None: it is not taken."""
        if not self.takes(token):
            return None
        del self._tokens[_digest(token)]
        now = self._now()
        proof = secrets.token_urlsafe(32)
        self._proofs[_digest(proof)] = now
        while len(self._proofs) > MOST_PROOFS:
            del self._proofs[min(self._proofs, key=lambda each: self._proofs[each])]
        self.changed()
        return proof

    def knows(self, proof: str) -> bool:
        digest, now = _digest(proof), self._now()
        used = self._proofs.get(digest)
        if used is None or used < now - PROOF_LASTS:
            return False
        self._proofs[digest] = now
        return True

    @property
    def proofs(self) -> list[tuple[str, float]]:
        """Their digests, and when each was last used: what may be kept on the disk."""
        return list(self._proofs.items())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
