"""What tasks and tools need of a pool, and a pool without terminals, for programs that embed Tarmac without any."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

from tarmac.errors import OutOfTerminals, TerminalNotFound
from tarmac.terminals.result import Result
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Provider, Terminal

if TYPE_CHECKING:
    from tarmac.terminals.wait_conditions import Conditions, Happened


class Terminals(Protocol):
    """Lends terminals to tasks: `Pool`, `NoTerminals`, or one of your own."""

    def lease(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> AbstractAsyncContextManager[Terminal]: ...

    async def get_or_create(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> Terminal: ...

    def release(self, terminal: Terminal) -> None: ...
    def release_for_task(self, task: str) -> list[Terminal]: ...
    def leave_task(self, task: str) -> None: ...
    async def take_over(self, session: str) -> list[Terminal]: ...
    async def end_task(self, task: str) -> None: ...
    def get(self, id: str) -> Terminal: ...
    def listing(self, *, busy: bool | None = None, task: str | None = None) -> list[Terminal]: ...
    def background(self, *, busy: bool | None = None) -> list[Terminal]: ...
    async def read(self, id: str) -> list[Result]: ...
    async def unread_output(self, id: str) -> str: ...
    async def cool(self, task: str | None = None, *, edited: bool = False) -> None: ...
    async def kill(self, id: str) -> None: ...
    async def open(
        self,
        *,
        name: str = "",
        cwd: Path | str | None = None,
        shell: str | None = None,
        arguments: Sequence[str] = (),
        provider: Provider = "pty",
        task: str | None = None,
        outlive: bool = False,
    ) -> Terminal: ...
    def adopt(self, terminal: Terminal, why: str) -> None: ...
    def readable(self, id: str) -> Terminal: ...
    def shell(self, name: str | None = None) -> Shell: ...
    async def waiting_for(self, *ids: str, **conditions: "Unpack[Conditions]") -> "Happened": ...
    @property
    def gone(self) -> list[Terminal]: ...
    @property
    def settings(self) -> Settings: ...


class NoTerminals:
    """A pool that has no terminals."""

    @asynccontextmanager
    async def lease(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> AsyncIterator[Terminal]:
        yield await self.get_or_create(cwd=cwd, task=task, provider=provider, shell=shell)

    async def get_or_create(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> Terminal:
        raise OutOfTerminals("there are no terminals here", hint="Tarmac was embedded without a TerminalRegistry")

    def release(self, terminal: Terminal) -> None:
        """There is none."""

    def release_for_task(self, task: str) -> list[Terminal]:
        return []

    def leave_task(self, task: str) -> None:
        """It has none."""

    async def take_over(self, session: str) -> list[Terminal]:
        return []

    async def end_task(self, task: str) -> None:
        """It has none."""

    def get(self, id: str) -> Terminal:
        raise self._unknown(id)

    def _unknown(self, id: str) -> TerminalNotFound:
        return TerminalNotFound(f"Terminal {id} not found", hint="there are no terminals here")

    def listing(self, *, busy: bool | None = None, task: str | None = None) -> list[Terminal]:
        return []

    def background(self, *, busy: bool | None = None) -> list[Terminal]:
        return []

    async def read(self, id: str) -> list[Result]:
        raise self._unknown(id)

    async def unread_output(self, id: str) -> str:
        raise self._unknown(id)

    async def cool(self, task: str | None = None, *, edited: bool = False) -> None:
        """No command runs."""

    async def kill(self, id: str) -> None:
        """An unknown id is not an error."""

    async def open(
        self,
        *,
        name: str = "",
        cwd: Path | str | None = None,
        shell: str | None = None,
        arguments: Sequence[str] = (),
        provider: Provider = "pty",
        task: str | None = None,
        outlive: bool = False,
    ) -> Terminal:
        return await self.get_or_create(cwd=cwd or "", task=task)

    def adopt(self, terminal: Terminal, why: str) -> None:
        raise OutOfTerminals("there are no terminals here", hint="Tarmac was embedded without a TerminalRegistry")

    def readable(self, id: str) -> Terminal:
        raise self._unknown(id)

    def shell(self, name: str | None = None) -> Shell:
        return find_shell(name)

    async def waiting_for(self, *ids: str, **conditions: "Unpack[Conditions]") -> "Happened":
        raise self._unknown(ids[0] if ids else "")

    @property
    def gone(self) -> list[Terminal]:
        return []

    @property
    def settings(self) -> Settings:
        return Settings()
