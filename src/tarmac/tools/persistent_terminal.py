"""The tools open_persistent_terminal, run_persistent_command and kill_persistent_terminal."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.paths import shown
from tarmac.policy import Execute, KillTerminal, OpenTerminal
from tarmac.tools import terminal_access
from tarmac.tools.execute_command import (
    TIMEOUT,
    Seconds,
    allowed_plan,
    check,
    done,
    is_approved,
    run_in,
    run_planned,
    short,
    time_limit,
)
from tarmac.tools.file_access import directory, looking
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool, Want

ID = "The terminal's id, such as 't3'."
SPELLINGS = {"persistent_terminal_id": "id", "persistentTerminalId": "id", "terminal_id": "id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPersistentTerminal(Tool):
    name: ClassVar[str] = "open_persistent_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Open a terminal that stays until it is killed, for a server, a watcher, or commands that build on each other."
    )
    spellings: ClassVar[Mapping[str, str]] = {"name": "label"}

    cwd: Annotated[str, Meta(description="Where it starts. Default: the workspace.")] = ""
    label: Annotated[str, Meta(description="Its name.")] = ""
    shell: Annotated[str, Meta(description="A shell, such as 'zsh' or 'bash -l'.")] = ""
    outlive: Annotated[bool, Meta(description="Keep it when Tarmac ends.")] = False

    async def prepare(self, bench: Bench) -> Ready:
        cwd = await looking(bench, directory, self.cwd)
        try:
            named, *words = shlex.split(self.shell) or [""]
            shell = bench.registry.shell(str(cwd / named) if "/" in named else named or None)
        except ValueError as error:
            raise ToolFailed(f"The shell {self.shell!r} can't be read: {error}.") from None
        except TarmacError as error:
            raise ToolFailed(error.what, hint=error.hint) from None

        async def act(_: Go) -> Done:
            try:
                terminal = await bench.registry.open(
                    name=self.label,
                    cwd=cwd,
                    shell=shell.path if named else None,
                    arguments=words,
                    task=bench.task,
                    outlive=self.outlive,
                )
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            text = f"Opened persistent terminal with id '{terminal.id}' ({shell.name}) in {shown(cwd)}."
            details = {"terminal": {"id": terminal.id, "name": terminal.name, "opened": True}}
            return Done.text(f"{text} Use run_persistent_command with this id.", details=details)

        want = Want(action=OpenTerminal(cwd=cwd, shell=shell.path if named else shell.name, arguments=tuple(words)))
        return Ready(title="Opening a terminal", done="Opened a terminal", wants=(want,), cwd=cwd, act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPersistentCommand(Tool):
    name: ClassVar[str] = "run_persistent_command"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Run a command in a persistent terminal, with the directory, variables and functions that the one before left."
    )
    spellings: ClassVar[Mapping[str, str]] = SPELLINGS

    command: Annotated[str, Meta(min_length=1, description="The command line.")]
    id: Annotated[str, Meta(min_length=1, description=ID)]
    timeout: Annotated[Seconds | None, Meta(description=TIMEOUT)] = None

    async def prepare(self, bench: Bench) -> Ready:
        terminal = terminal_access.own(bench, self.id)
        check(self.command)
        cwd = terminal.cwd

        async def act(go: Go) -> Done:
            if terminal_access.own(bench, self.id) is not terminal or terminal.cwd != cwd:
                raise ToolFailed(f"Terminal {self.id} has moved to {shown(terminal.cwd)} since. Nothing was run.")
            command = go.command if go.command is not None else self.command
            limit, plan = time_limit(bench, self.timeout or bench.registry.settings.run_timeout), allowed_plan(go)
            try:
                if plan is None:
                    report = await run_in(bench, terminal, command, cwd, timeout=limit, approved=is_approved(go))
                else:
                    report = await run_planned(bench, plan, command, cwd, timeout=limit)
                    if plan.cwd != cwd:  # the line has a `cd`: move the terminal, too
                        await terminal.run(":", cwd=plan.cwd)
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return done(replace(report, stays=True))

        if terminal.current is not None:
            raise ToolFailed(
                f"`{short(terminal.current.command)}` is still running in terminal {terminal.id}. Wait for it "
                "(wait_for_terminal), answer or interrupt it (send_to_terminal), or use another terminal."
            )
        return Ready(
            title=f"Running `{short(self.command)}` in {terminal.id}",
            done=f"Ran `{short(self.command)}` in {terminal.id}",
            wants=(Want(action=Execute(self.command, cwd=cwd, shell=terminal.shell.name)),),
            command=self.command,
            cwd=cwd,
            terminal=terminal.id,
            act=act,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KillPersistentTerminal(Tool):
    name: ClassVar[str] = "kill_persistent_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = "Close a terminal of this task and end everything that runs in it."
    spellings: ClassVar[Mapping[str, str]] = SPELLINGS

    id: Annotated[str, Meta(min_length=1, description=ID)]

    async def prepare(self, bench: Bench) -> Ready:
        title, after = f"Closing terminal {self.id}", f"Closed terminal {self.id}"
        if all(each.id != self.id for each in bench.registry.listing()):  # not an error: it may have closed by itself

            async def nothing(_: Go) -> Done:
                details = {"terminal": {"id": self.id, "closed": False}}
                return Done.text(f"Terminal {self.id} is not open. {terminal_access.known(bench)}", details=details)

            return Ready(title=title, done=after, act=nothing)
        terminal = terminal_access.own(bench, self.id)
        running = terminal.current.command if terminal.current is not None else None

        async def act(_: Go) -> Done:
            last = terminal.current
            await bench.registry.kill(terminal.id)
            if last is not None:
                last.read = True  # this result tells that it ended
            ended = f", and with it `{short(running)}`" if running else ""
            details = {"terminal": {"id": terminal.id, "closed": True}}
            return Done.text(f"Terminal {terminal.id} was closed{ended}.", details=details)

        want = Want(action=KillTerminal(terminal.id, running=running))
        return Ready(title=title, done=after, wants=(want,), terminal=terminal.id, act=act)
