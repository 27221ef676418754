"""execute_command as a tool, which Void calls run_command.

allowed by itself → its plan, without a shell (start_plan)      approved → a terminal lent to the task, and left to it
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.models.messages import Text
from tarmac.policy import Execute, Plan
from tarmac.policy.plan import environment
from tarmac.policy.visible import visible
from tarmac.terminals.plans import PlanTerminal
from tarmac.terminals.terminal import Terminal
from tarmac.terminals.validation import check_command
from tarmac.tools import following
from tarmac.tools.file_access import directory
from tarmac.tools.report import Report
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool, Want

Seconds = Annotated[float, Meta(gt=0, le=3600)]  # who writes more thinks of milliseconds
LONGEST_TITLE = 120
TIMEOUT = "Seconds to wait for its end. After that it continues, and read_terminal shows it."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteCommand(Tool):
    name: ClassVar[str] = "execute_command"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Run a command in a real terminal of this task. It starts in `cwd`. Variables and functions last until later "
        "calls, a `cd` does not. The result has the exit code and the output. If it asks something, the result has "
        "its prompt. A command that takes longer than `timeout` continues in the background."
    )

    command: Annotated[str, Meta(min_length=1, description="The command line, of one or more lines.")]
    cwd: Annotated[str, Meta(description="The directory to run it in. Default: the workspace.")] = ""
    timeout: Annotated[Seconds | None, Meta(description=TIMEOUT)] = None

    async def prepare(self, bench: Bench) -> Ready:
        cwd = directory(bench, self.cwd)
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


def check(command: str) -> None:
    """ToolFailed for what no shell can read."""
    try:
        check_command(command)
    except TarmacError as error:
        raise ToolFailed(error.what, hint=error.hint) from None


def time_limit(bench: Bench, wanted: float | None) -> float:
    """How long a call may wait."""
    limit = bench.settings.command_timeout if wanted is None else wanted
    return min(limit, bench.settings.longest_timeout)


def is_approved(go: Go) -> bool:
    """Whether a person stands behind it: now, by a grant, or by a rule of theirs."""
    return go.approved or any(each.rule.startswith(("grant.", "user.")) for each in go.verdicts)


def allowed_plan(go: Go) -> Plan | None:
    """The plan of a command that nobody was asked about: it never enters a shell, whose words may have changed."""
    return go.verdicts[0].plan if go.verdicts and not go.approved else None


async def run_planned(bench: Bench, plan: Plan, command: str, cwd: Path, *, timeout: float) -> Report:
    """Run what only reads, without a shell; after `timeout` it is left running, in a terminal of the task's."""
    env = environment(os.environ, workspace=bench.workspace)
    terminal = PlanTerminal(plan, env, bench.registry.settings, task=bench.task)
    terminal.shell = bench.registry.shell()  # for which it was judged
    left = False
    try:
        execution = await terminal.start(command)
        result = await following.outcome(bench, execution, terminal=None, timeout=timeout)
        if execution.running and (left := _adopted(bench, terminal)):
            return Report(result=result, cwd=cwd, terminal=terminal.id, number=execution.number, alone=bench.alone)
        if execution.running:
            result = await execution.result(0.001, on_timeout="kill")
    except TarmacError as error:
        raise ToolFailed(error.what, hint=error.hint) from None
    finally:
        if not left:
            await asyncio.shield(terminal.aclose())
    return Report(result=result, cwd=cwd, alone=bench.alone)


def _adopted(bench: Bench, terminal: PlanTerminal) -> bool:
    """Whether there is room for it among the task's terminals."""
    try:
        bench.registry.adopt(terminal, "runs what only reads, without a shell")
    except TarmacError:
        return False
    terminal.stay()
    return True


async def run_in(
    bench: Bench, terminal: Terminal, command: str, cwd: Path, *, timeout: float, approved: bool
) -> Report:
    """Run a command in this terminal; after `timeout` it is left there."""
    execution = await terminal.start(command)
    execution.approved = approved
    if terminal.provider == "exec":
        execution.close_input()  # nobody sees what waits on a pipe: it gets its end of file, as without a terminal
    result = await following.outcome(bench, execution, terminal=terminal.id, timeout=timeout)
    return Report(result=result, cwd=cwd, terminal=terminal.id, number=execution.number, alone=bench.alone)


async def run_elsewhere(bench: Bench, command: str, cwd: Path, *, timeout: float, approved: bool) -> Report:
    """Run a command in a terminal that is not ours, and is for it alone; it stays while the command runs on."""
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
    """A command's result. Any exit code is one."""
    return Done(
        content=(Text(str(report)),),
        exit_code=report.result.exit_code,
        details=report.details,
        essence=report.essence,
        output=report.result.for_model(),
    )


def short(command: str) -> str:
    """A command as a title shows it."""
    line = " ⏎ ".join(each.strip() for each in command.strip().splitlines())
    line = visible(line)
    if len(line) <= LONGEST_TITLE:
        return line
    tail = LONGEST_TITLE // 3
    return f"{line[: LONGEST_TITLE - tail]} … {line[-tail:]}"
