"""What is done in a terminal, one step after another, and what must come of it.

Model      what the terminal must be like now: its variables, its directory, the code of the last command
Step       one command, how it is dealt with, and its expected result
Game       steps that belong together, and leave the shell as they found it, or dead
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Act = Literal["run", "answer", "interrupt", "time out", "kill", "leave", "follow", "resize", "cancel"]
Output = str | re.Pattern[str] | None  # None: whatever it prints


@dataclass(slots=True)
class Model:
    """What we know of the terminal between two commands."""

    cwd: Path
    last: int = 0  # $?
    variables: dict[str, str] = field(default_factory=dict)
    dead: bool = False  # its shell has ended: the next command gets a fresh one
    jobs: bool = False  # it may tell of jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command of a session."""

    text: str
    output: Output | Callable[[Model], str] = ""
    code: int | tuple[int, ...] | None = 0  # None: whatever it is
    reasons: tuple[str, ...] = ("done",)
    act: Act = "run"
    when: str = ""  # act when this was printed
    typed: tuple[str, ...] = ()  # answers, one for each question
    at: str | None = None  # it must run there, seen from the session's directory: the terminal moves first
    cwd: str | None = None  # where it goes, seen from the session's directory
    sets: dict[str, str] = field(default_factory=dict)
    dies: bool = False  # the shell ends
    jobs: bool = False  # something runs on in the background, and the shell may tell of it later
    keeps_last: bool = True  # $? after it is its code


@dataclass(frozen=True, slots=True)
class Game:
    """Steps that only make sense together."""

    name: str
    steps: tuple[Step, ...]


def expected_output(step: Step, model: Model) -> Output:
    """What it must print, now."""
    return step.output(model) if callable(step.output) else step.output
