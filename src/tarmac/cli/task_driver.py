"""Drive an open task from this process's terminal or pipe: show it, answer it, stop it, continue it.

drive()  opens the screen and the keyboard, runs the task, and returns the exit status
task ─facts, signals→ TaskDriver ─text→ screen            (or JSON lines)
     ←answers, words─      ←keys─ person

PersonAnswers   while the task works: questions one at a time, each bound to what was shown; secrets go to the program
                alone; a line typed meanwhile is queued
PersonTurn      while it stands still: the prompt (❯) is theirs

Ctrl-C stops what the task does now; at the keyboard one can then say what to do instead. A second one ends it. However
it ends, it can be resumed.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from tarmac.app import App
from tarmac.cli.answer import (
    SecretWanted,
    SecretWatch,
    answer_question,
    complaint,
    hides_input,
    other_answer,
    pass_secret,
)
from tarmac.cli.driven import Driven, notes_before, status_of
from tarmac.cli.exit_status import complain
from tarmac.cli.person import Person, at_terminal
from tarmac.cli.shutdown import Stop
from tarmac.errors import BadRequest, TarmacError
from tarmac.paths import state_dir
from tarmac.policy.approval import Answer, AnswerKind, Authority, Picture
from tarmac.server.joined_task import JoinedTask
from tarmac.show.json_records import record, signal_record
from tarmac.show.look import Look, cut, look_of, one_line, wrapped
from tarmac.show.pictures import pictures_in
from tarmac.show.question import question_lines
from tarmac.show.renderer import TaskRenderer
from tarmac.show.screen import Screen
from tarmac.tasks.context import Ended
from tarmac.tasks.events import QUIET, CallId, CallJudged, QuestionAnswered, QuestionAsked, TaskEvent, UserSaid
from tarmac.tasks.signals import Signal
from tarmac.terminals.environment import wipe_own_environment
from tarmac.terminals.pool import Pool

if TYPE_CHECKING:
    from tarmac.cli.interactive import Tasks


class TaskDriver:
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
        self._answering = PersonAnswers(task, registry, person, screen) if person else None
        self._turn = PersonTurn(task, person, after=after or task.afterwards) if person else None
        self._person = person

    async def drive(self, stop: Stop, words: str = "", images: Sequence[Picture] = ()) -> Ended:
        """Run it to its end, with what the person wants in between; `words` are theirs to begin with."""
        open_before = self.task.questions if isinstance(self.task, JoinedTask) and not self._json else ()
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
                for asked in open_before:
                    if asked in self.task.questions:
                        self.show(None, asked)
                open_before = ()
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
            if not self._will_ask(thing):
                self.screen.say(told)
        if self.screen.broken:
            self.task.cancel()
        if isinstance(thing, QuestionAsked) and self._yes and thing.ask != "command_output":
            self._allow(thing)
        elif isinstance(thing, QuestionAsked) and self._answering and self._will_ask(thing):
            self._answering.asked(thing, told)
        elif isinstance(thing, QuestionAnswered) and self._answering:
            self._answering.answered(thing)
        elif isinstance(thing, CallJudged) and thing.decision == "deny" and thing.by == Authority.NOBODY:
            self.denied.add(thing.call)
            if thing.risk == "critical":
                self.critical.add(thing.call)

    def _will_ask(self, thing: TaskEvent | Signal) -> bool:
        """Whether the person is asked this: it is shown when they can answer."""
        if not isinstance(thing, QuestionAsked) or thing.ask in QUIET:
            return False
        return self._answering is not None and not self._yes

    def _told(self, thing: TaskEvent | Signal) -> str:
        if isinstance(thing, Signal):
            return self.renderer.signal(thing)
        if self._turn and self._turn.typed(thing):
            return self.renderer.typed(thing)
        if isinstance(thing, QuestionAnswered) and thing.by == "cli" and self._person and not self._person.beside:
            return ""  # the dialog has said so
        told = self.renderer.event(thing)
        if told and isinstance(thing, QuestionAsked) and isinstance(self.task, JoinedTask) and not self._answering:
            told += f"  It can't be answered from here: use `tarmac join {self.task.id}` on a terminal, or the page.\n"
        return told

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
        if asked is None or isinstance(self.task, JoinedTask):
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


class PersonAnswers:
    """One person's answers to one task, and what they say unasked."""

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
        person.unseen = lambda: hides_input(registry, task)
        self._secrets = SecretWatch(registry, task, self._secret_wanted)
        if isinstance(task, JoinedTask):
            task.terminal_changed = lambda _: self._secrets.rows_changed()
        task.type_secrets()

    def listen(self) -> None:
        """It works: take lines that are typed meanwhile; what was wanted of the person before is wanted still."""
        self._listens = True
        self._person.listen()
        self._secrets.again()

    def asked(self, question: QuestionAsked, told: str) -> None:
        """Get an answer; `told` is the question as others read it."""
        self._asking[question.question] = self._start(self._answer(question, told))

    def answered(self, answered: QuestionAnswered) -> None:
        """It is over, by whomever."""
        asking = self._asking.pop(answered.question, None)
        if asking is not None and answered.question != self._answering:  # elsewhere, or it is no longer asked
            asking.cancel()
            who = f"  → {other_answer(answered)}\n" if answered.answer is not AnswerKind.SKIP else ""
            self._told.say(f"\n{who}")

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
            if keyboard.taken:
                self._told.say(told)
                why = "(the user could not be asked: their pager has the keyboard)"
                self._sent(asked, on_its_way=True)
                await self._task.answer(asked.question, Answer(AnswerKind.NO, text=why, by="cli"))
                return
            keyboard.forget()  # before the question is shown: whoever reads it can answer it at once
            if person.beside:  # the pipe gets it once it is answered, and they see it now
                self._told.say(told)
                told = "".join(f"{line}\n" for line in ("", *question_lines(asked, person.screen.look)))
            person.screen.put(told)
            await answer_question(
                self._task, asked, person, sent=lambda on_its_way: self._sent(asked, on_its_way=on_its_way)
            )

    def _sent(self, asked: QuestionAsked, *, on_its_way: bool) -> None:
        self._answering = asked.question if on_its_way else ""

    async def _pass_secret(self, wanted: SecretWanted) -> None:
        async with self._person.attention() as keyboard:
            if not keyboard.taken:
                await pass_secret(wanted, self._person)

    def _secret_wanted(self, wanted: SecretWanted) -> None:
        if self._listens:
            self._start(self._pass_secret(wanted))

    async def _heard(self, line: str) -> None:
        """A line that was typed while it works: it is queued, unless it may be a secret."""
        if hides_input(self._registry, self._task):  # typed a moment before we could ask for it
            self._person.screen.say(
                "  A command asks for a secret. Your line was not sent: type it again when you are asked.\n"
            )
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


class PersonTurn:
    """The person's turn in one task. What they type stands on the screen, so it is not told a second time (`typed`)."""

    def __init__(self, task: Driven, person: Person, *, after: str) -> None:
        self._task = task
        self._person = person
        self._after = after  # what can be done once it was left
        self._offering: asyncio.Future[str | None] | None = None
        self._typed: str | None = None  # words on their way to the task

    def typed(self, event: object) -> bool:
        """Whether these words are on the screen already, where they were typed."""
        return isinstance(event, UserSaid) and event.text == self._typed and not self._person.beside

    def accept(self) -> bool:
        """Ctrl-C where a result is offered: to leave is to accept."""
        return self._offering is not None and self._offering.cancel()

    async def offer(self) -> bool:
        """Whether they want more of a task that is done."""
        hint = wrapped("Enter accepts it and leaves; or say what is missing.", self._person.screen.look.columns - 1)
        return bool(await self._words("\n".join(hint), offered=True))

    async def next(self, ended: Ended) -> bool:
        """What they say to a task that stands still; False: nothing."""
        look = self._person.screen.look
        what = "– Stopped." if ended.why == "interrupted" else "It is your turn."
        hint = f"Say what to do now, or Enter to go on as before; Ctrl-C leaves ({self._after})."
        if ended.why == "idle":
            hint = f"Say what to do next; Ctrl-C or Ctrl-D leaves ({self._after})."
        lines = "\n".join(wrapped(f"{what} {hint}", look.columns - 1))
        said = await self._words(lines.replace(what, look.paint("35", what), 1), enter=ended.why != "idle")
        return said is not None

    async def _words(self, hint: str, *, enter: bool = True, offered: bool = False) -> bool | None:
        """Say their next words to the task; False: they pressed Enter, where that counts; None: they leave."""
        screen, prompt = self._person.screen, self._person.screen.look.paint("1;34", "❯ ")
        if self._person.keyboard.taken:
            return None
        self._person.keyboard.forget()
        screen.say(f"\n{hint}\n{prompt}")
        while (line := await self._line(offered=offered)) is not None:
            screen.entered()
            if not line.strip() and enter:
                return False
            try:
                if line.strip():
                    await self._say(line.strip())
                    return True
            except BadRequest as error:
                screen.say(f"  {complaint(error)}\n")
            screen.say(prompt)
        screen.say("\n")
        return None

    async def _say(self, text: str) -> None:
        images = await asyncio.to_thread(pictures_in, text)
        self._typed = text
        try:
            await self._task.say(text, images)
        finally:
            self._typed = None

    async def _line(self, *, offered: bool) -> str | None:
        """What they type; of an offer, also Ctrl-C ends it."""
        if not offered:
            return await self._person.keyboard.line()
        self._offering = asyncio.ensure_future(self._person.keyboard.line())
        try:
            await asyncio.wait([self._offering])
            return None if self._offering.cancelled() else self._offering.result()
        finally:
            self._offering = None


async def drive(
    app: App,
    task: Driven,
    stop: Stop,
    *,
    as_json: bool,
    words: str = "",
    images: Sequence[Picture] = (),
    yes: str = "",
    offers: bool = True,
    header: str = "",
    after: str = "",
    tasks: "Tasks | None" = None,
    starts: bool = True,
) -> int:
    """Run it; the exit status. It goes on with `words`; `yes`: by whose word all that is asked is allowed.

    `offers`: when it is done, ask what is missing.
    `header` says what it is, where it is not a task of a model of ours; `after` what can be done when it was stopped.
    """
    look = Look() if as_json else look_of(sys.stdout, os.environ)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    wipe_own_environment(app.config.terminals)
    if task.attended and not yes and not as_json and can_be_interactive(look):
        from tarmac.cli.interactive import Interactive, Tasks
        from tarmac.show.ui import SessionUI

        said = header or _header(app, task)
        ui = SessionUI(look, history=state_dir(os.environ) / "history")
        session = Interactive(
            app,
            stop,
            tasks or Tasks(),
            ui,
            look=look,
            header=said,
            task=task,
            starts=starts,
            once=not offers,
            after=after,
        )
        async with ui.running():
            return await session.run(words, images)
    screen = Screen(sys.stdout, look)
    renderer = TaskRenderer(look, meta=task.metadata)
    after = after or task.afterwards
    with at_terminal(screen) if task.attended and not yes else nullcontext() as person:
        driver = TaskDriver(
            task, app.registry, screen, renderer, person=person, as_json=as_json, yes=yes, offers=offers, after=after
        )
        if not as_json:
            _follow_terminal(screen, renderer, person)
        await _begin(app, task, screen, renderer, header, as_json=as_json)
        try:
            ended = await driver.drive(stop, words, images)
        except asyncio.CancelledError:
            screen.quiet()
            if not as_json:
                sys.stderr.write(f"\ntarmac: stopped\n  hint: {after}\n")
            raise
    tell_end(
        ended, task, screen, after=after, denied=len(driver.denied), critical=len(driver.critical), as_json=as_json
    )
    if screen.broken:
        raise BrokenPipeError
    return status_of(ended)


def can_be_interactive(look: Look) -> bool:
    """Whether the session's editor can be drawn: a terminal on both sides that can move its cursor."""
    return look.live and sys.stdin.isatty() and sys.stdout.isatty()


def _follow_terminal(screen: Screen, renderer: TaskRenderer, person: Person | None) -> None:
    """Its size may change, and after Ctrl-Z and `fg` the line for what is under way is gone."""
    loop = asyncio.get_running_loop()

    def resized() -> None:
        screen.look = renderer.look = look_of(sys.stdout, os.environ)

    if screen.look.live:
        loop.add_signal_handler(signal.SIGWINCH, resized)
        loop.add_signal_handler(signal.SIGCONT, screen.again)
    if person is not None:
        loop.add_signal_handler(signal.SIGCONT, person.again)


async def _begin(app: App, task: Driven, screen: Screen, renderer: TaskRenderer, header: str, *, as_json: bool) -> None:
    """The first lines: what it is; in JSON all that was before."""
    if as_json:
        await _tell_past(app, task, screen)
        return
    look = screen.look
    if task.metadata.requests and not isinstance(task, JoinedTask):
        screen.say(look.paint("1;34", _fit(f"❯ {one_line(task.metadata.name)}", look)) + "\n")
    said = one_line(header) if header else _header(app, task)
    lines = wrapped(said, look.columns - 3) if look.live else [said]
    screen.say("".join(look.paint("2", f"  {line}") + "\n" for line in lines) + "\n")
    recent = task.recent if isinstance(task, JoinedTask) else await notes_before(app, task)
    still_open = {asked.question for asked in task.questions}
    for event in recent:
        if not (isinstance(event, QuestionAsked) and event.question in still_open):  # the driver shows these
            screen.say(renderer.event(event))


def _header(app: App, task: Driven) -> str:
    """Which task, which model, and what runs without asking."""
    model = app.config.model or task.metadata.model
    if model.startswith("scripted/"):
        model = f"the script {model.rpartition('/')[2]}, no model"
    auto = app.config.auto
    level = "" if auto == "ask" else f" · --auto {auto}"
    before = " · goes on" if task.metadata.requests else ""
    return one_line(f"task {task.id} · {model} · {task.metadata.mode or app.config.mode}{level}{before}")


def _fit(line: str, look: Look) -> str:
    return cut(line, look.columns - 1) if look.live else line


async def _tell_past(app: App, task: Driven, screen: Screen) -> None:
    """In JSON nothing is missing: what the log had before anybody could listen."""
    for seq, event in enumerate((await app.store.read(task.id)).events, 1):
        screen.say(json.dumps(record(seq, event)) + "\n")


def tell_end(
    ended: Ended, task: Driven, screen: Screen, *, after: str, denied: int, critical: int, as_json: bool
) -> None:
    """The last words: how it ended, and how one goes on. `denied`: calls that nobody could allow; some `critical`."""
    if as_json:
        end = {"end": ended.why, "text": ended.told, "task": task.id, "exit_status": status_of(ended)}
        screen.say(json.dumps(end) + "\n")
        return
    sys.stdout.flush()
    said = {"interrupted": "stopped", "refused": "the model refused", "aborted": "ended", "failed": "the task failed"}
    text = one_line(ended.text) if ended.why not in ("interrupted", "aborted") else ""
    if ended.why == "limit" and screen.look.live:  # it stands right above
        sys.stderr.write(f"  hint: {after}\n")
    elif ended.why not in ("completed", "idle"):
        what = said.get(ended.why, "" if text else "a limit is reached")
        hints = [ended.hint] if text and ended.hint else []
        complain(": ".join(each for each in (what, text) if each), hint="\n  hint: ".join([*hints, after]))
    if denied:
        calls = f"{denied} call{'s were' if denied > 1 else ' was'} denied: nobody is here to be asked"
        hint = "--auto edits, workspace or all says what may be done without asking; on a terminal you are asked"
        if critical == denied:
            hint = "only a person can allow critical commands: run this on a terminal"
        complain(calls, hint=hint)
