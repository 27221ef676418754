"""OpenAI's own models, by its Responses: tools and thinking together are not to be had by Chat Completions any more.

Nothing is stored there (`store=False`): the whole conversation is sent each time, and the thoughts with it, sealed, as
they came. Other servers that call themselves compatible mostly do not speak this; they get `openai.py`.
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tarmac.models.conversation import clean, object_of, tidy
from tarmac.models.draft import Draft
from tarmac.models.failures import Asked, said_in_stream
from tarmac.models.messages import Image, Message, Part, Reasoning, StopReason, Text, ToolResult, ToolUse, Usage
from tarmac.models.openai import client
from tarmac.models.provider import Chunk, ModelInfo, ModelSettings, Prompt
from tarmac.models.remote import Pictures, Remote, Streaming

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.responses import ResponseStreamEvent

Block = dict[str, object]

UNFINISHED: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
THINKING = ("o1", "o3", "o4", "gpt-5", "gpt-6", "codex")  # these seal their thoughts; others refuse to be asked to
SEALED = ("id", "type", "summary", "content", "encrypted_content")


class Responses(Remote["AsyncOpenAI", "ResponseStreamEvent"]):
    """A model of OpenAI's."""

    def _open(self) -> "AsyncOpenAI":
        return client(self._key, self._base_url, self._settings)

    async def _ask(self, client: "AsyncOpenAI", prompt: Prompt, pictures: Pictures) -> "Streaming[ResponseStreamEvent]":
        create: Any = client.responses.create  # our words are data, checked by the provider
        events: Streaming[ResponseStreamEvent] = await create(**request(self._info, self._settings, prompt, pictures))
        return events

    def _reader(self, draft: Draft) -> "Callable[[ResponseStreamEvent], Iterator[Chunk]]":
        return Reading(draft, self._info.id, self._asked).read


def request(info: ModelInfo, settings: ModelSettings, prompt: Prompt, pictures: Pictures) -> dict[str, object]:
    """A prompt in the words of Responses."""
    items = [item for message in tidy(prompt.messages) for item in _items(message, info.id, pictures)]
    body: dict[str, object] = {"model": info.name, "input": items, "stream": True, "store": False}
    if info.name.startswith(THINKING) and "-chat" not in info.name:
        body["include"] = ["reasoning.encrypted_content"]
    if prompt.system.strip():
        body["instructions"] = clean(prompt.system)
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": clean(tool.description),
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in prompt.tools
        ]
    if most := prompt.max_tokens or settings.max_output:
        body["max_output_tokens"] = most
    if settings.reasoning == "off":
        body["reasoning"] = {"effort": "none"}
    elif settings.reasoning is not None:
        body["reasoning"] = {"effort": settings.reasoning, "summary": "auto"}
    return body


def _items(message: Message, model: str, pictures: Pictures) -> Iterator[Block]:
    """Calls, results and thoughts are items of their own; what is said stands between them in its order."""
    content: list[Block] = []
    for part in message.parts:
        match part:
            case ToolUse(id=id_, name=name, arguments=arguments):
                yield {"type": "function_call", "call_id": id_, "name": name, "arguments": object_of(arguments)}
            case ToolResult(call=call, content=inner):
                output = [block for each in inner for block in _content(each, pictures)]
                plain = all(block["type"] == "input_text" for block in output)
                words = "\n\n".join(str(block["text"]) for block in output) if plain else output
                yield {"type": "function_call_output", "call_id": call, "output": words}
            case Reasoning():
                yield from _sealed(part, model)
            case Text(text=text) if message.role == "assistant":
                yield {"role": "assistant", "content": clean(text)}
            case _:
                content += _content(part, pictures)
    if content:
        yield {"role": "user", "content": content}


def _content(part: Part, pictures: Pictures) -> Iterator[Block]:
    match part:
        case Text(text=text):
            yield {"type": "input_text", "text": clean(text)}
        case Image(blob=blob) if blob.sha256 in pictures.shown:
            url = f"data:{blob.media_type};base64,{pictures.shown[blob.sha256]}"
            yield {"type": "input_image", "image_url": url, "detail": "auto"}
        case Image(blob=blob):
            yield {"type": "input_text", "text": pictures.note(blob)}


def _sealed(part: Reasoning, model: str) -> Iterator[Block]:
    """What the same model thought; without its seal it would be looked for there, where nothing is stored."""
    try:
        item = json.loads(part.opaque)[model]["item"]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(item, dict) and item.get("encrypted_content"):
        yield item


class Reading:
    """One answer, event by event."""

    def __init__(self, draft: Draft, model: str, asked: Asked) -> None:
        self._draft = draft
        self._model = model
        self._asked = asked
        self._refused = False

    def read(self, event: "ResponseStreamEvent") -> Iterator[Chunk]:
        """What it adds to the answer."""
        draft = self._draft
        if event.type == "response.output_item.added":
            draft.new_block()
            if event.item.type == "function_call":
                yield draft.begin(event.output_index, event.item.call_id, event.item.name)
        elif event.type in ("response.output_text.delta", "response.refusal.delta"):
            self._refused = self._refused or event.type == "response.refusal.delta"
            yield draft.text(event.delta)
        elif event.type in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            yield draft.reasoning(event.delta)
        elif event.type == "response.reasoning_summary_part.added" and event.summary_index:
            yield draft.reasoning("\n\n")
        elif event.type == "response.function_call_arguments.delta":
            yield draft.arguments(event.output_index, event.delta)
        elif event.type == "response.output_item.done" and event.item.type == "reasoning":
            item = {name: value for name, value in event.item.to_dict().items() if name in SEALED}
            draft.reasoning("", json.dumps({self._model: {"item": item}}))
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            yield from draft.whole(event.output_index, event.item.arguments)
        elif event.type in ("response.completed", "response.incomplete"):
            draft.usage = _usage(event.response.usage)
            draft.stop = self._stop(getattr(event.response.incomplete_details, "reason", None))
        elif event.type == "response.failed":
            error = event.response.error
            raise said_in_stream(error.to_dict() if error else None, self._asked, draft)
        elif event.type == "error":
            raise said_in_stream({"message": event.message, "code": event.code}, self._asked, draft)

    def _stop(self, unfinished: str | None) -> StopReason:
        if unfinished:
            return UNFINISHED.get(unfinished, "other")
        if self._draft.has_calls:
            return "tool_use"
        return "refusal" if self._refused else "end"


def _usage(told: object) -> Usage:
    details = getattr(told, "input_tokens_details", None)
    reads, writes = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    plain = max(0, _count(told, "input_tokens") - reads - writes)
    return Usage(input=plain, output=_count(told, "output_tokens"), cache_reads=reads, cache_writes=writes)


def _count(told: object, name: str) -> int:
    found = getattr(told, name, None)
    return found if isinstance(found, int) else 0
