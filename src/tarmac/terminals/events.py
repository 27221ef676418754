"""What happens in terminals. Subscribe with `terminal.subscribe(listener)`; listeners must not block."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tarmac.events import Event, TerminalId


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalEvent(Event):
    """Something happened in a terminal."""

    terminal: TerminalId


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalOpened(TerminalEvent):
    """It is there, with a shell (or ready to start one for each command)."""

    cwd: Path
    shell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalClosedEvent(TerminalEvent):
    """It is gone for good; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellEnded(TerminalEvent):
    """The shell ended by itself or was killed; the next command would start a fresh one."""

    status: int  # its exit code, or minus the signal


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellReplaced(TerminalEvent):
    """A fresh shell stands in its place: the one before had died, or the terminal passes to another task."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStarted(TerminalEvent):
    """A command was given to it, by us or by a person."""

    number: int
    command: str
    by_person: bool
    cwd: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFinished(TerminalEvent):
    """A command came back to the prompt, or its shell died under it."""

    number: int
    command: str
    by_person: bool
    exit_code: int | None  # None: nobody could tell
    reason: str
    cwd: Path  # where the shell stands now, not where it began


@dataclass(frozen=True, slots=True, kw_only=True)
class DataWritten(TerminalEvent):
    """Raw bytes for viewers; our own marks and the programs' questions are not in them."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryChanged(TerminalEvent):
    """The shell stands elsewhere now."""

    cwd: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellIntegrationChanged(TerminalEvent):
    """How well the shell tells what it does."""

    quality: str  # "none", "basic", "rich", "relay"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoShellIntegration(TerminalEvent):
    """Integration did not come up in time: commands go through `exec` instead. Sent once."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingInput(TerminalEvent):
    """A command began to wait for somebody to type: its foreground process is blocked reading the terminal."""

    number: int  # of the command
    wants: str  # "line", "secret", "keys", "unknown"
    name: str  # of the process
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BecameIdle(TerminalEvent):
    """At its prompt, nobody's turn."""


Listener = Callable[[TerminalEvent], None]
Kind = type[TerminalEvent]


class Listeners:
    """Who is told of which events: of one terminal, or of all terminals of a pool."""

    def __init__(self) -> None:
        self._of: dict[Kind, list[Listener]] = {}
        self._pool: Listeners | None = None

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def add(self, listener: Listener, *kinds: Kind) -> Callable[[], None]:
        """Tell `listener` of events of these kinds, or without any of all; the returned function ends that."""
        wanted = kinds or tuple(TerminalEvent.__subclasses__())
        for kind in wanted:
            self._of.setdefault(kind, []).append(listener)

        def remove() -> None:
            for kind in wanted:
                if listener in (those := self._of.get(kind, [])):
                    those.remove(listener)
                    if not those:
                        del self._of[kind]

        return remove

    def join(self, pool: "Listeners") -> None:
        """From now on the pool's listeners are told, too, and before all others."""
        self._pool = pool

    def want(self, kind: Kind) -> bool:
        """Whether anybody is told of such an event. Else it need not be made."""
        return kind in self._of or (self._pool is not None and kind in self._pool._of)

    def tell(self, event: TerminalEvent) -> None:
        """Call them. One that fails is the event loop's to report: no terminal stops for a viewer's fault."""
        kind = type(event)
        told = self._of.get(kind, [])
        for listener in [*self._pool._of.get(kind, []), *told] if self._pool is not None else told[:]:
            try:
                listener(event)
            except Exception as error:
                message = f"a listener failed at {kind.__name__} of terminal {event.terminal}"
                asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
