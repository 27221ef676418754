"""Whether a running command is in the middle of something.

It is "hot" for 2 s after it printed something, and for 15 s when it seems to be compiling.
"""

import asyncio
import re
import time
from collections.abc import Sequence

from tarmac.terminals.execution import Execution

HOT = 2.0
COMPILING_HOT = 15.0
LOOK_BACK = 2048  # of its output
COOL_AT_MOST = 5.0
AFTER_EDIT = 0.3  # a watcher needs a moment to notice that a file has changed
LOOK_AGAIN = 0.3
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
    """Whether the last line with such a word says that something goes on, not that it is over."""
    for line in reversed(re.split(rb"[\r\n]+", output)):
        if _OVER.search(line):
            return False
        if _UNDER_WAY.search(line):
            return True
    return False


def hot_until(execution: Execution) -> float:
    """When it will be cool if it prints nothing more (time.monotonic()); 0 when it is not hot."""
    if not execution.running or not execution.output_bytes:
        return 0.0
    until = execution.last_output + HOT
    if execution.last_output + COMPILING_HOT <= time.monotonic():
        return until
    end = execution.spool.end
    _, tail = execution.spool.read(max(0, end - LOOK_BACK), LOOK_BACK)
    return execution.last_output + COMPILING_HOT if looks_like_compiling(tail) else until


def is_hot(execution: Execution | None) -> bool:
    """Whether `execution` is hot; one that has finished never is."""
    return execution is not None and hot_until(execution) > time.monotonic()


async def cool(running: Sequence[Execution], *, edited: bool = False) -> None:
    """Wait until none of these is hot, but at most 5 s; `edited`: a file was changed just now."""
    if running and edited:
        await asyncio.sleep(AFTER_EDIT)
    end = time.monotonic() + COOL_AT_MOST
    for execution in running:
        while (left := min(hot_until(execution), end) - time.monotonic()) > 0:
            if execution.waiting is not None:  # it prints nothing more before somebody types
                break
            await execution.ended(min(left, LOOK_AGAIN))
