"""Every server that speaks OpenAI's Chat Completions: Ollama, vLLM, llama.cpp, LM Studio, OpenRouter …

Servers differ where the language was never written down; what was met is handled here and said where. Thoughts have
several names: they go back under the one they came by (`openai_chunks.py` reads, this file writes).
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tarmac.models.address import is_local
from tarmac.models.conversation import clean, object_of, plain_id, short_id, tidy
from tarmac.models.draft import Draft
from tarmac.models.messages import Image, Message, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.models.openai_chunks import Reading
from tarmac.models.provider import Chunk, ModelError, ModelInfo, ModelSettings, Prompt
from tarmac.models.remote import Pictures, Remote, Streaming

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionChunk

Block = dict[str, object]

NO_KEY = "none"  # the SDK wants one; a server on one's own machine reads none


def client(key: str, base_url: str, settings: ModelSettings) -> "AsyncOpenAI":
    """The SDK's client, which never tries again and waits for nothing for ever."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    limits = Timeout(settings.read_timeout, connect=settings.connect_timeout)
    return AsyncOpenAI(
        api_key=key or NO_KEY,
        base_url=base_url,
        max_retries=0,
        timeout=limits,
        # a redirect would take the key along; a proxy does not know this machine
        http_client=DefaultAsyncHttpxClient(follow_redirects=False, timeout=limits, trust_env=not is_local(base_url)),
    )


class OpenAI(Remote["AsyncOpenAI", "ChatCompletionChunk"]):
    """A model of a server that speaks OpenAI's Chat Completions."""

    _counted = True  # it takes `stream_options`

    def _open(self) -> "AsyncOpenAI":
        return client(self._key, self._base_url, self._settings)

    async def _ask(self, client: "AsyncOpenAI", prompt: Prompt, pictures: Pictures) -> "Streaming[ChatCompletionChunk]":
        create: Any = client.chat.completions.create  # our words are data, checked by the provider
        body = request(self._info, self._settings, prompt, pictures, counted=self._counted)
        try:
            events: Streaming[ChatCompletionChunk] = await create(**body)
        except Exception as error:  # the SDK's own; only looked at
            if getattr(error, "status_code", None) not in (400, 422) or "stream_options" not in str(error):
                raise
            self._counted = False
            told = f"{self._info.id} does not count tokens when asked to: from now on it is not asked"
            raise ModelError(told, kind="bad_request", status=400, retryable=True) from None
        return events

    def _reader(self, draft: Draft) -> "Callable[[ChatCompletionChunk], Iterator[Chunk]]":
        return Reading(draft, self._info.id).read


def request(
    info: ModelInfo, settings: ModelSettings, prompt: Prompt, pictures: Pictures, *, counted: bool = True
) -> dict[str, object]:
    """A prompt in OpenAI's words. `counted`: it shall say how many tokens that was."""
    messages: list[Block] = [{"role": "system", "content": clean(prompt.system)}] if prompt.system.strip() else []
    fit = short_id if info.provider == "mistral" else plain_id
    for message in tidy(prompt.messages, fit):
        messages += _asked(message, pictures) if message.role == "user" else [_said(message, info.id)]
    body: dict[str, object] = {"model": info.name, "messages": messages, "stream": True}
    if counted and info.provider != "mistral":  # which counts without being asked, and refuses to be
        body["stream_options"] = {"include_usage": True}
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": clean(tool.description),
                    "parameters": tool.parameters,
                },
            }
            for tool in prompt.tools
        ]
    if most := prompt.max_tokens or settings.max_output:
        body["max_completion_tokens" if info.provider == "openai" else "max_tokens"] = most
    if settings.reasoning is not None:
        body["reasoning_effort"] = "none" if settings.reasoning == "off" else settings.reasoning
    return body


def _said(message: Message, model: str) -> Block:
    block: Block = {"role": "assistant", "content": clean(message.text) or None}
    calls: list[Block] = []
    sealed: object = None  # what belongs to the next call
    for part in message.parts:
        if isinstance(part, Reasoning):
            ours = _ours(part, model)
            sealed = ours.get("call")
            block.update(_thoughts(part, ours, block))
        elif isinstance(part, ToolUse):
            function = {"name": part.name, "arguments": object_of(part.arguments)}
            extra = {"extra_content": sealed} if sealed else {}
            calls.append({"id": part.id, "type": "function", "function": function, **extra})
            sealed = None
    if calls:
        block["tool_calls"] = calls
    return block


def _ours(part: Reasoning, model: str) -> dict[str, Any]:
    """What the same model wants back; another model's is not sent."""
    try:
        ours = json.loads(part.opaque)[model]
    except (ValueError, KeyError, TypeError):
        return {}
    return ours if isinstance(ours, dict) else {}


def _thoughts(part: Reasoning, ours: dict[str, Any], block: Block) -> Block:
    """What was thought, in the field it came in."""
    if details := ours.get("details"):
        return {"reasoning_details": details}
    name = ours.get("field")
    return {name: f"{block.get(name, '')}{clean(part.text)}"} if name else {}


def _asked(message: Message, pictures: Pictures) -> list[Block]:
    """Results as messages of their own, texts only; their pictures follow with what the person says."""
    results: list[Block] = []
    content: list[Block] = []
    for part in message.parts:
        if not isinstance(part, ToolResult):
            content += _content(part, pictures)
            continue
        texts = [inner.text for inner in part.content if isinstance(inner, Text)]
        images = [inner for inner in part.content if isinstance(inner, Image)]
        if images:
            texts.append("[pictures: see below]")
            content.append({"type": "text", "text": f"[pictures of the result of {part.call}]"})
            content += [block for image in images for block in _content(image, pictures)]
        words = clean("\n\n".join(texts))
        if not words.strip():  # some servers refuse an empty result
            words = "[failed]" if part.failed else "[done]"
        results.append({"role": "tool", "tool_call_id": part.call, "content": words})
    if not content:
        return results
    if all(block["type"] == "text" for block in content):  # as some servers take nothing else
        return [*results, {"role": "user", "content": "\n\n".join(str(block["text"]) for block in content)}]
    return [*results, {"role": "user", "content": content}]


def _content(part: Part, pictures: Pictures) -> Iterator[Block]:
    match part:
        case Text(text=text):
            yield {"type": "text", "text": clean(text)}
        case Image(blob=blob) if blob.sha256 in pictures.shown:
            url = f"data:{blob.media_type};base64,{pictures.shown[blob.sha256]}"
            yield {"type": "image_url", "image_url": {"url": url}}
        case Image(blob=blob):
            yield {"type": "text", "text": pictures.note(blob)}
