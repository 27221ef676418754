"""PURE: notice a model that goes in circles: the same call with the same result, again and again.

The key is the call *and* its result. Polling something that changes is not a circle. A circle may also have two or
three steps. Such a circle must repeat once more, because a model that waits for something may also alternate.
"""

import json
from collections import deque
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from tarmac.models.messages import Image, Part, Text

MOST: Final = 3  # the third is not run but asked about; 0: never
LONGEST: Final = 3  # steps of a circle
STUCK: Final = (
    "This is the same {name} call again, and its result did not change: it was not made. "
    "Do something else, or tell the person what blocks you."
)


LONGEST_LOOP: Final = 6_000  # characters at the end of an answer that are looked at
LONGEST_PERIOD: Final = 1_000
LEAST_ROUNDS: Final = 6


def repeats(text: str) -> bool:
    """Whether a text is one piece with words in it, over and over, six times or more."""
    if len(text) < LONGEST_LOOP:
        return False
    before = text[:-1].rfind(text[-200:])
    size = len(text) - (before + 200) if before >= 0 else 0
    if not 0 < size <= LONGEST_PERIOD or not any(each.isalpha() for each in text[-size:]):
        return False
    return LONGEST_LOOP // size >= LEAST_ROUNDS and text[size:] == text[:-size]


class Repetition:
    """Watches the calls of one task, in their order."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._past: deque[tuple[str, str]] = deque(maxlen=LONGEST * max(2, most))  # calls with their results

    def stuck(self, name: str, arguments: str) -> bool:
        """Whether this call would be one too many."""
        if self._most <= 0:
            return False
        call, past = _call(name, arguments), list(self._past)
        for steps in range(1, LONGEST + 1):
            times = max(1, self._most - 1) if steps == 1 else max(2, self._most)
            lately = past[-steps * times :]
            around = len(lately) == steps * times and lately == lately[:steps] * times
            if around and lately[0][0] == call:
                return True
        return False

    def finished(self, name: str, arguments: str, result: str) -> None:
        """A call came back; `result` is what `fingerprint` makes of its content."""
        if self._most > 0:
            self._past.append((_call(name, arguments), result))

    def forget(self) -> None:
        """A person said that it is right so."""
        self._past.clear()


def fingerprint(content: Iterable[Part], *, exit_code: int | None = None, outcome: str = "done") -> str:
    """What came of a call, in a few bytes. What differs each time (`Done.essence`) is left out of its content."""
    sums = sha256(f"{outcome}:{exit_code}".encode())
    for part in content:
        match part:
            case Text(text=text):
                sums.update(f"\0text:{text}".encode("utf-8", "surrogatepass"))
            case Image(blob=blob):
                sums.update(f"\0image:{blob.sha256}".encode())
    return sums.hexdigest()


def _call(name: str, arguments: str) -> str:
    """The call as a value: spaces and the order of keys do not count."""
    try:
        arguments = json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        pass  # broken: as it is
    return f"{name}\0{arguments}"
