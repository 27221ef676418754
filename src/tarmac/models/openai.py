"""OpenAI's Chat Completions API, for every server that offers it: Ollama, vLLM, llama.cpp, LM Studio, OpenRouter …

The API is not specified in every detail, and servers differ. Seen so far:
- calls without ids, all with index 0, or with an object as arguments
- finish reason "stop" after calls
- reasoning in "reasoning_content" (DeepSeek, vLLM, llama.cpp), "reasoning" (Ollama, OpenRouter), "reasoning_details"
  (OpenRouter) or a list in the content (Mistral)
- a signature beside each call, in "extra_content" (Gemini)

Reasoning is sent back in the field in which it arrived.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tarmac.models.completion_builder import CompletionBuilder, Opaque
from tarmac.models.endpoint import is_local
from tarmac.models.messages import Image, Message, Part, Reasoning, StopReason, Text, ToolResult, ToolUse, Usage
from tarmac.models.provider import Chunk, ModelError, ModelInfo, ModelSettings, Prompt
from tarmac.models.remote import (
    EncodedImages,
    EventStream,
    RemoteModel,
    bound,
    encodable,
    json_object,
    normalized,
    plain_id,
    short_id,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

Block = dict[str, object]

NO_KEY = "none"  # the SDK requires a key; a local server ignores it


def client(key: str, base_url: str, settings: ModelSettings) -> "AsyncOpenAI":
    """The SDK's client, with timeouts and without retries."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    limits = Timeout(settings.read_timeout, connect=settings.connect_timeout)
    return AsyncOpenAI(
        api_key=key or NO_KEY,
        base_url=base_url,
        max_retries=0,
        timeout=limits,
        # a redirect would carry the key to another host; a proxy can't reach a server on this machine
        http_client=DefaultAsyncHttpxClient(
            follow_redirects=False, timeout=limits, event_hooks={"response": [bound]}, trust_env=not is_local(base_url)
        ),
    )


class ChatCompletions(RemoteModel["AsyncOpenAI", "ChatCompletionChunk"]):
    """A model of a server with OpenAI's Chat Completions API."""

    _usage_supported = True  # the server accepts `stream_options`

    def _make_client(self) -> "AsyncOpenAI":
        return client(self._key, self._base_url, self._settings)

    async def _send(
        self, client: "AsyncOpenAI", prompt: Prompt, images: EncodedImages
    ) -> "EventStream[ChatCompletionChunk]":
        create: Any = client.chat.completions.create  # a plain dict: the provider validates it
        body = request(self._info, self._settings, prompt, images, with_usage=self._usage_supported)
        try:
            events: EventStream[ChatCompletionChunk] = await create(**body)
        except Exception as error:  # an error of the SDK, which is not imported here
            if getattr(error, "status_code", None) not in (400, 422) or "stream_options" not in str(error):
                raise
            self._usage_supported = False
            what = f"{self._info.id} does not support `stream_options`; the next request goes without it"
            raise ModelError(what, kind="bad_request", status=400, retryable=True) from None
        return events

    def _reader(self, builder: CompletionBuilder) -> "Callable[[ChatCompletionChunk], Iterator[Chunk]]":
        return ChatStream(builder, self._info.id).read


def request(
    info: ModelInfo, settings: ModelSettings, prompt: Prompt, images: EncodedImages, *, with_usage: bool = True
) -> dict[str, object]:
    """The body of a request. `with_usage` asks for token counts."""
    messages: list[Block] = [{"role": "system", "content": encodable(prompt.system)}] if prompt.system.strip() else []
    fit = short_id if info.provider == "mistral" else plain_id
    for message in normalized(prompt.messages, fit):
        messages += _user(message, images) if message.role == "user" else [_assistant(message, info.id)]
    body: dict[str, object] = {"model": info.name, "messages": messages, "stream": True}
    if with_usage and info.provider != "mistral":  # Mistral always sends counts, and rejects the option
        body["stream_options"] = {"include_usage": True}
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": encodable(tool.description),
                    "parameters": tool.parameters,
                },
            }
            for tool in prompt.tools
        ]
    if max_tokens := prompt.max_tokens or settings.max_output:
        body["max_completion_tokens" if info.provider == "openai" else "max_tokens"] = max_tokens
    if prompt.cache_key and info.provider == "openai":  # other servers may reject the field
        body["prompt_cache_key"] = prompt.cache_key
    if settings.reasoning is not None:
        body["reasoning_effort"] = "none" if settings.reasoning == "off" else settings.reasoning
    return body


def _assistant(message: Message, model: str) -> Block:
    block: Block = {"role": "assistant", "content": encodable(message.text) or None}
    calls: list[Block] = []
    signature: object = None  # of the next call
    for part in message.parts:
        if isinstance(part, Reasoning):
            ours = _ours(part, model)
            signature = ours.get("call")
            block.update(_reasoning(part, ours, block))
        elif isinstance(part, ToolUse):
            function = {"name": part.name, "arguments": json_object(part.arguments)}
            extra = {"extra_content": signature} if signature else {}
            calls.append({"id": part.id, "type": "function", "function": function, **extra})
            signature = None
    if calls:
        block["tool_calls"] = calls
    return block


def _ours(part: Reasoning, model: str) -> dict[str, Any]:
    """What this model wants back. The reasoning of another model is not sent."""
    try:
        ours = json.loads(part.opaque)[model]
    except (ValueError, KeyError, TypeError):
        return {}
    return ours if isinstance(ours, dict) else {}


def _reasoning(part: Reasoning, ours: dict[str, Any], block: Block) -> Block:
    """The reasoning, in the field in which it arrived."""
    if details := ours.get("details"):
        return {"reasoning_details": details}
    name = ours.get("field")
    return {name: f"{block.get(name, '')}{encodable(part.text)}"} if name else {}


def _user(message: Message, images: EncodedImages) -> list[Block]:
    """Tool results as separate messages, text only. Their images follow in the user message."""
    results: list[Block] = []
    content: list[Block] = []
    for part in message.parts:
        if not isinstance(part, ToolResult):
            content += _content(part, images)
            continue
        texts = [inner.text for inner in part.content if isinstance(inner, Text)]
        attached = [inner for inner in part.content if isinstance(inner, Image)]
        if attached:
            texts.append("[images: see below]")
            content.append({"type": "text", "text": f"[images in the result of {part.call}]"})
            content += [block for image in attached for block in _content(image, images)]
        content_text = encodable("\n\n".join(texts))
        if not content_text.strip():  # some servers reject an empty result
            content_text = "[failed]" if part.failed else "[done]"
        results.append({"role": "tool", "tool_call_id": part.call, "content": content_text})
    if not content:
        return results
    if all(block["type"] == "text" for block in content):  # some servers accept nothing else
        return [*results, {"role": "user", "content": "\n\n".join(str(block["text"]) for block in content)}]
    return [*results, {"role": "user", "content": content}]


def _content(part: Part, images: EncodedImages) -> Iterator[Block]:
    match part:
        case Text(text=text):
            yield {"type": "text", "text": encodable(text)}
        case Image(blob=blob) if blob.sha256 in images.shown:
            url = f"data:{blob.media_type};base64,{images.shown[blob.sha256]}"
            yield {"type": "image_url", "image_url": {"url": url}}
        case Image(blob=blob):
            yield {"type": "text", "text": images.note(blob)}


# --- chunks of the stream

STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
REASONING_FIELDS = ("reasoning_content", "reasoning")
STREAMED_FIELDS = ("text", "summary", "data")  # of a reasoning detail


class ChatStream:
    """Reads the chunks of one completion."""

    def __init__(self, builder: CompletionBuilder, model: str) -> None:
        self._builder = builder
        self._model = model
        self._refused = False
        self._details: dict[object, dict[str, object]] = {}
        self._calls: dict[object, _OpenCall] = {}  # by index: the last call with that index

    def read(self, chunk: "ChatCompletionChunk") -> Iterator[Chunk]:
        """Add a chunk to the completion."""
        if chunk.usage is not None:
            self._builder.usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            if choice.delta is not None:
                yield from self._delta(choice.delta)
            if choice.finish_reason:
                self._builder.stop = self._stop(choice.finish_reason)

    def _delta(self, delta: "ChoiceDelta") -> Iterator[Chunk]:
        yield from self._reasoning(delta.model_extra or {})
        yield from self._content(delta.content)
        if delta.refusal:
            self._refused = True
            yield self._builder.text(delta.refusal)
        for piece in delta.tool_calls or ():
            yield from self._call(piece)

    def _content(self, content: object) -> Iterator[Chunk]:
        """Text; a list with reasoning from some models of Mistral."""
        for piece in content if isinstance(content, list) else [content] if content else []:
            if not isinstance(piece, dict):
                yield self._builder.text(piece)
            elif text := piece.get("text"):
                yield self._builder.text(text)
            elif isinstance(thinking := piece.get("thinking"), list):
                for each in thinking:
                    yield self._builder.reasoning(each.get("text", ""), self._opaque({}))

    def _stop(self, reason: str) -> StopReason:
        stop = STOPS.get(reason, "other")
        if stop == "end" and self._builder.has_calls:
            return "tool_use"
        return "refusal" if stop == "end" and self._refused else stop

    def _reasoning(self, extra: Mapping[str, object]) -> Iterator[Chunk]:
        for name in REASONING_FIELDS:
            text = extra.get(name)
            if isinstance(text, str) and text:
                yield self._builder.reasoning(text, self._opaque({"field": name}))
                break
        details = extra.get("reasoning_details")
        if isinstance(details, list) and details:
            for piece in details:
                self._detail(piece)
            self._builder.reasoning("", self._opaque({"field": "reasoning_details"}))

    def _opaque(self, fields: dict[str, object]) -> Opaque:
        """What the model wants back. If there are details, only these."""
        return self._joined_details if self._details else json.dumps({self._model: fields})

    def _joined_details(self) -> str:
        """All details. Joined once, at the end: there may be thousands of pieces."""
        details = [
            {name: "".join(value) if isinstance(value, _Pieces) else value for name, value in each.items()}
            for each in self._details.values()
        ]
        return json.dumps({self._model: {"details": details}})

    def _detail(self, piece: object) -> None:
        """Collect the pieces of a detail, by its index."""
        if not isinstance(piece, dict):
            return
        whole = self._details.setdefault((piece.get("index"), piece.get("type")), {})
        for name, value in piece.items():
            before = whole.get(name)
            if name in STREAMED_FIELDS and isinstance(value, str) and isinstance(before, _Pieces):
                before.append(value)
            elif value is not None or before is None:
                whole[name] = _Pieces([value]) if name in STREAMED_FIELDS and isinstance(value, str) else value

    def _call(self, piece: "ChoiceDeltaToolCall") -> Iterator[Chunk]:
        name = (piece.function.name if piece.function else None) or ""
        arguments: object = piece.function.arguments if piece.function else None
        open_ = self._calls.get(piece.index)
        if name and (open_ is None or open_.ended_by(piece.id, name)):
            open_ = self._calls[piece.index] = _OpenCall(piece.id or "", name)
            yield self._builder.begin(open_, piece.id, name)
        if open_ is None:
            return
        if signature := (piece.model_extra or {}).get("extra_content"):
            self._builder.sign_call(open_, json.dumps({self._model: {"call": signature}}))
        open_.empty = open_.empty or arguments == {}
        if arguments not in (None, "", {}):
            delta = self._builder.arguments(open_, arguments)
            open_.pieces.append(delta.arguments)
            yield delta


class _Pieces(list[str]):
    """A text in pieces, joined once: joining for each piece would take quadratic time."""


class _OpenCall:
    """A call whose arguments may continue."""

    def __init__(self, id_: str, name: str) -> None:
        self.id = id_
        self.name = name
        self.pieces = _Pieces()
        self.empty = False  # its arguments are {}

    def ended_by(self, id_: str | None, name: str) -> bool:
        """Whether a piece with this id and name begins another call."""
        if id_:
            return id_ != self.id
        if name != self.name or self.empty:
            return True
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.pieces)), dict)
        except (ValueError, RecursionError):
            return False


def _usage(reported: object) -> Usage:
    """The provider includes cached tokens in the count of the prompt."""
    details = getattr(reported, "prompt_tokens_details", None)
    reads = count(details, "cached_tokens") or count(reported, "prompt_cache_hit_tokens")  # DeepSeek uses the second
    writes = count(details, "cache_write_tokens")
    plain = count(reported, "prompt_tokens") - reads - writes
    return Usage(
        input=max(0, plain), output=count(reported, "completion_tokens"), cache_reads=reads, cache_writes=writes
    )


def count(counts: object, name: str) -> int:
    """A count that a provider reports; 0 when it does not."""
    found = getattr(counts, name, None)
    return found if isinstance(found, int) else 0
