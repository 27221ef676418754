"""PURE: an agent's `session/update`s as the events and signals of a task, shown and stored like our own.

update → Translation.of() → [event | signal, …]          flush() → what was said so far, as one fact
         └ AgentCall: a tool call, built from its updates: its name, its output and changes, how it ended

Odd updates are accepted too: a call that was never announced, one that ends twice, a terminal of the agent's own
(`_meta.terminal_*`), an unknown kind. AgentRepetition finds agents that go in circles.
"""

import difflib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tarmac.acp.host.agent_permission import command_of, lent_tool
from tarmac.acp.host.parameters import Object, block_text, object_of, objects_of, text_of, whole_of
from tarmac.events import TerminalId
from tarmac.models.messages import NO_USAGE, Part, Reasoning, Text
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.repetition import Repetition, fingerprint
from tarmac.tools.edit.unified_diff import patched
from tarmac.tools.execute_command import short

Told = e.TaskEvent | s.Signal
MOST_SAID: Final = 256 << 10  # characters held before they become a fact
MOST_CALLS: Final = 10_000
_ENDS: Final[dict[str, e.Outcome]] = {"completed": "done", "failed": "failed", "cancelled": "interrupted"}
_TODOS: Final = {"pending": "open", "in_progress": "doing", "completed": "done"}
LONGER: Final = 7  # an agent's own calls, which nobody is asked about, may be repeated so many times as often
_UNIQUE: Final = {"call_id", "description", "reason"}  # of a call's input: what differs though the call is the same
MOST_LOGGED: Final = 16_000  # characters of a call's result
MOST_DIFFED: Final = 5_000  # lines
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
_OWN_WORDS: Final = {"was", "did", "failed", "not", "cannot", "can't"}  # it says itself what became of it
_SPOKEN: Final = {
    "run",
    "write",
    "writing",
    "wrote",
    "create",
    "creating",
    "created",
    "update",
    "updating",
    "updated",
    *(w.lower() for pair in _VERBS.values() for w in pair),
} | set(_VERBS)


@dataclass(slots=True)
class AgentCall:
    """A tool call, as its updates told it."""

    id: str
    facts: Object = field(default_factory=dict)  # the last word on each of its fields
    heard: bool = False  # of, by an update
    started: bool = False
    finished: bool = False
    streamed: str = ""  # text content that was shown as it grew
    output: str = ""  # of a terminal of the agent's own: its last part …
    begin: str = ""  # … its first part …
    printed: int = 0  # … and how many characters it has
    exit_code: int | None = None
    began: float = 0.0

    @property
    def command(self) -> str:
        return command_of(object_of(self.facts.get("rawInput")))

    @property
    def content(self) -> list[Object]:
        return objects_of(self.facts.get("content"))

    @property
    def text(self) -> str:
        """What it printed, or came to."""
        if self.printed > MOST_LOGGED:
            left_out = self.printed - len(self.begin) - len(self.output)
            return f"{self.begin}\n[… {left_out:,} characters …]\n{self.output}"
        if self.printed:
            return self.begin + self.output
        return (content_text(self.content) or _raw(self.facts.get("rawOutput")))[-MOST_LOGGED:]

    def print(self, text: str) -> None:
        """Its terminal shows more: both ends are kept."""
        half = MOST_LOGGED // 2
        room = half - len(self.begin)
        self.begin, self.printed = self.begin + text[:room], self.printed + len(text)
        self.output = (self.output + text[room:])[-half:]

    def learn(self, told: Object) -> None:
        """An update: the last word on each of its fields."""
        self.heard = True
        if self.finished:
            return
        self.facts |= {name: value for name, value in told.items() if value is not None and name != "_meta"}

    def asked(self, told: Object) -> Object:
        """The call as a permission request has it, with what updates told of it before; its input field by field.

        One that no update told of is known by its last request alone: some agents use one id for all they ask.
        """
        if not self.heard:
            self.facts = dict(told)
            return told
        before, after = object_of(self.facts.get("rawInput")), object_of(told.get("rawInput"))
        return {**self.facts, **told, "rawInput": {**before, **after}}

    def forget(self) -> None:
        """It is told, and what it held may be large."""
        self.facts = {name: self.facts[name] for name in ("title", "kind") if name in self.facts}

    def code(self) -> int | None:
        """Its exit code: agents put it here and there."""
        raw = object_of(self.facts.get("rawOutput"))
        places = (
            raw.get("exit_code"),
            raw.get("exitCode"),
            raw.get("exit"),
            object_of(raw.get("metadata")).get("exit"),
        )
        found = (self.exit_code, *map(whole_of, places))
        return next((each for each in found if each is not None), None)


class AgentRepetition:
    """The calls of one agent, in their order, and how each ended.

    A call that we are asked about, or are to make, can be refused. One that the agent makes by itself can only be
    seen. It may be an agent that waits, so more of those are allowed before the turn is stopped.
    """

    def __init__(self, most: int) -> None:
        self._asked = Repetition(most)
        self._own = Repetition(most * LONGER)

    def stuck(self, name: str, arguments: str) -> bool:
        """Whether a call would be one too many."""
        return self._asked.stuck(name, arguments)

    def finished(self, name: str, arguments: str, *, text: str, exit_code: int | None, outcome: str = "done") -> bool:
        """A call came to an end. True: the agent goes in circles and does not stop by itself."""
        result = fingerprint([Text(text)], exit_code=exit_code, outcome=outcome)
        for each in (self._asked, self._own):
            each.finished(name, arguments, result)
        return self._own.stuck(name, arguments)

    def forget(self) -> None:
        """The person said something."""
        self._asked.forget()
        self._own.forget()


def identity(facts: Object) -> tuple[str, str]:
    """A call as a value: its kind, and its input, or its title where it tells none."""
    given = {name: value for name, value in object_of(facts.get("rawInput")).items() if name not in _UNIQUE}
    said = json.dumps(given, sort_keys=True, default=str) if given else json.dumps(text_of(facts.get("title")))
    return text_of(facts.get("kind")) or "other", said


def titles(facts: Object) -> tuple[str, str]:
    """What a call does, and what it did: "Running `make`", "Ran `make`"."""
    doing, did = _VERBS.get(text_of(facts.get("kind")), ("Using", "Used"))
    command = command_of(object_of(facts.get("rawInput"))) if text_of(facts.get("kind")) == "execute" else ""
    title = f"`{short(command)}`" if command else " ".join(text_of(facts.get("title")).split()) or "a tool"
    first, _, rest = title.partition(" ")
    if not command and first.lower().strip(":") in _OWN_WORDS:
        return title, title
    if not command and first.lower().strip(":") in _SPOKEN and rest:
        title = rest
    return f"{doing} {title}", f"{did} {title}"


def kind_of(call: AgentCall) -> str:
    return text_of(call.facts.get("kind")) or "other"


def content_text(content: list[Object]) -> str:
    return "\n".join(
        text
        for each in content
        if each.get("type") == "content" and (text := block_text(object_of(each.get("content"))))
    )


def _raw(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:MOST_LOGGED]


def diff_of(each: Object) -> dict[str, object]:
    old, new = each.get("oldText"), text_of(each.get("newText"))
    path = text_of(each.get("path"))
    if isinstance(patch := each.get("patch"), str):  # of version 2
        whole = patched("", patch) if each.get("new") is True else None
        return {"path": path, "diff": (patch if whole is None else whole)[:MOST_LOGGED], "new": whole is not None}
    if not isinstance(old, str):
        return {"path": path, "diff": new[:MOST_LOGGED], "new": True}
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MOST_DIFFED:
        return {"path": path, "diff": f"({len(before):,} lines become {len(after):,})", "new": False}
    lines = difflib.unified_diff(before, after, "before", "after", lineterm="")
    return {"path": path, "diff": "\n".join(lines)[:MOST_LOGGED], "new": False}


class Translation:
    """The fold of one session."""

    def __init__(
        self, ours: Callable[[str], bool] = lambda _: False, repetition: AgentRepetition | None = None
    ) -> None:
        """`ours`: whether a terminal is one that we told of."""
        self._ours = ours
        self._repetition = repetition or AgentRepetition(0)
        self.spinning = ""  # the call that the agent makes again and again, without an end
        self.calls: dict[str, AgentCall] = {}
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

    def call(self, id: str, *, at: float) -> AgentCall:
        """What is known of a call, be it nothing."""
        call = self.calls.get(id)
        if call is None:
            if len(self.calls) >= MOST_CALLS:
                old = [key for key, each in self.calls.items() if each.finished] or list(self.calls)[: MOST_CALLS // 2]
                for each in old:
                    del self.calls[each]
            call = self.calls[id] = AgentCall(id, began=at)
        return call

    def adopt(self, command: str) -> AgentCall | None:
        """The agent's own call for a command that we run now: we tell what comes of it, the agent need not."""
        for call in reversed(self.calls.values()):
            if not call.finished and command in (call.command, text_of(call.facts.get("title"))):
                call.finished = True
                return call
        return None

    def _call(self, update: Object, at: float) -> list[Told]:
        id = text_of(update.get("toolCallId"))
        if not id:
            return []
        call = self.call(id, at=at)
        call.learn(update)
        if call.finished:
            return []
        if not call.started and any(self._ours(text_of(each.get("terminalId"))) for each in call.content):
            call.finished = True  # what it shows is shown
            return []
        if (lent := lent_tool(f"{text_of(call.facts.get('title'))} {id}")) and not call.started:
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

    def _of_ours(self, call: AgentCall, tool: str, at: float) -> list[Told]:
        """A call of one of our MCP tools, says the agent. It is shown at its end, unless we made it and told it."""
        if (status := text_of(call.facts.get("status"))) not in _ENDS:
            return []
        if self._elsewhere.get(tool):
            self._elsewhere[tool] -= 1
            call.finished = True
            call.forget()
            return []
        return [*self._start(call, at), *self._finish(call, status, at)]

    def _start(self, call: AgentCall, at: float) -> list[Told]:
        call.started = True
        doing, _ = titles(call.facts)
        command = call.command or None
        return [
            *self.flush(at=at),
            e.ToolStarted(at=at, call=e.CallId(call.id), name=kind_of(call), title=doing, command=command),
        ]

    def _terminal_output(self, call: AgentCall, meta: Object) -> str:
        exit = object_of(meta.get("terminal_exit"))
        if (code := whole_of(exit.get("exit_code"))) is not None:
            call.exit_code = code
        text = text_of(object_of(meta.get("terminal_output")).get("data"))
        call.print(text)
        return text

    def _grown(self, call: AgentCall, update: Object) -> str:
        """What was added to the text of a running command: agents send all of it each time."""
        if text_of(call.facts.get("kind")) != "execute" or "content" not in update:
            return ""
        text = content_text(objects_of(update.get("content")))
        if not text.startswith(call.streamed):
            return ""
        grown, call.streamed = text[len(call.streamed) :], text
        return grown

    def _finish(self, call: AgentCall, status: str, at: float) -> list[Told]:
        call.finished = True
        files = [diff_of(each) for each in call.content if each.get("type") == "diff"]
        text = call.text
        _, did = titles(call.facts)
        if self._repetition.finished(
            *identity(call.facts), text=f"{text}{files}", exit_code=call.code(), outcome=_ENDS[status]
        ):
            self.spinning = did
        finished = e.ToolFinished(
            at=at,
            call=e.CallId(call.id),
            name=kind_of(call),
            outcome=_ENDS[status],
            content=(Text(text),) if text else (),
            title=did,
            seconds=max(at - call.began, 0.0),
            exit_code=call.code(),
            details=json.dumps({"files": files}) if files else "",
        )
        call.forget()
        return [finished]
