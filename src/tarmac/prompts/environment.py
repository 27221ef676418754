"""What is going on around a task, told to the model with each turn (S8): bounded, whatever the facts are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

MOST = 24_000  # characters of the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalFacts:
    """A terminal, and what happened in it since the model was last told."""

    id: str
    cwd: Path | None
    busy: bool
    own: bool = True  # this task's; False: a background terminal
    command: str = ""  # that runs, or ran last
    output: str = ""  # new since the last time, clean
    ending: str = ""  # of a command that has ended since: "exit code 1", "killed by SIGKILL"
    waiting: str = ""  # the question it waits at; "a secret" is never shown here


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Files of the workspace."""

    paths: Sequence[str]
    more: bool = False  # there are more than these


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoFacts:
    """An item of the todo list."""

    text: str
    status: Literal["open", "doing", "done"] = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known. What is empty is not told."""

    workspace: Path
    cwd: Path | None = None  # where commands start, when it is not the workspace
    now: datetime
    mode: str
    mode_name: str = ""
    model: str = ""
    cost: float | None = None  # None: unknown
    cost_limit: float | None = None
    context_tokens: int | None = None
    context_window: int | None = None
    todos: Sequence[TodoFacts] = ()
    terminals: Sequence[TerminalFacts] = ()
    changed: Sequence[str] = ()  # files the task knows, and somebody else changed since (S21)
    listing: Listing | None = None  # at the first turn
    appeared: Sequence[str] = ()  # files that came since the last turn
    gone: Sequence[str] = ()
    open_files: Sequence[str] = ()  # from a door that knows
    current_file: str = ""
    problems: Sequence[str] = ()  # "src/app.py:3: error: …"


def environment_details(facts: Facts) -> str:
    """The text, `<environment_details>` … `</environment_details>`; at most MOST characters."""
    raise NotImplementedError
