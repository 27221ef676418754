"""Tool calls for models that have none of their own: written as XML in their text, as Roo-Code's models knew them.

XmlCalls(model) is a Model: tools are described in the system prompt, calls and results of the history are told as
text, and what the model writes is read (`xmlparse.py`) into the same chunks that others give.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing

from tarmac.models.draft import Draft, used_ids
from tarmac.models.messages import Image, Message, Part, Reasoning, StopReason, Text, ToolResult, ToolUse
from tarmac.models.provider import (
    Answer,
    Chunk,
    Load,
    Model,
    ModelError,
    ModelInfo,
    Prompt,
    TextDelta,
    ToolSchema,
)
from tarmac.models.xmlparse import XmlParser
from tarmac.models.xmlvalues import VERBATIM, kinds, property_of

HOW = """\
# Tools

You use a tool by writing it as XML-style tags: the tool's name as the outer tag, each argument in a tag of its own.

<tool_name>
<argument>value</argument>
</tool_name>

Write values as they are, without escaping and without code fences around the call. Lists and objects are JSON, or \
tags within tags. After a call, stop: you get its result with the next message. Never write results yourself."""


class XmlCalls:
    """A model around one without tool calls."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"<XmlCalls of {self._model!r}>"

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """See `provider.Model`."""
        draft = Draft(used_ids(prompt.messages))
        parser = XmlParser(prompt.tools, draft)
        thoughts: tuple[Part, ...] = ()
        try:
            async with aclosing(self._model.stream(as_text(prompt), load=load)) as stream:
                async for chunk in stream:
                    match chunk:
                        case TextDelta(text=text):
                            for found in parser.feed(text):
                                yield found
                        case Answer():
                            thoughts = _thoughts(chunk.parts)
                            draft.usage = chunk.usage
                            draft.stop = chunk.stop
                        case _:
                            yield chunk
        except ModelError as error:
            parser.finish(complete=False)
            error.received = (*_thoughts(error.received), *draft.parts)
            raise
        for found in parser.finish(complete=draft.stop != "max_tokens"):
            yield found
        yield Answer((*thoughts, *draft.parts), _stop(draft), draft.usage)

    async def aclose(self) -> None:
        await self._model.aclose()


def _stop(draft: Draft) -> StopReason:
    stop = draft.stop or "other"
    return "tool_use" if draft.has_calls and stop in ("end", "stop_sequence", "other") else stop


def _thoughts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if isinstance(part, Reasoning))


def as_text(prompt: Prompt) -> Prompt:
    """The same request, with tools and their calls in words."""
    system = "\n\n".join(filter(None, (prompt.system, described(prompt.tools) if prompt.tools else "")))
    names = {part.id: part.name for m in prompt.messages for part in m.parts if isinstance(part, ToolUse)}
    schemas = {tool.name: tool.parameters for tool in prompt.tools}
    messages = [
        Message(message.role, tuple(_merged(_told(message.parts, names, schemas)))) for message in prompt.messages
    ]
    return Prompt(system, tuple(messages), (), prompt.max_tokens)


def _told(
    parts: Iterable[Part], names: Mapping[str, str], schemas: Mapping[str, Mapping[str, object]]
) -> Iterator[Part]:
    for part in parts:
        match part:
            case ToolUse(name=name, arguments=arguments):
                yield Text(written(name, arguments, schemas.get(name, {})))
            case ToolResult(call=call, content=content, failed=failed):
                yield Text(f"[{names.get(call, 'a tool')}] {'Failed' if failed else 'Result'}:")
                yield from (inner for inner in content if isinstance(inner, Text | Image))
            case _:
                yield part


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Neighbouring texts as one, with a blank line between."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, Text) and merged and isinstance(last := merged[-1], Text):
            merged[-1] = Text(f"{last.text}\n\n{part.text}")
        else:
            merged.append(part)
    return merged


def written(name: str, arguments: str, parameters: Mapping[str, object]) -> str:
    """A call as the model should have written it; arguments that are no JSON stand there as they came."""
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return f"<{name}>\n{arguments}\n</{name}>"
    lines = [f"<{key}>{_value(key, value, parameters)}</{key}>" for key, value in found.items()]
    return "\n".join((f"<{name}>", *lines, f"</{name}>"))


def _value(key: str, value: object, parameters: Mapping[str, object]) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    lays_out = key in VERBATIM and "string" in kinds(property_of(parameters, key), parameters)
    return f"\n{value}" if lays_out and (value[:1] in ("\n", "\r") or "\n" in value) else value


def described(tools: Iterable[ToolSchema]) -> str:
    """What the system prompt says of tools."""
    return "\n\n".join((HOW, *map(_described, tools)))


def _described(tool: ToolSchema) -> str:
    properties = tool.parameters.get("properties")
    fields = properties if isinstance(properties, Mapping) else {}
    needed = tool.parameters.get("required")
    required = needed if isinstance(needed, list | tuple) else ()
    lines = [f"## {tool.name}", tool.description]
    if fields:
        lines.append("Arguments:")
    for name in fields:
        schema = property_of(tool.parameters, name)
        types = " or ".join(sorted(kinds(schema, tool.parameters) - {"null"}))
        told = fields[name].get("description") if isinstance(fields[name], Mapping) else None
        words = f": {told}" if told else ""
        lines.append(f"- {name} ({types}{', required' if name in required else ''}){words}{_shape(schema, types)}")
    usage = [f"<{name}>{'…' if name in required else '… (if needed)'}</{name}>" for name in fields]
    return "\n".join((*lines, "Usage:", f"<{tool.name}>", *usage, f"</{tool.name}>"))


def _shape(schema: Mapping[str, object], types: str) -> str:
    """The schema itself, where its type alone does not say enough."""
    if types in ("array", "object") or "array" in types or "object" in types:
        return f" JSON schema: {json.dumps(dict(schema), ensure_ascii=False)}"
    return f" One of: {', '.join(map(str, choices))}" if isinstance(choices := schema.get("enum"), list) else ""
