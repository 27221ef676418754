"""How much a task may use before it stops, in order and resumable; and the clock of a run.

A person who is asked something may drink a coffee first. A limit on time is for the task, so the clock stands still
while a person is waited for.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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
