"""PURE: a request to a model, for a person to read."""

import json
from collections.abc import Iterator

import msgspec

from tarmac.models.messages import Image, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.models.provider import Prompt
from tarmac.show.harmless import harmless


def prompt_record(prompt: Prompt) -> dict[str, object]:
    """As a JSON object."""
    return {
        "system": prompt.system,
        "tools": [
            {"name": each.name, "description": each.description, "parameters": each.parameters} for each in prompt.tools
        ],
        "messages": msgspec.to_builtins(list(prompt.messages)),
    }


def prompt_lines(prompt: Prompt) -> Iterator[str]:
    """As text, in the order in which it is sent."""
    yield f"=== system\n\n{harmless(prompt.system)}"
    for tool in prompt.tools:
        yield f"\n=== tool {harmless(tool.name)}\n\n{harmless(tool.description)}\n{json.dumps(tool.parameters)}"
    for message in prompt.messages:
        yield f"\n=== {message.role}"
        for part in message.parts:
            yield f"\n{harmless(_part(part))}"


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Reasoning(text=text):
            return f"[reasoning] {text}"
        case Image(blob=blob):
            return f"[image {blob.media_type}, {blob.size:,} bytes]"
        case ToolUse(id=call, name=name, arguments=arguments):
            return f"[call {call}] {name} {arguments}"
        case ToolResult(call=call, content=content, failed=failed):
            return f"[{'failed' if failed else 'result'} {call}]\n" + "\n".join(map(_part, content))
    return ""
