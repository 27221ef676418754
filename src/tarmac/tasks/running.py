"""A task at work: begun, stopped at any moment, and left in order.

until_idle() ─ begin: what was cut off is told ─ loop, in an asyncio task of its own ─ end(): that task is cancelled
             ─ settle: every call gets its result ─ Ended

The one who awaits it owns it: when that one is cancelled, the task is stopped, and not before it is left in order.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence, Set
from typing import Final

from tarmac import __version__
from tarmac.errors import BadRequest, StateUnavailable
from tarmac.models.messages import ToolUse
from tarmac.tasks import events as e
from tarmac.tasks.aftermath import end_survivors, killed_host, settle
from tarmac.tasks.desk import Desk, Ended, now
from tarmac.tasks.limits import Used
from tarmac.tasks.loop import Loop
from tarmac.tasks.questions import Questions
from tarmac.tasks.queue import Queue
from tarmac.tasks.recovery import unfinished
from tarmac.tasks.resting import Rest
from tarmac.tasks.worktime import WorkTime

RESUMED: Final = (
    "[This task was interrupted and is resumed now. Time has passed: files may have changed, and commands and "
    "terminals from before are gone, but for those that you are told of below.]"
)


STOPPED: Final = "[The person stopped you here, and now wants you to go on.]"


class Running:
    """The runs of one open task, one at a time."""

    def __init__(self, desk: Desk, questions: Questions, queue: Queue, past: Sequence[e.TaskEvent]) -> None:
        self._desk = desk
        self._questions = questions
        self._queue = queue
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        self.rest = Rest(desk, questions, past)
        self.begun = False  # in this process
        self._resumes = bool(desk.metadata.requests)
        self._killed = killed_host(past)
        self._loop = Loop(desk, questions, queue, self.rest, self._may_go)
        self._work: asyncio.Task[Ended] | None = None
        self._at_work = False  # it has made its first step
        self._stop: Ended | None = None  # why it was stopped
        self._interrupted = False  # and that was the end of the last run
        desk.under_way = {each.started.call: each for each in unfinished(past)}
        questions.left = _asking(past)
        desk.answered = _answered(past, desk.under_way.keys())
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
        self._desk.clock = self._clock()
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            self._questions.leaving = True  # the door goes away: what it was asked is asked again
            self.end(Ended("interrupted", "it was stopped"))
            await _until_done(work)
            raise
        finally:
            self._desk.clock.done()
            self._work, self._at_work = None, False
        return work.result()

    def _clock(self) -> WorkTime:
        clock, seconds = WorkTime(), self._desk.settings.limits.max_seconds
        if seconds is not None:
            over = Ended("limit", f"the limit of {seconds:g} s is reached")
            clock.ring(seconds, lambda: self.end(over))
        return clock

    async def _may_go(self) -> None:
        """Return when it is not paused."""
        if not self.unpaused.is_set():
            with self._desk.waits():
                await self.unpaused.wait()

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
        desk.used = Used()
        ended = Ended("interrupted")
        try:
            try:
                ended = self._stop or await self._begin() or await self._loop.run()
                while ended.why == "completed" and await self._wanted():  # words that came with the result
                    ended = await self._begin() or await self._loop.run()
                if self._stop:
                    await asyncio.sleep(0)  # a stop that came with the last step is heeded here
            except asyncio.CancelledError:
                _uncancel()
                await self._settle()
                if self._loop.presented is not None and desk.metadata.outcome == "completed":
                    ended = Ended("completed", self._loop.presented)  # the stop came while that was written
                ended = ended if ended.why == "completed" else self._stop or ended
            self._interrupted = ended.why == "interrupted"
            self._stop = self._stop or ended  # from here on nothing is to be stopped
            return await self._finish(self._stop if self._stop.why == "aborted" else ended)
        except StateUnavailable as error:
            return Ended("failed", str(error))

    async def _begin(self) -> Ended | None:
        """Say that this process runs it; find out first what became of calls that were cut off."""
        desk, log, rest = self._desk, self._desk.log, self.rest
        outcome = desk.metadata.outcome
        if not await self._wanted():
            if outcome == "completed":
                return Ended("completed")
            if rest.wanted == "stay":
                return Ended("idle", "the person did not want it to go on")
        spoken = await rest.goes_on()
        paused = not self.unpaused.is_set()  # by a person, who has not let it go on yet
        if not self.begun:
            started = e.TaskStarted(at=now(), pid=os.getpid(), version=__version__)
            await log.append(started, *([e.TaskPaused(at=now())] if paused else []))
        elif outcome or (desk.metadata.status == "paused" and not paused):
            await log.append(e.TaskUnpaused(at=now()))
        left = await end_survivors(desk, self._killed) if not self.begun else ""
        if desk.history.open_calls:
            await settle(desk, why="Tarmac was stopped", skip=spoken, again=self._asked_again())
        if not self.begun and self._resumes:
            desk.add(e.ModelTold(at=now(), text=RESUMED + left, about="resumption"))
        elif self._interrupted and not (desk.history.owed or self._queue):  # in the middle of an answer
            desk.add(e.ModelTold(at=now(), text=STOPPED, about="resumption"))
        self._interrupted = False
        self.begun = True
        self._questions.leaving = False
        return None

    async def _wanted(self) -> bool:
        """Whether a person said that it shall go on, or anything else."""
        await self._questions.settled()
        return bool(self.rest.spoken or self._queue or self.rest.wanted == "go")

    def _asked_again(self) -> set[e.CallId]:
        """Calls that did nothing yet but ask: they are made again, and ask again."""
        started = {call: each.started for call, each in self._desk.under_way.items()}
        again = {call for call in self._questions.left if (to := started.get(call)) and not (to.intents or to.command)}
        for call in again:
            del self._desk.under_way[call]
        self._questions.left.clear()
        return again

    async def _settle(self) -> None:
        """After a stop: every call gets its result; but what only waited, when the process goes, is asked again."""
        why = self._stop.text if self._stop else "it was stopped"
        await self._desk.log.commit()
        again = set(self._questions.left) if self._questions.leaving else set[e.CallId]()
        await settle(self._desk, why=why, skip=not self._questions.leaving, again=again)
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
        self._questions.withdraw()
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


def _asking(past: Iterable[e.TaskEvent]) -> set[e.CallId]:
    """The calls with a question that nobody answered."""
    asked: dict[str, e.CallId] = {}
    for event in past:
        match event:
            case e.QuestionAsked(question=question, call=call) if call:
                asked[question] = call
            case e.QuestionAnswered(question=question):
                asked.pop(question, None)
    return set(asked.values())


def _answered(past: Iterable[e.TaskEvent], calls: Set[e.CallId]) -> dict[e.CallId, str]:
    """What a person had answered to a question of the model, in calls that did not come to their end."""
    asked: dict[str, e.CallId] = {}
    found: dict[e.CallId, str] = {}
    for event in past if calls else ():
        match event:
            case e.QuestionAsked(ask="followup", question=question, call=call) if call in calls and call:
                asked[question] = call
            case e.QuestionAnswered(question=question, text=text) if question in asked and text:
                found[asked[question]] = text
    return found


def _calls(past: Iterable[e.TaskEvent]) -> Iterable[str]:
    """The ids of all calls that were ever made."""
    for event in past:
        if isinstance(event, e.ModelSaid):
            yield from (part.id for part in event.parts if isinstance(part, ToolUse))
