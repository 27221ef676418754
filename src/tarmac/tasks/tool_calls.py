"""The calls of one answer of the model, each made through the pipeline (`tarmac.calls`).

ToolUse ─decode→ Tool ─mode? circle?→ prepare → pipeline: judge, ask, record, act, record → Tally

Calls that only read run in parallel. All others run alone and in order. Every call gets a result, also after wrong
arguments, a denial or a failure. After a denial, the calls behind it are not made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Final

from tarmac.calls.call_judge import Judge
from tarmac.calls.pipeline import Call, CallResult, NotMade, Pipeline
from tarmac.errors import BadArguments, ToolFailed
from tarmac.models.messages import Text, ToolUse
from tarmac.policy import ReadFile, WriteFile
from tarmac.policy.approval import AnswerKind, Authority
from tarmac.policy.files import Files
from tarmac.tasks.auto import covers
from tarmac.tasks.call_recorder import CallRecorder, Live, RunningCommands
from tarmac.tasks.condense import Condenser
from tarmac.tasks.context import judged, now
from tarmac.tasks.events import CallId, Noted
from tarmac.tasks.questions import Questions, TaskAsker
from tarmac.tasks.repetition import Repetition
from tarmac.tasks.state import TaskState
from tarmac.tasks.subtasks import Subtasks
from tarmac.tasks.talk import Conversation, Queue
from tarmac.tools.task_tools import AttemptCompletion, NewTask
from tarmac.tools.tool import Bench, Ready, Tool

CUT: Final = (
    "This call was not run: your answer reached its limit of length before the call was whole. "
    "Make it in smaller steps: write a long file in several parts."
)
ONE: Final = (
    "one call is made in each message, and this was not the first; look at the result of that one, and make this call "
    "if it is still right"
)
MOST_CIRCLES: Final = 3  # the model is told; with the last one the task ends, if nobody can be asked
MOST_CALLS: Final = 100  # of one answer; a model that makes more is confused
TOO_MANY: Final = f"no more than {MOST_CALLS} calls are made in one message"
REPEATED: Final = (
    "This call was not run: it is the same as the last ones, whose result did not change. "
    "Look at that result, and try another way."
)
NOT_YET: Final = (
    "This result was not presented: another call of the same message failed. Look at its result, deal with it, and "
    "present the result when all is known to have succeeded."
)


@dataclass(slots=True)
class Tally:
    """How the calls of one answer went."""

    worked: int = 0
    failed: int = 0
    mistakes: list[str] = field(default_factory=list)
    denied: bool = False
    stopped: str = ""  # why the later calls are not made
    circle: str = ""  # the model repeats itself, and nobody is there to say whether that is right

    def count(self, result: CallResult) -> None:
        """Count one result. After a denial, which is not a mistake, the later calls are not made."""
        if result.mistake:
            self.mistakes.append(result.mistake)
        if result.outcome == "done":
            self.worked += 1
            self.failed += bool(result.done and result.done.exit_code)  # a command that ran, and failed
        elif result.outcome == "failed" or result.allowed:  # it was allowed, and could not be done as it was shown
            self.failed += 1
        elif result.outcome == "denied" or result.unanswered:
            self.denied = True
            self.stopped = "an earlier call of this message was denied"


class Calls:
    """Makes the calls of one task."""

    def __init__(
        self,
        state: TaskState,
        questions: Questions,
        queue: Queue,
        subtasks: Subtasks | None,
        may_go: Callable[[], Awaitable[None]],
        condenser: Condenser | None = None,
    ) -> None:
        self.state = state
        self._may_go = may_go
        self._condenser = condenser
        self._subtasks = subtasks
        self._questions = questions
        self._queue = queue
        self._circles = 0  # repetitions found while nobody is there
        self._hidden: set[str] = set()
        self.commands = RunningCommands(state, questions)
        self._repetition = Repetition(state.context.settings.limits.max_repetitions)

    async def run(self, uses: Sequence[ToolUse], *, cut: bool = False) -> Tally:
        """Make all calls. `cut`: the answer was cut off, so the last call may be incomplete."""
        tally = Tally()
        ordered = sorted(uses, key=self.ends)  # the result is presented when all else is done
        native = self.state.model.info.native_tools
        made = MOST_CALLS if native else 1  # calls written as text: one in a message
        for group in self._groups(ordered[:made]):
            await self._may_go()
            if self._subtasks:
                self._subtasks.expect(len(group))
            if len(group) == 1:
                await self._one(group[0], tally, cut=cut and group[0] is uses[-1])
                continue
            try:
                async with asyncio.TaskGroup() as together:
                    for use in group:
                        together.create_task(self._one(use, tally, cut=cut and use is uses[-1]))
            except BaseExceptionGroup as several:
                raise several.exceptions[0] from None
        for use in ordered[made:]:
            why = tally.stopped or (TOO_MANY if native else ONE)
            recorder = CallRecorder(self.state, self._questions, self._repetition, self.commands, use)
            recorder.finish((Text(f"[not run: {why}]"),), outcome="skipped", made=False)
        return tally

    def ends(self, use: ToolUse) -> bool:
        return self.state.context.toolbox.canonical(use.name) == AttemptCompletion.name

    def _groups(self, uses: Sequence[ToolUse]) -> Iterator[list[ToolUse]]:
        """Group neighbours that only read, and neighbours that are subtasks. All others are alone."""
        for kind, group in groupby(uses, self._together):
            if kind:
                yield list(group)
            else:
                yield from ([use] for use in group)

    def _together(self, use: ToolUse) -> str:
        """The kind of call that runs together with neighbours of the same kind; "" if it runs alone."""
        tool = self.state.context.toolbox.tools.get(self.state.context.toolbox.canonical(use.name))
        return "" if tool is None else "read" if tool.parallel else NewTask.name if tool is NewTask else ""

    async def _one(self, use: ToolUse, tally: Tally, *, cut: bool) -> None:
        """Make one call."""
        recorder = CallRecorder(self.state, self._questions, self._repetition, self.commands, use)
        if tally.stopped:
            recorder.finish((Text(f"[not run: {tally.stopped}]"),), outcome="skipped", made=False)
            return
        call = Call(
            id=CallId(use.id),
            name=use.name,
            prepare=_Preparation(self, use, tally, recorder, cut=cut).prepare,
            timeout=self.state.context.settings.approval_timeout,
            void=lambda: tally.stopped,
        )
        asker = TaskAsker(self.state, self._questions, call.id, void=call.void)
        pipeline = Pipeline(judge_of(self.state), asker, recorder, checkpoint=self.state.checkpoints.around)
        tally.count(await pipeline.run(call))

    def stuck(self, use: ToolUse) -> bool:
        """Whether the model repeats itself. Presenting a result again does not count."""
        return not self.ends(use) and self._repetition.stuck(*self.state.context.toolbox.meant(use.name, use.arguments))

    async def go_round(self, use: ToolUse, tally: Tally) -> None:
        """Ask a person whether to make a repeated call once more. Raises NotMade if it is not made."""
        told = REPEATED
        if self.state.attended:
            answered = await self._questions.ask(
                "mistake_limit_reached",
                f"The model repeats itself: {use.name} with the same arguments and the same result. Run it once more?",
                call=CallId(use.id),
                timeout=self.state.context.settings.approval_timeout,
            )
            if answered.answer is AnswerKind.YES:
                self._repetition.forget()
                return
            if answered.text:
                told = f"{REPEATED} The person says: {answered.text}"
        else:
            self._circles += 1
            if self._circles >= MOST_CIRCLES:
                tally.circle = f"the model goes in circles: {use.name}, with the same arguments and the same result"
        tally.mistakes.append(REPEATED)
        raise NotMade(told)

    def spoken_to(self) -> None:
        """The person said something. Calls after that do not count as repetitions of earlier ones."""
        self._repetition.forget()
        self._circles = 0

    def _note_hidden(self, name: str) -> None:
        """Tell the person that the model wanted a file that an ignore file hides, once for each file."""
        if name not in self._hidden:
            self._hidden.add(name)
            text = f"the model wanted {name}, which .tarmacignore or .rooignore hides"
            self.state.add(Noted(at=now(), what="ignore_error", text=text))

    def bench(self, use: ToolUse) -> Bench:
        state = self.state
        live = Live(state, CallId(use.id))
        return Bench(
            workspace=state.context.workspace,
            cwd=state.context.workspace,
            home=state.context.home,
            task=state.context.task,
            files=state.context.files,
            registry=state.context.registry,
            talk=Conversation(state, self._questions, self._queue, self._subtasks, CallId(use.id), self._condenser),
            store=state.context.log.blobs.keep,
            seen=state.seen,
            show=live.show,
            started=live.started,
            recorded=live.recorded,
            waiting=partial(self.commands.waiting, CallId(use.id)),
            hidden=self._note_hidden,
            settings=state.context.settings.tools,
            buffers=state.buffers,
            servers=state.context.servers,
            browser=state.browser,
            image_model=state.context.image_model,
            sees=state.model.info.images,
            cache=state.context.cache,
            wakes=state.attended and state.wakes and state.context.settings.tools.wake_on_exit,
            secrets=state.waits if state.attended and state.types_secrets else None,
            elsewhere=partial(state.elsewhere, CallId(use.id)) if state.elsewhere else None,
        )


async def _names(state: TaskState, ready: Ready) -> list[str]:
    """The files of the call, as named and as resolved, relative to the workspace."""
    if not state.context.place:
        return list(_named(state, state.context.files, ready))
    files = state.context.files.afresh()
    return await asyncio.to_thread(lambda: list(_named(state, files, ready)))


def _named(state: TaskState, files: Files, ready: Ready) -> Iterator[str]:
    for want in ready.wants:
        if not isinstance(want.action, ReadFile | WriteFile):
            continue
        led = files.look(want.action.path, cwd=state.context.workspace, workspace=state.context.workspace).path
        for path in dict.fromkeys((want.action.path, led)):
            inside = path.is_absolute() and path.is_relative_to(state.context.workspace)
            yield (path.relative_to(state.context.workspace) if inside else path).as_posix()


class _Preparation:
    """Decodes and prepares one call. What is checked once is not checked again before it acts."""

    def __init__(self, calls: Calls, use: ToolUse, tally: Tally, recorder: CallRecorder, *, cut: bool) -> None:
        self._calls = calls
        self._state = calls.state
        self._use = use
        self._tally = tally
        self._recorder = recorder
        self._cut = cut
        self._tool: Tool | None = None

    async def prepare(self) -> Ready:
        """Check the arguments, the mode and repetition. Then let the tool prepare."""
        tool = self._tool or await self._first()
        ready = await tool.prepare(self._calls.bench(self._use))
        for name in await _names(self._state, ready):
            if tool.group in ("read", "edit") and (why := self._state.mode.allows(self._use.name, tool.group, name)):
                raise self._refused(why)
        return ready

    async def _first(self) -> Tool:
        state, use = self._state, self._use
        self._tool = tool = self._decode()
        self._recorder.durable = not (tool.parallel or tool.group == "always")
        if why := state.mode.allows(use.name, tool.group):
            raise self._refused(why)
        if self._tally.failed and self._calls.ends(use):
            raise ToolFailed(NOT_YET)
        if self._calls.stuck(use):
            await self._calls.go_round(use, self._tally)
        return tool

    def _decode(self) -> Tool:
        state, use = self._state, self._use
        try:
            if self._cut and not use.arguments.strip():
                raise ToolFailed(CUT)
            offered = (each.name for each in state.context.toolbox if state.mode.allows(each.name, each.group) is None)
            return state.context.toolbox.decode(use.name, use.arguments, offered)
        except BadArguments:
            if self._cut:
                raise ToolFailed(CUT) from None
            raise

    def _refused(self, why: str) -> ToolFailed:
        use = self._use
        self._state.add(judged(use.id, "deny", why, part=use.name, by=Authority.MODE))
        return ToolFailed(why)


def judge_of(state: TaskState) -> Judge:
    """The judge of a task's calls."""
    return Judge(
        policy=state.context.policy,
        workspace=state.context.workspace,
        task=state.context.task,
        grants=state.context.grants,
        covers=partial(covers, state.context.settings.auto, kinds=state.context.settings.approved),
    )
