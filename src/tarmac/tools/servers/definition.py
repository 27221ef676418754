"""Which MCP servers there are: mcp_servers.toml, and the files of Claude Code, Roo Code and VS Code.

If two servers have one name, the user's counts before the workspace's, and our file before those of other programs.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

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
        """A hash of how the server is started."""
        parts = (self.command, self.args, sorted(self.env.items()), str(self.cwd), self.url, sorted(self.headers))
        return sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def trusted(self) -> bool:
        """Whether the user or their editor named it. A server that a workspace names needs a yes of a person."""
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
