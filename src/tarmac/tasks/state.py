"""What is known of an open task, folded from its events.

event ─add, append→ folded here at once → the log ─on disk→ history, metadata

`history` and `metadata` know what is durable. The next call of the same answer must know more: the files that were just
written, the mode, what this run has used. So every event is folded here when it is added, before it is on disk.
Nobody else writes these fields. What a front end says about its person (`attended`, `editor` …) and the model are set
from outside.

`unfinished` finds the calls that were running when a task's process died. Before a tool changes a file, the log has the
file's hash before and after (`FileIntent`). So the file itself tells whether it was changed as intended, not changed,
or changed by somebody else.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from tarmac.errors import FileUnavailable, StateUnavailable
from tarmac.file_system import LOCAL, FileSystem
from tarmac.models.messages import Message, ToolUse
from tarmac.models.provider import Model
from tarmac.prompts.modes import Mode, Modes
from tarmac.tasks.checkpoints import Checkpoints
from tarmac.tasks.context import Editor, TaskContext, find_mode, now
from tarmac.tasks.events import (
    QUIET,
    CallId,
    CommandOutput,
    FileIntent,
    FileSeen,
    HistoryCondensed,
    ModelSaid,
    ModelTold,
    ModeSwitched,
    Noted,
    OutputsFolded,
    QuestionAnswered,
    QuestionAsked,
    RequestFailed,
    RequestStarted,
    SubtaskFinished,
    TaskEvent,
    Todo,
    TodosUpdated,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from tarmac.tasks.limits import Used, WorkTime
from tarmac.tasks.log.reader import uncollected
from tarmac.tasks.signals import Audience
from tarmac.tasks.views.metadata import Metadata
from tarmac.tasks.views.model_history import ModelHistory, messages_size, text_size
from tarmac.terminals.terminal import Terminal
from tarmac.tools.browser_action import Browser
from tarmac.tools.tool import EditorBuffers

Fate = Literal["happened", "did not happen", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A call that was started and never came back."""

    seq: int
    started: ToolStarted
    output: CommandOutput | None  # of a command: what it had printed until then
    tail: bytes = b""  # the end of that, of one that has no terminal, as long as our process lives


def unfinished(events: Iterable[TaskEvent]) -> list[Unfinished]:
    """The calls that were under way at the end of the log, in the order of their start."""
    found: dict[CallId, Unfinished] = {}
    for seq, event in enumerate(events, 1):
        match event:
            case ToolStarted(call=call):
                found[call] = Unfinished(seq=seq, started=event, output=None)
            case CommandOutput(call=call) if call in found:
                found[call] = Unfinished(seq=found[call].seq, started=found[call].started, output=event)
            case ToolFinished(call=call):
                found.pop(call, None)
    return list(found.values())


def fate(intent: FileIntent, now: str | None) -> Fate:
    """Whether a file that is `now` so (a hash, None for no file) was changed as intended."""
    if now == intent.after:
        return "happened"  # also when nothing was to change
    return "did not happen" if now == intent.before else "unknown"


def fates(started: ToolStarted, digest: Callable[[Path], str | None]) -> list[tuple[FileIntent, Fate]]:
    """What became of each file that a call was to change; `digest` looks at one."""
    return [(intent, fate(intent, digest(intent.path))) for intent in started.intents]


def digest_of(path: Path, system: FileSystem = LOCAL) -> str | None:
    """The hash of a file's content as intents have it; None when there is no file. It never waits for a pipe."""
    try:
        data = system.read(path)
    except FileUnavailable:
        try:
            system.lstat(str(path))
        except (FileNotFoundError, NotADirectoryError):
            data = None  # a folder on the way is a file now
        else:
            raise
    return None if data is None else sha256(data).hexdigest()


class TaskState:
    """One open task."""

    def __init__(self, context: TaskContext, past: Sequence[TaskEvent], *, model: Model, attended: bool) -> None:
        """`past`: what is in the log already."""
        self.context = context
        self.history, self.metadata = ModelHistory(), Metadata()  # of what is durable
        with uncollected():
            for event in past:
                self.history.add(event)
                self.metadata.add(event)
        context.log.subscribe(lambda _, event: self.history.add(event))
        context.log.subscribe(lambda _, event: self.metadata.add(event))
        self.checkpoints = Checkpoints(
            context.log, context.workspace, past, busy=self._runs_commands, place=context.place
        )
        self.audience = Audience(context.log)  # hears of each fact after these views
        # Durable and pending
        self.mode = self._first_mode()
        self.seen = {Path(path): digest for path, digest in self.metadata.files.items()}  # the version known of a file
        self._edited = False  # a file was changed since the environment was last looked at
        self.under_way = {each.started.call: each for each in unfinished(past)}  # calls that were started, not finished
        self.todos: tuple[Todo, ...] = self.metadata.todos
        self.cost = self.metadata.whole_cost  # None: some price is unknown
        self.context_tokens = self.metadata.context  # in the window after the last answer
        self.added = 0.0  # units of `models.tokens` that were said to the model since its last answer, about
        self.calls = set(_calls(past))  # the ids of all calls that were ever made
        # Of what an earlier process left
        self.unanswered = _asking(past)  # calls with a question that nobody answered
        self.answered = _answered(past, self.under_way)  # what a person said to calls that did not come to their end
        # Of this run
        self.used = Used()
        self.clock = WorkTime()
        self._result: str | None = None  # presented by the model, and not recorded yet
        self.browser = Browser() if "browser_action" in context.toolbox else None
        # Set from outside
        self.model = model
        self.attended = attended  # a person can be asked
        self.types_secrets = False  # and by a front end that hands over what commands ask for in secret
        self.wakes = False  # a front end runs the task again when it is woken
        self.elsewhere: Callable[[CallId, Path], Awaitable[Terminal]] | None = None  # where approved commands run
        self.buffers: EditorBuffers | None = None  # a person's editor, which knows of files that are not saved
        self.editor = Editor()
        self.depth = 0  # of subtasks: how many parents it has
        self.spec = model.info.id  # how the model was asked for: its children get the same

    def _first_mode(self) -> Mode:
        modes, named = self.context.modes, self.metadata.mode
        if found := modes.get(named):
            return found
        found = find_mode(modes, "code")
        text = f"there is no mode `{named}` here any more: {found.slug} is used"
        self.context.log.add(Noted(at=now(), what="notice", text=text))
        return found

    def use_modes(self, modes: Modes) -> None:
        """Other modes of the same names, from now on."""
        self.context = replace(self.context, modes=modes)
        self.mode = modes.get(self.mode.slug) or self.mode

    def _runs_commands(self) -> bool:
        return bool(self.context.registry.listing(busy=True, task=self.context.task))

    # Events

    def add(self, event: TaskEvent) -> None:
        """Record a fact that nothing waits for."""
        self._fold(event)
        self.context.log.add(event)

    async def append(self, *events: TaskEvent) -> None:
        """Record facts; on disk when this returns. StateUnavailable: they are not, and did not happen."""
        mode = self.mode
        for event in events:
            self._fold(event)
        try:
            await self.context.log.append(*events)
        except StateUnavailable:
            self.mode = mode
            for event in events:
                if isinstance(event, ToolStarted):
                    self.under_way.pop(event.call, None)
            raise

    def _fold(self, event: TaskEvent) -> None:
        match event:
            case ToolStarted(call=call):
                self.under_way[call] = Unfinished(seq=0, started=event, output=None)
            case CommandOutput(call=call) if found := self.under_way.get(call):
                self.under_way[call] = replace(found, output=event)
            case ToolFinished(call=call, content=content):
                self.under_way.pop(call, None)
                self.added += messages_size([Message("user", content)])
            case UserSaid(text=text) | ModelTold(text=text):
                self.added += text_size(text)
            case FileSeen(path=path, digest=digest, how=how):
                self.seen[path] = digest
                self._edited |= how == "edited"
            case ModeSwitched(mode=slug):
                self.mode = self.context.modes.get(slug) or self.mode
            case TodosUpdated(todos=todos):
                self.todos = todos
            case RequestStarted():
                self.used.requests += 1
            case ModelSaid(parts=parts, usage=usage, cost=cost):
                self.used.turns += 1
                self._spend(cost)
                self.context_tokens, self.added = usage.context, 0.0
                self.calls.update(CallId(part.id) for part in parts if isinstance(part, ToolUse))
            case RequestFailed(cost=cost):
                self._spend(cost)
            case HistoryCondensed(cost=cost, how=how, tokens_after=tokens):
                self._spend(cost)
                self.used.requests += how == "summarised"
                self.context_tokens = tokens or self.context_tokens
            case SubtaskFinished(cost=cost, requests=requests):
                self._spend(cost)
                self.used.requests += requests
            case OutputsFolded(tokens_after=tokens):
                self.context_tokens = tokens or self.context_tokens

    def _spend(self, cost: float | None) -> None:
        self.used.cost += cost or 0.0
        self.used.unpriced += cost is None
        self.cost = None if cost is None or self.cost is None else self.cost + cost

    def printed(self, call: CallId, data: bytes, *, most: int) -> None:
        """The end of what a command without a terminal printed, for when it is cut off. It is in no event."""
        if found := self.under_way.get(call):
            self.under_way[call] = replace(found, tail=(found.tail + data)[-most:])

    def take_edited(self) -> bool:
        """Whether a file was changed since this was last asked."""
        edited, self._edited = self._edited, False
        return edited

    def not_begun(self, calls: Iterable[CallId]) -> None:
        """These calls did nothing but ask before the process ended: they count as never started."""
        for call in calls:
            self.under_way.pop(call, None)

    # One run

    def begin_run(self, clock: WorkTime) -> None:
        """A run begins: what it may use is counted anew."""
        self.used, self.clock = Used(), clock

    def present(self, result: str) -> None:
        """The model presents its result."""
        self._result = result

    def take_result(self) -> str | None:
        """The result that was presented, once."""
        result, self._result = self._result, None
        return result

    def limit_reached(self) -> str:
        """The limit that is reached, if one is."""
        self.used.seconds = self.clock.seconds
        return self.context.settings.limits.reached(self.used)

    def waits(self) -> AbstractContextManager[None]:
        """Held while a person is waited for: that is not the task's time."""
        return self.clock.stopped()


def _asking(past: Iterable[TaskEvent]) -> set[CallId]:
    """The calls with a question that nobody answered."""
    asked: dict[str, CallId] = {}
    for event in past:
        match event:
            case QuestionAsked(question=question, call=call, ask=ask) if call and ask not in QUIET:
                asked[question] = call
            case QuestionAnswered(question=question):
                asked.pop(question, None)
    return set(asked.values())


def _answered(past: Iterable[TaskEvent], calls: dict[CallId, Unfinished]) -> dict[CallId, str]:
    """What a person had answered to a question of the model, in calls that did not come to their end."""
    asked: dict[str, CallId] = {}
    found: dict[CallId, str] = {}
    for event in past if calls else ():
        match event:
            case QuestionAsked(ask="followup", question=question, call=call) if call in calls and call:
                asked[question] = call
            case QuestionAnswered(question=question, text=text) if question in asked and text:
                found[asked[question]] = text
    return found


def _calls(past: Iterable[TaskEvent]) -> Iterable[CallId]:
    for event in past:
        if isinstance(event, ModelSaid):
            yield from (CallId(part.id) for part in event.parts if isinstance(part, ToolUse))
