"""What can be wrong with a place: each is an error of its own type that says what to do."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import lacking

from tarmac.errors import BadFrame, ConnectionLost, PlaceFailed, PlaceUnavailable, Trouble
from tarmac.fleet import CommandTransport, RemoteMachine, UnixTransport, open_terminals
from tarmac.fleet import place_connection as client
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.host import host as host_module
from tarmac.terminals.host import wire_values
from tarmac.terminals.host.byte_stream import ByteStream, memory_streams, stream_of_socket
from tarmac.terminals.host.host import Host
from tarmac.terminals.host.wire_values import HostFrameKind
from tarmac.terminals.pool import Pool


async def trouble_with(place: str | CommandTransport | UnixTransport) -> PlaceUnavailable:
    with pytest.raises(PlaceUnavailable) as caught:
        async with open_terminals(place):
            pass
    assert caught.value.hint
    return caught.value


def prints(script: str) -> CommandTransport:
    """A place whose client runs `script` instead of what it is told."""
    return CommandTransport("test://broken", ("sh", "-c", script, "sh"))


async def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    """F5."""
    assert (await trouble_with(f"unix:{tmp_path}/missing")).trouble is Trouble.NOT_FOUND
    assert "is not a socket" in (await trouble_with(f"unix:{tmp_path}")).what


async def test_a_socket_where_nobody_listens(tmp_path: Path) -> None:
    """F5."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
    assert (await trouble_with(f"unix:{tmp_path}/s")).trouble is Trouble.UNREACHABLE


async def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """F5."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await trouble_with("podman://box")).trouble is Trouble.NO_CLIENT


async def test_a_machine_that_nobody_knows(require: Callable[[str], None]) -> None:
    """F5. The name is reserved: no network has it, and none is needed to know."""
    require("ssh")
    found = await trouble_with("ssh://nowhere.invalid")
    assert found.trouble is Trouble.NOT_FOUND
    assert found.what.startswith("ssh://nowhere.invalid: ")


async def test_no_python_there(tmp_path: Path) -> None:
    """F3."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    place = CommandTransport("test://bare", ("/usr/bin/env", "-i", f"PATH={tmp_path}"))
    found = await trouble_with(place)
    assert (found.trouble, "?python=" in found.hint) == (Trouble.NO_PYTHON, True)


async def test_a_python_that_is_too_old(tmp_path: Path) -> None:
    """F3. It says of itself that it is 3.9, and ends as 3.9 would at our first line."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && { echo Python 3.9.2; exit; }\nexit 97\n')
    old.chmod(0o755)
    found = await trouble_with(CommandTransport("test://old", ("/usr/bin/env", "-i", f"PATH={tmp_path}")))
    assert (found.trouble, "only Python 3.9.2" in found.what) == (Trouble.OLD_PYTHON, True)


def read_only() -> tuple[str, ...]:
    """Bubblewrap, with every folder read-only that could take what is carried."""
    words = "--bind / / --dev /dev --proc /proc --ro-bind /var /var --ro-bind /usr /home --remount-ro /dev"
    return ("bwrap", *words.split(), "--ro-bind", "/var", "/tmp", "--setenv", "HOME", "/home")


@pytest.fixture
def full_place(elsewhere: CommandTransport, require: Callable[[str], None]) -> CommandTransport:
    """A place where no folder can be written."""
    require("bwrap")
    if subprocess.run([*read_only(), "true"], check=False, capture_output=True).returncode:
        lacking("bubblewrap can't be used here")
    return replace(elsewhere, argv=(*read_only(), "env", "-u", "XDG_RUNTIME_DIR", "-u", "XDG_CACHE_HOME"))


async def test_no_room_for_what_is_carried(full_place: CommandTransport) -> None:
    """F5."""
    found = await trouble_with(full_place)
    assert (found.trouble, "can't be carried" in found.what) == (Trouble.NO_ROOM, True)


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("yes", Trouble.GARBAGE),
        ("head -c 400000 /dev/urandom; sleep 30", Trouble.GARBAGE),
        ("echo Last login: yesterday", Trouble.OTHER),
        ("exit 7", Trouble.OTHER),
        ("echo 'connect to host x port 22: Connection refused' >&2; exit 255", Trouble.UNREACHABLE),
    ],
)
async def test_something_else_answers(script: str, trouble: Trouble) -> None:
    """F5."""
    found = await trouble_with(prints(script))
    assert found.trouble is trouble
    assert "\\x" not in found.what and "b'" not in found.what


@pytest.mark.parametrize(
    ("client", "script", "trouble", "what", "hint"),
    [
        ("ssh", "echo 'fortune: command not found' >&2; exit 9", Trouble.OTHER, "ended with status 9: for", "start-up"),
        ("ssh", "exit 7", Trouble.OTHER, "the shell there ended with status 7", "start-up file"),
        (
            "ssh",
            "echo 'Strangers: permission denied' >&2; echo 'ssh: connect to host: Connection refused' >&2; exit 255",
            Trouble.UNREACHABLE,
            "Connection refused",
            "port",
        ),
        ("ssh", "echo 'Connection reset by 10.0.0.1 port 22' >&2; exit 255", Trouble.UNREACHABLE, "reset", "running"),
        (
            "docker",
            """echo 'OCI runtime exec failed: exec: "sh": executable file not found in $PATH: unknown' >&2; exit 127""",
            Trouble.OTHER,
            "OCI",
            "no `sh`",
        ),
        ("docker", "echo 'Error response from daemon: No such container: web' >&2; exit 1", Trouble.NOT_FOUND, "", ""),
        ("docker", "echo 'container 4f2 is not running' >&2; exit 1", Trouble.UNREACHABLE, "4f2", "`docker ps`"),
        ("podman", "echo 'cannot connect to Podman' >&2; exit 125", Trouble.UNREACHABLE, "Podman", "`podman ps`"),
        ("kubectl", "echo 'The server was refused' >&2; exit 1", Trouble.UNREACHABLE, "refused", "kubectl get pods"),
    ],
)
async def test_a_failure_is_named_by_who_failed(
    client: str, script: str, trouble: Trouble, what: str, hint: str
) -> None:
    """F5. What a start-up file or a banner there prints is not taken for the reason."""
    found = await trouble_with(replace(prints(script), name=f"{client}://box"))
    assert found.trouble is trouble
    assert what in found.what and hint in found.hint
    assert client == "ssh" or "port" not in found.hint  # a container has none that we connect to


async def test_a_start_up_file_that_reads_our_input(elsewhere: CommandTransport) -> None:
    """F5: it asks something, say, as if a person were there."""
    asks = replace(elsewhere, argv=(*elsewhere.argv[:-2], 'read answer; exec "$@"', "sh"))
    assert "a start-up file there reads standard input" in (await trouble_with(asks)).what


class Fake:
    """A host that answers HELLO with the given bytes."""

    name = "fake:"

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        ours, theirs = memory_streams()
        theirs.write(self.answer)
        return ours


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 64, b"\x02" + bytes(4) + b"\xff" * 8]
)
async def test_garbage_on_the_wire(answer: bytes) -> None:
    """F5."""
    with pytest.raises(PlaceUnavailable) as caught:
        async with RemoteMachine(Fake(answer)):
            pass
    assert caught.value.trouble is Trouble.GARBAGE


async def test_half_a_frame_and_then_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """F5."""
    monkeypatch.setattr(client, "WELCOME_PATIENCE", 0.1)
    with pytest.raises(PlaceUnavailable) as caught:
        async with RemoteMachine(Fake(encode(Frame(HostFrameKind.WELCOME, 0, {"version": 1}))[:-3])):
            pass
    assert caught.value.trouble is Trouble.SILENT


@pytest.mark.parametrize("first", [b"", encode(Frame(HostFrameKind.WELCOME, 0, {"version": 1}))])
async def test_garbage_through_a_socket(first: bytes, tmp_path: Path) -> None:
    """F5. At once it is told; in the middle of a session the connection is tried again, and is then lost."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        parser = FrameParser()
        if first and connections == 1:
            while not parser.feed(await reader.read(4096)):
                pass
            writer.write(first)
            while not parser.feed(await reader.read(4096)):  # the call comes after the welcome
                pass
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(answer, tmp_path / "s"):
        with pytest.raises(PlaceFailed) as caught:
            async with RemoteMachine(UnixTransport(tmp_path / "s"), patience=0.2) as machine:
                await machine.load()
    told = caught.value
    if first:
        assert isinstance(told, ConnectionLost)
    else:
        assert isinstance(told, PlaceUnavailable) and told.trouble is Trouble.GARBAGE
    assert (connections > 1) is bool(first)


@pytest.mark.parametrize("data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x01" + bytes(4) + b"\xff" * 8, b"\x00" * 3])
async def test_a_host_is_sent_garbage_through_a_socket(data: bytes) -> None:
    """F5. It ends that connection with a word why, if the bytes can't be a frame; the next client is served."""
    async with Host() as host:
        ours, theirs = socket.socketpair()
        serving = asyncio.ensure_future(host.serve(await stream_of_socket(theirs, first=data[:1])))
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        writer.write(data[1:])
        writer.write_eof()
        answer = FrameParser().feed(await reader.read())
        await serving
        writer.close()
        whole_garbage = len(data) > 12
        assert [each.kind for each in answer] == [HostFrameKind.FAILED] * whole_garbage
        assert [each.kind for each in await conversation(hello())] == [HostFrameKind.WELCOME]


async def test_a_reader_that_gives_up_gets_no_more() -> None:
    """F5. What comes through a socket is handed on at once, but never to one who no longer waits."""
    ours, theirs = socket.socketpair()
    stream = await stream_of_socket(theirs, first=b"first ")
    got: list[bytes] = []

    def take(data: bytes) -> bool:
        got.append(data)
        return True

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await stream.receive(take)
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    writer.write(b"second")
    async with asyncio.timeout(10):
        assert (await stream.read(), got) == (b"second", [b"first "])
    await stream.aclose()
    assert await reader.read() == b""
    writer.close()


class InMemory:
    """A transport to a host in this process."""

    name = "memory:"

    def __init__(self, host: Host) -> None:
        self.host = host
        self.serving: list[asyncio.Task[None]] = []

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        ours, theirs = memory_streams()
        self.serving.append(asyncio.create_task(self.host.serve(theirs)))
        return ours


async def conversation(*frames: Frame) -> list[Frame]:
    """What a host answers to these frames."""
    async with Host() as host:
        ours, theirs = memory_streams()
        serving = asyncio.create_task(host.serve(theirs))
        for frame in frames:
            ours.write(encode(frame))
        ours.write(encode(Frame(HostFrameKind.BYE)))
        parser, answers = FrameParser(), []
        while data := await ours.read():
            answers += parser.feed(data)
        await serving
    return answers


def hello(**more: object) -> Frame:
    return Frame(HostFrameKind.HELLO, 0, {"version": 1, "session": "a" * 32, "new": True, **more})


@pytest.mark.parametrize("version", [wire_values.VERSION, wire_values.VERSION + 1])
async def test_a_client_that_is_newer_by_one_is_served(version: int) -> None:
    """F5. What this version does not know is ignored."""
    answers = await conversation(
        hello(version=version, oldest=1, colour="green"),
        Frame(200, 7, {"what": "unknown"}),
        Frame(HostFrameKind.PING, 3),
    )
    assert [each.kind for each in answers] == [HostFrameKind.WELCOME, HostFrameKind.PONG]


async def test_a_verb_that_the_host_does_not_know_fails_and_the_next_is_served() -> None:
    """F5."""
    async with Host() as host:
        transport = InMemory(host)
        async with RemoteMachine(transport) as machine:
            with pytest.raises(PlaceFailed, match="does not know `dance`"):
                await machine.connection.call("dance")
            assert (await machine.load())["terminals"] == 0
        await asyncio.gather(*transport.serving)


@pytest.mark.parametrize(
    ("ours", "oldest"), [(wire_values.VERSION + 5, wire_values.VERSION + 5), (wire_values.OLDEST - 1, 0)]
)
async def test_versions_too_far_apart_are_told(ours: int, oldest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """F5."""
    async with Host() as host:
        transport = InMemory(host)
        monkeypatch.setattr(client, "VERSION", ours)
        monkeypatch.setattr(client, "OLDEST", oldest)
        with pytest.raises(PlaceUnavailable) as caught:
            async with RemoteMachine(transport):
                pass
        await asyncio.gather(*transport.serving)
    assert (caught.value.trouble, caught.value.hint) == (Trouble.VERSION, "update the older of the two")


async def test_an_older_host_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """F5."""
    with pytest.raises(PlaceUnavailable) as caught:
        async with RemoteMachine(Fake(encode(Frame(HostFrameKind.WELCOME, 0, {"version": 0})))):
            pass
    assert caught.value.trouble is Trouble.VERSION


@pytest.mark.parametrize(
    "frame",
    [
        Frame(HostFrameKind.HELLO, 0, {"version": "one", "session": "a"}),
        Frame(HostFrameKind.HELLO, 0, {"session": "a" * 32, "new": True}),
        Frame(HostFrameKind.HELLO, 0, {"version": 1, "session": "", "new": True}),
        Frame(HostFrameKind.HELLO, 0, {"version": 1, "session": 5, "new": True}),
    ],
)
async def test_a_hello_that_makes_no_sense_is_refused(frame: Frame) -> None:
    """F5."""
    answers = await conversation(frame)
    assert [each.kind for each in answers] == [HostFrameKind.FAILED]


@pytest.mark.parametrize(
    "header",
    [
        {"verb": "open"},
        {"verb": "open", "terminal": "t1", "settings": {"rows": "many"}},
        {"verb": "open", "terminal": "t1", "settings": {"rows": -1}},
        {"verb": "open", "terminal": "t1", "provider": "magic"},
        {"verb": "start", "terminal": "none"},
        {"verb": "send", "terminal": 5},
        {"verb": None},
        {},
    ],
)
async def test_a_call_that_makes_no_sense_is_answered(header: dict[str, object]) -> None:
    """F5."""
    answers = await conversation(hello(), Frame(HostFrameKind.CALL, 1, header))
    assert [each.kind for each in answers] in ([HostFrameKind.WELCOME, HostFrameKind.FAILED], [HostFrameKind.WELCOME])


@pytest.mark.shell
async def test_a_clock_that_differs_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F5. Waits end by our clock, and the host's is only told."""
    async with Host() as host:
        transport = InMemory(host)
        async with RemoteMachine(transport) as machine, Pool(machine=machine) as terminals:
            machine.connection.welcome = {**machine.connection.welcome, "time": time.time() + 86400}
            async with terminals.lease(cwd=tmp_path) as terminal:
                result = await terminal.run("sleep 30", timeout=0.3, on_timeout="interrupt")
                assert (result.reason, result.duration < 20) == ("timeout", True)
        await asyncio.gather(*transport.serving)


@pytest.mark.shell
async def test_an_interrupt_does_not_wait_for_a_host_that_is_stopped(tmp_path: Path) -> None:
    """F5."""
    pid = 0
    try:
        async with open_terminals("unix:") as terminals:
            assert isinstance(terminals.machine, RemoteMachine)
            terminal = await terminals.open(cwd=tmp_path)
            execution = await terminal.start("sleep 100")
            found = terminals.machine.connection.welcome["pid"]
            assert isinstance(found, int)
            pid = found
            os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            waiting = asyncio.create_task(execution.result(60))
            await asyncio.sleep(0)
            await execution.interrupt()
            assert (await waiting).reason == "connection lost"
            assert time.monotonic() - began < 20  # 1.5 seconds on a quiet machine
    finally:
        if pid:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)


@pytest.mark.shell
async def test_terminals_of_a_client_that_never_comes_back_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4. Their time to live is over."""
    monkeypatch.setattr(host_module, "SWEEP_EVERY", 0.05)
    ended = asyncio.Event()
    async with Host(ended=ended.set) as host:
        transport = InMemory(host)
        machine = RemoteMachine(transport, time_to_live=0.1, patience=0.01)
        async with machine, Pool(machine=machine) as terminals:
            terminal = await terminals.open(cwd=tmp_path)
            execution = await terminal.start("sleep 100")

            async def refuse(session: str, *, new: bool) -> ByteStream:
                raise PlaceUnavailable("the network is down")

            monkeypatch.setattr(transport, "connect", refuse)
            machine.connection.cut()
            await asyncio.wait_for(ended.wait(), 20)
            assert host.sessions == {}
            assert (await execution.result(20)).reason == "connection lost"
        await asyncio.gather(*transport.serving)


def test_frames_say_what_is_wrong() -> None:
    """F5."""
    with pytest.raises(BadFrame):
        wire_values.text({"a": 1}, "a")
