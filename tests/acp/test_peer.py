"""A connection on a real socket: order, answers, endings; and the other side at its worst."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tarmac.acp import rpc_peer as peer_module
from tarmac.acp.rpc_peer import PeerReply, Refused, RpcPeer, unknown
from tarmac.acp.wire import CANCELLED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, Bad, Json, Response
from tarmac.errors import BadRequest, PeerGone, PeerRefused

Serve = Callable[[str, Json], Awaitable[Json | PeerReply]]


class Recorder:
    """A handler that writes down what it hears, and serves as it is told."""

    def __init__(self, serve: Serve | None = None) -> None:
        self.heard: list[tuple[str, Json]] = []
        self.oddities: list[Bad | Response] = []
        self.news = asyncio.Event()
        self._serve = serve

    async def requested(self, method: str, params: Json) -> Json | PeerReply:
        if self._serve is None:
            raise unknown(method)
        return await self._serve(method, params)

    def notified(self, method: str, params: Json) -> None:
        self.heard.append((method, params))
        self.news.set()

    def odd(self, message: Bad | Response) -> None:
        self.oddities.append(message)
        self.news.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.heard) + len(self.oddities) < count:
                self.news.clear()
                await self.news.wait()


class Raw:
    """The other side, by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *messages: object) -> None:
        for each in messages:
            self.writer.write((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n")

    async def line(self) -> dict[str, Any]:
        async with asyncio.timeout(5):
            found: dict[str, Any] = json.loads(await self.reader.readline())
        return found


@asynccontextmanager
async def connected(handler: Recorder) -> AsyncIterator[tuple[RpcPeer, Raw]]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    raw = Raw(*await asyncio.open_connection(sock=theirs, limit=1 << 26))
    peer = RpcPeer(reader, writer, handler, name="the editor")
    running = asyncio.create_task(peer.run())
    try:
        yield peer, raw
    finally:
        await peer.aclose()
        await asyncio.wait([running], timeout=5)
        assert running.done()
        raw.writer.close()
        for each in (writer, raw.writer):
            with suppress(OSError):
                await each.wait_closed()


async def test_requests_are_answered_and_unknown_ones_refused() -> None:
    """A2: each once, by its id, and a fault of a handler is an error of that request alone."""

    async def serve(method: str, params: Json) -> Json:
        match method:
            case "echo":
                return params
            case "missing":
                raise Refused(NOT_FOUND, "no such session", {"id": 7})
            case "wrong":
                raise BadRequest("that makes no sense", hint="try another")
            case "broken":
                raise ZeroDivisionError("ours")
        raise unknown(method)

    async with connected(Recorder(serve)) as (_, raw):
        for number, method in enumerate(["echo", "missing", "wrong", "broken", "nosuch"]):
            raw.send({"jsonrpc": "2.0", "id": number, "method": method, "params": {"a": 1}})
        answers = {each["id"]: each for each in [await raw.line() for _ in range(5)]}
    assert answers[0]["result"] == {"a": 1}
    assert answers[1]["error"] == {"code": NOT_FOUND, "message": "no such session", "data": {"id": 7}}
    assert (answers[2]["error"]["code"], "hint: try another" in answers[2]["error"]["message"]) == (
        INTERNAL_ERROR,
        True,
    )
    assert answers[3]["error"]["code"] == INTERNAL_ERROR
    assert answers[4]["error"]["code"] == METHOD_NOT_FOUND


async def test_updates_come_before_the_response_they_belong_to_and_others_after_it() -> None:
    """A2: what a turn tells is flushed before its response; what a new session tells comes after its id is known."""
    peers: list[RpcPeer] = []

    async def serve(method: str, params: Json) -> Json | PeerReply:
        if method == "new":
            return PeerReply({"sessionId": "s"}, then=lambda: peers[0].notify("update", "commands"))
        for number in range(500):
            peers[0].notify("update", number)
            if number % 50 == 0:
                await asyncio.sleep(0)
        return "end_turn"

    async with connected(Recorder(serve)) as (peer, raw):
        peers.append(peer)
        raw.send({"id": 1, "method": "new"}, {"id": 2, "method": "prompt"})
        lines = [await raw.line() for _ in range(503)]
    by_kind = [each.get("params", each.get("result")) for each in lines]
    assert by_kind.index({"sessionId": "s"}) < by_kind.index("commands")
    assert [each for each in by_kind if isinstance(each, int)] == list(range(500))
    assert by_kind[-1] == "end_turn"


async def test_notifications_are_heard_in_order_while_a_request_runs() -> None:
    """A2: a cancel reaches a turn that has not ended."""
    go_on = asyncio.Event()

    async def serve(method: str, params: Json) -> Json:
        await go_on.wait()
        return "cancelled"

    handler = Recorder(serve)
    async with connected(handler) as (_, raw):
        raw.send({"id": 1, "method": "prompt"}, *({"method": "n", "params": [n]} for n in range(200)))
        await handler.until(200)
        assert [params for _, params in handler.heard] == [[n] for n in range(200)]
        go_on.set()
        assert (await raw.line())["result"] == "cancelled"


async def test_a_request_of_theirs_can_be_cancelled_at_any_moment() -> None:
    """A2: `$/cancel_request`, before it began and after; it is answered all the same."""

    async def serve(method: str, params: Json) -> Json:
        await asyncio.Event().wait()
        return None

    async with connected(Recorder(serve)) as (_, raw):
        raw.send({"id": 1, "method": "x"}, {"method": "$/cancel_request", "params": {"requestId": 1}})
        assert (await raw.line())["error"]["code"] == CANCELLED
        raw.send({"id": 2, "method": "x"})
        await asyncio.sleep(0)
        raw.send({"method": "$/cancel_request", "params": {"requestId": 2}})
        raw.send(
            {"method": "$/cancel_request", "params": {"requestId": 99}}, {"method": "$/cancel_request", "params": 5}
        )
        assert (await raw.line())["id"] == 2


@pytest.mark.parametrize(
    "data, told",
    [
        ({"details": "it may not\n run as root"}, "Internal error (it may not run as root)"),
        ("in words", "Internal error (in words)"),
        ({"field": 1}, 'Internal error ({"field": 1})'),
        ("x" * 1000, f"Internal error ({'x' * 500}…)"),
        ({}, "Internal error"),
    ],
)
async def test_what_an_error_tells_beside_its_message_is_told(data: object, told: str) -> None:
    """A1: real agents say "Internal error", and why in its data."""
    async with connected(Recorder()) as (peer, raw):
        asking = asyncio.create_task(peer.request("a"))
        error = {"code": -32603, "message": "Internal error", "data": data}
        raw.send({"id": (await raw.line())["id"], "error": error})
        with pytest.raises(PeerRefused) as refused:
            await asking
        assert refused.value.what == f"the editor refused: {told}"


async def test_our_requests_are_answered_refused_timed_out_or_cancelled() -> None:
    """A1: whoever waits hears what became of it, and the other side that nobody waits any more."""
    handler = Recorder()
    async with connected(handler) as (peer, raw):
        asking = asyncio.create_task(peer.request("a", {"x": 1}))
        asked = await raw.line()
        raw.send({"id": asked["id"], "result": {"y": 2}})
        assert (asked["method"], asked["params"], await asking) == ("a", {"x": 1}, {"y": 2})
        asking = asyncio.create_task(peer.request("b"))
        raw.send({"id": (await raw.line())["id"], "error": {"code": -32002, "message": "no such file"}})
        with pytest.raises(PeerRefused, match="the editor refused: no such file") as refused:
            await asking
        assert refused.value.code == -32002
        with pytest.raises(TimeoutError):
            await peer.request("c", timeout=0.05)
        late = await raw.line()
        assert await raw.line() == {
            "jsonrpc": "2.0",
            "method": "$/cancel_request",
            "params": {"requestId": late["id"]},
        }
        raw.send({"id": late["id"], "result": "too late"}, {"id": "never", "result": 1})
        await handler.until(2)
        asking = asyncio.create_task(peer.request("d"))
        await raw.line()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await raw.line())["method"] == "$/cancel_request"


async def test_a_peer_that_dies_fails_those_who_wait_and_ends_what_it_asked_for() -> None:
    """A2: in the middle of a line, too."""
    ended = asyncio.Event()

    async def serve(method: str, params: Json) -> Json:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return None

    async with connected(Recorder(serve)) as (peer, raw):
        raw.send({"id": 1, "method": "x"})
        asking = asyncio.create_task(peer.request("a"))
        await raw.line()
        raw.writer.write(b'{"half')
        raw.writer.close()
        with pytest.raises(PeerGone, match="the editor closed the connection"):
            await asking
        async with asyncio.timeout(5):
            await ended.wait()
        with pytest.raises(PeerGone):
            await peer.request("b")
        peer.notify("to nobody")
        await peer.flushed()
        assert peer.gone


async def test_nonsense_is_answered_and_the_next_request_served() -> None:
    """A2: garbage, a batch, blank lines, a megabyte on one line."""

    async def serve(method: str, params: Json) -> Json:
        return len(json.dumps(params))

    async with connected(Recorder(serve)) as (_, raw):
        raw.send(b"garbage", b"", b"[1]", b"{}", [{"id": 1, "method": "a"}, {"id": 2, "method": "b"}])
        codes = [(await raw.line())["error"]["code"] for _ in range(3)]
        assert codes == [-32700, INVALID_REQUEST, INVALID_REQUEST]
        assert {(await raw.line())["id"] for _ in range(2)} == {1, 2}
        raw.send({"id": 3, "method": "big", "params": {"text": "x" * 8_000_000}})
        assert (await raw.line())["result"] == 8_000_012


async def test_a_flood_of_requests_has_a_bound_and_one_id_runs_once() -> None:
    """A2: others are refused, not queued without end."""
    go_on = asyncio.Event()

    async def serve(method: str, params: Json) -> Json:
        await go_on.wait()
        return None

    async with connected(Recorder(serve)) as (_, raw):
        raw.send(*({"id": n, "method": "x"} for n in range(300)), {"id": 0, "method": "x"})
        refused = [await raw.line() for _ in range(300 - peer_module.MOST_RUNNING + 1)]
        assert {each["error"]["code"] for each in refused} == {INVALID_REQUEST}
        go_on.set()
        served = [await raw.line() for _ in range(peer_module.MOST_RUNNING)]
        assert all("result" in each for each in served)


async def test_a_peer_that_never_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: what it is sent does not fill our memory."""
    monkeypatch.setattr(peer_module, "MOST_UNSENT", 4 << 20)
    async with connected(Recorder()) as (peer, _):
        for _ in range(64):
            peer.notify("update", "x" * (1 << 20))
            await asyncio.sleep(0)
        with pytest.raises(PeerGone, match="does not read"):
            await peer.request("a")
