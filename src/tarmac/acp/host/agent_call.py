"""PURE: a tool call of a hosted agent, built from its updates: its name, its output and changes, how it ended.

AgentRepetition finds agents that go in circles.
"""

import difflib
import json
from dataclasses import dataclass, field
from typing import Final

from tarmac.acp.host.agent_permission import command_of
from tarmac.acp.host.parameters import Object, block_text, object_of, objects_of, text_of, whole_of
from tarmac.models.messages import Text
from tarmac.tasks.repetition import Repetition, fingerprint
from tarmac.tools.edit.unified_diff import patched
from tarmac.tools.execute_command import short

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
