"""PURE: turn the text between two tags into a value of the type in the tool's schema.

decoded("3", {"type": "integer"}) → 3 · decoded("<file><path>a</path></file>", array of objects) → [{"path": "a"}]

A text that does not fit stays a string. The tool then reports the wrong type to the model.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Schema = Mapping[str, object]
TEXT: Schema = {"type": "string"}
# Arguments that are kept, except for a newline after the opening tag. All others are stripped.
VERBATIM = frozenset({"content", "diff", "patch", "search", "replace", "text"})

_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_CHILD = re.compile(r"<([A-Za-z_][\w.-]*)((?:\s[^<>]*)?)>")
_ATTRIBUTE = re.compile(r"""([A-Za-z_][\w.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def property_of(parameters: Schema, name: str) -> Schema:
    """The schema of an argument; a string if there is none."""
    found = _mapping(parameters.get("properties")).get(name)
    return _resolved(found, parameters) if isinstance(found, Mapping) else TEXT


def kinds(schema: Schema, root: Schema) -> set[str]:
    """The JSON types that a schema accepts."""
    schema = _resolved(schema, root)
    type_ = schema.get("type")
    found = {type_} if isinstance(type_, str) else set(type_) if isinstance(type_, list) else set()
    for key in ("anyOf", "oneOf"):
        for each in _list(schema.get(key)):
            found |= kinds(_mapping(each), root)
    if not found and "enum" in schema:
        found = {"string"}
    return found or {"string"}


def is_text(schema: Schema, root: Schema) -> bool:
    """Whether it can only be a string. Such a value can be streamed."""
    return kinds(schema, root) == {"string"}


def trimmed(text: str, name: str) -> str:
    """A text without the blanks of its layout."""
    return re.sub(r"\A\r?\n", "", text) if name in VERBATIM else text.strip()


def decoded(text: str, schema: Schema, root: Schema, name: str = "") -> object:
    """The value of an argument."""
    wanted = kinds(schema, root)
    plain = text.strip()
    if "null" in wanted and plain in ("", "null"):
        return None
    if "array" in wanted:
        return _array(text, schema, root)
    if "object" in wanted and plain[:1] in ("<", "{"):
        return _object(text, schema, root)
    for kind in ("boolean", "integer", "number"):
        if kind in wanted and (found := _scalar(plain, kind)) is not None:
            return found
    return trimmed(text, name)


def repeated(texts: list[str], schema: Schema, root: Schema) -> object:
    """The value of an argument whose tag occurs several times."""
    if len(texts) == 1:
        return decoded(texts[0], schema, root)
    found: list[object] = []
    for each in texts:
        value = _array(each, schema, root)
        found += value if isinstance(value, list) else [value]
    return found


def _scalar(plain: str, kind: str) -> object:
    if kind == "boolean":
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(plain.lower())
    if not _NUMBER.fullmatch(plain):
        return None
    try:
        number = int(plain) if kind == "integer" else float(plain)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _array(text: str, schema: Schema, root: Schema) -> object:
    plain = text.strip()
    if plain.startswith("["):
        try:
            return json.loads(plain)
        except (ValueError, RecursionError):
            pass
    items = _branch(schema, root, "items")
    children = list(_children(text))
    if not children:
        return [decoded(plain, items, root)] if plain else []
    # <files><path>a</path></files>: the fields of one item, without the tag of the item
    fields = _mapping(items.get("properties"))
    if fields and all(child.name in fields for child in children):
        return [_object(text, items, root)]
    return [_item(child, items, root) for child in children]


def _item(child: "_Child", items: Schema, root: Schema) -> object:
    if "object" not in kinds(items, root):
        return decoded(child.text, items, root)
    found = _object(child.text, items, root)
    fields = _mapping(_object_schema(items, root).get("properties"))
    if not isinstance(found, dict):  # plain text: the value of the first string field
        first = next((name for name, field in fields.items() if "string" in kinds(_mapping(field), root)), None)
        found = {first: child.text.strip()} if first else found
    if isinstance(found, dict):
        for name, value in child.attributes.items():
            found.setdefault(name, decoded(value, _mapping(fields.get(name)) or TEXT, root))
    return found


def _object(text: str, schema: Schema, root: Schema) -> object:
    plain = text.strip()
    if plain.startswith("{"):
        try:
            return json.loads(plain)
        except (ValueError, RecursionError):
            return plain
    fields = _mapping(_object_schema(schema, root).get("properties"))
    grouped: dict[str, list[str]] = {}
    for child in _children(text):
        grouped.setdefault(child.name, []).append(child.text)
    if not grouped:
        return plain
    found: dict[str, object] = {}
    for name, texts in grouped.items():
        field = _mapping(fields.get(name)) or TEXT
        found[name] = (
            repeated(texts, field, root) if "array" in kinds(field, root) else decoded(texts[-1], field, root, name)
        )
    return found


class _Child(NamedTuple):
    name: str
    attributes: dict[str, str]
    text: str


def _children(text: str) -> Iterator[_Child]:
    """The child elements. A missing closing tag means the end of the text."""
    at = 0
    while opening := _CHILD.search(text, at):
        name = opening[1]
        attributes = {found[1]: found[2] or found[3] or "" for found in _ATTRIBUTE.finditer(opening[2])}
        depth = 1
        end = at = len(text)
        for tag in re.finditer(rf"<(/?){re.escape(name)}(?:\s[^<>]*)?>", text[opening.end() :]):
            depth += -1 if tag[1] else 1
            if depth == 0:
                end, at = opening.end() + tag.start(), opening.end() + tag.end()
                break
        yield _Child(name, attributes, text[opening.end() : end])


def _branch(schema: Schema, root: Schema, key: str) -> Schema:
    """`key` of the schema or of its first alternative that has it."""
    for each in _alternatives(schema, root):
        if key in each:
            return _resolved(_mapping(each[key]), root)
    return TEXT


def _object_schema(schema: Schema, root: Schema) -> Schema:
    return next((each for each in _alternatives(schema, root) if "properties" in each), {})


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    schema = _resolved(schema, root)
    yield schema
    for key in ("anyOf", "oneOf"):
        for each in _list(schema.get(key)):
            yield from _alternatives(_mapping(each), root)


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Follow `$ref` to the definitions in the root schema."""
    for _ in range(8):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        found: object = root
        for step in ref.removeprefix("#/").split("/"):
            found = _mapping(found).get(step)
        schema = _mapping(found)
    return schema


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
