"""Parse TOML and YAML into plain values, with the line of each value for error messages.

read_toml(text), read_yaml(text) → Located(data, line); InvalidText(line, what) if the text is invalid

Only a subset of YAML is read: maps with string keys, lists and scalars. Tags, references (a few lines of which can
expand to gigabytes) and duplicate keys are errors. PyYAML is imported with the first YAML text.
"""

import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

DEEPEST = 20
LINE_SEARCH_LIMIT = 1 << 19  # characters to parse in the search for lines
Key = str | int
LineOf = Callable[[tuple[Key, ...]], int]
# `a.a.a. …`: tomllib takes cubic time; 30,000 parts take a minute
_LONG_KEY = re.compile(r"""(?m)(?:^|[\s\[{,])(?:(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++)[ \t]*+\.[ \t]*+){64}""")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")


class InvalidText(ValueError):
    """A text is invalid in `line`, counted from 1. The message is safe to print."""

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        self.what = printable(what)
        super().__init__(self.what)


def printable(text: str) -> str:
    """Escape control characters, which could move the cursor of a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


@dataclass(frozen=True, slots=True)
class Located:
    """A parsed text."""

    data: dict[str, object]
    line: LineOf  # of the value at a path, or of its closest parent


# TOML


def read_toml(text: str) -> Located:
    """Parse TOML."""
    if found := _LONG_KEY.search(text):
        raise InvalidText(text.count("\n", 0, found.end()) + 1, "a key has too many parts")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise InvalidText(1, "nested too deeply") from None
    except ValueError as error:  # also for a number with more digits than Python accepts
        where = _AT.search(str(error))
        at = int(where[1]) if where and where[1] else text.rstrip().count("\n") + 1
        raise InvalidText(at, _AT.sub("", str(error))) from None

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
    """The line of each value in a valid text. Lines are collected until they are a statement of TOML."""
    lines: dict[tuple[Key, ...], int] = {(): 1}
    table: tuple[Key, ...] = ()
    counts: dict[tuple[Key, ...], int] = {}  # tables in each list
    statement, begins, budget = "", 0, LINE_SEARCH_LIMIT
    for number, line in enumerate(text.split("\n"), 1):
        if not statement:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            begins = number
        statement += f"{line}\n"
        budget -= len(statement)
        if budget < 0:  # a very long list: later values get the line of their parent
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
    """The path of a statement and all of its parents. A `[[table]]` is the next item of its list."""
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
    """Parse YAML."""
    import yaml

    lines: dict[tuple[Key, ...], int] = {(): 1}
    try:
        data = _built(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidText(mark.line + 1 if mark else 1, error.problem or "not valid YAML") from None
    except yaml.YAMLError as error:  # an invalid character
        raise InvalidText(1, str(error).splitlines()[0]) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise InvalidText(1, "not a map of keys and values")

    return Located(data, functools.partial(_closest, lines))


def _built(events: object, lines: dict[tuple[Key, ...], int]) -> object:
    """Build a value from parser events. Without recursion, as the text may be nested to any depth."""
    from yaml import events as kinds

    documents = 0
    result: object = None
    open_: list[tuple[object, tuple[Key, ...]]] = []  # the open lists and maps, with their paths
    key: list[str | None] = []  # of each open map: the key without its value yet

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
                raise InvalidText(line, "a key must be text")
            inside[waiting], key[-1] = value, None
            path = (*path, waiting)
        lines.setdefault(path, line)
        return path

    for event in events:  # type: ignore[attr-defined]
        line = event.start_mark.line + 1
        if isinstance(event, kinds.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise InvalidText(line, "there is more than one document")
        elif isinstance(event, kinds.AliasEvent) or getattr(event, "anchor", None):
            raise InvalidText(line, "references (& and *) are not supported")
        elif isinstance(event, kinds.SequenceStartEvent | kinds.MappingStartEvent):
            if len(open_) >= DEEPEST:
                raise InvalidText(line, "nested too deeply")
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
                    raise InvalidText(line, f"`{event.value}` occurs twice")
                key[-1] = event.value
                lines[(*open_[-1][1], event.value)] = line
            else:
                place(_scalar(event.value, plain=event.implicit[0]), line)
    return result


def _scalar(text: str, *, plain: bool) -> object:
    """A plain scalar: null, a boolean, an integer or text."""
    if not plain:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text.lower() in ("true", "false") and text in (text.lower(), text.title(), text.upper()):
        return text.lower() == "true"
    return int(text) if re.fullmatch(r"[-+]?(0|[1-9][0-9]{0,17})", text) else text
