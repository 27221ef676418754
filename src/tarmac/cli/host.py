"""`tarmac host NAME` and `tarmac host -- COMMAND`: run any ACP agent with Tarmac's terminals, policy and display."""

import asyncio
import importlib
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tarmac.cli.exit_status import complain
from tarmac.cli.parser import number, parse, suggest
from tarmac.errors import BadRequest, ConfigError, TarmacError

if TYPE_CHECKING:
    from tarmac.acp.host.hosted import HostedTask
    from tarmac.acp.host.open_hosted import Wishes
    from tarmac.app import App
    from tarmac.cli.shutdown import Stop
    from tarmac.config import Config
    from tarmac.config.config import ConfiguredAgent
    from tarmac.policy.approval import Picture

TERMINALS: Final = 32  # of one agent: it may open many at once, and holds them until it releases them
FOR_TERMINAL: Final = 10.0  # seconds
PATIENCE: Final = 120  # seconds for an agent to begin: npx may have to fetch it first
NO_AGENT: Final = (
    'no agent is configured: write [agents.NAME] and command = ["PROGRAM", "ARGUMENT"] into config.toml '
    "(`tarmac config path`)"
)
USAGE: Final = "tarmac host [OPTIONS] NAME [-- ARGS…], or tarmac host [OPTIONS] -- COMMAND [ARGS…]"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What the command line asks for."""

    agent: "ConfiguredAgent"
    prompt: str
    images: "list[Picture]"
    wishes: "Wishes"
    lends: bool  # our terminals, over MCP
    as_json: bool


def main(arguments: list[str]) -> int:
    """Start the agent and work with it; the exit status."""
    mine, argv = arguments, list[str]()
    if "--" in arguments:
        cut = arguments.index("--")
        mine, argv = arguments[:cut], arguments[cut + 1 :]
    given, words = parse("host", mine)
    if "list" in given:
        if words or argv:
            raise BadRequest(f"`--list` takes no `{[*words, *argv][0]}`", hint="tarmac host --list")
        return _list(_config(given, ""), as_json="json" in given)
    if not words and not argv:
        raise BadRequest("which agent?", hint=f"{USAGE}; `tarmac host --list` lists the configured agents")
    from tarmac.cli.shutdown import run

    try:
        config = _config(given, given.get("resume", [""])[-1])
        wanted = _wanted(_agent(config, words, argv), given)
        return run(lambda stop: _host(wanted, config, stop))
    except (BadRequest, ConfigError):
        raise
    except TarmacError as error:
        return complain(error.what, hint=error.hint, code=1)


def _list(config: "Config", *, as_json: bool) -> int:
    """Print the configured agents; the first word of a line is the name, which completion reads."""
    from tarmac.show.look import one_line

    width = max(map(len, config.agents), default=0)
    for agent in config.agents.values():
        if as_json:
            print(json.dumps({"id": agent.id, "name": agent.name, "command": agent.command, "env": [*agent.env]}))
        else:
            label = f"  ({agent.name})" if agent.name != agent.id else ""
            print(f"{agent.id:<{width}}  {one_line(shlex.join(agent.command))}{label}")
    if not config.agents and not as_json:
        print(f"{NO_AGENT}; `tarmac host -- COMMAND` needs none", file=sys.stderr)
    return 0


def _agent(config: "Config", words: list[str], argv: list[str]) -> "ConfiguredAgent":
    """The agent that the first word names, with the other words as arguments; without words, the command `argv`."""
    from tarmac.config.config import ConfiguredAgent

    if not words:
        return ConfiguredAgent(id="", name=Path(argv[0]).name, command=tuple(argv))
    agents, name = config.agents, words[0]
    if name not in agents:
        known = f"configured: {', '.join(agents)}" if agents else NO_AGENT
        close = suggest(name, agents)
        command = shlex.join([*words, *argv])
        raise BadRequest(
            f"there is no agent `{name}`",
            hint=f"{f'{close} ' if close else ''}{known}; `tarmac host -- {command}` runs that command",
        )
    agent = agents[name]
    program = agent.command[0]
    if program.startswith("~/"):
        program = str(Path(program).expanduser())
    return replace(agent, command=(program, *agent.command[1:], *words[1:], *argv))


def _wanted(agent: "ConfiguredAgent", given: dict[str, list[str]]) -> HostOptions:
    from tarmac.acp.host.open_hosted import Wishes
    from tarmac.cli.person import is_attended
    from tarmac.show.pictures import picture

    last = {name: values[-1] for name, values in given.items()}
    prompt, as_json = last.get("prompt", ""), "json" in given
    if not prompt.strip() and ("prompt" in given or not is_attended(as_json=as_json)):
        raise BadRequest("no task was given", hint='--prompt "make the tests pass"; without one, use a terminal')
    return HostOptions(
        agent=agent,
        prompt=prompt,
        images=[picture(Path(each)) for each in given.get("image", [])],
        wishes=Wishes(
            name=agent.name,
            auth=last.get("auth", ""),
            mode=last.get("mode", ""),
            only_our_terminals="own-shell" not in given,
            resume=last.get("resume", ""),
            once=bool(prompt),
            patience=float(number(given, "patience", PATIENCE) or PATIENCE),
            version=_version(given),
        ),
        lends="no-mcp" not in given,
        as_json=as_json,
    )


def _version(given: dict[str, list[str]]) -> int:
    """Of the Agent Client Protocol."""
    found = number(given, "acp-version", 1) or 1
    if found > 2:
        raise BadRequest(f"Tarmac knows versions 1 and 2 of the protocol, not {found}")
    return found


def _config(given: dict[str, list[str]], resume: str) -> "Config":
    """That of the workspace: of the folder we are in, or of the task that is gone on with."""
    from tarmac.cli.run import folder, overrides
    from tarmac.config import load_config

    where = folder(given)
    if resume:
        from tarmac.cli.tasks import open_store
        from tarmac.paths import check_directory

        store = open_store()
        task = store.path(resume).name
        listed = next(each for each in asyncio.run(store.listing()) if each.task == task)
        where = check_directory(listed.metadata.workspace or where)
    own = {name: values for name, values in given.items() if name != "mode"}  # that is the agent's
    config = load_config(where, os.environ, overrides(own))
    bounds = {
        "terminals.max_per_task": max(config.terminals.max_per_task, TERMINALS),
        "terminals.lease_timeout": min(config.terminals.lease_timeout, FOR_TERMINAL),
    }
    return replace(config, values={**config.values, **bounds})


async def _host(wanted: HostOptions, config: "Config", stop: "Stop") -> int:
    from tarmac.acp.host.open_hosted import open_hosted
    from tarmac.app import open_app
    from tarmac.cli.person import is_attended
    from tarmac.cli.task_driver import drive

    attended = is_attended(as_json=wanted.as_json)
    async with open_app(config) as app, AsyncExitStack() as stack:
        lend = (lambda hosted: LentTerminals(app, hosted)) if wanted.lends else None
        with _starting(wanted.agent.name, live=attended):
            hosted = await stack.enter_async_context(
                open_hosted(
                    app,
                    wanted.agent.command,
                    attended=attended,
                    wishes=wanted.wishes,
                    lend=lend,
                    environ={**os.environ, **wanted.agent.env},
                )
            )
        level = "" if config.auto == "ask" else f" · --auto {config.auto}"
        header = f"task {hosted.id} · {hosted.name}{level}{' · goes on' if wanted.wishes.resume else ''}"
        sys.stdout.flush()
        return await drive(
            app,
            hosted,
            stop,
            as_json=wanted.as_json,
            words=wanted.prompt,
            images=wanted.images,
            header=header,
        )


@contextmanager
def _starting(name: str, *, live: bool) -> Iterator[None]:
    """Agents take seconds to start: a line says so, and goes."""
    if live:
        from tarmac.show.look import one_line

        sys.stdout.write(f"  starting {one_line(name)[:60]} …")
        sys.stdout.flush()
    try:
        yield
    finally:
        if live:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()


class LentTerminals:
    """Our terminals for the agent, over MCP; what that needs takes long to import, and is once the agent has spoken."""

    def __init__(self, app: "App", hosted: "HostedTask") -> None:
        self._app, self._hosted = app, hosted
        self._place: Any = None  # tarmac.cli.host_terminals.Shared
        self._importing: asyncio.Task[Any] | None = None
        self.offered = asyncio.Event()

    def prepare(self) -> None:
        if self._importing is None:
            self._importing = asyncio.create_task(
                asyncio.to_thread(importlib.import_module, "tarmac.cli.host_terminals")
            )

    async def serve(self, pieces: AsyncIterator[bytes], write: Callable[[bytes], Awaitable[None]]) -> None:
        self.prepare()
        assert self._importing is not None
        lending = await asyncio.shield(self._importing)
        if self._place is None:
            self._place = lending.Shared(self._app, self._hosted)
        await lending.serve(self._place, pieces, write, self.offered)

    def cancel(self) -> None:
        if self._place is not None:
            self._place.cancel()

    async def aclose(self) -> None:
        if self._importing is not None:
            await asyncio.wait([self._importing])
