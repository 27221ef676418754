"""A task as a person has it: say something, answer, stop it, pause it, let it run.

    async with app.create_task("make the tests pass") as task:
        task.subscribe(listener)
        ended = await task.run_until_idle()

It works only while somebody awaits `run`; all the verbs may be used meanwhile. Whatever stops it, at whatever moment,
every call of the model gets a result, and the log can be taken up again.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tarmac import __version__
from tarmac.errors import BadRequest, StateUnavailable
from tarmac.events import TaskId
from tarmac.models.messages import Blob, ToolUse
from tarmac.models.provider import Model
from tarmac.tasks import events as e
from tarmac.tasks.aftermath import settle
from tarmac.tasks.audience import Listener
from tarmac.tasks.desk import Desk, Ended, now
from tarmac.tasks.limits import Used
from tarmac.tasks.log import TaskLog
from tarmac.tasks.loop import Loop
from tarmac.tasks.metadata import Metadata
from tarmac.tasks.questions import Questions
from tarmac.tasks.queue import Queue
from tarmac.tasks.recovery import unfinished

Picture = tuple[bytes, str]  # its content and its media type
RESUMED: Final = (
    "[This task was interrupted and is resumed now. Time has passed: files may have changed, and commands and "
    "terminals from before are gone.]"
)


class Task:
    """An open task. Get one from `App.create_task` or `App.resume_task`."""

    def __init__(self, desk: Desk, past: Sequence[e.TaskEvent], open_model: Callable[[str], Model]) -> None:
        self._desk = desk
        self._open_model = open_model
        self._queue = Queue(desk.log, past)
        self._questions = Questions(desk.log)
        self._unpaused = asyncio.Event()
        self._unpaused.set()
        self._loop = Loop(desk, self._questions, self._queue, self._unpaused.wait)
        self._work: asyncio.Task[Ended] | None = None
        self._at_work = False  # the run has made its first step
        self._stop: Ended | None = None  # why it was stopped
        self._begun = False  # in this process
        self._resumes = bool(desk.metadata.requests)
        self._spoken = _spoken(past)  # a person said something that the model has not answered
        self._retired: list[Model] = []
        self._words = asyncio.Event()  # somebody said something
        desk.under_way = {each.started.call: each for each in unfinished(past)}
        for call in _calls(past):
            self._loop.requests.know(call)

    # What it is

    @property
    def id(self) -> TaskId:
        return self._desk.task

    @property
    def log(self) -> TaskLog:
        return self._desk.log

    @property
    def metadata(self) -> Metadata:
        """What a list shows of it, as of now."""
        return self._desk.metadata

    @property
    def attended(self) -> bool:
        """Whether a person can be asked; without one an ask is a denial."""
        return self._desk.attended

    @attended.setter
    def attended(self, attended: bool) -> None:
        self._desk.attended = attended

    @property
    def running(self) -> bool:
        return self._work is not None

    @property
    def questions(self) -> tuple[e.QuestionAsked, ...]:
        """Those that wait for an answer."""
        return self._questions.open

    @property
    def queue(self) -> tuple[e.MessageQueued, ...]:
        """What was said while it worked, and is not delivered yet."""
        return self._queue.waiting

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(seq, event)` and `listener(None, signal)`, in order; what it returns takes it off."""
        return self._desk.audience.subscribe(listener)

    # What a person does

    async def say(self, text: str, images: Sequence[Picture] = ()) -> e.MessageId | None:
        """Say something to it: at once (None), or queued under an id while it works."""
        if not text.strip() and not images:
            raise BadRequest("there is nothing said")
        if self._desk.metadata.outcome == "aborted" and self._begun:
            raise BadRequest(f"task {self.id} was aborted", hint="resume it first")
        blobs = await self._keep(images)
        if not self.running:
            await self.log.append(e.UserSaid(at=now(), text=text, images=blobs))
            self._spoken = True
            self._words.set()
            return None
        message = e.MessageId(f"m{secrets.token_hex(4)}")
        await self._queue.put(e.MessageQueued(at=now(), message=message, text=text, images=blobs))
        return message

    async def withdraw(self, message: e.MessageId) -> None:
        """Take a queued message back; BadRequest when it has been delivered."""
        if not await self._queue.withdraw(message):
            raise BadRequest(f"the message {message} is not queued", hint="it may have been delivered")

    async def answer(
        self,
        question: e.QuestionId,
        answer: e.Answer,
        *,
        text: str = "",
        images: Sequence[Picture] = (),
        choices: Iterable[e.Choice] = (),
        edited: str | None = None,
        always: str = "",
        grant: int = 0,
        by: str = "",
    ) -> None:
        """Answer an open question; the first answer counts. BadRequest for one that makes no sense leaves it open.

        `always` is the scope of an "always allow" (task, workspace, everywhere), `grant` which of those that the
        request offers; `edited` is the command the person would rather have.
        """
        await self._questions.answer(
            e.QuestionAnswered(
                at=now(),
                question=question,
                answer=answer,
                text=text,
                images=await self._keep(images),
                choices=tuple(choices),
                edited=edited,
                always=f"{always}:{grant}" if always and grant else always,
                by=by,
            )
        )

    def cancel(self) -> None:
        """Stop what it does now, an answer or a command; the run ends as "interrupted", and may be run again."""
        self._end(Ended("interrupted", "the person stopped it"))

    async def abort(self, why: str = "") -> None:
        """End it before it is done, and all that runs in its terminals. It can be resumed."""
        why = why or "the person ended it"
        if self._work is None:
            await self._aborted(why)
            return
        work = self._work
        self._end(Ended("aborted", why))
        await asyncio.wait([work])

    async def pause(self, why: str = "") -> None:
        """Let it stand still before its next step."""
        if self._unpaused.is_set():
            self._unpaused.clear()
            await self.log.append(e.TaskPaused(at=now(), why=why))

    async def unpause(self) -> None:
        """Let it go on."""
        if not self._unpaused.is_set():
            await self.log.append(e.TaskUnpaused(at=now()))
            self._unpaused.set()

    async def switch_mode(self, mode: str, why: str = "") -> None:
        """Another mode from the next turn on; BadRequest names one that looks like it."""
        found = self._desk.mode_of(mode)
        await self.log.append(e.ModeSwitched(at=now(), mode=found.slug, why=why))
        self._desk.mode = found

    async def switch_model(self, model: str) -> None:
        """Another model from the next turn on."""
        opened = await asyncio.to_thread(self._open_model, model)
        await self.log.append(e.ModelSwitched(at=now(), model=model))
        self._retired.append(self._desk.model)  # an answer of its may be on its way: closed at the end
        self._desk.model = opened

    async def _keep(self, images: Sequence[Picture]) -> tuple[Blob, ...]:
        return tuple([await asyncio.to_thread(self.log.blobs.keep, data, media) for data, media in images])

    # Running

    async def run(self) -> Ended:
        """Run it; when it is the person's turn, wait for their words and go on."""
        while (ended := await self.run_until_idle()).why == "idle":
            self._words.clear()
            if not self._spoken:
                await self._words.wait()
        return ended

    async def run_until_idle(self) -> Ended:
        """Run it until it is done, or it is somebody else's turn. Cancelling who awaits this stops it in order."""
        if self.running:
            raise BadRequest(f"task {self.id} is running already")
        self._stop = None
        self._work = work = asyncio.create_task(self._run(), name=f"task {self.id}")
        timer = self._timer()
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            self._questions.leaving = True  # the door goes away: what it was asked is asked again
            self._end(Ended("interrupted", "it was stopped"))
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
        return asyncio.get_running_loop().call_later(seconds, self._end, over)

    def _end(self, ended: Ended) -> None:
        """Stop the run, once."""
        if self._work is None:
            return
        if self._stop is None and self._at_work:  # before its first step it need not be: it looks
            self._work.cancel()
        if self._stop is None or ended.why == "aborted":
            self._stop = ended

    async def _run(self) -> Ended:
        desk, self._at_work = self._desk, True
        desk.used, desk.began = Used(), time.monotonic()
        try:
            try:
                ended = self._stop or await self._begin() or await self._loop.run()
            except asyncio.CancelledError:
                self._uncancel()
                await self._settle()
                ended = self._stop or Ended("interrupted")
            self._spoken = False
            self._stop = self._stop or ended  # from here on nothing is to be stopped
            return await self._finish(self._stop if self._stop.why == "aborted" else ended)
        except StateUnavailable as error:
            return Ended("failed", str(error))

    def _uncancel(self) -> None:
        current = asyncio.current_task()
        while current and current.cancelling():
            current.uncancel()

    async def _begin(self) -> Ended | None:
        """Say that this process runs it; find out first what became of calls that were cut off."""
        desk = self._desk
        outcome = desk.metadata.outcome
        if outcome == "completed" and not self._spoken:
            return Ended("completed")
        if not self._begun:
            await self.log.append(e.TaskStarted(at=now(), pid=os.getpid(), version=__version__))
        elif outcome or desk.metadata.status == "paused":
            await self.log.append(e.TaskUnpaused(at=now()))
        if desk.history.open_calls:
            await settle(desk, why="Tarmac was stopped", skip=self._spoken)
        if not self._begun and self._resumes:
            desk.add(e.ModelTold(at=now(), text=RESUMED, about="resumption"))
        self._begun = True
        self._questions.leaving = False
        return None

    async def _settle(self) -> None:
        """After a stop: every call gets its result; but what only waited, when the process goes, is asked again."""
        why = self._stop.text if self._stop else "it was stopped"
        await self.log.commit()
        await settle(self._desk, why=why, skip=not self._questions.leaving)
        await self.log.commit()

    async def _finish(self, ended: Ended) -> Ended:
        if ended.why == "limit":
            await self.log.append(e.TaskPaused(at=now(), why=ended.text))
        elif ended.why == "aborted":
            await self._aborted(ended.text)
        else:
            await self.log.commit()
        return ended

    async def _aborted(self, why: str) -> None:
        try:
            await self.log.append(e.TaskAborted(at=now(), why=why))
        finally:
            await self._desk.registry.end_task(self.id)

    async def aclose(self) -> None:
        """Leave it in order: stop it if it runs, keep the log, release its terminals. May be called twice."""
        if self._work is not None:
            self._questions.leaving = True
            work = self._work
            self._end(Ended("interrupted", "Tarmac was closed"))
            await _until_done(work)
        if self._begun:
            self._begun = False
            try:
                await self.log.append(e.TaskSaved(at=now()))
            except StateUnavailable:  # a full disk: then the log says nothing of it
                pass
        self._desk.registry.release_for_task(self.id)
        for model in (*self._retired, self._desk.model):
            await model.aclose()


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
