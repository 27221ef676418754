"""Is a running command in the middle of something? "Hot" while it prints, and longer when it seems to compile (T10)."""

import re
import time

from tarmac.terminals.execution import Execution

HOT = 2.0
COMPILING_HOT = 15.0
LOOK_BACK = 2048  # of its output
_UNDER_WAY = re.compile(
    rb"\b(?:compiling|building|bundling|transpiling|generating|linking|installing|downloading|starting)\b",
    re.IGNORECASE,
)
_OVER = re.compile(
    rb"\b(?:compiled|built|bundled|generated|installed|started|ready|success\w*|succeeded|finish(?:ed)?|completed?|done"
    rb"|stopped|exited|terminated|errors?|fail(?:ed|ure)?)\b",
    re.IGNORECASE,
)


def looks_like_compiling(output: bytes) -> bool:
    """Whether the last line that says either says that something is under way, not that it is over."""
    for line in reversed(re.split(rb"[\r\n]+", output)):
        if _OVER.search(line):
            return False
        if _UNDER_WAY.search(line):
            return True
    return False


def hot_until(execution: Execution) -> float:
    """When it will have cooled down if it prints nothing more (time.monotonic()); 0 when it is not hot at all.

    Looked at only when somebody asks: output in bulk costs nothing for it.
    """
    if not execution.running or not execution.output_bytes:
        return 0.0
    until = execution.last_output + HOT
    if execution.last_output + COMPILING_HOT <= time.monotonic():
        return until
    end = execution.spool.end
    _, tail = execution.spool.read(max(0, end - LOOK_BACK), LOOK_BACK)
    return execution.last_output + COMPILING_HOT if looks_like_compiling(tail) else until


def is_hot(execution: Execution | None) -> bool:
    """A finished command never is."""
    return execution is not None and hot_until(execution) > time.monotonic()
