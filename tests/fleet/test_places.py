"""One interface wherever the terminals are: in this process, behind a socket, or carried to another place."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fleet.conftest import their_python

from tarmac.errors import BadRequest, DirectoryUnavailable
from tarmac.fleet import CommandTransport, Transport, open_terminals
from tarmac.fleet.open_address import parse_place
from tarmac.fleet.transport import UnixTransport

fleet = [pytest.mark.shell, pytest.mark.fleet]


@pytest.fixture(
    params=[
        pytest.param("local:", marks=fleet),
        pytest.param("unix:", marks=pytest.mark.shell),
        pytest.param("carried", marks=fleet),
    ]
)
def place(request: pytest.FixtureRequest, elsewhere: CommandTransport) -> str | Transport:
    return elsewhere if request.param == "carried" else str(request.param)


async def test_a_command_has_the_same_result_at_every_place(place: str | Transport, tmp_path: Path) -> None:
    """F2."""
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path, task="a") as terminal:
        first = await terminal.run("mkdir -p sub && cd sub && export COLOUR=green; seq 3 | grep 2 | cat; (exit 7)")
        second = await terminal.run("echo $COLOUR; false | true")
        assert (first.output, first.exit_code, first.evidence, first.cwd) == ("2\n", 7, "mark", tmp_path / "sub")
        assert (second.output, second.exit_code, second.pipestatus) == ("green\n", 0, (1, 0))
        assert terminal.quality == "rich"


async def test_a_timeout_interrupts_there(place: str | Transport, tmp_path: Path) -> None:
    """F2."""
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        result = await terminal.run("echo begun; sleep 100", timeout=0.5, on_timeout="interrupt")
        after = await terminal.run("echo still here")
    assert (result.output.splitlines()[0], result.reason, result.exit_code) == ("begun", "timeout", 130)
    assert after.output == "still here\n"


async def test_what_a_hung_prompt_hook_does_is_told_there_too(place: str | Transport, tmp_path: Path) -> None:
    """F2. A command that the shell does not take is not run, and one that has ended is done."""
    hang = "hook() { [ ! -e hang ] || sleep 600; }; PROMPT_COMMAND=\"$PROMPT_COMMAND; hook\"; trap '' INT; true"
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path, shell="bash") as terminal:
        await terminal.run(hang)
        await terminal.run("touch hang", timeout=5)
        kept_out = await terminal.run("echo kept out", timeout=1)
        (tmp_path / "hang").unlink()
        after = await terminal.run("echo taken", timeout=30)
    assert (kept_out.reason, kept_out.exit_code, kept_out.output) == ("not run", None, "")
    assert any("busy with `sleep`" in each for each in kept_out.notes)
    assert (after.reason, after.output) == ("done", "taken\n")


ONE_SOCKET = """
import os, socket, subprocess, sys, threading
ours, theirs = socket.socketpair()
there = subprocess.Popen(sys.argv[1:], stdin=theirs, stdout=theirs)
theirs.close()
def send():
    while data := os.read(0, 65536):
        ours.sendall(data)
    ours.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := ours.recv(65536):
    os.write(1, data)
"""


@pytest.mark.shell
async def test_standard_input_and_output_there_may_be_one_socket(elsewhere: CommandTransport, tmp_path: Path) -> None:
    """F2: as inetd gives them, and some sshd."""
    place = replace(elsewhere, argv=(*elsewhere.argv[:-4], their_python(), "-c", ONE_SOCKET))
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        result = await terminal.run("seq 20000 | tail -n 1; (exit 3)")
    assert (result.output, result.exit_code) == ("20000\n", 3)


async def test_questions_are_answered_there(place: str | Transport, tmp_path: Path) -> None:
    """F2."""
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        result = await terminal.run("read -p 'name? ' name; echo hello $name", answers={"name?": "Ada"})
        execution = await terminal.start("read -s -p 'Password: ' word; echo; echo ${#word}")
        happened = await execution.waiting_for(input=True)
        await execution.send_secret("geheim")
        secret = await execution.result(10)
    assert result.output.endswith("hello Ada\n")
    assert (happened.what, happened.waiting and str(happened.waiting.wants)) == ("input", "secret")
    assert (secret.output.split(), secret.exit_code) == (["Password:", "6"], 0)


async def test_much_output_arrives_byte_for_byte(place: str | Transport, tmp_path: Path) -> None:
    """F2."""
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        execution = await terminal.start("seq 200000")
        pieces = [piece async for piece in execution.follow() if isinstance(piece, bytes)]
        result = await execution.result()
    expected = b"".join(b"%d\r\n" % number for number in range(1, 200001))
    assert b"".join(pieces) == expected
    assert (result.output_bytes, result.exit_code, result.truncated) == (len(expected), 0, True)


async def test_a_missing_directory_is_an_error_there_too(place: str | Transport, tmp_path: Path) -> None:
    """F5."""
    async with open_terminals(place) as terminals:
        with pytest.raises(DirectoryUnavailable, match="does not exist"):
            async with terminals.lease(cwd=tmp_path / "missing") as terminal:
                await terminal.run("true")


async def test_a_terminal_can_be_listed_read_and_killed_by_its_id(place: str | Transport, tmp_path: Path) -> None:
    """F2."""
    async with open_terminals(place) as terminals:
        terminal = await terminals.open(cwd=tmp_path, task="a", name="server")
        execution = await terminal.start("echo up; sleep 100")
        happened = await terminals.waiting_for(terminal.id, pattern="up")
        told = await terminals.read(terminal.id)
        assert ([each.id for each in terminals.listing(busy=True)], happened.what) == ([terminal.id], "pattern")
        assert [each.output for each in told] == ["up\n"]
        await terminals.kill(terminal.id)
        assert terminals.listing() == []
        assert (await execution.result(5)).reason == "terminal closed"


async def test_an_exec_terminal_works_there(place: str | Transport, tmp_path: Path) -> None:
    """F2."""
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path, provider="exec") as terminal:
        result = await terminal.run("pwd; exit 3")
    assert (result.output, result.exit_code, result.evidence) == (f"{tmp_path}\n", 3, "waitpid")


async def test_a_dead_shell_is_replaced_there(place: str | Transport, tmp_path: Path) -> None:
    """F2."""
    async with open_terminals(place) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        first = await terminal.run("exit 5")
        second = await terminal.run("echo again")
    assert first.exit_code == 5
    assert (second.output, second.fresh_shell) == ("again\n", True)


@pytest.mark.fleet
@pytest.mark.shell
async def test_what_is_carried_needs_nothing_but_python(elsewhere: CommandTransport, tmp_path: Path) -> None:
    """F3. The command sees the environment of that place, not ours."""
    async with open_terminals(elsewhere) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        result = await terminal.run("echo $WHERE $HOME")
    assert result.output == f"elsewhere {tmp_path / 'their home'}\n"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("ssh://me@host.example:2222", "ssh://me@host.example:2222"),
        ("docker://Web-1", "docker://Web-1"),
        ("podman://db", "podman://db"),
        ("kubectl://prod/web-0", "kubectl://prod/web-0"),
        ("kubectl://web-0", "kubectl://web-0"),
        ("unix:/run/x.sock", "unix:/run/x.sock"),
    ],
)
def test_addresses_name_their_places(address: str, name: str) -> None:
    """F2."""
    transport = parse_place(address)
    assert transport is not None
    assert transport.name == name


@pytest.mark.parametrize(
    "address",
    ["", "host", "ftp://x", "ssh://", "ssh:host", "ssh://-oProxyCommand=x", "ssh://h:port", "ssh://h/x", "docker://a@b",
     "local:x", "ssh://h?colour=red", "docker://-it", "kubectl://a/-x", "ssh://\0"],
)  # fmt: skip
def test_what_is_no_address_is_refused(address: str) -> None:
    """F2."""
    with pytest.raises(BadRequest):
        parse_place(address)


@pytest.mark.parametrize("verb", [["run", "hello"], ["mcp"], ["acp"]])
def test_a_cluster_is_no_place_for_a_task(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """F2: said at the start, with what can be done there; nor does a hint for a task name it."""
    from tarmac.cli import main

    assert main([*verb, "--on", "ray://head:6379", "--cwd", "/"]) != 0
    said = capsys.readouterr().err
    assert "is a cluster" in said and "tarmac exec --on" in said
    assert main([*verb, "--on", "rya://", "--cwd", "/"]) != 0
    assert "ray:" not in capsys.readouterr().err


async def test_a_terminal_elsewhere_can_not_outlive_the_program() -> None:
    """F1: it is said, and not passed over."""
    async with open_terminals("unix:") as terminals:
        with pytest.raises(BadRequest, match="can't outlive"):
            await terminals.open(outlive=True)


def test_this_process_and_sockets_need_no_transport_program() -> None:
    """F2."""
    assert parse_place("local:") is None
    assert parse_place("unix:") == UnixTransport()
