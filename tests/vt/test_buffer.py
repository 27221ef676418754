"""HeadTail: both ends of a stream in a fixed amount of memory (T27)."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from tarmac.vt.buffer import HeadTail


def fed(chunks: list[bytes], limit: int, share: float = 0.7) -> HeadTail:
    buffer = HeadTail(limit, head_share=share)
    for chunk in chunks:
        buffer.feed(chunk)
    return buffer


def test_what_fits_is_kept_whole() -> None:
    buffer = fed([b"0123", b"456789"], limit=10)
    assert (buffer.head, buffer.tail, buffer.dropped, buffer.dropped_lines) == (b"0123456", b"789", 0, 0)


def test_the_middle_is_dropped_and_its_lines_are_counted() -> None:
    """T27: memory for output is bounded; what is missing is known."""
    buffer = fed([b"a\nb\nc\n", b"d\ne\nf\n", b"g\n"], limit=6, share=0.5)
    assert (buffer.head, buffer.tail) == (b"a\nb", b"\ng\n")
    assert (buffer.total, buffer.dropped, buffer.dropped_lines) == (14, 8, 4)


def test_a_buffer_without_room_still_counts() -> None:
    buffer = fed([b"a\nb", b"\n"], limit=0)
    assert (buffer.head, buffer.tail, buffer.total, buffer.dropped, buffer.dropped_lines) == (b"", b"", 4, 4, 2)


def test_a_giant_chunk_is_not_kept_alive() -> None:
    """T27: only the bytes we keep are ours, not the 8 MiB they were cut from."""
    data = b"x" * (8 << 20)
    before = sys.getrefcount(data)
    buffer = fed([data], limit=1000)
    assert sys.getrefcount(data) == before
    assert len(buffer.head) + len(buffer.tail) == 1000


@given(st.lists(st.binary(max_size=30)), st.integers(0, 60), st.floats(0, 1))
def test_head_and_tail_are_the_ends_of_the_stream(chunks: list[bytes], limit: int, share: float) -> None:
    buffer = fed(chunks, limit, share)
    stream = b"".join(chunks)
    kept = len(buffer.head) + len(buffer.tail)
    missing = stream[len(buffer.head) : len(stream) - len(buffer.tail)]
    assert stream.startswith(buffer.head) and stream.endswith(buffer.tail)
    assert kept == min(limit, len(stream))
    assert (buffer.total, buffer.dropped) == (len(stream), len(missing))
    assert buffer.dropped_lines == missing.count(b"\n")
