"""What an execution asks of who runs it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tarmac.terminals.bell import Alarm
from tarmac.terminals.waiting import Waiting

if TYPE_CHECKING:
    from tarmac.events import TerminalId
    from tarmac.terminals.execution import Execution
    from tarmac.terminals.processes import Process
    from tarmac.terminals.watching import Listener


class Runner(Protocol):
    """Who runs executions: a terminal of either provider."""

    id: "TerminalId"
    cwd: Path
    alarm: Alarm

    @property
    def closed(self) -> bool: ...
    @property
    def current(self) -> "Execution | None": ...
    def subscribe(self, listener: "Listener") -> Callable[[], None]: ...
    def tree(self, *, own: bool) -> "set[Process]": ...
    def written_since_last_command(self) -> bytes: ...
    def send_input(self, execution: "Execution", data: bytes) -> None: ...
    def close_input(self, execution: "Execution") -> None: ...
    async def interrupt(self, execution: "Execution") -> None: ...
    async def kill(self, execution: "Execution") -> None: ...
    def waiting(self, execution: "Execution") -> Waiting | None: ...
