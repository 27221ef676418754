"""PURE: how much a task may use before it stops, in order and resumable (S16, P7)."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one run: from its start until it ends, or is taken up again. None: as much as it takes."""

    max_cost: float | None = None  # US dollars
    max_requests: int | None = None  # every question to the model, also those that fail and are tried again
    max_turns: int | None = None  # answers of the model
    max_seconds: float | None = None  # of work (worktime.py): what it waits for a person does not count
    max_auto_requests: int | None = None  # then a person is asked whether it shall go on; with their yes it counts anew
    max_auto_cost: float | None = None  # the same
    max_retries: int = 3  # of a request that failed, without asking a person (S6)
    max_mistakes: int = 3  # of the model, in a row, before a person is asked (S11); 0: never
    max_repetitions: int = 3  # so many equal calls in a row, and the last is not run but asked about (S12); 0: never

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
