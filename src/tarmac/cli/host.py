"""`tarmac host -- AGENT COMMAND`: run any agent that speaks ACP, with Tarmac's terminals, policy and display."""

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tarmac.cli import complain
from tarmac.cli.options import HelpShown, parse
from tarmac.errors import BadRequest, ConfigError, TarmacError

if TYPE_CHECKING:
    from tarmac.cli.stopping import Stop
    from tarmac.config import Config

OPTIONS: Final = ["prompt=", "auto=", "cwd=", "auth=", "json"]
TERMINALS: Final = 32  # of one agent: it may open many at once, and holds them until it releases them
FOR_TERMINAL: Final = 10.0  # seconds


def main(arguments: list[str]) -> int:
    """Start the agent and work with it; the exit status."""
    mine, argv = arguments, list[str]()
    if "--" in arguments:
        cut = arguments.index("--")
        mine, argv = arguments[:cut], arguments[cut + 1 :]
    try:
        given, words = parse("host", mine, OPTIONS)
    except HelpShown:
        return 0
    if words:
        raise BadRequest(f"`{words[0]}` is no option of `tarmac host`", hint="tarmac host [OPTIONS] -- AGENT [ARGS…]")
    if not argv:
        raise BadRequest("which agent?", hint="tarmac host [OPTIONS] -- AGENT [ARGS…]")
    from tarmac.cli.run import folder, overrides
    from tarmac.cli.session import is_attended
    from tarmac.cli.stopping import run
    from tarmac.config import load_config

    prompt = given["prompt"][-1] if "prompt" in given else ""
    as_json = "json" in given
    if not prompt.strip() and ("prompt" in given or not is_attended(as_json=as_json)):
        raise BadRequest("what is to be done?", hint='--prompt "make the tests pass"; without one, use a terminal')
    config = load_config(folder(given), os.environ, overrides(given))
    bounds = {
        "terminals.max_per_task": max(config.terminals.max_per_task, TERMINALS),
        "terminals.lease_timeout": min(config.terminals.lease_timeout, FOR_TERMINAL),
    }
    config = replace(config, values={**config.values, **bounds})
    auth = given["auth"][-1] if "auth" in given else ""
    try:
        return run(lambda stop: _host(argv, prompt, auth, config, stop, as_json=as_json))
    except (BadRequest, ConfigError):
        raise
    except TarmacError as error:
        return complain(error.what, hint=error.hint, code=1)


async def _host(argv: list[str], prompt: str, auth: str, config: "Config", stop: "Stop", *, as_json: bool) -> int:
    from tarmac.acp.host.hosted import open_hosted
    from tarmac.app import open_app
    from tarmac.cli.session import drive, is_attended

    attended = is_attended(as_json=as_json)
    async with (
        open_app(config) as app,
        open_hosted(app, argv, attended=attended, once=bool(prompt), auth=auth) as hosted,
    ):
        level = "" if config.auto == "ask" else f" · --auto {config.auto}"
        header = f"task {hosted.id} · {hosted.name}{level}"
        sys.stdout.flush()
        return await drive(app, hosted, stop, as_json=as_json, words=prompt, header=header)
