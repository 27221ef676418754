"""Frames: any value comes back, however the stream is cut; garbage is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import BadFrame
from tarmac.terminals.frames import MOST_BODY, Frame, FrameParser, encode

_values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()
_headers = st.dictionaries(st.text(), _values | st.lists(_values, max_size=3), max_size=4)
_frames = st.builds(Frame, st.integers(0, 255), st.integers(0, 2**32 - 1), _headers, st.binary(max_size=64))


@given(st.lists(_frames, max_size=5), st.integers(1, 40))
def test_frames_survive_any_cut(frames: list[Frame], size: int) -> None:
    """F2."""
    stream = b"".join(map(encode, frames))
    parser = FrameParser()
    found = [each for at in range(0, len(stream), size) for each in parser.feed(stream[at : at + size])]
    assert (found, parser.half) == (frames, False)


@given(st.binary(max_size=200))
def test_garbage_is_an_error_or_an_unfinished_frame(garbage: bytes) -> None:
    """F2."""
    try:
        FrameParser().feed(garbage)
    except BadFrame:
        pass


@pytest.mark.parametrize(
    "stream",
    [
        b"Last login: Tue Nov 17\r\n",
        encode(Frame(1, 1, {"a": 1})).replace(b'{"a":1}', b'["a",1]'),
        b"\x01" + b"\xff" * 12,
    ],
)
def test_a_stream_of_something_else_is_refused(stream: bytes) -> None:
    """F2."""
    with pytest.raises(BadFrame):
        FrameParser().feed(stream + b"x" * 300)


def test_a_frame_that_is_too_long_is_not_sent() -> None:
    """F2."""
    with pytest.raises(BadFrame):
        encode(Frame(1, body=b"x" * (MOST_BODY + 1)))
