"""What a live shell does with its present command, as values. One of these is the terminal's `state`.

            load              start mark             end mark, but the shell is not in front
    Idle ──────────→ Loading ────────────→ Running ──────────────────────────────────────────→ EndTold
      ↑                 │ the shell dies      │ the shell is at its prompt, and no mark came      │
      │                 └──→ Restarting       └──→ Asked                                          │
      └──── the end: by mark, by the prompt, by the answer, by waitpid, or taken back ←───────────┘

    Idle ──a person runs a line──→ ByPerson ──its prompt──→ Idle

A shell that starts or is dead is not a state of a command: see `Session.prompted` and `Session.alive`. Who may type is
the keyboard's own state.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from tarmac.terminals.execution import Execution
from tarmac.terminals.result import Ending

MOST_HELD = 1 << 20


class Given(NamedTuple):
    """A command as it was given to the shell."""

    execution: Execution
    data: bytes
    move: bytes  # where it runs; empty: where the shell is
    oom_kills: bytes  # what the shell's cgroup told of them before it
    restarted: bool = False  # in a fresh shell, as the one before died


@dataclass(slots=True)
class Idle:
    """No command of ours, nor of a person's."""


@dataclass(slots=True)
class ByPerson:
    """A line that a person typed."""

    execution: Execution


@dataclass(slots=True)
class Loading:
    """Given to the shell; the start mark has not come."""

    given: Given
    looks: int = 0  # how often we looked why not
    freed: int = 0  # at which look what a prompt hook ran was ended, as it was in the way
    asleep: int = -1  # which sleep of the shell was seen when it should have been busy


@dataclass(slots=True)
class Restarting:
    """The shell died before the command began; it is given to a fresh one, once."""

    given: Given
    task: "asyncio.Task[None]"


@dataclass(slots=True)
class Running:
    """The start mark came."""

    given: Given
    looks: int = 0


@dataclass(slots=True)
class Asked:
    """The shell is back at its prompt, no mark told the end, and it was asked for the status."""

    given: Given
    looks: int = 0
    at: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class EndTold:
    """Its end mark came while the shell was not in front: a prompt hook runs. The prompt is waited for a moment."""

    given: Given
    ending: Ending
    looks: int = 0
    at: float = field(default_factory=time.monotonic)
    held: bytearray = field(default_factory=bytearray)  # what came after it

    def hold(self, data: bytes) -> bool:
        """Whether `data` is kept back: a prompt hook prints little."""
        if len(self.held) + len(data) > MOST_HELD:
            return False
        self.held += data
        return True


Begun = Running | Asked | EndTold
State = Idle | ByPerson | Loading | Restarting | Running | Asked | EndTold
