"""Run a plan that the policy allowed automatically: pipelines of literal words, one after another, without a shell.

RunnablePlan → start_plan() → Execution (to follow, interrupt, kill) → Result
step: its stages started from first to last, each a process over pipes → all of them ended → the next, by its status

Programs run under the rules of `plan.confinement` (confinement.py). If the rules can't be enforced, nothing runs. A
plan is any object of the form below; `tarmac.policy` makes them. Some programs that only read never end (`yes`), so a
plan is ended after `most_bytes` of output, and the result says so. It is also ended after its `seconds`, unless it has
a terminal of its own (PlanTerminal) in a pool, where it can be seen and ended (`tail -f`).
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tarmac.errors import BadRequest, InputClosed, ShellFailed, TarmacError
from tarmac.events import TaskId
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.terminals.environment import COOKIE
from tarmac.terminals.events import Listener
from tarmac.terminals.exec import Outlet, PipeTerminal, RunningProgram
from tarmac.terminals.execution import Execution
from tarmac.terminals.open import new_id
from tarmac.terminals.process import processes
from tarmac.terminals.process.child import Child, used_up
from tarmac.terminals.result import Ending, Reason, Result
from tarmac.terminals.settings import Settings, Wrapped
from tarmac.terminals.terminal import NewTerminal

if TYPE_CHECKING:
    from tarmac.terminals.process.confinement import Confined, ConfinementRules

STATUS = "\0"  # in a word: the exit code of the step before (`$?`); no word that a person writes can hold it
NOT_FOUND, NOT_RUN = 127, 126
REFUSED = (b"ermission denied", b"not permitted", b"EACCES", b"EPERM")  # what programs print when the kernel refuses
CONFINED = "it ran confined: it could read the workspace and system files, and not write or use the network"
LINGER = 1.0  # seconds that one which stayed can still be read as an open one after its end


class RunnableStage(Protocol):
    """One program of a pipeline. `out` is the next stage or the output, `err` always the output."""

    @property
    def words(self) -> tuple[str, ...]: ...
    @property
    def stdin(self) -> str | None:
        """The file it reads; None: `text`, the stage before, or nothing."""

    @property
    def text(self) -> str | None: ...
    @property
    def stdout(self) -> str:
        """ "out", "err" or "null"; the same for `stderr`."""

    @property
    def stderr(self) -> str: ...
    @property
    def alone(self) -> bool:
        """Whether it runs in an empty private folder."""


class RunnableStep(Protocol):
    """One pipeline, or none. `skips`: how many steps after it are left out if the status is success, or failure."""

    @property
    def stages(self) -> Sequence[RunnableStage]: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def when(self) -> str: ...
    @property
    def negated(self) -> bool: ...
    @property
    def skips(self) -> tuple[int, int]: ...


class RunnablePlan(Protocol):
    """See `tarmac.policy.Plan`."""

    @property
    def cwd(self) -> Path: ...
    @property
    def steps(self) -> Sequence[RunnableStep]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def most_bytes(self) -> int: ...
    @property
    def confinement(self) -> "ConfinementRules | None":
        """The rules that its programs run under; None: no rules but those of the user's account."""


async def run_plan(
    plan: RunnablePlan,
    *,
    command: str,
    environment: Mapping[str, str],
    settings: Settings | None = None,
    listener: Listener | None = None,
) -> Result:
    """Run `plan` and wait for its result; `command` is the line it was made from, `environment` all its programs get.

    It raises nothing for what the programs do. `result.cwd` is where a terminal that follows the line would stand.
    """
    async with start_plan(
        plan, command=command, environment=environment, settings=settings, listener=listener
    ) as execution:
        return await execution.result()


@asynccontextmanager
async def start_plan(
    plan: RunnablePlan,
    *,
    command: str,
    environment: Mapping[str, str],
    settings: Settings | None = None,
    listener: Listener | None = None,
) -> AsyncIterator[Execution]:
    """Start `plan`; on the way out what still runs of it is ended."""
    async with PlanTerminal(plan, environment, settings or Settings(), seconds=plan.seconds) as terminal:
        if listener is not None:
            terminal.subscribe(listener)
        yield await terminal.start(command)


class PlanTerminal(PipeTerminal):
    """A terminal that nobody else sees, for one plan; it is ended after `seconds`. `stay()` leaves it to others."""

    def __init__(
        self,
        plan: RunnablePlan,
        environment: Mapping[str, str],
        settings: Settings,
        *,
        seconds: float | None = None,
        task: TaskId | None = None,
    ) -> None:
        super().__init__(NewTerminal(cwd=plan.cwd, settings=settings, task=task), id=new_id())
        self.env = {**environment, COOKIE: self.cookie}
        self._plan = plan
        self._scratch: Path | None = None  # for temporary files
        self._nowhere: Path | None = None  # an empty folder
        self.refused = False  # whether a program said that the kernel refused it something
        self._seconds = seconds
        self._stays = False
        self._lingering: asyncio.Task[None] | None = None
        self._steps: _Steps | None = None
        self._limit: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """There is nothing to open."""

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        if self._steps is not None:
            raise BadRequest("this terminal runs one command, without a shell", hint="open another one")
        self._steps = steps = _Steps(self, self._plan, self._confined())
        execution = self._new_execution(command)
        execution.begin()
        self._process = steps
        steps.begin(execution)
        if self._seconds is not None:
            self._limit = asyncio.get_running_loop().call_later(self._seconds, self._end, execution, "timeout")
        return execution

    def _confined(self) -> "Confined | None":
        """The rules of the plan, ready to be put in force, and its private folder."""
        confinement = self._plan.confinement
        if confinement is None or not self._plan.steps:
            return None
        from tarmac.terminals.process.confinement import Confined  # ctypes, which only those need who run something

        self.env = {**self.env, **dict(confinement.variables)}
        if confinement.scratch:
            self._scratch = scratch_dir(self.env)
            names = ("TMPDIR", "HOME") if confinement.private_home else ("TMPDIR",)
            self.env = {**self.env, **dict.fromkeys(names, str(self._scratch))}
        try:
            return Confined(confinement, scratch=self._scratch)
        except BaseException:
            self._forget_scratch()
            raise

    def start_directory(self, stage: RunnableStage, cwd: Path) -> Path:
        """Where a program starts: where the line says, or where there is nothing."""
        if not stage.alone:
            return cwd
        self._nowhere = self._nowhere or scratch_dir(self.env)
        return self._nowhere

    def _forget_scratch(self) -> None:
        for folder in filter(None, (self._scratch, self._nowhere)):
            remove_scratch(folder)
        self._scratch = self._nowhere = None

    def stay(self) -> None:
        """Whoever started it goes, and it goes on; a moment after its end it is closed."""
        self._stays = True
        if self.current is None:
            self._linger()

    def _linger(self) -> None:
        async def close() -> None:
            await asyncio.sleep(LINGER)
            await self.aclose()

        self._lingering = self._lingering or asyncio.get_running_loop().create_task(close())

    async def aclose(self) -> None:
        if self._lingering is not None and self._lingering is not asyncio.current_task():
            self._lingering.cancel()
        await super().aclose()

    def on_output(self, execution: Execution, data: bytes) -> None:
        if self._plan.confinement is not None and not self.refused:
            self.refused = any(each in data for each in REFUSED)
        left = self._plan.most_bytes - execution.output_bytes
        super().on_output(execution, data[: max(left, 0)])
        if len(data) > left:
            self._end(execution, "killed")

    def _end(self, execution: Execution, why: Reason) -> None:
        """It went over a limit: no more of it."""
        if not execution.running or execution.cause is not None:
            return
        execution.cause = why
        limit = f"{self._seconds:g} seconds" if why == "timeout" else f"{self._plan.most_bytes:,} bytes of output"
        execution.notes.append(f"ended after {limit}, the most for a command that runs without asking")
        task = asyncio.get_running_loop().create_task(self.kill(execution))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def ended(self, execution: Execution, statuses: Sequence[int], status: int | None) -> None:
        """All steps are through, or no more may be."""
        if self._limit is not None:
            self._limit.cancel()
        self._process = None
        self._forget_scratch()
        if self.refused and status:
            execution.notes.append(CONFINED)
        reason: Reason = execution.cause or "done"
        if reason in ("interrupted", "killed") and status == 0 and not execution.notes:
            reason = "done"
        execution.finish(
            Ending(
                reason=reason,
                evidence="waitpid",
                cwd=self.cwd,
                exit_code=status,
                pipestatus=tuple(statuses),
            )
        )
        self._finished_execution(execution)
        if self._stays and not self.closed:
            self._linger()

    async def _close(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        await super()._close()
        if self._steps is not None:
            await self._steps.forget()

    def _leftovers(self) -> set[processes.Process]:
        """What reads leaves nothing running; after a limit or an interrupt one makes sure."""
        return super()._leftovers() if any(each.cause for each in self._finished) else set()


class _Steps(RunningProgram):
    """The steps of a plan, and the processes of the one that runs."""

    def __init__(self, terminal: PlanTerminal, plan: RunnablePlan, confined: "Confined | None") -> None:
        self._terminal, self._plan, self._confined = terminal, plan, confined
        self._children: list[Child] = []
        self._over = False
        self._task: asyncio.Task[None] | None = None
        self._execution: Execution | None = None
        try:
            self.outlet = Outlet(self._printed)
        except OSError as error:
            raise used_up(error, "cannot open a pipe") from error

    def begin(self, execution: Execution) -> None:
        self._execution = execution
        self.outlet.resume()
        self._task = asyncio.get_running_loop().create_task(self._run(execution))

    def _printed(self, data: bytes) -> None:
        if self._execution is not None:
            self._terminal.on_output(self._execution, data)

    async def _run(self, execution: Execution) -> None:
        statuses: list[int] = []
        status: int | None = None if self._plan.steps else 0
        left_out = 0
        try:
            for step in self._plan.steps:
                if left_out:
                    left_out -= 1
                    continue
                if self._over:
                    status = status or None  # the rest was not run: this is not a success
                    break
                if step.stages and step.when != ("success" if status else "failure"):
                    statuses = await self._pipeline(step, status or 0)
                    status = int(statuses[-1] == 0) if step.negated else statuses[-1]
                left_out = step.skips[bool(status)]
        except TarmacError as error:  # no such directory, nothing left to start it with
            self.say(f"{error.what}\n")
            status, statuses = 1, []
        finally:
            self.outlet.drain()
            self.outlet.close()
            self._terminal.ended(execution, statuses, status)

    async def _pipeline(self, step: RunnableStep, status: int) -> list[int]:
        """Start all stages of a step, and wait until all have ended: the status of each, as a shell tells it."""
        loop = asyncio.get_running_loop()
        endings: list[asyncio.Future[int]] = []
        reads = writes = following = -1
        self._children = []
        try:
            for number, stage in enumerate(step.stages):
                if number < len(step.stages) - 1:
                    following, writes = os.pipe()
                ending: asyncio.Future[int] = loop.create_future()
                failed = self._start(
                    stage, self._terminal.start_directory(stage, step.cwd), status, reads, writes, ending
                )
                endings.append(ending)
                if failed is not None:
                    ending.set_result(failed)
                _close(reads, writes)
                reads, writes, following = following, -1, -1
        except BaseException as error:
            _close(reads, writes, following)
            self.kill()
            await asyncio.gather(*endings)
            if isinstance(error, OSError) and not isinstance(error, TarmacError):
                raise used_up(error, "cannot open a pipe") from error
            raise
        return [_code(each) for each in await asyncio.gather(*endings)]

    def _start(
        self, stage: RunnableStage, cwd: Path, status: int, reads: int, writes: int, ending: asyncio.Future[int]
    ) -> int | None:
        """Start one program; the status of a shell that could not, when it can't be started."""
        words = [word.replace(STATUS, str(status)) for word in stage.words]
        fds: list[int] = []
        wrapped: Wrapped | None = None
        try:
            try:
                fds.append(self._input(stage, cwd, reads))
            except OSError as error:
                self.say(f"{stage.stdin or 'here-document'}: {error.strerror}\n")
                return 1
            fds.append(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
            ends = {"out": self.outlet.theirs if writes < 0 else writes, "err": self.outlet.theirs, "null": fds[-1]}
            argv = words
            if self._terminal.sandbox is not None and self._confined is None:
                wrapped = self._terminal.sandbox.wrap(words, cwd=cwd, env=self._terminal.env, first=False)
                argv = wrapped.argv
            child = Child(
                argv,
                cwd=cwd,
                env=self._terminal.env,
                stdin=fds[0],
                stdout=ends[stage.stdout],
                stderr=ends[stage.stderr],
                keeps_orphans=False,  # what reads leaves none; if it should, cookie and birthmark find them
                confined=self._confined,
            )
        except ShellFailed:
            if wrapped is not None:
                wrapped.close()
            found = any(Path(each, words[0]).is_file() for each in self._terminal.env.get("PATH", "").split(":"))
            self.say(f"{words[0]}: {'cannot be started' if found else 'command not found'}\n")
            return NOT_RUN if found else NOT_FOUND
        finally:
            _close(*fds)
        self._children.append(child)

        def exited(status: int) -> None:
            if wrapped is not None:
                wrapped.close()
            if not ending.done():
                ending.set_result(status)

        child.watch(exited)
        return None

    def _input(self, stage: RunnableStage, cwd: Path, reads: int) -> int:
        """A descriptor of what a stage reads, opened under the rules: its name may lead elsewhere by now."""
        if stage.stdin is None or self._confined is None:
            return _input(stage, cwd, reads)
        return self._confined.call(lambda: _input(stage, cwd, reads))

    def say(self, text: str) -> None:
        """What a shell would say of a program that it can't start."""
        self._printed(text.encode("utf-8", "replace"))

    async def forget(self) -> None:
        """Wait for its end, which is there but for a process that even SIGKILL does not end."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=0.1)
            self._task.cancel()
            for child in self._living():
                child.forget()

    # RunningProgram

    def tree(self) -> set[processes.Process]:
        found: set[processes.Process] = set()
        for child in self._living():
            own = processes.look(child.pid)
            found |= processes.descendants(child.pid) | ({own} if own else set())
        return found

    def _living(self) -> list[Child]:
        return [child for child in self._children if child.status is None]

    def signal(self, number: signal.Signals) -> None:
        self._over = True  # Ctrl-C ends the line, not just one step of it
        for child in self._living():
            try:
                os.killpg(child.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def stop(self) -> None:
        self._over = True

    def kill(self) -> None:
        for child in self._living():
            child.kill()

    def write(self, data: bytes) -> None:
        raise InputClosed("this command was started without input")

    def close_input(self, *, now: bool = False) -> None:
        """It has none."""


def _input(stage: RunnableStage, cwd: Path, reads: int) -> int:
    """A descriptor of what a stage reads."""
    if stage.text is not None:
        import tempfile  # and with it every compression there is

        with tempfile.TemporaryFile() as file:
            file.write(stage.text.encode("utf-8", "surrogateescape"))
            file.seek(0)
            return os.dup(file.fileno())
    if stage.stdin is not None:
        # A pipe with a name that nobody writes to would keep us waiting here, and so everybody.
        fd = os.open(cwd / stage.stdin, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        os.set_blocking(fd, True)
        return fd
    return os.dup(reads) if reads >= 0 else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _code(status: int) -> int:
    """As a shell tells it: a signal is 128 and more."""
    return status if status >= 0 else 128 - status


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)
