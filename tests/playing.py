"""A model for agents that nobody here wrote: a local server that plays a script in the dialect it is asked in.

with playing(use("bash", command="ls"), say("Done.")) as model: give the agent model.url; then look at model.results.

Which turn it is, is told by the conversation that comes with each request: as many as there are results of calls in it.
So an agent may ask twice for the same turn, and ask other things beside it (a title, a model list): those offer no
tools.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tests.models import server as dialect

Body = dict[str, Any]
ASIDE: Final = "A title"  # the answer to whatever is asked beside the script


@dataclass(frozen=True)
class Turn:
    """What the model says: a text, or a call of a tool by the name that the agent gave it."""

    text: str = ""
    tool: str = ""
    arguments: Mapping[str, object] | None = None
    namespace: str = ""  # where Codex keeps the tools of an MCP server

    def of(self, **arguments: object) -> "Turn":
        """The same call with these arguments."""
        return replace(self, arguments=arguments)


def say(text: str) -> Turn:
    return Turn(text=text)


def use(tool: str, **arguments: object) -> Turn:
    return Turn(tool=tool, arguments=arguments)


class Model:
    """The script, and what was asked."""

    def __init__(self, script: tuple[Turn, ...]) -> None:
        self._script = script
        self.url = ""
        self.asked: list[tuple[str, Body]] = []  # where, what: in the order in which it came
        self.longest: Body = {}  # the request with the most of the conversation in it
        self._heard = threading.Lock()

    def answer(self, path: str, body: Body) -> tuple[str, bytes]:
        """Its content type and itself."""
        speak = SPEAKS[_kind(path)]
        with self._heard:
            self.asked.append((path, body))
            if not body.get("tools"):
                return speak(say(ASIDE), len(self.asked), body)
            turn = len(list(_results(body)))
            if turn >= len(self.results):
                self.longest = body
            return speak(self._script[min(turn, len(self._script) - 1)], len(self.asked), body)

    @property
    def results(self) -> list[str]:
        """What the agent told the model of its calls, in order."""
        return list(_results(self.longest))

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        return list(_tools(self.longest))


@contextmanager
def playing(*script: Turn) -> Iterator[Model]:
    """The server, at model.url, for as long as the block lasts."""
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send("application/json", b'{"object": "list", "data": []}')

        def do_HEAD(self) -> None:
            self._send("application/json", b"")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            self._send(*model.answer(self.path, body))

        def _send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.block_on_close = True
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# The dialects: which it is, how an answer is written in it, what a conversation in it tells


def _kind(path: str) -> str:
    where = urlsplit(path).path
    if where.endswith(("/messages", "/count_tokens")):
        return where.rpartition("/")[2]
    if where.endswith(("/chat/completions", "/responses")):
        return where.rpartition("/")[2]
    return "generateContent" if ":" in where else "other"


def _claude(turn: Turn, number: int, body: Body) -> tuple[str, bytes]:
    if turn.tool:
        block: dict[str, object] = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": turn.tool,
            "json": [json.dumps(turn.arguments)],
        }
        return dialect.SSE, b"".join(dialect.claude(block, stop="tool_use", id=f"msg_{number}"))
    if not body.get("stream"):
        whole = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn"}
        said = {"content": [{"type": "text", "text": turn.text}], "usage": {"input_tokens": 1, "output_tokens": 1}}
        return "application/json", json.dumps({**whole, **said}).encode()
    return dialect.SSE, b"".join(dialect.claude({"type": "text", "text": [turn.text]}, id=f"msg_{number}"))


def _gpt(turn: Turn, number: int, _: Body) -> tuple[str, bytes]:
    usage: dict[str, object] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if turn.tool:
        called = dialect.call(0, json.dumps(turn.arguments), id=f"call_{number}", name=turn.tool)
        return dialect.SSE, b"".join(dialect.gpt(called, finish="tool_calls", usage=usage))
    return dialect.SSE, b"".join(dialect.gpt({"content": turn.text}, usage=usage))


def _responses(turn: Turn, number: int, _: Body) -> tuple[str, bytes]:
    item: dict[str, object]
    if turn.tool:
        item = {"type": "function_call", "call_id": f"call_{number}", "name": turn.tool, "id": f"fc_{number}"}
        item |= {"namespace": turn.namespace} if turn.namespace else {}
        item["arguments"] = [json.dumps(turn.arguments)]
    else:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        item = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return dialect.SSE, b"".join(dialect.responses(item, usage=usage))


def _gemini(turn: Turn, _: int, body: Body) -> tuple[str, bytes]:
    part = {"functionCall": {"name": turn.tool, "args": turn.arguments}} if turn.tool else {"text": turn.text}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "x"}
    return dialect.SSE, dialect.event(answer)


def _count(*_: object) -> tuple[str, bytes]:
    return "application/json", b'{"input_tokens": 10}'


def _nothing(*_: object) -> tuple[str, bytes]:
    return "application/json", b"{}"


SPEAKS: Final[dict[str, Callable[[Turn, int, Body], tuple[str, bytes]]]] = {
    "messages": _claude,
    "count_tokens": _count,
    "completions": _gpt,
    "responses": _responses,
    "generateContent": _gemini,
    "other": _nothing,
}


def _said(body: Body) -> list[Body]:
    """The conversation, in any dialect."""
    found = body.get("messages") or body.get("input") or body.get("contents") or []
    return [each for each in found if isinstance(each, dict)]


def _results(body: Body) -> Iterator[str]:
    for each in _said(body):
        if each.get("role") == "tool":  # chat completions
            yield _text(each.get("content"))
        elif each.get("type") == "function_call_output":  # responses
            yield _text(each.get("output"))
        content = each.get("content") or each.get("parts")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_result":  # messages
                yield _text(block.get("content"))
            elif "functionResponse" in block:  # generateContent
                yield json.dumps(block["functionResponse"].get("response"))


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(_text(each.get("text") or each.get("content") or "") for each in content)
    return str(content)


def _tools(body: Body) -> Iterator[str]:
    for each in body.get("tools", ()):
        for one in each.get("functionDeclarations") or each.get("tools") or [each.get("function") or each]:
            yield str(one.get("name") or one.get("type"))
