"""The JSON schema of a tool's arguments, from its type, in the plain subset that every provider takes.

No `$ref`, no `null` (an argument that may be left out is left out), no bounds, which some providers refuse: those are
checked when a call is read, as is what is not listed: `additionalProperties` would cost five tokens for each tool.
"""

from functools import cache
from typing import Any, cast

import msgspec

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
