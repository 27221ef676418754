"""Decode a model's call into a tool with its arguments, or say which argument is wrong and what was expected.

Providers deliver JSON. A call in XML is JSON by now, with only text as values. Text that stands for a number, a boolean
or a list is converted. Spellings that models know from elsewhere become our own. Anything else is refused, never
guessed. The schema for the model (`parameters`) comes from the same fields.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

import msgspec

from tarmac.errors import BadArguments
from tarmac.tools.tool import Tool

Schema = dict[str, Any]
_KEPT = ("type", "description", "enum")


@cache
def parameters(tool: type[Tool]) -> Schema:
    """What a model may send to `tool`."""
    whole = msgspec.json.schema(tool)
    schema = _flat(whole, whole.get("$defs", {}))
    schema.pop("description", None)
    return schema


def _flat(schema: Schema, shared: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        return {**_flat(shared[schema["$ref"].rpartition("/")[2]], shared), **rest}
    if "anyOf" in schema:  # this or null
        (kind,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
        return {**_flat(kind, shared), **{key: schema[key] for key in _KEPT if key in schema}}
    made = {key: schema[key] for key in _KEPT if key in schema}
    if "enum" in made and all(isinstance(each, str) for each in made["enum"]):
        made["type"] = "string"  # some providers want it
    if "properties" in schema:
        if schema.get("required"):
            made["required"] = schema["required"]
        made["properties"] = {key: _flat(each, shared) for key, each in schema["properties"].items()}
    if "items" in schema:
        made["items"] = _flat(schema["items"], shared)
    return made


def at(schema: Schema, path: str) -> Schema | None:
    """The schema of a value inside, by msgspec's path: `$.files[0].path`."""
    found: Schema | None = schema
    for step in path.removeprefix("$").replace("[...]", "[]").replace("[", ".[").split("."):
        if found is None or not step:
            continue
        found = cast(
            "Schema | None", found.get("items") if step.startswith("[") else found.get("properties", {}).get(step)
        )
    return found


def example(schema: Mapping[str, Any]) -> object:
    """PURE: a right value: all that is required, and nothing else."""
    if values := schema.get("enum"):
        return values[0]
    match schema.get("type"):
        case "object":
            fields: dict[str, Schema] = schema.get("properties", {})
            return {name: example(field) for name, field in fields.items() if name in schema.get("required", ())}
        case "array":
            return [example(schema["items"])] if "items" in schema else []
        case "integer" | "number":
            return 1
        case "boolean":
            return True
    return "…"


LONGEST_SHOWN = 60
_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_GOT = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_MISSING = re.compile(r"Object missing required field `(\w+)`(?: - at `(.+)`)?")
_WRONG = re.compile(r"Expected `([^`]+)`(?:, got `([^`]+)`|(.*?))(?: - at `(.+)`)?")
_INVALID = re.compile(r"Invalid enum value (.+?)(?: - at `(.+)`)?")
_AGAIN = "Send the call again with complete arguments."
_ABOUT = (
    "description",
    "explanation",
    "requires_approval",
    "task_progress",
)  # words that other agents want with a call
_JSON = json.JSONDecoder(strict=False)  # models write line ends into strings as they are
_HALVES = re.compile("[\ud800-\udfff]")


def decode(tools: Mapping[str, type[Tool]], name: str, arguments: str, offered: Iterable[str] | None = None) -> Tool:
    """The call; BadArguments, with words for the model, when it can't be read. `offered`: what it was told of [all]."""
    tool = tools.get(name)
    if tool is None:
        known = list(tools if offered is None else offered)
        near = next((each for each in (*difflib.get_close_matches(name, known, 1), *known) if each in tools), "")
        right = f" {_right(near, parameters(tools[near]))}" if near else ""
        raise BadArguments(
            f"There is no tool '{_short(name)}'.{_nearest(name, known)} Tools: {', '.join(known)}.{right}"
        )
    return read(tool, name, load(name, arguments))


def load(name: str, arguments: str) -> dict[str, object]:
    """The object that `arguments` are the JSON of."""
    value = _json(name, arguments) if arguments.strip() else {}
    if isinstance(value, str) and value.lstrip().startswith("{"):  # some models encode it twice
        value = _json(name, value)
    if "\\u" in arguments and _HALVES.search(json.dumps(value, ensure_ascii=False)):
        raise BadArguments(f"The arguments of {name} hold half of a surrogate pair, which is not a character. {_AGAIN}")
    if not isinstance(value, dict):
        raise BadArguments(f"The arguments of {name} must be a JSON object, not {_kind_of(value)}. {_AGAIN}")
    return value


def _json(name: str, text: str) -> object:
    try:
        return _JSON.decode(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            why = "they end too early: the answer was cut off, perhaps for its length; write less in one call"
        else:
            near = text[max(0, error.pos - 20) : error.pos + 20]
            why = f"{error.msg} at character {error.pos}, near {near!r}"
        raise BadArguments(f"The arguments of {name} are not valid JSON: {why}. {_AGAIN}") from None
    except ValueError:  # Python's own limit
        raise BadArguments(f"The arguments of {name} hold a number with too many digits. {_AGAIN}") from None
    except RecursionError:
        raise BadArguments(f"The arguments of {name} are nested too deeply. {_AGAIN}") from None


def read(tool: type[Tool], name: str, arguments: dict[str, object]) -> Tool:
    """A tool of this type with these arguments."""
    schema = parameters(tool)
    known: dict[str, Schema] = schema["properties"]
    given = tool.tidy({tool.spellings.get(key, key): value for key, value in arguments.items()})
    given = {key: value for key, value in given.items() if key in known or key not in _ABOUT}
    for key in given:
        if key not in known:
            listed = f"Its arguments: {', '.join(known) or 'none'}. {_right(name, schema)}"
            raise BadArguments(f"{name} has no argument '{_short(key)}'.{_nearest(key, known)} {listed}")
    tidied = {key: _plain(value, known[key]) for key, value in given.items()}
    try:
        return msgspec.convert(tidied, tool, strict=False)
    except msgspec.ValidationError as error:
        raise BadArguments(f"{_explained(name, schema, str(error))} {_AGAIN} {_right(name, schema)}") from None
    except RecursionError:
        raise BadArguments(f"The arguments of {name} are nested too deeply. {_AGAIN}") from None


def _plain(value: object, schema: Schema) -> object:
    """Text that holds JSON where something else than text is wanted; empty text where nothing is said."""
    kind = schema.get("type")
    if not isinstance(value, str) or kind == "string":
        return value
    text = value.strip()
    if not text:
        return [] if kind == "array" else None
    if kind in ("array", "object") and text[0] in "[{":
        try:
            return json.loads(text, strict=False)
        except (json.JSONDecodeError, RecursionError):
            return value
    return text.lower() if kind == "boolean" else text


def _explained(name: str, schema: Schema, message: str) -> str:
    if found := _MISSING.fullmatch(message):
        field, where = found[1], found[2] or "$"
        path = f"{where}.{field}"
        return f"{name}: missing value for required argument '{_said(path)}' ({_wanted(at(schema, path))})."
    if found := _WRONG.fullmatch(message):
        expected, got, rest, where = found[1], found[2], found[3], found[4] or "$"
        wanted = _wanted(at(schema, where)) if where != "$" else expected
        if got is None:
            return f"{name}: argument '{_said(where)}' must be {_GOT.get(expected, expected)}{rest} ({wanted})."
        return f"{name}: argument '{_said(where)}' must be {wanted}; it is {_GOT.get(got, got)}."
    if found := _INVALID.fullmatch(message):
        where = found[2] or "$"
        return f"{name}: argument '{_said(where)}' must be {_wanted(at(schema, where))}; it is {found[1]}."
    return f"{name}: {message}."


def _right(name: str, schema: Schema) -> str:
    return f"A right call: {name} {json.dumps(example(schema), ensure_ascii=False)}"


def _wanted(schema: Schema | None) -> str:
    """What an argument is, in a few words: its kind, or its values, and what it is for."""
    if schema is None:
        return "see its schema"
    values = schema.get("enum")
    kind = _KINDS.get(str(schema.get("type")), "a value")
    if values:
        kind = "one of " + ", ".join(repr(each) for each in values)
    about = str(schema.get("description", ""))
    return f"{kind}: {about.split('. ')[0].rstrip('.')}" if about else kind


def _said(path: str) -> str:
    return path.removeprefix("$").removeprefix(".").replace("[...]", "[…]") or "arguments"


def _kind_of(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return _GOT.get(type(value).__name__, "null")


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean '{near[0]}'?" if near else ""


def _short(text: Any) -> str:
    shown = str(text)
    return shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 1] + "…"
