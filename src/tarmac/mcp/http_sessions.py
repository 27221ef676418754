"""Clients' sessions over HTTP (the older era): which exist, and when one ends. Plain ASGI, without the SDK.

a request ─→ Sessions ─→ the app       its answer's Mcp-Session-Id begins a session; DELETE, or a 404 for it, ends it

A killed client never sends its DELETE. If a session is idle for too long, we send the DELETE in its place. The same
happens to the longest idle session when there are too many.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
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

    def __init__(self, app: App, ended: Ended, *, host: str, idle: float = IDLE, most: int = MOST) -> None:
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
