"""Read what a command prints: all of it as it comes, or only what nobody has read yet.

Each reader has its own offset and its own pace.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tarmac.terminals.result import render, with_overwritten
from tarmac.vt.buffer import HeadTail
from tarmac.vt.live import LiveText

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
