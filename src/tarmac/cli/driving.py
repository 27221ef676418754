"""A task at work, and the person (or the pipe) before it: shown, asked, stopped, gone on with.

task ─facts, signals→ Door ─text→ screen            (or JSON lines)
     ←answers, words─      ←keys─ person

Ctrl-C stops what the task does now; at the keyboard one can then say what to do instead. A second one ends it. However
it ends, it can be resumed.
"""

import asyncio
import json
from collections.abc import Coroutine, Sequence

from tarmac.cli.driven import Driven
from tarmac.cli.person import Person
from tarmac.cli.secret import pass_secret, wants_secret
from tarmac.cli.stopping import Stop, meanwhile
from tarmac.errors import BadRequest, TarmacError, TerminalNotFound
from tarmac.show.asking import ask
from tarmac.show.columns import wrapped
from tarmac.show.harmless import one_line
from tarmac.show.pictures import pictures_in
from tarmac.show.question import question_lines
from tarmac.show.records import record, signal_record
from tarmac.show.screen import Screen
from tarmac.show.teller import Teller
from tarmac.tasks.desk import Ended
from tarmac.tasks.events import RESTING, QuestionAnswered, QuestionAsked, TaskEvent, ToolFinished
from tarmac.tasks.signals import Signal
from tarmac.tasks.task import Picture
from tarmac.terminals.events import AwaitingInput, TerminalEvent
from tarmac.terminals.registry import TerminalRegistry

TICK = 1.0  # seconds between two drawings of how long something takes


class Door:
    """One task in one terminal, or in a pipe."""

    def __init__(
        self,
        task: Driven,
        registry: TerminalRegistry,
        screen: Screen,
        teller: Teller,
        *,
        person: Person | None,
        as_json: bool,
        yes: str = "",
        offers: bool = True,
        after: str = "",
    ) -> None:
        self.task = task
        self._registry = registry
        self.screen = screen
        self.teller = teller
        self.denied = 0  # calls that a person might have allowed, had one been there
        self._person = person  # None: nobody is there
        self._json = as_json
        self._yes = yes  # by whose word everything is allowed: only for what is known beforehand
        self._offers = offers  # a task that is done may go on: the person is asked what is missing
        self._offering: asyncio.Future[str | None] | None = None
        self._after = after or task.afterwards  # what can be done once it was left
        self._jobs: set[asyncio.Task[None]] = set()
        self._asking: dict[str, asyncio.Task[None]] = {}  # questions on the screen
        self._answering = ""  # the question whose answer is on its way
        if person is not None:
            person.heard = self._heard

    async def drive(self, stop: Stop, words: str = "", images: Sequence[Picture] = ()) -> Ended:
        """Run it to its end, with what the person wants in between; `words` are theirs to begin with."""
        leave = self.task.subscribe(self.show)
        self._registry.subscribe(self._terminal)
        stop.interrupt = self._interrupted
        try:
            if words or images:
                await self.task.say(words, images)
            elif self.task.metadata.outcome == "completed" and not await self._next(Ended("idle")):
                return Ended("completed")
            while True:
                if self._person is not None:
                    self._person.listen()
                async with meanwhile(self._tick()):
                    ended = await self.task.run_until_idle()
                await self._rest()
                self.screen.quiet()
                if ended.why == "completed":
                    more = await self._more()
                    stop.number = None  # an interrupt there was a way to leave
                    if not more:
                        return ended
                elif not self._goes_on(ended) or not await self._next(ended):
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
            told = self.teller.signal(thing) if isinstance(thing, Signal) else self.teller.event(thing)
            if not (isinstance(thing, QuestionAsked) and self._person is not None and self._person.beside):
                self.screen.say(told)
            self.screen.status(self.teller.status)
        if self.screen.broken:
            self.task.cancel()
        if isinstance(thing, QuestionAsked) and self._yes:
            self._start(self.task.answer(thing.question, "yes", by=f"auto: {self._yes}"))
        elif isinstance(thing, QuestionAsked) and self._person is not None and thing.ask not in RESTING:
            self._asking[thing.question] = self._start(self._answer(thing, self._person, told))
        elif isinstance(thing, QuestionAnswered):
            self._answered(thing)
        elif isinstance(thing, ToolFinished) and thing.outcome == "denied" and not self.task.attended:
            self.denied += 1

    def _answered(self, answered: QuestionAnswered) -> None:
        asking = self._asking.pop(answered.question, None)
        if asking is not None and answered.question != self._answering:  # elsewhere, or it is no longer asked
            asking.cancel()
            self.screen.say("\n")

    async def _tick(self) -> None:
        """Draw anew how long something takes, while nothing else happens."""
        while self.screen.look.live and not self._json:
            await asyncio.sleep(TICK)
            self.screen.status(self.teller.status)

    # Asking

    async def _answer(self, asked: QuestionAsked, person: Person, told: str) -> None:
        async with person.attention() as keyboard:
            if person.beside:  # the pipe gets it once it is answered, and they see it now
                self.screen.say(told)
                lines = question_lines(asked, person.screen.look)
                person.screen.put("".join(f"{line}\n" for line in ("", *lines)))
            while True:
                said = await ask(asked, keyboard, person.screen)
                self._answering = asked.question
                try:
                    await self.task.answer(
                        asked.question,
                        said.answer,
                        text=said.text,
                        images=await asyncio.to_thread(pictures_in, said.text),
                        edited=said.edited,
                        always=said.always,
                        grant=said.grant,
                        choices=said.choices,
                        by="cli",
                    )
                    return
                except BadRequest as error:
                    person.screen.put(f"  {_complaint(error)}\n")
                    if asked.question not in {each.question for each in self.task.questions}:
                        return
                finally:
                    self._answering = ""

    def _terminal(self, event: TerminalEvent) -> None:
        if isinstance(event, AwaitingInput) and event.wants == "secret" and self._person is not None:
            try:
                terminal = self._registry.get(event.terminal)
            except TerminalNotFound:
                return
            if terminal.task == self.task.id and terminal.current is not None:
                self._start(pass_secret(terminal.current, event, self._person))

    async def _heard(self, line: str) -> None:
        """A line that was typed while it works: it is queued, unless it may be a secret."""
        assert self._person is not None
        if wants_secret(self._registry, self.task.id):  # typed a moment before we could ask for it
            self._person.screen.say("  a command asks for a secret: that line went nowhere, type it again when asked\n")
            return
        try:
            await self.task.say(line, await asyncio.to_thread(pictures_in, line))
        except TarmacError as error:
            self._person.screen.say(f"  {_complaint(error)}\n")

    # Stopping

    def _interrupted(self) -> bool:
        if self._offering is not None:  # the task is done: to leave is to accept
            return self._offering.cancel()
        if not self.task.running:
            return False
        self.screen.interrupted()
        self.task.cancel()
        return True

    def _goes_on(self, ended: Ended) -> bool:
        return self._person is not None and ended.why in ("interrupted", "idle") and not self.screen.broken

    async def _more(self) -> bool:
        """Whether the person wants more of a task that is done; else its result is accepted."""
        asked = next((each for each in self.task.questions if each.ask == "completion_result"), None)
        if asked is None:
            return False
        if self._person is not None and self._offers and not self.screen.broken:
            hint = self._person.screen.look.paint("2", "Enter accepts it and leaves; or say what is missing.")
            if await self._words(self._person, hint, offered=True):
                return True
        try:
            await self.task.answer(asked.question, "yes", by="cli")
        except BadRequest:  # somebody was quicker
            return self.task.metadata.outcome != "completed"
        return False

    async def _next(self, ended: Ended) -> bool:
        """What the person says to a task that stands still; False: nothing."""
        assert self._person is not None
        look = self._person.screen.look
        what = "– Stopped." if ended.why == "interrupted" else "It is your turn."
        hint = f"Say what to do now, or Enter to go on as before; Ctrl-C leaves ({self._after})."
        if ended.why == "idle":
            hint = f"Say what to do next; Ctrl-C or Ctrl-D leaves ({self._after})."
        lines = "\n".join(wrapped(f"{what} {hint}", look.columns - 1))
        said = await self._words(
            self._person, lines.replace(what, look.paint("33", what), 1), enter=ended.why != "idle"
        )
        return said is not None

    async def _words(self, person: Person, hint: str, *, enter: bool = True, offered: bool = False) -> bool | None:
        """Say the person's next words to the task; False: they pressed Enter, where that counts; None: they leave."""
        screen, prompt = person.screen, person.screen.look.paint("1;34", "❯ ")
        person.keyboard.forget()
        screen.say(f"\n{hint}\n{prompt}")
        while (line := await self._line(person, offered=offered)) is not None:
            if not line.strip() and enter:
                return False
            try:
                if line.strip():
                    await self.task.say(line.strip(), await asyncio.to_thread(pictures_in, line))
                    return True
            except BadRequest as error:
                screen.say(f"  {_complaint(error)}\n")
            screen.say(prompt)
        screen.say("\n")
        return None

    async def _line(self, person: Person, *, offered: bool) -> str | None:
        """What they type; of an offer, also Ctrl-C ends it."""
        if not offered:
            return await person.keyboard.line()
        self._offering = asyncio.ensure_future(person.keyboard.line())
        try:
            await asyncio.wait([self._offering])
            return None if self._offering.cancelled() else self._offering.result()
        finally:
            self._offering = None

    # What it started

    def _start(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        job = asyncio.create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    async def _rest(self) -> None:
        if self._person is not None:
            await self._person.rest()
        jobs = list(self._jobs)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        self._asking.clear()


def _complaint(error: TarmacError) -> str:
    return one_line(error.what) + (f" ({one_line(error.hint)})" if error.hint else "")
