"""What the person at the terminal is asked while a task works, and what they say unasked.

QuestionAsked ─attention→ ask ─Answer→ task.answer        one at a time, each bound to what was shown
AwaitingInput(secret) ─attention→ typed unseen → the program alone
a line typed meanwhile → task.say: queued
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace

from tarmac.cli.driven import Driven
from tarmac.cli.person import Person
from tarmac.cli.secret import hides_input, pass_secret, waiting_for_secrets
from tarmac.cli.turn import complaint
from tarmac.errors import BadRequest, TarmacError, TerminalNotFound
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.show.asking import ask
from tarmac.show.pictures import pictures_in
from tarmac.show.question import question_lines
from tarmac.show.screen import Screen
from tarmac.tasks.events import QuestionAnswered, QuestionAsked
from tarmac.terminals.events import AwaitingInput, TerminalEvent
from tarmac.terminals.pool import Pool


class Answering:
    """One person's answers to one task."""

    def __init__(self, task: Driven, registry: Pool, person: Person, told: Screen) -> None:
        self._task = task
        self._registry = registry
        self._person = person
        self._told = told
        self._jobs: set[asyncio.Task[None]] = set()
        self._asking: dict[str, asyncio.Task[None]] = {}  # questions on the screen
        self._answering = ""  # the question whose answer is on its way
        self._listens = False  # the keyboard is ours: not while it is the person's turn
        person.heard = self._heard
        person.unseen = lambda: hides_input(registry, task.id)
        registry.subscribe(self._terminal)
        task.type_secrets()

    def listen(self) -> None:
        """It works: take lines that are typed meanwhile; what was wanted of the person before is wanted still."""
        self._listens = True
        self._person.listen()
        for execution in waiting_for_secrets(self._registry, self._task.id):
            self._start(pass_secret(execution, self._person))

    def asked(self, question: QuestionAsked, told: str) -> None:
        """Get an answer; `told` is the question as others read it."""
        self._asking[question.question] = self._start(self._answer(question, told))

    def answered(self, answered: QuestionAnswered) -> None:
        """It is over, by whomever."""
        asking = self._asking.pop(answered.question, None)
        if asking is not None and answered.question != self._answering:  # elsewhere, or it is no longer asked
            asking.cancel()
            self._told.say("\n")

    async def rest(self) -> None:
        """Ask nothing, until `listen`."""
        self._listens = False
        await self._person.rest()
        jobs = list(self._jobs)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        self._asking.clear()

    async def _answer(self, asked: QuestionAsked, told: str) -> None:
        person = self._person
        async with person.attention() as keyboard:
            if person.beside:  # the pipe gets it once it is answered, and they see it now
                self._told.say(told)
                lines = [] if keyboard.taken else ["", *question_lines(asked, person.screen.look)]
                person.screen.put("".join(f"{line}\n" for line in lines))
            while True:
                if keyboard.taken:
                    why = "(the person could not be asked: their pager has the keyboard)"
                    said = Answer(AnswerKind.NO, text=why)
                else:
                    said = await ask(asked, keyboard, person.screen, lambda: self._task.hold(asked.question))
                person.screen.entered()
                self._answering = asked.question
                try:
                    images = tuple(await asyncio.to_thread(pictures_in, said.text))
                    await self._task.answer(asked.question, replace(said, images=images, by="cli"))
                    return
                except BadRequest as error:
                    person.screen.put(f"  {complaint(error)}\n")
                    if asked.question not in {each.question for each in self._task.questions}:
                        return
                finally:
                    self._answering = ""

    def _terminal(self, event: TerminalEvent) -> None:
        if isinstance(event, AwaitingInput) and event.wants == "secret" and self._listens:
            try:
                terminal = self._registry.get(event.terminal)
            except TerminalNotFound:
                return
            if terminal.task == self._task.id and terminal.current is not None:
                self._start(pass_secret(terminal.current, self._person))

    async def _heard(self, line: str) -> None:
        """A line that was typed while it works: it is queued, unless it may be a secret."""
        if hides_input(self._registry, self._task.id):  # typed a moment before we could ask for it
            self._person.screen.say("  a command asks for a secret: that line went nowhere, type it again when asked\n")
            return
        try:
            await self._task.say(line, await asyncio.to_thread(pictures_in, line))
        except TarmacError as error:
            self._person.screen.say(f"  {complaint(error)}\n")

    def _start(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        job = asyncio.create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job
