"""The chunks of a Chat Completions stream → deltas, as OpenAI sends them and as others do.

Met in the wild: calls without ids, or all with index 0, or with arguments as an object; "stop" after calls; thoughts in
"reasoning_content" (DeepSeek, vLLM, llama.cpp), "reasoning" (Ollama, OpenRouter), "reasoning_details" (OpenRouter) and
in a list (Mistral); Gemini seals them beside each call, in "extra_content", and wants that back.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tarmac.models.draft import Draft, Opaque
from tarmac.models.messages import StopReason, Usage
from tarmac.models.provider import Chunk

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
THOUGHTS = ("reasoning_content", "reasoning")
GROWING = ("text", "summary", "data")  # in a detail: comes in pieces


class Reading:
    """One answer, chunk by chunk."""

    def __init__(self, draft: Draft, model: str) -> None:
        self._draft = draft
        self._model = model
        self._refused = False
        self._details: dict[object, dict[str, object]] = {}
        self._calls: dict[object, _Open] = {}  # by index: the last call with it

    def read(self, chunk: "ChatCompletionChunk") -> Iterator[Chunk]:
        """What it adds to the answer."""
        if chunk.usage is not None:
            self._draft.usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            if choice.delta is not None:
                yield from self._delta(choice.delta)
            if choice.finish_reason:
                self._draft.stop = self._stop(choice.finish_reason)

    def _delta(self, delta: "ChoiceDelta") -> Iterator[Chunk]:
        yield from self._thoughts(delta.model_extra or {})
        yield from self._content(delta.content)
        if delta.refusal:
            self._refused = True
            yield self._draft.text(delta.refusal)
        for piece in delta.tool_calls or ():
            yield from self._call(piece)

    def _content(self, content: object) -> Iterator[Chunk]:
        """What it says: text; from Mistral's thinking models a list, with thoughts in it."""
        for piece in content if isinstance(content, list) else [content] if content else []:
            if not isinstance(piece, dict):
                yield self._draft.text(piece)
            elif text := piece.get("text"):
                yield self._draft.text(text)
            elif isinstance(thoughts := piece.get("thinking"), list):
                for each in thoughts:
                    yield self._draft.reasoning(each.get("text", ""), self._opaque({}))

    def _stop(self, reason: str) -> StopReason:
        stop = STOPS.get(reason, "other")
        if stop == "end" and self._draft.has_calls:
            return "tool_use"
        return "refusal" if stop == "end" and self._refused else stop

    def _thoughts(self, extra: Mapping[str, object]) -> Iterator[Chunk]:
        for name in THOUGHTS:
            text = extra.get(name)
            if isinstance(text, str) and text:
                yield self._draft.reasoning(text, self._opaque({"field": name}))
                break
        details = extra.get("reasoning_details")
        if isinstance(details, list) and details:
            for piece in details:
                self._detail(piece)
            self._draft.reasoning("", self._opaque({"field": "reasoning_details"}))

    def _opaque(self, how: dict[str, object]) -> Opaque:
        """What the model wants back: with details they alone count."""
        return self._detailed if self._details else json.dumps({self._model: how})

    def _detailed(self) -> str:
        """All details, once they are wanted: there may be thousands of pieces."""
        details = [
            {name: "".join(value) if isinstance(value, _Pieces) else value for name, value in each.items()}
            for each in self._details.values()
        ]
        return json.dumps({self._model: {"details": details}})

    def _detail(self, piece: object) -> None:
        """Pieces of the same detail (by index) are put together."""
        if not isinstance(piece, dict):
            return
        whole = self._details.setdefault((piece.get("index"), piece.get("type")), {})
        for name, value in piece.items():
            before = whole.get(name)
            if name in GROWING and isinstance(value, str) and isinstance(before, _Pieces):
                before.append(value)
            elif value is not None or before is None:
                whole[name] = _Pieces([value]) if name in GROWING and isinstance(value, str) else value

    def _call(self, piece: "ChoiceDeltaToolCall") -> Iterator[Chunk]:
        name = (piece.function.name if piece.function else None) or ""
        arguments: object = piece.function.arguments if piece.function else None
        open_ = self._calls.get(piece.index)
        if name and (open_ is None or open_.ended_by(piece.id, name)):
            open_ = self._calls[piece.index] = _Open(piece.id or "", name)
            yield self._draft.begin(open_, piece.id, name)
        if open_ is None:
            return
        if sealed := (piece.model_extra or {}).get("extra_content"):
            self._draft.sealed(open_, json.dumps({self._model: {"call": sealed}}))
        open_.whole = open_.whole or arguments == {}
        if arguments not in (None, "", {}):
            delta = self._draft.arguments(open_, arguments)
            open_.pieces.append(delta.arguments)
            yield delta


class _Pieces(list[str]):
    """A text that is put together when it is wanted: for each piece anew would take the square of its length."""


class _Open:
    """A call that may still get more."""

    def __init__(self, id_: str, name: str) -> None:
        self.id = id_
        self.name = name
        self.pieces = _Pieces()
        self.whole = False  # it has said that it has none

    def ended_by(self, id_: str | None, name: str) -> bool:
        """Is a piece with this name and this id the first of another call?"""
        if id_:
            return id_ != self.id
        if name != self.name or self.whole:
            return True
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.pieces)), dict)
        except (ValueError, RecursionError):
            return False


def _usage(told: object) -> Usage:
    """Its counts have the cached ones within."""
    details = getattr(told, "prompt_tokens_details", None)
    reads = _count(details, "cached_tokens") or _count(told, "prompt_cache_hit_tokens")  # the second is DeepSeek's
    writes = _count(details, "cache_write_tokens")
    plain = _count(told, "prompt_tokens") - reads - writes
    return Usage(input=max(0, plain), output=_count(told, "completion_tokens"), cache_reads=reads, cache_writes=writes)


def _count(told: object, name: str) -> int:
    found = getattr(told, name, None)
    return found if isinstance(found, int) else 0
