"""What a task works with, and what it knows of itself: shared by the loop, the calls and the verbs of a person.

The views (history, metadata) know what is durable. What the next call in the same message must know already (the files
that were just written, the mode, what a run has used) is kept here beside them.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tarmac.errors import BadRequest
from tarmac.events import TaskId
from tarmac.models.provider import Model
from tarmac.policy import Decision, Policy
from tarmac.policy.files import Files
from tarmac.policy.grants import GrantFile
from tarmac.prompts.modes import Mode, Modes
from tarmac.prompts.system import SystemFacts
from tarmac.tasks.audience import Audience
from tarmac.tasks.auto import Auto, Kinds
from tarmac.tasks.events import CallId, CallJudged, TaskEvent, Todo
from tarmac.tasks.history import ModelHistory
from tarmac.tasks.limits import Limits, Used
from tarmac.tasks.log import TaskLog
from tarmac.tasks.metadata import Metadata
from tarmac.tasks.recovery import Unfinished
from tarmac.tasks.worktime import WorkTime
from tarmac.terminals.pool import Pool
from tarmac.terminals.terminal import Terminal
from tarmac.tools.tool import ToolSettings, Unsaved
from tarmac.tools.toolbox import Toolbox

Why = Literal["completed", "idle", "interrupted", "paused", "limit", "failed", "refused", "aborted"]


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a run came to its end; `text` is for a person."""

    why: Why
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What can be set about a task."""

    auto: Auto = "ask"
    approved: Kinds = field(default_factory=Kinds)  # with what the level adds
    limits: Limits = field(default_factory=Limits)
    approval_timeout: float | None = None  # seconds; then a question counts as skipped
    tools: ToolSettings = field(default_factory=ToolSettings)
    user_folder: Path = Path("/nonexistent")  # the user's modes, rules and commands
    instructions: str = ""  # the user's, for every mode
    language: str = ""
    system: SystemFacts = field(default_factory=lambda: SystemFacts(os="", shell="bash"))


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a compiler or a linter says of a line."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """What the person has before them, from a door that knows it (S8). Paths are the workspace's, or full."""

    open_files: tuple[str, ...] = ()
    current_file: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True, kw_only=True)
class Desk:
    """One open task."""

    task: TaskId
    workspace: Path
    log: TaskLog
    audience: Audience
    history: ModelHistory
    metadata: Metadata
    registry: Pool
    policy: Policy
    files: Files
    grants: GrantFile | None
    toolbox: Toolbox
    modes: Modes
    mode: Mode
    model: Model
    settings: TaskSettings
    attended: bool  # a person can be asked
    types_secrets: bool = False  # and by a door that hands over what commands ask for in secret
    elsewhere: Callable[[CallId, Path], Awaitable[Terminal]] | None = None  # where a call's approved command runs
    unsaved: Unsaved | None = None  # what an editor holds of a file that is not on disk yet
    seen: dict[Path, str | None] = field(default_factory=dict)  # the version of each file that the task knows (S21)
    under_way: dict[CallId, Unfinished] = field(default_factory=dict)  # calls that were started and have no result
    answered: dict[CallId, str] = field(default_factory=dict)  # what a person said to these, before a crash
    todos: tuple[Todo, ...] = ()
    cost: float | None = 0.0  # of the whole task; None: some price is unknown
    context: int = 0  # tokens in the window after the last answer
    editor: Editor = field(default_factory=Editor)
    edited: bool = False  # a file was changed since the environment was last looked at
    used: Used = field(default_factory=Used)
    clock: WorkTime = field(default_factory=WorkTime)  # of this run
    completed: str | None = None  # the result, once it is accepted

    def add(self, event: TaskEvent) -> None:
        """A fact that nothing waits for."""
        self.log.add(event)

    def out_of(self) -> str:
        """The limit that is reached, if one is."""
        self.used.seconds = self.clock.seconds
        return self.settings.limits.reached(self.used)

    def waits(self) -> AbstractContextManager[None]:
        """Held while a person is waited for: that is not the task's time."""
        return self.clock.stopped()


def find_mode(modes: Modes, slug: str) -> Mode:
    """The mode of that name; BadRequest names one that looks like it."""
    found = modes.get(slug)
    if found is None:
        near = modes.nearest(slug)
        known = ", ".join(each.slug for each in modes.all)
        raise BadRequest(f"there is no mode `{slug}`", hint=f"did you mean `{near}`?" if near else f"modes: {known}")
    return found


def judged(call: str, decision: Decision, reason: str, *, part: str = "", by: str) -> CallJudged:
    """A decision for the audit log that no command or file is behind."""
    return CallJudged(at=now(), call=CallId(call), decision=decision, risk="low", reason=reason, part=part, by=by)


def now() -> float:
    """The time of a fact."""
    return time.time()
