"""PURE: how much a task may use before it stops, in order and resumable (S16, P7)."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one run: from its start until it ends or is taken up again. None: as much as it takes."""

    cost: float | None = None  # US dollars
    requests: int | None = None  # every question to the model, also those that fail and are tried again
    turns: int | None = None  # answers of the model
    seconds: float | None = None  # by the clock on the wall

    def reached(self, used: "Used") -> str:
        """Why nothing more may be asked of the model; empty when it may."""
        if self.turns is not None and used.turns >= self.turns:
            return f"the limit of {_count(self.turns, 'turn')} is reached"
        if self.requests is not None and used.requests >= self.requests:
            return f"the limit of {_count(self.requests, 'request')} is reached"
        if self.cost is not None and used.cost >= self.cost:
            return f"the limit of ${self.cost:g} is reached: ${used.cost:.4f} were spent"
        return self.late(used.seconds)

    def late(self, seconds: float) -> str:
        """Why its time is over; empty when it is not."""
        if self.seconds is not None and seconds >= self.seconds:
            return f"the limit of {self.seconds:g} s is reached"
        return ""


@dataclass(slots=True)
class Used:
    """What a run has used so far."""

    requests: int = 0
    turns: int = 0
    cost: float = 0.0  # of answers whose price is known
    seconds: float = field(default=0.0)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
