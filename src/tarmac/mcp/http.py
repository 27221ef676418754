"""Who may use the HTTP server: programs on this machine that have the token, and no web page. And their sessions.

The checks run in this order, before the body is read. The Host header must be exactly ours, which stops DNS rebinding.
The Origin header must be absent or ours. The bearer token is compared in constant time.

a request ─→ HttpSessions ─→ the app    its answer's Mcp-Session-Id begins a session; DELETE, or a 404 for it, ends it

Sessions belong to the older era. A killed client never sends its DELETE. If a session is idle for too long, we send the
DELETE in its place. The same happens to the longest idle session when there are too many.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable
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


Ended = Callable[[str], Awaitable[None]]

IDLE: Final = 1800.0  # seconds without a request under way; an open stream is one
MOST: Final = 64
HEADER: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"
STATELESS: Final = b"2026"  # from then on there are none
FULL: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"too many sessions are open"}}'


@dataclass(slots=True)
class _Session:
    under_way: int = 0
    goodbye: asyncio.TimerHandle | None = None  # while nothing is under way


class HttpSessions:
    """The app, and a word to `ended` for each of its sessions that is no more."""

    def __init__(self, app: AsgiApp, ended: Ended, *, host: str, idle: float = IDLE, most: int = MOST) -> None:
        self.app = app
        self._ended = ended
        self._host = host
        self._idle = idle
        self._most = most
        self._open: dict[str, _Session] = {}  # the one that was used longest ago first
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            await self._close()  # that was our lifespan
            return
        id = _header(scope["headers"], HEADER).decode("latin-1")
        opens = not id and _header(scope["headers"], VERSION) < STATELESS
        if opens and not await self._room():
            kind = (b"content-type", b"application/json")
            await send({"type": "http.response.start", "status": 503, "headers": [kind]})
            await send({"type": "http.response.body", "body": FULL})
            return
        self._begins(id)
        goes = scope["method"] == "DELETE"
        try:
            await self.app(scope, receive, lambda message: self._tell(message, send, id, goes=goes))
        finally:
            self._left(id)

    async def _tell(self, message: Message, send: Send, id: str, *, goes: bool) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            if id in self._open and (status == 404 or (goes and status < 300)):
                await self._end(id)
            made = _header(message["headers"], HEADER).decode("latin-1")
            if not id and made and status < 300 and made not in self._open:
                self._open[made] = _Session()
                self._wait(made)
        await send(message)

    # How long they last

    def _begins(self, id: str) -> None:
        found = self._open.pop(id, None)
        if found is None:
            return
        self._open[id] = found
        found.under_way += 1
        if found.goodbye is not None:
            found.goodbye.cancel()
            found.goodbye = None

    def _left(self, id: str) -> None:
        found = self._open.get(id)
        if found is None:
            return
        found.under_way -= 1
        if not found.under_way:
            self._wait(id)

    def _wait(self, id: str) -> None:
        self._open[id].goodbye = asyncio.get_running_loop().call_later(self._idle, self._send_off, id)

    async def _room(self) -> bool:
        """Is there room for one more? The one that is idle longest makes it."""
        if len(self._open) < self._most:
            return True
        idle = next((id for id, each in self._open.items() if not each.under_way), None)
        if idle is None:
            return False
        await self._delete(idle)
        return True

    def _send_off(self, id: str) -> None:
        task = asyncio.create_task(self._delete(id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _delete(self, id: str) -> None:
        """Say goodbye in the client's place."""
        headers = [(b"host", self._host.encode()), (HEADER, id.encode("latin-1"))]
        scope: Message = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "DELETE", "scheme": "http",
            "path": "/mcp", "raw_path": b"/mcp", "root_path": "", "query_string": b"", "headers": headers,
            "client": None, "server": None,
        }  # fmt: skip
        try:
            await self.app(scope, _nothing, _nowhere)
        finally:
            await self._end(id)

    async def _end(self, id: str) -> None:
        found = self._open.pop(id, None)
        if found is None:
            return
        if found.goodbye is not None:
            found.goodbye.cancel()
        await self._ended(id)

    async def _close(self) -> None:
        for each in self._open.values():
            if each.goodbye is not None:
                each.goodbye.cancel()
        self._open.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _header(headers: "list[tuple[bytes, bytes]]", name: bytes) -> bytes:
    return next((value for key, value in headers if key.lower() == name), b"")


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nowhere(_: Message) -> None:
    pass
