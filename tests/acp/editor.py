"""An editor by hand: starts `tarmac acp` as a process, speaks the protocol, and checks each message by its schema."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

schema = pytest.importorskip("acp.schema", reason="agent-client-protocol is not installed")

Params = dict[str, Any]
Choose = Callable[[Params], Params]


def allow(params: Params) -> Params:
    """Yes, once."""
    option = next(each["optionId"] for each in params["options"] if each["kind"] == "allow_once")
    return {"outcome": {"outcome": "selected", "optionId": option}}


class Editor:
    """The client's side."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.wire: list[Params] = []  # all that came, in order
        self.choose: Choose = allow
        self.asked: list[Params] = []
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[Params]] = {}
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            self.wire.append(message)
            if "method" not in message:
                if message.get("id") in self._waiting:
                    self._waiting.pop(message["id"]).set_result(message)
            elif message["method"] == "session/request_permission":
                schema.RequestPermissionRequest.model_validate(message["params"])
                self.asked.append(message["params"])
                self.send({"id": message["id"], "result": self.choose(message["params"])})
            elif message["method"] == "session/update":
                schema.SessionNotification.model_validate(message["params"])
            self._changed.set()

    def send(self, message: Params) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: Params) -> "asyncio.Future[Params]":
        self._numbers += 1
        self._waiting[self._numbers] = future = asyncio.get_running_loop().create_future()
        self.send({"id": self._numbers, "method": method, "params": params})
        return future

    async def call(self, method: str, params: Params, *, timeout: float = 20) -> Any:
        async with asyncio.timeout(timeout):
            message = await self.ask(method, params)
        assert "error" not in message, message["error"]
        return message["result"]

    async def refused(self, method: str, params: Params) -> Params:
        async with asyncio.timeout(20):
            error: Params = (await self.ask(method, params))["error"]
        return error

    async def initialize(self, **capabilities: Any) -> Any:
        found = await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        schema.InitializeResponse.model_validate(found)
        return found

    async def prompt(self, session: str, text: str, *, timeout: float = 20) -> str:
        block = {"type": "text", "text": text}
        found = await self.call("session/prompt", {"sessionId": session, "prompt": [block]}, timeout=timeout)
        schema.PromptResponse.model_validate(found)
        return str(found["stopReason"])

    def updates(self, kind: str | None = None) -> list[Params]:
        found = [each["params"]["update"] for each in self.wire if each.get("method") == "session/update"]
        return [each for each in found if kind is None or each["sessionUpdate"] == kind]

    def said(self) -> str:
        return "".join(each["content"]["text"] for each in self.updates("agent_message_chunk"))

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    async def aclose(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(10):
            code = await self.process.wait()
        await self._reading
        return code


@asynccontextmanager
async def editor(folder: Path, script: str, **environ: str) -> AsyncIterator[Editor]:
    """`tarmac acp` with a scripted model, in a home of its own."""
    (folder / "script.toml").write_text(script)
    env: Mapping[str, str] = {
        **os.environ,
        "HOME": str(folder),
        "TARMAC_STATE_DIR": str(folder / "state"),
        "TARMAC_CONFIG_DIR": str(folder / "config"),
        "TARMAC_MODEL": f"scripted/{folder / 'script.toml'}",
        **environ,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tarmac",
        "acp",
        env=env,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,
    )
    made = Editor(process)
    try:
        yield made
        assert await made.aclose() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
            await made._reading
