"""Commands, clients and strangers that mean no good: the others go on, and nothing is left of them."""

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import alive, tarmac
from tests.mcp.peers import (
    ERAS,
    PATIENCE,
    Person,
    Pipe,
    a_pipe,
    a_server,
    call,
    client_of,
    connected,
    ran,
    until,
    until_found,
)
from tests.mcp.test_http import TOKEN, served

from tarmac.loopback import http_server as loopback
from tarmac.mcp import adapter, http

pytestmark = pytest.mark.shell
each_era = pytest.mark.parametrize("era", ERAS)


def made(pipe: Pipe, name: str, **arguments: object) -> tuple[dict[str, object], float]:
    """What a call comes to, and how long it took."""
    began = time.monotonic()
    answer = pipe.ask("tools/call", {"name": name, "arguments": arguments})
    return answer["result"]["structuredContent"], time.monotonic() - began


def test_no_command_holds_up_a_call_or_eats_what_the_client_says(tmp_path: Path) -> None:
    """A3: floods, waits for input, ignores signals, becomes a daemon, stops its shell: a handle and what there is."""
    with a_pipe(tmp_path, "--auto", "all") as pipe:
        pipe.shake()
        commands = {
            "yes": "left running",
            "X=1; cat": "awaiting input",
            "cat": "done",  # without a terminal: an empty input
            "python3 -c 'import sys; print(sys.stdin.buffer.read())' < /dev/null": "done",
            "trap '' INT TERM HUP; while :; do sleep 0.1; done": "left running",
            "(setsid sh -c 'trap \"\" HUP TERM; exec sleep 654321' >/dev/null 2>&1 &); echo": "done",
            "kill -STOP $$": "done",
            "exec 0<&- 1>&- 2>&-; sleep 600": "left running",
        }
        for command, reason in commands.items():
            result, took = made(pipe, "run_command", command=command, timeout=0.4 if reason == "left running" else 10)
            assert (command, result.get("reason", "done")) == (command, reason)
            assert took < 12
            if result.get("running"):
                assert result["terminal_id"]
        daemon = until_found("654321")
        assert made(pipe, "run_command", command="pwd")[0]["output"] == f"{tmp_path}\n"
        busy, _ = made(pipe, "list_terminals")
        for each in busy["terminals"]:  # type: ignore[attr-defined]
            _, took = made(pipe, "interrupt_terminal", id=each["id"])
            assert took < 12
        assert pipe.close() == 0
    assert not alive(daemon)


def test_nothing_inherits_the_transport(tmp_path: Path) -> None:
    """A3: no command has a descriptor of the pipes that messages come and go on, with a terminal or without one."""
    (tmp_path / "followed-765").touch()
    with a_pipe(tmp_path, "--auto", "all") as pipe:
        pipe.shake()
        ours = {os.fstat(each.fileno()).st_ino for each in (pipe._in, pipe._out)}
        for command in ("tail -f followed-765", "X=1; tail -f followed-765"):
            id = pipe.send("tools/call", {"name": "run_command", "arguments": {"command": command, "timeout": 1.5}})
            held = inherited("followed-765")
            assert held and not held & ours
            pipe.answer(id)


def inherited(argument: str) -> set[int]:
    """The descriptors, by inode, of a process with this argument."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for each in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if each.name.isdigit() and argument.encode() in (each / "cmdline").read_bytes().split(b"\0"):
                    return {found.stat().st_ino for found in (each / "fd").iterdir()}
    raise AssertionError(f"no process has {argument}")


@each_era
async def test_a_call_comes_back_even_if_all_that_bounds_it_fails(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: every call returns within 50 s. A shell that takes seconds to open stands for whatever may hang."""
    monkeypatch.setattr("tarmac.mcp.tool_server.WITHIN", 0.5)
    monkeypatch.setattr("tarmac.mcp.workspace.GRACE", 0.5)
    (Path.home() / ".bashrc").write_text("sleep 30\n")
    async with connected(tmp_path, era, Person()) as client:
        await ran(client, "ls")  # imports what a call needs
        began = time.monotonic()
        result = await client.call_tool("open_persistent_terminal", {})
        assert time.monotonic() - began < 4.5  # 5 s are given to a shell
        assert result.is_error and "goes on" in str(result.content)


@each_era
async def test_a_client_that_never_answers_holds_up_nobody(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: calls that wait for a person or for a terminal, and more commands than may run at once."""
    monkeypatch.setattr("tarmac.mcp.workspace.AT_ONCE", 4)
    (tmp_path / "log").touch()
    async with a_server(tmp_path) as server, client_of(server, era, Person(after=600)) as client:
        id = (await call(client, "open_persistent_terminal"))["id"]
        calls: list[tuple[str, dict[str, Any]]] = [("run_command", {"command": f"touch {n}"}) for n in range(20)]
        calls += [("wait_for_terminal", {"id": id, "pattern": "x", "timeout": 30})] * 10
        waiting = [asyncio.create_task(client.call_tool(*each)) for each in calls]
        async with client_of(server, era) as other:
            async with asyncio.timeout(PATIENCE):
                assert (await ran(other, "pwd"))["output"] == f"{tmp_path}\n"
            busy = [asyncio.create_task(ran(other, "tail -f log", timeout=1)) for _ in range(5)]
            async with asyncio.timeout(PATIENCE):
                await call(other, "list_terminals")
                ends = [each["reason"] for each in await asyncio.gather(*busy)]
                assert ends == ["left running"] * 5  # the fifth in its turn
        assert not any(each.done() for each in waiting[:20])
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert [each.name for each in tmp_path.iterdir()] == ["log"]


async def test_strangers_without_the_token_take_up_little_and_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: connections that never come to a request, too many of them, bodies without end; a client is still served."""
    monkeypatch.setattr(loopback, "TO_ASK", 1.0)
    monkeypatch.setattr(loopback, "MOST_CONNECTIONS", 20)
    before = asyncio.all_tasks()
    async with a_server(tmp_path) as server:
        with http.listen(0) as listening:
            port = listening.getsockname()[1]
            app = http.Gate(adapter.http_app(server, port), port, TOKEN)
            task = asyncio.create_task(http.serve(app, listening))
            strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
            for n, (_, writer) in enumerate(strangers):
                writer.write(b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: " if n % 2 else b"")
            for reader, writer in strangers:  # each is cut off: some at once, the others when their time is over
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
                writer.close()
            ours = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            for headers, status in (
                ("Content-Length: 99999999999\r\n\r\n", b"401"),  # unread
                (f"Authorization: Bearer {TOKEN}\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
                (f"Authorization: Bearer {TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}", b"4"),  # served: it makes no sense
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write((ours + headers).encode())
                assert (await asyncio.wait_for(reader.read(100), PATIENCE)).startswith(b"HTTP/1.1 " + status)
                writer.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    await until(lambda: asyncio.all_tasks() <= before)


async def test_300_silent_strangers_lock_nobody_out(tmp_path: Path) -> None:
    """A3: there is room for 256; the one that was silent longest makes room for who comes."""
    async with a_server(tmp_path) as server:
        with http.listen(0) as listening:
            port = listening.getsockname()[1]
            app = http.Gate(adapter.http_app(server, port), port, TOKEN)
            task = asyncio.create_task(http.serve(app, listening))
            strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(100), PATIENCE)
            for _, each in [*strangers, (reader, writer)]:
                each.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert answer.startswith(b"HTTP/1.1 401")


async def test_strangers_that_come_all_at_once_find_no_more_room_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: they are accepted in one go, before any of those that make room is gone."""
    monkeypatch.setattr(loopback, "MOST_CONNECTIONS", 20)
    monkeypatch.setattr(loopback, "TO_ASK", 10 * PATIENCE)
    async with a_server(tmp_path) as server:
        with http.listen(0) as listening:
            port = listening.getsockname()[1]
            app = http.Gate(adapter.http_app(server, port), port, TOKEN)
            task = asyncio.create_task(http.serve(app, listening))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await asyncio.wait_for(reader.read(), PATIENCE)  # it serves
            writer.close()
            strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(80)]
            await until(lambda: len(select.select(strangers, [], [], 0)[0]) >= 60)
            for each in strangers:
                each.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


BODIES = {
    "by bytes": ("Content-Length: 1000\r\n\r\n", b" "),
    "by chunks": ("Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize(("headers", "piece"), BODIES.values(), ids=BODIES.keys())
async def test_a_body_that_comes_slowly_is_given_up_quietly(
    tmp_path: Path,
    headers: str,
    piece: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A3: also with the token; the whole body has one time, however many pieces come. It is nobody's mistake to log."""
    monkeypatch.setattr(loopback, "TO_SEND", 1.0)
    caplog.set_level("INFO", "mcp")
    async with a_server(tmp_path) as server:
        with http.listen(0) as listening:
            port = listening.getsockname()[1]
            app = http.Gate(adapter.http_app(server, port), port, TOKEN)
            task = asyncio.create_task(http.serve(app, listening))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            asks = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            asks += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            writer.write((asks + headers).encode())
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(PATIENCE):
                    while not reader.at_eof():
                        writer.write(piece)
                        await writer.drain()
                        await asyncio.sleep(0.02)
            writer.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert "Traceback" not in caplog.text


def test_the_token_is_in_nobodys_sight(tmp_path: Path) -> None:
    """A3: not in the arguments, the log, the errors, or what commands can read of us."""
    with served(tmp_path, stderr=subprocess.PIPE) as server:
        assert TOKEN not in server.said
        assert TOKEN.encode() not in Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        for wrong in ("Bearer x", f"Basic {TOKEN}", f"bearer {TOKEN}x"):
            _, text = server.post(authorization=wrong)
            assert TOKEN not in text
        server.process.terminate()
        assert server.process.stderr is not None
        assert TOKEN not in server.process.stderr.read()
    code = "import ctypes, tarmac.loopback.peer as m; m.make_unreadable(); print(ctypes.CDLL(None).prctl(3))"  # is it?
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "0\n"


@each_era
async def test_a_mistake_of_ours_is_said_as_one_and_costs_only_its_call(
    tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_server(tmp_path) as server, client_of(server, era) as client:
        right, server.load = server.load, lambda _: 1 / 0  # type: ignore[assignment, return-value]
        with pytest.raises(Exception, match="a mistake in Tarmac: ZeroDivisionError"):
            await client.call_tool("run_command", {"command": "ls"})
        assert "Traceback" in caplog.text
        server.load = right
        await ran(client, "ls")


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        outcome = tarmac("mcp", "--http", str(port), "--cwd", str(tmp_path))
    assert (outcome.code, outcome.out) == (2, "")
    assert re.search(rf"can't listen on port {port}: .*\n +hint: --http 0", outcome.err)


def test_a_client_that_is_killed_takes_its_commands_along(tmp_path: Path) -> None:
    """A3: on pipes; nothing says goodbye."""
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, sys.executable], cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
    )
    with client:
        sleeper = until_found("543219")
        assert client.stdout is not None
        server = int(client.stdout.readline())
        os.kill(client.pid, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while (alive(sleeper) or alive(server)) and time.monotonic() < end:
            time.sleep(0.02)
    assert not alive(sleeper) and not alive(server)


CLIENT = """
import json, subprocess, sys, time
server = subprocess.Popen([sys.argv[1], "-m", "tarmac", "mcp", "--allow", "sleep"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def say(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    server.stdin.flush()
say(id=1, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {},
                                       "clientInfo": {"name": "t", "version": "1"}})
server.stdout.readline()
say(method="notifications/initialized")
say(id=2, method="tools/call", params={"name": "run_command", "arguments": {"command": "sleep 543219"}})
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start it as another user")
@pytest.mark.parametrize("verb", ["mcp", "acp"])
def test_a_command_can_not_write_into_the_pipe_that_the_person_answers_on(verb: str) -> None:
    """A3: a process of the same user would open it by way of /proc, and answer our question itself."""
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o777)
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PATH", "PYTHON"))}
        env = {**kept, "HOME": home}
        if subprocess.run([*become, sys.executable, "-c", "import tarmac"], env=env, check=False).returncode:
            pytest.skip("another user can't run this Python")
        words = [*become, sys.executable, "-m", "tarmac", verb]
        server = subprocess.Popen(words, cwd=home, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None and server.stdout is not None
        with server, server.stdin as ours:
            first = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
            first["params"] = {"protocolVersion": 1, "clientCapabilities": {}} if verb == "acp" else LEGACY
            ours.write(json.dumps(first).encode() + b"\n")
            ours.flush()
            assert b"serverInfo" in (said := server.stdout.readline()) or b"agentCapabilities" in said
            looked = subprocess.run(
                [*become, "ls", f"/proc/{server.pid}/fd"], capture_output=True, text=True, check=False
            )
    assert (looked.stdout, "Permission denied" in looked.stderr) == ("", True)


LEGACY = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
