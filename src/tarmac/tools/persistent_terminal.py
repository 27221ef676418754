"""The tools that work in a terminal that stays open.

open_persistent_terminal, run_persistent_command, kill_persistent_terminal
send_to_terminal    type text or keys into a running command; only a person may type a secret
"""

import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import BadArguments, ScreenUnavailable, TarmacError, ToolFailed
from tarmac.paths import shown
from tarmac.policy import Execute, KillTerminal, OpenTerminal, SendInput
from tarmac.policy.visible import shortened, visible
from tarmac.terminals.execution import Execution
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.terminal import Terminal
from tarmac.tools import terminal_access, terminal_status
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
from tarmac.tools.report import SECRET_ALONE, untagged
from tarmac.tools.terminal_status import TerminalStatus
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool, Want
from tarmac.vt.keys import keys

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


# Seconds without output after which the program has reacted. A program that reads keys may wait a second after Escape.
QUIET, QUIET_KEYS, LONGEST = 1.0, 1.5, 10.0
JUST_TYPED = 0.5
SECRET = "The command asks for a secret, such as a password. Nothing was sent. "
SECRET_SHARED = "Only the person may type it, in the terminal itself. Wait with wait_for_terminal."


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToTerminal(Tool):
    name: ClassVar[str] = "send_to_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Type into the command that runs in a terminal. Send text to answer its prompt (Enter is added), or keys by "
        "name, such as `C-c`, `C-d`, `Up`, `Enter`, `Escape` or `q`. The result has what the command prints next, or "
        "the screen of a full-screen program (vim, less, htop) after it has reacted."
    )
    spellings: ClassVar[Mapping[str, str]] = {**SPELLINGS, "input": "text"}

    id: Annotated[str, Meta(description=f"{ID} Default: the only busy terminal of this task.")] = ""
    text: Annotated[str | None, Meta(description="The text to type.")] = None
    keys: Annotated[str | None, Meta(description="Names of keys, separated by spaces. Use it instead of text.")] = None
    enter: Annotated[bool, Meta(description="Whether to press Enter after the text.")] = True

    async def prepare(self, bench: Bench) -> Ready:
        terminal = terminal_access.own(bench, self.id) if self.id.strip() else terminal_access.only_busy(bench)
        execution = terminal.current
        if execution is None:
            raise ToolFailed(f"Nothing is running in terminal {terminal.id}: use run_persistent_command.")
        if execution.by_person or terminal.held:
            raise ToolFailed(f"The person is typing in terminal {terminal.id}: it is theirs until the next prompt.")
        seen = await _waiting(execution)
        if seen is not None and seen.wants is Wants.SECRET:
            raise ToolFailed(_secret(bench))
        takes_keys = seen is not None and seen.wants is not Wants.LINE
        data = self._data(seen, application_cursor=takes_keys and await _application_cursor(terminal))

        async def act(_: Go) -> Done:
            _check_same(bench, terminal, execution, seen, await _waiting(execution))
            try:
                await execution.send(data)
                found = await _after(bench, terminal, execution, takes_keys=takes_keys)
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text(found.text, details=found.details, essence=untagged(found.text), output=found.output)

        shown = self.keys if self.keys is not None else shortened(visible(self.text or ""), 60)
        action = SendInput(
            data.decode("utf-8", "surrogateescape"),
            foreground=_reader(seen),
            cwd=_stands_in(seen, terminal),
            awaiting=None if seen is None else seen.wants.value,
            prompt="" if seen is None else seen.prompt,
            approved=execution in terminal_access.APPROVED,
        )
        return Ready(
            title=f"Sending `{shown}` to {terminal.id}",
            done=f"Sent `{shown}` to {terminal.id}",
            wants=(Want(action=action),),
            terminal=terminal.id,
            act=act,
        )

    def _data(self, seen: Waiting | None, *, application_cursor: bool) -> bytes:
        if (self.text is None) == (self.keys is None):
            raise BadArguments("send_to_terminal: give text or keys, one of them.")
        if self.keys is not None:
            try:
                return keys(self.keys, application_cursor=application_cursor)
            except TarmacError as error:
                raise BadArguments(f"send_to_terminal: {error.what}; {error.hint}.") from None
        text = (self.text or "").encode("utf-8", "surrogateescape")
        if not self.enter or text.endswith((b"\n", b"\r")):
            return text
        # A program that reads keys expects a carriage return for Enter. The line discipline takes either.
        return text + (b"\r" if seen is not None and seen.wants is Wants.KEYS else b"\n")


async def _waiting(execution: Execution) -> Waiting | None:
    """What the program waits for. Just after input it is asked again, as it may be about to wait."""
    if execution.waiting is None and time.monotonic() - execution.last_input < JUST_TYPED:
        await execution.waiting_for(input=True, timeout=JUST_TYPED)
    return execution.waiting


async def _application_cursor(terminal: Terminal) -> bool:
    try:
        return await terminal.screen.application_cursor()
    except ScreenUnavailable:
        return False


async def _after(bench: Bench, terminal: Terminal, execution: Execution, *, takes_keys: bool) -> TerminalStatus:
    """What the terminal shows when the program has reacted: its screen if it draws one, else what it printed."""
    if not (takes_keys or terminal.tape.drawn):
        await _reacted(execution, keys=False)
        return await terminal_status.look(terminal)
    try:
        seen = await terminal_access.look(terminal, bench.viewer)
        if execution.running and terminal.tape.drawn:
            return terminal_status.with_screen(terminal, seen, bench.viewer)
        return await terminal_status.look(terminal)
    except ScreenUnavailable as error:
        await _reacted(execution, keys=True)
        found = await terminal_status.look(terminal)
        if not (execution.running and terminal.tape.drawn):
            return found
        return replace(found, text=f"{found.text}\nThe screen is not shown: {error.what}. {error.hint}.")


async def _reacted(execution: Execution, *, keys: bool) -> None:
    """Wait until the program has reacted to the input."""
    quiet = QUIET_KEYS if keys else QUIET
    await execution.news(quiet)  # silence before the input does not count
    if execution.running:
        await execution.waiting_for(input=not keys, quiet=quiet, timeout=LONGEST)


def _secret(bench: Bench) -> str:
    return SECRET + (SECRET_ALONE if bench.alone else SECRET_SHARED)


def _check_same(
    bench: Bench, terminal: Terminal, execution: Execution, before: Waiting | None, now: Waiting | None
) -> None:
    """ToolFailed if the program that waits is no longer the one that the text was meant for."""
    if terminal.current is not execution:
        raise ToolFailed("The command has ended. Nothing was sent.")
    if now is not None and now.wants is Wants.SECRET:
        raise ToolFailed(_secret(bench))
    if before is not None and (now is None or (now.wants, now.process) != (before.wants, before.process)):
        raise ToolFailed(
            "The program no longer waits, or another one does. Nothing was sent. Look at the terminal again."
        )
    if terminal.held:
        raise ToolFailed(f"The person is typing in terminal {terminal.id}. Nothing was sent.")


def _reader(seen: Waiting | None) -> str | None:
    """The program that would read the input. A script is not a shell, even if a shell runs it."""
    if seen is None:
        return None
    return f"a script of {seen.name}" if seen.scripted else seen.name


def _stands_in(seen: Waiting | None, terminal: Terminal) -> Path:
    """The directory of the program that would read the input."""
    try:
        return Path(os.readlink(f"/proc/{seen.process.pid}/cwd")) if seen is not None else terminal.cwd
    except OSError:
        return terminal.cwd
