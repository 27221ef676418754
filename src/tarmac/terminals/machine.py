"""Where a pool's terminals are: on this machine, or wherever a `Machine` of another package opens them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tarmac.events import TaskId
from tarmac.paths import check_directory, nearest_existing
from tarmac.terminals.open import make_terminal
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Listener, Origin, Provider, Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTerminal:
    """What a terminal that is to be opened shall be."""

    cwd: Path
    settings: Settings
    shell: str | None = None
    arguments: tuple[str, ...] = ()  # of the shell
    provider: Provider = "pty"
    name: str = ""
    origin: Origin = "agent"
    task: TaskId | None = None
    environ: Mapping[str, str] | None = None  # None: that of the process that starts the shell
    without: str = ""  # why a live shell can't be used


class Machine(Protocol):
    """Opens terminals, and knows the directories and shells there."""

    def check_directory(self, path: Path | None) -> Path:
        """`path` made absolute; None: where commands begin. DirectoryUnavailable if nobody can enter it."""

    def nearest_directory(self, path: Path) -> Path:
        """`path`, or the closest of its parents that exists."""

    def shell(self, name: str | None) -> Shell:
        """The shell of that name, or the default one."""

    async def open(self, new: NewTerminal, *, listener: Listener | None = None) -> Terminal:
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

    async def open(self, new: NewTerminal, *, listener: Listener | None = None) -> Terminal:
        return await make_terminal(
            cwd=new.cwd,
            shell=new.shell,
            arguments=new.arguments,
            provider=new.provider,
            settings=new.settings,
            name=new.name,
            origin=new.origin,
            task=new.task,
            environ=new.environ,
            listener=listener,
            without=new.without,
        )
