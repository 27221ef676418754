"""The events of a task: everything that its log keeps. Transient messages are in `signals.py`.

A kind is the class's name in a record (`UserSaid` → "user_said"). A released kind may only gain fields with defaults.
Any other change needs a new name. Fields are scalars, paths, and tuples of these or of small dataclasses. There are no
dictionaries, because somebody else could choose their keys.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NewType, Self

from tarmac.events import CallId as CallId
from tarmac.events import CallOutcome, Event, TaskId, TerminalId
from tarmac.models.messages import NO_USAGE, Blob, Part, StopReason, Usage
from tarmac.policy.approval import Answer, AnswerKind, Choice
from tarmac.policy.verdict import Decision

RequestId = NewType("RequestId", str)
QuestionId = NewType("QuestionId", str)
MessageId = NewType("MessageId", str)

Ask = Literal[
    "followup",
    "command",
    "command_output",
    "completion_result",
    "tool",
    "api_req_failed",
    "resume_task",
    "resume_completed_task",
    "mistake_limit_reached",
    "auto_approval_limit",
    "workspace_prompt",
]
RESTING: Final[frozenset[Ask]] = frozenset({"completion_result", "resume_task", "resume_completed_task"})
QUIET: Final[frozenset[Ask]] = RESTING | {"command_output"}  # nothing waits for the answer
Outcome = CallOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent(Event):
    """Something that happened in a task. `at` is time.time(): it is read on other days, on other machines."""


# Its life. Waiting is not recorded: a question that nobody answered yet says it.


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreated(TaskEvent):
    """The first fact of every log."""

    task: TaskId
    number: int
    workspace: Path
    mode: str
    root: TaskId | None = None
    parent: TaskId | None = None
    place: str = ""  # where its workspace and its terminals are; empty: on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file of another program, byte for byte."""

    name: str
    blob: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskImported(TaskEvent):
    """It was another program's: the facts up to the number `last` were made of these files."""

    source: str  # "roo"
    name: str  # what it is called there
    last: int
    files: tuple[KeptFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted(TaskEvent):
    """A process runs it, from the beginning or again."""

    pid: int
    version: str = ""  # of Tarmac


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPaused(TaskEvent):
    """It stands still until it is unpaused: a person's wish, or a limit."""

    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUnpaused(TaskEvent):
    """It goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsage:
    """How often a tool was called, and in vain."""

    name: str
    calls: int
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCompleted(TaskEvent):
    """The model says that it is done. Whether the person accepts it is asked next, where there is one."""

    result: str
    usage: Usage
    cost: float | None = None  # None: some price is unknown
    tools: tuple[ToolUsage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAborted(TaskEvent):
    """It was ended before it was done."""

    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSaved(TaskEvent):
    """Its process left it in order: nothing was under way."""


# What a person says


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSaid(TaskEvent):
    """A person's words, in the model's history from here on."""

    text: str
    images: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueued(TaskEvent):
    """A person's words while the task was busy: shown as queued, not yet told to the model."""

    message: MessageId
    text: str
    images: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDelivered(TaskEvent):
    """A queued message enters the model's history here."""

    message: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWithdrawn(TaskEvent):
    """A person took a queued message back."""

    message: MessageId


# The model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTold(TaskEvent):
    """Words of our own on the person's side of the conversation; people see those about mistakes."""

    text: str
    about: Literal["environment", "mistake", "resumption", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStarted(TaskEvent):
    """The model is asked."""

    request: RequestId
    model: str
    attempt: int = 1
    prompt: Blob | None = None  # system prompt and tools, as sent
    context_window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailed(TaskEvent):
    """No answer came of it."""

    request: RequestId
    what: str
    status: int | None = None  # of HTTP; None: no connection
    hint: str = ""  # what a person can do about it
    retry_in: float | None = None  # seconds; None: not by itself
    usage: Usage = NO_USAGE  # what it took nevertheless
    cost: float | None = 0.0
    estimated: bool = False  # nobody counted: both are a guess


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSaid(TaskEvent):
    """All of one answer, in the order in which it came."""

    request: RequestId
    parts: tuple[Part, ...]  # Text, Reasoning, ToolUse
    stop: StopReason
    usage: Usage
    cost: float | None = None  # None: unknown, never 0 by assumption
    seconds: float = 0.0
    estimated: bool = False  # it was stopped before the provider counted: usage and cost are a guess


# Tool calls: judged → asked → answered → started → finished. Questions have other reasons, too.


@dataclass(frozen=True, slots=True, kw_only=True)
class CallJudged(TaskEvent):
    """Whether a call may run, why, and who decided. The audit log is made of these."""

    call: CallId
    decision: Decision
    risk: str
    reason: str
    part: str = ""  # what it rests on
    by: str = "policy"  # "policy", "grant", "auto-approval", "mode" …


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked(TaskEvent):
    """The task waits for a person."""

    question: QuestionId
    ask: Ask
    text: str
    call: CallId | None = None
    choices: tuple[str, ...] = ()
    details: str = ""  # JSON: what a front end shows of a request for approval


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered(TaskEvent):
    """By a person, or `skip` when nobody did. After a restart it is history, never authority."""

    question: QuestionId
    answer: AnswerKind
    text: str = ""
    images: tuple[Blob, ...] = ()
    choices: tuple[Choice, ...] = ()
    edited: str | None = None  # the command they would rather have
    always: str = ""  # the scope of an "always allow"; older logs may have the offer behind it ("task:1")
    by: str = ""  # the front end
    offer: int = 0  # of an "always allow": which of those that the request offered

    @classmethod
    def of(cls, question: QuestionId, answer: Answer, *, at: float, images: tuple[Blob, ...] = ()) -> Self:
        """The fact of an answer; `images` are its pictures, as the log keeps them."""
        return cls(
            at=at,
            question=question,
            answer=answer.kind,
            text=answer.text,
            images=images,
            choices=answer.choices,
            edited=answer.edited,
            always=answer.always.scope.value if answer.always else "",
            offer=answer.always.offer if answer.always else 0,
            by=answer.by,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIntent:
    """What a tool is about to do to a file; None: no file. After a crash it shows whether the tool did that."""

    path: Path
    before: str | None  # SHA-256 of the content
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(TaskEvent):
    """On the disk before the tool acts."""

    call: CallId
    name: str
    title: str  # "Running `make test`"
    intents: tuple[FileIntent, ...] = ()
    command: str | None = None
    cwd: Path | None = None
    terminal: TerminalId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput(TaskEvent):
    """A running command's output so far is in `spool`, up to `offset`."""

    call: CallId
    terminal: TerminalId
    spool: Path
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(TaskEvent):
    """What the model is told of a call, and what a person is shown."""

    call: CallId
    name: str
    outcome: Outcome
    content: tuple[Part, ...]  # Text, Image
    title: str = ""  # "Ran `make test`"
    seconds: float = 0.0
    exit_code: int | None = None
    details: str = ""  # JSON: a diff, a terminal's result …


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen(TaskEvent):
    """The task knows this version of a file."""

    path: Path
    digest: str | None  # SHA-256; None: it is not there
    how: Literal["read", "edited"]


# The task's own state


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeSwitched(TaskEvent):
    """Another mode from here on; the history stays."""

    mode: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSwitched(TaskEvent):
    """Another model from here on."""

    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """An item of the list."""

    text: str
    status: Literal["open", "doing", "done"] = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class TodosUpdated(TaskEvent):
    """The whole list, as it is now."""

    todos: tuple[Todo, ...]
    by_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCondensed(TaskEvent):
    """For the model, the facts `first` to `last` (sequence numbers) are this summary now. The log keeps them."""

    first: int
    last: int
    summary: str
    how: Literal["summarised", "truncated"] = "summarised"
    tokens_before: int | None = None
    tokens_after: int | None = None
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    keeps_words: bool = False  # the person's words in between stay, behind the summary


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedOutput:
    """What the model sees of a result now."""

    call: CallId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsFolded(TaskEvent):
    """For the model, these results of calls are one line each now. The log keeps them."""

    outputs: tuple[FoldedOutput, ...]
    tokens_before: int | None = None
    tokens_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRewound(TaskEvent):
    """The conversation goes on from the fact `to`; what came after it is in the log alone."""

    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """A file before and after a change. An id is a SHA-256 (a blob) or a git object; None: no file; "": not kept."""

    path: Path
    before: str | None
    after: str | None
    before_mode: int = 0  # 0: unknown; of a git object only the kind and the executable bit count, unless `exact`
    after_mode: int = 0
    exact: bool = False  # the modes are those of the disk


@dataclass(frozen=True, slots=True, kw_only=True)
class GitTree:
    """The files below `root`, as a tree of the checkpoints' own repository."""

    root: Path
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCreated(TaskEvent):
    """The workspace as it is now can be brought back. Recorded before a call that changes something."""

    checkpoint: str
    why: str = ""
    call: CallId | None = None
    files: tuple[FileEdit, ...] = ()  # what a tool is about to write
    trees: tuple[GitTree, ...] = ()  # the workspace before a command
    partial: str = ""  # what can't be brought back, and why


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged(TaskEvent):
    """What a call changed since its checkpoint; or, without one, a command that was left running."""

    checkpoint: str
    files: tuple[FileEdit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRestored(TaskEvent):
    """Files were brought back as they were before the fact `to`. `checkpoint` has them as they were before that."""

    checkpoint: str
    paths: tuple[Path, ...] = ()
    to: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskStarted(TaskEvent):
    """A child works; this task waits for it."""

    child: TaskId
    text: str
    mode: str
    call: CallId | None = None
    workspace: Path | None = None  # a worktree of its own; None: the parent's workspace
    base: str = ""  # the git tree that it began with


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskFinished(TaskEvent):
    """A child came back."""

    child: TaskId
    outcome: Literal["completed", "aborted"]
    result: str
    usage: Usage = NO_USAGE
    cost: float | None = None
    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHosted(TaskEvent):
    """An agent of somebody else works on it from here on; `session` is what it calls this task."""

    name: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(TaskEvent):
    """Something for people alone."""

    what: Literal["error", "shell_integration_warning", "ignore_error", "notice"]
    text: str


# Stand-ins: what reading a log gives where there is no fact we know. Never written.


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent(TaskEvent):
    """A record of a newer Tarmac, kept as it is."""

    kind: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLost(TaskEvent):
    """A record was here, and the disk did not keep it. `at` is 0: nobody knows."""

    seq: int
    why: str
