"""Bytes into lines, however the wire cuts them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.mcp.pipes import MessageFrames, TooLong, id_of

LONGEST = 20
texts = st.binary(max_size=40).map(lambda each: each.replace(b"\n", b" "))


def expected(line: bytes) -> list[bytes | TooLong]:
    if len(line) > LONGEST:
        return [TooLong(len(line))]
    return [line.removesuffix(b"\r")] if line.strip() else []


@given(st.lists(texts), st.lists(st.integers(1, 30)), st.booleans())
def test_lines_survive_any_chunking(lines: list[bytes], sizes: list[int], ended: bool) -> None:
    """A3: a line is whole however it was cut, and one that is too long costs nobody else's."""
    stream = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    cutter, found = MessageFrames(LONGEST), []
    sizes = sizes or [7]
    at = turn = 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += cutter.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    found += cutter.close()
    assert found == [each for line in lines for each in expected(line)]


def test_what_is_too_long_is_not_kept() -> None:
    cutter = MessageFrames(LONGEST)
    for _ in range(1000):
        assert cutter.feed(b"x" * 1000) == []
    assert len(cutter._held) == 0
    assert cutter.feed(b"\n{}\n") == [TooLong(1_000_000), b"{}"]


NESTED = {"name": "run_command", "arguments": {"id": 9, "command": "x" * 30, "then": [{"id": 8}]}}


@pytest.mark.parametrize("id", [7, "seven", 'a "quoted" \\ one', -1])
def test_what_is_too_long_has_its_id_where_that_can_be_read(id: Any) -> None:
    """A3: clients put it first, or last; one that is nested, or inside of a text, is none."""
    for message in (
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": NESTED},
        {"method": "tools/call", "params": NESTED, "jsonrpc": "2.0", "id": id},
    ):
        for line in (json.dumps(message).encode(), json.dumps(message, separators=(",", ":")).encode()):
            cutter = MessageFrames(LONGEST)
            found = [each for at in range(0, len(line), 7) for each in cutter.feed(line[at : at + 7])]
            assert [*found, *cutter.close()] == [TooLong(len(line), id)]
    middle = {"method": "x", "params": NESTED, "id": id, "jsonrpc": "2.0"}
    text = {"method": "x", "params": {"x": 'y, "id": 5}'}}
    for other in (middle, text, {"params": {"id": 3}}, {"id": None, "x": [1]}, {"id": True, "x": [1]}):
        line = json.dumps(other).encode()
        assert id_of(line, line) is None


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_whatever_its_ends_are_they_are_borne(first: bytes, last: bytes) -> None:
    """A3."""
    assert isinstance(id_of(b'{"a": ' + first, last + b'"id": 1}'), str | int | None)
