"""PURE: an agent's `session/update`s as the events and signals of a task, so that it is shown and kept like our own.

update → Telling.of() → [event | signal, …]          flush() → what was said so far, as one fact

Whatever comes is taken: a call that is first heard of by an update, one that ends twice, a terminal of the agent's own
(`_meta.terminal_*`), a kind nobody knows yet.
"""

import difflib
import json
from dataclasses import field
from typing import Final

from tarmac.acp.host.permission import command_of, lent_tool
from tarmac.acp.host.reading import Object, block_text, object_of, objects_of, text_of, whole_of
from tarmac.dataclass import dataclass
from tarmac.events import TerminalId
from tarmac.models.messages import NO_USAGE, Part, Reasoning, Text
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tools.command import short

Told = e.TaskEvent | s.Signal
MOST_SAID: Final = 256 << 10  # characters held before they become a fact
MOST_LOGGED: Final = 16_000  # characters of a call's result
MOST_DIFFED: Final = 5_000  # lines
MOST_CALLS: Final = 10_000
_VERBS: Final = {
    "read": ("Reading", "Read"),
    "edit": ("Editing", "Edited"),
    "delete": ("Deleting", "Deleted"),
    "move": ("Moving", "Moved"),
    "search": ("Searching", "Searched"),
    "execute": ("Running", "Ran"),
    "think": ("Thinking", "Thought"),
    "fetch": ("Fetching", "Fetched"),
    "switch_mode": ("Switching", "Switched"),
}
_ENDS: Final[dict[str, e.Outcome]] = {"completed": "done", "failed": "failed", "cancelled": "interrupted"}
_SPOKEN: Final = {"run", "write", "create", *(w.lower() for pair in _VERBS.values() for w in pair)} | set(_VERBS)
_TODOS: Final = {"pending": "open", "in_progress": "doing", "completed": "done"}


@dataclass(slots=True)
class Call:
    """A tool call, as its updates told it."""

    id: str
    facts: Object = field(default_factory=dict)  # the last word on each of its fields
    started: bool = False
    finished: bool = False
    streamed: str = ""  # text content that was shown as it grew
    output: str = ""  # of a terminal of the agent's own
    exit_code: int | None = None
    began: float = 0.0


class Telling:
    """The fold of one session."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self._said: list[Part] = []
        self._size = 0
        self._numbers = 1
        self._elsewhere: dict[str, int] = {}  # calls of our own MCP tools that were told when we made them

    def told_elsewhere(self, tool: str) -> None:
        """The agent's next word on a call of this tool of ours is no news."""
        self._elsewhere[tool] = self._elsewhere.get(tool, 0) + 1

    @property
    def _request(self) -> e.RequestId:
        return e.RequestId(f"said-{self._numbers}")

    def known(self, id: str) -> Object:
        """What is known of a call."""
        call = self.calls.get(id)
        return dict(call.facts) if call else {}

    def of(self, update: Object, *, at: float) -> list[Told]:
        """What it means."""
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                return self._words(Text(block_text(object_of(update.get("content")))), at)
            case "agent_thought_chunk":
                return self._words(Reasoning(block_text(object_of(update.get("content")))), at)
            case "tool_call" | "tool_call_update":
                return self._call(update, at)
            case "plan":
                entries = objects_of(update.get("entries"))
                todos = tuple(
                    e.Todo(text=text_of(each.get("content")), status=_TODOS.get(text_of(each.get("status")), "open"))  # type: ignore[arg-type]
                    for each in entries
                )
                return [*self.flush(at=at), e.TodosUpdated(at=at, todos=todos)]
            case "notice":
                text = text_of(update.get("message")) or block_text(object_of(update.get("content")))
                return [e.Noted(at=at, what="notice", text=text)] if text else []
        return []  # modes, commands, usage, and whatever comes to be

    # Words

    def _words(self, part: Text | Reasoning, at: float) -> list[Told]:
        if not part.text:
            return []
        if self._said and type(self._said[-1]) is type(part):
            last = self._said[-1]
            assert isinstance(last, Text | Reasoning)
            self._said[-1] = type(part)(last.text + part.text)
        else:
            self._said.append(part)
        self._size += len(part.text)
        signal = s.TextStreamed if isinstance(part, Text) else s.ReasoningStreamed
        told: list[Told] = [signal(request=self._request, text=part.text)]
        return told if self._size < MOST_SAID else [*told, *self.flush(at=at)]

    def flush(self, *, at: float) -> list[Told]:
        """What was said since the last time, as a fact."""
        said, self._said, self._size = tuple(self._said), [], 0
        if not said:
            return []
        fact = e.ModelSaid(at=at, request=self._request, parts=said, stop="end", usage=NO_USAGE)
        self._numbers += 1
        return [fact]

    # Calls

    def _call(self, update: Object, at: float) -> list[Told]:
        id = text_of(update.get("toolCallId"))
        if not id:
            return []
        call = self.calls.get(id)
        if call is None:
            if len(self.calls) >= MOST_CALLS:
                self.calls = {key: each for key, each in self.calls.items() if not each.finished}
            call = self.calls[id] = Call(id, began=at)
        call.facts |= {name: value for name, value in update.items() if value is not None and name != "_meta"}
        if call.finished:
            return []
        if (lent := lent_tool(text_of(call.facts.get("title")))) and not call.started:
            return self._of_ours(call, lent, at)
        told: list[Told] = []
        status = text_of(update.get("status"))
        meta = object_of(update.get("_meta"))
        output = self._terminal_output(call, meta)
        grown = self._grown(call, update)
        if not call.started and (status == "in_progress" or status in _ENDS or output or grown):
            told += self._start(call, at)
        told += [
            s.OutputStreamed(call=e.CallId(id), terminal=TerminalId(""), data=text.encode("utf-8", "replace"))
            for text in (output, grown)
            if text
        ]
        if status in _ENDS:
            told += self._finish(call, status, at)
        return told

    def _of_ours(self, call: Call, tool: str, at: float) -> list[Told]:
        """A call of one of our MCP tools, says the agent. It is shown at its end, unless we made it and told it."""
        if (status := text_of(call.facts.get("status"))) not in _ENDS:
            return []
        if self._elsewhere.get(tool):
            self._elsewhere[tool] -= 1
            call.finished = True
            call.facts.pop("content", None)
            return []
        return [*self._start(call, at), *self._finish(call, status, at)]

    def _start(self, call: Call, at: float) -> list[Told]:
        call.started = True
        doing, _ = titles(call.facts)
        command = command_of(object_of(call.facts.get("rawInput"))) or None
        return [
            *self.flush(at=at),
            e.ToolStarted(at=at, call=e.CallId(call.id), name=_name(call), title=doing, command=command),
        ]

    def _terminal_output(self, call: Call, meta: Object) -> str:
        exit = object_of(meta.get("terminal_exit"))
        if (code := whole_of(exit.get("exit_code"))) is not None:
            call.exit_code = code
        text = text_of(object_of(meta.get("terminal_output")).get("data"))
        call.output = (call.output + text)[-MOST_LOGGED:]
        return text

    def _grown(self, call: Call, update: Object) -> str:
        """What was added to the text of a running command: agents send all of it each time."""
        if text_of(call.facts.get("kind")) != "execute" or "content" not in update:
            return ""
        text = _content_text(objects_of(update.get("content")))
        if not text.startswith(call.streamed):
            return ""
        grown, call.streamed = text[len(call.streamed) :], text
        return grown

    def _finish(self, call: Call, status: str, at: float) -> list[Told]:
        call.finished = True
        content = objects_of(call.facts.get("content"))
        text = call.output or _content_text(content) or _raw(call.facts.get("rawOutput"))
        files = [_diff(each) for each in content if each.get("type") == "diff"]
        _, did = titles(call.facts)
        finished = e.ToolFinished(
            at=at,
            call=e.CallId(call.id),
            name=_name(call),
            outcome=_ENDS[status],
            content=(Text(text[-MOST_LOGGED:]),) if text else (),
            title=did,
            seconds=max(at - call.began, 0.0),
            exit_code=call.exit_code,
            details=json.dumps({"files": files}) if files else "",
        )
        call.facts.pop("content", None)  # it may be large, and is told
        return [finished]


def titles(facts: Object) -> tuple[str, str]:
    """What a call does, and what it did: "Running `make`", "Ran `make`" (A7)."""
    doing, did = _VERBS.get(text_of(facts.get("kind")), ("Using", "Used"))
    command = command_of(object_of(facts.get("rawInput"))) if text_of(facts.get("kind")) == "execute" else ""
    title = f"`{short(command)}`" if command else " ".join(text_of(facts.get("title")).split()) or "a tool"
    first, _, rest = title.partition(" ")
    if not command and first.lower().strip(":") in _SPOKEN and rest:
        title = rest
    return f"{doing} {title}", f"{did} {title}"


def _name(call: Call) -> str:
    return text_of(call.facts.get("kind")) or "other"


def _content_text(content: list[Object]) -> str:
    return "\n".join(
        text
        for each in content
        if each.get("type") == "content" and (text := block_text(object_of(each.get("content"))))
    )


def _raw(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:MOST_LOGGED]


def _diff(each: Object) -> dict[str, object]:
    old, new = each.get("oldText"), text_of(each.get("newText"))
    path = text_of(each.get("path"))
    if not isinstance(old, str):
        return {"path": path, "diff": new[:MOST_LOGGED], "new": True}
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MOST_DIFFED:
        return {"path": path, "diff": f"({len(before):,} lines become {len(after):,})", "new": False}
    lines = difflib.unified_diff(before, after, "before", "after", lineterm="")
    return {"path": path, "diff": "\n".join(lines)[:MOST_LOGGED], "new": False}
