"""Which MCP servers there are, and those of a task. None is started before it is used; all are ended with the task.

mcp_servers.toml, files of Claude Code, Roo Code, VS Code ─read_definitions→ ServerDefinition … ─Hub→ ServerConnection

Of two servers with one name, the user's own counts before the workspace's, and our file before those of others.

Pins: what a server said of a tool when it was used last, and how the server was started, by hash. A tool that its
server describes in another way is asked about again, whatever was allowed before.
"""

import asyncio
import json
import os
import re
import secrets
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from tarmac.errors import TarmacError, ToolFailed
from tarmac.nearest import nearest
from tarmac.paths import private_dir
from tarmac.tools.servers.server_connection import ServerConnection

Origin = Literal["user", "editor", "workspace"]
MOST_BYTES: Final = 1 << 20
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")
_SPACE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDefinition:
    """How a server is reached: a command that is started, or an address."""

    name: str
    origin: Origin
    file: str = ""  # where it was read
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    sse: bool = False  # the older transport over HTTP
    timeout: float = 60.0  # seconds of a call
    start_timeout: float = 30.0  # seconds until it must have said what it can do
    tools: tuple[str, ...] = ()  # only these; none: all
    allow: tuple[str, ...] = ()  # tools that are used without asking; only from the user's own files
    disabled: bool = False

    @property
    def shown(self) -> str:
        """The command or the address."""
        return self.url or " ".join((self.command, *self.args))

    @property
    def digest(self) -> str:
        """The same for servers that are started in the same way."""
        parts = (self.command, self.args, sorted(self.env.items()), str(self.cwd), self.url, sorted(self.headers))
        return sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def trusted(self) -> bool:
        """Whether the user or their editor named it; what a workspace names is asked about."""
        return self.origin != "workspace"


@dataclass(frozen=True, slots=True)
class Definitions:
    """The servers by name, and a sentence about each that was left out."""

    servers: Mapping[str, ServerDefinition] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()


def read_definitions(workspace: Path, user_folder: Path, environ: Mapping[str, str] = os.environ) -> Definitions:
    """All servers that files name."""
    places: tuple[tuple[Path, Origin, str], ...] = (
        (user_folder / "mcp_servers.toml", "user", "servers"),
        (user_folder / "mcp_settings.json", "user", "mcpServers"),  # Roo Code's, brought by `tarmac import`
        (workspace / ".tarmac" / "mcp_servers.toml", "workspace", "servers"),
        (workspace / ".mcp.json", "workspace", "mcpServers"),  # Claude Code
        (workspace / ".roo" / "mcp.json", "workspace", "mcpServers"),
        (workspace / ".vscode" / "mcp.json", "workspace", "servers"),
    )
    found: dict[str, ServerDefinition] = {}
    trouble: list[str] = []
    for path, origin, key in places:
        try:
            raw = _read(path)
        except (OSError, ValueError) as error:
            trouble.append(f"the MCP servers in {path} can't be read: {error}")
            continue
        servers = raw.get(key, {}) if isinstance(raw, dict) else raw
        if not isinstance(servers, dict):
            trouble.append(f"{path}: `{key}` is not a table of servers")
            continue
        for name, values in servers.items():
            try:
                each = parse_definition(
                    str(name), values, origin=origin, workspace=workspace, environ=environ, file=path
                )
            except ValueError as error:
                trouble.append(f"the MCP server {name!r} in {path} was left out: {error}")
            else:
                found.setdefault(each.name, each)
    return Definitions(found, tuple(trouble))


def _read(path: Path) -> object:
    """The file as data; empty if there is none."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if len(raw) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    text = raw.decode("utf-8-sig")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(_without_comments(text))


def _without_comments(text: str) -> str:
    """JSON as VS Code writes it: lines that are comments, and commas at the end of a list."""
    lines = [each for each in text.splitlines() if not each.lstrip().startswith("//")]
    return re.sub(r",(\s*[}\]])", r"\1", "\n".join(lines))


def parse_definition(
    name: str,
    values: object,
    *,
    origin: Origin,
    workspace: Path,
    environ: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> ServerDefinition:
    """One server, in the words of any of these files. ValueError says what is wrong."""
    if not isinstance(values, dict):
        raise ValueError("it is not a table")
    short = _SPACE.sub("-", name.strip()).strip("-")
    if not NAME.fullmatch(short):
        raise ValueError("its name has no letters")
    expand = _expander(environ, workspace)
    command, url = expand(_text(values, "command")), expand(_text(values, "url", "serverUrl", "httpUrl"))
    if bool(command) == bool(url):
        raise ValueError("it needs a `command` or a `url`" if not command else "it has both a `command` and a `url`")
    if url and not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not an address")
    cwd = expand(_text(values, "cwd"))
    own = origin == "user"
    return ServerDefinition(
        name=short,
        origin=origin,
        file=str(file or ""),
        command=command,
        args=tuple(expand(each) for each in _texts(values, "args")),
        env={key: expand(value) for key, value in _pairs(values, "env").items()},
        cwd=(workspace / Path(cwd).expanduser()) if cwd else None,
        url=url,
        headers={key: expand(value) for key, value in _pairs(values, "headers").items()},
        sse=_text(values, "type", "transport") == "sse",
        timeout=_seconds(values, "timeout", 60.0),
        start_timeout=_seconds(values, "start_timeout", 30.0),
        tools=tuple(_texts(values, "tools")),
        allow=tuple(_texts(values, "allow") or _texts(values, "alwaysAllow")) if own else (),
        disabled=values.get("disabled") is True or values.get("enabled") is False,
    )


def _expander(environ: Mapping[str, str], workspace: Path) -> Callable[[str], str]:
    def expand(text: str) -> str:
        text = text.replace("${workspaceFolder}", str(workspace)).replace("${userHome}", str(Path.home()))

        def value(match: re.Match[str]) -> str:
            found = environ.get(match[1], match[2])
            if found is None:
                raise ValueError(f"the variable {match[1]} is not set")
            return found

        expanded = _VARIABLE.sub(value, text)
        if "${input:" in expanded:
            raise ValueError("`${input:…}` works only in VS Code: use a variable of the environment")
        return expanded

    return expand


def _text(values: dict[str, object], *names: str) -> str:
    for name in names:
        found = values.get(name)
        if found is not None:
            if not isinstance(found, str):
                raise ValueError(f"`{name}` is not a text")
            return found.strip()
    return ""


def _texts(values: dict[str, object], name: str) -> list[str]:
    found = values.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str | int | float) for each in found):
        raise ValueError(f"`{name}` is not a list of texts")
    return [str(each) for each in found]


def _pairs(values: dict[str, object], name: str) -> dict[str, str]:
    found = values.get(name, {})
    if isinstance(found, list):  # as an ACP editor passes them
        found = {each.get("name"): each.get("value") for each in found if isinstance(each, dict)}
    if not isinstance(found, dict) or not all(isinstance(each, str | int | float) for each in found.values()):
        raise ValueError(f"`{name}` is not a table of texts")
    return {str(key): str(value) for key, value in found.items()}


def _seconds(values: dict[str, object], name: str, default: float) -> float:
    found = values.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 3600:
        raise ValueError(f"`{name}` is not a number of seconds up to 3600")
    return float(found)


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
