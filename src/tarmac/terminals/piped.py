"""Terminals over pipes: one execution at a time, and no shell that lasts; see `ExecTerminal` and plans.py."""

import asyncio
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from tarmac.errors import ExecutionEnded, InputClosed
from tarmac.events import TaskId, TerminalId
from tarmac.terminals import events
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.output_pipe import Outlet
from tarmac.terminals.process import birthmark, processes, signals
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Ending, Reason
from tarmac.terminals.settings import Settings
from tarmac.terminals.terminal import Origin, Terminal


class RunningProgram(ABC):
    """What runs for one execution: a process, or the steps of a plan (plans.py)."""

    outlet: Outlet

    @abstractmethod
    def tree(self) -> set[processes.Process]: ...
    @abstractmethod
    def signal(self, number: signal.Signals) -> None: ...
    @abstractmethod
    def stop(self) -> None:
        """Hold it still, so that it starts nothing more while its tree is ended."""

    @abstractmethod
    def kill(self) -> None: ...
    @abstractmethod
    def write(self, data: bytes) -> None: ...
    @abstractmethod
    def close_input(self, *, now: bool = False) -> None:
        """No more input, after what is still to be sent; `now` throws that away."""


class PipeTerminal(Terminal):
    """What is the same whether a process or a plan runs in it."""

    provider = "exec"

    def __init__(
        self,
        *,
        id: TerminalId,
        cwd: Path,
        settings: Settings,
        name: str = "",
        origin: Origin = "agent",
        task: TaskId | None = None,
    ) -> None:
        super().__init__(id=id, cwd=cwd, settings=settings, name=name, origin=origin, task=task)
        self.env: Mapping[str, str] = {}
        self._process: RunningProgram | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> bool:
        return False

    @property
    def has_jobs(self) -> bool:
        return bool(self._numbers and self._leftovers())

    @property
    def quality(self) -> str:
        return "none"

    async def type(self, data: bytes | str) -> None:
        raise InputClosed("nobody can type in an `exec` terminal", hint="open one with the pty provider")

    async def reset(self, cwd: Path) -> None:
        """Nothing lasts here."""

    async def environment(self) -> dict[str, str | None]:
        return {}  # each command starts afresh

    # What the process tells

    def on_output(self, execution: Execution, data: bytes) -> None:
        if execution.running:
            execution.feed(data)
            self._wrote(data)
            if execution.spool.crowded and self._process is not None:
                self._compact(execution, self._process)

    def on_exit(self, execution: Execution, status: int) -> None:
        reason: Reason = execution.cause or "done"
        code = status if status >= 0 else 128 - status
        if reason in ("interrupted", "killed") and status == 0 and not execution.notes:
            reason = "done"
        self._process = None
        ending = Ending(reason=reason, evidence="waitpid", cwd=self.cwd, exit_code=code, signal=max(-status, 0))
        execution.finish(ending)
        self._finished_execution(execution)
        if self._listeners:
            self._emit(events.BecameIdle(at=time.monotonic(), terminal=self.id))

    def _compact(self, execution: Execution, process: RunningProgram) -> None:
        process.outlet.pause()

        async def compact() -> None:
            await asyncio.get_running_loop().run_in_executor(None, execution.spool.compact)
            process.outlet.resume()

        task = asyncio.get_running_loop().create_task(compact())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Runner: what an Execution asks for

    def _need(self, execution: Execution) -> RunningProgram:
        if self.current is not execution or self._process is None:
            raise ExecutionEnded(f"`{execution.command[:60]}` is not running any more; nothing was sent")
        return self._process

    def tree(self, *, own: bool) -> set[processes.Process]:
        return self._process.tree() if self._process is not None else set()  # the rest would take a look at everybody

    def send_input(self, execution: Execution, data: bytes) -> None:
        self._need(execution).write(data)

    def close_input(self, execution: Execution) -> None:
        self._need(execution).close_input()

    def waiting(self, execution: Execution) -> Waiting | None:
        return None  # pipes: nobody types here

    async def interrupt(self, execution: Execution) -> None:
        """SIGINT to its group; terminate, then kill, the whole tree."""
        process = self._process
        if process is None:
            return
        process.signal(signal.SIGINT)
        if await execution.ended(self.settings.interrupt_grace):
            return
        execution.notes.append("it did not end on Ctrl-C: terminated")
        process.signal(signal.SIGTERM)
        await signals.end(process.tree, grace=self.settings.terminate_grace)
        if not await execution.ended(0.1):
            await self.kill(execution)

    async def kill(self, execution: Execution) -> None:
        process = self._process
        if process is None:
            return
        process.stop()
        await signals.end(process.tree, grace=0)
        process.kill()
        await execution.ended(2.0)

    async def _close(self) -> None:
        execution = self.current
        if execution is not None and self._process is not None:
            execution.cause = execution.cause or "terminal closed"
            await self.kill(execution)
        for task in list(self._tasks):
            await task
        left = await asyncio.get_running_loop().run_in_executor(None, self._leftovers) if self._numbers else None
        if left:
            await signals.end(self._leftovers, grace=0.2)
        self.spools.clear()
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))

    def _leftovers(self) -> set[processes.Process]:
        """What ended commands left running: it went to init, and its cookie finds it."""
        return birthmark.orphans(self.cookie)
