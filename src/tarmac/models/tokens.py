"""PURE: how many tokens a conversation is. What the provider counted is true; the rest is a guess, calibrated by it.

size(prompt) → units, by bytes · Meter.learned(prompt, usage) → a better meter · Meter.tokens(prompt)

There is no tokenizer here: they differ from model to model, and the one for OpenAI's downloads its table at run time.
A meter that has seen one answer is mostly within a few per cent for the next prompt, which shares its beginning.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tarmac.models.messages import Image, Message, Part, Reasoning, Text, ToolResult, ToolUse, Usage
from tarmac.models.provider import Prompt, ToolSchema

BYTES = 4.0  # of UTF-8 to a unit: 4 Latin letters, 2 Cyrillic ones, one Chinese sign and a bit
PICTURE = 1_300.0  # units; what providers charge for one of a screen's size
FRAME = 4.0  # units around each message and part
LEAST, MOST = 0.4, 3.0  # tokens to a unit: beyond it is a mistake in counting, not a property of the model
WEIGHT = 0.5  # of the newest answer against all before


def size(prompt: Prompt) -> float:
    """A prompt in units: about its tokens, before anything is known of the model."""
    return _text(prompt.system) + of_messages(prompt.messages) + of_tools(prompt.tools)


def of_messages(messages: Iterable[Message]) -> float:
    return sum(FRAME + sum(map(_part, message.parts)) for message in messages)


def of_tools(tools: Iterable[ToolSchema]) -> float:
    return sum(
        FRAME + _text(tool.name) + _text(tool.description) + _text(json.dumps(dict(tool.parameters), default=str))
        for tool in tools
    )


def _part(part: Part) -> float:
    match part:
        case Text(text=text):
            return FRAME + _text(text)
        case Reasoning(text=text, opaque=opaque):
            return FRAME + max(_text(text), _text(opaque) / 2)  # sealed thoughts are base64
        case Image():
            return PICTURE
        case ToolUse(name=name, arguments=arguments):
            return 2 * FRAME + _text(name) + _text(arguments)
        case ToolResult(content=content):
            return 2 * FRAME + sum(map(_part, content))
        case _:
            return 0.0


def _text(text: str) -> float:
    return len(text.encode("utf-8", "replace")) / BYTES


@dataclass(frozen=True, slots=True)
class Meter:
    """How many tokens of one model a unit is."""

    ratio: float = 1.0
    answers: int = 0  # learned from

    def learned(self, prompt: Prompt, usage: Usage) -> "Meter":
        """After an answer: what the provider counted for this prompt."""
        counted, units = usage.input + usage.cache_reads + usage.cache_writes, size(prompt)
        if counted <= 0 or units < 100:  # nothing was counted, or too little to learn from
            return self
        found = min(MOST, max(LEAST, counted / units))
        mixed = found if self.answers == 0 else self.ratio + WEIGHT * (found - self.ratio)
        return Meter(mixed, self.answers + 1)

    def tokens(self, prompt: Prompt) -> int:
        """About how many tokens a prompt is."""
        return round(self.ratio * size(prompt))

    def after(self, usage: Usage, added: Iterable[Message]) -> int:
        """About how full the context window is: what was counted last, and what came since."""
        return usage.context + round(self.ratio * of_messages(added))
