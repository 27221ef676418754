"""PURE: what a list shows of a task, folded from its log.

The value grows with each event and can be stored as JSON. The index keeps it and continues from there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tarmac.events import TaskId
from tarmac.models.messages import NO_USAGE, ToolUse, Usage
from tarmac.tasks.events import (
    QUIET,
    AgentHosted,
    FileSeen,
    HistoryCondensed,
    HistoryRewound,
    ModelSaid,
    ModelSwitched,
    ModeSwitched,
    OutputsFolded,
    QuestionAnswered,
    QuestionAsked,
    RecordLost,
    RequestFailed,
    RequestStarted,
    SubtaskFinished,
    SubtaskStarted,
    TaskAborted,
    TaskCompleted,
    TaskCreated,
    TaskEvent,
    TaskPaused,
    TaskSaved,
    TaskStarted,
    TaskUnpaused,
    Todo,
    TodosUpdated,
    ToolFinished,
    UserSaid,
)

Status = Literal["created", "initialised", "running", "waiting", "paused", "completed", "aborted", "saved"]
TITLE = 300  # characters of the first message


def metadata(events: Iterable[TaskEvent]) -> "Metadata":
    """What a list shows of the task."""
    found = Metadata()
    for event in events:
        found.add(event)
    return found


@dataclass(slots=True)
class ToolCount:
    """How often a tool was called, and in vain."""

    calls: int = 0
    failures: int = 0


@dataclass(slots=True)
class Metadata:
    """A task at a glance."""

    seq: int = 0  # of the last fact
    task: TaskId | None = None
    root: TaskId | None = None
    parent: TaskId | None = None
    number: int = 0
    workspace: Path | None = None
    place: str = ""  # where that is; empty: on this machine
    mode: str = ""
    model: str = ""
    agent: str = ""  # of somebody else, that works on it; `session` is what it calls the task
    session: str = ""
    created: float = 0.0
    at: float = 0.0  # of the last message that mattered: opening a task does not make it newer
    title: str = ""  # the first message
    status: Status = "created"
    outcome: Literal["completed", "aborted"] | None = None
    usage: Usage = NO_USAGE
    context: int = 0  # tokens in the window after the last request
    context_window: int | None = None
    requests: int = 0  # that were answered
    failed: int = 0  # the others
    cost: float = 0.0  # of requests whose price is known
    estimated: int = 0  # requests that nobody counted: what they took and cost is a guess
    unpriced: int = 0  # the others: while there are any, nobody knows what the task costs
    below: float | None = 0.0  # what its subtasks cost, with theirs; None: some price is unknown
    requests_below: int = 0  # of these
    tools: dict[str, ToolCount] = field(default_factory=dict)
    todos: tuple[Todo, ...] = ()
    files: dict[str, str | None] = field(default_factory=dict)  # the version the task last saw
    questions: tuple[str, ...] = ()  # without an answer yet
    children: tuple[TaskId, ...] = ()
    waiting_for: TaskId | None = None  # a child at work
    paused: bool = False  # also while a call that was under way asks something
    lost: int = 0  # records that are damaged

    @property
    def name(self) -> str:
        """What to call it."""
        return self.title or f"Task #{self.number}"

    @property
    def total_cost(self) -> float | None:
        """None: some price is unknown."""
        return None if self.unpriced else self.cost

    @property
    def whole_cost(self) -> float | None:
        """With its subtasks; None: some price is unknown."""
        return None if self.total_cost is None or self.below is None else self.total_cost + self.below

    def add(self, event: TaskEvent) -> None:
        """The next fact of the log."""
        self.seq += 1
        match event:
            case ModelSaid(parts=parts, usage=usage, cost=cost, estimated=estimated):
                self.at, self.context = event.at, usage.context
                self.requests += 1
                self._spend(usage, cost, estimated=estimated)
                self._at_rest(not any(isinstance(part, ToolUse) for part in parts))
            case RequestFailed(usage=usage, cost=cost, estimated=estimated, retry_in=retry_in):
                self.failed += 1
                self._spend(usage, cost, estimated=estimated)
                self._at_rest(retry_in is None)
            case ToolFinished(name=name, outcome=outcome):
                self.at = event.at
                self._at_rest(outcome == "interrupted")
                count = self.tools.setdefault(name, ToolCount())
                count.calls += 1
                count.failures += outcome == "failed"
            case UserSaid(text=text):
                self.at = event.at
                self.title = self.title or _title(text)
                self.status = "initialised" if self.status == "created" else self.status
            case RequestStarted(model=model, context_window=window):
                self.model, self.context_window = model, window or self.context_window
                if self.status == "waiting" and not self.questions:
                    self.status = "running"
            case FileSeen(path=path, digest=digest):
                self.files[str(path)] = digest
            case TodosUpdated(todos=todos):
                self.todos = todos
            case _:
                self._live(event)

    def _at_rest(self, rests: bool) -> None:
        """It may be the person's turn now. If it is not, the next request follows at once. (Not of a hosted agent.)"""
        if rests and self.status == "running" and not self.agent:
            self.status = "waiting"

    def _live(self, event: TaskEvent) -> None:
        match event:
            case QuestionAsked(ask=ask) if ask in QUIET:
                pass  # it is what it was: at rest, or at work
            case QuestionAsked(question=question):
                self.questions += (question,)
                self.status = "waiting"
            case QuestionAnswered(question=question):
                self.questions = tuple(each for each in self.questions if each != question)
                if self.status == "waiting" and not self.questions:
                    self.status = "paused" if self.paused else "running"
            case ModeSwitched(mode=mode):
                self.mode = mode
            case AgentHosted(name=name, session=session):
                self.agent, self.session = name, session
            case ModelSwitched(model=model):
                self.model = model
            case TaskCreated():
                self.task, self.root, self.parent, self.number = event.task, event.root, event.parent, event.number
                self.workspace, self.place, self.mode = event.workspace, event.place, event.mode
                self.created = self.at = event.at
            case TaskStarted() | TaskUnpaused():
                if isinstance(event, TaskStarted):
                    self.questions = ()  # those of before are asked anew
                self.status = "waiting" if self.questions else "running"
                self.outcome, self.paused = None, False
            case TaskPaused():
                self.status, self.paused = "paused", True
            case TaskCompleted():
                self.status = self.outcome = "completed"
                self.at = event.at
            case TaskAborted():
                self.status = self.outcome = "aborted"
                self.at = event.at
            case TaskSaved():
                self.status = "saved" if self.outcome else self.status
            case HistoryCondensed(usage=usage, cost=cost, tokens_after=tokens):
                self.context = self.context if tokens is None else tokens
                self._spend(usage, cost)
            case OutputsFolded(tokens_after=tokens):
                self.context = self.context if tokens is None else tokens
            case HistoryRewound():
                self.status = "running" if self.outcome else self.status
                self.outcome = None
            case SubtaskStarted(child=child):
                self.children += (child,)
                self.waiting_for = child
            case SubtaskFinished(child=child, cost=cost, requests=requests):
                self.below = None if cost is None or self.below is None else self.below + cost
                self.requests_below += requests
                self.waiting_for = None if self.waiting_for == child else self.waiting_for
            case RecordLost():
                self.lost += 1

    def _spend(self, usage: Usage, cost: float | None, *, estimated: bool = False) -> None:
        self.usage += usage
        self.estimated += estimated
        if cost is None:
            self.unpriced += 1
        else:
            self.cost += cost


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"
