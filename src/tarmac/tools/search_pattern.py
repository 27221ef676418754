"""A model's regular expression, with a limit on its time: nothing may hang on one that tries everything."""

import re
from typing import Generic, TypeVar, cast

from tarmac.errors import BadArguments, ToolFailed
from tarmac.prompts.regex_size import check_size

IN_THE_LOOP, IN_A_THREAD = 0.05, 0.5  # seconds of processor time, for one search
_Text = TypeVar("_Text", str, bytes)


class Impatient(Generic[_Text]):
    """Searches like a compiled pattern; ToolFailed when that takes too long."""

    def __init__(self, pattern: _Text, patience: float) -> None:
        import regex

        self._patience = patience

        try:
            check_size(pattern if isinstance(pattern, str) else pattern.decode("utf-8", "replace"))
            self._compiled: regex.Pattern[_Text] = regex.compile(pattern, regex.MULTILINE)
        except (regex.error, ValueError, RecursionError) as error:
            raise BadArguments(f"{pattern!r} is no regular expression: {error}.") from None

    def search(self, text: _Text, start: int = 0) -> object:
        try:
            return self._compiled.search(text, start, timeout=self._patience, concurrent=True)
        except TimeoutError:
            raise ToolFailed("The pattern takes too long to search for: make it simpler.") from None


def text_pattern(pattern: str) -> re.Pattern[str]:
    """For text, looked at while others wait; it has of a pattern what a search needs."""
    return cast("re.Pattern[str]", Impatient(pattern, IN_THE_LOOP))


def byte_pattern(pattern: str) -> re.Pattern[bytes]:
    """For bytes, in a thread."""
    return cast("re.Pattern[bytes]", Impatient(pattern.encode("utf-8"), IN_A_THREAD))
