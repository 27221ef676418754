"""TOML and YAML as plain values that know their lines, so that whatever is wrong can be pointed at.

read_toml(text), read_yaml(text) → Located(data, line)        Wrong(line, what) when it is neither

Of YAML only what a person writes: maps with text for keys, lists, scalars. No tags, no references (a few lines of
which can mean gigabytes), no key twice. PyYAML is imported when the first YAML is read.
"""

import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

DEEPEST = 20
PATIENCE = 1 << 19  # characters that are parsed to find lines
Key = str | int
LineOf = Callable[[tuple[Key, ...]], int]
# `a.a.a. …`, which costs tomllib the cube of its parts; 30,000 of them take it a minute
_LONG_KEY = re.compile(r"""(?m)(?:^|[\s\[{,])(?:(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++)[ \t]*+\.[ \t]*+){64}""")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")


class Wrong(ValueError):
    """Something in a text makes no sense; `line` counts from 1. What it quotes can be printed."""

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        self.what = printable(what)
        super().__init__(self.what)


def printable(text: str) -> str:
    """Words from a file, for a terminal: what would move its cursor becomes its number."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


@dataclass(frozen=True, slots=True)
class Located:
    """A table read from a text."""

    data: dict[str, object]
    line: LineOf  # where the value at this path is said; a missing one: the closest above it


# TOML


def read_toml(text: str) -> Located:
    """The table in `text`."""
    if found := _LONG_KEY.search(text):
        raise Wrong(text.count("\n", 0, found.end()) + 1, "a key has too many parts")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise Wrong(1, "it is nested too deeply") from None
    except ValueError as error:  # also a number with more digits than Python reads
        where = _AT.search(str(error))
        at = int(where[1]) if where and where[1] else text.rstrip().count("\n") + 1
        raise Wrong(at, _AT.sub("", str(error))) from None

    lines: dict[tuple[Key, ...], int] = {}

    def line(path: tuple[Key, ...]) -> int:
        if not lines:
            lines.update(_toml_lines(text))
        return _closest(lines, path)

    return Located(data, line)


def _closest(lines: Mapping[tuple[Key, ...], int], path: tuple[Key, ...]) -> int:
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _toml_lines(text: str) -> dict[tuple[Key, ...], int]:
    """Where each value of a valid text is said: its lines, one by one, until they make a statement of TOML."""
    lines: dict[tuple[Key, ...], int] = {(): 1}
    table: tuple[Key, ...] = ()
    counts: dict[tuple[Key, ...], int] = {}  # of the tables in each list
    statement, begins, budget = "", 0, PATIENCE
    for number, line in enumerate(text.split("\n"), 1):
        if not statement:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            begins = number
        statement += f"{line}\n"
        budget -= len(statement)
        if budget < 0:  # a list of thousands of lines: what follows is told with the line of what is above it
            break
        try:
            data = tomllib.loads(statement)
        except ValueError:
            continue
        header = statement.lstrip().startswith("[")
        if header:
            table = ()
        deepest = table
        for path in _paths(data, counts):
            lines.setdefault((*table, *path), begins)
            deepest = (*table, *path)
        if header:
            table = deepest
        statement = ""
    return lines


def _paths(data: dict[str, object], counts: dict[tuple[Key, ...], int]) -> Iterator[tuple[Key, ...]]:
    """The way down to what a statement says, step by step; a `[[table]]` is the next one of its list."""
    path: tuple[Key, ...] = ()
    inside: object = data
    while isinstance(inside, dict) and inside:
        (name, inside), *_ = inside.items()
        path = (*path, name)
        yield path
        if inside == [{}]:
            counts[path] = counts.get(path, -1) + 1
            yield (*path, counts[path])


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

    return Located(data, functools.partial(_closest, lines))


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
