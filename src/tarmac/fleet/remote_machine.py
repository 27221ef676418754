"""A machine behind a transport. It opens terminals there, and passes the host's messages to them."""

import asyncio
from pathlib import Path
from typing import Self

from tarmac.errors import BadRequest, SandboxUnavailable, TarmacError
from tarmac.fleet.place_connection import PlaceConnection
from tarmac.fleet.remote_terminal import RemoteTerminal
from tarmac.fleet.transport import Transport
from tarmac.terminals.events import TerminalClosedEvent, TerminalEvent
from tarmac.terminals.host.host import TIME_TO_LIVE
from tarmac.terminals.host.wire_values import Header, path_text, text
from tarmac.terminals.open import NewTerminal, new_id
from tarmac.terminals.shell.dialects import shell_elsewhere
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Listener, Terminal

PATIENCE = 120.0  # seconds in which a broken connection is tried again


class RemoteMachine:
    """Connected while its block runs. Leaving the block ends its terminals there."""

    def __init__(self, transport: Transport, *, time_to_live: float = TIME_TO_LIVE, patience: float = PATIENCE) -> None:
        self.connection = PlaceConnection(transport, self, time_to_live=time_to_live, patience=patience)
        self._terminals: dict[str, RemoteTerminal] = {}

    @property
    def name(self) -> str:
        """The place, as a person writes it."""
        return self.connection.transport.name

    async def __aenter__(self) -> Self:
        await self.connection.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.ensure_future(self.connection.aclose()))

    # Machine

    def check_directory(self, path: Path | None) -> Path:
        """`path` made absolute. Whether it is there is seen when something is to run in it."""
        home = Path(text(self.connection.welcome, "home", "/"))
        return home if path is None else home / path

    def nearest_directory(self, path: Path) -> Path:
        return path

    def shell(self, name: str | None) -> Shell:
        return shell_elsewhere(name)

    async def open(self, new: NewTerminal, *, listener: Listener | None = None) -> Terminal:
        if new.settings.sandbox is not None:
            raise SandboxUnavailable(
                f"commands at {self.name} can't be kept in a sandbox from here",
                hint="turn the sandbox off for this place",
            )
        if new.arguments:
            raise BadRequest(f"the shell of a terminal at {self.name} takes no arguments")
        terminal = RemoteTerminal(self.connection, new, new_id())
        self._terminals[terminal.id] = terminal
        try:
            await terminal.open()
        except BaseException:
            self._terminals.pop(terminal.id, None)
            self.connection.post("close", terminal=terminal.id)
            raise
        terminal.subscribe(self._heard)
        if listener is not None:
            terminal.subscribe(listener)
        terminal.opened()
        return terminal

    def _heard(self, event: TerminalEvent) -> None:
        if isinstance(event, TerminalClosedEvent):
            self._terminals.pop(event.terminal, None)

    async def load(self) -> dict[str, object]:
        """How many terminals there are in this session, how many are busy, and the machine's load."""
        return dict(await self.connection.call("load"))

    async def directory(self, path: Path) -> Path:
        """`path` there, made absolute. DirectoryUnavailable if nobody can enter it."""
        return Path(text(await self.connection.call("directory", path=path_text(path)), "path"))

    # Audience

    def on_output(self, header: Header, data: bytes) -> None:
        if (terminal := self._terminals.get(text(header, "terminal"))) is not None:
            terminal.on_output(header, data)

    def on_event(self, header: Header) -> None:
        if (terminal := self._terminals.get(text(header, "terminal"))) is not None:
            terminal.on_event(header)

    def on_lost(self) -> None:
        for each in list(self._terminals.values()):
            each.lost()

    def on_gone(self, error: TarmacError) -> None:
        for each in list(self._terminals.values()):
            each.gone(error)
        self._terminals.clear()

    def have(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for each in self._terminals.values():
            found |= each.have()
        return found
