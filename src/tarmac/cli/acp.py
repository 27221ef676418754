"""`tarmac acp`: an editor that speaks the Agent Client Protocol drives Tarmac, on standard input and output."""

import os
import sys
from pathlib import Path

from tarmac.cli.parser import Given, parse
from tarmac.cli.shutdown import run
from tarmac.errors import BadRequest

BY_HAND = (
    "tarmac acp: an editor that speaks the Agent Client Protocol starts this. Ctrl-D ends it.\n"
    "  hint: an editor is told of it in its settings; Zed, for one, by "
    """`"agent_servers": {"Tarmac": {"type": "custom", "command": "tarmac", "args": ["acp"]}}`"""
)


def main(arguments: list[str]) -> int:
    """Serve until the editor closes our input, or we are ended; the exit code."""
    given, words = parse("acp", arguments)
    if words:
        raise BadRequest(f"`tarmac acp` takes no `{words[0]}`", hint="an editor starts it and uses its standard input")
    place, there = _place(given)
    overrides: dict[str, object] = {name.replace("-", "_"): values[-1] for name, values in given.items()}
    if overrides.pop("client_terminals", None) is not None:
        if place:
            hint = f"its terminals are on this machine, and the commands of --on {place} are not"
            raise BadRequest("--client-terminals can't be used at another place", hint=hint)
        overrides["acp.client_terminals"] = True
    return run(lambda _: _serve(overrides, place, there))


def _place(given: Given) -> tuple[str, Path | None]:
    """The address of the place, and the folder there. Both are taken from what is given."""
    folder = given.pop("cwd", None)
    if "on" not in given:
        if folder:
            raise BadRequest("`tarmac acp` takes --cwd only with --on", hint="the editor chooses the folder")
        return "", None
    from tarmac.cli.exec import place_of

    place = place_of(given)
    del given["on"]
    return place, Path(folder[-1]) if folder and place else None


async def _serve(overrides: dict[str, object], place: str, there: Path | None) -> int:
    from tarmac.acp.agent import Agent
    from tarmac.acp.rpc_peer import stdio_peer
    from tarmac.loopback.peer import make_unreadable

    make_unreadable()  # a command could write an answer into our input, by way of /proc
    if os.isatty(0):
        print(BY_HAND, file=sys.stderr)
    agent = Agent(os.environ, overrides, place=place, there=there)
    peer = stdio_peer(agent)
    agent.connect(peer)
    try:
        await peer.run()
    finally:
        await agent.aclose()
    return 0
