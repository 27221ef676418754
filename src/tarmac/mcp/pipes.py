"""One client on a pair of pipes, one message a line: garbage is answered, a flood waits.

bytes ─Lines→ lines ─→ messages ─→ the SDK's server ─→ messages ─→ bytes
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from tarmac.mcp.adapter import make_server
from tarmac.mcp.frames import LONGEST, MessageFrames, TooLong
from tarmac.mcp.tool_server import ToolServer

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
        return [_complaint(types.PARSE_ERROR, "this is no JSON")]
    made: list[types.JSONRPCMessage | bytes] = []
    for each in found if isinstance(found, list) and found else [found]:
        try:
            made.append(types.jsonrpc_message_adapter.validate_python(each, by_name=False))
        except (ValueError, RecursionError):
            id = each.get("id") if isinstance(each, dict) else None
            made.append(_complaint(types.INVALID_REQUEST, "this is no JSON-RPC message", id))
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
