"""One call of an MCP client, from its arguments to its result, within 50 seconds.

arguments ─decode→ Tool ─pipeline: prepare, judge, ask, record, act, record→ Answer

The tools, the registry, the policy and the grants are those that Tarmac's own tasks use. Terminals belong to the
client's workspace: all clients of a workspace share them, and they end with the server.
"""

import asyncio
import importlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from tarmac.errors import BadRequest, TarmacError
from tarmac.mcp.client import Client, ToolAnswer

if TYPE_CHECKING:
    from tarmac.config import Config
    from tarmac.fleet.open_address import WorkingPlace
    from tarmac.mcp.catalog import CatalogEntry
    from tarmac.mcp.workspace import Workspace

SET_WORKSPACE: Final = "start it with `tarmac mcp --cwd DIR`, or in the folder to work in"
WITHIN: Final = 42.0  # seconds for one call; what may come on top (workspace.py) leaves it below 50


@dataclass(slots=True)
class ToolServer:
    """Everything behind the protocol. What takes long to import is imported when it is first needed."""

    load: "Callable[[Path], Config]"
    workspace: Path | None = None  # where the person said it is; else where the client says, else `here`
    place: str = ""  # the address where the workspace is; empty: this machine
    here: Path = field(default_factory=Path.cwd)
    offer: str = "terminals"  # see catalog.Offer
    hosted: "Workspace | None" = None  # whoever hosts the client has opened its workspace, and closes it
    _open: "dict[Path, Workspace]" = field(default_factory=dict)
    _roots: dict[str, Path] = field(default_factory=dict)  # by session: where its client works
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _there: "WorkingPlace | None" = None  # connected with the first call

    async def aclose(self) -> None:
        """Close every terminal, of every workspace."""
        for each in self._open.values():
            each.questions.forget()
        await self._stack.aclose()
        self._open.clear()

    async def warm_up(self) -> None:
        """Import what the first call needs, beside the event loop."""
        await asyncio.to_thread(importlib.import_module, "tarmac.mcp.workspace")

    def tools(self) -> "Sequence[CatalogEntry]":
        """What a client can call."""
        from tarmac.mcp.catalog import OfferedTools

        return OfferedTools(self.offer).entries

    def check_address(self, uri: str) -> None:
        """BadRequest for the address of a resource that can be nobody's."""
        from tarmac.mcp.resources import check_address

        check_address(uri)

    async def call(self, name: str, arguments: Mapping[str, Any], client: Client) -> ToolAnswer:
        """Make it. Whatever is wrong with it comes back as an answer; only cancelling and Unanswered come out."""
        began = time.monotonic()
        try:
            opened = await self.workspace_of(client)
            return await opened.call(name, arguments, client, end=began + WITHIN)
        except TarmacError as error:
            return ToolAnswer(text=str(error), error=True)

    async def workspace_of(self, client: Client) -> "Workspace":
        """The workspace of this client, open. RootsWanted, in the stateless era."""
        if self.hosted is not None:
            return self.hosted
        if self.place:
            return await self._workspace_there()
        folder = await self._workspace(client)
        known = Path(os.path.realpath(folder))  # however a client spells it
        async with self._opening:
            if known not in self._open:
                await self.warm_up()
                from tarmac.mcp.workspace import open_workspace
                from tarmac.terminals.environment import wipe_own_environment

                config = await asyncio.to_thread(self.load, folder)
                wipe_own_environment(config.terminals)
                self._open[known] = await self._stack.enter_async_context(open_workspace(config))
        return self._open[known]

    async def _workspace_there(self) -> "Workspace":
        """The workspace at the place. If the connection is lost for good, a new one is made."""
        assert self.workspace is not None
        async with self._opening:
            if self._there is not None and self._there.machine.connection.gone is not None:
                await self.aclose()
                self._there = None
            if self._there is None:
                await self.warm_up()
                from tarmac.fleet.open_address import open_place
                from tarmac.mcp.workspace import open_workspace
                from tarmac.terminals.environment import wipe_own_environment

                config = await asyncio.to_thread(self.load, Path("/"))  # that of the user alone
                wipe_own_environment(config.terminals)
                async with AsyncExitStack() as stack:
                    place = await stack.enter_async_context(open_place(self.place))
                    assert place is not None
                    config = replace(config, workspace=await place.machine.directory(self.workspace))
                    self._open[self.workspace] = await stack.enter_async_context(open_workspace(config, place))
                    self._there = place
                    self._stack.push_async_callback(stack.pop_all().aclose)
            return self._open[self.workspace]

    async def _workspace(self, client: Client) -> Path:
        if self.workspace is not None:
            return self.workspace
        found = self._roots.get(client.session) if client.session is not None else None
        if found is None or client.stateless:  # that era does not tell of changes: it is asked each time
            told = await client.roots()
            if told is not None:
                found = next((each for each in map(_folder, told) if each is not None), self.here)
                if client.session is not None:
                    self._roots[client.session] = found
        if found is None:
            raise BadRequest("the client named no workspace", hint=SET_WORKSPACE)
        from tarmac.app import check_workspace

        try:
            return await asyncio.to_thread(check_workspace, found, os.environ)
        except BadRequest as error:
            raise BadRequest(error.what, hint=SET_WORKSPACE) from None

    def roots_changed(self, session: str | None) -> None:
        """The client works elsewhere now: ask it again."""
        if session is not None:
            self._roots.pop(session, None)

    async def session_ended(self, session: str) -> None:
        """A client is gone: what it opened is closed, unless it was to stay."""
        self._roots.pop(session, None)
        await asyncio.gather(*(each.session_ended(session) for each in list(self._open.values())))


def _folder(uri: str) -> Path | None:
    """The folder a root names, if it is one of this machine."""
    found = urlsplit(uri)
    if found.scheme != "file" or found.netloc not in ("", "localhost"):
        return None
    path = Path(unquote(found.path))
    return path if path.is_absolute() and path.is_dir() else None
