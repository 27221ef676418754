"""Bytes into lines, however the wire cuts them."""

from hypothesis import given
from hypothesis import strategies as st

from tarmac.mcp.frames import MessageFrames, TooLong

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
