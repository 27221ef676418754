"""What came of an edit: values, because a failed edit is an everyday answer, not an exception."""

from dataclasses import dataclass
from typing import Literal

Rung = Literal["exact", "whitespace", "blank lines", "fuzzy"]
"""How an edit's place was found, from the surest to the least sure."""

Reason = Literal[
    "not found",
    "ambiguous",
    "overlaps",
    "empty",
    "no change",
    "malformed",
    "out of range",
    "placeholder",
    "indentation",
]


@dataclass(frozen=True, slots=True)
class Applied:
    """One part of an edit that was made."""

    part: int  # counted from 1, in the order of the call
    first: int  # lines of the text before, counted from 1; last < first: between two lines
    last: int
    rung: Rung = "exact"
    similarity: float = 1.0
    reindented: bool = False  # the new lines were shifted to the indentation around them


@dataclass(frozen=True, slots=True)
class Failure:
    """One part that was not made, and why, in words for a model."""

    part: int
    reason: Reason
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


@dataclass(frozen=True, slots=True)
class Edited:
    """The text after an edit; as it was when nothing could be applied."""

    text: str
    applied: tuple[Applied, ...] = ()
    failed: tuple[Failure, ...] = ()

    @property
    def success(self) -> bool:
        """Whether anything was applied. `failed` may still tell of other parts."""
        return bool(self.applied)
