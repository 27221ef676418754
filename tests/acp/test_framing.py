"""Whatever comes on the wire, in whatever pieces, the next request that makes sense is answered, and each one once."""

import asyncio
import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarmac.acp.agent import SERVED, Agent
from tarmac.acp.content import EditorAbilities, EditorDocuments
from tarmac.acp.rpc_peer import RpcPeer
from tarmac.acp.wire import LONGEST

pytestmark = pytest.mark.slow

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
IDS = st.one_of(st.integers(), st.text(max_size=5), st.none(), st.floats(), VALUES, st.just(10**30), st.just(2**64))
METHODS = st.sampled_from(
    ["initialize", "authenticate", "session/prompt", "session/cancel", "session/close", "session/load", "session/list",
     "session/set_mode", "session/new", "session/fork", "$/cancel_request", "$/x", "_ext", "x", "", "session/update"]
)  # fmt: skip
PARAMS = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "sessionId": VALUES,
        "requestId": VALUES,
        "cwd": st.sampled_from(["relative", "", 5, "/nonexistent/\0", "/nonexistent"]),
        "prompt": VALUES,
        "cursor": VALUES,
        "clientCapabilities": VALUES,
        "protocolVersion": VALUES,
    },
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": IDS,
        "method": METHODS | VALUES,
        "params": PARAMS,
        "result": VALUES,
        "error": VALUES | st.fixed_dictionaries({"code": VALUES, "message": VALUES}),
    },
)
LINES = st.one_of(
    st.binary(max_size=60).map(lambda each: each.replace(b"\n", b"")),
    st.one_of(VALUES, MESSAGES, st.lists(MESSAGES, max_size=3)).map(lambda each: json.dumps(each).encode()),
    st.sampled_from([b"[" * 50_000, b'{"a":' * 3000, b'{"id":1,"method":"\\ud800"}', b"\xff\xfe", b'{"id":1e999}']),
)
LAST = b'{"jsonrpc":"2.0","id":"the last","method":"session/close","params":{"sessionId":"nosuch"}}\n'
FIRST = b'{"jsonrpc":"2.0","id":"the first","method":"initialize","params":{"protocolVersion":1}}\n'


class Ends:
    """Both ends of a connection, in memory: pieces in; what is said out."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.said: list[dict[str, Any]] = []
        self._answered = asyncio.Event()

    async def read(self, n: int = -1) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        async with asyncio.timeout(20):
            await self._answered.wait()
        return b""

    def write(self, data: bytes) -> None:
        assert data.endswith(b"\n")
        self.said += [json.loads(line) for line in data.splitlines()]
        if any(each.get("id") == "the last" for each in self.said):
            self._answered.set()

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        pass


async def served(pieces: list[bytes], folder: Path) -> list[dict[str, Any]]:
    """What the agent says until it has answered the last one."""
    ends = Ends([each for each in pieces if each])
    agent = Agent(
        {**os.environ, "TARMAC_STATE_DIR": str(folder / "state"), "TARMAC_CONFIG_DIR": str(folder / "config")}
    )
    peer = RpcPeer(ends, ends, agent, name="the editor")
    agent.connect(peer)
    try:
        await peer.run()
    finally:
        await agent.aclose()
    return ends.said


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(each % (len(data) + 1) for each in cuts), len(data)]
    return [data[start:stop] for start, stop in pairwise(places)]


@settings(deadline=None, max_examples=100)
@given(st.lists(LINES, max_size=8), st.lists(st.integers(0, 1 << 20), max_size=6))
@example([b'{"method":"$/cancel_request","params":{"requestId":[1]}}'], [])
@example([b'{"method":"session/cancel","params":{"sessionId":[1]}}', b'{"id":1e300,"method":"x"}'], [])
def test_no_garbage_in_no_pieces_ends_the_connection(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int]
) -> None:
    """A2: half lines, batches, unknown methods, odd ids, responses to nothing, deep nesting, bytes that are no text."""
    data = FIRST + b"".join(line + b"\n" for line in lines) + LAST
    said = asyncio.run(served(cut(data, cuts), tmp_path_factory.getbasetemp()))
    assert Counter(json.dumps(each.get("id")) for each in said)['"the last"'] == 1
    assert all(("result" in each) != ("error" in each) for each in said if "method" not in each)


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(
        st.integers(-(2**53), 2**53) | st.text(max_size=8), METHODS.filter(lambda name: name != "session/new")
    ),
    st.lists(st.integers(0, 1 << 20), max_size=6),
)
def test_each_request_is_answered_once_by_its_own_id(
    tmp_path_factory: pytest.TempPathFactory, asked: dict[int | str, str], cuts: list[int]
) -> None:
    """A2: text or number, and never the other."""
    asked = {id: method for id, method in asked.items() if id not in ("the last", "the first")}
    lines = [json.dumps({"jsonrpc": "2.0", "id": id, "method": method}).encode() for id, method in asked.items()]
    data = FIRST + b"".join(line + b"\n" for line in lines) + LAST
    said = asyncio.run(served(cut(data, cuts), tmp_path_factory.getbasetemp()))
    ids = Counter((type(each["id"]), each["id"]) for each in said if "method" not in each)
    assert ids == Counter({(type(id), id): 1 for id in [*asked, "the first", "the last"]})


async def test_a_line_of_megabytes_is_served_and_one_without_end_is_thrown_away(tmp_path: Path) -> None:
    """A2: told, and the next one is read."""
    big = json.dumps({"id": 1, "method": "session/close", "params": {"sessionId": "x" * (8 << 20)}}).encode() + b"\n"
    endless = [b"x" * (1 << 20)] * ((LONGEST >> 20) + 1) + [b"\n"]
    said = await served([FIRST, big, *endless, LAST], tmp_path)
    assert sorted(str(each["id"]) for each in said) == ["1", "None", "the first", "the last"]


def test_the_agent_serves_what_the_sessions_have() -> None:
    """A2: the names known before all of Tarmac is loaded are those that are there."""
    from tarmac.acp.editor_sessions import EditorSessions

    sessions = EditorSessions(None, EditorAbilities(), os.environ, {}, EditorDocuments())  # type: ignore[arg-type]
    assert set(sessions.methods) == SERVED[1] and SERVED[2] < SERVED[1]


class Deaf(Ends):
    """It sends without end, and reads nothing."""

    async def read(self, n: int = -1) -> bytes:
        await asyncio.sleep(0)
        return b"garbage\n" * 1000

    async def drain(self) -> None:
        await asyncio.Event().wait()


async def test_an_editor_that_reads_nothing_is_left_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: what waits for it has a bound, and then the connection ends as any other does."""
    monkeypatch.setattr("tarmac.acp.rpc_peer.MOST_UNSENT", 1 << 20)
    ends = Deaf([])
    agent = Agent(os.environ)
    peer = RpcPeer(ends, ends, agent, name="the editor")
    agent.connect(peer)
    async with asyncio.timeout(20):
        await peer.run()
    await agent.aclose()
    assert peer.gone
