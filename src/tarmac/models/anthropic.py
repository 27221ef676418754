"""Anthropic's Messages API, through its SDK.

Reasoning is returned unchanged: its text with the signature, or the redacted data, both in `Reasoning.opaque`. There is
one cache breakpoint after the tools and the system prompt, and one after each of the last two user messages. So each
request reads from the cache what the previous one wrote.
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tarmac.models.completion_builder import CompletionBuilder
from tarmac.models.endpoint import is_local
from tarmac.models.messages import Image, Message, Part, Reasoning, StopReason, Text, ToolResult, ToolUse, Usage
from tarmac.models.provider import Chunk, ModelInfo, ModelSettings, Prompt
from tarmac.models.remote import EncodedImages, EventStream, RemoteModel, bound, encodable, json_object, normalized

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import RawMessageStreamEvent

Block = dict[str, object]

STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause",
    "refusal": "refusal",
}
API_URL = "https://api.anthropic.com"
NO_KEY = "none"  # the SDK requires a key; a local server ignores it
CACHE_BREAKPOINT = {"type": "ephemeral"}
DEFAULT_OUTPUT = 8_192  # for unknown models: all but the oldest support it
# Older models take a token budget for reasoning. Newer ones take an effort level.
WITH_BUDGET = (
    *("claude-3-7", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5"),
    *("claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4-5"),
)
BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}


class Anthropic(RemoteModel["AsyncAnthropic", "RawMessageStreamEvent"]):
    """A model of Anthropic, or of a server with the same API."""

    _largest_image = 5 << 20  # bytes of base64

    def _make_client(self) -> "AsyncAnthropic":
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, Timeout

        limits = Timeout(self._settings.read_timeout, connect=self._settings.connect_timeout)
        # a proxy can't reach a server on this machine
        direct = dict.fromkeys(("all://", "http://", "https://")) if is_local(self._base_url) else {}
        return AsyncAnthropic(
            api_key=self._key or NO_KEY,
            base_url=self._base_url,
            max_retries=0,
            timeout=limits,
            # a redirect would carry the key to another host
            http_client=DefaultAsyncHttpxClient(
                follow_redirects=False, timeout=limits, event_hooks={"response": [bound]}, mounts=direct
            ),
            open_telemetry=False,
        )

    async def _send(
        self, client: "AsyncAnthropic", prompt: Prompt, images: EncodedImages
    ) -> "EventStream[RawMessageStreamEvent]":
        create: Any = client.messages.create  # a plain dict: the provider validates it
        events: EventStream[RawMessageStreamEvent] = await create(**request(self._info, self._settings, prompt, images))
        return events

    def _reader(self, builder: CompletionBuilder) -> "Callable[[RawMessageStreamEvent], Iterator[Chunk]]":
        return lambda event: read(event, builder)


def request(info: ModelInfo, settings: ModelSettings, prompt: Prompt, images: EncodedImages) -> dict[str, object]:
    """The body of a request to the Messages API."""
    max_tokens = prompt.max_tokens or info.max_output or DEFAULT_OUTPUT
    messages = [_message(message, images) for message in normalized(prompt.messages)]
    _add_cache_breakpoints(messages)
    # Arguments stream while the model writes them. Other servers reject unknown fields.
    eager = urlsplit(settings.base_urls.get(info.provider, API_URL)).hostname == urlsplit(API_URL).hostname
    body: dict[str, object] = {"model": info.name, "max_tokens": max_tokens, "messages": messages, "stream": True}
    tools: list[Block] = [
        {
            "name": tool.name,
            "description": encodable(tool.description),
            "input_schema": tool.parameters,
            **({"eager_input_streaming": True} if eager else {}),
        }
        for tool in prompt.tools
    ]
    if tools:
        body["tools"] = tools
    if prompt.system.strip():
        body["system"] = [{"type": "text", "text": encodable(prompt.system), "cache_control": CACHE_BREAKPOINT}]
    elif tools:
        tools[-1]["cache_control"] = CACHE_BREAKPOINT
    body.update(_thinking(info.name, settings, max_tokens))
    return body


def _thinking(name: str, settings: ModelSettings, max_tokens: int) -> dict[str, object]:
    effort = settings.reasoning
    if effort is None:
        return {}
    if effort == "off":
        return {"thinking": {"type": "disabled"}}
    if name.startswith(WITH_BUDGET):
        budget = min(BUDGETS[effort], max_tokens - 1_024)
        return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1_024 else {}
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}


def _add_cache_breakpoints(messages: list[Block]) -> None:
    from_user = [message for message in messages if message["role"] == "user"]
    for message in from_user[-2:]:
        content = message["content"]
        assert isinstance(content, list)
        content[-1]["cache_control"] = CACHE_BREAKPOINT


def _message(message: Message, images: EncodedImages) -> Block:
    return {"role": message.role, "content": [block for part in message.parts for block in _blocks(part, images)]}


def _blocks(part: Part, images: EncodedImages) -> Iterator[Block]:
    match part:
        case Text(text=text) if text.strip():
            yield {"type": "text", "text": encodable(text)}
        case Image(blob=blob) if blob.sha256 in images.shown:
            data = images.shown[blob.sha256]
            yield {"type": "image", "source": {"type": "base64", "media_type": blob.media_type, "data": data}}
        case Image(blob=blob):
            yield {"type": "text", "text": images.note(blob)}
        case Reasoning():
            yield from _reasoning(part)
        case ToolUse(id=id_, name=name, arguments=arguments):
            yield {"type": "tool_use", "id": id_, "name": name, "input": json.loads(json_object(arguments))}
        case ToolResult(call=call, content=content, failed=failed):
            result: Block = {"type": "tool_result", "tool_use_id": call}
            if blocks := [block for inner in content for block in _blocks(inner, images)]:
                result["content"] = blocks
            if failed:
                result["is_error"] = True
            yield result


def _reasoning(part: Reasoning) -> Iterator[Block]:
    try:
        ours = json.loads(part.opaque)["anthropic"]
    except (ValueError, KeyError, TypeError):
        return  # from another provider, or without its signature
    if "data" in ours:
        yield {"type": "redacted_thinking", "data": ours["data"]}
    else:
        yield {"type": "thinking", "thinking": encodable(part.text), "signature": ours["signature"]}


def read(event: "RawMessageStreamEvent", builder: CompletionBuilder) -> Iterator[Chunk]:
    """Add an event to the completion."""
    if event.type == "message_start":
        builder.usage = _usage(event.message.usage, builder.usage)
    elif event.type == "content_block_start":
        block = event.content_block
        builder.new_block()
        if block.type == "tool_use":
            yield builder.begin(event.index, block.id, block.name)
            builder.default_arguments(
                event.index, block.input
            )  # some servers send the whole input here, without deltas
        elif block.type == "redacted_thinking":
            yield builder.reasoning("", json.dumps({"anthropic": {"data": block.data}}))
        elif block.type == "text" and block.text:
            yield builder.text(block.text)
        elif block.type == "thinking" and (block.thinking or block.signature):
            signed = json.dumps({"anthropic": {"signature": block.signature}}) if block.signature else None
            yield builder.reasoning(block.thinking or "", signed)
    elif event.type == "content_block_delta":
        delta = event.delta
        if delta.type == "text_delta" and delta.text:
            yield builder.text(delta.text)
        elif delta.type == "thinking_delta" and delta.thinking:
            yield builder.reasoning(delta.thinking)
        elif delta.type == "signature_delta":
            builder.reasoning("", json.dumps({"anthropic": {"signature": delta.signature}}))
        elif delta.type == "input_json_delta" and delta.partial_json:
            yield builder.arguments(event.index, delta.partial_json)
    elif event.type == "message_delta":
        builder.usage = _usage(event.usage, builder.usage)
        if event.delta.stop_reason:
            builder.stop = STOPS.get(event.delta.stop_reason, "other")


def _usage(reported: object, before: Usage) -> Usage:
    """The counts are totals. A missing one keeps its value."""

    def count(name: str, default: int) -> int:
        found = getattr(reported, name, None)
        return found if isinstance(found, int) else default

    return Usage(
        input=count("input_tokens", before.input),
        output=count("output_tokens", before.output),
        cache_reads=count("cache_read_input_tokens", before.cache_reads),
        cache_writes=count("cache_creation_input_tokens", before.cache_writes),
    )
