"""PURE: what an agent sent, read with care: a request that makes no sense is refused, an update is taken as it is."""

from pathlib import Path

from tarmac.acp.rpc_peer import Refused
from tarmac.acp.wire import INVALID_PARAMS, Json

Object = dict[str, object]


def object_of(value: Json) -> Object:
    """The object it is, or an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Json) -> list[Object]:
    """Those of a list that are objects."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def present(value: Object) -> Object:
    """The fields that say something: null and empty ones are left out."""
    return {name: each for name, each in value.items() if each}


def text_of(value: Json) -> str:
    """The text it is, or none."""
    return value if isinstance(value, str) else ""


def whole_of(value: Json) -> int | None:
    """The whole number it is, or none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def wanted_text(params: Object, name: str) -> str:
    """A text that must be there."""
    value = params.get(name)
    if not isinstance(value, str) or "\0" in value:
        raise Refused(INVALID_PARAMS, f"`{name}` must be a text")
    return value


def wanted_path(params: Object, name: str) -> Path:
    """A full path that must be there."""
    value = wanted_text(params, name)
    if not value.startswith("/"):
        raise Refused(INVALID_PARAMS, f"`{name}` must be an absolute path, not {value[:200]!r}")
    return Path(value)


def optional_number(params: Object, name: str) -> int | None:
    """A whole number, not below 0, that may be missing."""
    if params.get(name) is None:
        return None
    value = whole_of(params.get(name))
    if value is None or value < 0:
        raise Refused(INVALID_PARAMS, f"`{name}` must be a whole number from 0 on")
    return value


def block_text(block: Object) -> str:
    """A content block, as words."""
    match block.get("type"):
        case "text":
            return text_of(block.get("text"))
        case "resource_link":
            return text_of(block.get("uri"))
        case "resource":
            found = object_of(block.get("resource"))
            return text_of(found.get("text")) or text_of(found.get("uri"))
        case "image" | "audio" as kind:
            return f"[{'an image' if kind == 'image' else 'sound'}]"
    return ""
