"""Terminals over pipes: one process for each command. No shell is kept, so nothing gets out of step.

PipeTerminal.start() → a process whose output is an Outlet → Execution.feed(), held still on demand → its wait status
  ExecTerminal (here)      `sh -c` for each command: the `exec` provider
  PlanTerminal (plans.py)  pipelines that the policy allowed, without a shell

The `exec` provider is faster for bulk output, and the fallback when a shell can't be integrated. Each command starts in
the terminal's initial directory with a fresh environment. It ends when its process ends, even if a background process
still holds the pipe.
"""

import asyncio
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path

from tarmac.errors import ExecutionEnded, InputClosed
from tarmac.events import TerminalId
from tarmac.paths import check_directory, remove_scratch, scratch_dir
from tarmac.terminals import environment, events
from tarmac.terminals.execution import Execution
from tarmac.terminals.process import birthmark, processes, signals
from tarmac.terminals.process.child import Child, used_up
from tarmac.terminals.process.pty import check_room
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Ending, Reason
from tarmac.terminals.settings import Wrapped
from tarmac.terminals.shell.command_file import private_zdotdir
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import NewTerminal, Terminal

READ_SIZE = 256 << 10
READS_A_WAKE_UP = 8
PIPE_SIZE = 1 << 20
LONGEST_DRAIN = 8 << 20
F_SETPIPE_SZ = 1031


class Outlet:
    """`theirs` is the end to print into; `on_data` gets what was printed, once `resume` was called."""

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self._ours, self.theirs = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        self._on_data = on_data
        self._reading = False
        self._widen()
        os.set_blocking(self._ours, False)

    def _widen(self) -> None:
        """A bigger pipe means fewer wake-ups; its size may be capped for other users than root."""
        import fcntl

        try:
            fcntl.fcntl(self._ours, F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            pass

    def resume(self) -> None:
        if self._ours >= 0 and not self._reading:
            asyncio.get_running_loop().add_reader(self._ours, self._readable)
            self._reading = True

    def pause(self) -> None:
        if self._reading:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._reading = False

    def _readable(self) -> None:
        for _ in range(READS_A_WAKE_UP):
            try:
                data = os.read(self._ours, READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                self.pause()
                return
            self._on_data(data)
            if not self._reading:  # paused by it
                return

    def close_theirs(self) -> None:
        """We print nothing into it ourselves, so that its end can be seen."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def drain(self) -> None:
        """What is in the pipe now, but wait for nobody who still holds it."""
        left = LONGEST_DRAIN
        while left > 0 and self._ours >= 0:
            try:
                data = os.read(self._ours, READ_SIZE)
            except OSError:
                return
            if not data:
                return
            left -= len(data)
            self._on_data(data)

    def close(self) -> None:
        self.close_theirs()
        self.pause()
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1


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

    def __init__(self, new: NewTerminal, *, id: TerminalId) -> None:
        super().__init__(new, id=id)
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
        self._tell_idle()

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


class ExecTerminal(PipeTerminal):
    """See `Terminal`; its directory stays the initial one."""

    def __init__(self, shell: Shell, new: NewTerminal, *, id: TerminalId) -> None:
        super().__init__(new, id=id)
        self.shell = shell
        self.env = environment.build(new.environ, new.settings, cookie=self.cookie)
        self._folder: Path | None = None
        self.stands_in = ""  # why it is used instead of a live shell
        self._note = ""

    async def open(self) -> None:
        """There is nothing to open before the first command, but the private ZDOTDIR if one is wanted."""
        if self.settings.zdotdir:
            self._folder = scratch_dir(self.env)
            self.env = private_zdotdir(self._folder, self.env)

    def without_integration(self, why: str, *, tell: bool = True) -> None:
        """It replaces a live shell. Each result says so, and with `tell` listeners hear it once."""
        self.stands_in = why
        self._note = f"no shell integration ({why}): each command runs by itself, `cd` and variables do not last"
        if tell:
            self._emit(events.NoShellIntegration(at=time.monotonic(), terminal=self.id, why=why))

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        here = cwd or check_directory(self.cwd)
        argv, wrapped = self.shell.one(os.fsdecode(data)), None
        if self.sandbox is not None:
            wrapped = self.sandbox.wrap(argv, cwd=here, env=self.env, first=False)
            argv = wrapped.argv
        process = _Process(argv, cwd=here, env=self.env, input_open=input_open, wrapped=wrapped)
        execution = self._new_execution(command, notes=(self._note,) if self._note else ())
        execution.begin()
        self._process = process
        process.watch(self, execution)
        return execution

    async def _close(self) -> None:
        await super()._close()
        if self._folder is not None:
            remove_scratch(self._folder)


class _Process(RunningProgram):
    """One command's process and its pipes."""

    def __init__(
        self, argv: list[str], *, cwd: Path, env: Mapping[str, str], input_open: bool, wrapped: Wrapped | None = None
    ) -> None:
        fds: list[int] = []
        self._wrapped = wrapped
        try:
            try:
                self.outlet = Outlet(self._printed)
                if input_open:
                    stdin, self._in = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
                    fds += [stdin, self._in]
                else:
                    stdin, self._in = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1
                    fds.append(stdin)
            except OSError as error:
                raise used_up(error, "cannot open a pipe") from error
            theirs = self.outlet.theirs
            self.child = Child(argv, cwd=cwd, env=env, stdin=stdin, stdout=theirs, stderr=theirs)
        except BaseException:
            if hasattr(self, "outlet"):
                self.outlet.close()
            _close(fds)
            if wrapped is not None:
                wrapped.close()
            raise
        self.outlet.close_theirs()
        os.close(stdin)
        if self._in >= 0:
            os.set_blocking(self._in, False)
        self._unsent = bytearray()
        self._in_ends = False

    def watch(self, terminal: ExecTerminal, execution: Execution) -> None:
        self._terminal, self._execution = terminal, execution
        self.outlet.resume()
        self.child.watch(self._exited)

    def _printed(self, data: bytes) -> None:
        self._terminal.on_output(self._execution, data)

    def _exited(self, status: int) -> None:
        """Read what is in the pipe, but wait for nobody who still holds it."""
        self.outlet.drain()
        self.outlet.close()
        self.close_input(now=True)
        if self._wrapped is not None:
            self._wrapped.close()
        self._terminal.on_exit(self._execution, status)

    def tree(self) -> set[processes.Process]:
        own = processes.look(self.child.pid) if self.child.status is None else None
        return processes.descendants(self.child.pid) | ({own} if own else set())

    def signal(self, number: signal.Signals) -> None:
        if self.child.status is None:
            try:
                os.killpg(self.child.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def stop(self) -> None:
        if self.child.status is None:
            try:
                os.kill(self.child.pid, signal.SIGSTOP)
            except (ProcessLookupError, PermissionError):
                pass

    def kill(self) -> None:
        self.child.kill()

    def write(self, data: bytes) -> None:
        if self._in < 0 or self._in_ends:
            raise InputClosed("this command was started without input", hint="use start(), or the pty provider")
        check_room(len(self._unsent), len(data))
        if not self._unsent:
            try:
                data = data[os.write(self._in, data) :]
            except (BlockingIOError, InterruptedError):
                pass
            except BrokenPipeError as error:
                raise InputClosed("the command reads no more input") from error
            if not data:
                return
            asyncio.get_running_loop().add_writer(self._in, self._writable)
        self._unsent += data

    def _writable(self) -> None:
        try:
            del self._unsent[: os.write(self._in, self._unsent[:READ_SIZE])]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._unsent.clear()
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self._in)
            if self._in_ends:
                self.close_input()

    def close_input(self, *, now: bool = False) -> None:
        self._in_ends = True
        if self._in >= 0 and (now or not self._unsent):
            if self._unsent:
                asyncio.get_running_loop().remove_writer(self._in)
            os.close(self._in)
            self._in = -1


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
