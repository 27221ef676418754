"""A connection may break at any byte. Nothing is lost, and nothing is done twice."""

import asyncio
import random
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tarmac.errors import ConnectionLost, TarmacError
from tarmac.fleet import CommandTransport, RemoteMachine, open_terminals
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.host.byte_stream import (
    ByteStream,
    MemoryStream,
    memory_streams,
    stream_of_pipes,
    stream_of_socket,
)
from tarmac.terminals.host.host import Host
from tarmac.terminals.host.wire_values import HostFrameKind
from tarmac.terminals.pool import Pool
from tarmac.terminals.settings import Settings
from tarmac.terminals.terminal import NewTerminal

pytestmark = pytest.mark.shell


class Frail(MemoryStream):
    """A connection that breaks after so many bytes, wherever that is in a frame."""

    def __init__(self, inner: MemoryStream, *, reads: int, writes: int) -> None:
        self.inner, self.reads, self.writes = inner, reads, writes

    async def read(self) -> bytes:
        data = await self.inner.read()
        whole, self.reads = data[: self.reads], self.reads - len(data)
        if self.reads < 0:
            self.inner.abort()
        return whole

    def write(self, data: bytes) -> None:
        if self.writes >= 0:
            self.inner.write(data[: self.writes])
        self.writes -= len(data)
        if self.writes < 0:
            self.inner.abort()

    async def drain(self) -> None:
        await self.inner.drain()

    def abort(self) -> None:
        self.inner.abort()

    async def aclose(self) -> None:
        await self.inner.aclose()


class Breaking:
    """A transport to a host in this process. Its connections break, one after another, after so many bytes."""

    name = "breaking:"

    def __init__(self, sizes: list[tuple[int, int]]) -> None:
        self.host = Host()
        self.sizes = sizes
        self.connections = 0
        self.serving: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.host.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.host.__aexit__()
        await asyncio.gather(*self.serving)

    async def connect(self, session: str, *, new: bool) -> MemoryStream:
        ours, theirs = memory_streams()
        self.serving.append(asyncio.create_task(self.host.serve(theirs)))
        self.connections += 1
        if new or not self.sizes:
            return ours if new and not self.sizes else Frail(ours, reads=10_000, writes=3_000) if new else ours
        reads, writes = self.sizes.pop(0)
        return Frail(ours, reads=reads, writes=writes)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(each, marks=pytest.mark.fleet) for each in range(2, 10))])
async def test_cuts_at_any_byte_lose_nothing_and_repeat_nothing(seed: int, tmp_path: Path) -> None:
    """F4."""
    chance = random.Random(seed)
    sizes = [(chance.choice([200, 900, 4_000, 30_000]), chance.choice([150, 400, 2_000])) for _ in range(12)]
    sizes = [(chance.randrange(1, reads), chance.randrange(1, writes)) for reads, writes in sizes]
    expected = b"".join(b"%d\r\n" % number for number in range(1, 3001))
    async with (
        Breaking(sizes) as transport,
        RemoteMachine(transport) as machine,
        Pool(machine=machine) as terminals,
        terminals.lease(cwd=tmp_path) as terminal,
    ):
        for number in range(4):
            execution = await terminal.start(f"echo {number} >> done; seq 3000; (exit {number})")
            data = b"".join([piece async for piece in execution.follow() if isinstance(piece, bytes)])
            result = await execution.result(30)
            assert (data == expected, result.exit_code, result.reason, result.evidence) == (
                True,
                number,
                "done",
                "mark",
            )
    assert (tmp_path / "done").read_text() == "0\n1\n2\n3\n"
    assert transport.connections > 2


async def test_a_cut_after_a_terminal_was_closed_leaves_the_others_at_work(tmp_path: Path) -> None:
    """F4. The host still knows the last command of the closed one."""
    async with asyncio.timeout(60), Breaking([(4_000, 1_000_000)]) as transport, RemoteMachine(transport) as machine:
        closed = await machine.open(NewTerminal(cwd=tmp_path, settings=Settings()))
        await closed.run("echo 1", timeout=30)
        await closed.aclose()
        other = await machine.open(NewTerminal(cwd=tmp_path, settings=Settings()))
        for number in range(4):
            execution = await other.start(f"seq 3000; (exit {number})")
            data = b"".join([piece async for piece in execution.follow() if isinstance(piece, bytes)])
            result = await execution.result(30)
            assert (len(data.split()), result.exit_code, result.reason) == (3000, number, "done")
        await other.aclose()
    assert transport.connections > 1


@pytest.mark.parametrize("over", ["socket", "pipes"])
async def test_output_waits_for_a_client_that_is_far_behind(
    over: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4. The host sends no more until the client has read, and then all of it, in order."""
    ours, theirs = socket.socketpair()
    reads, writes = (ours, theirs) if over == "socket" else socket.socketpair()
    ours.setblocking(False)
    reads.setblocking(False)
    size = 4_000_000
    command = f"head -c {size} /dev/zero | tr '\\0' x; (exit 3)"
    frames = (
        Frame(HostFrameKind.HELLO, 0, {"version": 1, "session": "a" * 32, "new": True}),
        Frame(HostFrameKind.CALL, 1, {"verb": "open", "terminal": "t1", "cwd": str(tmp_path)}),
        Frame(HostFrameKind.CALL, 2, {"verb": "start", "terminal": "t1"}, command.encode()),
    )
    loop = asyncio.get_running_loop()
    sent = 0

    def write(data: bytes) -> None:
        nonlocal sent
        sent += len(data)
        send(data)

    async with Host() as host:
        stream: ByteStream
        if over == "socket":
            stream = await stream_of_socket(theirs)
        else:
            stream = await stream_of_pipes(theirs.detach(), writes.detach())
        send = stream.write
        monkeypatch.setattr(stream, "write", write)
        serving = asyncio.create_task(host.serve(stream))
        parser, answers = FrameParser(), list[Frame]()
        for frame in frames:
            await loop.sock_sendall(ours, encode(frame))
            answers += parser.feed(await loop.sock_recv(reads, 1 << 16))
        (execution,) = host.sessions["a" * 32].terminals["t1"].executions
        while execution.running:
            await execution.news(None)
        sent_unread = sent
        while "ending" not in answers[-1].header:
            answers += parser.feed(await loop.sock_recv(reads, 1 << 16))
        await loop.sock_sendall(ours, encode(Frame(HostFrameKind.BYE)))
        await serving
    ours.close()
    reads.close()
    assert [each.kind for each in answers[:3]] == [HostFrameKind.WELCOME, HostFrameKind.REPLY, HostFrameKind.REPLY]
    assert b"".join(each.body for each in answers[3:]) == b"x" * size
    assert sent_unread < 1_000_000


async def test_whoever_waits_is_told_and_the_command_goes_on(tmp_path: Path) -> None:
    """F4."""
    async with (
        Breaking([]) as transport,
        RemoteMachine(transport) as machine,
        Pool(machine=machine) as terminals,
        terminals.lease(cwd=tmp_path) as terminal,
    ):
        execution = await terminal.start("echo before; until [ -e go ]; do sleep 0.05; done; echo after; (exit 4)")
        await execution.waiting_for(pattern="before")
        waiting = asyncio.create_task(execution.result(30))
        await asyncio.sleep(0)
        machine.connection.cut()
        told = await waiting
        assert (told.reason, told.exit_code, told.evidence) == ("connection lost", None, "unknown")
        assert execution.running
        (tmp_path / "go").touch()
        result = await execution.result(30)
    assert (result.output, result.exit_code, result.reason) == ("before\nafter\n", 4, "done")


async def test_a_host_that_is_gone_ends_its_terminals_by_type(tmp_path: Path) -> None:
    """F5."""
    async with Breaking([]) as transport, RemoteMachine(transport) as machine, Pool(machine=machine) as terminals:
        async with terminals.lease(cwd=tmp_path) as terminal:
            execution = await terminal.start("sleep 100")
            lost = transport.host.sessions.popitem()[1]
            machine.connection.cut()
            assert (await execution.result(10)).reason == "connection lost"
            result = await execution.result(10)
            assert (result.reason, result.exit_code, execution.running) == ("connection lost", None, False)
            with pytest.raises((ConnectionLost, TarmacError)):
                await terminal.run("true")
        with pytest.raises(ConnectionLost):
            await terminals.open()
        await lost.aclose()


@pytest.mark.fleet
async def test_a_killed_client_program_loses_nothing(elsewhere: CommandTransport, tmp_path: Path) -> None:
    """F4. The host there outlives the program that carried the connection."""
    async with open_terminals(elsewhere) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        assert isinstance(terminals.machine, RemoteMachine)
        execution = await terminal.start("for i in $(seq 200); do echo $i; sleep 0.01; done")
        for after in (20, 90, 150):
            await execution.waiting_for(pattern=rf"^{after}$")
            terminals.machine.connection.cut()
        while execution.running:
            await execution.result(30)
        result = await execution.result()
    assert result.output == "".join(f"{number}\n" for number in range(1, 201))
