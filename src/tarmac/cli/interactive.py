"""A session with a person at the terminal: they type, the task works, questions come in between.

SessionUI ─text→ Interactive ─say→ task           ─answers→ task
          ←print─            ←events, signals─ task

The session outlives its tasks: `/clear` and `/resume` change the task, the screen stays. Leaving accepts a result that
is on the screen, and names every command that ends with the session.
"""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tarmac.app import App
from tarmac.cli.answer import (
    SecretWanted,
    SecretWatch,
    answer_question,
    complaint,
    hides_input,
    is_open,
    other_answer,
    pass_secret,
)
from tarmac.cli.driven import Driven, cannot_see, notes_before, status_of
from tarmac.cli.shutdown import Stop
from tarmac.cli.slash import Slash, next_level
from tarmac.errors import BadRequest, TarmacError
from tarmac.policy.approval import Answer, AnswerKind, Picture
from tarmac.server.joined_task import JoinedTask
from tarmac.show.editor_completion import Offer, SessionCompleter
from tarmac.show.look import Look, cut, harmless, look_of, one_line, width, wrapped
from tarmac.show.pictures import pictures_in
from tarmac.show.question import Choices
from tarmac.show.renderer import TaskRenderer
from tarmac.show.summary import money, spent
from tarmac.show.ui import SessionUI
from tarmac.tasks.auto import LEVELS, level_named
from tarmac.tasks.context import Ended
from tarmac.tasks.events import QUIET, QuestionAnswered, QuestionAsked, TaskEvent, UserSaid
from tarmac.tasks.signals import Signal
from tarmac.tasks.task import Task
from tarmac.tasks.views.metadata import Metadata

if TYPE_CHECKING:
    from tarmac.terminals.daemon.kept_terminal import KeptTerminal

Opened = AbstractAsyncContextManager[Driven]
BELL = "\a"


@dataclass(slots=True)
class Tasks:
    """How a session gets its tasks. None: it has the one task that it was given."""

    new: Callable[[str, Sequence[Picture]], Opened] | None = None
    old: Callable[[str], Opened] | None = None


@dataclass(slots=True)
class Interactive:
    """One session. Call `run` once."""

    app: App
    stop: Stop
    tasks: Tasks
    ui: SessionUI  # it is drawn already; `run` closes it
    look: Look = field(default_factory=lambda: look_of(sys.stdout, os.environ))
    header: str = ""
    task: Driven | None = None
    once: bool = False  # the session ends with the task
    starts: bool = True  # False: a task of before waits for the person's words
    after: str = ""  # what a person can do when it is over; "": as the task says
    level: str = ""
    ended: Ended = field(default_factory=lambda: Ended("idle"))
    renderer: TaskRenderer = field(init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _go: asyncio.Event = field(default_factory=asyncio.Event)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    # Questions, secrets that commands want, None: what shall become of the commands that run?
    _waiting: "asyncio.Queue[QuestionAsked | SecretWanted | None]" = field(default_factory=asyncio.Queue)
    _asking: "asyncio.Task[None] | None" = None
    _asked: str = ""  # the id of the question on the screen
    _unseen: dict[str, QuestionAsked] = field(default_factory=dict)  # those that wait for it to be answered
    _leaving: "asyncio.Task[None] | None" = None  # commands are sent to the background
    _saying: asyncio.Lock = field(default_factory=asyncio.Lock)  # the next words wait until the first have their task
    _own_words: str | None = None  # words on their way to the task: they are on the screen already
    _leave_task: Callable[[], object] = bool
    _stays: bool | None = None  # whether what can outlive the program shall; None: the person was not asked
    _warned: bool = False  # what still runs was named, and the person wants to leave all the same
    _slash: Slash = field(init=False)
    _models: Sequence[str] | None = None  # None: nobody asked for them yet

    def __post_init__(self) -> None:
        self.level = self.app.config.auto
        self._slash = Slash(self)
        self.ui.complete_with(SessionCompleter(self.app.project, self._slash.offered))
        self.renderer = TaskRenderer(self.look)
        self.ui.shows = self
        self.ui.on_submit = self._submitted
        self.ui.hands_over = lambda text: text.split()[0] == "/attach"
        self.ui.on_interrupt = self._interrupted
        self.ui.on_leave = self.leave
        self.ui.on_gone = lambda: self.leave(gone=True)
        self.ui.on_background = self._to_background
        self.ui.can_leave = lambda: self.renderer.can_leave
        self.ui.on_level = lambda: next_level(self)

    def commands(self) -> Mapping[str, Offer]:
        """Every slash command, with what it does."""
        return self._slash.offered()

    def model_names(self) -> Sequence[str]:
        """The models that can be used. They are looked up when somebody first asks, so the first answer is empty."""
        if self._models is None:
            self._models = ()
            self.ui.later(self._look_up_models())
        return self._models

    async def _look_up_models(self) -> None:
        from tarmac.cli.models import model_names

        self._models = tuple(await model_names(self.app.config.models_for("")))
        self.ui.offer_again()

    # The loop

    async def run(self, words: str = "", images: Sequence[Picture] = ()) -> int:
        """Run the session until the person leaves; return the exit status."""
        self.stop.interrupt = self._interrupted
        self.stop.elsewhere = lambda: self.ui.lent
        self.ui.later(asyncio.to_thread(_load_the_rest))
        try:
            async with self._worker(self._answer_questions()):
                if self.header:
                    self.tell(f"  {one_line(self.header)}", colour="2", indent="  ")
                if self.task is not None:
                    await self._show_task(self.task)
                    await self._begin(words, images)
                await self._loop()
                await self._farewell()
        finally:
            await self.ui.close()
            self._leave_task()
            self.stop.interrupt = None
            await self._stack.aclose()
        if self.ended.why not in ("completed", "idle"):
            said = f"task {self.task.id}" if self.task else "the task"
            sys.stderr.write(
                f"tarmac: {said} stopped\n  hint: {self.after or (self.task.afterwards if self.task else '')}\n"
            )
        return status_of(self.ended)

    async def _begin(self, words: str, images: Sequence[Picture]) -> None:
        assert self.task is not None
        if words or images:
            await self.task.say(words, images)
        if words or images or self.starts:
            self._go.set()
        else:
            self.tell(recap(self.task.metadata))

    async def _loop(self) -> None:
        left = asyncio.create_task(self._left.wait())
        try:
            while not self._left.is_set():
                go = asyncio.create_task(self._go.wait())
                await asyncio.wait({go, left}, return_when=asyncio.FIRST_COMPLETED)
                go.cancel()
                if self._left.is_set() or self.task is None:
                    continue
                self._go.clear()
                self.stop.number = None
                self.ended = await self.task.run_until_idle()
                self._tell_end()
                if self.once and self.ended.why != "interrupted":
                    self._left.set()
                if self.ended.why == "failed":
                    self.ended = Ended("idle") if self._left.is_set() else self.ended
        finally:
            left.cancel()

    def _tell_end(self) -> None:
        ended = self.ended
        if ended.why == "interrupted":
            self.ui.print(self.look.paint("35", "– Stopped. Say what to do instead."))
        elif ended.why == "failed" and ended.text:
            self.tell(f"✗ {one_line(ended.text)}", colour="31", indent="  ")
        if self.look.live and ended.why != "interrupted":
            self._notify("Tarmac: your turn")

    async def open(self, opened: Opened) -> None:
        """Make this the session's task; leave the one before."""
        self._leave_task()
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        self.task = None
        await self._show_task(await self._stack.enter_async_context(opened))

    async def _show_task(self, task: Driven) -> None:
        self.task = task
        self.renderer = TaskRenderer(self.look, meta=task.metadata)
        secrets = SecretWatch(self.app.registry, task, self._waiting.put_nowait)
        leave = task.subscribe(self._show)
        self._leave_task = lambda: (leave(), secrets.close())
        task.type_secrets()
        if isinstance(task, Task):
            task.when_woken(self._go.set)
        if isinstance(task, JoinedTask):
            self._show_joined(task)

            def changed(_: object) -> None:
                secrets.rows_changed()
                self.ui.changed()

            task.terminal_changed = changed
            secrets.again()
            return
        for note in await notes_before(self.app, task):
            self.ui.print(self.renderer.event(note))

    def _show_joined(self, task: JoinedTask) -> None:
        """What happened since the person's last words, and what is asked now."""
        self.level = task.level
        for event in task.recent:
            if not isinstance(event, QuestionAsked):
                self.ui.print(self.renderer.event(event))
        for event in task.questions:
            self._asks(event)

    def _let_go(self) -> None:
        """Stop the task; one that is joined goes on."""
        if isinstance(self.task, JoinedTask):
            self.task.leave()
        elif self.task is not None and self.task.running:
            self.task.cancel()

    async def close_task(self) -> None:
        """Have no task until the person says something."""
        self._let_go()
        self._leave_task()
        self._leave_task = bool
        await self._accept()
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        self.task = None
        self.ended = Ended("idle")

    # What is shown

    def live(self, columns: int) -> list[str]:
        """The lines above the editor."""
        return self.renderer.live(columns)

    def status(self, columns: int) -> str:
        """The line below the editor: mode, level, model, context, cost, what runs."""
        meta = self.task.metadata if self.task else None
        parts = [meta.mode if meta and meta.mode else self.app.config.mode, f"{self.level} (shift-tab)"]
        hosted = self.task is not None and not isinstance(self.task, Task | JoinedTask)  # its model is its own affair
        model = (meta.model if meta else "") or ("" if hosted else self.app.config.model) or ""
        parts.append(model.rpartition("/")[2] if model.startswith("scripted/") else model)
        if meta and meta.context_window and meta.context:
            parts.append(f"{meta.context / meta.context_window:.0%} context")
        if meta and meta.requests and meta.whole_cost is not None:
            parts.append(money(meta.whole_cost))
        running = len(self.app.registry.listing(busy=True))
        if isinstance(self.task, JoinedTask):
            running = sum(row["busy"] for row in self.task.terminal_rows)
        if running:
            parts.append(f"{running} running")
        if self.task is not None and (queued := len(getattr(self.task, "queue", ()))):
            parts.append(f"{queued} queued")
        text = "  " + " · ".join(one_line(part) for part in parts if part)
        return cut(text, columns - 1) if width(text) >= columns else text

    def _show(self, seq: int | None, thing: TaskEvent | Signal) -> None:
        self.renderer.look = self.look = self.ui.look = look_of(sys.stdout, os.environ)
        if isinstance(thing, Signal):
            self.ui.print(self.renderer.signal(thing))
        elif isinstance(thing, QuestionAsked):
            self._asks(thing)
        elif isinstance(thing, UserSaid) and thing.text == self._own_words:
            self.ui.print(self.renderer.typed(thing))
        else:
            if isinstance(thing, QuestionAnswered):
                self._show_question(thing.question)
            self.ui.print(self.renderer.event(thing))
        self.ui.changed()
        if isinstance(thing, QuestionAnswered) and thing.question == self._asked and self._asking:
            self._asking.cancel()
            if thing.answer is not AnswerKind.SKIP:
                self.ui.print(self.look.paint("35", f"  → {other_answer(thing)}"))

    def _asks(self, asked: QuestionAsked) -> None:
        """Show a question, or keep it until those before it are answered: keys answer the one that was shown last."""
        if asked.ask in QUIET:
            self.ui.print(self.renderer.event(asked))
            return
        self._unseen[asked.question] = asked
        if self._asking is None and self._waiting.empty():
            self._show_question(asked.question)
        self._waiting.put_nowait(asked)

    def _show_question(self, question: str) -> None:
        """Show it, unless it was shown already."""
        if (asked := self._unseen.pop(question, None)) is not None:
            self.ui.print(self.renderer.event(asked))

    def tell(self, text: str, *, colour: str = "", indent: str = "    ") -> None:
        """Print words of the session itself, broken between words where a line is too long."""
        lines = wrapped(text, self.look.columns - 1, indent=indent)
        self.ui.print("\n".join(self.look.paint(colour, line) if colour else line for line in lines))

    def _notify(self, text: str) -> None:
        """Ring the bell, and tell the terminal's own notifications (OSC 9, OSC 777)."""
        if self.look.live:
            self.ui.app.output.write_raw(f"\x1b]9;{text}\a\x1b]777;notify;Tarmac;{text}\a{BELL}")
            self.ui.app.output.flush()

    # What the person does

    async def _submitted(self, text: str) -> None:
        """The person pressed Enter: a command, or words for the task."""
        self._warned = self._warned and text.strip() == "/quit"
        shown = harmless(text.strip()).split("\n")
        kept = shown if len(shown) <= 12 else [*shown[:8], f"… {len(shown) - 8:,} lines more …"]
        lines = [f"❯ {kept[0]}", *(f"  {line}" for line in kept[1:])]
        self.ui.print(self.renderer.typed() + "\n" + "".join(self.look.paint("1;34", line) + "\n" for line in lines))
        try:
            if text.startswith("/"):
                text = await self._slash.run(text.strip())
            if text:
                await self.say(text)
        except TarmacError as error:
            self.tell(f"  {complaint(error)}", colour="31")
            self.ui.prefill(text)

    async def say(self, text: str) -> None:
        """Words for the task; the first ones open one."""
        async with self._saying:
            await self._say(text)

    async def _say(self, text: str) -> None:
        task = self.task
        if task is not None and hides_input(self.app.registry, task):
            raise BadRequest("a command asks for a secret: this line was not sent", hint="answer the question first")
        images = await asyncio.to_thread(pictures_in, text)
        model = (task.metadata.model if task else "") or self.app.config.model or ""
        if images and (blind := cannot_see(model, self.app.config)):
            self.tell(f"  ! {complaint(blind)}", colour="35")
        if task is None:
            if self.tasks.new is None:
                raise BadRequest("there is no task")
            self._own_words = text
            await self.open(self.tasks.new(text, images))
            self.ui.print(self.renderer.typed())
            self._own_words = None
            self._go.set()
            return
        self._own_words = text
        try:
            queued = await task.say(text, images)
        finally:
            self._own_words = None
        if queued is None:
            self._go.set()

    def _interrupted(self) -> bool:
        """Ctrl-C: stop what the task does now."""
        if self.task is None or not self.task.running:
            return False
        if self._asking:
            self._asking.cancel()
        self.task.cancel()
        return True

    def _to_background(self) -> None:
        """Ctrl-B: the task goes on, and so does the command that it waits for."""
        task = self.task
        if isinstance(task, JoinedTask):
            task.to_background()
            self.ui.hint("the command continues in the background")
            return
        if not isinstance(task, Task):  # none, or an agent that waits for its commands itself
            self.ui.hint("the task waits for no command")
            return

        async def leave() -> None:
            left = await task.to_background(by="cli")
            self.ui.hint("the command continues in the background" if left else "the task waits for no command")

        self._leaving = asyncio.create_task(leave())

    def leave(self, *, gone: bool = False) -> None:
        """End the session. What still runs is named first, and the person chooses. `gone`: nobody is there."""
        ends = self._still_running()
        if ends and not self._warned and not gone:
            self._warned = True
            self.tell(f"– Still running: {', '.join(ends)}", colour="35", indent="  ")
            if self._lasting():
                self._waiting.put_nowait(None)
            else:
                self.tell("  Ctrl-D or /quit again ends it with this session; or go on, /attach shows it.")
            return
        self._let_go()
        self._left.set()

    async def _ask_what_stays(self) -> None:
        """Commands whose terminals can outlive the program: end them, leave them, or stay here."""
        keys = (("e", "end what runs"), ("l", "leave it running"), ("s", "stay in the session"))
        answer = (await self.ui.ask(Choices(keys=keys)) or "e").strip().lower()
        if answer in ("e", "end", "l", "leave"):
            self._stays = answer in ("l", "leave")
            self.leave()
        else:
            self._warned = False

    async def _farewell(self) -> None:
        """Accept what is done, and name what ends with the session and what goes on."""
        await self._accept()
        if self.task is None:
            return
        for terminal in self._lasting() if self._stays is not None else ():
            if not self._stays:
                await self.app.registry.kill(terminal.id)
                continue
            if (running := terminal.current) is not None:
                self.tell(f"  `{one_line(running.command)}` goes on in {terminal.id}")
            await terminal.leave()
        if ends := self._still_running():
            self.tell(f"– Ends with this session: {', '.join(ends)}", colour="35", indent="  ")
        if self.task.metadata.requests:
            self.tell(f"  {self.after or self.task.afterwards}", colour="2")

    def _still_running(self) -> list[str]:
        return [
            f"`{one_line(execution.command)}` in {terminal.id}"
            for terminal in self.app.registry.listing(busy=True)
            if (execution := terminal.current) is not None
        ]

    def _lasting(self) -> "list[KeptTerminal]":
        """Terminals in which something runs, and that can outlive the program."""
        if not self.app.config.terminals.outlive:
            return []
        from tarmac.terminals.daemon.kept_terminal import KeptTerminal

        return [each for each in self.app.registry.listing(busy=True) if isinstance(each, KeptTerminal)]

    async def _accept(self) -> None:
        if self.task is None or isinstance(self.task, JoinedTask):
            return
        for asked in self.task.questions:
            if asked.ask == "completion_result":
                try:
                    await self.task.answer(asked.question, Answer(AnswerKind.YES, by="cli"))
                except BadRequest:  # somebody was quicker
                    pass

    def switch_level(self, level: str) -> None:
        """What runs without asking, from now on."""
        named = level_named(level)
        if named is None:
            raise BadRequest(f"there is no level `{level}`", hint=", ".join(LEVELS))
        self.level = level = named
        if isinstance(self.task, Task):
            self.app.switch_level(self.task, level)
        elif isinstance(self.task, JoinedTask):
            self.task.post("level", level=level)
        self.ui.changed()

    # Questions

    @asynccontextmanager
    async def _worker(self, work: Coroutine[object, object, None]) -> AsyncIterator[None]:
        job = asyncio.create_task(work)
        try:
            yield
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)

    async def _answer_questions(self) -> None:
        """Ask one thing after the other."""
        while True:
            thing = await self._waiting.get()
            if thing is None:
                work = self._ask_what_stays()
            elif not isinstance(thing, QuestionAsked):
                work = self._pass_secret(thing)
            elif self.task is not None and is_open(self.task, thing):
                work = self._answer(thing)
            else:
                continue
            self._asking = asyncio.create_task(work)
            [failed] = await asyncio.gather(self._asking, return_exceptions=True)
            self._asking, self._asked = None, ""
            if isinstance(failed, Exception):  # else the task would wait, and nobody would know why
                self.tell(f"✗ This can't be asked here: {one_line(str(failed) or type(failed).__name__)}", colour="31")
                self.tell("  `tarmac join` in another terminal can answer it; Ctrl-C stops the task.", colour="2")

    async def _answer(self, asked: QuestionAsked) -> None:
        task = self.task
        assert task is not None

        def sent(on_its_way: bool) -> None:
            self._asked = "" if on_its_way else asked.question  # an answer on its way must not cancel us

        sent(False)
        self._show_question(asked.question)
        self._notify("Tarmac asks you something")
        levels = isinstance(task, Task | JoinedTask)
        allow_edits = partial(self.switch_level, "edits") if levels else None
        await answer_question(task, asked, self.ui, sent=sent, allow_edits=allow_edits, commands=self.commands())

    # Secrets

    async def _pass_secret(self, wanted: SecretWanted) -> None:
        if wanted.prompt() is not None:
            self._notify("Tarmac: a command asks for a secret")
            await pass_secret(wanted, self.ui)


def _load_the_rest() -> None:
    """What an answer needs, before it comes, and in a thread: keys are drawn meanwhile."""
    from tarmac.show.rich_markdown import warm_up

    warm_up()
    gc.freeze()  # what was imported stays: to look through it for garbage held a key up for 50 ms


def recap(meta: Metadata) -> str:
    """What was asked, how it stands, what is open, and what it cost."""
    state = {"completed": "done", "aborted": "ended before it was done"}.get(meta.outcome or "", "not done yet")
    lines = [f"  You asked: {one_line(meta.name)[:200]}", f"  It is {state}. {spent(meta)}"]
    if changed := [path for path, _ in list(meta.files.items())[-5:]]:
        lines.append(f"  Files it knows: {', '.join(one_line(str(path)) for path in changed)}")
    lines += [
        f"  {'▸' if todo.status == 'doing' else '☐'} {one_line(todo.text)}"
        for todo in meta.todos
        if todo.status != "done"
    ]
    return "\n".join([*lines, "  Nothing is sent to the model until you say something."])
