"""All MCP servers of a task. None is started before it is used; all are ended with the task.

Pins: what a server said of a tool when it was used last, and how the server was started, by hash. A tool that its
server describes in another way is asked about again, whatever was allowed before.
"""

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tarmac.errors import TarmacError, ToolFailed
from tarmac.nearest import nearest
from tarmac.paths import private_dir
from tarmac.tools.servers.definition import Definitions, ServerDefinition
from tarmac.tools.servers.server_connection import ServerConnection

State = Literal["not started", "starting", "running", "failed", "disabled"]
RETRY: Final = 5.0  # seconds in which a server that failed is not started again


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """A server as a person sees it."""

    name: str
    state: State
    origin: str
    shown: str
    tools: tuple[str, ...] = ()
    error: str = ""
    about: str = ""


@dataclass(slots=True)
class _Entry:
    definition: ServerDefinition
    lock: asyncio.Lock
    connection: ServerConnection | None = None
    error: str = ""
    failed_at: float = 0.0


class Hub:
    """Servers by name."""

    def __init__(self, definitions: Definitions, *, workspace: Path, state: Path) -> None:
        """`state` is a private folder for pins and tokens."""
        self.trouble = definitions.trouble
        self._workspace = workspace
        self._state = state
        self._pins = PinFile(state / "pins.json")
        self._entries = {each.name: _Entry(each, asyncio.Lock()) for each in definitions.servers.values()}

    @property
    def names(self) -> tuple[str, ...]:
        """The servers that may be used."""
        return tuple(name for name, each in self._entries.items() if not each.definition.disabled)

    def definition(self, name: str) -> ServerDefinition:
        """The server of that name; ToolFailed names the nearest."""
        found = self._entries.get(name.strip())
        if found is None or found.definition.disabled:
            near = nearest(name, self.names)
            known = f"Did you mean {near!r}?" if near else f"There are: {', '.join(self.names) or 'none'}."
            state = "is disabled" if found else "does not exist"
            raise ToolFailed(f"The MCP server {name!r} {state}. {known}")
        return found.definition

    def running(self, name: str) -> ServerConnection | None:
        """The connection, if it is open."""
        found = self._entries[name].connection
        return found if found is not None and found.alive else None

    async def connect(self, name: str) -> ServerConnection:
        """The connection; the server is started if it does not run. ToolFailed says why it can't be."""
        entry = self._entries[self.definition(name).name]
        async with entry.lock:
            if (found := self.running(name)) is not None:
                return found
            now = asyncio.get_running_loop().time()
            if entry.error and now - entry.failed_at < RETRY:
                raise ToolFailed(entry.error)
            if entry.connection is not None:
                await entry.connection.aclose()
            made = ServerConnection(entry.definition, workspace=self._workspace, tokens=self._state / "tokens")
            entry.connection = made
            try:
                await made.connect()
            except TarmacError as error:
                entry.connection, entry.error, entry.failed_at = None, str(error), now
                raise
            entry.error = ""
            return made

    async def restart(self, name: str) -> ServerConnection:
        """End it if it runs, and start it again."""
        entry = self._entries[self.definition(name).name]
        async with entry.lock:
            if entry.connection is not None:
                await entry.connection.aclose()
            entry.connection, entry.error = None, ""
        return await self.connect(name)

    async def sign_in(self, name: str, show: Callable[[str], Awaitable[None]]) -> ServerConnection:
        """Connect, and let a person sign in where `show` sends them."""
        definition = self.definition(name)
        if not definition.url:
            raise ToolFailed(f"The MCP server {name!r} is a command. There is nothing to sign in to.")
        made = ServerConnection(definition, workspace=self._workspace, tokens=self._state / "tokens", show=show)
        await made.connect()
        self._entries[definition.name].connection = made
        return made

    def changed(self, name: str, tool: str, digest: str) -> bool:
        """Whether this differs from what was used before. `tool` "": how the server is started."""
        return self._pins.read().get(f"{name}\0{tool}", digest) != digest

    def known(self, name: str, tool: str, digest: str) -> bool:
        """Whether exactly this was used before."""
        return self._pins.read().get(f"{name}\0{tool}") == digest

    def pin(self, name: str, tool: str, digest: str) -> None:
        """It was used like this."""
        self._pins.set(f"{name}\0{tool}", digest)

    def status(self) -> list[ServerStatus]:
        """Every server, also those that are disabled."""
        return [self._status(each) for each in self._entries.values()]

    def _status(self, entry: _Entry) -> ServerStatus:
        live = entry.connection
        state: State = "not started"
        if entry.definition.disabled:
            state = "disabled"
        elif live is not None and live.alive:
            state = "running"
        elif entry.lock.locked():
            state = "starting"
        elif entry.error or live is not None:
            state = "failed"
        return ServerStatus(
            name=entry.definition.name,
            state=state,
            origin=entry.definition.file or entry.definition.origin,
            shown=entry.definition.shown,
            tools=tuple(live.tools) if live is not None and live.alive else (),
            error=entry.error or ("it ended" if state == "failed" else ""),
            about=live.about if live is not None else "",
        )

    async def aclose(self) -> None:
        """End all of them. May be called twice."""
        open_ones = [each.connection for each in self._entries.values() if each.connection is not None]
        if open_ones:
            await asyncio.gather(*(each.aclose() for each in open_ones), return_exceptions=True)


class PinFile:
    """Hashes by name, in a private file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mapping[str, str]:
        """All pins; none if the file can't be read, so that everything counts as new."""
        try:
            found = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def set(self, key: str, digest: str) -> None:
        """Store one."""
        pins = dict(self.read())
        if pins.get(key) == digest:
            return
        pins[key] = digest
        private_dir(self.path.parent)
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump(pins, file)
        new.replace(self.path)


def with_servers(definitions: Definitions, more: Iterable[ServerDefinition]) -> Definitions:
    """The same with others beside them, which count before those of the workspace."""
    return Definitions({**definitions.servers, **{each.name: each for each in more}}, definitions.trouble)
