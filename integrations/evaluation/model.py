"""A model on loopback that plays the steps of a task: the same ones, in the same order, for whoever asks.

POST /v1/chat/completions → which task, which step, was the outcome seen? → that step again (a wait), or the next one

It speaks to each agent in its own way: JSON for Terminus-2, calls of tools for the others. It remembers nothing: where
a conversation stands is read from its messages. Tokens are counted as characters / 4.
"""

import argparse
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tasks import POLL, TASKS, Step, Task

MOST_POLLS = 12
Message = Mapping[str, object]


@dataclass(frozen=True)
class Move:
    """What the model does now. `step` counts from 0; `polls`: how often it has waited for this step."""

    task: Task
    step: int
    polls: int = 0

    @property
    def done(self) -> bool:
        return self.step >= len(self.task.steps)

    @property
    def tag(self) -> str:
        return f"<{self.task.name} {self.step} {self.polls}>"


def text_of(message: Message) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def next_move(messages: Sequence[Message]) -> Move:
    """Where the conversation stands."""
    whole = "\n".join(text_of(each) for each in messages if each.get("role") == "user")
    task = next(task for task in TASKS if f"[task {task.name}]" in whole)
    last, since, seen = None, 0, ""
    for at, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        said = text_of(message) + json.dumps(message.get("tool_calls") or "")
        if found := re.search(rf"<{re.escape(task.name)} (\d+) (\d+)>", said):
            move = Move(task, int(found[1]), int(found[2]))
            if last is None or move.step != last.step:
                since = at
            last = move
    if last is None:
        return Move(task, 0)
    if last.done:
        return last
    seen = "\n".join(text_of(each) for each in messages[since + 1 :] if each.get("role") in ("user", "tool"))
    expect = task.steps[last.step].expect
    if not expect or re.search(expect, seen, re.MULTILINE):
        return Move(task, last.step + 1)
    if last.polls >= MOST_POLLS:
        return Move(task, len(task.steps))
    return Move(task, last.step, last.polls + 1)


class Speech:
    """How a model says a move to one kind of agent."""

    def answer(self, move: Move) -> dict[str, object]:
        raise NotImplementedError


class Terminus(Speech):
    def answer(self, move: Move) -> dict[str, object]:
        commands = []
        if not move.done:
            step = move.task.steps[move.step]
            keys, seconds = (step.keys, step.guess) if not move.polls else ("", POLL)
            commands = [{"keystrokes": keys, "duration": seconds * GUESSES}]
        reply = {"analysis": move.tag, "plan": "go on", "commands": commands, "task_complete": move.done}
        return {"role": "assistant", "content": json.dumps(reply)}


class Tools(Speech):
    """An agent with tools: `calls` says which ones."""

    def answer(self, move: Move) -> dict[str, object]:
        name, arguments = self.finish(move) if move.done else self.call(move, move.task.steps[move.step])
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{move.step}_{move.polls}", "type": "function", "function": function}
        return {"role": "assistant", "content": move.tag, "tool_calls": [call]}

    def finish(self, move: Move) -> tuple[str, dict[str, object]]:
        return "submit", {"answer": "done"}

    def call(self, move: Move, step: Step) -> tuple[str, dict[str, object]]:
        raise NotImplementedError


class BashSession(Tools):
    """inspect_ai's own tool."""

    def call(self, move: Move, step: Step) -> tuple[str, dict[str, object]]:
        if move.polls:
            return "bash_session", {"action": "read"}
        return "bash_session", {"action": "type", "input": step.keys}


class TerminalTool(Tools):
    """tarmac-inspect's tool. A model names the same longest wait each time, not a guess."""

    def call(self, move: Move, step: Step) -> tuple[str, dict[str, object]]:
        return "terminal", {"keys": "" if move.polls else step.keys, "wait": 30}


class TarmacAgent(Tools):
    """Tarmac's own agent."""

    def __init__(self, messages: Sequence[Message]) -> None:
        said = "\n".join(text_of(each) for each in messages if each.get("role") == "tool")
        found = re.search(r"persistent terminal with id '(\w+)'", said)
        self._terminal = found[1] if found else None

    def answer(self, move: Move) -> dict[str, object]:
        if self._terminal is not None:
            return super().answer(move)
        function = {"name": "open_persistent_terminal", "arguments": "{}"}
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "open", "type": "function", "function": function}],
        }

    def finish(self, move: Move) -> tuple[str, dict[str, object]]:
        return "attempt_completion", {"result": "done"}

    def call(self, move: Move, step: Step) -> tuple[str, dict[str, object]]:
        if move.polls:
            return "wait_for_terminal", {"id": self._terminal, "timeout": 30}
        if step.program:
            return "send_to_terminal", {"id": self._terminal, "text": step.keys.rstrip("\n")}
        return "run_persistent_command", {"id": self._terminal, "command": step.keys.rstrip("\n")}


GUESSES = 1.0
THINKING = 0.0


def speech_for(request: Mapping[str, object]) -> Speech:
    tools = request.get("tools") or ()
    names = {each["function"]["name"] for each in tools if isinstance(each, dict)} if isinstance(tools, list) else set()
    if "bash_session" in names:
        return BashSession()
    if "terminal" in names:
        return TerminalTool()
    return TarmacAgent(request["messages"]) if "attempt_completion" in names else Terminus()  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(THINKING)
        message = speech_for(request).answer(next_move(request["messages"]))
        used = {
            "prompt_tokens": len(json.dumps(request["messages"])) // 4,
            "completion_tokens": len(json.dumps(message)) // 4,
        }
        used["total_tokens"] = sum(used.values())
        reason = "tool_calls" if "tool_calls" in message else "stop"
        base = {"id": "x", "created": int(time.time()), "model": "scripted"}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._send(
                "application/json",
                json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": used}),
            )
            return
        calls = message.get("tool_calls")
        delta = message | (
            {"tool_calls": [{"index": at, **each} for at, each in enumerate(calls)]} if isinstance(calls, list) else {}
        )
        chunks = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": used},
        ]
        lines = [f"data: {json.dumps({**base, 'object': 'chat.completion.chunk', **each})}\n\n" for each in chunks]
        self._send("text/event-stream", "".join(lines) + "data: [DONE]\n\n")

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    global GUESSES, THINKING
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--guesses", type=float, default=1.0, help="all guessed durations times this")
    parser.add_argument("--thinking", type=float, default=0.0, help="seconds that each answer takes")
    options = parser.parse_args()
    GUESSES, THINKING = options.guesses, options.thinking
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
