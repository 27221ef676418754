"""TOML and YAML as plain values that know their lines, so that whatever is wrong can be pointed at.

read_toml(text), read_yaml(text) → Located(data, line)        Wrong(line, what) when it is neither

Of YAML only what a person writes: maps with text for keys, lists, scalars. No tags, no references (a few lines of
which can mean gigabytes), no key twice. PyYAML is imported when the first YAML is read.
"""

import functools
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

DEEPEST = 20
Key = str | int
LineOf = Callable[[tuple[Key, ...]], int]
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")


class Wrong(ValueError):
    """Something in a text makes no sense; `line` counts from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


@dataclass(frozen=True, slots=True)
class Located:
    """A table read from a text."""

    data: dict[str, object]
    line: LineOf  # where the value at this path is said; a missing one: the closest above it


# TOML


def read_toml(text: str) -> Located:
    """The table in `text`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        line = int(found[1]) if found and found[1] else text.rstrip().count("\n") + 1
        raise Wrong(line, _AT.sub("", str(error))) from None
    except RecursionError:
        raise Wrong(1, "it is nested too deeply") from None
    return Located(data, functools.partial(_toml_line, text))


def _toml_line(text: str, path: tuple[Key, ...]) -> int:
    """The line where the value at `path` is said.

    A text cut after any of its lines is TOML too, or ends within a value: the first cut that has the path tells where
    it ends, and the cut before it where it begins. That is slow, and never wrong; only errors and listings ask.
    """
    lines = text.splitlines(keepends=True)
    while path:
        begins = 1
        for number in range(1, len(lines) + 1):
            try:
                data = tomllib.loads("".join(lines[:number]))
            except tomllib.TOMLDecodeError:
                continue
            if _has(data, path):
                return begins
            begins = number + 1
        path = path[:-1]
    return 1


def _has(data: object, path: tuple[Key, ...]) -> bool:
    for key in path:
        match data, key:
            case dict(), str() if key in data:
                data = data[key]
            case list(), int() if key < len(data):
                data = data[key]
            case _:
                return False
    return True


# YAML


def read_yaml(text: str) -> Located:
    """The map in `text`."""
    import yaml

    lines: dict[tuple[Key, ...], int] = {(): 1}
    try:
        data = _built(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Wrong(mark.line + 1 if mark else 1, error.problem or "it is no YAML") from None
    except yaml.YAMLError as error:  # a character that may not be there
        raise Wrong(1, str(error).splitlines()[0]) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise Wrong(1, "it is no map of keys and values")

    def line(path: tuple[Key, ...]) -> int:
        while path not in lines:
            path = path[:-1]
        return lines[path]

    return Located(data, line)


def _built(events: object, lines: dict[tuple[Key, ...], int]) -> object:
    """The value that parser events tell of, without recursion: how deep it is was somebody else's choice."""
    from yaml import events as kinds

    documents = 0
    result: object = None
    open_: list[tuple[object, tuple[Key, ...]]] = []  # the lists and maps we are in, and their paths
    key: list[str | None] = []  # of each open map: the key that waits for its value

    def place(value: object, line: int) -> tuple[Key, ...]:
        nonlocal result
        if not open_:
            result = value
            return ()
        inside, path = open_[-1]
        if isinstance(inside, list):
            inside.append(value)
            path = (*path, len(inside) - 1)
        elif isinstance(inside, dict):
            waiting = key[-1]
            if waiting is None:
                raise Wrong(line, "a key is text")
            inside[waiting], key[-1] = value, None
            path = (*path, waiting)
        lines.setdefault(path, line)
        return path

    for event in events:  # type: ignore[attr-defined]
        line = event.start_mark.line + 1
        if isinstance(event, kinds.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Wrong(line, "there is a second document")
        elif isinstance(event, kinds.AliasEvent) or getattr(event, "anchor", None):
            raise Wrong(line, "references (& and *) are not read")
        elif isinstance(event, kinds.SequenceStartEvent | kinds.MappingStartEvent):
            if len(open_) >= DEEPEST:
                raise Wrong(line, "it is nested too deeply")
            made: object = [] if isinstance(event, kinds.SequenceStartEvent) else {}
            path = place(made, line)
            open_.append((made, path))
            key.append(None)
        elif isinstance(event, kinds.SequenceEndEvent | kinds.MappingEndEvent):
            open_.pop()
            key.pop()
        elif isinstance(event, kinds.ScalarEvent):
            if open_ and isinstance(open_[-1][0], dict) and key[-1] is None:
                if event.value in open_[-1][0]:
                    raise Wrong(line, f"`{event.value}` is said twice")
                key[-1] = event.value
                lines[(*open_[-1][1], event.value)] = line
            else:
                place(_scalar(event.value, plain=event.implicit[0]), line)
    return result


def _scalar(text: str, *, plain: bool) -> object:
    """YAML's plain words, as far as a setting is made of them; whatever else is text."""
    if not plain:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text.lower() in ("true", "false") and text in (text.lower(), text.title(), text.upper()):
        return text.lower() == "true"
    return int(text) if re.fullmatch(r"[-+]?(0|[1-9][0-9]{0,17})", text) else text
