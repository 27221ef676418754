"""A task at work, and the person (or the pipe) before it: shown, asked, stopped, gone on with.

task ─facts, signals→ Door ─text→ screen            (or JSON lines)
     ←answers, words─      ←keys─ person            while it works: answering.py; while it stands still: turn.py

Ctrl-C stops what the task does now; at the keyboard one can then say what to do instead. A second one ends it. However
it ends, it can be resumed.
"""

import asyncio
import json
from collections.abc import Sequence

from tarmac.cli.answering import Answering
from tarmac.cli.driven import Driven
from tarmac.cli.person import Person
from tarmac.cli.shutdown import Stop
from tarmac.cli.turn import Turn
from tarmac.errors import BadRequest
from tarmac.policy.approval import Answer, AnswerKind, Authority, Picture
from tarmac.show.records import record, signal_record
from tarmac.show.renderer import TaskRenderer
from tarmac.show.screen import Screen
from tarmac.tasks.context import Ended
from tarmac.tasks.events import RESTING, CallId, CallJudged, QuestionAnswered, QuestionAsked, TaskEvent
from tarmac.tasks.signals import Signal
from tarmac.terminals.pool import Pool


class Door:
    """One task in one terminal, or in a pipe."""

    def __init__(
        self,
        task: Driven,
        registry: Pool,
        screen: Screen,
        renderer: TaskRenderer,
        *,
        person: Person | None,
        as_json: bool,
        yes: str = "",
        offers: bool = True,
        after: str = "",
    ) -> None:
        self.task = task
        self.screen = screen
        self.renderer = renderer
        self.denied: set[CallId] = set()  # calls that a person might have allowed, had one been there
        self.critical: set[CallId] = set()  # of these, what only a person can allow
        self._json = as_json
        self._yes = yes  # by whose word everything is allowed: only for what is known beforehand
        self._offers = offers  # a task that is done may go on: the person is asked what is missing
        self._allowing: set[asyncio.Task[None]] = set()
        # None: nobody is there.
        self._answering = Answering(task, registry, person, screen) if person else None
        self._turn = Turn(task, person, after=after or task.afterwards) if person else None
        self._person = person

    async def drive(self, stop: Stop, words: str = "", images: Sequence[Picture] = ()) -> Ended:
        """Run it to its end, with what the person wants in between; `words` are theirs to begin with."""
        leave = self.task.subscribe(self.show)
        stop.interrupt = self._interrupted
        stop.elsewhere = lambda: self._person is not None and self._person.keyboard.lent
        try:
            if words or images:
                await self.task.say(words, images)
            elif self.task.metadata.outcome == "completed" and not await self._next(Ended("idle")):
                return Ended("completed")
            while True:
                if self._answering:
                    self._answering.listen()
                ended = await self.task.run_until_idle()
                await self._rest()
                self.screen.quiet()
                if ended.why == "completed":
                    more = await self._more()
                    stop.number = None  # an interrupt there was a way to leave
                    if not more:
                        return ended
                elif not await self._next(ended):
                    return ended
                stop.number = None  # that interrupt is dealt with
        finally:
            leave()
            stop.interrupt = None
            await self._rest()
            self.screen.quiet()

    # Showing

    def show(self, seq: int | None, thing: TaskEvent | Signal) -> None:
        """What happened, as it happens."""
        told = ""
        if self._json:
            found = signal_record(thing) if isinstance(thing, Signal) else record(seq or 0, thing)
            self.screen.say(json.dumps(found) + "\n")
        else:
            told = self._told(thing)
            if not (isinstance(thing, QuestionAsked) and (self._person and self._person.beside)):
                self.screen.say(told)
        if self.screen.broken:
            self.task.cancel()
        if isinstance(thing, QuestionAsked) and self._yes:
            self._allow(thing)
        elif isinstance(thing, QuestionAsked) and self._answering and thing.ask not in RESTING:
            self._answering.asked(thing, told)
        elif isinstance(thing, QuestionAnswered) and self._answering:
            self._answering.answered(thing)
        elif isinstance(thing, CallJudged) and thing.decision == "deny" and thing.by == Authority.NOBODY:
            self.denied.add(thing.call)
            if thing.risk == "critical":
                self.critical.add(thing.call)

    def _told(self, thing: TaskEvent | Signal) -> str:
        if isinstance(thing, Signal):
            return self.renderer.signal(thing)
        if self._turn and self._turn.typed(thing):
            return self.renderer.typed(thing)
        return self.renderer.event(thing)

    def _allow(self, asked: QuestionAsked) -> None:
        job = asyncio.create_task(self.task.answer(asked.question, Answer(AnswerKind.YES, by=f"auto: {self._yes}")))
        self._allowing.add(job)
        job.add_done_callback(self._allowing.discard)

    # Stopping

    def _interrupted(self) -> bool:
        if self._turn and self._turn.accept():
            return True
        if not self.task.running:
            return False
        self.screen.interrupted()
        self.task.cancel()
        return True

    async def _more(self) -> bool:
        """Whether the person wants more of a task that is done; else its result is accepted."""
        asked = next((each for each in self.task.questions if each.ask == "completion_result"), None)
        if asked is None:
            return False
        if self._turn and self._offers and not self.screen.broken and await self._turn.offer():
            return True
        try:
            await self.task.answer(asked.question, Answer(AnswerKind.YES, by="cli"))
        except BadRequest:  # somebody was quicker
            return self.task.metadata.outcome != "completed"
        return False

    async def _next(self, ended: Ended) -> bool:
        """Whether a task that stands still goes on, by the person's word."""
        if self._turn is None or self.screen.broken or ended.why not in ("interrupted", "idle"):
            return False
        return await self._turn.next(ended)

    async def _rest(self) -> None:
        if self._answering:
            await self._answering.rest()
        jobs = list(self._allowing)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
