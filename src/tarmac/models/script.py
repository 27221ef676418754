"""The file that a scripted model plays: TOML, checked when it is read, wrong in words with a line.

name = "demo"                       # else the file's
context_window = 200000
native_tools = false                # its texts hold XML tool calls
price = { input = 3.0, output = 15.0 }
[[turn]]                            # see `Turn`: reasoning, text, calls, error, in this order
reasoning = "The test wants 4."
text = "Let me look."
delay = 0.5                         # seconds before it begins
pace = 0.02                         # seconds before each word
usage = { input = 1200, output = 40, cache_reads = 0, cache_writes = 0 }
stop = "end"                        # else "tool_use" after calls
times = 1                           # how often it is played in a row
[[turn.call]]
name = "read_file"
arguments = { path = "sum.py" }     # or a string, sent as it is: broken JSON is possible
[turn.error]                        # in place of an end
kind = "rate_limit"
what = "slow down"
retry_after = 2
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Never, get_args

from tarmac.errors import FileUnavailable, ScriptWrong
from tarmac.models.messages import NO_USAGE, StopReason, Usage
from tarmac.models.provider import ErrorKind, ModelInfo, Price
from tarmac.nearest import nearest

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a turn."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The way a turn fails."""

    kind: ErrorKind
    what: str
    status: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is said in one answer."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    error: Failure | None = None  # after all the rest
    stop: StopReason = "end"
    usage: Usage = NO_USAGE
    delay: float = 0.0  # seconds before it begins
    pace: float = 0.0  # seconds before each word; 0: each part comes whole
    times: int = 1


@dataclass(frozen=True, slots=True)
class Script:
    """A file that was read."""

    info: ModelInfo
    turns: tuple[Turn, ...]


class _Wrong(Exception):
    """What is wrong, and a test that is true as soon as the wrong thing was read."""

    def __init__(self, what: str, there: Callable[[Table], bool]) -> None:
        super().__init__(what)
        self.what = what
        self.there = there


def read_script(path: Path) -> Script:
    """Read and check; ScriptWrong says the file, the line, and what could have been meant."""
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise FileUnavailable(f"the script {path} can't be read: {error}") from error
    try:
        return parse_script(text, name=path.stem)
    except tomllib.TOMLDecodeError as error:
        raise ScriptWrong(f"{path}: {error}") from None
    except _Wrong as wrong:
        raise ScriptWrong(f"{path}, line {_line(text, wrong.there)}: {wrong.what}") from None


def parse_script(text: str, *, name: str) -> Script:
    data = tomllib.loads(text)
    top = _Fields(data, "a script", lambda data: data)
    price = top.table("price")
    info = ModelInfo(
        id=f"scripted/{top.text('name') or name}",
        context_window=top.whole("context_window"),
        max_output=top.whole("max_output"),
        images=True,
        native_tools=top.truth("native_tools", True),
        scripted=True,
        price=_price(price) if price else None,
    )
    turns = tuple(_turn(table) for table in top.tables("turn"))
    top.no_others()
    if not turns:
        raise _Wrong("there is no [[turn]]", lambda data: False)
    return Script(info, turns)


def _price(fields: "_Fields") -> Price:
    numbers = {key: fields.number(key) for key in ("input", "output", "cache_reads", "cache_writes")}
    fields.no_others()
    return Price(
        input=numbers["input"] or 0.0,
        output=numbers["output"] or 0.0,
        cache_reads=numbers["cache_reads"],
        cache_writes=numbers["cache_writes"],
    )


def _turn(fields: "_Fields") -> Turn:
    calls = tuple(_call(call) for call in fields.tables("call"))
    failure = fields.table("error")
    usage = fields.table("usage")
    stop = fields.choice("stop", get_args(StopReason)) or ("tool_use" if calls else "end")
    turn = Turn(
        text=fields.text("text"),
        reasoning=fields.text("reasoning"),
        calls=calls,
        error=_failure(failure) if failure else None,
        stop=stop,  # type: ignore[arg-type]  # one of them: asked above
        usage=_usage(usage) if usage else NO_USAGE,
        delay=fields.number("delay") or 0.0,
        pace=fields.number("pace") or 0.0,
        times=max(1, fields.whole("times") or 1),
    )
    fields.no_others()
    return turn


def _call(fields: "_Fields") -> Call:
    arguments = fields.take("arguments")
    if arguments is not None and not isinstance(arguments, str | dict):
        fields.wrong("arguments", "a table, or JSON text in a string")
    try:
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    except TypeError:
        fields.wrong("arguments", "made of what JSON has: no dates")
    call = Call(fields.text("name", must=True), written, fields.text("id") or None)
    fields.no_others()
    return call


def _failure(fields: "_Fields") -> Failure:
    kind = fields.choice("kind", get_args(ErrorKind), must=True)
    what = fields.text("what") or f"the script says: {kind}"
    failure = Failure(kind, what, fields.whole("status"), fields.number("retry_after"))  # type: ignore[arg-type]
    fields.no_others()
    return failure


def _usage(fields: "_Fields") -> Usage:
    counts = {key: fields.whole(key) or 0 for key in ("input", "output", "cache_reads", "cache_writes")}
    fields.no_others()
    return Usage(**counts)


class _Fields:
    """A table, read field by field; what nobody read at the end is a mistake."""

    def __init__(self, table: Table, what: str, find: Callable[[Table], Table | None]) -> None:
        self.what = what
        self._table = table
        self._find = find  # the same table in a script that was read less far
        self._known: list[str] = []

    def wrong(self, key: str, wanted: str) -> Never:
        raise _Wrong(f"{key} of {self.what} must be {wanted}", lambda data: key in (self._find(data) or {}))

    def take(self, key: str) -> object:
        self._known.append(key)
        return self._table.get(key)

    def text(self, key: str, *, must: bool = False) -> str:
        value = self.take(key)
        if value is None and must:
            raise _Wrong(f"{self.what} has no {key}", lambda data: self._find(data) is not None)
        if value is not None and not isinstance(value, str):
            self.wrong(key, "text")
        return value or ""

    def choice(self, key: str, among: tuple[str, ...], *, must: bool = False) -> str:
        value = self.text(key, must=must)
        if value and value not in among:
            self.wrong(key, f"one of {', '.join(among)}")
        return value

    def truth(self, key: str, default: bool) -> bool:
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            self.wrong(key, "true or false")
        return default if value is None else value

    def number(self, key: str) -> float | None:
        value = self.take(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            self.wrong(key, "a number from 0 up")
        return None if value is None else float(value)

    def whole(self, key: str) -> int | None:
        value = self.take(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            self.wrong(key, "a whole number from 0 up")
        return value

    def table(self, key: str) -> "_Fields | None":
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong(key, "a table")
        return _Fields(value, f"{key} of {self.what}", lambda data: _inner(self._find(data), key))

    def tables(self, key: str) -> "list[_Fields]":
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(key, f"tables: [[{key}]]")
        of = "" if self.what == "a script" else f" of {self.what}"
        return [_Fields(item, f"{key} {n + 1}{of}", self._finder(key, n)) for n, item in enumerate(value)]

    def no_others(self) -> None:
        for key in self._table:
            if key not in self._known:
                near = nearest(key, self._known)
                meant = f"did you mean {near}?" if near else f"there is {', '.join(self._known)}"
                raise _Wrong(f"{self.what} has no {key!r}: {meant}", self._has(key))

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


def _line(text: str, there: Callable[[Table], bool]) -> int:
    """Where the thing begins: after the longest beginning of the file that is right and is without it."""
    lines = text.splitlines(keepends=True)
    last = 0
    for end in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a value
        if there(data):
            return last + 1
        last = end
    return max(1, len(lines))
