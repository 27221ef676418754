"""The types of settings: how a value is checked, and how it is parsed from a variable or an option.

type.check(value) → the value · type.parse(text) → the value · ValueError says what is expected
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import nearest

Value = object
LONGEST = 20_000  # characters of a text
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
NONE = "none"  # TOML has no null


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a setting."""

    words: str  # "true or false"
    check: Callable[[Value], Value]
    parse: Callable[[str], Value]
    from_text: bool = True  # can be set by a variable or an option


def _wrong(words: str, value: Value) -> ValueError:
    shown = toml(value)
    return ValueError(f"must be {words}, not {shown if len(shown) <= 80 else shown[:79] + '…'}")


def boolean() -> ValueType:
    words = "true or false"

    def check(value: Value) -> Value:
        if not isinstance(value, bool):
            raise _wrong(words, value)
        return value

    def parse(text: str) -> Value:
        if text.lower() in (*_TRUE, *_FALSE):
            return text.lower() in _TRUE
        raise _wrong(words, text)

    return ValueType(words, check, parse)


def integer(least: int = 0, most: int = 1 << 62) -> ValueType:
    words = f"a whole number, at least {least}" if most == 1 << 62 else f"a whole number from {least} to {most}"

    def check(value: Value) -> Value:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise _wrong(words, value)
        return value

    def parse(text: str) -> Value:
        try:
            return check(int(text))
        except ValueError:
            raise _wrong(words, text) from None

    return ValueType(words, check, parse)


def number(words: str, fits: Callable[[float], bool]) -> ValueType:
    def check(value: Value) -> Value:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or not fits(value):
            raise _wrong(words, value)
        return float(value)

    def parse(text: str) -> Value:
        try:
            return check(float(text))
        except ValueError:
            raise _wrong(words, text) from None

    return ValueType(words, check, parse)


def seconds(*, zero: bool = False) -> ValueType:
    """A duration; `zero` allows 0."""
    words = "a number of seconds" if zero else "a number of seconds, more than 0"
    return number(words, lambda value: 0 <= value <= 1e9 if zero else 0 < value <= 1e9)


def share() -> ValueType:
    return number("a number from 0 to 1", lambda value: 0 <= value <= 1)


def dollars() -> ValueType:
    return number("an amount in US dollars, at least 0", lambda value: value >= 0)


def text(
    words: str = "text", fits: Callable[[str], bool] = lambda _: True, meant: Callable[[str], str] = lambda _: ""
) -> ValueType:
    """`meant` suggests a valid value for an invalid one."""

    def check(value: Value) -> Value:
        if not isinstance(value, str) or "\0" in value or len(value) > LONGEST or not fits(value):
            close = meant(value) if isinstance(value, str) and len(value) <= LONGEST else ""
            raise ValueError(f"{_wrong(words, value)}" + (f"; did you mean {close}?" if close else ""))
        return value

    return ValueType(words, check, check)


def choice(*names: str, older: Mapping[str, str] | None = None) -> ValueType:
    """One of these names. `older` names still count, and become the new ones."""
    words = f"one of {', '.join(names)}"

    def check(value: Value) -> Value:
        value = (older or {}).get(value, value) if isinstance(value, str) else value
        if value in names:
            return value
        close = nearest(value, names) if isinstance(value, str) else ""
        raise ValueError(f"{_wrong(words, value)}" + (f"; did you mean {close}?" if close else ""))

    return ValueType(words, check, check)


def optional(kind: ValueType) -> ValueType:
    """A value or none, written "none"."""

    def check(value: Value) -> Value:
        return None if value is None or value == NONE else kind.check(value)

    def parse(text: str) -> Value:
        return None if text == NONE else kind.parse(text)

    return ValueType(f"{kind.words}; or none", check, parse)


def texts(words: str = "a list of texts", fits: Callable[[str], bool] = lambda each: bool(each.strip())) -> ValueType:
    def check(value: Value) -> Value:
        given = value if isinstance(value, list | tuple) else None
        if given is None:
            raise _wrong(words, value)
        for each in given:
            if not isinstance(each, str) or "\0" in each or not fits(each):
                raise _wrong(words, each)
        return tuple(given)

    return ValueType(words, check, lambda text: check([each.strip() for each in text.split(",") if each.strip()]))


def path() -> ValueType:
    words = "an absolute path, or one that begins with ~"

    def check(value: Value) -> Value:
        if not isinstance(value, str) or not value.startswith(("/", "~/")) or "\0" in value:
            raise _wrong(words, value)
        return _home(value)

    return ValueType(words, check, check)


def paths() -> ValueType:
    words = "a list of absolute paths, or paths that begin with ~"

    def check(value: Value) -> Value:
        given = value if isinstance(value, list | tuple) else None
        if given is None or not all(isinstance(each, str) and each.startswith(("/", "~/")) for each in given):
            raise _wrong(words, value)
        return tuple(_home(each) for each in given)

    return ValueType(words, check, lambda text: check([each for each in text.split(":") if each]))


def _home(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # the home directory is unknown
        raise ValueError("begins with ~, but the home directory is unknown") from None


def table(words: str, fits: Callable[[str, str], bool]) -> ValueType:
    """A table of strings. It can only be set in a file."""

    def check(value: Value) -> Value:
        if not isinstance(value, dict):
            raise ValueError(f"must be {words}")  # the value may be a key, so it is not shown
        for name, each in value.items():
            if not isinstance(each, str) or "\0" in each or not fits(name, each):
                raise ValueError(f"must be {words}: `{name}` is invalid")  # the value may be a secret
        return dict(value)

    def parse(_: str) -> Value:
        raise ValueError("can only be set in a file")

    return ValueType(words, check, parse, from_text=False)


def toml(value: Value) -> str:
    """The value as it is written in a file."""
    import json

    match value:
        case None:
            return NONE
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return f"{value:g}" if value == float(f"{value:g}") else repr(value)
        case list() | tuple():
            return f"[{', '.join(toml(each) for each in value)}]"
        case dict():
            return "{" + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + "}"
        case str():
            return json.dumps(value, ensure_ascii=not value.isprintable())
    return json.dumps(str(value), ensure_ascii=False)
