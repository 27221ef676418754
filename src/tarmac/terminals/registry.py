"""Terminals by id: open, run in, list, read, answer, interrupt, kill (T14).

The next issue makes it lend terminals to tasks (T3–T12); what is here is what a person or a tool needs to work with
terminals that stay.
"""

import asyncio
from pathlib import Path
from typing import Self

from tarmac.errors import BadRequest, TerminalClosed, TerminalNotFound
from tarmac.terminals.events import TerminalClosedEvent, TerminalEvent
from tarmac.terminals.execution import Execution
from tarmac.terminals.opening import make_terminal
from tarmac.terminals.result import Result
from tarmac.terminals.settings import OnTimeout, PathContribution, Settings
from tarmac.terminals.terminal import DEFAULT, Default, Listener, Provider, Terminal


class TerminalRegistry:
    """Holds terminals while they are open; `async with` closes all of them."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._terminals: dict[str, Terminal] = {}
        self._paths: dict[str, PathContribution] = {}
        self._listeners: list[Listener] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every terminal; one that fails to close keeps no other from closing."""
        self._closed = True
        terminals = list(self._terminals.values())
        results = await asyncio.gather(*(each.aclose() for each in terminals), return_exceptions=True)
        self._terminals.clear()
        errors = [each for each in results if isinstance(each, BaseException)]
        if errors:
            raise BaseExceptionGroup("some terminals could not be closed", errors)

    async def open(
        self,
        *,
        name: str = "",
        cwd: Path | str | None = None,
        shell: str | None = None,
        provider: Provider = "pty",
    ) -> Terminal:
        """Open a terminal that stays until it is killed or the registry is closed."""
        if self._closed:
            raise TerminalClosed("this registry is closed")
        from dataclasses import replace

        settings = replace(self.settings, path_contributions=(*self.settings.path_contributions, *self._paths.values()))
        terminal = await make_terminal(
            cwd=cwd, shell=shell, provider=provider, settings=settings, name=name, listener=self._tell
        )
        self._terminals[terminal.id] = terminal
        return terminal

    def get(self, id: str) -> Terminal:
        terminal = self._terminals.get(id)
        if terminal is None:
            known = ", ".join(self._terminals) or "none"
            raise TerminalNotFound(f"Terminal {id} not found", hint=f"open terminals: {known}")
        return terminal

    def listing(self, *, busy: bool | None = None) -> list[Terminal]:
        """The open terminals, oldest first."""
        return [each for each in self._terminals.values() if busy is None or each.busy == busy]

    async def run(
        self, id: str, command: str, *, timeout: float | Default | None = DEFAULT, on_timeout: OnTimeout = "leave"
    ) -> Result:
        """Run a command in the terminal of that id."""
        return await self.get(id).run(command, timeout=timeout, on_timeout=on_timeout)

    async def start(self, id: str, command: str) -> Execution:
        return await self.get(id).start(command)

    async def read(self, id: str) -> list[Result]:
        """Results nobody has read yet, oldest first, and last what the running command printed so far."""
        terminal = self.get(id)
        results = [await each.result() for each in terminal.unread]
        if terminal.current is not None:
            results.append(await terminal.current.so_far())
        return results

    async def send(self, id: str, text: str | bytes) -> None:
        """Type into the command that runs there."""
        await self._running(id).send(text)

    async def interrupt(self, id: str) -> None:
        terminal = self.get(id)
        if terminal.current is not None:
            await terminal.current.interrupt()

    async def kill(self, id: str) -> None:
        """Close the terminal of that id and end all in it; an unknown one is not an error."""
        terminal = self._terminals.pop(id, None)
        if terminal is not None:
            await terminal.aclose()

    def contribute_path(self, name: str, directory: Path, *, description: str = "") -> None:
        """Put `directory` in front of PATH in terminals opened from now on; the same name again replaces it (T33)."""
        if not name or ":" in str(directory) or "\0" in str(directory):
            raise BadRequest(f"{directory} can't be in PATH, or {name!r} is no name")
        self._paths[name] = PathContribution(name=name, directory=directory, description=description)

    @property
    def path_contributions(self) -> tuple[PathContribution, ...]:
        return tuple(self._paths.values())

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with every event of every terminal."""
        self._listeners.append(listener)

    def _running(self, id: str) -> Execution:
        terminal = self.get(id)
        if terminal.current is None:
            raise BadRequest(f"nothing is running in terminal {id}", hint="run a command first")
        return terminal.current

    def _tell(self, event: TerminalEvent) -> None:
        if isinstance(event, TerminalClosedEvent):
            self._terminals.pop(event.terminal, None)
        for listener in self._listeners:
            listener(event)
