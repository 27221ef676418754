"""Whatever comes on the wire, the next message that makes sense is answered."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mcp.peers import a_server, encoded

import tarmac.mcp
from tarmac.mcp.pipes import serve_lines

TRANSCRIPTS = Path(__file__).parent / "transcripts"
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
methods = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "resources/read", "notifications/initialized",
     "notifications/cancelled", "notifications/progress", "server/discover", "x", ""]
)  # fmt: skip
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": st.integers() | st.text(max_size=5) | values,
        "method": methods,
        "params": values
        | st.fixed_dictionaries({"name": st.sampled_from(["check_command", "x"]), "arguments": values}),
        "result": values,
    },
)
lines = st.one_of(
    st.binary(max_size=60).map(lambda each: each.replace(b"\n", b"")),
    st.one_of(values, messages, st.lists(messages, max_size=3)).map(lambda each: json.dumps(each).encode()),
)
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


async def served(data: list[bytes], folder: Path, last: str) -> list[dict[str, Any]]:
    """What the server says to these pieces; it is hung up on when the last one has its answer."""
    said: list[dict[str, Any]] = []
    answered = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        for each in data:
            yield each
        async with asyncio.timeout(20):
            await answered.wait()

    async def write(line: bytes) -> None:
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        said.append(json.loads(line))
        if said[-1].get("id") == last:
            answered.set()

    async with a_server(folder) as server:
        await serve_lines(server, pieces(), write)
    return said


@settings(max_examples=40, deadline=None)
@given(st.lists(lines, max_size=8), st.integers(1, 50))
def test_no_garbage_ends_the_connection(garbage: list[bytes], size: int) -> None:
    """A3: bytes, JSON that is no message, messages that make no sense, in any pieces; then one that does."""
    stream = encoded(HELLO) + b"\n".join([*garbage, b""])
    stream += encoded({"jsonrpc": "2.0", "id": "last", "method": "tools/list", "params": {}})
    cut = [stream[at : at + size] for at in range(0, len(stream), size)]
    said = asyncio.run(served(cut, Path("/tmp"), "last"))
    assert "hello" in [each.get("id") for each in said]
    (answer,) = [each for each in said if each.get("id") == "last"]
    assert len(answer["result"]["tools"]) == 11


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
DISCOVER = {"jsonrpc": "2.0", "id": "hello", "method": "server/discover", "params": {"_meta": META}}


@pytest.mark.parametrize("first", [HELLO, DISCOVER], ids=["legacy", "2026-07-28"])
async def test_nothing_is_promised_that_is_not_kept(tmp_path: Path, first: dict[str, Any]) -> None:
    """A3: lists that don't tell of changes say so; what is not offered is refused."""
    params = {"_meta": META} if first is DISCOVER else {}
    prompts = {"jsonrpc": "2.0", "id": "prompts", "method": "prompts/list", "params": params}
    said = await served([encoded(first), encoded(prompts)], tmp_path, "prompts")
    answers = {each["id"]: each for each in said}
    assert answers["hello"]["result"]["capabilities"] == {
        "resources": {"listChanged": False, "subscribe": True},
        "tools": {"listChanged": False},
    }
    assert answers["prompts"]["error"]["code"] == -32601


@pytest.mark.shell
@pytest.mark.parametrize("name", sorted(each.name for each in TRANSCRIPTS.glob("*.jsonl")))
async def test_a_recorded_session_goes_as_it_went(name: str, tmp_path: Path) -> None:
    """A3: what real clients said, replayed; the answers have the same shape, and the same output.

    The recordings are as they were recorded, but for the paths (`make peers RECORD=1` renews them). Our own words and
    the schemas of the tools may change without a new recording.
    """
    recorded = [json.loads(line) for line in (TRANSCRIPTS / name).read_text().splitlines()]
    (tmp_path / "notes.txt").write_text("b\na\n")
    asked = [each["client"] for each in recorded if "client" in each]
    answers = [each["server"] for each in recorded if "server" in each and "method" not in each["server"]]
    wanted = {str(each["id"]): each for each in answers}
    queue: asyncio.Queue[str] = asyncio.Queue()
    said: dict[str, dict[str, Any]] = {}

    async def pieces() -> AsyncIterator[bytes]:
        for message in asked:
            yield encoded(message)
            if "id" in message and "method" in message:  # a client waits for its answer before it goes on
                async with asyncio.timeout(20):
                    while await queue.get() != str(message["id"]):
                        pass

    async def write(line: bytes) -> None:
        message = json.loads(line)
        if "id" in message and "method" not in message:
            said[str(message["id"])] = message
            queue.put_nowait(str(message["id"]))

    async with a_server(tmp_path) as server:
        await serve_lines(server, pieces(), write)
    assert said.keys() == wanted.keys()
    for id, answer in said.items():
        assert shape(answer) == shape(wanted[id])
        names = [{tool["name"] for tool in each.get("result", {}).get("tools", [])} for each in (wanted[id], answer)]
        assert names[0] <= names[1]
        structured = answer.get("result", {}).get("structuredContent")
        if structured:
            assert structured["output"] == wanted[id]["result"]["structuredContent"]["output"]


def shape(value: Any) -> Any:
    """Keys and kinds, without what differs from version to version: words and numbers."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items() if key != "tools"}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__ if not isinstance(value, bool) else "bool"


def test_two_files_know_the_sdk_and_nothing_private_of_it() -> None:
    """A3: what its next version may change without a word is not ours to use."""
    found = {}
    for each in Path(tarmac.mcp.__file__).parent.glob("*.py"):
        if used := re.findall(
            r"^\s*(?:from|import) (mcp(?:_types)?\b[\w.]*)(?: import (.*))?", each.read_text(), re.MULTILINE
        ):
            found[each.name] = used
            assert not re.search(r"\b(session|server|ctx|request)\._", each.read_text()), each
    assert sorted(found) == ["adapter.py", "pipes.py"]
    assert [name for uses in found.values() for use in uses for name in use if re.search(r"\b_", name)] == []
