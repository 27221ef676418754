"""`tarmac web` and `tarmac serve`: the page, on this machine, until Ctrl-C.

A second `tarmac web` finds the server that runs, and opens another page of it. Enter prints another address, as each
lets one browser in. With --lan, a device of the network is let in after a `y` typed here.
"""

import asyncio
import http.client
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.cli import own_stdin
from tarmac.cli.parser import parse
from tarmac.cli.run import folder, overrides
from tarmac.cli.shutdown import meanwhile, run
from tarmac.errors import BadRequest
from tarmac.paths import state_dir

if TYPE_CHECKING:
    from tarmac.config import Config
    from tarmac.web.server import WebServer

OPENERS: Final = ("xdg-open", "open", "wslview", "sensible-browser", "x-www-browser")
# The code's light parts are letters. In the colours of a light terminal they would be dark, and no phone would read it.
BLACK_ON_WHITE: Final = "\x1b[38;5;231;48;5;16m"
TO_ANSWER: Final = 60.0  # seconds for a yes to a device


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """What the command line asks for."""

    workspace: Path
    overrides: dict[str, object]
    port: int | None
    browser: bool
    lan: bool
    new: bool  # also when one is running


def main(arguments: list[str]) -> int:
    """`tarmac web`: serve the page and open it; the exit status."""
    return _main("web", arguments, browser=True)


def serve(arguments: list[str]) -> int:
    """`tarmac serve`: the same without a browser; the exit status."""
    return _main("serve", arguments, browser=False)


def _main(verb: str, arguments: list[str], *, browser: bool) -> int:
    given, words = parse(verb, arguments)
    if words:
        raise BadRequest(f"`tarmac {verb}` takes no `{words[0]}`", hint="tasks are begun in the page")
    port = given["port"][-1] if "port" in given else None
    if port is not None and not (port.isdecimal() and int(port) < 65536):
        raise BadRequest(f"--port takes a number up to 65535, not `{port}`", hint="--port 8931, or 0 for a free one")
    if "lan" in given and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadRequest("--lan needs a terminal: you are asked there about each device")
    wanted = WebOptions(
        workspace=folder(given),
        overrides=overrides(given),
        port=None if port is None else int(port),
        browser=browser and "no-browser" not in given,
        lan="lan" in given,
        new="new" in given,
    )
    found = "" if wanted.new or wanted.lan or wanted.port is not None else running_address(wanted.workspace)
    if found:
        print("Tarmac's page is running already. This opens another window of it.")
        _show(found, browser=wanted.browser)
        return 0
    from tarmac.config import load_config
    from tarmac.web.server import find_static

    find_static()  # before anything is opened
    config = load_config(wanted.workspace, os.environ, wanted.overrides)
    return run(lambda _: _serve(config, wanted))


def running_address(workspace: Path) -> str:
    """An address of the server that runs already; empty when there is none."""
    from tarmac.web.run_file import RunFile

    found = RunFile(state_dir(os.environ)).read()
    if not found.alive or not found.secret:
        return ""
    connection = http.client.HTTPConnection("127.0.0.1", found.port, timeout=3)
    headers = {"authorization": f"Bearer {found.secret}", "content-type": "application/json"}
    try:
        connection.request("POST", "/api/invite", json.dumps({"cwd": str(workspace)}), headers)
        answer = connection.getresponse()
        return str(json.loads(answer.read())["address"]) if answer.status == 200 else ""
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return ""
    finally:
        connection.close()


async def _serve(config: "Config", wanted: WebOptions) -> int:
    from tarmac.loopback.peer import make_unreadable
    from tarmac.web.server import ServerOptions, open_server

    console = ServerConsole(asyncio.get_running_loop())
    lan = _lan_address() if wanted.lan else ""
    options = ServerOptions(port=wanted.port, lan=lan, admit=console.admit, overrides=wanted.overrides)
    make_unreadable()
    async with open_server(config, os.environ, options) as server:
        print("Tarmac's page. Ctrl-C ends it." + (" Enter prints another address." if sys.stdin.isatty() else ""))
        _show(server.address(), browser=wanted.browser)
        if lan:
            _show_code(server.address(lan=True))
        async with meanwhile(console.listen(server, lan=bool(lan))):
            await server.serve()
    return 0


def _show(address: str, *, browser: bool) -> None:
    """The address, on a line of its own."""
    print(address, flush=True)
    if browser and not open_browser(address, os.environ):
        print("  (no browser was found: open the address yourself)", file=sys.stderr)


def open_browser(address: str, environ: Mapping[str, str]) -> bool:
    """Open it, by a process that is not below us: what is below us counts as an agent's. False: there is none."""
    if sys.platform != "darwin" and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return False
    program = environ.get("BROWSER") or next(filter(None, map(shutil.which, OPENERS)), None)
    if not program:
        return False
    line = '"$1" "$2" </dev/null >/dev/null 2>&1 &'
    started = subprocess.run(["sh", "-c", line, "sh", program, address], check=False, start_new_session=True)
    return started.returncode == 0


def _show_code(address: str) -> None:
    """The address as a QR code, for a phone."""
    import segno

    print("\nFor a phone in this network (the connection is not encrypted):")
    drawn = io.StringIO()
    segno.make(address, error="l").terminal(drawn, compact=True)
    for line in drawn.getvalue().splitlines():
        print(
            f"{BLACK_ON_WHITE}{line}\x1b[0m"
        )  # on a light terminal it would be white on black, which phones don't read
    print(address, flush=True)


def _lan_address() -> str:
    """This machine's address in its network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only chooses the interface
            found = str(probe.getsockname()[0])
        except OSError:
            found = ""
    if not found or found.startswith("127."):
        raise BadRequest("this machine is not in a network", hint="leave out --lan")
    return found


class ServerConsole:
    """The person where the server was started: they ask for addresses, and let devices in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asked: asyncio.Future[bool] | None = None
        self._turn = asyncio.Lock()

    async def admit(self, host: str) -> bool:
        """Ask whether a device may come in; no answer is a no."""
        async with self._turn:
            self._asked = self._loop.create_future()
            print(f"\nA device at {host} has the address. Let it in? It can do all that you can. [y/N] ", end="")
            sys.stdout.flush()
            try:
                return await asyncio.wait_for(self._asked, TO_ANSWER)
            except TimeoutError:
                print("(no answer: the device can't connect)")
                return False
            finally:
                self._asked = None

    async def listen(self, server: "WebServer", *, lan: bool) -> None:
        """Read what they type, to its end."""
        if not sys.stdin.isatty():
            return
        async for line in own_stdin.lines(0):
            if self._asked is not None and not self._asked.done():
                self._asked.set_result(line.strip().lower() in (b"y", b"yes"))
            elif not line.strip():
                _show_code(server.address(lan=True)) if lan else _show(server.address(), browser=False)
