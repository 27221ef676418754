"""A task at work, and the person (or the pipe) before it: shown, asked, stopped, gone on with.

task ─facts, signals→ Door ─text→ screen            (or JSON lines)
     ←answers, words─      ←keys─ keyboard

Ctrl-C stops what the task does now; at the keyboard one can then say what to do instead. A second one ends it. However
it ends, it can be resumed.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from tarmac.cli.stopping import Stop
from tarmac.errors import BadRequest, SecretNotAsked, TarmacError, TerminalNotFound
from tarmac.events import TaskId
from tarmac.show.asking import ask, ask_secret
from tarmac.show.harmless import one_line
from tarmac.show.keyboard import Keyboard
from tarmac.show.records import record, signal_record
from tarmac.show.screen import Screen
from tarmac.show.teller import Teller
from tarmac.tasks.audience import Listener
from tarmac.tasks.desk import Ended
from tarmac.tasks.events import (
    RESTING,
    Answer,
    Choice,
    MessageId,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    TaskEvent,
)
from tarmac.tasks.metadata import Metadata
from tarmac.tasks.signals import Signal
from tarmac.tasks.task import Picture
from tarmac.terminals.events import AwaitingInput, TerminalEvent
from tarmac.terminals.execution import Execution
from tarmac.terminals.registry import TerminalRegistry

STATUS = {
    "completed": 0,
    "idle": 0,
    "failed": 1,
    "refused": 1,
    "limit": 5,
    "paused": 5,
    "interrupted": 130,
    "aborted": 130,
}
LONGEST = 86_400.0  # seconds that a secret is waited for


class Driven(Protocol):
    """What a door needs: a Task, or an agent that we host (`tarmac.acp.host`)."""

    @property
    def id(self) -> TaskId: ...
    @property
    def afterwards(self) -> str: ...
    @property
    def metadata(self) -> Metadata: ...
    @property
    def attended(self) -> bool: ...
    @property
    def running(self) -> bool: ...
    @property
    def questions(self) -> tuple[QuestionAsked, ...]: ...
    def subscribe(self, listener: Listener) -> Callable[[], None]: ...
    async def say(self, text: str, images: Sequence[Picture] = ()) -> MessageId | None: ...
    async def answer(
        self,
        question: QuestionId,
        answer: Answer,
        *,
        text: str = "",
        choices: Iterable[Choice] = (),
        edited: str | None = None,
        always: str = "",
        grant: int = 0,
        by: str = "",
    ) -> None: ...
    def cancel(self) -> None: ...
    async def run_until_idle(self) -> Ended: ...


class Door:
    """One task in one terminal, or in a pipe."""

    def __init__(
        self,
        task: Driven,
        registry: TerminalRegistry,
        screen: Screen,
        teller: Teller,
        *,
        keyboard: Keyboard | None,
        as_json: bool,
        yes: str = "",
        offers: bool = True,
    ) -> None:
        self.task = task
        self._registry = registry
        self.screen = screen
        self.teller = teller
        self._keyboard = keyboard  # None: nobody is there
        self._json = as_json
        self._yes = yes  # by whose word everything is allowed: only for what is known beforehand
        self._offers = offers  # a task that is done may go on: the person is asked what is missing
        self._offering: asyncio.Future[str | None] | None = None
        self._hands = asyncio.Lock()  # who has the keyboard
        self._hearing: asyncio.Task[None] | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        self._asking: dict[str, asyncio.Task[None]] = {}  # questions on the screen
        self._answering = ""  # the question whose answer is on its way

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
                self._listen()
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
        if self._json:
            found = signal_record(thing) if isinstance(thing, Signal) else record(seq or 0, thing)
            self.screen.say(json.dumps(found) + "\n")
        else:
            told = self.teller.signal(thing) if isinstance(thing, Signal) else self.teller.event(thing)
            self.screen.say(told)
            self.screen.status(self.teller.status)
        if self.screen.broken:
            self.task.cancel()
        if isinstance(thing, QuestionAsked) and self._yes:
            self._start(self.task.answer(thing.question, "yes", by=f"auto: {self._yes}"))
        elif isinstance(thing, QuestionAsked) and self._keyboard is not None and thing.ask not in RESTING:
            self._asking[thing.question] = self._start(self._answer(thing))
        elif isinstance(thing, QuestionAnswered):
            self._answered(thing)

    def _answered(self, answered: QuestionAnswered) -> None:
        asking = self._asking.pop(answered.question, None)
        if asking is not None and answered.question != self._answering:  # elsewhere, or it is no longer asked
            asking.cancel()
            self.screen.say("\n")

    # Asking

    async def _answer(self, asked: QuestionAsked) -> None:
        assert self._keyboard is not None
        async with self._keys() as keyboard:
            while True:
                said = await ask(asked, keyboard, self.screen)
                self._answering = asked.question
                try:
                    await self.task.answer(
                        asked.question,
                        said.answer,
                        text=said.text,
                        edited=said.edited,
                        always=said.always,
                        grant=said.grant,
                        choices=said.choices,
                        by="cli",
                    )
                    return
                except BadRequest as error:
                    self.screen.put(f"  {one_line(error.what)}{f' ({one_line(error.hint)})' if error.hint else ''}\n")
                    if asked.question not in {each.question for each in self.task.questions}:
                        return
                finally:
                    self._answering = ""

    def _terminal(self, event: TerminalEvent) -> None:
        if isinstance(event, AwaitingInput) and event.wants == "secret" and self._keyboard is not None:
            try:
                terminal = self._registry.get(event.terminal)
            except TerminalNotFound:
                return
            if terminal.task == self.task.id and terminal.current is not None:
                self._start(self._secret(terminal.current, event))

    async def _secret(self, execution: Execution, event: AwaitingInput) -> None:
        """A secret is the person's alone: from their keyboard to the program, past the task, its log and the model."""
        async with self._keys() as keyboard:
            waiting = execution.waiting
            if waiting is None or waiting.wants != "secret":
                return
            typing = asyncio.create_task(ask_secret(event.prompt, event.name, keyboard, self.screen))
            over = asyncio.create_task(execution.ended(LONGEST))
            try:
                await asyncio.wait({typing, over}, return_when=asyncio.FIRST_COMPLETED)
                if typing.done() and (secret := typing.result()) is not None:
                    await execution.send_secret(secret, timeout=2)
            except SecretNotAsked:
                self.screen.put("  it no longer asks for it: nothing was typed\n")
            except TarmacError as error:
                self.screen.put(f"  {one_line(error.what)}\n")
            finally:
                for each in (typing, over):
                    each.cancel()
                await asyncio.gather(typing, over, return_exceptions=True)

    # Hearing

    @asynccontextmanager
    async def _keys(self) -> AsyncIterator[Keyboard]:
        """The keyboard, for one question at a time."""
        assert self._keyboard is not None
        async with self._hands:
            await self._deaf()
            with self.screen.held():
                yield self._keyboard
            self._listen()

    def _listen(self) -> None:
        """Take lines that are typed while it works: they are queued."""
        if self._keyboard is not None and self._hearing is None:
            self._hearing = asyncio.create_task(self._hear(self._keyboard))

    async def _hear(self, keyboard: Keyboard) -> None:
        while (line := await keyboard.line()) is not None:
            if line.strip() and not self._hands.locked():
                try:
                    await self.task.say(line.strip())
                except TarmacError as error:
                    self.screen.say(f"  {one_line(error.what)}\n")

    async def _deaf(self) -> None:
        hearing, self._hearing = self._hearing, None
        if hearing is not None:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    # Stopping

    def _interrupted(self) -> bool:
        if self._offering is not None:  # the task is done: to leave is to accept
            return self._offering.cancel()
        if not self.task.running:
            return False
        self.task.cancel()
        return True

    def _goes_on(self, ended: Ended) -> bool:
        return self._keyboard is not None and ended.why in ("interrupted", "idle") and not self.screen.broken

    async def _more(self) -> bool:
        """Whether the person wants more of a task that is done; else its result is accepted."""
        asked = next((each for each in self.task.questions if each.ask == "completion_result"), None)
        if asked is None:
            return False
        line: str | None = None
        if self._keyboard is not None and self._offers and not self.screen.broken:
            self._keyboard.forget()
            hint = self.screen.look.paint("2", "Enter accepts it and leaves; or say what is missing.")
            self.screen.say(f"\n{hint}\n{self.screen.look.paint('1;34', '❯ ')}")
            self._offering = asyncio.ensure_future(self._keyboard.line())
            await asyncio.wait([self._offering])
            line = None if self._offering.cancelled() else self._offering.result()
            self._offering = None
            self.screen.say("" if line is not None else "\n")
        if line and line.strip():
            await self.task.say(line.strip())
            return True
        try:
            await self.task.answer(asked.question, "yes", by="cli")
        except BadRequest:  # somebody was quicker
            return self.task.metadata.outcome != "completed"
        return False

    async def _next(self, ended: Ended) -> bool:
        """What the person says to a task that stands still; False: nothing."""
        assert self._keyboard is not None
        what = "– Stopped." if ended.why == "interrupted" else "It is your turn."
        hint = f"Say what to do now, or Enter to go on as before; Ctrl-C leaves ({self.task.afterwards})."
        if ended.why == "idle":
            hint = f"Say what to do next; Ctrl-C or Ctrl-D leaves ({self.task.afterwards})."
        self._keyboard.forget()
        self.screen.say(f"\n{self.screen.look.paint('33', what)} {hint}\n{self.screen.look.paint('1;34', '❯ ')}")
        while (line := await self._keyboard.line()) is not None:
            if line.strip():
                await self.task.say(line.strip())
                return True
            if ended.why == "interrupted":
                return True
            self.screen.say(self.screen.look.paint("1;34", "❯ "))
        self.screen.say("\n")
        return False

    # What it started

    def _start(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        job = asyncio.create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    async def _rest(self) -> None:
        await self._deaf()
        jobs = list(self._jobs)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        self._asking.clear()


def status_of(ended: Ended) -> int:
    """The exit status that says how it ended."""
    return STATUS[ended.why]


def tell_end(ended: Ended, task: Driven, screen: Screen, *, as_json: bool) -> None:
    """The last words: how it ended, and how one goes on."""
    if as_json:
        end = {"end": ended.why, "text": ended.text, "task": task.id, "exit_status": status_of(ended)}
        screen.say(json.dumps(end) + "\n")
        return
    sys.stdout.flush()
    if ended.why in ("completed", "idle"):
        return
    said = {"interrupted": "stopped", "limit": "a limit is reached", "refused": "the model refused", "aborted": "ended"}
    what = f"tarmac: {said.get(ended.why, 'the task failed')}"
    text = one_line(ended.text)
    if text and ended.why not in ("interrupted", "aborted"):
        what += f": {text}"
    sys.stderr.write(f"{what}\n  hint: {task.afterwards}\n")
