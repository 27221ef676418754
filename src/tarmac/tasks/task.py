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
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from tarmac.calls.call_judge import ActionPolicy
from tarmac.errors import BadRequest, StateUnavailable, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.models.messages import Blob
from tarmac.models.provider import Model
from tarmac.policy import Execute
from tarmac.policy.approval import Answer, AnswerKind, Picture
from tarmac.policy.approval import digest as request_digest
from tarmac.policy.plan import environment as command_environment
from tarmac.policy.trial import Trial, try_command
from tarmac.prompts.modes import Modes
from tarmac.tasks import events as e
from tarmac.tasks.auto import Auto
from tarmac.tasks.checkpoints import Checkpoints, Fate, Restoration, RestoredFile, undone_text
from tarmac.tasks.context import Editor, Ended, TaskSettings, find_mode, now
from tarmac.tasks.engine import Engine
from tarmac.tasks.log import TaskLog
from tarmac.tasks.questions import Questions
from tarmac.tasks.signals import Listener
from tarmac.tasks.state import TaskState, digest_of
from tarmac.tasks.subtasks import OpenChild, Subtasks
from tarmac.tasks.talk import Queue
from tarmac.tasks.views.file_history import FileHistory
from tarmac.tasks.views.metadata import Metadata
from tarmac.terminals.terminal import Terminal
from tarmac.tools.edit.unified_diff import FileDiff
from tarmac.tools.execute_command import short
from tarmac.tools.servers import Hub
from tarmac.tools.tool import EditorBuffers


class Task:
    """An open task. Get one from `App.create_task` or `App.resume_task`."""

    def __init__(
        self,
        state: TaskState,
        past: Sequence[e.TaskEvent],
        open_model: Callable[[str], Model],
        open_child: OpenChild | None = None,
    ) -> None:
        self._state = state
        self._open_model = open_model
        self._queue = Queue(state.context.log, past)
        self._questions = Questions(state.context.log, state.waits)
        self._questions.before_words = self._queue.take
        self._subtasks = Subtasks(state, self._questions, past, open_child) if open_child else None
        self._engine = Engine(state, self._questions, self._queue, past, self._subtasks)
        self._result = next((each.result for each in reversed(past) if isinstance(each, e.TaskCompleted)), None)
        self._rest_listeners: list[Callable[[], object]] = []
        self._retired: list[Model] = []
        self._warned = False
        self._told_secrets = False

    # What it is

    @property
    def id(self) -> TaskId:
        return self._state.context.task

    @property
    def afterwards(self) -> str:
        """What a person can do with it later."""
        return f"`tarmac resume {self.id}` continues it"

    @property
    def servers(self) -> Hub:
        """The MCP servers that it may use."""
        return self._state.context.servers

    @property
    def log(self) -> TaskLog:
        return self._state.context.log

    @property
    def metadata(self) -> Metadata:
        """What a list shows of it, as of now."""
        return self._state.metadata

    @property
    def attended(self) -> bool:
        """Whether a person can be asked; without one an ask is a denial."""
        return self._state.attended

    @attended.setter
    def attended(self, attended: bool) -> None:
        self._state.attended = attended

    @property
    def editor(self) -> Editor:
        """What the person has before them, if the front end knows it; the model is told with its next turn."""
        return self._state.editor

    @editor.setter
    def editor(self, editor: Editor) -> None:
        self._state.editor = editor

    @property
    def level(self) -> Auto:
        """What it may do without asking."""
        return self._state.context.settings.auto

    @property
    def running(self) -> bool:
        return self._engine.active

    @property
    def questions(self) -> tuple[e.QuestionAsked, ...]:
        """Those that wait for an answer, also of its subtasks."""
        return (*self._questions.open, *(self._subtasks.questions if self._subtasks else ()))

    @property
    def own_questions(self) -> tuple[e.QuestionAsked, ...]:
        """Those that wait for an answer, without its subtasks'."""
        return tuple(self._questions.open)

    @property
    def result(self) -> str | None:
        """What it was completed with, when it was opened."""
        return self._result if self.metadata.outcome == "completed" else None

    @property
    def queue(self) -> tuple[e.MessageQueued, ...]:
        """What was said while it worked, and is not delivered yet."""
        return self._queue.waiting

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(seq, event)` and `listener(None, signal)`, in order; what it returns takes it off."""
        return self._state.audience.subscribe(listener)

    def when_woken(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` when a command that it left running ends or asks while it rests: then it is to be run.

        What this returns takes the listener off. Without one nothing is watched.
        """
        listeners = self._engine.wake.listeners
        listeners.append(listener)
        self._state.wakes = True
        return lambda: listeners.remove(listener) if listener in listeners else None

    def when_at_rest(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` when a run has ended. What this returns takes it off."""
        self._rest_listeners.append(listener)
        return lambda: self._rest_listeners.remove(listener)

    def wake(self) -> None:
        """Another front end said or answered something: who drives it runs it."""
        for listener in self._engine.wake.listeners:
            listener()

    def type_secrets(self) -> None:
        """A front end has a person who types the secrets that commands ask for: calls wait for that."""
        self._state.types_secrets = True

    def run_elsewhere(self, open: Callable[[e.CallId, Path], Awaitable[Terminal]]) -> None:
        """Commands that a person approved run where `open` says, in a terminal for each: a front end's, not ours."""
        self._state.elsewhere = open

    def use_buffers(self, buffers: EditorBuffers) -> None:
        """The person's editor knows of files that are not saved: its text is read, and nothing is written over it."""
        self._state.buffers = buffers

    # What a person does

    async def say(self, text: str, images: Sequence[Picture] = ()) -> e.MessageId | None:
        """Say something to it: at once (None), or queued under an id while it works."""
        if not text.strip() and not images:
            raise BadRequest("the message is empty")
        if self._state.metadata.outcome == "aborted" and self._engine.begun:
            raise BadRequest(f"task {self.id} was aborted", hint="resume it first")
        blobs = await self._keep(images)
        if not self.running:
            if asked := self._questions.standing:  # then this is the answer
                try:
                    said = Answer(AnswerKind.MESSAGE, text=text, images=tuple(images))
                    await self._questions.answer(asked.question, said, blobs)
                    return None
                except BadRequest:  # somebody was quicker
                    pass
            self._queue.take()  # what they said before, while it worked, comes before this
            await self.log.append(e.UserSaid(at=now(), text=text, images=blobs))
            self._engine.rest.said()
            return None
        message = e.MessageId(f"m{secrets.token_hex(4)}")
        await self._queue.put(e.MessageQueued(at=now(), message=message, text=text, images=blobs))
        return message

    async def withdraw(self, message: e.MessageId) -> None:
        """Take a queued message back; BadRequest when it has been delivered."""
        if not await self._queue.withdraw(message):
            raise BadRequest(f"the message {message} is not queued", hint="it may have been delivered")

    async def answer(self, question: e.QuestionId, answer: Answer) -> None:
        """Answer an open question; the first answer counts. BadRequest for one that makes no sense leaves it open."""
        if child := self._subtasks.asking(question) if self._subtasks else None:
            await child.answer(question, answer)
            return
        await self._questions.answer(question, answer, await self._keep(answer.images))

    async def condense(self, focus: str = "") -> bool:
        """Condense the conversation; `focus` matters most. False: it runs, and does that before its next request."""
        running = self.running
        await self._engine.condense(focus)
        return not running

    async def context_parts(self) -> dict[str, int]:
        """What fills the context window: about how many tokens of each."""
        return await self._engine.context_parts()

    def hold(self, question: e.QuestionId) -> None:
        """A person begins to answer: what would be answered in their place after a while waits for them now."""
        if child := self._subtasks.asking(question) if self._subtasks else None:
            child.hold(question)
        self._questions.hold(question)

    async def to_background(self, by: str = "") -> bool:
        """Let it go on without the commands that it and its subtasks wait for; False: it waits for none."""
        here = await self._engine.calls.commands.to_background(by)
        return bool(self._subtasks and await self._subtasks.to_background(by)) or here

    def cancel(self) -> None:
        """Stop what it does now, an answer or a command; the run ends as "interrupted", and may be run again."""
        self._engine.end(Ended("interrupted", "the person stopped it"))

    async def abort(self, why: str = "") -> None:
        """End it before it is done, and all that runs in its terminals. It can be resumed."""
        await self._engine.abort(why or "the person ended it")

    async def pause(self, why: str = "") -> None:
        """Let it and its subtasks stand still before their next steps."""
        if self._engine.unpaused.is_set():
            self._engine.unpaused.clear()
            await self.log.append(e.TaskPaused(at=now(), why=why))
            if self._subtasks:
                await self._subtasks.pause()

    async def unpause(self) -> None:
        """Let it go on."""
        if not self._engine.unpaused.is_set():
            await self.log.append(e.TaskUnpaused(at=now()))
            self._engine.unpaused.set()
            if self._subtasks:
                await self._subtasks.unpause()

    @property
    def checkpoints(self) -> Checkpoints:
        """What it changed, and how to take that back."""
        return self._state.checkpoints

    async def file_history(self) -> FileHistory:
        """The points to go back to."""
        await self.checkpoints.settle()
        return self.checkpoints.history

    async def changed_since(self, to: int | None) -> list[tuple[RestoredFile, FileDiff | None]]:
        """The files that it changed since the point `to`, with their diffs; None: since its beginning."""
        await self.checkpoints.settle()
        if to is None and self.checkpoints.history.first is None:
            return []
        return await self.checkpoints.diff(self.checkpoints.find(to))

    async def undo(self) -> Restoration | None:
        """Take back what the last turn changed in files. None: there is nothing to take back."""
        await self.checkpoints.settle()
        to = self.checkpoints.history.last_turn
        return None if to is None else await self.rewind(to, conversation=False)

    async def rewind(
        self, to: int, *, files: bool = True, conversation: bool = True, force: bool = False
    ) -> Restoration | None:
        """Go back to just before the fact `to`. `force`: also files that somebody else changed since.

        Nothing is deleted from the log: what is rewound no longer counts.
        """
        if self.running:
            raise BadRequest(f"task {self.id} is at work", hint="stop it first")
        if files and self._state.context.place:
            raise BadRequest(
                f"files at {self._state.context.place} are not kept, so they can't be brought back",
                hint="the conversation alone can go back",
            )
        await self.log.commit()
        to = self.checkpoints.find(to)
        restored = await self.checkpoints.restore(to, force=force) if files else None
        if conversation:
            self._questions.withdraw()
            await self.log.append(e.HistoryRewound(at=now(), to=self.checkpoints.history.conversation_end(to)))
            self._engine.rewound()
            for path in restored.of(Fate.RESTORED) if restored else ():  # the model knew them so
                if path in self._state.seen:
                    digest = await asyncio.to_thread(digest_of, path)
                    self._state.add(e.FileSeen(at=now(), path=path, digest=digest, how="edited"))
        elif restored and (paths := restored.of(Fate.RESTORED)):
            await self._state.append(e.ModelTold(at=now(), text=undone_text(paths), about="other"))
        return restored

    async def try_command(self, command: str, cwd: Path, digest: str) -> Trial:
        """Run the command of a question on a copy of the workspace. `digest`: what the question is about."""
        context = self._state.context
        if context.place:
            raise BadRequest(f"a command at {context.place} can't be tried on a copy", hint="allow it or deny it")
        action = Execute(command, cwd=cwd, shell=context.registry.shell().name)
        if request_digest(action, task=self.id) != digest:
            raise BadRequest("this command can't be tried: it has characters that can't be shown")
        env = command_environment(os.environ, workspace=context.workspace)
        return await asyncio.to_thread(
            partial(try_command, command, cwd=cwd, workspace=context.workspace, env=env, shell=action.shell)
        )

    async def keep_trial(self, trial: Trial) -> list[str]:
        """Make the changes of a trial; why some failed. They can be undone."""
        failed: list[str] = []
        paths = [each.path for each in trial.changes]
        await self.checkpoints.change(
            f"Keeping what `{short(trial.command)}` changed on a copy", paths, lambda: failed.extend(trial.keep())
        )
        return failed

    async def switch_mode(self, mode: str, why: str = "") -> None:
        """Another mode from the next turn on; BadRequest names one that looks like it."""
        found = find_mode(self._state.context.modes, mode)
        await self._state.append(e.ModeSwitched(at=now(), mode=found.slug, why=why))

    async def switch_model(self, model: str) -> None:
        """Another model from the next turn on."""
        opened = await asyncio.to_thread(self._open_model, model)
        await self.log.append(e.ModelSwitched(at=now(), model=model))
        self._retired.append(self._state.model)  # an answer of its may be on its way: closed at the end
        self._state.model, self._state.spec = opened, model

    @property
    def modes(self) -> Modes:
        return self._state.context.modes

    def switch_level(self, policy: ActionPolicy, settings: TaskSettings) -> None:
        """What it may do without asking, from the next call on. Its limits stay."""
        context = self._state.context
        kept = replace(settings, limits=context.settings.limits)
        self._state.context = replace(context, policy=policy, settings=kept)

    def warn_of_no_integration(self, terminal: TerminalId) -> None:
        """One of the terminals works without shell integration; told once, and only to the task that has it."""
        if self.running and not self._warned and self._has(terminal):
            self._warned = True
            text = f"terminal {terminal} works without shell integration: its commands run one by one, without a shell"
            self._state.add(e.Noted(at=now(), what="shell_integration_warning", text=text))

    def tell_held_secrets(self, terminal: TerminalId, names: Sequence[str]) -> None:
        """A command failed, and these variables were kept from it; told once."""
        if self.running and not self._told_secrets and self._has(terminal):
            self._told_secrets = True
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            text = f"{shown}: commands don't get these variables. If one needs them, set terminals.pass_secrets"
            self._state.add(e.Noted(at=now(), what="notice", text=text))
            told = f"{shown}: Tarmac keeps these variables from commands. If the command needs one, ask the user"
            self._state.add(e.ModelTold(at=now(), text=f"[{told}]", about="other"))

    def _has(self, terminal: TerminalId) -> bool:
        """Whether a terminal is this task's, or nobody's, or gone."""
        try:
            return self._state.context.registry.get(terminal).task in (None, self.id)
        except TerminalNotFound:
            return True

    async def _keep(self, images: Sequence[Picture]) -> tuple[Blob, ...]:
        return tuple([await asyncio.to_thread(self.log.blobs.keep, data, media) for data, media in images])

    # Running

    async def opened_again(self) -> None:
        """Ask whether an earlier task shall go on. It rests until somebody answers or runs it."""
        await self._engine.rest.opened()

    async def run(self) -> Ended:
        """Run it in a person's company: where it is their turn, wait for their word. It ends when they accept."""
        rest = self._engine.rest
        forget = self.when_woken(rest.woken)
        try:
            while True:
                if self._questions.standing:
                    await rest.answered.wait()
                ended = await self.run_until_idle()
                await self._questions.settled()
                goes_on = rest.spoken or rest.wanted == "go"
                if ended.why == "idle" and not goes_on:
                    rest.answered.clear()
                    await rest.answered.wait()
                elif ended.why != "idle" and not (ended.why == "completed" and (goes_on or self._questions.standing)):
                    return ended
        finally:
            forget()

    async def run_until_idle(self) -> Ended:
        """Run it until it is done, or it is somebody else's turn. Cancelling who awaits this stops it in order."""
        try:
            ended = await self._engine.until_idle()
            while self._engine.has_words:
                ended = await self._engine.until_idle()
            return ended
        finally:
            for listener in self._rest_listeners[:]:
                listener()

    async def aclose(self) -> None:
        """Leave it in order: stop it if it runs, keep the log, release its terminals. May be called twice."""
        async with AsyncExitStack() as closing:  # what fails to close keeps no other from closing
            for model in (self._state.model, *reversed(self._retired)):
                closing.push_async_callback(model.aclose)
            closing.callback(self._state.context.registry.leave_task, self.id)
            closing.push_async_callback(self._state.context.servers.aclose)
            closing.push_async_callback(self._state.checkpoints.aclose)
            if self._state.browser is not None:
                closing.push_async_callback(self._state.browser.aclose)
            await self._engine.leave()
            if self._engine.begun:
                self._engine.begun = False
                try:
                    await self.log.append(e.TaskSaved(at=now()))
                except StateUnavailable:  # a full disk: then the log says nothing of it
                    pass
