"""Interleaved rounds (ours, floor, ours, floor …) and the row of the table that comes of them.

A shared machine drifts by a factor of two within minutes, so a round's two halves are compared with each other
and the median is taken of the ratios, never a ratio of two medians from different minutes.
"""

import operator
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Literal

Unit = Literal["µs", "ms", "MB/s", "MB", "KB", ""]


@dataclass(frozen=True, slots=True)
class Goal:
    """What the number should be; it is shown, and fails nothing."""

    compare: Literal["≤", "≥", "="]
    number: float
    of: Literal["ratio", "ours"] = "ratio"

    def met(self, row: "Row") -> bool:
        value = row.ratio if self.of == "ratio" else row.ours
        compare = {"≤": operator.le, "≥": operator.ge, "=": operator.eq}[self.compare]
        return value is not None and bool(compare(value, self.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    ours: float | None  # None: it could not be measured; `note` says why
    unit: Unit = ""
    floor: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None  # the middle half of the ratios
    goal: Goal | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        return self.goal.met(self) if self.goal and self.ours is not None else None


def compared(
    what: str, ours: Sequence[float], floor: Sequence[float], *, unit: Unit, goal: Goal | None = None, note: str = ""
) -> Row:
    """The row for values that were measured side by side, one of each in every round."""
    ratios = [one / other for one, other in zip(ours, floor, strict=True)]
    low, _, high = quantiles(ratios, n=4) if len(ratios) > 2 else (min(ratios), 0, max(ratios))
    return Row(
        what=what,
        ours=median(ours),
        unit=unit,
        floor=median(floor),
        ratio=median(ratios),
        spread=(low, high),
        goal=goal,
        note=note,
    )


async def interleave(
    ours: Callable[[], Awaitable[float]], floor: Callable[[], float], *, rounds: int
) -> tuple[list[float], list[float]]:
    """Both, in turn; one round more than asked for, as the first warms caches and is thrown away."""
    one: list[float] = []
    other: list[float] = []
    for _ in range(rounds + 1):
        one.append(await ours())
        other.append(floor())
    return one[1:], other[1:]
