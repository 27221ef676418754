"""PURE: one turn of a hosted agent: what is sent, and how it ended."""

import asyncio
import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tarmac.acp.host.parameters import Object, object_of, text_of
from tarmac.errors import PeerGone, PeerRefused
from tarmac.policy.approval import Picture
from tarmac.tasks.context import Ended, Why

STOPPED: Final = "the person stopped it"
_WHY: Final[dict[str, Why]] = {
    "max_tokens": "limit",
    "max_turn_requests": "limit",
    "refusal": "refused",
    "cancelled": "interrupted",
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said, and showed."""

    text: str
    images: tuple[Picture, ...] = ()


def prompt_of(words: Iterable[Said]) -> list[Object]:
    """The content blocks of session/prompt: the words first, then the pictures."""
    words = list(words)
    text = "\n\n".join(each.text for each in words if each.text)
    blocks: list[Object] = [{"type": "text", "text": text}] if text else []
    for data, media in (picture for each in words for picture in each.images):
        blocks.append({"type": "image", "mimeType": media, "data": base64.b64encode(data).decode()})
    return blocks


def how_ended(turn: "asyncio.Task[object]", name: str, *, cancelled: bool) -> Ended:
    """Why the turn came to its end."""
    error = turn.exception()
    if isinstance(error, PeerGone | PeerRefused):
        if cancelled and isinstance(error, PeerRefused):
            return Ended("interrupted", STOPPED)
        return Ended("failed", error.what)
    if error is not None:
        raise error
    if cancelled:
        return Ended("interrupted", STOPPED)
    reason = text_of(object_of(turn.result()).get("stopReason"))
    why = _WHY.get(reason, "idle")
    return Ended(why, f"{name} stopped: {reason}" if why != "idle" else "")
