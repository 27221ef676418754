"""A real HTTP server that streams what a test tells it to, in both dialects, and breaks where it is told to.

async with serving(Reply(…), …) as server: each request gets the next reply; `server.requests` is what was asked.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SSE = "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Reply:
    """One response: pieces of its body in order; a number is a pause in seconds."""

    pieces: Iterable[bytes | float] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = SSE
    cut: bool = False  # close in the middle of the body
    hold: bool = False  # say nothing more, until the client is gone


@dataclass
class Request:
    """What was asked."""

    path: str
    headers: dict[str, str]
    body: dict[str, object]


class Server:
    """Plays its replies."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Reply] | None = None  # instead of the replies
        self.sent = asyncio.Event()  # all of a reply's pieces
        self.gone = asyncio.Event()  # the client closed its connection while we held it
        self.port = 0
        self.handling: list[asyncio.Task[None] | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handling.append(asyncio.current_task())
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        except asyncio.CancelledError:  # the test is over
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Request(first.split()[1], headers, json.loads(body or b"{}")))
        reply = self.answer(self.requests[-1]) if self.answer else self.replies.pop(0)
        told = {"content-type": reply.content_type, "transfer-encoding": "chunked", **reply.headers}
        writer.write(f"HTTP/1.1 {reply.status} X\r\n".encode())
        writer.write("".join(f"{name}: {value}\r\n" for name, value in told.items()).encode() + b"\r\n")
        await writer.drain()
        for piece in reply.pieces:
            if isinstance(piece, float):
                await asyncio.sleep(piece)
            else:
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await writer.drain()
        self.sent.set()
        if reply.hold:
            assert await reader.read(1) == b""
            self.gone.set()
            return False
        if reply.cut:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def serving(*replies: Reply) -> AsyncIterator[Server]:
    server = Server(replies)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in server.handling:
            if task is not None:
                task.cancel()
                await task


def refusal(status: int, error: object, **headers: str) -> Reply:
    """An error, as JSON."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply([json.dumps({"error": error}).encode()], status, told, "application/json")


def event(data: object, name: str = "") -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


# Anthropic's dialect


def claude(
    *blocks: dict[str, object], stop: str = "end_turn", usage: dict[str, int] | None = None, id: str = "m"
) -> list[bytes]:
    """An answer of blocks: {"type": "text", "text": [pieces]}, {"type": "tool_use", …, "json": [pieces]} …"""
    counts = {"input_tokens": 10, "output_tokens": 1, **(usage or {})}
    message = {"id": id, "type": "message", "role": "assistant", "model": "x", "content": [], "usage": counts}
    found = [event({"type": "message_start", "message": message}, "message_start"), event({"type": "ping"}, "ping")]
    for index, block in enumerate(blocks):
        found += _block(index, dict(block))
    ending = {"stop_reason": stop, "stop_sequence": None}
    end = {"type": "message_delta", "delta": ending, "usage": {"output_tokens": counts["output_tokens"] + 7}}
    return [*found, event(end, "message_delta"), event({"type": "message_stop"}, "message_stop")]


def _block(index: int, block: dict[str, object]) -> list[bytes]:
    deltas: list[dict[str, object]] = []
    for field_, kind in (
        ("text", "text"),
        ("thinking", "thinking"),
        ("json", "partial_json"),
        ("signature", "signature"),
    ):
        pieces = block.get(field_)
        name = "input_json_delta" if field_ == "json" else f"{kind}_delta"
        if isinstance(pieces, list):
            deltas += [{"type": name, kind: piece} for piece in pieces]
            block[field_] = ""
    if "json" in block:
        del block["json"]
        block["input"] = {}
    start = {"type": "content_block_start", "index": index, "content_block": block}
    found = [event(start, "content_block_start")]
    found += [event({"type": "content_block_delta", "index": index, "delta": d}, "content_block_delta") for d in deltas]
    return [*found, event({"type": "content_block_stop", "index": index}, "content_block_stop")]


# OpenAI's dialect


def chunk(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event(
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": [choice], **more}
    )


def gpt(*deltas: dict[str, object], finish: str | None = "stop", usage: dict[str, object] | None = None) -> list[bytes]:
    """An answer of deltas, with the end and the count."""
    found = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas), chunk({}, finish)]
    if usage is not None:
        whole = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "x",
            "choices": [],
            "usage": usage,
        }
        found.append(event(whole))
    return [*found, event("[DONE]")]


def call(index: int, arguments: object = None, *, id: str | None = None, name: str | None = None) -> dict[str, object]:
    """A delta with a piece of a tool call."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece: dict[str, object] = {"index": index, "function": function}
    return {"tool_calls": [{**piece, "id": id, "type": "function"} if id is not None else piece]}


# OpenAI's Responses


def responses(*items: dict[str, object], end: str = "completed", **more: object) -> list[bytes]:
    """An answer of output items; `text` and `arguments` and a `summary` of texts as lists of pieces."""
    found: list[dict[str, object]] = [{"type": "response.created", "response": {"id": "r"}}]
    for index, item in enumerate(items):
        found += _item(index, dict(item))
    usage = {"input_tokens": 10, "output_tokens": 8, "input_tokens_details": {}, "output_tokens_details": {}}
    found.append({"type": f"response.{end}", "response": {"id": "r", "usage": usage, **more}})
    return [event(each, str(each["type"])) for each in found]


def _item(index: int, item: dict[str, object]) -> list[dict[str, object]]:
    place = {"output_index": index, "item_id": f"i{index}"}
    deltas: list[dict[str, object]] = []
    for field_, kind in (
        ("text", "output_text.delta"),
        ("refusal", "refusal.delta"),
        ("arguments", "function_call_arguments.delta"),
    ):
        if isinstance(pieces := item.get(field_), list):
            deltas += [{"type": f"response.{kind}", "delta": piece, **place} for piece in pieces]
            item[field_] = "".join(pieces)
    if isinstance(texts := item.get("summary"), list):
        for number, text in enumerate(texts):
            part = {**place, "summary_index": number}
            deltas.append({"type": "response.reasoning_summary_part.added", **part})
            deltas.append({"type": "response.reasoning_summary_text.delta", "delta": text, **part})
        item["summary"] = [{"type": "summary_text", "text": text} for text in texts]
    begun = {**item, "arguments": ""} if "arguments" in item else item
    return [
        {"type": "response.output_item.added", "item": begun, **place},
        *deltas,
        {"type": "response.output_item.done", "item": item, **place},
    ]
