"""The `exec` provider: one process a command, over pipes; no shell to keep, so nothing to get out of step.

The faster way for bulk output, and the fallback when a shell can't be integrated (T1, T21). Each command starts in
the terminal's initial directory with a fresh environment. It has ended when its process has, even if something it
left in the background still holds the pipe.
"""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from tarmac.errors import ExecutionEnded, InputClosed
from tarmac.events import TaskId, TerminalId
from tarmac.paths import check_directory, remove_scratch, scratch_dir
from tarmac.terminals import birthmark, environment, events, processes
from tarmac.terminals.child import Child, used_up
from tarmac.terminals.execution import Execution
from tarmac.terminals.result import Ending, Reason
from tarmac.terminals.sandbox import Wrapped
from tarmac.terminals.settings import Settings
from tarmac.terminals.shells import Shell
from tarmac.terminals.terminal import Origin, Terminal
from tarmac.terminals.waiting import Waiting
from tarmac.terminals.zdotdir import private_zdotdir

READ_SIZE = 256 << 10
READS_A_WAKE_UP = 8
PIPE_SIZE = 1 << 20
LONGEST_DRAIN = 8 << 20
F_SETPIPE_SZ = 1031


class ExecTerminal(Terminal):
    """See `Terminal`; its directory stays the initial one."""

    provider = "exec"

    def __init__(
        self,
        shell: Shell,
        *,
        id: TerminalId,
        cwd: Path,
        settings: Settings,
        base_env: Mapping[str, str],
        name: str = "",
        origin: Origin = "agent",
        task: TaskId | None = None,
    ) -> None:
        super().__init__(id=id, cwd=cwd, settings=settings, name=name, origin=origin, task=task)
        self.shell = shell
        self.env = environment.build(base_env, settings, cookie=self.cookie)
        self._folder: Path | None = None
        self._process: _Process | None = None
        self.stands_in = ""  # why it is used instead of a live shell
        self._note = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """There is nothing to open before the first command, but the private ZDOTDIR if one is wanted."""
        if self.settings.zdotdir:
            self._folder = scratch_dir(self.env)
            self.env = private_zdotdir(self._folder, self.env)

    def without_integration(self, why: str, *, tell: bool = True) -> None:
        """It stands in for a live shell: say so in each result, and with `tell` once to whoever listens (T21)."""
        self.stands_in = why
        self._note = f"no shell integration ({why}): each command runs by itself, `cd` and variables do not last"
        if tell:
            self._emit(events.NoShellIntegration(at=time.monotonic(), terminal=self.id, why=why))

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

    # What the process tells

    def on_output(self, execution: Execution, data: bytes) -> None:
        if execution.running:
            execution.feed(data)
            self._wrote(data)
            if execution.spool.crowded and self._process is not None:
                self._compact(execution, self._process)

    def on_exit(self, process: "_Process", execution: Execution, status: int) -> None:
        reason: Reason = execution.cause or "done"
        code = status if status >= 0 else 128 - status
        if reason in ("interrupted", "killed") and status == 0 and not execution.notes:
            reason = "done"
        self._process = None
        execution.finish(Ending(reason=reason, evidence="waitpid", cwd=self.cwd, exit_code=code))
        self._finished_execution(execution)
        if self._listeners:
            self._emit(events.BecameIdle(at=time.monotonic(), terminal=self.id))

    def _compact(self, execution: Execution, process: "_Process") -> None:
        process.pause()

        async def compact() -> None:
            await asyncio.get_running_loop().run_in_executor(None, execution.spool.compact)
            process.resume()

        task = asyncio.get_running_loop().create_task(compact())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Runner: what an Execution asks for

    def _need(self, execution: Execution) -> "_Process":
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
        await processes.end(process.tree, grace=self.settings.terminate_grace)
        if not await execution.ended(0.1):
            await self.kill(execution)

    async def kill(self, execution: Execution) -> None:
        process = self._process
        if process is None:
            return
        process.stop()
        await processes.end(process.tree, grace=0)
        process.child.kill()
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
            await processes.end(self._leftovers, grace=0.2)
        if self._folder is not None:
            remove_scratch(self._folder)
        self._clear_spools()
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))

    def _leftovers(self) -> set[processes.Process]:
        """What ended commands left running: it went to init, and its cookie finds it."""
        return birthmark.orphans(self.cookie)


class _Process:
    """One command's process and its pipes."""

    def __init__(
        self, argv: list[str], *, cwd: Path, env: Mapping[str, str], input_open: bool, wrapped: Wrapped | None = None
    ) -> None:
        fds: list[int] = []
        self._wrapped = wrapped
        try:
            try:
                self._out, theirs = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
                fds += [self._out, theirs]
                if input_open:
                    stdin, self._in = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
                    fds += [stdin, self._in]
                else:
                    stdin, self._in = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1
                    fds.append(stdin)
            except OSError as error:
                raise used_up(error, "cannot open a pipe") from error
            self._widen()
            os.set_blocking(self._out, False)
            self.child = Child(argv, cwd=cwd, env=env, stdin=stdin, stdout=theirs, stderr=theirs)
        except BaseException:
            _close(fds)
            if wrapped is not None:
                wrapped.close()
            raise
        _close([theirs, stdin])
        if self._in >= 0:
            os.set_blocking(self._in, False)
        self._unsent = bytearray()
        self._in_ends = False
        self._reading = False

    def _widen(self) -> None:
        """A bigger pipe means fewer wake-ups; its size may be capped for other users than root."""
        import fcntl

        try:
            fcntl.fcntl(self._out, F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            pass

    def watch(self, terminal: ExecTerminal, execution: Execution) -> None:
        self._terminal, self._execution = terminal, execution
        self.resume()
        self.child.watch(self._exited)

    def resume(self) -> None:
        if self._out >= 0 and not self._reading:
            asyncio.get_running_loop().add_reader(self._out, self._readable)
            self._reading = True

    def pause(self) -> None:
        if self._reading:
            asyncio.get_running_loop().remove_reader(self._out)
            self._reading = False

    def _readable(self) -> None:
        for _ in range(READS_A_WAKE_UP):
            try:
                data = os.read(self._out, READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                self.pause()
                return
            self._terminal.on_output(self._execution, data)
            if not self._reading:  # paused by it
                return

    def _exited(self, status: int) -> None:
        """Read what is in the pipe, but wait for nobody who still holds it."""
        left = LONGEST_DRAIN
        while left > 0:
            try:
                data = os.read(self._out, READ_SIZE)
            except OSError:
                break
            if not data:
                break
            left -= len(data)
            self._terminal.on_output(self._execution, data)
        self.pause()
        self.close_input(now=True)
        os.close(self._out)
        self._out = -1
        if self._wrapped is not None:
            self._wrapped.close()
        self._terminal.on_exit(self, self._execution, status)

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
        """Hold it still, so that it starts nothing more while its tree is ended."""
        if self.child.status is None:
            try:
                os.kill(self.child.pid, signal.SIGSTOP)
            except (ProcessLookupError, PermissionError):
                pass

    def write(self, data: bytes) -> None:
        if self._in < 0 or self._in_ends:
            raise InputClosed("this command was started without input", hint="use start(), or the pty provider")
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
        """No more input, after what is still to be sent; `now` throws that away."""
        self._in_ends = True
        if self._in >= 0 and (now or not self._unsent):
            if self._unsent:
                asyncio.get_running_loop().remove_writer(self._in)
            os.close(self._in)
            self._in = -1


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
