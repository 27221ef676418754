"""A task that is open in this process, or joined in another one.

say, answer, run → task.wake() → TaskRunner → task.run_until_idle() → waits for the next wake

A task of a session at the terminal, or of an editor, has no runner here: that door runs it.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from tarmac.app import App
from tarmac.errors import TarmacError
from tarmac.server.joined_task import JoinedTask
from tarmac.tasks.context import Ended
from tarmac.tasks.task import Task

LAST_WORDS: Final = 10.0  # seconds for a run to end in order
TO_BEGIN: Final = 50  # turns of the event loop from a wake to a run


class TaskRunner:
    """Runs a task whenever it is its turn, whoever looks on. `close` leaves the task in order."""

    def __init__(self, task: Task, owns: AsyncExitStack, changed: Callable[[], object]) -> None:
        self.ended: Ended | None = None  # how its last run ended
        self._task = task
        self._owns = owns
        self._changed = changed
        self._go = asyncio.Event()
        self._runs = asyncio.create_task(self._run(), name=f"runs of {task.id}")
        task.when_woken(self._go.set)
        task.type_secrets()

    async def _run(self) -> None:
        while True:
            await self._go.wait()
            self._go.clear()
            self._changed()
            try:
                self.ended = await self._task.run_until_idle()
            except TarmacError as error:
                self.ended = Ended("failed", str(error))
            if self._task.queue and self.ended.why in ("idle", "completed"):  # said while it gave its last answer
                self._go.set()
            self._changed()

    async def close(self) -> None:
        """Stop it in order; the task stays."""
        self._runs.cancel()
        await asyncio.wait([self._runs], timeout=LAST_WORDS)
        await self._owns.aclose()


@dataclass(slots=True)
class OpenTask:
    """One of them."""

    task: Task | JoinedTask
    app: App | None  # None: it is joined
    leave: Callable[[], object]  # ends what was subscribed to
    runner: TaskRunner | None = None

    async def wake(self) -> None:
        """It is its turn, perhaps: somebody said or answered something. It runs when this returns."""
        self.task.wake()
        for _ in range(TO_BEGIN):
            if self.task.running:
                return
            await asyncio.sleep(0)

    def to_background(self) -> None:
        """Let it go on without the commands that it waits for."""
        if isinstance(self.task, JoinedTask):
            self.task.to_background()
            return
        for terminal in self.app.registry.listing(task=self.task.id, busy=True) if self.app else ():
            if terminal.current is not None:
                terminal.current.leave()

    async def close(self) -> None:
        """Stop it if it runs here, leave it if it is joined."""
        self.leave()
        if self.runner is not None:
            await self.runner.close()
        elif isinstance(self.task, JoinedTask):
            await self.task.aclose()
