"""Fleeting things: shown while they happen, never stored. What becomes of them is an event (`events.py`)."""

from dataclasses import dataclass

from tarmac.events import TerminalId
from tarmac.tasks.events import CallId, RequestId


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Something to show now. Who comes late misses it and reads the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStreamed(Signal):
    """The next piece of what the model says."""

    request: RequestId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningStreamed(Signal):
    """The next piece of what it thinks."""

    request: RequestId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStreamed(Signal):
    """The next piece of a call's arguments: a file's content is shown as it comes."""

    request: RequestId
    call: CallId
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStreamed(Signal):
    """The next piece of a command's output."""

    call: CallId
    terminal: TerminalId
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMade(Signal):
    """How far a tool has come."""

    call: CallId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryCounted(Signal):
    """Seconds until a request is tried again."""

    request: RequestId
    seconds: float
