"""Real clients: the `mcp` SDK's own, in both eras, in this process and on pipes; and one that writes bytes."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from tests.cli.conftest import alive

from tarmac.config import Config
from tarmac.mcp.adapter import make_server
from tarmac.mcp.tool_server import ToolServer

TARMAC = [sys.executable, "-m", "tarmac"]
ERAS = ["2026-07-28", "legacy"]
YES, NO = "Allow once", "Deny"
PATIENCE = 60.0
Asked = Callable[[Any, Any], Awaitable[types.ElicitResult]]


class Person:
    """Answers questions, after as long as a person takes; remembers them."""

    def __init__(self, choice: str = YES, *, action: str = "accept", after: float = 0.25) -> None:
        self.choice, self.action, self.after = choice, action, after
        self.questions: list[str] = []
        self.schemas: list[dict[str, Any]] = []
        self.asked = asyncio.Event()

    async def __call__(self, _: Any, params: Any) -> types.ElicitResult:
        self.questions.append(params.message)
        self.asked.set()
        self.schemas.append(params.requested_schema)
        await asyncio.sleep(self.after)
        if self.action != "accept":
            return types.ElicitResult.model_validate({"action": self.action})
        choice = self.choice
        for offered in params.requested_schema["properties"]["decision"]["enum"]:
            choice = offered if offered.startswith(self.choice) else choice
        return types.ElicitResult(action="accept", content={"decision": choice})


@asynccontextmanager
async def a_server(workspace: Path | None, *, here: Path | None = None, **values: Any) -> AsyncIterator[ToolServer]:
    """What is behind the protocol, in this process."""

    def load(folder: Path) -> Config:
        return Config(workspace=folder, user_folder=Path.home() / "config", values=values)

    server = ToolServer(load=load, workspace=workspace, here=here or workspace or Path("/"))
    try:
        yield server
    finally:
        await server.aclose()


@asynccontextmanager
async def connected(workspace: Path, era: str, person: Person | None = None, **values: Any) -> AsyncIterator[Client]:
    """A client of a server in this process."""
    async with a_server(workspace, **values) as server, client_of(server, era, person) as client:
        yield client


def client_of(server: ToolServer, era: str, person: Any = None, **more: Any) -> Client:
    return Client(make_server(server), mode=era, elicitation_callback=person, **more)


def on_pipes(workspace: Path, era: str, person: Any = None, *options: str, **more: Any) -> Client:
    """A client that starts `tarmac mcp` itself, as an editor does."""
    parameters = StdioServerParameters(
        command=TARMAC[0],
        args=[*TARMAC[1:], "mcp", "--cwd", str(workspace), *options],
        env=environ(),
        cwd=str(workspace),
    )
    return Client(parameters, mode=era, elicitation_callback=person, **more)


def environ(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONASYNCIODEBUG"} | more


async def ran(client: Client, command: str, **arguments: object) -> dict[str, Any]:
    """A command's result as data; it must not be an error."""
    return await call(client, "run_command", command=command, **arguments)


async def call(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, said(result)
    found: dict[str, Any] = result.structured_content
    return found


async def refused(client: Client, name: str, **arguments: object) -> str:
    """What the model is told of a call that was not made."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.structured_content
    return said(result)


async def whole(client: Client, uri: str) -> str:
    """All that a command printed."""
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return str(content.text)


def said(result: types.CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


async def until(come: Callable[[], Any]) -> None:
    """Look until it has come."""
    async with asyncio.timeout(PATIENCE):
        while not come():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


# What ignores a hang-up, and what went to a session and an environment of its own.
STUBBORN = (
    "setsid nohup sleep 76541{0} >/dev/null 2>&1 & setsid env -i sleep 76542{0} & "
    "(trap '' HUP TERM; exec sleep 76543{0}) & sleep 76544{0}"
)


def stubborn(digit: int) -> list[int]:
    """The processes of that command."""
    return [until_found(f"7654{each}{digit}") for each in (1, 2, 3, 4)]


def until_gone(pids: list[int]) -> list[int]:
    """Wait for their end; those that stay."""
    end = time.monotonic() + PATIENCE
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return [each for each in pids if alive(each)]


def until_found(argument: str) -> int:
    """The process that has this argument."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (each / "cmdline").read_bytes().split(b"\0")
                    if words[0].endswith(b"sleep") and argument.encode() in words:
                        return int(each.name)
        time.sleep(0.02)
    raise AssertionError(f"no process has {argument}")


class Pipe:
    """`tarmac mcp` as a process, and somebody who writes bytes to it and reads lines from it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        assert process.stdin and process.stdout
        self._in, self._out = process.stdin, process.stdout
        self._id = 0

    def write(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def send(self, method: str, params: Mapping[str, object] | None = None) -> int:
        self._id += 1
        self.write(encoded({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}))
        return self._id

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        self.write(encoded({"jsonrpc": "2.0", "method": method, "params": params or {}}))

    def read(self) -> dict[str, Any]:
        line = self._out.readline()
        assert line, "it said nothing more"
        found: dict[str, Any] = json.loads(line)
        return found

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted; others before it are passed over."""
        while not wanted(found := self.read()):
            pass
        return found

    def answer(self, id: int) -> dict[str, Any]:
        return self.until(lambda each: each.get("id") == id and "method" not in each)

    def ask(self, method: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        return self.answer(self.send(method, params))

    def shake(self, name: str = "bytes", **capabilities: object) -> None:
        """The handshake of the older era."""
        client = {"name": name, "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client})
        self.notify("notifications/initialized")

    def close(self) -> int:
        """Hang up; its exit code."""
        self._in.close()
        return self.process.wait(PATIENCE)


def encoded(message: Mapping[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


@contextmanager
def a_pipe(workspace: Path, *options: str) -> Iterator[Pipe]:
    process = subprocess.Popen(
        [*TARMAC, "mcp", "--cwd", str(workspace), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environ(),
        cwd=workspace,
    )
    with process:
        try:
            yield Pipe(process)
        finally:
            process.kill()
