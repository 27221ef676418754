"""Claude, by Anthropic's own SDK.

Thinking comes back to it as it came (text and signature, or the redacted data): `Reasoning.opaque` holds what is not
text. Cache marks: one after the system prompt (and the tools before it), one after each of the last two messages of
the person, so that this request reads what the last one wrote.
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tarmac.models.address import is_local
from tarmac.models.conversation import clean, object_of, tidy
from tarmac.models.draft import Draft
from tarmac.models.messages import Image, Message, Part, Reasoning, StopReason, Text, ToolResult, ToolUse, Usage
from tarmac.models.provider import Chunk, ModelInfo, ModelSettings, Prompt
from tarmac.models.remote import Pictures, Remote, Streaming

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
OWN = "https://api.anthropic.com"
NO_KEY = "none"  # for a server of one's own that speaks this language and reads none
MARK = {"type": "ephemeral"}
MOST_OUTPUT = 8_192  # where nothing is known of the model: all but the oldest give as much
# Older models think within a number of tokens; newer ones take a word, and find the number.
BY_BUDGET = (
    *("claude-3-7", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5"),
    *("claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4-5"),
)
BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}


class Anthropic(Remote["AsyncAnthropic", "RawMessageStreamEvent"]):
    """A model of Anthropic's, or of a server that speaks its language."""

    _largest_picture = 5 << 20  # as base64

    def _open(self) -> "AsyncAnthropic":
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, Timeout

        limits = Timeout(self._settings.read_timeout, connect=self._settings.connect_timeout)
        # no proxy knows this machine
        direct = dict.fromkeys(("all://", "http://", "https://")) if is_local(self._base_url) else {}
        return AsyncAnthropic(
            api_key=self._key or NO_KEY,
            base_url=self._base_url,
            max_retries=0,
            timeout=limits,
            # a redirect would take the key along
            http_client=DefaultAsyncHttpxClient(follow_redirects=False, timeout=limits, mounts=direct),
            open_telemetry=False,
        )

    async def _ask(
        self, client: "AsyncAnthropic", prompt: Prompt, pictures: Pictures
    ) -> "Streaming[RawMessageStreamEvent]":
        create: Any = client.messages.create  # our words are data, checked by the provider
        events: Streaming[RawMessageStreamEvent] = await create(**request(self._info, self._settings, prompt, pictures))
        return events

    def _reader(self, draft: Draft) -> "Callable[[RawMessageStreamEvent], Iterator[Chunk]]":
        return lambda event: read(event, draft)


def request(info: ModelInfo, settings: ModelSettings, prompt: Prompt, pictures: Pictures) -> dict[str, object]:
    """A prompt in Anthropic's words."""
    most = prompt.max_tokens or info.max_output or MOST_OUTPUT
    messages = [_message(message, pictures) for message in tidy(prompt.messages)]
    _mark_last(messages)
    # a file's content is shown while it comes; other servers of this language refuse what they do not know
    eager = urlsplit(settings.base_urls.get(info.provider, OWN)).hostname == urlsplit(OWN).hostname
    body: dict[str, object] = {"model": info.name, "max_tokens": most, "messages": messages, "stream": True}
    tools: list[Block] = [
        {
            "name": tool.name,
            "description": clean(tool.description),
            "input_schema": tool.parameters,
            **({"eager_input_streaming": True} if eager else {}),
        }
        for tool in prompt.tools
    ]
    if tools:
        body["tools"] = tools
    if prompt.system.strip():
        body["system"] = [{"type": "text", "text": clean(prompt.system), "cache_control": MARK}]
    elif tools:
        tools[-1]["cache_control"] = MARK
    body.update(_thinking(info.name, settings, most))
    return body


def _thinking(name: str, settings: ModelSettings, most: int) -> dict[str, object]:
    how = settings.reasoning
    if how is None:
        return {}
    if how == "off":
        return {"thinking": {"type": "disabled"}}
    if name.startswith(BY_BUDGET):
        budget = min(BUDGETS[how], most - 1_024)
        return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1_024 else {}
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": how}}


def _mark_last(messages: list[Block]) -> None:
    asked = [message for message in messages if message["role"] == "user"]
    for message in asked[-2:]:
        content = message["content"]
        assert isinstance(content, list)
        content[-1]["cache_control"] = MARK


def _message(message: Message, pictures: Pictures) -> Block:
    return {"role": message.role, "content": [block for part in message.parts for block in _blocks(part, pictures)]}


def _blocks(part: Part, pictures: Pictures) -> Iterator[Block]:
    match part:
        case Text(text=text) if text.strip():
            yield {"type": "text", "text": clean(text)}
        case Image(blob=blob) if blob.sha256 in pictures.shown:
            data = pictures.shown[blob.sha256]
            yield {"type": "image", "source": {"type": "base64", "media_type": blob.media_type, "data": data}}
        case Image(blob=blob):
            yield {"type": "text", "text": pictures.note(blob)}
        case Reasoning():
            yield from _thought(part)
        case ToolUse(id=id_, name=name, arguments=arguments):
            yield {"type": "tool_use", "id": id_, "name": name, "input": json.loads(object_of(arguments))}
        case ToolResult(call=call, content=content, failed=failed):
            result: Block = {"type": "tool_result", "tool_use_id": call}
            if blocks := [block for inner in content for block in _blocks(inner, pictures)]:
                result["content"] = blocks
            if failed:
                result["is_error"] = True
            yield result


def _thought(part: Reasoning) -> Iterator[Block]:
    try:
        ours = json.loads(part.opaque)["anthropic"]
    except (ValueError, KeyError, TypeError):
        return  # another provider's, or cut before its signature came
    if "data" in ours:
        yield {"type": "redacted_thinking", "data": ours["data"]}
    else:
        yield {"type": "thinking", "thinking": clean(part.text), "signature": ours["signature"]}


def read(event: "RawMessageStreamEvent", draft: Draft) -> Iterator[Chunk]:
    """What an event adds to the answer."""
    if event.type == "message_start":
        draft.usage = _usage(event.message.usage, draft.usage)
    elif event.type == "content_block_start":
        block = event.content_block
        draft.new_block()
        if block.type == "tool_use":
            yield draft.begin(event.index, block.id, block.name)
            draft.otherwise(event.index, block.input)  # some servers give all of it here, and no pieces
        elif block.type == "redacted_thinking":
            yield draft.reasoning("", json.dumps({"anthropic": {"data": block.data}}))
        elif block.type == "text" and block.text:
            yield draft.text(block.text)
        elif block.type == "thinking" and (block.thinking or block.signature):
            sealed = json.dumps({"anthropic": {"signature": block.signature}}) if block.signature else None
            yield draft.reasoning(block.thinking or "", sealed)
    elif event.type == "content_block_delta":
        delta = event.delta
        if delta.type == "text_delta" and delta.text:
            yield draft.text(delta.text)
        elif delta.type == "thinking_delta" and delta.thinking:
            yield draft.reasoning(delta.thinking)
        elif delta.type == "signature_delta":
            draft.reasoning("", json.dumps({"anthropic": {"signature": delta.signature}}))
        elif delta.type == "input_json_delta" and delta.partial_json:
            yield draft.arguments(event.index, delta.partial_json)
    elif event.type == "message_delta":
        draft.usage = _usage(event.usage, draft.usage)
        if event.delta.stop_reason:
            draft.stop = STOPS.get(event.delta.stop_reason, "other")


def _usage(told: object, before: Usage) -> Usage:
    """Its counts are totals; what is not told stays as it was."""

    def count(name: str, otherwise: int) -> int:
        found = getattr(told, name, None)
        return found if isinstance(found, int) else otherwise

    return Usage(
        input=count("input_tokens", before.input),
        output=count("output_tokens", before.output),
        cache_reads=count("cache_read_input_tokens", before.cache_reads),
        cache_writes=count("cache_creation_input_tokens", before.cache_writes),
    )
