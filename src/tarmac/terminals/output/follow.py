"""Read what a command prints: all of it as it comes, or only what nobody has read yet. And see whether it is busy.

follow(execution, offset) → bytes, with a Gap where the spool dropped some → as_text() → text for a person
is_hot(execution) → whether more is likely to come in a moment; cool() waits until it is not

Each reader has its own offset and its own pace. A command is "hot" for 2 s after it printed something, and for 15 s
when it seems to be compiling.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tarmac.terminals.result import render, with_overwritten
from tarmac.vt.buffer import HeadTail
from tarmac.vt.text import LiveText

if TYPE_CHECKING:
    from tarmac.terminals.execution import Execution
    from tarmac.terminals.settings import Settings
    from tarmac.terminals.terminal import Terminal


READ_SIZE = 64 << 10


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that a reader missed: it was too slow, and the spool is bounded."""

    bytes: int


async def follow(execution: "Execution", offset: int, *, interval: float) -> AsyncIterator[bytes | Gap]:
    """The raw bytes as they come, once in `interval` seconds at most, from `offset` to the end."""
    told = 0.0
    while True:
        if offset >= execution.spool.end:
            if not execution.running:
                return
            await execution.news(None)
            continue
        pause = told + interval - time.monotonic()
        if pause > 0 and execution.running:
            await execution.ended(pause)  # the end cuts it short
            continue
        told = time.monotonic()
        start, data = execution.spool.read(offset, READ_SIZE)
        if start > offset or not data:
            lost = (start if data else execution.spool.end) - offset
            offset += lost
            yield Gap(lost)
        if data:
            offset = start + len(data)
            yield data
        if offset < execution.spool.end:
            told = 0.0  # behind: catch up before pausing again, but let others run
            await asyncio.sleep(0)


async def as_text(pieces: AsyncIterator[bytes | Gap]) -> AsyncIterator[str | Gap]:
    """The same as text for a person."""
    text = LiveText()
    async for piece in pieces:
        if isinstance(piece, Gap):
            yield piece
        elif new := text.feed(piece):
            yield new
    if rest := text.finish():
        yield rest


async def unread_output(terminal: "Terminal") -> str:
    """The text that nobody has read yet, of ended commands and of the one that runs. Now it counts as read."""
    texts = [await _rest(each, terminal.settings) for each in terminal.unread]
    if terminal.current is not None:
        texts.append(await _rest(terminal.current, terminal.settings))
    return "".join(texts)


async def _rest(execution: "Execution", settings: "Settings") -> str:
    """What was not shown of one command; while it runs, whole lines only."""
    ended = not execution.running
    if ended and (not execution.shown or execution.spool.start > execution.shown):
        result = await execution.result()
        return with_overwritten(result.output, result.overwritten)
    kept = HeadTail(settings.output_memory, head_share=settings.output_head_share)
    held = b""
    offset, end = execution.shown, execution.output_bytes
    while offset < end:
        start, data = execution.spool.read(offset, READ_SIZE)
        if not data:
            break
        offset = start + len(data)
        block = held + data
        whole = len(block) if ended else block.rfind(b"\n") + 1
        kept.feed(block[:whole])
        held = block[whole:]
    execution.shown = offset - len(held)
    execution.read = ended
    rendered = await render(kept, settings)
    return with_overwritten(rendered.text, rendered.overwritten)


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


def hot_until(execution: "Execution") -> float:
    """When it will be cool if it prints nothing more (time.monotonic()); 0 when it is not hot."""
    if not execution.running or not execution.output_bytes:
        return 0.0
    until = execution.last_output + HOT
    if execution.last_output + COMPILING_HOT <= time.monotonic():
        return until
    end = execution.spool.end
    _, tail = execution.spool.read(max(0, end - LOOK_BACK), LOOK_BACK)
    return execution.last_output + COMPILING_HOT if looks_like_compiling(tail) else until


def is_hot(execution: "Execution | None") -> bool:
    """Whether `execution` is hot; one that has finished never is."""
    return execution is not None and hot_until(execution) > time.monotonic()


async def cool(running: Sequence["Execution"], *, edited: bool = False) -> None:
    """Wait until none of these is hot, but at most 5 s; `edited`: a file was changed just now."""
    if running and edited:
        await asyncio.sleep(AFTER_EDIT)
    end = time.monotonic() + COOL_AT_MOST
    for execution in running:
        while (left := min(hot_until(execution), end) - time.monotonic()) > 0:
            if execution.waiting is not None:  # it prints nothing more before somebody types
                break
            await execution.ended(min(left, LOOK_AGAIN))
