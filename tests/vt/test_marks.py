"""Marks and questions are found whatever the chunks; all else is output, byte for byte."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tarmac.terminals.process.pty import answer
from tarmac.vt.marks import LONGEST, SHORT, Hints, Mark, MarkParser, Piece, Query, add_hint, unescape

NONCE = b"@0123456789abcdef01234567"
ORDINARY = st.binary(max_size=40).filter(lambda data: b"\x1b" not in data and b"@" not in data)
FIELDS = st.lists(st.binary(max_size=8).filter(lambda f: not set(f) & set(b"\x07\x1b;\\")), max_size=4)
QUERIES = st.sampled_from([b"\x1b[6n", b"\x1b[c", b"\x1b[>c", b"\x1b]11;?\x07", b"\x1b]10;?\x1b\\", b"\x1bP$qm\x1b\\"])
OTHERS = st.sampled_from(
    [b"\x1b[31m", b"\x1b[2K", b"\x1b]0;title\x07", b"\x1b]8;;http://x\x1b\\", b"\x1b(B", b"\x1b\x1b"]
)


def mark(kind: bytes, fields: list[bytes], *, nonce: bytes = NONCE) -> bytes:
    return b"\x1b]633;" + b";".join([kind, nonce, *fields]) + b"\x07"


def joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring output as one."""
    result: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, bytes) and result and isinstance(result[-1], bytes):
            result[-1] += piece
        else:
            result.append(piece)
    return result


def parse(stream: bytes, size: int) -> list[Piece]:
    parser = MarkParser(NONCE)
    found: list[Piece] = []
    for start in range(0, len(stream), size):
        found += parser.feed(stream[start : start + size])
    return joined(found + parser.flush())


@given(
    st.lists(
        st.one_of(
            ORDINARY,
            st.tuples(st.sampled_from([b"A", b"C", b"D"]), FIELDS).map(lambda m: mark(*m)),
            st.tuples(st.sampled_from([b"A", b"D"]), FIELDS).map(lambda m: mark(*m, nonce=b"guess")),
            QUERIES,
            OTHERS,
            st.just(NONCE),
            st.binary(max_size=6),
        ),
        max_size=12,
    ),
    st.integers(1, 9),
)
def test_marks_survive_any_chunking(parts: list[bytes], size: int) -> None:
    """T20: a mark cut anywhere by a read is the same mark."""
    stream = b"".join(parts)
    assert parse(stream, size) == parse(stream, max(1, len(stream)))


@given(
    st.lists(
        st.one_of(
            ORDINARY,
            st.tuples(st.sampled_from([b"A", b"S", b"AB", b"", b"a"]), FIELDS).map(lambda m: mark(*m)),
            st.sampled_from([b"A", b"D"]).map(lambda kind: mark(kind, [b"\\x3b"], nonce=NONCE)),
            st.tuples(st.just(b"A"), FIELDS).map(lambda m: mark(*m, nonce=NONCE + b"0")),
            st.sampled_from([b"\x07", b"\x1b", NONCE, NONCE[:5], b"\x1b]633;A;" + NONCE]),
        ),
        max_size=8,
    ),
)
def test_a_short_read_is_understood_as_a_long_one(parts: list[bytes]) -> None:
    """T20: the quick way for short reads gives what the thorough way gives."""
    stream = b"".join(parts)
    padding = b"." * (SHORT + 1)
    assert parse(padding + stream, len(padding + stream)) == joined([padding, *parse(stream, max(1, len(stream)))])


@given(st.binary(max_size=300), st.integers(1, 7))
@example(b"\x1b]633;D;", 1)
@example(b"\x1b]633;D;0\x07\x1b]133;D;0\x07", 3)
def test_what_is_no_mark_of_ours_and_no_question_is_output_byte_for_byte(data: bytes, size: int) -> None:
    """T20: nothing is lost, nothing is invented."""
    pieces = parse(data, size)
    raw = b"".join(piece if isinstance(piece, bytes) else piece.raw for piece in pieces)
    assert raw == data
    assert not any(isinstance(piece, Mark) and piece.trusted for piece in pieces)


@given(ORDINARY, ORDINARY, st.integers(1, 50))
def test_the_nonce_shows_up_nowhere(before: bytes, after: bytes, size: int) -> None:
    """T20: `set` would print it."""
    pieces = parse(before + NONCE + after, size)
    assert pieces == [before + b"*" * len(NONCE) + after]


def test_a_mark_with_the_nonce_is_trusted_and_one_without_is_not() -> None:
    """T20, D1: the nonce makes the difference."""
    ours, theirs = mark(b"D", [b"3", b"0"]), b"\x1b]633;D;0\x07"
    pieces = parse(b"a" + ours + b"b" + theirs, 1000)
    assert pieces == [b"a", Mark("D", (b"3", b"0"), True, ours), b"b", Mark("D", (b"0",), False, theirs)]


def test_half_a_mark_cannot_silence_the_terminal() -> None:
    """T20: after 4 KiB it is output."""
    parser = MarkParser(NONCE)
    assert parser.feed(b"\x1b]633;" + b"x" * (LONGEST - 10)) == []
    assert b"".join(piece for piece in parser.feed(b"y" * 20) if isinstance(piece, bytes)).endswith(b"y" * 20)


def test_other_shells_marks_are_hints_without_proof() -> None:
    """T20: OSC 133, 7, 9;9 and 1337 are read where a shell sends them."""
    stream = b"\x1b]133;D;0\x07\x1b]7;file://h/tmp\x07\x1b]9;9;/tmp\x07\x1b]1337;CurrentDir=/tmp\x07"
    assert [(m.kind, m.trusted) for m in parse(stream, 5) if isinstance(m, Mark)] == [
        ("133;D", False),
        ("7", False),
        ("9;9", False),
        ("1337", False),
    ]


def hinted(stream: bytes) -> Hints:
    hints = Hints()
    for piece in parse(stream, 7):
        if isinstance(piece, Mark):
            hints = add_hint(hints, piece)
    return hints


@pytest.mark.parametrize(
    ("stream", "hints"),
    [
        (b"\x1b]7;file://host/srv/a%20b\x1b\\", Hints(cwd="/srv/a b")),
        (b'\x1b]9;9;"C:\\src"\x07', Hints(cwd="C:\\src")),
        (b"\x1b]1337;CurrentDir=/srv\x07", Hints(cwd="/srv")),
        (b"\x1b]633;P;Cwd=/srv\x07", Hints(cwd="/srv")),
        (b"\x1b]133;D;3\x07\x1b]133;A\x07$ \x1b]133;B\x07", Hints(at_prompt=True, exit_code=3)),
        (b"\x1b]133;A\x07$ \x1b]133;C\x07", Hints(at_prompt=False)),
        (b"\x1b]133;D;x\x07\x1b]7;http://h/x\x07\x1b]1337;File=inline=1:AA\x07", Hints()),
    ],
)
def test_what_another_shell_says_of_itself(stream: bytes, hints: Hints) -> None:
    """T20: directory, prompt and exit code, as hints."""
    assert hinted(stream) == hints


@given(st.binary(max_size=50))
def test_escaping_of_a_field_is_undone(data: bytes) -> None:
    """T20: a directory may have any name."""
    special = b"\\\x07\x1b\n\r;"
    escaped = b"".join(b"\\x%02x" % byte if byte in special else bytes([byte]) for byte in data)
    assert unescape(escaped) == data


def test_questions_get_fixed_answers_and_dangerous_ones_none() -> None:
    """Exactly one place answers, and never with text that a program chose."""
    asked = [
        b"\x1b[6n",
        b"\x1b[c",
        b"\x1b[5n",
        b"\x1b[18t",
        b"\x1b]11;?\x07",
        b"\x1b[21t",
        b"\x1bP$qm\x1b\\",
        b"\x1b[?2026$p",
    ]
    assert [answer(Query(each), rows=40, columns=120) for each in asked] == [
        b"\x1b[40;1R",
        b"\x1b[?62;22c",
        b"\x1b[0n",
        b"\x1b[8;40;120t",
        b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
        b"",
        b"",
        b"\x1b[?2026;0$y",
    ]
