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
    _looked: int = 0  # pieces of `said` when somebody looked last

    def grew(self, by: int) -> bool:
        """Whether so many characters of text came since this was last true."""
        if sum(map(len, self.said[self._looked :])) < by:
            return False
        self._looked = len(self.said)
        return True

    def end(self, length: int) -> str:
        """The last characters of its text."""
        return "".join(self.said)[-length:]

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
