"""PURE: what an editor sends with a prompt, as words and pictures for a task; and text in a fence for an editor.

A resource that is embedded is said with its name, inside of a fence that its own text can't close; a link is named,
for the model to read with its tools.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from tarmac.errors import BadRequest

MOST_PICTURES: Final = 20
LARGEST_PICTURE: Final = 20 << 20
LONGEST_TEXT: Final = 4 << 20

Picture = tuple[bytes, str]
_TICKS: Final = re.compile("`{3,}")


@dataclass(frozen=True, slots=True)
class Said:
    """A prompt, taken apart."""

    text: str
    pictures: tuple[Picture, ...] = ()


def read_prompt(blocks: object) -> Said:
    """The content blocks of a prompt; BadRequest says which one can't be taken."""
    if not isinstance(blocks, list) or not blocks:
        raise BadRequest("a prompt is a list of content blocks, and not empty")
    words: list[str] = []
    pictures: list[Picture] = []
    for number, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise BadRequest(f"block {number} of the prompt is no object")
        match block.get("type"):
            case "text":
                words.append(_text(block, "text", number))
            case "image":
                pictures.append(_picture(block, number))
            case "resource_link":
                name, uri = block.get("name"), _text(block, "uri", number)
                words.append(f"[{name}]({uri})" if isinstance(name, str) and name else uri)
            case "resource":
                resource = block.get("resource")
                if isinstance(resource, dict) and str(resource.get("mimeType")).startswith("image/"):
                    picture = {**resource, "data": resource.get("blob")}
                    pictures.append(_picture(picture, number))
                else:
                    words.append(_resource(resource, number))
            case "audio":
                raise BadRequest(f"block {number} of the prompt is sound, which no model here hears")
            case kind:
                raise BadRequest(f"block {number} of the prompt is of a kind nobody knows: {str(kind)[:40]!r}")
    text = "\n".join(words)
    if len(text) > LONGEST_TEXT:
        raise BadRequest(f"the prompt has {len(text):,} characters; at most {LONGEST_TEXT:,} are taken")
    if len(pictures) > MOST_PICTURES:
        raise BadRequest(f"the prompt has {len(pictures)} pictures; at most {MOST_PICTURES} are taken")
    return Said(text, tuple(pictures))


def _text(block: dict[str, object], name: str, number: int) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"block {number} of the prompt has no `{name}`")
    return value


def _picture(block: dict[str, object], number: int) -> Picture:
    kind = block.get("mimeType")
    if not isinstance(kind, str) or not kind.startswith("image/"):
        raise BadRequest(f"block {number} of the prompt is an image without a `mimeType` of one")
    try:
        data = base64.b64decode(_text(block, "data", number), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(f"the image in block {number} of the prompt is no base64") from None
    if not 0 < len(data) <= LARGEST_PICTURE:
        raise BadRequest(f"the image in block {number} of the prompt has {len(data):,} bytes")
    return data, kind


def _resource(resource: object, number: int) -> str:
    if not isinstance(resource, dict):
        raise BadRequest(f"block {number} of the prompt has no `resource`")
    uri, text = resource.get("uri"), resource.get("text")
    name = uri if isinstance(uri, str) else "a resource"
    if not isinstance(text, str):
        return f"[{name}, which is no text and was not taken along]"
    return f"{name}:\n{fenced(text)}"


def fenced(text: str, kind: str = "") -> str:
    """`text` as a block of code that nothing in it can close: what stands after it in an editor is ours."""
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=2))
    return f"{fence}{kind}\n{text}\n{fence}"
