"""One client on a pair of pipes, one message a line: garbage is answered, a flood waits.

bytes ─MessageFrames→ lines ─→ messages ─→ the SDK's server ─→ messages ─→ bytes

The stream may be cut anywhere. A line that is too long costs itself only.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from tarmac.mcp.adapter import LONGEST, make_server
from tarmac.mcp.tool_server import ToolServer

_ENDS = 4096  # bytes at each end of a line that is too long: its id is there
_TEXT = rb'"(?:[^"\\]|\\.)*+"'
_SCALAR = rb"(?:" + _TEXT + rb"|-?\d+|true|false|null)"
_ID = rb'"id"\s*:\s*(' + _TEXT + rb"|-?\d{1,18})\s*"
_FIRST = re.compile(rb"\s*\{\s*(?:" + _TEXT + rb"\s*:\s*" + _SCALAR + rb"\s*,\s*)*" + _ID + rb"[,}]")
_LAST = re.compile(rb"[,{]\s*" + _ID + rb"\}\s*$")  # the line's own brace: one of an inner object has another behind it


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line of more than `LONGEST` bytes; it is gone, the next one is whole."""

    bytes: int
    id: str | int | None = None  # if it can be read


class MessageFrames:
    """Feed it pieces; it gives whole lines, without their ends. Empty lines are none."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._lost = 0  # bytes of the line that is being dropped …
        self._first = self._last = b""  # … and its two ends

    def feed(self, piece: bytes) -> list[bytes | TooLong]:
        """The lines that end in this piece."""
        found: list[bytes | TooLong] = []
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._add(part)
            self._end(found)
        self._add(rest)
        return found

    def close(self) -> list[bytes | TooLong]:
        """What came after the last end of line, if it is anything."""
        found: list[bytes | TooLong] = []
        self._end(found)
        return found

    def _add(self, part: bytes) -> None:
        if self._lost or len(self._held) + len(part) > self._longest:
            self._first += bytes(self._held[:_ENDS] + part[:_ENDS])[: _ENDS - len(self._first)]
            self._last = (self._last + self._held[-_ENDS:] + part[-_ENDS:])[-_ENDS:]
            self._lost += len(self._held) + len(part)
            self._held.clear()
        else:
            self._held += part

    def _end(self, found: list[bytes | TooLong]) -> None:
        if self._lost:
            found.append(TooLong(self._lost, id_of(self._first, self._last)))
        elif self._held.strip():
            found.append(bytes(self._held).removesuffix(b"\r"))
        self._held.clear()
        self._lost, self._first, self._last = 0, b"", b""


def id_of(first: bytes, last: bytes) -> str | int | None:
    """The id of a message, by its two ends: before all that is nested, or as its very last field."""
    found = _FIRST.match(first) or _LAST.search(last)
    try:
        id = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return id if isinstance(id, str | int) else None


Write = Callable[[bytes], Awaitable[None]]

MOST_AT_ONCE: Final = 256  # requests that were read and not answered; then nothing more is read


async def serve_lines(
    tools: ToolServer,
    pieces: AsyncIterator[bytes],
    write: Write,
    until_lost: Callable[[], Awaitable[None]] = anyio.sleep_forever,
) -> None:
    """Serve one client on a pair of pipes, one message a line, until its end of file, or until it reads no more.

    `until_lost` tells the latter while there is nothing to write.
    """
    server = make_server(tools)
    incoming, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    waiting = InFlight()
    reading = anyio.CancelScope()  # left early, it is as if the client had said its end of file

    async def watch() -> None:
        await until_lost()
        reading.cancel()

    async def send(data: bytes) -> None:
        try:
            await write(data)
        except ConnectionError:  # it closed its end
            reading.cancel()

    async def read() -> None:
        lines = MessageFrames()
        async with incoming:
            with reading:
                async for piece in pieces:
                    for line in lines.feed(piece):
                        await take(line)
                for line in lines.close():
                    await take(line)

    async def take(line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            what = f"a message of {line.bytes:,} bytes; {LONGEST:,} are the most"
            await send(_complaint(types.INVALID_REQUEST, what, line.id))
            return
        for message in _messages(line):
            if isinstance(message, bytes):
                await send(message)
                continue
            await waiting.room()
            waiting.came(message)
            await incoming.send(SessionMessage(message))

    async def tell() -> None:
        first = True
        async with outgoing:
            async for sent in outgoing:
                waiting.went(sent.message)
                await send(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                if first:  # it has its answer; now is the time for what takes long to import
                    group.start_soon(tools.warm_up)
                    first = False

    async with anyio.create_task_group() as group:
        group.start_soon(tell)
        group.start_soon(read)
        group.start_soon(watch)
        try:
            await server.run(inbox, outbox, server.create_initialization_options())
        finally:
            server.subscriptions.forget()
        group.cancel_scope.cancel()


def _messages(line: bytes) -> list[types.JSONRPCMessage | bytes]:
    """The messages of a line (a batch has several), or what to answer to what is none."""
    try:
        return [types.jsonrpc_message_adapter.validate_json(line, by_name=False)]
    except ValueError:
        pass
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return [_complaint(types.PARSE_ERROR, "this is not valid JSON")]
    made: list[types.JSONRPCMessage | bytes] = []
    for each in found if isinstance(found, list) and found else [found]:
        try:
            made.append(types.jsonrpc_message_adapter.validate_python(each, by_name=False))
        except (ValueError, RecursionError):
            id = each.get("id") if isinstance(each, dict) else None
            made.append(_complaint(types.INVALID_REQUEST, "this is not a JSON-RPC message", id))
    return made


def _complaint(code: int, what: str, id: object = None) -> bytes:
    id = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}}).encode() + b"\n"


class InFlight:
    """The requests that were read and not answered: while they are too many, nobody reads on."""

    def __init__(self) -> None:
        self._open: set[str | int] = set()
        self._room = asyncio.Event()

    async def room(self) -> None:
        while len(self._open) >= MOST_AT_ONCE:
            self._room.clear()
            await self._room.wait()

    def came(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._gone((message.params or {}).get("requestId"))

    def went(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._gone(message.id)

    def _gone(self, id: object) -> None:
        if isinstance(id, str | int):
            self._open.discard(id)
        self._room.set()
