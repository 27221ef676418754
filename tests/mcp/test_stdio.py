"""`tarmac mcp` as a process, on real pipes: driven by the SDK's own client, and by one that knows no manners."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.conftest import alive
from tests.mcp.peers import (
    ERAS,
    PATIENCE,
    STUBBORN,
    Person,
    Pipe,
    a_pipe,
    call,
    encoded,
    environ,
    on_pipes,
    ran,
    stubborn,
    until_found,
    until_gone,
)
from tests.terminals.daemon.conftest import daemon  # noqa: F401 (a fixture)

from tarmac.terminals import attach_terminal, list_terminals

pytestmark = pytest.mark.shell
RUN = "tools/call"


@pytest.mark.parametrize("era", ERAS)
async def test_the_sdks_client_drives_it_over_real_pipes(tmp_path: Path, era: str) -> None:
    """A3: both eras, from one process."""
    person = Person()
    async with on_pipes(tmp_path, era, person) as client:
        assert len((await client.list_tools()).tools) == 11
        assert (await ran(client, "pwd"))["output"] == f"{tmp_path}\n"
        # What reads its standard input finds its end, and not the transport: the next call still works.
        read = await ran(client, "cat /dev/stdin < /dev/null > made; echo $((40 + 2)); echo printed >&2")
        id = (await call(client, "open_persistent_terminal"))["id"]
        inner = await call(client, "run_persistent_command", id=id, command="echo $$; sleep 600 & echo $!", timeout=5)
        processes = [int(each) for each in inner["output"].split() if each.isdigit()]
    assert read["output"] == "42\nprinted\n"
    assert len(person.questions) == 2
    assert [each for each in processes if alive(each)] == []  # nothing outlives the client


@pytest.mark.usefixtures("daemon")
async def test_a_terminal_that_was_to_outlive_the_server_does(tmp_path: Path) -> None:
    """F1, A3: the next program goes on with its shell."""
    async with on_pipes(tmp_path, ERAS[0], Person()) as client:
        id = (await call(client, "open_persistent_terminal", outlive=True))["id"]
        await call(client, "run_persistent_command", id=id, command="COLOUR=green")
    (left,) = await list_terminals()
    assert (left.id, left.alive, left.host, left.cwd) == (id, True, None, tmp_path)
    terminal = await attach_terminal(id)
    assert (await terminal.run("echo $COLOUR", timeout=PATIENCE)).output == "green\n"
    await terminal.aclose()


@pytest.mark.usefixtures("daemon")
def test_a_client_has_its_terminals_again_after_the_server_was_killed(tmp_path: Path) -> None:
    """T34: known by the client and the workspace. Another client does not get them."""

    def told(pipe: Pipe, name: str, **arguments: object) -> str:
        answer = pipe.ask(RUN, {"name": name, "arguments": arguments})
        return str(answer["result"]["content"][0]["text"])

    with a_pipe(tmp_path, "--auto", "all") as pipe:
        pipe.shake()
        opened = pipe.ask(RUN, {"name": "open_persistent_terminal", "arguments": {"outlive": True}})
        id = opened["result"]["structuredContent"]["id"]
        assert "0" in told(pipe, "run_persistent_command", id=id, command="COLOUR=green")
        pipe.process.kill()
        pipe.process.wait(PATIENCE)
    with a_pipe(tmp_path, "--auto", "all") as pipe:
        pipe.shake(name="somebody else")
        assert id not in told(pipe, "list_terminals")
    with a_pipe(tmp_path, "--auto", "all") as pipe:
        pipe.shake()
        assert id in told(pipe, "list_terminals")
        assert "green" in told(pipe, "run_persistent_command", id=id, command="echo $COLOUR")
        told(pipe, "kill_persistent_terminal", id=id)


def run(pipe: Pipe, command: str, **arguments: object) -> int:
    return pipe.send(RUN, {"name": "run_command", "arguments": {"command": command, **arguments}})


def test_garbage_on_the_wire_costs_only_itself(tmp_path: Path) -> None:
    """A3: half lines, batches, bytes that are no text, unknown methods, megabytes: the connection goes on."""
    with a_pipe(tmp_path) as pipe:
        pipe.write(b"\xff\xfe\n{\n[]\n\n   \nnull\n42\n" + b"[" * 100_000 + b"\n")
        pipe.shake()
        pipe.write(b'{"jsonrpc": "2.0", "id": 90, "method": "no/such/thing"}\n')
        assert pipe.answer(90)["error"]["code"] == -32601
        pipe.write(b'{"jsonrpc": "1.0", "id": 91, "method": "ping"}\n{"id": 92}\n')
        assert pipe.answer(91)["error"]["code"] == -32600
        assert pipe.answer(92)["error"]["code"] == -32600
        pipe.write(b'{"jsonrpc": "2.0", "id": 93, "method": "tools/call", "params": {"name": 7}}\n')
        assert pipe.answer(93)["error"]["code"] == -32602
        pipe.write(b'{"jsonrpc": "2.0", "id": 999, "result": {}}\n')  # an answer to nothing
        batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (94, 95)]
        pipe.write(json.dumps(batch).encode() + b"\n")
        assert pipe.answer(95)["result"] == {}
        pipe.write(b'{"x": "' + b"y" * (17 << 20) + b'"}\n')
        assert "bytes" in pipe.until(lambda each: "error" in each)["error"]["message"]
        pipe.write(b'{"jsonrpc": "2.0", "id": 97, "method": "ping", "params": {"x": "' + b"y" * (50 << 20) + b'"}}\n')
        assert "52,4" in pipe.answer(97)["error"]["message"]
        id = run(pipe, "pwd")
        answer = pipe.answer(id)
        assert answer["result"]["structuredContent"]["output"] == f"{tmp_path}\n"
        for half in (b'{"jsonrpc": "2.0", "id": 96,', b' "method": ', b'"ping"}\n'):
            pipe.write(half)
        assert pipe.answer(96)["result"] == {}
        assert pipe.close() == 0


def test_only_messages_are_ever_written_to_standard_output(tmp_path: Path) -> None:
    """A3: a workspace's files, a shell's start-up files and commands may print what they like."""
    (Path.home() / ".bashrc").write_text("echo noise; echo more noise >&2\n")
    with a_pipe(tmp_path, "--allow", "printf", "--auto", "safe") as pipe:
        pipe.shake()
        answers = [pipe.answer(run(pipe, command)) for command in ("printf '{\\n'", "X=1; echo $X >&2", "ls")]
        pipe._in.close()
        rest = pipe._out.read()
        assert [each["result"]["isError"] for each in answers] == [False, True, False]
        assert rest == b""


def test_a_client_that_asks_for_thousands_of_things_gets_them_all(tmp_path: Path) -> None:
    """A3: a flood is served in its order of arrival, and nothing grows without bound."""
    with a_pipe(tmp_path) as pipe:
        pipe.shake()
        flood = b"".join(
            encoded({"jsonrpc": "2.0", "id": 1000 + n, "method": "ping", "params": {}}) for n in range(1000)
        )
        commands = b"".join(
            encoded({"jsonrpc": "2.0", "id": 9000 + n, "method": RUN, "params": {
                "name": "run_command", "arguments": {"command": f"echo {n}"}}}) for n in range(40)
        )  # fmt: skip
        with contextlib.closing(_beside(pipe, flood + commands)):
            ids = {each["id"] for each in (pipe.read() for _ in range(1040))}
        assert ids == {*range(1000, 2000), *range(9000, 9040)}
        assert pipe.close() == 0


class _beside:  # noqa: N801
    """Writes while the test reads: a pipe holds 64 KiB."""

    def __init__(self, pipe: Pipe, data: bytes) -> None:
        import threading

        self._thread = threading.Thread(target=pipe.write, args=(data,))
        self._thread.start()

    def close(self) -> None:
        self._thread.join(PATIENCE)


def test_a_client_that_never_reads_and_dies_leaves_nothing(tmp_path: Path) -> None:
    """A3: a peer that floods, reads nothing and is gone."""
    process = subprocess.Popen(
        ["bash", "-c", 'exec "$0" -m tarmac mcp --allow sleep', a_python()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path,
    )  # fmt: skip
    with process:
        pipe = Pipe(process)
        pipe.shake()
        run(pipe, "sleep 987654", timeout=40)
        sleeper = until_found("987654")
        os.set_blocking(pipe._in.fileno(), False)
        message = encoded({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}})
        end = time.monotonic() + 2
        while time.monotonic() < end:  # until it takes no more: nobody reads its answers
            try:
                os.write(pipe._in.fileno(), message * 10)
            except BlockingIOError:
                break
        pipe._out.close()
        with contextlib.suppress(OSError):
            pipe._in.close()
        process.wait(PATIENCE)
        assert not alive(sleeper)


@pytest.mark.parametrize("closes", ["both ends", "the end it reads"])
@pytest.mark.parametrize("running", [False, True], ids=["before an answer", "while a command runs"])
def test_a_client_that_is_lost_ends_it_quietly(tmp_path: Path, closes: str, running: bool) -> None:
    """A3: with its terminals and without a traceback, also when there is nothing to write to it."""
    command = [a_python(), "-m", "tarmac", "mcp", "--allow", "sleep"]
    ends = subprocess.PIPE
    with subprocess.Popen(command, stdin=ends, stdout=ends, stderr=ends, cwd=tmp_path, env=environ()) as process:
        pipe = Pipe(process)
        try:
            pipe.shake()
            sleepers = []
            if running:
                id = pipe.ask(RUN, {"name": "open_persistent_terminal", "arguments": {}})["result"]["structuredContent"]
                kept = {"id": id["id"], "command": "sleep 765432", "timeout": 40}
                pipe.send(RUN, {"name": "run_persistent_command", "arguments": kept})
                run(pipe, "sleep 765433", timeout=40)
                sleepers = [until_found("765432"), until_found("765433")]
            else:
                pipe.send("tools/list")
            pipe._out.close()
            if closes == "both ends":
                pipe._in.close()
            assert process.wait(PATIENCE / 2) == 0
            assert process.stderr is not None and process.stderr.read() == b""
            assert [each for each in sleepers if alive(each)] == []
        finally:
            process.kill()


def a_python() -> str:
    import sys

    return sys.executable


def test_a_signal_ends_it_and_all_it_started(tmp_path: Path) -> None:
    with a_pipe(tmp_path, "--allow", "sleep") as pipe:
        pipe.shake()
        run(pipe, "sleep 876543", timeout=40)
        sleeper = until_found("876543")
        pipe.process.send_signal(signal.SIGTERM)
        assert pipe.process.wait(PATIENCE) == 128 + signal.SIGTERM
        assert not alive(sleeper)


def test_nothing_outlives_a_kill(tmp_path: Path) -> None:
    """A3: kill −9 of the server while a command runs; what it started ends, `setsid nohup` included."""
    with a_pipe(tmp_path, "--auto", "all") as pipe:
        pipe.shake()
        opened = pipe.ask(RUN, {"name": "open_persistent_terminal", "arguments": {}})["result"]["structuredContent"]
        kept = {"id": opened["id"], "command": STUBBORN.format(1), "timeout": 40}
        pipe.send(RUN, {"name": "run_persistent_command", "arguments": kept})
        run(pipe, STUBBORN.format(2), timeout=40)
        started = stubborn(1) + stubborn(2)
        pipe.process.kill()
        assert pipe.process.wait(PATIENCE) == -signal.SIGKILL
        assert until_gone(started) == []


def test_a_person_who_starts_it_by_hand_is_told_what_it_is(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [a_python(), "-m", "tarmac", "mcp"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        os.close(theirs)
        assert process.stderr is not None and process.stdout is not None
        said = process.stderr.readline()
        os.write(ours, b"\x04")
        assert process.wait(PATIENCE) == 0
        assert (b"speaks MCP" in said, process.stdout.read()) == (True, b"")
    os.close(ours)
