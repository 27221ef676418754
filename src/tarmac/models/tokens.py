"""PURE: estimate how many tokens a conversation has.

prompt_size(prompt) → units, about a token each · TokenEstimator.learned(prompt, usage) → a better estimator

The counts of the provider are exact. They calibrate the estimate. After one response it is usually within a few per
cent for the next prompt, which has the same prefix. Tokenizers differ from model to model, and OpenAI's downloads its
tables at run time, so there is none here.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tarmac.models.messages import Image, Message, Part, Reasoning, Text, ToolResult, ToolUse, Usage
from tarmac.models.provider import Prompt, ToolSchema

BYTES = 4.0  # of UTF-8 in a unit
IMAGE = 1_300.0  # units; what providers charge for a screenshot
FRAME = 4.0  # units around each message and part
LEAST, MOST = 0.4, 3.0  # tokens in a unit; anything else is a counting error
WEIGHT = 0.5  # of the newest response


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


@dataclass(frozen=True, slots=True)
class TokenEstimator:
    """How many tokens of one model a unit has."""

    ratio: float = 1.0
    responses: int = 0  # learned from

    def learned(self, prompt: Prompt, usage: Usage) -> "TokenEstimator":
        """The estimator after a response with the provider's count for `prompt`."""
        counted, units = usage.input + usage.cache_reads + usage.cache_writes, prompt_size(prompt)
        if counted <= 0 or units < 100:  # no count, or too little text to learn from
            return self
        found = min(MOST, max(LEAST, counted / units))
        mixed = found if self.responses == 0 else self.ratio + WEIGHT * (found - self.ratio)
        return TokenEstimator(mixed, self.responses + 1)

    def tokens(self, prompt: Prompt) -> int:
        """The estimated tokens of a prompt."""
        return round(self.ratio * prompt_size(prompt))

    def after(self, usage: Usage, added: Iterable[Message]) -> int:
        """The estimated tokens of the conversation: the last count, and the messages since."""
        return usage.context + round(self.ratio * messages_size(added))
