"""Reading a command's output while it runs: each listener by its own offset, at its own pace."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tarmac.vt.live import LiveText

if TYPE_CHECKING:
    from tarmac.terminals.execution import Execution

READ_SIZE = 64 << 10


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes a listener can't have any more: it was too slow and the spool is bounded."""

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
    """The same as text that a person can read."""
    text = LiveText()
    async for piece in pieces:
        if isinstance(piece, Gap):
            yield piece
        elif new := text.feed(piece):
            yield new
    if rest := text.finish():
        yield rest
