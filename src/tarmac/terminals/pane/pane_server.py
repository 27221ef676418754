"""A pane behind a socket, for callers that can only start a process and read what it prints.

    main([FOLDER, OPTIONS])             opens a terminal, prints one line of JSON, and stays in the background
    CALL (below)                        one request: {"keys": …, "wait": …} → a PaneView as JSON

Sandboxes of evaluations have no stream that stays open: each `exec` is a process of its own. So the server lives in
the sandbox, and a call is 20 lines of Python without imports worth mentioning.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.terminals.open import open_terminal
from tarmac.terminals.pane.pane import Pane, PaneState, PaneView
from tarmac.terminals.settings import Settings

SOCKET = "pane"
TIME_TO_LIVE = 4 * 3600.0  # seconds without a call
LOOK_EVERY = 5.0
MOST_REQUEST = 64 << 20
CALL = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() if len(sys.argv) > 2 else sys.stdin.buffer.read())
s.shutdown(socket.SHUT_WR)
while data := s.recv(65536):
    sys.stdout.buffer.write(data)
"""


async def serve(folder: Path, options: Mapping[str, object], opened: int) -> None:
    """Keep a pane until somebody ends it, or its shell ends; `opened` is told when it can be used."""
    done = asyncio.Event()
    settings = Settings(
        rows=int(str(options.get("rows", 40))),
        columns=int(str(options.get("columns", 160))),
        environment={str(name): str(value) for name, value in _mapping(options.get("environment")).items()},
        spool_directory=folder / "output",
    )
    cwd = options.get("cwd")
    async with open_terminal(cwd=Path(str(cwd)) if cwd else None, settings=settings) as terminal:
        pane = Pane(terminal)
        turn = asyncio.Lock()
        used = [time.monotonic()]

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                request = _mapping(json.loads(await reader.read(MOST_REQUEST)))
                async with turn:
                    reply = await _reply(pane, request, done)
                used[0] = time.monotonic()
            except (TarmacError, ValueError) as error:
                reply = {"error": str(error)}
            with contextlib.suppress(ConnectionError):
                writer.write(json.dumps(reply).encode())
                await writer.drain()
            writer.close()

        server = await asyncio.start_unix_server(answer, path=folder / SOCKET)
        _tell(opened, encode_view(await pane.view()))
        async with server:
            await _until_unwanted(done, used, (folder, terminal.initial_cwd))


async def _until_unwanted(done: asyncio.Event, used: list[float], folders: tuple[Path, ...]) -> None:
    """Until somebody ends it. A sandbox that goes takes its folders along, and a caller may simply not come back."""
    while not done.is_set() and time.monotonic() < used[0] + TIME_TO_LIVE and all(each.is_dir() for each in folders):
        try:
            await asyncio.wait_for(done.wait(), LOOK_EVERY)
        except TimeoutError:
            pass


async def _reply(pane: Pane, request: Mapping[str, object], done: asyncio.Event) -> dict[str, object]:
    if request.get("end"):
        done.set()
        return {}
    if "keys" in request:
        await pane.type(str(request["keys"]), wait=float(str(request.get("wait", 0))))
    return encode_view(await pane.view())


def encode_view(view: PaneView) -> dict[str, object]:
    """A view as JSON can carry it."""
    return asdict(view) | {"drawn": view.drawn.decode("latin-1")}


def decode_view(values: Mapping[str, object]) -> PaneView:
    known = {each.name: values[each.name] for each in fields(PaneView) if each.name in values}
    drawn = str(known.get("drawn", "")).encode("latin-1")
    return PaneView(**{**known, "state": PaneState(str(known["state"])), "drawn": drawn})  # type: ignore[arg-type]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _tell(opened: int, value: Mapping[str, object]) -> None:
    os.write(opened, json.dumps(value).encode() + b"\n")
    os.close(opened)


def main(arguments: list[str]) -> int:
    """Start a server in the background and wait until its terminal is open."""
    folder, options = Path(arguments[0]), _mapping(json.loads(arguments[1]) if len(arguments) > 1 else {})
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        with os.fdopen(reading, "rb") as told:
            line = told.readline()
        sys.stdout.buffer.write(line)
        return 0 if line else 1
    os.close(reading)
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd, stream in enumerate((quiet, quiet, log)):
        os.dup2(stream, fd)
    try:
        asyncio.run(serve(folder, options, writing))
    except TarmacError as error:
        with contextlib.suppress(OSError):
            _tell(writing, {"error": str(error)})
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
