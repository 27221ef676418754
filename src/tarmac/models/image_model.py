"""A model that makes pictures: the images endpoint of OpenAI, and of servers that speak its language."""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tarmac.models.model_catalog import parse_spec
from tarmac.models.offered import ask_json
from tarmac.models.provider import ModelError, ModelSettings

PATIENCE: Final = 180.0  # seconds
LARGEST: Final = 64 << 20  # bytes of an answer
_KINDS: Final = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp", b"GIF8": "image/gif"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedImage:
    """A picture, as bytes."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class ImageModel:
    """A model "provider/name" that makes pictures."""

    spec: str
    settings: ModelSettings

    async def generate(self, prompt: str) -> GeneratedImage:
        """One picture. ModelError if there is none."""
        provider, name = parse_spec(self.spec)
        if provider.dialect != "openai":
            raise ModelError(f"{provider.name} makes no pictures", kind="not_found", hint="use openai/gpt-image-1")
        body: dict[str, object] = {"model": name, "prompt": prompt, "n": 1}
        if name.startswith("dall-e"):  # newer ones refuse this, and answer so by themselves
            body["response_format"] = "b64_json"

        def ask() -> object:
            what, path = "a picture", "/images/generations"
            return ask_json(provider, self.settings, path, body, what=what, patience=PATIENCE, largest=LARGEST)

        return _picture(self.spec, await asyncio.to_thread(ask))


def _picture(spec: str, answer: object) -> GeneratedImage:
    """PURE: the first picture of an answer."""
    listed = answer.get("data") if isinstance(answer, Mapping) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    encoded = first.get("b64_json") if isinstance(first, Mapping) else None
    try:
        data = base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else b""
    except binascii.Error:
        data = b""
    media = next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), None)
    if media is None:
        raise ModelError(f"{spec} answered without a picture", kind="malformed")
    return GeneratedImage(data=data, media_type=media)
