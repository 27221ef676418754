"""`tarmac mcp`: terminals for any MCP client, over our standard input and output, or over HTTP on this machine.

The pipes carry only messages, so both are moved to private descriptors. Programs that we start get an empty standard
input, and their stray output goes to standard error.
"""

import asyncio
import fcntl
import os
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tarmac.cli import own_stdin
from tarmac.cli.parser import parse
from tarmac.cli.shutdown import run
from tarmac.errors import BadRequest, TarmacError
from tarmac.paths import check_directory

if TYPE_CHECKING:
    from tarmac.config import Config
    from tarmac.mcp.tool_server import ToolServer

TOKEN = "TARMAC_MCP_TOKEN"
BY_HAND = (
    "tarmac mcp: an agent that speaks MCP starts this. Ctrl-D ends it.\n"
    "  hint: many agents are told of it by "
    """`"mcpServers": {"tarmac": {"command": "tarmac", "args": ["mcp"]}}` in their configuration"""
)
LEAST_MEMORY = 256 << 20  # bytes of address space; it takes 130 MiB to load
LEVELS = ("plan", "ask", "workspace", "all", "safe")  # the last is an older name
OFFERS = ("terminals", "files", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions:
    """What the command line asks for."""

    workspace: Path | None  # at the place, if there is one
    place: str  # the address of another place; empty: this machine
    port: int | None
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    auto: str  # empty: as the configuration has it
    tools: str  # which are offered


def main(arguments: list[str]) -> int:
    """Serve until the client goes, or we are ended; the exit code."""
    wanted = _wanted(arguments)
    _check_memory()
    return run(lambda _: _serve(wanted))


def _check_memory() -> None:
    """Refuse a limit under which the libraries of the protocol abort the process while they are loaded."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < LEAST_MEMORY:
        what = f"`tarmac mcp` needs {LEAST_MEMORY >> 20} MiB of address space, and may have {limit >> 20} MiB"
        raise TarmacError(what, hint="raise the limit: `ulimit -v unlimited`")


def _wanted(arguments: list[str]) -> McpOptions:
    given, words = parse("mcp", arguments)
    if words:
        raise BadRequest(f"`tarmac mcp` takes no `{words[0]}`", hint="the workspace is --cwd DIR")
    port = given["http"][-1] if "http" in given else None
    if port is not None and not (port.isdecimal() and int(port) < 65536):
        raise BadRequest(f"--http takes a port, not `{port}`", hint="--http 8931, or --http 0 for a free one")
    auto = given.get("auto", [""])[-1]
    if auto and auto not in LEVELS:
        raise BadRequest(f"--auto takes {', '.join(LEVELS)}, not `{auto}`")
    tools = given.get("tools", ["terminals"])[-1]
    if tools not in OFFERS:
        raise BadRequest(f"--tools takes {', '.join(OFFERS)}, not `{tools}`")
    _check_rules([*given.get("allow", ()), *given.get("deny", ())])
    place = ""
    if "on" in given:
        from tarmac.cli.exec import place_of

        place = place_of(given)
    if place and "cwd" not in given:
        raise BadRequest(f"which folder at {place} is the workspace?", hint="--cwd DIR: a folder there")
    workspace = Path(given["cwd"][-1]) if "cwd" in given else None
    return McpOptions(
        workspace=check_directory(workspace) if workspace and not place else workspace,
        place=place,
        port=None if port is None else int(port),
        allow=tuple(given.get("allow", ())),
        deny=tuple(given.get("deny", ())),
        auto=auto,
        tools=tools,
    )


def _check_rules(rules: list[str]) -> None:
    """Check the rules now, not at the first call. A rule that can't be used is reported."""
    if not rules:
        return
    from tarmac.policy.grants import prefixes, refusal

    try:
        made = prefixes(rules)
    except ValueError as error:
        raise BadRequest(str(error), hint="a rule is words: --allow 'npm test'") from error
    for rule in made:
        if why := refusal(rule):
            print(f"tarmac: the rule `{' '.join(rule)}` allows nothing: {why}", file=sys.stderr)


async def _serve(wanted: McpOptions) -> int:
    from tarmac.mcp.tool_server import ToolServer

    token = os.environ.pop(TOKEN, "")  # no command may see it
    server = ToolServer(
        load=lambda workspace: _config(wanted, workspace),
        workspace=wanted.workspace,
        place=wanted.place,
        offer=wanted.tools,
    )
    try:
        if wanted.port is None:
            await _on_pipes(server)
        else:
            await _on_http(server, wanted.port, token)
    finally:
        await server.aclose()
    return 0


async def _on_pipes(server: "ToolServer") -> None:
    if os.isatty(0):
        print(BY_HAND, file=sys.stderr)
    pipes = (fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    sys.stdout.flush()
    os.dup2(2, 1)
    from tarmac.loopback.peer import make_unreadable
    from tarmac.mcp.pipes import serve_lines

    make_unreadable()  # a command could write an answer into our input, by way of /proc

    writing = asyncio.Lock()

    async def write(data: bytes) -> None:
        async with writing:  # a message is whole before the next begins
            await own_stdin.write(pipes[1], data)

    await serve_lines(server, own_stdin.pieces(pipes[0]), write, lambda: own_stdin.until_unread(pipes[1]))


async def _on_http(server: "ToolServer", port: int, token: str) -> None:
    from tarmac.mcp import http

    secret = http.check_token(token) if token else secrets.token_urlsafe(32)
    with http.listen(port) as listening:
        port = listening.getsockname()[1]
        from tarmac.loopback.peer import make_unreadable
        from tarmac.mcp.adapter import http_app
        from tarmac.mcp.http import serve

        make_unreadable()
        print(f"url: http://127.0.0.1:{port}/mcp")
        if not token:
            print(f"token: {secret}")
        sys.stdout.flush()
        await serve(http.Gate(http_app(server, port), port, secret), listening)


def _config(wanted: McpOptions, workspace: Path) -> "Config":
    """The configuration of a workspace, with what the command line adds."""
    from tarmac.config import load_config

    config = load_config(workspace, os.environ, {"auto": wanted.auto} if wanted.auto else None)
    values = dict(config.values)
    for key, more in (("policy.allow", wanted.allow), ("policy.deny", wanted.deny)):
        values[key] = (*cast("tuple[str, ...]", values[key]), *more)
    return replace(config, values=values)
