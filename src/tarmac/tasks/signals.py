"""Signals, which are shown while they happen and never stored; and the listeners that get them and the task's events.

log ─event, durable→ Audience → listener(seq, event)
loop ─signal→        Audience → listener(None, signal)

Listeners get everything in the order it happened. A signal that comes while events are on their way to the disk waits
for them: nobody sees a call's output before the call. When the disk is full, it does not wait forever.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tarmac.events import TerminalId
from tarmac.tasks.events import CallId, RequestId, TaskEvent
from tarmac.tasks.log import TaskLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Something to show now. A listener that comes late misses it, and reads the log."""


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


MOST_HELD: Final = 2000

Listener = Callable[[int | None, TaskEvent | Signal], None]


class TaskListeners:
    """The listeners of one task."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with all that happens from now on. Calling the result removes it."""
        self._listeners.append(listener)

        def leave() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return leave

    def _tell(self, seq: int | None, thing: TaskEvent | Signal) -> None:
        for listener in self._listeners[:]:
            try:
                listener(seq, thing)
            except Exception as error:  # a front end's trouble is not the task's
                context = {"message": "a listener of a task failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)


class Audience(TaskListeners):
    """The listeners of a task of this process."""

    def __init__(self, log: TaskLog) -> None:
        super().__init__()
        self._log = log
        self._held: deque[tuple[int, Signal]] = deque()  # each with the fact after which it is shown
        log.subscribe(self._heard)

    def show(self, signal: Signal) -> None:
        """Show it now, or after the facts that came before it."""
        if not self._listeners:
            return
        pending = self._log.pending
        if pending and len(self._held) < MOST_HELD:
            self._held.append((self._log.seq + pending, signal))
            return
        self._release()
        self._tell(None, signal)

    def relay(self, event: TaskEvent) -> None:
        """Show a fact of another task, a subtask, which is in no log of ours."""
        self._release()
        self._tell(None, event)

    def _heard(self, seq: int, event: TaskEvent) -> None:
        self._tell(seq, event)
        while self._held and self._held[0][0] <= seq:
            self._tell(None, self._held.popleft()[1])

    def _release(self) -> None:
        while self._held:
            self._tell(None, self._held.popleft()[1])
