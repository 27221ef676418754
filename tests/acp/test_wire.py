"""Lines of JSON-RPC: whatever comes, messages come out in order and the next line is read."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tarmac.acp.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Bad,
    Error,
    LineFrames,
    Message,
    Notification,
    Response,
    RpcRequest,
    encode,
    parse,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
PARAMS = st.none() | st.lists(JSON, max_size=3) | st.dictionaries(st.text(), JSON, max_size=3)
IDS = st.text(max_size=8) | st.integers(-(2**53), 2**53)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(RpcRequest, id=IDS, method=st.text(max_size=20), params=PARAMS),
    st.builds(Notification, method=st.text(max_size=20), params=PARAMS),
    st.builds(Response, id=IDS, result=JSON),
    st.builds(Response, id=IDS, error=st.builds(Error, code=st.integers(-40000, 40000), message=st.text(max_size=20))),
)


def fed(data: bytes, cuts: list[int], *, longest: int = 1 << 20) -> list[Message]:
    lines = LineFrames(longest=longest)
    found: list[Message] = []
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, stop in pairwise(places):
        found += lines.feed(data[start:stop])
    return found


@given(st.lists(MESSAGES, max_size=5), st.lists(st.integers(0, 800), max_size=6))
def test_what_is_written_is_read_again_whatever_the_reads(messages: list[Message], cuts: list[int]) -> None:
    """A2: one message a line, no newline inside, cut anywhere."""
    data = b"".join(map(encode, messages))
    assert data.count(b"\n") == len(messages)
    assert fed(data, cuts) == messages


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_garbage_never_raises_and_never_depends_on_the_reads(data: bytes, cuts: list[int]) -> None:
    """A2: wrong input does not end the connection."""
    found = fed(data + b"\n", cuts)
    assert found == fed(data + b"\n", [])
    good = Notification("after", None)
    assert fed(data + b"\n" + encode(good), cuts)[-1] == good


@given(JSON)
def test_any_json_is_a_message_or_bad(value: Any) -> None:
    """A2: bad ones say why, and can be answered."""
    for message in parse(json.dumps(value).encode()):
        assert isinstance(message, RpcRequest | Notification | Response) or message.error.message
        assert encode(message).endswith(b"\n")


@given(
    st.binary(min_size=30, max_size=200).filter(lambda data: b"\n" not in data),
    st.lists(st.integers(0, 250), max_size=4),
)
def test_a_line_that_is_too_long_is_told_once_and_skipped(data: bytes, cuts: list[int]) -> None:
    """A2: megabytes without a newline are not kept."""
    after = Notification("x", None)
    first, *rest = fed(data + b"\n" + encode(after), cuts, longest=29)
    assert isinstance(first, Bad) and "29 bytes" in first.error.message
    assert rest in ([], [after]) or len(encode(after)) > 29
    assert fed(data + b"\n" + b'{"method":"x"}\n', cuts, longest=29)[1:] == [after]


def test_what_is_wrong_is_said() -> None:
    """A2: with JSON-RPC's codes."""
    cases = {
        b"{": PARSE_ERROR,
        b"\xff": PARSE_ERROR,
        b"5": INVALID_REQUEST,
        b"[]": INVALID_REQUEST,
        b"{}": INVALID_REQUEST,
        b'{"id": true, "method": "x"}': INVALID_REQUEST,
        b'{"id": 1, "method": 7}': INVALID_REQUEST,
        b'{"id": 1, "method": "x", "params": 5}': INVALID_PARAMS,
    }
    for line, code in cases.items():
        (found,) = parse(line)
        assert isinstance(found, Bad) and found.error.code == code, line
    assert parse(b"  ") == []


def test_a_batch_is_its_messages() -> None:
    """A2: a draft of the protocol has them, and agents send them."""
    batch = b'[{"method":"a"},{"id":1,"method":"b","params":{}},3,{"id":"x","result":null}]'
    one, two, three, four = parse(batch)
    assert (one, two, four) == (Notification("a", None), RpcRequest(1, "b", {}), Response("x", None))
    assert isinstance(three, Bad)


def test_a_name_that_is_no_text_can_be_sent() -> None:
    """A2: bytes of a file name that are no UTF-8."""
    line = encode(Notification("x", {"path": "/tmp/\udcff", "list": ["\udcff"]}))
    assert json.loads(line)["params"] == {"path": "/tmp/?", "list": ["?"]}
