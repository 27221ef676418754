"""Open a terminal: for a block, for a single command, or for a batch of commands.

open_terminal(), run_once(), run_batch() → make_terminal() → a live shell, or `exec` where none can be used
Pool → Machine.open(NewTerminal) → ThisMachine: make_terminal() · another machine: see `tarmac.fleet`
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tarmac.errors import BadRequest
from tarmac.events import TerminalId
from tarmac.paths import check_directory, nearest_existing
from tarmac.terminals.events import Listener, Listeners
from tarmac.terminals.exec import ExecTerminal
from tarmac.terminals.result import Result
from tarmac.terminals.settings import OnTimeout, Sandbox, Settings, check_command
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.shell.shell_lifecycle import NoIntegration
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import DEFAULT, Default, NewTerminal, Provider, Terminal

if TYPE_CHECKING:
    from tarmac.terminals.answers import Answers


_ids = count(1)


def new_id() -> TerminalId:
    """Unique among all terminals of this process."""
    return TerminalId(f"t{next(_ids)}")


@asynccontextmanager
async def open_terminal(
    *,
    cwd: Path | str | None = None,
    shell: str | None = None,
    arguments: Sequence[str] = (),
    provider: Provider = "pty",
    settings: Settings | None = None,
    name: str = "",
    sandbox: Sandbox | None = None,
    listener: Listener | None = None,
    outlive: bool = False,
) -> AsyncIterator[Terminal]:
    """Start a shell in `cwd`. Leaving the block ends it and all that it started.

    `arguments` are more options for the shell, such as `-l`. With `outlive` it goes on after the block, and after this
    program: see `attach_terminal`. (The setting of that name is for pools.)
    """
    if sandbox is not None:
        settings = replace(settings or Settings(), sandbox=sandbox)
    if outlive != (settings is not None and settings.outlive):
        settings = replace(settings or Settings(), outlive=outlive)
    if outlive and settings is not None:
        check_can_outlive(settings)
    listeners = Listeners()
    if listener is not None:
        listeners.add(listener)
    new = NewTerminal(
        cwd=Path(cwd) if cwd is not None else Path.cwd(),
        settings=settings or Settings(),
        shell=shell,
        arguments=tuple(arguments),
        provider=provider,
        name=name,
    )
    terminal = await make_terminal(new, listeners=listeners)
    async with terminal:
        yield terminal


def check_can_outlive(settings: Settings) -> None:
    """BadRequest: the sandbox belongs to this program, so a shell in it can't go on without the program."""
    if settings.sandbox is not None:
        raise BadRequest(
            "a terminal in a sandbox can't outlive the program",
            hint="open it without `outlive`",
        )


async def make_terminal(new: NewTerminal, *, listeners: Listeners | None = None) -> Terminal:
    """Open a terminal that the caller must close with `aclose()`."""
    settings = new.settings
    if new.provider not in ("pty", "exec"):
        raise BadRequest(f"provider is 'pty' or 'exec', not {new.provider!r}")
    new = replace(new, cwd=check_directory(new.cwd))
    kind = find_shell(new.shell, arguments=new.arguments)
    if new.arguments and settings.outlive:
        raise BadRequest("a terminal that outlives the program takes no arguments for its shell")
    if settings.sandbox is not None:  # its first call tries out what works, which takes a while
        await asyncio.to_thread(settings.sandbox.describe)
    live: type[PtyTerminal] = PtyTerminal
    if settings.outlive and new.provider == "pty" and settings.sandbox is None:
        from tarmac.terminals.daemon import kept_terminal

        live, id = kept_terminal.KeptTerminal, kept_terminal.new_id()
    else:
        id = new_id()
    why = new.without or ("it is turned off" if settings.shell_integration_disabled else "")
    stands_in = new.provider == "exec" or why
    terminal = ExecTerminal(kind, new, id=id) if stands_in else live(kind, new, id=id)
    try:
        await terminal.open()
    except NoIntegration as error:  # from now on it uses `exec`, and never waits again
        why = error.what
        terminal = ExecTerminal(kind, new, id=id)
        await terminal.open()
    if listeners is not None:
        terminal.listeners.join(listeners)
    terminal.opened()
    if why and new.provider == "pty":
        assert isinstance(terminal, ExecTerminal)
        terminal.without_integration(why, tell=not new.without)
    return terminal


async def run_once(
    command: str,
    *,
    cwd: Path | str | None = None,
    shell: str | None = None,
    provider: Provider = "pty",
    timeout: float | Default | None = DEFAULT,
    on_timeout: OnTimeout = "interrupt",
    settings: Settings | None = None,
    answers: "Answers | None" = None,
) -> Result:
    """Run one command in a terminal of its own, and close it."""
    settings = settings or Settings()
    check_command(command)
    async with open_terminal(cwd=cwd, shell=shell, provider=provider, settings=settings) as terminal:
        limit = settings.once_timeout if isinstance(timeout, Default) else timeout
        return await terminal.run(command, timeout=limit, on_timeout=on_timeout, answers=answers)


async def run_batch(
    commands: Sequence[str],
    *,
    cwd: Path | str | None = None,
    shell: str | None = None,
    timeout: float | Default | None = DEFAULT,
    stop_on_error: bool = True,
    settings: Settings | None = None,
) -> list[Result]:
    """Run commands one after another in one shell, so that `cd` and variables carry over. One result for each.

    With `stop_on_error` it stops after the first command that did not exit with 0.
    """
    settings = settings or Settings()
    for command in commands:
        check_command(command)
    limit = settings.once_timeout if isinstance(timeout, Default) else timeout
    results: list[Result] = []
    async with open_terminal(cwd=cwd, shell=shell, settings=settings) as terminal:
        for command in commands:
            results.append(await terminal.run(command, timeout=limit, on_timeout="interrupt"))
            if stop_on_error and results[-1].exit_code != 0:
                break
    return results


class Machine(Protocol):
    """Opens terminals, and knows the directories and shells there."""

    def check_directory(self, path: Path | None) -> Path:
        """`path` made absolute; None: where commands begin. DirectoryUnavailable if nobody can enter it."""

    def nearest_directory(self, path: Path) -> Path:
        """`path`, or the closest of its parents that exists."""

    def shell(self, name: str | None) -> Shell:
        """The shell of that name, or the default one."""

    async def open(self, new: NewTerminal, *, listeners: Listeners | None = None) -> Terminal:
        """Open a terminal that the caller must close with `aclose()`."""


class ThisMachine:
    """Terminals are children of this process."""

    def __init__(self) -> None:
        self._shells: dict[tuple[str | None, str | None], Shell] = {}

    def check_directory(self, path: Path | None) -> Path:
        return check_directory(Path.cwd() if path is None else path)

    def nearest_directory(self, path: Path) -> Path:
        return nearest_existing(path)

    def shell(self, name: str | None) -> Shell:
        """It is looked up once: a search through PATH takes a while."""
        wanted = (name, os.environ.get("PATH"))
        if wanted not in self._shells:
            self._shells[wanted] = find_shell(name)
        return self._shells[wanted]

    async def open(self, new: NewTerminal, *, listeners: Listeners | None = None) -> Terminal:
        return await make_terminal(new, listeners=listeners)
