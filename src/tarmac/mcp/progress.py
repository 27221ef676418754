"""Tell a client about its running command: the title, the last lines once a second, or a sign of life.

Some clients give up on a silent call. They keep waiting while they hear something.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from tarmac.mcp.client import Client
from tarmac.tools.tool import Live, Output
from tarmac.vt.fold import show_invisibles
from tarmac.vt.text import clean

EVERY: Final = 1.0  # seconds
SILENT: Final = 5.0  # without news: then it is told that nothing is new
KEPT: Final = 8 << 10  # bytes of the end of the output
MOST_LINES: Final = 5
MOST_CHARACTERS: Final = 500


class Tail:
    """The end of what a command printed."""

    def __init__(self) -> None:
        self.changed = False
        self._kept = b""

    def show(self, live: Live) -> None:
        if isinstance(live, Output):
            self._kept = (self._kept + live.data)[-KEPT:]
            self.changed = True

    def text(self) -> str:
        """Its last lines, as a person may see them."""
        lines = [each for each in show_invisibles(clean(self._kept)).splitlines() if each.strip()]
        return "\n".join(lines[-MOST_LINES:])[-MOST_CHARACTERS:]


@asynccontextmanager
async def telling(client: Client, tail: Tail, what: Callable[[], str]) -> AsyncIterator[None]:
    """Tell the client how it goes during the block."""
    task = asyncio.create_task(_tell(client, tail, what))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _tell(client: Client, tail: Tail, what: Callable[[], str]) -> None:
    began = told = time.monotonic()
    await client.progress(0, what())
    while True:
        await asyncio.sleep(EVERY)
        now = time.monotonic()
        if not tail.changed and now - told < SILENT:
            continue
        tail.changed, told = False, now
        await client.progress(round(now - began, 1), tail.text() or what())
