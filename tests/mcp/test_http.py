"""`tarmac mcp --http`: real sockets, both eras; and who is not let in."""

import asyncio
import http.client
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from tests.cli.conftest import alive, tarmac
from tests.mcp.peers import (
    PATIENCE,
    STUBBORN,
    TARMAC,
    Person,
    call,
    environ,
    ran,
    stubborn,
    until,
    until_found,
    until_gone,
)

from tarmac.mcp.http import Gate, listen

BOTH = "application/json, text/event-stream"
TOKEN = "a-token-that-is-long-enough"


@dataclass(frozen=True)
class Served:
    process: "subprocess.Popen[str]"
    port: int
    said: str

    def post(self, body: bytes = b"{}", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        given = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", "accept": BOTH} | headers
        try:
            connection.putrequest("POST", "/mcp", skip_host="host" in given, skip_accept_encoding=True)
            for name, value in {**given, "content-length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@contextmanager
def served(workspace: Path, *options: str, stderr: int = subprocess.DEVNULL, **variables: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [*TARMAC, "mcp", "--cwd", str(workspace), "--http", "0", *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True,
        env=environ(TARMAC_MCP_TOKEN=TOKEN) | variables,
    )  # fmt: skip
    with process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.fullmatch(r"url: http://127\.0\.0\.1:(\d+)/mcp\n", said)
            assert found, said
            yield Served(process, int(found[1]), said)
        finally:
            process.terminate()
            process.wait(PATIENCE)


def posted(server: Served, command: str) -> http.client.HTTPConnection:
    """A call that runs `command`; its answer is not waited for."""
    envelope = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
    params = {
        "name": "run_command",
        "arguments": {"command": command, "timeout": 40},
        "_meta": {f"io.modelcontextprotocol/{key}": value for key, value in envelope.items()},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", "accept": BOTH}
    headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "run_command"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/mcp", body, headers)
    return connection


def dropped(server: Served) -> None:
    """Start a command, hang up, and see it end."""
    connection = posted(server, "sleep 765432")
    sleeper = until_found("765432")
    connection.close()
    assert until_gone([sleeper]) == []


@asynccontextmanager
async def client_over(server: Served, era: str, person: Any) -> AsyncIterator[Client]:
    address = f"http://127.0.0.1:{server.port}/mcp"
    async with create_mcp_http_client(headers={"authorization": f"Bearer {TOKEN}"}) as http_client:
        transport: Any = streamable_http_client(address, http_client=http_client)
        async with Client(transport, mode=era, elicitation_callback=person) as client:
            yield client


@pytest.mark.shell
async def test_both_eras_share_one_server_over_real_http(tmp_path: Path) -> None:
    """A3: one process; what a client of the older era opened ends with it, unless it was to stay."""
    own = Path.home() / "config"
    own.mkdir(mode=0o700)
    (own / "policy.toml").write_text('allow = ["sleep"]\n')
    with served(tmp_path, TARMAC_CONFIG_DIR=str(own)) as server:
        async with client_over(server, "legacy", Person()) as client:
            heard: list[str | None] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append(message)

            asked = await client.call_tool(
                "run_command", {"command": "X=1; echo $X; sleep 1.3"}, progress_callback=hear
            )
            taken_back = asyncio.create_task(ran(client, "sleep 765430", timeout=40))
            sleeper = await asyncio.to_thread(until_found, "765430")
            taken_back.cancel()
            await asyncio.gather(taken_back, return_exceptions=True)
            await until(lambda: not alive(sleeper))
            mine = (await call(client, "open_persistent_terminal"))["id"]
            kept = (await call(client, "open_persistent_terminal", stay=True))["id"]
            secret = await ran(client, "printenv | grep -c TARMAC_MCP || true")
        async with client_over(server, "2026-07-28", Person()) as client:
            ids = [each["id"] for each in (await call(client, "list_terminals"))["terminals"]]
            shell = await call(client, "run_persistent_command", id=kept, command="echo $$; touch made")
        assert "1" in heard
        assert asked.structured_content["output"] == "1\n"
        assert secret["output"].strip() == "0"
        assert kept in ids and mine not in ids
        assert (tmp_path / "made").exists()

        # A client that is gone in the middle of a call: in the stateless era that takes the call back
        await asyncio.to_thread(dropped, server)

        # Who is not let in
        host, origin = f"127.0.0.1:{server.port}", f"http://127.0.0.1:{server.port}"
        assert server.post(authorization="Bearer wrong")[0] == 401
        assert server.post(authorization=f"Basic {TOKEN}")[0] == 401
        assert server.post(host="evil.example")[0] == 421
        assert server.post(host=f"localhost:{server.port + 1}")[0] == 421
        assert server.post(origin="http://evil.example")[0] == 403
        assert server.post(origin="null")[0] == 403
        assert server.post(host=host, origin=origin)[0] not in (401, 403, 421)
        assert server.post(b"x" * (17 << 20))[0] == 413
        assert server.post(b"{")[0] == 400
        tools = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        status, text = server.post(tools)
        assert (status, "run_command" in text) == (400, False)  # no session, no envelope: no service
    pid = int(shell["output"].split()[0])
    assert not alive(pid)


@pytest.mark.shell
def test_it_ends_at_once_and_quietly_whatever_is_open(tmp_path: Path) -> None:
    """A3: a signal, while a client listens and a command runs."""
    with served(tmp_path, "--allow", "sleep", stderr=subprocess.PIPE) as server:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        sleep = {"name": "run_command", "arguments": {"command": "sleep 765431", "timeout": 30}}
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", "accept": BOTH}
        opened = []
        for method, message in (("POST", ("initialize", hello)), ("GET", None), ("POST", ("tools/call", sleep))):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            body = {"jsonrpc": "2.0", "id": 1, "method": message[0], "params": message[1]} if message else None
            connection.request(method, "/mcp", json.dumps(body) if body else None, headers)
            if "mcp-session-id" not in headers:
                headers["mcp-session-id"] = str(connection.getresponse().getheader("mcp-session-id"))
            opened.append(connection)
        sleeper = until_found("765431")
        began = time.monotonic()
        server.process.terminate()
        code, took = server.process.wait(PATIENCE), time.monotonic() - began
        for connection in opened:
            connection.close()
        assert server.process.stderr is not None
        assert (code, server.process.stderr.read()) == (143, "")
        assert took < 8 and not alive(sleeper)


@pytest.mark.shell
def test_nothing_outlives_a_kill(tmp_path: Path) -> None:
    """A3: kill −9 of the server while a client's command runs; what it started ends, `setsid nohup` included."""
    with served(tmp_path, "--auto", "all") as server:
        connection = posted(server, STUBBORN.format(3))
        started = stubborn(3)
        server.process.kill()
        assert server.process.wait(PATIENCE) == -signal.SIGKILL
        connection.close()
        assert until_gone(started) == []


def test_a_token_that_can_be_guessed_is_not_taken() -> None:
    outcome = tarmac("mcp", "--http", "0", TARMAC_MCP_TOKEN="short")
    assert (outcome.code, "at least 16" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    "wrong", [["--http", "x"], ["--http", "70000"], ["--auto", "yes"], ["words"], ["--allow", "'"]]
)
def test_options_that_make_no_sense_are_said(wrong: list[str]) -> None:
    assert tarmac("mcp", *wrong).code == 2


OURS = {"host": "localhost:80", "authorization": f"Bearer {TOKEN}"}
names = st.sampled_from(["host", "Host", "origin", "authorization", "Authorization", "x"])
values = st.one_of(
    st.sampled_from([*OURS.values(), "http://localhost:80", "evil.example", f"bearer {TOKEN}", "Bearer", ""]), st.text()
)


@given(st.lists(st.tuples(names, values)))
def test_nobody_passes_without_all_three(headers: list[tuple[str, str]]) -> None:
    """A3: whatever a request brings, it passes only with our name, no foreign page, and the token; each said once."""
    raw = [(name.encode(), value.encode("latin-1", "ignore")) for name, value in headers]
    _, why = Gate(app=None, port=80, token=TOKEN).refusal(raw)  # type: ignore[arg-type]
    given_ = [(name.lower(), value.decode("latin-1")) for name, value in ((n.decode(), v) for n, v in raw)]
    hosts = [value for name, value in given_ if name == "host"]
    tokens = [value for name, value in given_ if name == "authorization"]
    origins = {value for name, value in given_ if name == "origin"}
    passes = (
        hosts in (["localhost:80"], ["127.0.0.1:80"])
        and len(tokens) == 1
        and tokens[0].partition(" ")[0].lower() == "bearer"
        and tokens[0].partition(" ")[2].strip() == TOKEN
        and origins <= {"http://localhost:80"}
    )
    assert (why == "") == passes


async def test_small_answers_are_sent_at_once() -> None:
    """A3: without TCP_NODELAY every call waits 40 ms for an acknowledgement."""
    seen: asyncio.Queue[int] = asyncio.Queue()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.put_nowait(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listening = listen(0)
    async with await asyncio.start_server(connected, sock=listening):
        _, writer = await asyncio.open_connection(*listening.getsockname())
        assert await seen.get()
        writer.close()
        await writer.wait_closed()
