"""The MCP servers of a task. A server is started at its first use. All are ended with the task.

Hub(definitions).connect(name) → ServerConnection → call(tool, arguments) · read(uri) → aclose()

One asyncio task enters, uses and leaves the SDK's client of a server. The SDK is imported when the first server is
used, because that takes a second.

A pin is a hash of how a server was started, or of how it described a tool, at the last use. If either changes, the
person is asked again, whatever they allowed before.
"""

import asyncio
import errno
import json
import logging
import os
import secrets
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final, Literal

from tarmac.errors import TarmacError, ToolFailed, nearest
from tarmac.paths import private_dir
from tarmac.tools.servers.definition import Definitions, ServerDefinition
from tarmac.tools.servers.sign_in import SignInListener, SignInNeeded, TokenFile, provider

CLOSING: Final = 10.0  # seconds that a server has to end; the SDK kills it before that
MOST_TOOLS: Final = 500
MOST_PAGES: Final = 20
LOG_TAIL: Final = 1_000  # bytes of what a server printed that an error shows


class ServerFailed(ToolFailed):
    """A server that can't be started, or did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """A tool, as its server describes it."""

    name: str
    description: str
    schema: str  # JSON

    @property
    def digest(self) -> str:
        """A hash of the server's description."""
        return sha256(f"{self.name}\0{self.description}\0{self.schema}".encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResult:
    """What a tool or a resource returned, in the parts of the protocol."""

    content: tuple[dict[str, Any], ...]
    failed: bool = False
    structured: Any = None


class ServerConnection:
    """A server that runs, or that is reached over HTTP."""

    def __init__(
        self,
        definition: ServerDefinition,
        *,
        workspace: Path,
        tokens: Path,
        show: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`show` tells a person the address where they sign in. None: nobody can."""
        self.definition = definition
        self.tools: dict[str, ServerTool] = {}
        self.about = ""  # name and version, in the server's own words
        self.instructions = ""
        self._workspace = workspace
        self._tokens = TokenFile(tokens, definition.url)
        self._show = show
        self._client: Any = None
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._leave = asyncio.Event()
        self._tools_changed = False
        self._log: IO[str] | None = None

    @property
    def alive(self) -> bool:
        """Whether it can be called."""
        return self._client is not None and self._owner is not None and not self._owner.done()

    async def connect(self) -> None:
        """Start it, and learn its tools. ServerFailed says why that did not work."""
        patience = self.definition.start_timeout if self._show is None else 330.0
        self._ready = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own())
        try:
            async with asyncio.timeout(patience):
                await asyncio.shield(self._ready)
        except TimeoutError:
            tail = self._tail()
            await self.aclose()
            raise self._failed(f"did not answer within {patience:g} s", tail) from None
        except BaseException:
            await self.aclose()
            raise

    async def _own(self) -> None:
        """Enter the client, wait until it is to be left, and leave it. The SDK wants all three in one task."""
        assert self._ready is not None
        try:
            async with AsyncExitStack() as stack:
                client = await self._open(stack)
                await self._learn(client)
                self._client = client
                if not self._ready.done():
                    self._ready.set_result(None)
                await self._leave.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # the SDK raises groups of whatever went wrong below it
            if not self._ready.done():
                self._ready.set_exception(self._translated(error))
        finally:
            self._client = None
            if self._log is not None:
                self._log.close()
            if not self._ready.done():
                self._ready.cancel()

    async def _open(self, stack: AsyncExitStack) -> Any:
        sdk = await asyncio.to_thread(_sdk)
        definition = self.definition

        async def roots(_: Any) -> Any:
            return sdk["ListRootsResult"](roots=[{"uri": self._workspace.as_uri(), "name": self._workspace.name}])

        if definition.url:
            server: Any = await self._http(stack, sdk)
        else:
            self._log = tempfile.TemporaryFile("w+", prefix="tarmac-mcp-", errors="replace")  # noqa: SIM115
            cwd = definition.cwd or self._workspace
            params = sdk["StdioServerParameters"](
                command=definition.command,
                args=list(definition.args),
                env=dict(definition.env),
                cwd=cwd,
                encoding_error_handler="replace",
            )
            server = sdk["stdio_client"](params, errlog=self._log)

        async def heard(message: Any) -> None:
            if isinstance(getattr(message, "root", message), sdk["ToolListChangedNotification"]):
                self._tools_changed = True

        client = sdk["Client"](server, list_roots_callback=roots, message_handler=heard, cache=None)
        return await stack.enter_async_context(client)

    async def _http(self, stack: AsyncExitStack, sdk: dict[str, Any]) -> Any:
        definition = self.definition
        redirect = SignInListener(self._tokens.port()) if self._show is not None else None
        if redirect is not None:
            stack.push_async_callback(redirect.aclose)
        auth = None
        if "authorization" not in {key.lower() for key in definition.headers}:
            auth = provider(definition.url, self._tokens, redirect, self._show)
        if definition.sse:
            return sdk["sse_client"](definition.url, headers=dict(definition.headers), auth=auth)
        http = sdk["create_mcp_http_client"](headers=dict(definition.headers), auth=auth)
        await stack.enter_async_context(http)
        return sdk["streamable_http_client"](definition.url, http_client=http)

    async def refresh(self) -> None:
        """Learn its tools again if it said that they have changed."""
        if self._tools_changed:
            await self._within(self._learn, "its list of tools")

    async def _learn(self, client: Any) -> None:
        """Its tools, page by page."""
        self._tools_changed = False
        found: dict[str, ServerTool] = {}
        cursor = None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            for each in page.tools:
                raw = each.model_dump(mode="json", by_alias=True, exclude_none=True)
                if self.definition.tools and each.name not in self.definition.tools:
                    continue
                schema = json.dumps(raw.get("inputSchema", {}), sort_keys=True, separators=(",", ":"))
                found[each.name] = ServerTool(name=each.name, description=each.description or "", schema=schema)
            cursor = page.model_dump(by_alias=True).get("nextCursor")
            if not cursor or len(found) >= MOST_TOOLS:
                break
        self.tools = found
        info = client.server_info
        self.about = f"{info.name} {info.version}".strip() if info else ""
        self.instructions = client.instructions or ""

    async def call(self, tool: str, arguments: dict[str, Any]) -> ServerResult:
        """Use a tool. A call without a result in time is given up, and not repeated."""
        result = await self._within(lambda client: client.call_tool(tool, arguments), f"the tool {tool}")
        raw = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return ServerResult(
            content=tuple(raw.get("content", ())),
            failed=bool(raw.get("isError")),
            structured=raw.get("structuredContent"),
        )

    async def resources(self) -> tuple[dict[str, Any], ...]:
        """What can be read there."""
        result = await self._within(lambda client: client.list_resources(), "the list of resources")
        return tuple(result.model_dump(mode="json", by_alias=True, exclude_none=True).get("resources", ()))

    async def read(self, uri: str) -> ServerResult:
        """Read a resource."""
        result = await self._within(lambda client: client.read_resource(uri), f"the resource {uri}")
        raw = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return ServerResult(content=tuple({"type": "resource", "resource": each} for each in raw.get("contents", ())))

    async def _within(self, make: Callable[[Any], Awaitable[Any]], what: str) -> Any:
        client, owner = self._client, self._owner
        if client is None or owner is None:
            raise self._failed("is not running")
        asked = asyncio.ensure_future(make(client))
        try:
            async with asyncio.timeout(self.definition.timeout):
                await asyncio.wait({asked, owner}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise self._failed(f"ended before {what} had a result", self._tail())
            return asked.result()
        except TimeoutError:
            limit = self.definition.timeout
            raise self._failed(f"gave {what} no result within {limit:g} s. It may still have had an effect") from None
        except TarmacError:
            raise
        except Exception as error:
            if self._is_closed(error):
                self._client = None  # the next call starts it again
                self._leave.set()
                raise self._failed(f"ended before {what} had a result", self._tail()) from None
            raise self._failed(f"refused {what}: {_words(error)}") from None
        finally:
            if not asked.done():
                asked.cancel()
                await asyncio.wait({asked}, timeout=1)

    @staticmethod
    def _is_closed(error: BaseException) -> bool:
        """Whether the server is gone. The SDK's client stays open without it."""
        from mcp.types import CONNECTION_CLOSED

        return getattr(_cause(error), "code", None) == CONNECTION_CLOSED

    async def aclose(self) -> None:
        """End it, and all it started. May be called twice."""
        self._leave.set()
        owner = self._owner
        if owner is None or owner is asyncio.current_task():
            return
        if self._client is None and not owner.done():  # it is still being opened
            owner.cancel()
        await asyncio.wait({owner}, timeout=CLOSING)
        if not owner.done():
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSING)
        if self._ready is not None and self._ready.done() and not self._ready.cancelled():
            self._ready.exception()

    def _translated(self, error: BaseException) -> TarmacError:
        cause = _cause(error)
        if isinstance(cause, SignInNeeded):
            return SignInNeeded(
                f"The MCP server {self.definition.name} wants you to sign in",
                hint=f"tarmac mcp-servers login {self.definition.name}",
            )
        if isinstance(cause, TarmacError):
            return cause
        why = _why_not_run(cause, self.definition) if isinstance(cause, OSError) else _words(cause)
        return self._failed(f"can't be started: {why}", self._tail())

    def _failed(self, what: str, tail: str = "") -> ServerFailed:
        printed = f" It printed: {tail}" if tail else ""
        file = self.definition.file
        hint = f"its settings are in {file}" if file else "`tarmac mcp-servers` shows its settings"
        return ServerFailed(f"The MCP server {self.definition.name} {what}.{printed}", hint=hint)

    def _tail(self) -> str:
        if self._log is None or self._log.closed:
            return ""
        try:
            self._log.seek(0, 2)
            self._log.seek(max(self._log.tell() - LOG_TAIL, 0))
            return " ".join(self._log.read().split())
        except (OSError, ValueError):
            return ""


def _cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _words(error: BaseException) -> str:
    cause = _cause(error)
    if type(cause).__name__ == "ValidationError":  # pydantic's, which is many lines long
        return "its answer does not follow the protocol"
    return str(cause).strip() or type(cause).__name__


def _why_not_run(error: OSError, definition: ServerDefinition) -> str:
    """Why a command can't be run, in words."""
    folder = definition.cwd
    if not definition.command:
        return error.strerror or _words(error)
    if folder is not None and not folder.is_dir():
        return f"there is no folder `{folder}`"
    match error:
        case FileNotFoundError():
            return f"there is no program `{definition.command}`"
        case PermissionError():
            return f"`{definition.command}` may not be run"
        case OSError(errno=errno.ENOEXEC):
            return f"`{definition.command}` is not a program that this machine can run"
        case _:
            return f"`{definition.command}`: {error.strerror or _words(error)}"


def _sdk() -> dict[str, Any]:
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client
    from mcp.types import ListRootsResult, ToolListChangedNotification

    from mcp import Client, StdioServerParameters, stdio_client

    logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # it logs tracebacks of what it raises
    return {
        "Client": Client,
        "StdioServerParameters": StdioServerParameters,
        "stdio_client": stdio_client,
        "sse_client": sse_client,
        "create_mcp_http_client": create_mcp_http_client,
        "streamable_http_client": streamable_http_client,
        "ListRootsResult": ListRootsResult,
        "ToolListChangedNotification": ToolListChangedNotification,
    }


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
        """The connection. Starts the server if it does not run. ToolFailed says why it can't be started."""
        entry = self._entries[self.definition(name).name]
        async with entry.lock:
            if (found := self.running(name)) is not None:
                await found.refresh()
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
        """Whether this differs from the last use. An empty `tool` means how the server is started."""
        return self._pins.read().get(f"{name}\0{tool}", digest) != digest

    def known(self, name: str, tool: str, digest: str) -> bool:
        """Whether exactly this was used before."""
        return self._pins.read().get(f"{name}\0{tool}") == digest

    def pin(self, name: str, tool: str, digest: str) -> None:
        """Remember this use."""
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
        """All pins. If the file can't be read there are none, so everything counts as new."""
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
    """Add other servers. They take precedence over those of the workspace."""
    return Definitions({**definitions.servers, **{each.name: each for each in more}}, definitions.trouble)
