"""Build a completion from the pieces of a stream.

Each piece becomes a delta. The pieces of a call, joined, are its arguments. A call without any has {}.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

from tarmac.models.messages import NO_USAGE, Message, Part, Reasoning, StopReason, Text, ToolUse, Usage
from tarmac.models.provider import CallDelta, Completion, ReasoningDelta, TextDelta


def used_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of all tool calls in a conversation."""
    return {part.id for message in messages for part in message.parts if isinstance(part, ToolUse)}


Opaque = str | Callable[[], str]


@dataclass(slots=True)
class _Block:
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class _TextBlock(_Block):
    pass


@dataclass(slots=True)
class _ReasoningBlock(_Block):
    opaque: Opaque = ""


@dataclass(slots=True)
class _CallSignature(_ReasoningBlock):
    """Belongs to the call after it."""


@dataclass(slots=True)
class _CallBlock(_Block):
    index: int = 0
    id: str = ""
    name: str = ""
    default: str = ""


_Kind = TypeVar("_Kind", bound=_Block)


class CompletionBuilder:
    """The completion so far."""

    def __init__(self, taken: set[str]) -> None:
        self.stop: StopReason | None = None  # None: the stream has not ended
        self.usage: Usage = NO_USAGE
        self.size = 0  # characters received
        self._taken = taken  # ids of earlier calls
        self._blocks: list[_Block] = []
        self._calls: dict[Hashable, _CallBlock] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts so far. The last call may be incomplete."""
        return tuple(part for block in self._blocks for part in _part(block))

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def text(self, piece: object) -> TextDelta:
        text = self._counted(piece)
        self._last(_TextBlock).pieces.append(text)
        return TextDelta(text)

    def reasoning(self, piece: object, opaque: Opaque | None = None) -> ReasoningDelta:
        """`opaque` is what the provider wants back with this block, or a function that returns it at the end."""
        text = self._counted(piece)
        block = self._last(_ReasoningBlock)
        block.pieces.append(text)
        if opaque is not None:
            block.opaque = opaque
        return ReasoningDelta(text)

    def new_block(self) -> None:
        """End the current block of text or reasoning."""
        self._blocks.append(_Block())

    def begin(self, key: Hashable, id_: str | None, name: str) -> CallDelta:
        """Begin a call. A missing or repeated id is replaced."""
        if not id_ or id_ in self._taken:
            id_ = f"call_{uuid4().hex[:24]}"
        self._taken.add(id_)
        call = _CallBlock(index=sum(isinstance(block, _CallBlock) for block in self._blocks), id=id_, name=name)
        self._calls[key] = call
        self._blocks.append(call)
        return CallDelta(call.index, call.id, call.name, "")

    def arguments(self, key: Hashable, piece: object) -> CallDelta:
        """Add to the arguments of a call. Some servers send an object instead of JSON text."""
        call = self._calls[key]
        text = piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)
        call.pieces.append(self._counted(text))
        return CallDelta(call.index, call.id, call.name, text)

    def sign_call(self, key: Hashable, opaque: str) -> None:
        """Keep what the provider wants back with a call, as reasoning without text before it."""
        at = self._blocks.index(self._calls[key])
        before = self._blocks[at - 1] if at else None
        if isinstance(before, _CallSignature):
            before.opaque = opaque
        else:
            self._blocks.insert(at, _CallSignature(opaque=opaque))

    def default_arguments(self, key: Hashable, arguments: object) -> None:
        """The whole arguments of a call, used if no pieces arrive."""
        if isinstance(arguments, dict) and arguments:
            self._calls[key].default = json.dumps(arguments, ensure_ascii=False)

    def whole_arguments(self, key: Hashable, arguments: str) -> Iterator[CallDelta]:
        """The whole arguments of a call, if no pieces arrived."""
        if arguments and not self._calls[key].pieces:
            yield self.arguments(key, arguments)

    def finish(self) -> Iterator[CallDelta | Completion]:
        """The missing arguments and the completion. A call that was cut off before its arguments gets none."""
        for key, call in self._calls.items():
            last = self.stop == "max_tokens" and call is self._blocks[-1]
            if not call.text and (call.default or not last):
                yield self.arguments(key, call.default or "{}")
        yield Completion(self.parts, self.stop or "other", self.usage)

    def _counted(self, piece: object) -> str:
        if not isinstance(piece, str):
            raise TypeError(f"{type(piece).__name__} instead of text")
        self.size += len(piece)
        return piece

    def _last(self, kind: type[_Kind]) -> _Kind:
        if not self._blocks or type(self._blocks[-1]) is not kind:
            self._blocks.append(kind())
        last = self._blocks[-1]
        assert isinstance(last, kind)
        return last


def _part(block: _Block) -> Iterator[Part]:
    match block:
        case _TextBlock() if block.text:
            yield Text(block.text)
        case _ReasoningBlock(opaque=opaque) if block.text or opaque:
            yield Reasoning(block.text, opaque if isinstance(opaque, str) else opaque())
        case _CallBlock():
            yield ToolUse(block.id, block.name, block.text)
