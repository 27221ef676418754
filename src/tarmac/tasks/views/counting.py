"""PURE: about how many tokens a request took that was stopped before the provider said so (S16)."""

from dataclasses import dataclass, field
from typing import Final

from tarmac.models.messages import NO_USAGE, Usage
from tarmac.models.provider import Prompt
from tarmac.models.tokens import messages_size, prompt_size

LETTERS: Final = 4  # to a token


@dataclass(slots=True)
class Came:
    """What a model had sent when it was stopped."""

    said: list[str] = field(default_factory=list)
    other: int = 0  # letters of thoughts and calls

    def __bool__(self) -> bool:
        return bool(self.said or self.other)


def estimate(prompt: Prompt, came: Came, *, before: int, caching: bool) -> Usage:
    """A guess: the window as it was `before`, counted by the provider, and what was added; nothing if nothing came.

    Only the last message is measured: a long conversation costs no more to stop than a short one.
    """
    if not came:
        return NO_USAGE
    output = (sum(map(len, came.said)) + came.other) // LETTERS + 1
    if not before:
        return Usage(input=round(prompt_size(prompt)), output=output)
    added = round(messages_size(prompt.messages[-1:]))
    return Usage(input=added if caching else before + added, cache_reads=before if caching else 0, output=output)
