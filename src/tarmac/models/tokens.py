"""PURE: estimate how many tokens a conversation has.

prompt_size(prompt) → units, about a token each

The counts of the provider are exact, and calibrate the estimate (tasks/condense.py). After one response it is usually
within a few per cent for the next prompt, which has the same prefix. Tokenizers differ from model to model, and
OpenAI's downloads its tables at run time, so there is none here.
"""

import json
from collections.abc import Iterable

from tarmac.models.messages import Image, Message, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.models.provider import Prompt, ToolSchema

BYTES = 4.0  # of UTF-8 in a unit
IMAGE = 1_300.0  # units; what providers charge for a screenshot
FRAME = 4.0  # units around each message and part
LEAST, MOST = 0.4, 3.0  # tokens in a unit; anything else is a counting error


def prompt_size(prompt: Prompt) -> float:
    """The size of a prompt in units."""
    return text_size(prompt.system) + messages_size(prompt.messages) + tools_size(prompt.tools)


def messages_size(messages: Iterable[Message]) -> float:
    return sum(FRAME + sum(map(_part, message.parts)) for message in messages)


def tools_size(tools: Iterable[ToolSchema]) -> float:
    return sum(
        FRAME
        + text_size(tool.name)
        + text_size(tool.description)
        + text_size(json.dumps(dict(tool.parameters), default=str))
        for tool in tools
    )


def _part(part: Part) -> float:
    match part:
        case Text(text=text):
            return FRAME + text_size(text)
        case Reasoning(text=text, opaque=opaque):
            return FRAME + max(text_size(text), text_size(opaque) / 2)  # encrypted reasoning is base64
        case Image():
            return IMAGE
        case ToolUse(name=name, arguments=arguments):
            return 2 * FRAME + text_size(name) + text_size(arguments)
        case ToolResult(content=content):
            return 2 * FRAME + sum(map(_part, content))
        case _:
            return 0.0


def text_size(text: str) -> float:
    return len(text.encode("utf-8", "replace")) / BYTES
