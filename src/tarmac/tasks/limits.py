"""How much a task may use before it stops, in order and resumable; the clock of a run; a model that goes in circles.

A person who is asked something may drink a coffee first. A limit on time is for the task, so the clock stands still
while a person is waited for.

A circle is the same call *and* the same result, again and again. Polling something that changes is not a circle. A
circle may also have two or three steps. Such a circle must repeat once more, because a model that waits for something
may also alternate.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from tarmac.models.messages import Image, Part, Text

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one run: from its start until it ends, or is taken up again. None: as much as it takes."""

    max_cost: float | None = None  # US dollars
    max_requests: int | None = None  # every question to the model, also those that fail and are tried again
    max_turns: int | None = None  # answers of the model
    max_seconds: float | None = None  # of work (WorkTime below): waiting for a person does not count
    max_auto_requests: int | None = None  # then a person is asked whether it shall go on; with their yes it counts anew
    max_auto_cost: float | None = None  # the same
    max_retries: int = 3  # of a request that failed, without asking a person
    max_mistakes: int = 3  # of the model, in a row, before a person is asked; 0: never
    max_repetitions: int = 3  # equal calls in a row; the last is not run, a person is asked; 0: never

    def reached(self, used: "Used") -> str:
        """Why nothing more may be asked of the model; empty when it may."""
        if self.max_turns is not None and used.turns >= self.max_turns:
            return f"the limit of {_count(self.max_turns, 'turn')} is reached"
        if self.max_requests is not None and used.requests >= self.max_requests:
            return f"the limit of {_count(self.max_requests, 'request')} is reached"
        if self.max_cost is not None and used.unpriced:
            return f"what an answer cost is not known, so the limit of ${self.max_cost:g} can't be kept"
        if self.max_cost is not None and used.cost >= self.max_cost:
            return f"the limit of ${self.max_cost:g} is reached: ${used.cost:.4f} were spent"
        if self.max_seconds is not None and used.seconds >= self.max_seconds:
            return f"the limit of {self.max_seconds:g} s is reached"
        return ""

    def untrusted(self, used: "Used") -> "Reached | None":
        """What a person must approve before more is done in their place."""
        requests, cost = used.requests - used.asked_at, used.cost - used.asked_cost
        if self.max_auto_requests is not None and requests >= self.max_auto_requests:
            return Reached("requests", self.max_auto_requests, f"{_count(requests, 'request')} without asking you")
        if self.max_auto_cost is not None and used.unpriced > used.asked_unpriced:
            return Reached("cost", self.max_auto_cost, "What an answer cost is not known")
        if self.max_auto_cost is not None and cost >= self.max_auto_cost:
            return Reached("cost", self.max_auto_cost, f"${cost:.4f} were spent without asking you")
        return None


@dataclass(frozen=True, slots=True)
class Reached:
    """The limit of what is done without asking."""

    type: Literal["requests", "cost"]
    count: float
    what: str


@dataclass(slots=True)
class Used:
    """What a run has used so far."""

    requests: int = 0
    turns: int = 0
    cost: float = 0.0  # of answers whose price is known
    unpriced: int = 0  # the others
    seconds: float = 0.0
    asked_at: int = 0  # requests, when a person last said that it shall go on
    asked_cost: float = 0.0
    asked_unpriced: int = 0

    def count_anew(self) -> None:
        """A person said that it shall go on."""
        self.asked_at, self.asked_cost, self.asked_unpriced = self.requests, self.cost, self.unpriced


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class WorkTime:
    """The clock of one run."""

    def __init__(self) -> None:
        self._worked = 0.0  # up to `_since`
        self._since: float | None = time.monotonic()  # None: it stands
        self._stops = 0
        self._limit: tuple[float, Callable[[], None]] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """Of work, so far."""
        return self._worked + (0.0 if self._since is None else time.monotonic() - self._since)

    def ring(self, limit: float, over: Callable[[], None]) -> None:
        """Call `over` after so many seconds of work, unless the clock is `done` before."""
        self._limit = (limit, over)
        self._set_alarm()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """A person is waited for; several may be at once."""
        self._stops += 1
        if self._stops == 1:
            self._worked, self._since = self.seconds, None
            self._set_alarm()
        try:
            yield
        finally:
            self._stops -= 1
            if not self._stops:
                self._since = time.monotonic()
                self._set_alarm()

    def done(self) -> None:
        """The run is over: nothing rings any more."""
        self._limit = None
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm:
            self._alarm.cancel()
            self._alarm = None
        if self._limit and self._since is not None:
            limit, over = self._limit
            import asyncio  # settings are read by programs that have no event loop

            self._alarm = asyncio.get_running_loop().call_later(limit - self.seconds, over)


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
