"""The server of the page, in this process or in its own, and a page without a browser: real sockets and frames."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tarmac.config import load_config
from tarmac.web.server import ServerOptions, WebServer, open_server

PATIENCE = 60.0  # seconds: a busy machine is no fault
Json = dict[str, Any]


def built(folder: Path) -> Path:
    """A page as Vite leaves it, without Vite."""
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(
        '<!doctype html><meta property="csp-nonce" nonce="__NONCE__">'
        '<script src="/assets/a1.js" type="module"></script>'
    )
    (folder / "assets" / "a1.js").write_text("export {}\n")
    return folder


@dataclass
class Served:
    """A server in this process."""

    server: WebServer

    @property
    def port(self) -> int:
        return self.server.port

    def token(self) -> str:
        return self.server.address().partition("#t=")[2]

    def proof(self) -> str:
        found = self.server.access.redeem(self.token())
        assert found
        return found


@asynccontextmanager
async def served(
    workspace: Path, *, script: Path | None = None, port: int | None = 0, **config: object
) -> AsyncIterator[Served]:
    """A server that serves while the block lasts."""
    overrides: dict[str, object] = {**config, **({"model": f"scripted/{script}"} if script else {})}
    loaded = load_config(workspace, os.environ, overrides)
    state = Path(os.environ["TARMAC_STATE_DIR"])
    options = ServerOptions(port=port, static=built(state.parent / "static"), overrides=overrides)
    async with open_server(loaded, os.environ, options) as server:
        serving = asyncio.create_task(server.serve())
        try:
            yield Served(server)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


@dataclass
class Screen:
    """What a terminal's viewer has: the bytes since the last snapshot, and where they are on the tape."""

    start: int = 0
    data: bytearray = field(default_factory=bytearray)
    snapshots: int = 0
    size: tuple[int, int] = (0, 0)
    marks: list[Json] = field(default_factory=list)
    snapshot: bytes = b""

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def text(self) -> str:
        return (self.snapshot + bytes(self.data)).decode(errors="replace")


class Page:
    """One connected page. Frames are read in the background; `until` waits for what they come to."""

    def __init__(self, socket: ClientConnection, *, acks: bool = True) -> None:
        self.socket = socket
        self.acks = acks
        self.tasks: dict[str, Json] = {}
        self.terminals: dict[str, Json] = {}
        self.numbers: dict[int, str] = {}  # of terminals, also of those that are gone
        self.welcome: Json = {}
        self.frames: list[Json] = []
        self.screens: dict[int, Screen] = {}
        self._ids = itertools.count(1)
        self._replies: dict[int, Json] = {}
        self._news = asyncio.Condition()

    async def read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for frame in self.socket:
                async with self._news:
                    if isinstance(frame, str):
                        self._heard(json.loads(frame))
                    else:
                        await self._drawn(frame)
                    self._news.notify_all()

    def _heard(self, frame: Json) -> None:
        self.frames.append(frame)
        match frame["type"]:
            case "welcome":
                self.welcome = frame
            case "reply":
                self._replies[frame["id"]] = frame
            case "tasks":
                self.tasks = {each["id"]: each for each in frame["tasks"]}
            case "task":
                self.tasks[frame["task"]["id"]] = frame["task"]
            case "task_gone":
                self.tasks.pop(frame["task"], None)
            case "terminals":
                self.terminals = {each["id"]: each for each in frame["terminals"]}
                self.numbers |= {each["number"]: each["id"] for each in frame["terminals"]}
            case "terminal":
                self.terminals[frame["terminal"]["id"]] = frame["terminal"]
                self.numbers[frame["terminal"]["number"]] = frame["terminal"]["id"]
            case "terminal_gone":
                self.terminals.pop(frame["terminal"], None)

    async def _drawn(self, frame: bytes) -> None:
        kind, number, offset = struct.unpack(">BIQ", frame[:13])
        payload = frame[13:]
        screen = self.screens.setdefault(number, Screen())
        match kind:
            case 1:
                screen.size = struct.unpack(">HH", payload[:4])
                screen.snapshot, screen.start, screen.data = payload[4:], offset, bytearray()
                screen.snapshots += 1
            case 2:
                assert offset == screen.end, "a byte was lost or came twice"
                screen.data += payload
            case 3:
                screen.size = struct.unpack(">HH", payload)
            case 4:
                screen.marks.append(json.loads(payload))
        if self.acks and kind in (1, 2):
            await self.send(do="ack", terminal=self.numbers[number], offset=screen.end)

    async def send(self, **frame: object) -> None:
        await self.socket.send(json.dumps(frame))

    async def do(self, verb: str, **fields: object) -> Json:
        """The reply to a verb: what is under `ok`; an error is an AssertionError."""
        reply = await self.ask(verb, **fields)
        assert "ok" in reply, reply
        return dict(reply["ok"])

    async def ask(self, verb: str, **fields: object) -> Json:
        """The reply to a verb."""
        number = next(self._ids)
        await self.send(do=verb, id=number, **fields)
        await self.until(lambda: number in self._replies)
        return self._replies.pop(number)

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until something holds."""
        try:
            async with asyncio.timeout(PATIENCE), self._news:
                await self._news.wait_for(lambda: bool(true()))
        except TimeoutError:
            raise AssertionError(f"it did not come; last: {self.frames[-5:]}, {self.tasks}") from None

    def records(self, task: str, kind: str = "") -> list[Json]:
        """The facts that came, in order."""
        found: list[Json] = []
        for each in self.frames:
            if each["type"] == "record" and each["task"] == task and "seq" in each["record"]:
                found.append(each["record"])
            if each["type"] == "records" and each["task"] == task:
                found += each["records"]
        return [each for each in found if not kind or each["kind"] == kind]

    def questions(self, task: str) -> list[Json]:
        return list(self.tasks.get(task, {}).get("questions", []))

    def screen(self, terminal: str) -> Screen:
        return self.screens.setdefault(self.terminals[terminal]["number"], Screen())


@asynccontextmanager
async def page(port: int, proof: str, *, acks: bool = True, **headers: str) -> AsyncIterator[Page]:
    """A page that is in, with the lists."""
    uri = f"ws://127.0.0.1:{port}/api/socket"
    origin: Any = f"http://127.0.0.1:{port}"
    async with connect(uri, origin=origin, additional_headers=headers, max_size=None, compression=None) as socket:
        await socket.send(json.dumps({"hello": proof}))
        found = Page(socket, acks=acks)
        reading = asyncio.create_task(found.read())
        try:
            await found.until(lambda: any(each["type"] == "tasks" for each in found.frames))
            yield found
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


# A server as a process of its own

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from tarmac.cli.shutdown import run
from tarmac.config import load_config
from tarmac.web.server import ServerOptions, open_server

async def main(_):
    overrides = {"model": sys.argv[3]}
    options = ServerOptions(static=Path(sys.argv[2]), overrides=overrides)
    async with open_server(load_config(Path(sys.argv[1]), os.environ, overrides), os.environ, options) as server:
        print(server.address(), flush=True)
        await server.serve()
    return 0

sys.exit(run(main))
"""


@dataclass
class Program:
    process: "subprocess.Popen[str]"
    address: str

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].split("/")[0])

    @property
    def token(self) -> str:
        return self.address.partition("#t=")[2]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


@contextmanager
def program(workspace: Path, script: Path) -> Iterator[Program]:
    """A server in a process of its own, ended with the block."""
    static = built(Path(os.environ["TARMAC_STATE_DIR"]).parent / "static")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(workspace), str(static), f"scripted/{script}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            yield Program(process, process.stdout.readline().strip())
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(PATIENCE)
