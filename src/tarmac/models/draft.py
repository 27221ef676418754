"""An answer while it comes: takes pieces, gives deltas, and knows at any moment what is there.

The pieces of a call, joined, are its arguments in the answer; a call without any has {}.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

from tarmac.models.messages import NO_USAGE, Message, Part, Reasoning, StopReason, Text, ToolUse, Usage
from tarmac.models.provider import Answer, CallDelta, ReasoningDelta, TextDelta


def used_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls of a conversation."""
    return {part.id for message in messages for part in message.parts if isinstance(part, ToolUse)}


Opaque = str | Callable[[], str]


@dataclass(slots=True)
class _Block:
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class _Words(_Block):
    pass


@dataclass(slots=True)
class _Thoughts(_Block):
    opaque: Opaque = ""


@dataclass(slots=True)
class _Seal(_Thoughts):
    """Of the call behind it."""


@dataclass(slots=True)
class _Call(_Block):
    index: int = 0
    id: str = ""
    name: str = ""
    otherwise: str = ""


_Kind = TypeVar("_Kind", bound=_Block)


class Draft:
    """What has come so far."""

    def __init__(self, taken: set[str]) -> None:
        self.stop: StopReason | None = None  # None: it has not ended
        self.usage: Usage = NO_USAGE
        self.size = 0  # letters that came
        self._taken = taken  # ids of calls before this answer
        self._blocks: list[_Block] = []
        self._calls: dict[Hashable, _Call] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is there, as parts of a message; a call that is not finished is as it is."""
        return tuple(part for block in self._blocks for part in _part(block))

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def text(self, piece: object) -> TextDelta:
        words = self._counted(piece)
        self._last(_Words).pieces.append(words)
        return TextDelta(words)

    def reasoning(self, piece: object, opaque: Opaque | None = None) -> ReasoningDelta:
        """`opaque`: what the provider wants back with all that was thought in this block; or who knows it then."""
        words = self._counted(piece)
        block = self._last(_Thoughts)
        block.pieces.append(words)
        if opaque is not None:
            block.opaque = opaque
        return ReasoningDelta(words)

    def new_block(self) -> None:
        """What comes next is not a part of what came last."""
        self._blocks.append(_Block())

    def begin(self, key: Hashable, id_: str | None, name: str) -> CallDelta:
        """A new call; an id that is missing or was there before gets one of ours."""
        if not id_ or id_ in self._taken:
            id_ = f"call_{uuid4().hex[:24]}"
        self._taken.add(id_)
        call = _Call(index=sum(isinstance(block, _Call) for block in self._blocks), id=id_, name=name)
        self._calls[key] = call
        self._blocks.append(call)
        return CallDelta(call.index, call.id, call.name, "")

    def arguments(self, key: Hashable, piece: object) -> CallDelta:
        """More of a call's arguments; some servers send an object where JSON text belongs."""
        call = self._calls[key]
        text = piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)
        call.pieces.append(self._counted(text))
        return CallDelta(call.index, call.id, call.name, text)

    def sealed(self, key: Hashable, opaque: str) -> None:
        """What the provider wants back with a call: a thought without words, directly before it."""
        at = self._blocks.index(self._calls[key])
        before = self._blocks[at - 1] if at else None
        if isinstance(before, _Seal):
            before.opaque = opaque
        else:
            self._blocks.insert(at, _Seal(opaque=opaque))

    def otherwise(self, key: Hashable, arguments: object) -> None:
        """All of a call's arguments, in case that no pieces of them come."""
        if isinstance(arguments, dict) and arguments:
            self._calls[key].otherwise = json.dumps(arguments, ensure_ascii=False)

    def whole(self, key: Hashable, arguments: str) -> Iterator[CallDelta]:
        """All of a call's arguments, for who sent no pieces of them."""
        if arguments and not self._calls[key].pieces:
            yield self.arguments(key, arguments)

    def finish(self) -> Iterator[CallDelta | Answer]:
        """What is still to be said, and the answer. A last call that was cut off before its arguments has none."""
        for key, call in self._calls.items():
            last = self.stop == "max_tokens" and call is self._blocks[-1]
            if not call.text and (call.otherwise or not last):
                yield self.arguments(key, call.otherwise or "{}")
        yield Answer(self.parts, self.stop or "other", self.usage)

    def _counted(self, piece: object) -> str:
        if not isinstance(piece, str):
            raise TypeError(f"{type(piece).__name__} in place of words")
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
        case _Words() if block.text:
            yield Text(block.text)
        case _Thoughts(opaque=opaque) if block.text or opaque:
            yield Reasoning(block.text, opaque if isinstance(opaque, str) else opaque())
        case _Call():
            yield ToolUse(block.id, block.name, block.text)
