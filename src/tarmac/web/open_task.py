"""A task that this server has open: it works whenever it is its turn, whoever looks on.

say, answer, run → go() → task.run_until_idle() → waits for the next go()
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from tarmac.app import App
from tarmac.errors import BadRequest, TarmacError
from tarmac.tasks.auto import LEVELS, Auto
from tarmac.tasks.context import Ended
from tarmac.tasks.task import Task

LAST_WORDS: Final = 10.0  # seconds for a run to end in order


class OpenTask:
    """One of them. `close` leaves it in order."""

    def __init__(self, app: App, task: Task, owns: AsyncExitStack, changed: Callable[[], object]) -> None:
        self.app = app
        self.task = task
        self.level: Auto = app.config.auto
        self.ended: Ended | None = None  # how its last run ended
        self._owns = owns
        self._changed = changed
        self._go = asyncio.Event()
        self._runs = asyncio.create_task(self._run(), name=f"runs of {task.id}")
        task.type_secrets()

    def go(self) -> None:
        """It is its turn, perhaps: someone said or answered something."""
        self._go.set()

    async def _run(self) -> None:
        while True:
            await self._go.wait()
            self._go.clear()
            self._changed()
            try:
                self.ended = await self.task.run_until_idle()
            except TarmacError as error:
                self.ended = Ended("failed", str(error))
            if self.task.queue and self.ended.why in ("idle", "completed"):  # said while it gave its last answer
                self._go.set()
            self._changed()

    def switch_level(self, level: Auto) -> None:
        if level not in LEVELS:
            raise BadRequest(f"there is no level `{level}`", hint=", ".join(LEVELS))
        self.app.switch_level(self.task, level)
        self.level = level
        self._changed()

    async def close(self) -> None:
        """Stop it in order; the task stays."""
        self._runs.cancel()
        await asyncio.wait([self._runs], timeout=LAST_WORDS)
        await self._owns.aclose()
