"""An editor by hand: speaks the protocol with `tarmac acp`, and checks each message by its schema.

`editor` starts it as a process; `inside` has the same agent in this one, behind a real socket, which is much quicker.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tarmac.acp.agent import Agent
from tarmac.acp.rpc_peer import RpcPeer

schema = pytest.importorskip("acp.schema", reason="agent-client-protocol is not installed")

Params = dict[str, Any]
Choose = Callable[[Params], Any]


SCHEMAS = {
    "session/request_permission": schema.RequestPermissionRequest,
    "session/update": schema.SessionNotification,
    "elicitation/create": schema.CreateFormSessionElicitationRequest,
    "terminal/create": schema.CreateTerminalRequest,
    "terminal/output": schema.TerminalOutputRequest,
    "terminal/wait_for_exit": schema.WaitForTerminalExitRequest,
    "terminal/kill": schema.KillTerminalRequest,
    "terminal/release": schema.ReleaseTerminalRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
    "initialize:": schema.InitializeResponse,
    "authenticate:": schema.AuthenticateResponse,
    "session/new:": schema.NewSessionResponse,
    "session/load:": schema.LoadSessionResponse,
    "session/resume:": schema.ResumeSessionResponse,
    "session/list:": schema.ListSessionsResponse,
    "session/close:": schema.CloseSessionResponse,
    "session/delete:": schema.DeleteSessionResponse,
    "session/prompt:": schema.PromptResponse,
    "session/set_mode:": schema.SetSessionModeResponse,
    "session/set_config_option:": schema.SetSessionConfigOptionResponse,
}
NEVER = object()


def check(kind: Any, value: Any) -> None:
    """It is of that kind, and all of it is: the models quietly drop what they do not know, and what is wrong inside."""
    assert kind.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True) == value


class Refusal(Exception):
    """Raised by what a test serves: an error for the agent."""

    def __init__(self, message: str, code: int = -32603) -> None:
        super().__init__(message)
        self.code = code


def sleepers(folder: Path) -> list[int]:
    """The processes that sleep in this folder, as the commands of our scripts do."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if (each / "cmdline").read_bytes().startswith(b"sleep\0") and (each / "cwd").readlink() == folder:
                found.append(int(each.name))
        except OSError:
            pass
    return found


def allow(params: Params) -> Params:
    """Yes, once."""
    option = next(each["optionId"] for each in params["options"] if each["kind"] == "allow_once")
    return {"outcome": {"outcome": "selected", "optionId": option}}


class Editor:
    """The client's side, in version 1."""

    def check(self, name: str, value: Any) -> None:
        """A message of the agent: by its method, or what the method is answered with (`session/new:`)."""
        check(SCHEMAS[name], value)

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.wire: list[Params] = []  # all that came, in order
        self.choose: Choose = allow
        self.asked: list[Params] = []
        self.serves: dict[str, Callable[[Params], Any]] = {}  # other requests of the agent: what to answer, or Refusal
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[Params]] = {}
        self._changed = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()
        self._reading = asyncio.create_task(self._read())
        self.process: asyncio.subprocess.Process = None  # type: ignore[assignment]  # of `editor`
        self.code = 0  # as that shall exit

    async def _read(self) -> None:
        while line := await self.reader.readline():
            message = json.loads(line)
            self.wire.append(message)
            if "method" not in message:
                if message.get("id") in self._waiting:
                    self._waiting.pop(message["id"]).set_result(message)
            elif message["method"] == "session/request_permission":
                self.check(message["method"], message["params"])
                self.asked.append(message["params"])
                if (choice := self.choose(message["params"])) is not NEVER:
                    self.send({"id": message["id"], "result": choice})
            elif message["method"] == "session/update":
                self.check(message["method"], message["params"])
            elif "id" in message:
                self._serving.add(task := asyncio.create_task(self._serve(message)))
                task.add_done_callback(self._serving.discard)
            self._changed.set()

    async def _serve(self, message: Params) -> None:
        """What a test serves beside permission; NEVER is no answer at all."""
        self.check(message["method"], message["params"])
        try:
            answer = self.serves[message["method"]](message["params"])
            result = await answer if isinstance(answer, Awaitable) else answer
        except Refusal as refusal:
            self.send({"id": message["id"], "error": {"code": refusal.code, "message": str(refusal)}})
            return
        if result is not NEVER:
            self.send({"id": message["id"], "result": result})

    def send(self, message: Params) -> None:
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: Params) -> "asyncio.Future[Params]":
        self._numbers += 1
        self._waiting[self._numbers] = future = asyncio.get_running_loop().create_future()
        self.send({"id": self._numbers, "method": method, "params": params})
        return future

    async def call(self, method: str, params: Params, *, timeout: float = 60) -> Any:
        async with asyncio.timeout(timeout):
            message = await self.ask(method, params)
        assert "error" not in message, message["error"]
        self.check(f"{method}:", message["result"])
        return message["result"]

    async def refused(self, method: str, params: Params) -> Params:
        async with asyncio.timeout(60):
            error: Params = (await self.ask(method, params))["error"]
        return error

    async def initialize(self, **capabilities: Any) -> Any:
        return await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def prompt(self, session: str, text: str, *, timeout: float = 60) -> str:
        block = {"type": "text", "text": text}
        found = await self.call("session/prompt", {"sessionId": session, "prompt": [block]}, timeout=timeout)
        return str(found["stopReason"])

    def updates(self, kind: str | None = None) -> list[Params]:
        found = [each["params"]["update"] for each in self.wire if each.get("method") == "session/update"]
        return [each for each in found if kind is None or each["sessionUpdate"] == kind]

    def said(self) -> str:
        return "".join(each["content"]["text"] for each in self.updates("agent_message_chunk"))

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    async def hang_up(self) -> None:
        """Close our end, and read what is still said."""
        self.writer.close()
        async with asyncio.timeout(10):
            await self._reading
        for each in self._serving:
            each.cancel()

    async def killed(self) -> None:
        self._reading.cancel()
        for each in self._serving:
            each.cancel()
        self.writer.close()


def settings(folder: Path, script: str, environ: Mapping[str, str]) -> dict[str, str]:
    """A scripted model, in a home of its own."""
    (folder / "script.toml").write_text(script)
    return {
        **os.environ,
        "HOME": str(folder.with_name(f"{folder.name}-home")),  # a workspace may not contain it
        "TARMAC_STATE_DIR": str(folder / "state"),
        "TARMAC_CONFIG_DIR": str(folder / "config"),
        "TARMAC_MODEL": f"scripted/{folder / 'script.toml'}",
        **environ,
    }


@asynccontextmanager
async def editor(
    folder: Path, script: str, *options: str, kind: type[Editor] = Editor, **environ: str
) -> AsyncIterator[Editor]:
    """`tarmac acp` as an editor starts it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tarmac",
        "acp",
        *options,
        env=settings(folder, script, environ),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,
    )
    assert process.stdout is not None and process.stdin is not None
    made = kind(process.stdout, process.stdin)
    made.process = process
    try:
        yield made
        await made.hang_up()
        async with asyncio.timeout(10):
            assert await process.wait() == made.code
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
            await made.killed()


@asynccontextmanager
async def inside(
    folder: Path,
    script: str,
    overrides: Mapping[str, object] | None = None,
    *,
    kind: type[Editor] = Editor,
    **environ: str,
) -> AsyncIterator[Editor]:
    """The agent in this process."""
    ours, theirs = socket.socketpair()
    agent = Agent(settings(folder, script, environ), overrides)
    reader, writer = await asyncio.open_connection(sock=ours)
    peer = RpcPeer(reader, writer, agent, name="the editor")
    agent.connect(peer)
    made = kind(*await asyncio.open_connection(sock=theirs, limit=1 << 26))
    serving = asyncio.create_task(peer.run())
    try:
        yield made
        await made.hang_up()
        async with asyncio.timeout(10):
            await serving
    finally:
        await peer.aclose()
        await agent.aclose()
        await made.killed()
        for each in (writer, made.writer):
            with suppress(OSError):
                await each.wait_closed()
