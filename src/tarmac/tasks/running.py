"""A task at work: begun, stopped at any moment, and left in order.

until_idle() ─ begin: what was cut off is told ─ loop, in an asyncio task of its own ─ end(): that task is cancelled
             ─ settle: every call gets its result ─ Ended

The one who awaits it owns it: when that one is cancelled, the task is stopped, and not before it is left in order.
"""

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from typing import Final

from tarmac import __version__
from tarmac.errors import BadRequest, StateUnavailable
from tarmac.models.messages import ToolUse
from tarmac.tasks import events as e
from tarmac.tasks.aftermath import settle
from tarmac.tasks.desk import Desk, Ended, now
from tarmac.tasks.limits import Used
from tarmac.tasks.loop import Loop
from tarmac.tasks.questions import Questions
from tarmac.tasks.queue import Queue
from tarmac.tasks.recovery import unfinished

RESUMED: Final = (
    "[This task was interrupted and is resumed now. Time has passed: files may have changed, and commands and "
    "terminals from before are gone.]"
)


class Running:
    """The runs of one open task, one at a time."""

    def __init__(self, desk: Desk, questions: Questions, queue: Queue, past: Sequence[e.TaskEvent]) -> None:
        self._desk = desk
        self._questions = questions
        self._queue = queue
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        self.spoken = _spoken(past)  # a person said something that the model has not answered
        self.begun = False  # in this process
        self._resumes = bool(desk.metadata.requests)
        self._loop = Loop(desk, questions, queue, self.unpaused.wait)
        self._work: asyncio.Task[Ended] | None = None
        self._at_work = False  # it has made its first step
        self._stop: Ended | None = None  # why it was stopped
        desk.under_way = {each.started.call: each for each in unfinished(past)}
        for call in _calls(past):
            self._loop.requests.know(call)

    @property
    def active(self) -> bool:
        return self._work is not None

    async def until_idle(self) -> Ended:
        """Run until it is done, or it is somebody else's turn."""
        if self.active:
            raise BadRequest(f"task {self._desk.task} is running already")
        self._stop = None
        self._work = work = asyncio.create_task(self._run(), name=f"task {self._desk.task}")
        timer = self._timer()
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            self._questions.leaving = True  # the door goes away: what it was asked is asked again
            self.end(Ended("interrupted", "it was stopped"))
            await _until_done(work)
            raise
        finally:
            if timer:
                timer.cancel()
            self._work, self._at_work = None, False
        return work.result()

    def _timer(self) -> asyncio.TimerHandle | None:
        seconds = self._desk.settings.limits.max_seconds
        if seconds is None:
            return None
        over = Ended("limit", f"the limit of {seconds:g} s is reached")
        return asyncio.get_running_loop().call_later(seconds, self.end, over)

    def end(self, ended: Ended) -> None:
        """Stop the run, once; an abort also counts while it is being stopped."""
        if self._work is None:
            return
        if self._stop is None and self._at_work:  # before its first step it need not be: it looks
            self._work.cancel()
        if self._stop is None or ended.why == "aborted":
            self._stop = ended

    async def ended(self) -> None:
        """Wait until the run, if there is one, has come to its end."""
        if self._work is not None:
            await _until_done(self._work)

    async def abort(self, why: str) -> None:
        """End it before it is done, whether it runs or not."""
        if self._work is None:
            await self._aborted(why)
        else:
            self.end(Ended("aborted", why))
            await asyncio.wait([self._work])

    async def leave(self) -> None:
        """Stop it because the process goes: what only waited is asked again another time."""
        self._questions.leaving = True
        self.end(Ended("interrupted", "Tarmac was closed"))
        await self.ended()

    # Inside

    async def _run(self) -> Ended:
        desk, self._at_work = self._desk, True
        desk.used, desk.began = Used(), time.monotonic()
        ended = Ended("interrupted")
        try:
            try:
                ended = self._stop or await self._begin() or await self._loop.run()
                while ended.why == "completed" and self._queue:  # words that came with the result
                    ended = await self._begin() or await self._loop.run()
                if self._stop:
                    await asyncio.sleep(0)  # a stop that came with the last step is heeded here
            except asyncio.CancelledError:
                _uncancel()
                await self._settle()
                ended = ended if ended.why == "completed" else self._stop or ended
            self.spoken = False
            self._stop = self._stop or ended  # from here on nothing is to be stopped
            return await self._finish(self._stop if self._stop.why == "aborted" else ended)
        except StateUnavailable as error:
            return Ended("failed", str(error))

    async def _begin(self) -> Ended | None:
        """Say that this process runs it; find out first what became of calls that were cut off."""
        desk, log = self._desk, self._desk.log
        outcome = desk.metadata.outcome
        if outcome == "completed" and not (self.spoken or self._queue):
            return Ended("completed")
        paused = not self.unpaused.is_set()  # by a person, who has not let it go on yet
        if not self.begun:
            started = e.TaskStarted(at=now(), pid=os.getpid(), version=__version__)
            await log.append(started, *([e.TaskPaused(at=now())] if paused else []))
        elif outcome or (desk.metadata.status == "paused" and not paused):
            await log.append(e.TaskUnpaused(at=now()))
        if desk.history.open_calls:
            await settle(desk, why="Tarmac was stopped", skip=self.spoken)
        if not self.begun and self._resumes:
            desk.add(e.ModelTold(at=now(), text=RESUMED, about="resumption"))
        self.begun = True
        self._questions.leaving = False
        return None

    async def _settle(self) -> None:
        """After a stop: every call gets its result; but what only waited, when the process goes, is asked again."""
        why = self._stop.text if self._stop else "it was stopped"
        await self._desk.log.commit()
        await settle(self._desk, why=why, skip=not self._questions.leaving)
        await self._desk.log.commit()

    async def _finish(self, ended: Ended) -> Ended:
        if ended.why == "limit":
            await self._desk.log.append(e.TaskPaused(at=now(), why=ended.text))
        elif ended.why == "aborted":
            await self._aborted(ended.text)
        else:
            await self._desk.log.commit()
        return ended

    async def _aborted(self, why: str) -> None:
        try:
            await self._desk.log.append(e.TaskAborted(at=now(), why=why))
        finally:
            await self._desk.registry.end_task(self._desk.task)


def _uncancel() -> None:
    """The stop was heeded: what is awaited from now on is no longer cancelled."""
    current = asyncio.current_task()
    while current and current.cancelling():
        current.uncancel()


async def _until_done(work: "asyncio.Task[Ended]") -> None:
    """Wait for its end, whoever else loses patience: it closes what it had open, and that has an end."""
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            continue


def _spoken(past: Iterable[e.TaskEvent]) -> bool:
    """Whether a person said something after the model's last word."""
    spoken = False
    for event in past:
        match event:
            case e.UserSaid() | e.MessageDelivered():
                spoken = True
            case e.ModelSaid():
                spoken = False
    return spoken


def _calls(past: Iterable[e.TaskEvent]) -> Iterable[str]:
    """The ids of all calls that were ever made."""
    for event in past:
        if isinstance(event, e.ModelSaid):
            yield from (part.id for part in event.parts if isinstance(part, ToolUse))
