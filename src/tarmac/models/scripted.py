"""A model that replays a script: for the demo, for tests, and to try Tarmac without a key.

Each request plays the next turn, whatever the prompt is. `info.scripted` is true, and the id is "scripted/NAME".
The script is TOML. A mistake in it is reported with its line.

name = "demo"                       # default: the name of the file
context_window = 200000
native_tools = false                # its texts contain XML tool calls
price = { input = 3.0, output = 15.0 }
[[turn]]                            # played in the order: reasoning, text, calls, error
task = "part one"                   # only in tasks whose first message has these words; for subtasks
reasoning = "The test wants 4."
text = "Let me look."
delay = 0.5                         # seconds before the turn
pace = 0.02                         # seconds before each word
usage = { input = 1200, output = 40, cache_reads = 0, cache_writes = 0 }
stop = "end"                        # default with calls: "tool_use"
times = 1                           # how often the turn is played
[[turn.call]]
name = "read_file"
arguments = { path = "sum.py" }     # or a string that is sent unchanged, for broken JSON
[turn.error]                        # the turn ends with an error
kind = "rate_limit"
what = "slow down"
retry_after = 2
"""

import asyncio
import json
import re
import tomllib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Never, get_args
from uuid import uuid4

from tarmac.errors import FileUnavailable, ScriptWrong, nearest
from tarmac.models.messages import NO_USAGE, Part, Reasoning, StopReason, Text, ToolUse, Usage
from tarmac.models.provider import (
    CallDelta,
    Chunk,
    Completion,
    ErrorKind,
    Load,
    ModelError,
    ModelInfo,
    Price,
    Prompt,
    ReasoningDelta,
    TextDelta,
)

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of a turn."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedError:
    """The error at the end of a turn."""

    kind: ErrorKind
    what: str
    status: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """One response."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    error: ScriptedError | None = None  # after everything else
    stop: StopReason = "end"
    usage: Usage = NO_USAGE
    delay: float = 0.0  # seconds before the turn
    pace: float = 0.0  # seconds before each word; 0: each part arrives at once
    times: int = 1
    task: str = ""  # words of the first message


@dataclass(frozen=True, slots=True)
class Script:
    """A script, read from a file."""

    info: ModelInfo
    turns: tuple[ScriptedTurn, ...]


class Scripted:
    """Plays one turn for each request. It keeps its position, so each task needs its own."""

    def __init__(self, script: Script) -> None:
        self.info = script.info
        self.turns = tuple(turn for turn in script.turns for _ in range(turn.times))
        self._next: int | None = None  # None: before the first request

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """Play the next turn. In a resumed task, the first request skips the turns of the conversation."""
        if self._next is None:
            self.turns = _of_task(self.turns, prompt)
            answered = sum(message.role == "assistant" for message in prompt.messages)
            after = [0, *(at + 1 for at, turn in enumerate(self.turns) if turn.error is None)]
            self._next = after[answered] if answered < len(after) else len(self.turns)
        if self._next >= len(self.turns):
            raise ModelError(
                f"the script {self.info.name} has only {len(self.turns)} turns, and all were played", kind="bad_request"
            )
        turn = self.turns[self._next]
        self._next += 1
        await asyncio.sleep(turn.delay)
        parts: list[Part] = []
        index = 0
        for part in _parts(turn):
            for piece in _pieces(part, turn.pace):
                if turn.pace:
                    await asyncio.sleep(turn.pace)
                match part:
                    case Reasoning():
                        yield ReasoningDelta(piece)
                    case ToolUse():
                        yield CallDelta(index, part.id, part.name, piece)
                    case _:
                        yield TextDelta(piece)
            index += isinstance(part, ToolUse)
            parts.append(part)
        if (error := turn.error) is not None:
            raise ModelError(
                error.what,
                kind=error.kind,
                status=error.status,
                retry_after=error.retry_after,
                received=tuple(parts),
                usage=turn.usage,
            )
        yield Completion(tuple(parts), turn.stop, turn.usage)

    async def aclose(self) -> None:
        """There is nothing to close."""


def _of_task(turns: tuple[ScriptedTurn, ...], prompt: Prompt) -> tuple[ScriptedTurn, ...]:
    """The turns for this task: those with words of its first message, or those without any."""
    first = prompt.messages[0].text if prompt.messages else ""
    return tuple(turn for turn in turns if turn.task and turn.task in first) or tuple(
        turn for turn in turns if not turn.task
    )


def _parts(turn: ScriptedTurn) -> Iterator[Part]:
    if turn.reasoning:
        yield Reasoning(turn.reasoning)
    if turn.text:
        yield Text(turn.text)
    for call in turn.calls:
        yield ToolUse(call.id or f"call_{uuid4().hex[:16]}", call.name, call.arguments)


def _pieces(part: Part, pace: float) -> list[str]:
    text = part.arguments if isinstance(part, ToolUse) else part.text if isinstance(part, Text | Reasoning) else ""
    pieces = re.findall(r"\s*\S+\s*", text) if pace and not text.isspace() else [text]
    return ["", *pieces] if isinstance(part, ToolUse) else pieces


class _Invalid(Exception):
    """A mistake, and a predicate that is true for every prefix of the script that contains it."""

    def __init__(self, what: str, contained_in: Callable[[Table], bool]) -> None:
        super().__init__(what)
        self.what = what
        self.contained_in = contained_in


def read_script(path: Path) -> Script:
    """Read and check a script. ScriptWrong names the file and the line."""
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise FileUnavailable(f"the script {path} can't be read: {error}") from error
    try:
        return parse_script(text, name=path.stem)
    except tomllib.TOMLDecodeError as error:
        raise ScriptWrong(f"{path}: {error}") from None
    except _Invalid as error:
        raise ScriptWrong(f"{path}, line {_line(text, error.contained_in)}: {error.what}") from None


def parse_script(text: str, *, name: str) -> Script:
    data = tomllib.loads(text)
    top = _Fields(data, "a script", lambda data: data)
    price = top.table("price")
    info = ModelInfo(
        id=f"scripted/{top.text('name') or name}",
        context_window=top.integer("context_window"),
        max_output=top.integer("max_output"),
        images=True,
        native_tools=top.boolean("native_tools", True),
        scripted=True,
        price=_price(price) if price else None,
    )
    turns = tuple(_turn(table) for table in top.tables("turn"))
    top.reject_unknown()
    if not turns:
        raise _Invalid("a script needs at least one [[turn]]", lambda data: False)
    return Script(info, turns)


def _price(fields: "_Fields") -> Price:
    numbers = {key: fields.number(key) for key in ("input", "output", "cache_reads", "cache_writes")}
    fields.reject_unknown()
    return Price(
        input=numbers["input"] or 0.0,
        output=numbers["output"] or 0.0,
        cache_reads=numbers["cache_reads"],
        cache_writes=numbers["cache_writes"],
    )


def _turn(fields: "_Fields") -> ScriptedTurn:
    calls = tuple(_call(call) for call in fields.tables("call"))
    failure = fields.table("error")
    usage = fields.table("usage")
    stop = fields.choice("stop", get_args(StopReason)) or ("tool_use" if calls else "end")
    turn = ScriptedTurn(
        text=fields.text("text"),
        reasoning=fields.text("reasoning"),
        calls=calls,
        error=_failure(failure) if failure else None,
        stop=stop,  # type: ignore[arg-type]  # checked above
        usage=_usage(usage) if usage else NO_USAGE,
        delay=fields.number("delay") or 0.0,
        pace=fields.number("pace") or 0.0,
        times=max(1, fields.integer("times") or 1),
        task=fields.text("task"),
    )
    fields.reject_unknown()
    return turn


def _call(fields: "_Fields") -> ScriptedCall:
    arguments = fields.take("arguments")
    if arguments is not None and not isinstance(arguments, str | dict):
        fields.invalid("arguments", "a table, or JSON text in a string")
    try:
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    except TypeError:
        fields.invalid("arguments", "valid in JSON, which has no dates")
    call = ScriptedCall(fields.text("name", required=True), written, fields.text("id") or None)
    fields.reject_unknown()
    return call


def _failure(fields: "_Fields") -> ScriptedError:
    kind = fields.choice("kind", get_args(ErrorKind), required=True)
    what = fields.text("what") or f"scripted error: {kind}"
    failure = ScriptedError(kind, what, fields.integer("status"), fields.number("retry_after"))  # type: ignore[arg-type]
    fields.reject_unknown()
    return failure


def _usage(fields: "_Fields") -> Usage:
    counts = {key: fields.integer(key) or 0 for key in ("input", "output", "cache_reads", "cache_writes")}
    fields.reject_unknown()
    return Usage(**counts)


class _Fields:
    """Reads a table field by field. A field that was not read is unknown, and an error."""

    def __init__(self, table: Table, what: str, find: Callable[[Table], Table | None]) -> None:
        self.what = what
        self._table = table
        self._find = find  # the same table in a prefix of the script
        self._known: list[str] = []

    def invalid(self, key: str, wanted: str) -> Never:
        raise _Invalid(f"{key} of {self.what} must be {wanted}", lambda data: key in (self._find(data) or {}))

    def take(self, key: str) -> object:
        self._known.append(key)
        return self._table.get(key)

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.take(key)
        if value is None and required:
            raise _Invalid(f"{self.what} has no {key}", lambda data: self._find(data) is not None)
        if value is not None and not isinstance(value, str):
            self.invalid(key, "text")
        return value or ""

    def choice(self, key: str, among: tuple[str, ...], *, required: bool = False) -> str:
        value = self.text(key, required=required)
        if value and value not in among:
            self.invalid(key, f"one of {', '.join(among)}")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            self.invalid(key, "true or false")
        return default if value is None else value

    def number(self, key: str) -> float | None:
        value = self.take(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            self.invalid(key, "a number, at least 0")
        return None if value is None else float(value)

    def integer(self, key: str) -> int | None:
        value = self.take(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            self.invalid(key, "a whole number, at least 0")
        return value

    def table(self, key: str) -> "_Fields | None":
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.invalid(key, "a table")
        return _Fields(value, f"{key} of {self.what}", lambda data: _inner(self._find(data), key))

    def tables(self, key: str) -> "list[_Fields]":
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.invalid(key, f"tables: [[{key}]]")
        of = "" if self.what == "a script" else f" of {self.what}"
        return [_Fields(item, f"{key} {n + 1}{of}", self._finder(key, n)) for n, item in enumerate(value)]

    def reject_unknown(self) -> None:
        for key in self._table:
            if key not in self._known:
                near = nearest(key, self._known)
                meant = f"did you mean {near}?" if near else f"use one of {', '.join(self._known)}"
                raise _Invalid(f"{self.what} has no {key!r}: {meant}", self._has(key))

    def _has(self, key: str) -> Callable[[Table], bool]:
        return lambda data: key in (self._find(data) or {})

    def _finder(self, key: str, n: int) -> Callable[[Table], Table | None]:
        def find(data: Table) -> Table | None:
            items = (self._find(data) or {}).get(key)
            return items[n] if isinstance(items, list) and len(items) > n else None

        return find


def _inner(table: Table | None, key: str) -> Table | None:
    inner = (table or {}).get(key)
    return inner if isinstance(inner, dict) else None


def _line(text: str, contained_in: Callable[[Table], bool]) -> int:
    """The line of a mistake: the first after the longest valid prefix without it."""
    lines = text.splitlines(keepends=True)
    last = 0
    for end in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a value
        if contained_in(data):
            return last + 1
        last = end
    return max(1, len(lines))
