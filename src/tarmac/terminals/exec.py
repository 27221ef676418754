"""The `exec` provider: one process for each command, over pipes. No shell is kept, so nothing gets out of step.

It is faster for bulk output, and the fallback when a shell can't be integrated. Each command starts in the terminal's
initial directory with a fresh environment. It ends when its process ends, even if a background process still holds the
pipe.
"""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from tarmac.errors import InputClosed
from tarmac.events import TaskId, TerminalId
from tarmac.paths import check_directory, remove_scratch, scratch_dir
from tarmac.terminals import environment, events
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.output_pipe import READ_SIZE, Outlet
from tarmac.terminals.piped import PipeTerminal, RunningProgram
from tarmac.terminals.process import processes
from tarmac.terminals.process.child import Child, used_up
from tarmac.terminals.process.pty import check_room
from tarmac.terminals.sandbox import Wrapped
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.command_file import private_zdotdir
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Origin


class ExecTerminal(PipeTerminal):
    """See `Terminal`; its directory stays the initial one."""

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
