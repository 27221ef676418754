"""The tools execute_command, and run_command, which models know from Void.

A command that the policy allows runs from its plan, without a shell. A command that a person approved runs in a
terminal that is leased to the task.
"""

import asyncio
import math
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tarmac.errors import TarmacError, TerminalClosed, ToolFailed
from tarmac.events import TerminalId
from tarmac.models.messages import Text
from tarmac.policy import Execute, Plan
from tarmac.policy.approval import Authority, authority
from tarmac.policy.judge import is_relay
from tarmac.policy.plan import environment
from tarmac.policy.visible import visible
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.follow import Gap
from tarmac.terminals.plans import PlanTerminal
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Result
from tarmac.terminals.settings import check_command
from tarmac.terminals.terminal import Terminal
from tarmac.tools import terminal_access
from tarmac.tools.file_access import directory, looking
from tarmac.tools.output import Understanding, understand
from tarmac.tools.report import Report
from tarmac.tools.tool import Bench, Done, Go, Group, Output, Ready, Tool, Want

Seconds = Annotated[float, Meta(gt=0, le=3600)]  # a larger number was meant as milliseconds
LONGEST_TITLE = 120
SMALL_OUTPUT = 8 << 10  # characters that are read at once; more of them beside the event loop
MOST_UNDERSTOOD = 8 << 20  # bytes of an output that are searched for failures: half from each end
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\^_])")
TIMEOUT = "Seconds to wait for its end. After that it continues, and read_terminal shows it."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteCommand(Tool):
    name: ClassVar[str] = "execute_command"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Run a command in a real terminal of this task. The result has the exit code and the output. If it asks "
        "something, the result has its prompt."
    )

    command: Annotated[str, Meta(min_length=1, description="The command, one or more lines.")]
    cwd: Annotated[str, Meta(description="The directory to run it in. Default: the workspace.")] = ""
    timeout: Annotated[Seconds | None, Meta(description=TIMEOUT)] = None

    async def prepare(self, bench: Bench) -> Ready:
        cwd = await looking(bench, directory, self.cwd)
        check(self.command)
        shell = bench.registry.shell()

        async def act(go: Go) -> Done:
            command = go.command if go.command is not None else self.command
            plan = allowed_plan(go)
            if plan is not None:
                return done(await run_planned(bench, plan, command, cwd, timeout=time_limit(bench, self.timeout)))
            limit = time_limit(bench, self.timeout)
            try:
                if bench.elsewhere is not None:
                    return done(await run_elsewhere(bench, command, cwd, timeout=limit, approved=is_approved(go)))
                async with bench.registry.lease(cwd=cwd, task=bench.task) as terminal:
                    return done(await run_in(bench, terminal, command, cwd, timeout=limit, approved=is_approved(go)))
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None

        return Ready(
            title=f"Running `{short(self.command)}`",
            done=f"Ran `{short(self.command)}`",
            wants=(Want(action=Execute(self.command, cwd=cwd, shell=shell.name)),),
            command=self.command,
            cwd=cwd,
            act=act,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand(Tool):
    """Like execute_command, in a terminal that is closed with its result."""

    name: ClassVar[str] = "run_command"
    group: ClassVar[Group] = "command"
    described: ClassVar[bool] = False
    description: ClassVar[str] = "Run a command in a temporary terminal, which is closed when the command ends."

    command: Annotated[str, Meta(min_length=1, description="The command, one or more lines.")]
    cwd: Annotated[str, Meta(description="The directory to run it in. Default: the workspace.")] = ""
    timeout: Annotated[Seconds | None, Meta(description="Seconds until it is interrupted.")] = None

    async def prepare(self, bench: Bench) -> Ready:
        cwd = await looking(bench, directory, self.cwd)
        check(self.command)
        shell = bench.registry.shell()

        async def act(go: Go) -> Done:
            command = go.command if go.command is not None else self.command
            limit, plan = time_limit(bench, self.timeout), allowed_plan(go)
            if plan is not None:
                return done(await run_planned(bench, plan, command, cwd, timeout=limit))
            try:
                return done(await run_temporary(bench, command, cwd, timeout=limit))
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None

        return Ready(
            title=f"Running `{short(self.command)}`",
            done=f"Ran `{short(self.command)}`",
            wants=(Want(action=Execute(self.command, cwd=cwd, shell=shell.name)),),
            command=self.command,
            cwd=cwd,
            act=act,
        )


async def run_temporary(bench: Bench, command: str, cwd: Path, *, timeout: float) -> Report:
    """Run a command in a terminal of its own, which is closed. After `timeout` the command is interrupted."""
    terminal = await bench.registry.open(name="temporary", cwd=cwd, task=bench.task)
    try:
        execution = await terminal.start(command)
        result = await outcome(bench, execution, terminal=terminal.id, timeout=timeout)
        if execution.running:
            result = await execution.result(0.001, on_timeout="interrupt")
        understood = await read_output(execution, result)
    finally:
        await asyncio.shield(bench.registry.kill(terminal.id))
    return Report(
        result=result,
        cwd=cwd,
        terminal=terminal.id,
        number=execution.number,
        alone=True,
        lean=bench.alone,
        sandboxed=terminal.sandbox is not None,
        understood=understood,
    )


def check(command: str) -> None:
    """Raise ToolFailed for a command that no shell can read."""
    try:
        check_command(command)
    except TarmacError as error:
        raise ToolFailed(error.what, hint=error.hint) from None


def time_limit(bench: Bench, wanted: float | None) -> float:
    """The seconds that a call may wait."""
    limit = bench.settings.command_timeout if wanted is None else wanted
    return min(limit, bench.settings.longest_timeout)


def is_approved(go: Go) -> bool:
    """Whether a person approved it: now, by a grant, or by a rule of their own."""
    return go.approved or any(authority(each) in (Authority.GRANT, Authority.RULES) for each in go.verdicts)


def allowed_plan(go: Go) -> Plan | None:
    """The plan of a command that nobody was asked about. It never enters a shell, where its words may be redefined."""
    return go.verdicts[0].plan if go.verdicts and not go.approved else None


async def run_planned(bench: Bench, plan: Plan, command: str, cwd: Path, *, timeout: float) -> Report:
    """Run a command that only reads, without a shell. After `timeout` it goes on in a terminal of the task."""
    env = environment(os.environ, workspace=bench.workspace)
    terminal = PlanTerminal(plan, env, bench.registry.settings, task=bench.task)
    terminal.shell = bench.registry.shell()  # the policy judged the command for this shell
    left = False
    try:
        execution = await terminal.start(command)
        result = await outcome(bench, execution, terminal=None, timeout=timeout)
        if execution.running and (left := _adopted(bench, terminal)):
            return Report(
                result=result,
                cwd=cwd,
                terminal=terminal.id,
                number=execution.number,
                alone=bench.alone,
                lean=bench.alone,
                wakes=bench.wakes,
            )
        if execution.running:
            result = await execution.result(0.001, on_timeout="kill")
        understood = await read_output(execution, result)
    except TarmacError as error:
        raise ToolFailed(error.what, hint=error.hint) from None
    finally:
        if not left:
            await asyncio.shield(terminal.aclose())
    return Report(result=result, cwd=cwd, alone=bench.alone, lean=bench.alone, understood=understood)


def _adopted(bench: Bench, terminal: PlanTerminal) -> bool:
    """Keep the terminal among those of the task, if there is room."""
    try:
        bench.registry.adopt(terminal, "runs what only reads, without a shell")
    except TarmacError:
        return False
    terminal.stay()
    return True


async def run_in(
    bench: Bench, terminal: Terminal, command: str, cwd: Path, *, timeout: float, approved: bool
) -> Report:
    """Run a command in this terminal. After `timeout` it goes on there."""
    execution = await terminal.start(command)
    if approved:
        terminal_access.APPROVED.add(execution)
    if terminal.provider == "exec":
        execution.close_input()  # a program that waits on a pipe can't be seen: let it read the end of the file
    result = await outcome(bench, execution, terminal=terminal.id, timeout=timeout)
    return Report(
        result=result,
        cwd=cwd,
        terminal=terminal.id,
        number=execution.number,
        screen=await terminal_access.drawn(terminal, result, bench.viewer),
        alone=bench.alone,
        lean=bench.alone,
        wakes=bench.wakes,
        sandboxed=terminal.sandbox is not None,
        understood=await read_output(execution, result),
    )


async def read_output(execution: Execution, result: Result) -> Understanding | None:
    """What the output of a command that ended says; all of it, also where the result has only its ends."""
    if result.running or result.binary:
        return None
    if not result.truncated and len(result.output) < SMALL_OUTPUT:
        return understand(result.command, result.output, result.exit_code)

    def read() -> Understanding:
        text = result.output
        if result.truncated:
            end = execution.output_bytes
            head = execution.spool.read(execution.spool.start, MOST_UNDERSTOOD // 2)
            tail = execution.spool.read(max(head[0] + len(head[1]), end - MOST_UNDERSTOOD // 2), MOST_UNDERSTOOD // 2)
            plain = _ESCAPES.sub(b"", head[1] + tail[1]).replace(b"\r\n", b"\n")
            text = plain.decode("utf-8", "replace")
        return understand(result.command, text, result.exit_code)

    return await asyncio.to_thread(read)


async def run_elsewhere(bench: Bench, command: str, cwd: Path, *, timeout: float, approved: bool) -> Report:
    """Run a command in a terminal of the editor, which is open as long as the command runs."""
    assert bench.elsewhere is not None
    terminal = await bench.elsewhere(cwd)
    running = False
    try:
        report = await run_in(bench, terminal, command, cwd, timeout=timeout, approved=approved)
        running = report.result.running
        return report
    finally:
        if not running:
            await asyncio.shield(terminal.aclose())


def done(report: Report) -> Done:
    """The result of a command, whatever its exit code."""
    return Done(
        content=(Text(str(report)),),
        exit_code=report.result.exit_code,
        details=report.details,
        essence=report.essence,
        output=report.screen or report.result.for_model(),
    )


def short(command: str) -> str:
    """A command in one line, for a title."""
    line = " ⏎ ".join(each.strip() for each in command.strip().splitlines())
    line = visible(line)
    if len(line) <= LONGEST_TITLE:
        return line
    tail = LONGEST_TITLE // 3
    return f"{line[: LONGEST_TITLE - tail]} … {line[-tail:]}"


# Seconds that a program must wait for input before the model is told. Short behind a prompt, longer without one, and
# longest for a relay such as ssh, which always reads the keyboard.
AT_PROMPT, NO_PROMPT, RELAYED = 0.4, 2.0, 5.0
LOOK_AGAIN = 1.0  # seconds until the next look, because a wait for input is reported only once
SOON = 0.03  # seconds within which most commands end; such a command is not followed
GENTLE = 0.4  # seconds between Ctrl-C and kill for a cancelled command


async def outcome(bench: Bench, execution: Execution, *, terminal: TerminalId | None, timeout: float) -> Result:
    """The result of a command. If it still runs after `timeout` or waits for input, the result so far."""
    end = time.monotonic() + timeout
    follower: asyncio.Task[None] | None = None
    reason: Literal["left running", "idle"] = "left running"
    try:
        if not await execution.ended(min(SOON, timeout)):
            follower = asyncio.create_task(_show(bench, execution, terminal))
            with bench.waiting(execution, execution.leave):
                reason = await _settled(bench, execution, end)
        if not execution.running and (follower is not None or execution.output_bytes):
            follower = follower or asyncio.create_task(_show(bench, execution, terminal))
            await follower
        return await execution.so_far(reason)
    except asyncio.CancelledError:
        follower = follower or asyncio.create_task(_show(bench, execution, terminal))
        await asyncio.shield(_ended(execution))
        execution.spool.flush()  # the record of the call reads the output from the spool
        raise
    finally:
        if follower is not None and not follower.done():
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
        elif follower is not None and not follower.cancelled():
            follower.exception()  # raised above already


async def _show(bench: Bench, execution: Execution, terminal: TerminalId | None) -> None:
    end = 0
    async for piece in execution.follow():
        if isinstance(piece, Gap):
            end += piece.bytes
            continue
        execution.spool.flush()  # what a person sees is on the disk, should we be killed the next moment
        if not end and terminal is not None:
            bench.started(terminal, execution.spool.path)
            if execution.running:  # else its result is recorded next
                await bench.recorded()
        end += len(piece)
        bench.show(Output(terminal=terminal, data=piece, end=end))


async def _settled(bench: Bench, execution: Execution, end: float) -> Literal["left running", "idle"]:
    """Wait until it ends, waits for input, is silent for too long, or `end` has come; why the wait is over."""
    idle = bench.registry.settings.idle_timeout
    while execution.running and not execution.left and (left := end - time.monotonic()) > 0:
        if time.monotonic() - execution.last_output > idle:
            return "idle"
        if bench.secrets and wants_secret(execution):  # the person is asked for it: it is not the model's turn
            with bench.secrets():
                await execution.ended(min(left, LOOK_AGAIN))
            continue
        try:
            happened = await execution.waiting_for(input=True, timeout=min(left, LOOK_AGAIN))
        except TerminalClosed:
            await execution.ended(left)
            break
        if happened.waiting is None or (bench.secrets and happened.waiting.wants == "secret"):
            continue
        if await stands(execution, happened.waiting, end):
            break
    return "left running"


def wants_secret(execution: Execution) -> bool:
    """Whether it waits for a secret, which only a person may type."""
    return execution.running and execution.waiting is not None and execution.waiting.wants == "secret"


async def stands(execution: Execution, seen: Waiting, end: float = math.inf) -> bool:
    """Whether it still waits for the same input after a moment, before `end`."""
    before = (execution.inputs, execution.output_bytes, seen)
    patience = RELAYED if is_relay(seen.name) else AT_PROMPT if _at_prompt(execution, seen) else NO_PROMPT
    await execution.ended(max(min(patience, end - time.monotonic()), 0.001))
    return before == (execution.inputs, execution.output_bytes, execution.waiting)


def _at_prompt(execution: Execution, seen: Waiting) -> bool:
    if not seen.prompt.strip() or not execution.output_bytes:
        return False
    _, last = execution.spool.read(execution.output_bytes - 1, 1)
    return last not in (b"\n", b"\r")


async def _ended(execution: Execution) -> None:
    """End a cancelled command: Ctrl-C, then kill."""
    try:
        await asyncio.wait_for(execution.interrupt(), GENTLE)
    except TimeoutError:
        pass
    await execution.kill()
