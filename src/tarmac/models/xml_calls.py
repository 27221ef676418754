"""Tool calls as XML in the text, for models without native tool calls. The format is that of Roo-Code.

XmlCalls(model) is a Model. It describes the tools in the system prompt, and writes earlier calls and results as text.
It parses the model's text (`xml_parser.py`) into the same chunks that other models yield.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace

from tarmac.models.completion_builder import CompletionBuilder, used_ids
from tarmac.models.messages import Image, Message, Part, Reasoning, StopReason, Text, ToolResult, ToolUse
from tarmac.models.provider import (
    Chunk,
    Completion,
    Load,
    Model,
    ModelError,
    ModelInfo,
    Prompt,
    TextDelta,
    ToolSchema,
)
from tarmac.models.xml_parser import XmlParser
from tarmac.models.xml_values import VERBATIM, kinds, property_of

INSTRUCTIONS = """\
# How to call a tool

Write the call as XML-style tags: the tool's name as the outer tag, each argument in a tag of its own.

<tool_name>
<argument>value</argument>
</tool_name>

Write values as they are, without escaping and without code fences around the call. Lists and objects are JSON, or \
tags within tags. After a call, stop: you get its result with the next message. Never write results yourself.

The tools follow. Each tag says what its value is. Leave out what is not required and not needed."""


class XmlCalls:
    """Adds tool calls to a model without native ones."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"<XmlCalls of {self._model!r}>"

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """See `provider.Model`."""
        builder = CompletionBuilder(used_ids(prompt.messages))
        parser = XmlParser(prompt.tools, builder)
        reasoning: tuple[Part, ...] = ()
        try:
            async with aclosing(self._model.stream(as_text(prompt), load=load)) as stream:
                async for chunk in stream:
                    match chunk:
                        case TextDelta(text=text):
                            for found in parser.feed(text):
                                yield found
                        case Completion():
                            reasoning = _reasoning(chunk.parts)
                            builder.usage = chunk.usage
                            builder.stop = chunk.stop
                        case _:
                            yield chunk
        except ModelError as error:
            parser.finish(complete=False)
            error.received = (*_reasoning(error.received), *builder.parts)
            raise
        for found in parser.finish(complete=builder.stop != "max_tokens"):
            yield found
        yield Completion((*reasoning, *builder.parts), _stop(builder), builder.usage)

    async def aclose(self) -> None:
        await self._model.aclose()


def _stop(builder: CompletionBuilder) -> StopReason:
    stop = builder.stop or "other"
    return "tool_use" if builder.has_calls and stop in ("end", "stop_sequence", "other") else stop


def _reasoning(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if isinstance(part, Reasoning))


def as_text(prompt: Prompt) -> Prompt:
    """The same request, with tools, calls and results as text."""
    system = "\n\n".join(filter(None, (prompt.system, describe_tools(prompt.tools) if prompt.tools else "")))
    names = {part.id: part.name for m in prompt.messages for part in m.parts if isinstance(part, ToolUse)}
    schemas = {tool.name: tool.parameters for tool in prompt.tools}
    messages = [
        Message(message.role, tuple(_merged(_parts_as_text(message.parts, names, schemas))))
        for message in prompt.messages
    ]
    return replace(prompt, system=system, messages=tuple(messages), tools=())


def _parts_as_text(
    parts: Iterable[Part], names: Mapping[str, str], schemas: Mapping[str, Mapping[str, object]]
) -> Iterator[Part]:
    for part in parts:
        match part:
            case ToolUse(name=name, arguments=arguments):
                yield Text(call_as_xml(name, arguments, schemas.get(name, {})))
            case ToolResult(call=call, content=content, failed=failed):
                yield Text(f"[{names.get(call, 'a tool')}] {'Failed' if failed else 'Result'}:")
                yield from (inner for inner in content if isinstance(inner, Text | Image))
            case _:
                yield part


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Join adjacent texts with a blank line."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, Text) and merged and isinstance(last := merged[-1], Text):
            merged[-1] = Text(f"{last.text}\n\n{part.text}")
        else:
            merged.append(part)
    return merged


def call_as_xml(name: str, arguments: str, parameters: Mapping[str, object]) -> str:
    """A call in the format that the model should use. Arguments that are not a JSON object are copied."""
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
    multiline = key in VERBATIM and "string" in kinds(property_of(parameters, key), parameters)
    return f"\n{value}" if multiline and (value[:1] in ("\n", "\r") or "\n" in value) else value


def describe_tools(tools: Iterable[ToolSchema]) -> str:
    """The section of the system prompt about tools."""
    return "\n\n".join((INSTRUCTIONS, *map(_describe, tools)))


def _describe(tool: ToolSchema) -> str:
    """The tool as a call of it, with the description of each argument as its value."""
    properties = tool.parameters.get("properties")
    fields = properties if isinstance(properties, Mapping) else {}
    needed = tool.parameters.get("required")
    required = needed if isinstance(needed, list | tuple) else ()
    lines = [f"## {tool.name}", tool.description, f"<{tool.name}>"]
    for name in fields:
        schema = property_of(tool.parameters, name)
        types = " or ".join(sorted(kinds(schema, tool.parameters) - {"null"}))
        head = ", ".join(([types] if types != "string" else []) + (["required"] if name in required else []))
        about = fields[name].get("description") if isinstance(fields[name], Mapping) else None
        lines.append(f"<{name}>{'. '.join(filter(None, (head, about)))}{_shape(schema, types)}</{name}>")
    return "\n".join((*lines, f"</{tool.name}>"))


def _shape(schema: Mapping[str, object], types: str) -> str:
    """What a list or an object has in it, or the values of an enum."""
    if "array" in types or "object" in types:
        return f" JSON: {json.dumps(_pattern(schema), ensure_ascii=False)}"
    return f" One of: {', '.join(map(str, choices))}" if isinstance(choices := schema.get("enum"), list) else ""


def _pattern(schema: Mapping[str, object]) -> object:
    """A value with a description in every place. Of a schema that has more than lists and fields: the schema."""
    match schema:
        case {"properties": Mapping() as fields}:
            return {name: _pattern(field) for name, field in fields.items()}
        case {"items": Mapping() as item} if "properties" in item:
            return [_pattern(item)]
        case {"type": "array", "items": {"type": "string"}, "description": str(about)}:
            return [about]
        case {"type": "string", "description": str(about)}:
            return about
    return dict(schema)
