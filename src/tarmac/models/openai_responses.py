"""OpenAI's Responses API. Its newer models offer tools together with reasoning only here.

OpenAI stores nothing (`store=False`). Each request has the whole conversation, with the encrypted reasoning as it
arrived. Most OpenAI-compatible servers do not offer this API. They use `openai.py`.
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tarmac.models.completion_builder import CompletionBuilder
from tarmac.models.endpoint import Endpoint
from tarmac.models.failures import stream_error
from tarmac.models.messages import Image, Message, Part, Reasoning, StopReason, Text, ToolResult, ToolUse, Usage
from tarmac.models.openai import client, count
from tarmac.models.provider import Chunk, ModelInfo, ModelSettings, Prompt
from tarmac.models.remote import EncodedImages, EventStream, RemoteModel, encodable, json_object, normalized

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.responses import ResponseStreamEvent

Block = dict[str, object]

UNFINISHED: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
REASONING_MODELS = ("o1", "o3", "o4", "gpt-5", "gpt-6", "codex")  # other models reject `include`
RETURNED_FIELDS = ("id", "type", "summary", "content", "encrypted_content")


class Responses(RemoteModel["AsyncOpenAI", "ResponseStreamEvent"]):
    """A model of OpenAI."""

    def _make_client(self) -> "AsyncOpenAI":
        return client(self._key, self._base_url, self._settings)

    async def _send(
        self, client: "AsyncOpenAI", prompt: Prompt, images: EncodedImages
    ) -> "EventStream[ResponseStreamEvent]":
        create: Any = client.responses.create  # a plain dict: the provider validates it
        events: EventStream[ResponseStreamEvent] = await create(**request(self._info, self._settings, prompt, images))
        return events

    def _reader(self, builder: CompletionBuilder) -> "Callable[[ResponseStreamEvent], Iterator[Chunk]]":
        return ResponsesStream(builder, self._info.id, self._endpoint).read


def request(info: ModelInfo, settings: ModelSettings, prompt: Prompt, images: EncodedImages) -> dict[str, object]:
    """The body of a request."""
    items = [item for message in normalized(prompt.messages) for item in _items(message, info.id, images)]
    body: dict[str, object] = {"model": info.name, "input": items, "stream": True, "store": False}
    if info.name.startswith(REASONING_MODELS) and "-chat" not in info.name:
        body["include"] = ["reasoning.encrypted_content"]
    if prompt.system.strip():
        body["instructions"] = encodable(prompt.system)
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": encodable(tool.description),
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in prompt.tools
        ]
    if max_tokens := prompt.max_tokens or settings.max_output:
        body["max_output_tokens"] = max_tokens
    if prompt.cache_key:
        body["prompt_cache_key"] = prompt.cache_key
    if settings.reasoning == "off":
        body["reasoning"] = {"effort": "none"}
    elif settings.reasoning is not None:
        body["reasoning"] = {"effort": settings.reasoning, "summary": "auto"}
    return body


def _items(message: Message, model: str, images: EncodedImages) -> Iterator[Block]:
    """Calls, results and reasoning are separate items, in order with the text."""
    content: list[Block] = []
    for part in message.parts:
        match part:
            case ToolUse(id=id_, name=name, arguments=arguments):
                yield {"type": "function_call", "call_id": id_, "name": name, "arguments": json_object(arguments)}
            case ToolResult(call=call, content=inner):
                output = [block for each in inner for block in _content(each, images)]
                plain = all(block["type"] == "input_text" for block in output)
                joined = "\n\n".join(str(block["text"]) for block in output) if plain else output
                yield {"type": "function_call_output", "call_id": call, "output": joined}
            case Reasoning():
                yield from _reasoning(part, model)
            case Text(text=text) if message.role == "assistant":
                yield {"role": "assistant", "content": encodable(text)}
            case _:
                content += _content(part, images)
    if content:
        yield {"role": "user", "content": content}


def _content(part: Part, images: EncodedImages) -> Iterator[Block]:
    match part:
        case Text(text=text):
            yield {"type": "input_text", "text": encodable(text)}
        case Image(blob=blob) if blob.sha256 in images.shown:
            url = f"data:{blob.media_type};base64,{images.shown[blob.sha256]}"
            yield {"type": "input_image", "image_url": url, "detail": "auto"}
        case Image(blob=blob):
            yield {"type": "input_text", "text": images.note(blob)}


def _reasoning(part: Reasoning, model: str) -> Iterator[Block]:
    """The reasoning of this model. Without its encrypted content, OpenAI would look for a stored item."""
    try:
        item = json.loads(part.opaque)[model]["item"]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(item, dict) and item.get("encrypted_content"):
        yield item


class ResponsesStream:
    """Reads the events of one response."""

    def __init__(self, builder: CompletionBuilder, model: str, endpoint: Endpoint) -> None:
        self._builder = builder
        self._model = model
        self._endpoint = endpoint
        self._refused = False

    def read(self, event: "ResponseStreamEvent") -> Iterator[Chunk]:
        """Add an event to the completion."""
        builder = self._builder
        if event.type == "response.output_item.added":
            builder.new_block()
            if event.item.type == "function_call":
                yield builder.begin(event.output_index, event.item.call_id, event.item.name)
        elif event.type in ("response.output_text.delta", "response.refusal.delta"):
            self._refused = self._refused or event.type == "response.refusal.delta"
            yield builder.text(event.delta)
        elif event.type in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            yield builder.reasoning(event.delta)
        elif event.type == "response.reasoning_summary_part.added" and event.summary_index:
            yield builder.reasoning("\n\n")
        elif event.type == "response.function_call_arguments.delta":
            yield builder.arguments(event.output_index, event.delta)
        elif event.type == "response.output_item.done" and event.item.type == "reasoning":
            item = {name: value for name, value in event.item.to_dict().items() if name in RETURNED_FIELDS}
            builder.reasoning("", json.dumps({self._model: {"item": item}}))
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            yield from builder.whole_arguments(event.output_index, event.item.arguments)
        elif event.type in ("response.completed", "response.incomplete"):
            builder.usage = _usage(event.response.usage)
            builder.stop = self._stop(getattr(event.response.incomplete_details, "reason", None))
        elif event.type == "response.failed":
            error = event.response.error
            raise stream_error(error.to_dict() if error else None, self._endpoint, builder)
        elif event.type == "error":
            raise stream_error({"message": event.message, "code": event.code}, self._endpoint, builder)

    def _stop(self, unfinished: str | None) -> StopReason:
        if unfinished:
            return UNFINISHED.get(unfinished, "other")
        if self._builder.has_calls:
            return "tool_use"
        return "refusal" if self._refused else "end"


def _usage(reported: object) -> Usage:
    details = getattr(reported, "input_tokens_details", None)
    reads, writes = count(details, "cached_tokens"), count(details, "cache_write_tokens")
    plain = max(0, count(reported, "input_tokens") - reads - writes)
    return Usage(input=plain, output=count(reported, "output_tokens"), cache_reads=reads, cache_writes=writes)
