"""Clients that come and go over HTTP, against the SDK's own server: what they leave behind ends with them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.mcp.peers import PATIENCE, a_server, until
from tests.terminals.daemon.conftest import daemon  # noqa: F401 (a fixture)

from tarmac.mcp import adapter, http
from tarmac.mcp.http import HttpSessions, serve

pytestmark = pytest.mark.shell
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Web:
    """A client that knows no more than HTTP."""

    def __init__(self, http: httpx2.AsyncClient, ended: list[str]) -> None:
        self.http, self.ended = http, ended

    async def post(self, method: str, params: dict[str, Any], session: str = "") -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post("/mcp", json=body, headers={"mcp-session-id": session} if session else {})

    async def hello(self) -> str:
        answer = await self.post("initialize", HELLO)
        assert answer.status_code == 200, answer.text
        return answer.headers["mcp-session-id"]

    async def call(self, session: str, name: str, **arguments: object) -> dict[str, Any]:
        answer = await self.post("tools/call", {"name": name, "arguments": arguments}, session)
        (data,) = [each[6:] for each in answer.text.splitlines() if each.startswith("data: {")]
        found: dict[str, Any] = json.loads(data)["result"]["structuredContent"]
        return found


@asynccontextmanager
async def serving(folder: Path, *, auto: str = "ask", **limits: Any) -> AsyncIterator[Web]:
    ended: list[str] = []
    before = asyncio.all_tasks()
    async with a_server(folder, auto=auto) as server:
        with http.listen(0) as listening:
            port = listening.getsockname()[1]
            made = adapter.http_app(server, port)

            async def end(session: str) -> None:
                await server.session_ended(session)
                ended.append(session)

            app = HttpSessions(made.app, end, host=f"127.0.0.1:{port}", **limits)
            task = asyncio.create_task(serve(app, listening))
            try:
                accept = {"accept": "application/json, text/event-stream"}
                base = f"http://127.0.0.1:{port}"
                async with httpx2.AsyncClient(base_url=base, headers=accept, timeout=PATIENCE) as web:
                    yield Web(web, ended)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
    await until(lambda: asyncio.all_tasks() == before)  # the streams' library looks twice a second


async def test_a_goodbye_ends_what_the_client_opened(tmp_path: Path) -> None:
    """A3: its terminals are gone when it is told that it is; another client's stay."""
    async with serving(tmp_path) as web:
        first, second = await web.hello(), await web.hello()
        mine = (await web.call(first, "open_persistent_terminal"))["id"]
        theirs = (await web.call(second, "open_persistent_terminal"))["id"]
        answer = await web.http.delete("/mcp", headers={"mcp-session-id": first})
        assert (answer.status_code, web.ended) == (200, [first])
        left = [each["id"] for each in (await web.call(second, "list_terminals"))["terminals"]]
        assert theirs in left and mine not in left
        assert (await web.post("ping", {}, first)).status_code == 404


@pytest.mark.usefixtures("daemon")
async def test_a_goodbye_leaves_what_was_to_outlive_the_server(tmp_path: Path) -> None:
    """F1, A3."""
    async with serving(tmp_path) as web:
        first, second = await web.hello(), await web.hello()
        kept = (await web.call(first, "open_persistent_terminal", outlive=True))["id"]
        await web.http.delete("/mcp", headers={"mcp-session-id": first})
        assert kept in [each["id"] for each in (await web.call(second, "list_terminals"))["terminals"]]


async def test_what_a_client_left_running_ends_with_it_and_not_what_another_runs_there_since(tmp_path: Path) -> None:
    """A3: terminals of a workspace are shared; a command is who started it's."""
    async with serving(tmp_path, auto="all") as web:
        first, second = await web.hello(), await web.hello()
        left = await web.call(first, "run_command", command="X=1; sleep 0.5", timeout=0.1)
        await web.call(first, "wait_for_terminal", id=left["terminal_id"])
        theirs = await web.call(second, "run_command", command="X=1; sleep 600", timeout=0.1)
        mine = await web.call(first, "run_command", command="X=1; sleep 601", timeout=0.1)
        assert (left["running"], theirs["terminal_id"]) == (True, left["terminal_id"])
        await web.http.delete("/mcp", headers={"mcp-session-id": first})
        found = {each["id"]: each for each in (await web.call(second, "list_terminals"))["terminals"]}
        assert mine["terminal_id"] not in found
        assert found[theirs["terminal_id"]]["state"] == "running"


async def test_a_client_that_is_never_heard_of_again_is_sent_off(tmp_path: Path) -> None:
    """A3: killed clients say no goodbye; one that has a stream open is there, however silent."""
    async with serving(tmp_path, idle=0.4) as web:
        there = await web.hello()
        async with web.http.stream("GET", "/mcp", headers={"mcp-session-id": there}) as stream:
            assert stream.status_code == 200
            gone = await web.hello()
            await until(lambda: web.ended)
            assert web.ended == [gone]
            assert (await web.post("ping", {}, gone)).status_code == 404
            assert (await web.post("ping", {}, there)).status_code == 200
        await until(lambda: web.ended == [gone, there])


async def test_when_there_are_too_many_the_one_that_is_idle_longest_goes(tmp_path: Path) -> None:
    async with serving(tmp_path, most=2) as web:
        first, second = await web.hello(), await web.hello()
        await web.post("ping", {}, first)
        third = await web.hello()
        assert web.ended == [second]
        async with contextlib.AsyncExitStack() as stack:
            for each in (first, third):  # both are in use now
                stream = web.http.stream("GET", "/mcp", headers={"mcp-session-id": each})
                await stack.enter_async_context(stream)
            assert (await web.post("initialize", HELLO)).status_code == 503
            assert (await web.post("ping", {}, first)).status_code == 200


async def test_no_session_is_made_up(tmp_path: Path) -> None:
    """A3: an id that we never gave begins nothing, and ends nothing."""
    async with serving(tmp_path) as web:
        assert (await web.post("ping", {}, "made-up")).status_code == 404
        assert (await web.http.delete("/mcp", headers={"mcp-session-id": "made-up"})).status_code == 404
        assert web.ended == []
