"""What never changes while a task is open: its log, tools, policy and settings. What changes is in `state.py`."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tarmac.calls.call_judge import ActionPolicy
from tarmac.errors import BadRequest
from tarmac.events import TaskId
from tarmac.models.image_model import ImageModel
from tarmac.policy import Decision
from tarmac.policy.files import Files
from tarmac.policy.grants import GrantFile
from tarmac.prompts.modes import Mode, Modes
from tarmac.prompts.system import SystemFacts
from tarmac.tasks.auto import Auto, Kinds
from tarmac.tasks.events import CallId, CallJudged
from tarmac.tasks.limits import Limits
from tarmac.tasks.log import TaskLog
from tarmac.terminals.pool.protocol import Terminals
from tarmac.tools.output import Problem
from tarmac.tools.servers import Hub
from tarmac.tools.tool import ToolSettings
from tarmac.tools.toolbox import Toolbox

Why = Literal["completed", "idle", "interrupted", "paused", "limit", "failed", "refused", "aborted"]


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a run came to its end; `text` is for a person."""

    why: Why
    text: str = ""
    hint: str = ""  # what a person can do about it

    @property
    def told(self) -> str:
        """Text and hint."""
        return f"{self.text}\n  hint: {self.hint}" if self.hint else self.text


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
    auto_condense: bool = True  # the conversation, before it exceeds the model's window …
    auto_condense_percent: int = 80  # … when so much of the window is used
    system: SystemFacts = field(default_factory=lambda: SystemFacts(os="", shell="bash"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """What the person's editor shows, if the front end knows it. Paths are relative to the workspace, or absolute."""

    open_files: tuple[str, ...] = ()
    current_file: str = ""
    selected: tuple[int, int] | None = None  # its lines, from 1
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContext:
    """What an open task works with. Only a person who changes the level replaces it, as a whole."""

    task: TaskId
    workspace: Path
    log: TaskLog
    registry: Terminals
    policy: ActionPolicy
    files: Files
    grants: GrantFile | None
    toolbox: Toolbox
    servers: Hub
    image_model: ImageModel | None = None
    cache: Path  # a private folder for what can be made again
    modes: Modes
    settings: TaskSettings
    place: str = ""  # where its workspace and terminals are; empty: on this machine
    home: Path | None = None  # of the user there

    @property
    def project(self) -> Path:
        """Where rules, modes and commands of the workspace are read. Those of another place are not: nowhere."""
        return NOWHERE if self.place else self.workspace


NOWHERE = Path("/nonexistent")


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
