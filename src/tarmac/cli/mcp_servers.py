"""`tarmac mcp-servers`: the MCP servers that tasks can use: listed, checked, signed in to."""

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tarmac.cli.parser import parse, suggest
from tarmac.config import load_config
from tarmac.errors import BadRequest, TarmacError, ToolFailed
from tarmac.paths import check_directory, state_dir
from tarmac.show.look import one_line
from tarmac.tools.servers import Hub, read_definitions
from tarmac.tools.servers.hub import ServerStatus
from tarmac.tools.servers.sign_in import TokenFile

ACTIONS = ["list", "check", "login", "logout"]


def main(arguments: list[str]) -> int:
    """List, check, log in or out; the exit code."""
    options, words = parse("mcp-servers", arguments)
    given = {name: values[-1] for name, values in options.items()}
    action, names = (words[0], words[1:]) if words else ("list", [])
    if action not in ACTIONS:
        raise BadRequest(
            f"`{action}` is not a command of `tarmac mcp-servers`", hint=suggest(action, ACTIONS) or ", ".join(ACTIONS)
        )
    if action in ("login", "logout") and len(names) != 1:
        raise BadRequest(f"`mcp-servers {action}` takes the name of one server", hint="tarmac mcp-servers lists them")
    if action == "list" and names:
        raise BadRequest(f"`mcp-servers list` takes no `{names[0]}`", hint="tarmac mcp-servers check NAME")
    workspace = check_directory(Path(given.get("workspace", ".")).absolute())
    return asyncio.run(_act(action, names, workspace, json_wanted="json" in given))


async def _act(action: str, names: list[str], workspace: Path, *, json_wanted: bool) -> int:
    config = load_config(workspace, os.environ)
    state = state_dir(os.environ) / "mcp"
    hub = Hub(read_definitions(workspace, config.user_folder, os.environ), workspace=workspace, state=state)
    try:
        for name in names:
            _known(hub, name)
        if action == "logout":
            gone = TokenFile(state / "tokens", hub.definition(names[0]).url).forget()
            print(f"signed out of {names[0]}" if gone else f"you were not signed in to {names[0]}")
            return 0
        if action == "login":
            return await _login(hub, names[0])
        if action == "check":
            await asyncio.gather(*(_tried(hub, name) for name in names or hub.names))
        found = [each for each in hub.status() if not names or each.name in names]
        for line in _as_json(found) if json_wanted else status_lines(hub, found):
            print(line)
        return 1 if action == "check" and any(each.state == "failed" for each in found) else 0
    finally:
        await hub.aclose()


def _known(hub: Hub, name: str) -> None:
    try:
        hub.definition(name)
    except ToolFailed as error:
        raise BadRequest(error.what, hint="tarmac mcp-servers lists them") from None


async def _tried(hub: Hub, name: str) -> None:
    try:
        await hub.connect(name)
    except TarmacError:
        pass  # its status has the reason


async def _login(hub: Hub, name: str) -> int:
    async def show(address: str) -> None:
        print(f"Open this address in a browser on this machine, and sign in:\n\n  {address}\n")
        sys.stdout.flush()

    connection = await hub.sign_in(name, show)
    print(f"signed in to {name}: {len(connection.tools)} tools")
    return 0


def _as_json(found: list[ServerStatus]) -> Iterator[str]:
    return (json.dumps(dataclasses.asdict(each)) for each in found)


def status_lines(hub: Hub, found: list[ServerStatus] | None = None) -> Iterator[str]:
    """Each server in a few lines, and what could not be read."""
    servers = hub.status() if found is None else found
    if not servers and not hub.trouble:
        yield "no MCP server is configured; `tarmac mcp-servers --help` says in which files they are"
    width = max((len(each.name) for each in servers), default=0)
    for each in servers:
        yield f"{each.name:<{width}}  {each.state:<11}  {one_line(each.shown)[:100]}"
        if each.tools:
            names = ", ".join(each.tools)
            yield f"{'':<{width}}  {len(each.tools)} tool{'s' * (len(each.tools) > 1)}: {one_line(names)[:200]}"
        if each.error:
            what, _, hint = each.error.partition("\n  hint: ")
            yield f"{'':<{width}}  {one_line(what)[:500]}"
            if hint:
                yield f"{'':<{width}}  hint: {one_line(hint)}"
        yield f"{'':<{width}}  from {each.origin}"
    for trouble in hub.trouble:
        yield one_line(trouble)
