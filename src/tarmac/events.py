"""The base of every fact and signal, and the ids they carry.

A fact is a frozen dataclass named in the past tense. Packages define their own (`terminals/events.py`).
"""

from dataclasses import dataclass
from typing import Literal, NewType

TerminalId = NewType("TerminalId", str)
TaskId = NewType("TaskId", str)
CallId = NewType("CallId", str)  # of a tool call

CallOutcome = Literal["done", "failed", "denied", "skipped", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. Subscribers see it; nobody answers it."""

    at: float  # time.monotonic(); of a task's facts, which outlive the machine's uptime, time.time()
