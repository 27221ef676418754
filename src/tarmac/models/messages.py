"""A conversation, independent of any provider. Tasks store it, and each provider translates it.

Message(role, parts) · part: Text | Image | Reasoning | ToolUse | ToolResult

An image is stored by the hash of its content. The task that stores it can load its bytes.
The arguments of a tool call are the text that the model wrote, even if it is not valid JSON.
All types but `Blob` are msgspec structs (ADR 42), because a long task has hundreds of thousands of them.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

Role = Literal["user", "assistant"]
StopReason = Literal["end", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause", "cut", "other"]


@dataclass(frozen=True, slots=True)
class Blob:
    """A file stored beside the log, named by the hash of its bytes."""

    sha256: str
    size: int
    media_type: str = "application/octet-stream"


class _Part(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    """A part of a message; `type` is its name in records. Never part of a reference cycle, as all is frozen."""


class Text(_Part, frozen=True, gc=False, tag="text"):
    """Plain text."""

    text: str


class Image(_Part, frozen=True, gc=False, tag="image"):
    """An image."""

    blob: Blob


class Reasoning(_Part, frozen=True, gc=False, tag="reasoning"):
    """The reasoning of a model. `opaque` is returned to its provider unchanged."""

    text: str
    opaque: str = ""


class ToolUse(_Part, frozen=True, gc=False, tag="tool_use"):
    """A tool call by the model."""

    id: str
    name: str
    arguments: str  # JSON, as the model wrote it


class ToolResult(_Part, frozen=True, gc=False, tag="tool_result"):
    """The result of a tool call: text and images."""

    call: str
    content: "tuple[Part, ...]"
    failed: bool = False


Part = Text | Image | Reasoning | ToolUse | ToolResult


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message of the user or the assistant."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its text parts, joined."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Token counts, as reported by the provider."""

    input: int = 0  # without cache reads and writes
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
        """The tokens of the conversation after this request."""
        return self.input + self.cache_reads + self.cache_writes + self.output


NO_USAGE = Usage()
