"""A conversation in neutral words: what tasks keep and every provider translates into its own.

Message(role, parts) · part: Text | Image | Reasoning | ToolUse | ToolResult

Images are named by the hash of their content, never carried along: the task that keeps them can say what they hold.
Arguments of a tool call stay the text that the model wrote, JSON or broken; what is sent again is always JSON.
All but `Blob` are msgspec's structs, not dataclasses (ADR 86): a long task has hundreds of thousands of them.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

Role = Literal["user", "assistant"]
StopReason = Literal["end", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause", "cut", "other"]


@dataclass(frozen=True, slots=True)
class Blob:
    """A content kept beside the log, by the hash of its bytes."""

    sha256: str
    size: int
    media_type: str = "application/octet-stream"


class _Part(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    """A piece of a message; `type` names its kind in records. Frozen all the way down: never part of a cycle."""


class Text(_Part, frozen=True, gc=False, tag="text"):
    """Words."""

    text: str


class Image(_Part, frozen=True, gc=False, tag="image"):
    """A picture."""

    blob: Blob


class Reasoning(_Part, frozen=True, gc=False, tag="reasoning"):
    """What the model thought aloud; `opaque` is what its provider wants back, as it came."""

    text: str
    opaque: str = ""


class ToolUse(_Part, frozen=True, gc=False, tag="tool_use"):
    """The model wants a tool to run."""

    id: str
    name: str
    arguments: str  # JSON, as the model wrote it


class ToolResult(_Part, frozen=True, gc=False, tag="tool_result"):
    """What came of a tool call: texts and images."""

    call: str
    content: "tuple[Part, ...]"
    failed: bool = False


Part = Text | Image | Reasoning | ToolUse | ToolResult


class Message(msgspec.Struct, frozen=True, gc=False):
    """One turn of one side."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its words alone."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens, as the provider counted them."""

    input: int = 0  # without those read from or written to its cache
    output: int = 0
    cache_reads: int = 0
    cache_writes: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_reads=self.cache_reads + other.cache_reads,
            cache_writes=self.cache_writes + other.cache_writes,
        )

    @property
    def context(self) -> int:
        """How much of the context window the conversation fills after this request."""
        return self.input + self.cache_reads + self.cache_writes + self.output


NO_USAGE = Usage()
