"""PURE: what a workspace may do to a setting. It comes with the code, from whoever wrote that: it may only take away.

tightened(way, now, wanted) → the value that holds, or Loosens
"""

from enum import Enum
from typing import cast

from tarmac.config.kinds import Value

LEVELS = ("ask", "read", "edit", "safe", "all")  # of `auto`, from the tightest


class Way(Enum):
    """The direction in which a setting gets tighter."""

    LOWER = "a lower value"  # none is the highest
    HIGHER = "a higher value"
    OFF = "false"
    ON = "true"
    SAFER = "an earlier level"
    MORE = "more of them"  # its list is added to ours


class Loosens(Exception):
    """The wanted value allows more than the one that holds."""


def tightened(way: Way, now: Value, wanted: Value) -> Value:
    """What holds when a workspace wants `wanted`; `now` itself when that says nothing new."""
    match way:
        case Way.MORE:
            ours, theirs = cast(tuple[Value, ...], now), cast(tuple[Value, ...], wanted)
            return (*ours, *(each for each in dict.fromkeys(theirs) if each not in ours))
        case Way.LOWER:
            loosens = now is not None and (wanted is None or cast(float, wanted) > cast(float, now))
        case Way.HIGHER:
            loosens = cast(float, wanted) < cast(float, now)
        case Way.OFF:
            loosens = bool(wanted) and not now
        case Way.ON:
            loosens = bool(now) and not wanted
        case Way.SAFER:
            loosens = LEVELS.index(cast(str, wanted)) > LEVELS.index(cast(str, now))
    if loosens:
        raise Loosens
    return now if wanted == now else wanted
