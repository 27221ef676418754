"""Renderer and clean(): raw terminal bytes as a reader saw them (T25)."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarmac.vt.text import Renderer, _longest_state, clean

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

# What terminals are made of: enough of each for hypothesis to put together something nasty.
PIECES = [
    b"abc", b"x", b"longer text ", b"\r", b"\n", b"\r\n", b"\b", b"\b\b\b", b"\t", b"\a", b"\0", b"\x7f", b"\v",
    b"\x18", b"\x1b", b"\x1b[", b"\x1b[K", b"\x1b[1K", b"\x1b[2K", b"\x1b[A", b"\x1b[2A", b"\x1b[B", b"\x1b[C",
    b"\x1b[3C", b"\x1b[D", b"\x1b[2E", b"\x1b[F", b"\x1b[4G", b"\x1b[H", b"\x1b[2;3H", b"\x1b[J", b"\x1b[1J",
    b"\x1b[2J", b"\x1b[3J", b"\x1b[2P", b"\x1b[@", b"\x1b[2X", b"\x1b[2d", b"\x1b[s", b"\x1b[u", b"\x1b7", b"\x1b8",
    b"\x1bc", b"\x1bM", b"\x1bE", b"\x1b[31m", b"\x1b[0m", b"\x1b[?25l", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b(0",
    b"\x1b]0;title\a", b"\x1b]0;open", b"\x1b\\", b"\x1bPq#0~~\n-", b"\x1bP1$r0m", b"\x1b[99999C",
    b"\x1b[38:2:1:2:3m", b"\x1b[1;", b";5", "ü".encode(), "日本".encode(), "e\u0301".encode(), "\u0301".encode(),
    "👩\u200d💻".encode(), "█▏".encode(), "\x85".encode(), "\x9d".encode(), b"\xff", b"\xc3", b"\xe2\x82",
    b"\xed\xa0\x80", b"\xf0\x9f",
]  # fmt: skip
streams = st.one_of(st.binary(max_size=60), st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))


def rendered(data: bytes, *cuts: int, rows: int = 40) -> Renderer:
    renderer = Renderer(rows=rows)
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        renderer.feed(data[start:end])
    renderer.finish()
    return renderer


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"abc", "abc"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\nb\n", "a\nb\n"),
        (b"a\r\r\nb", "a\nb"),
        (b"  two  \r\n\r\n x", "  two  \n\n x"),
        (b"a\tb\t\r\n\tc", "a\tb\t\n\tc"),
        (b"a\vb\fc", "a\nb\nc"),
        (b"a\0b\ac\x7fd\x0ee\x0ff", "abcdef"),
    ],
)
def test_plain_output_stays_exactly_as_it_was_printed(data: bytes, text: str) -> None:
    assert clean(data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"abc\rX", "Xbc"),
        (b"abc\r", "abc"),
        (b"10%\r50%\r100%\r\ndone", "100%\ndone"),
        (b"long state\rshort", "shortstate"),
        (b"long state\rshort\x1b[K", "short"),
        (b"a\r\x1b[Kbc\r\x1b[Kd", "d"),
        (b"a\r\x1b[2Kbc\rd\x1b[K\re", "e"),
        (b"a\rbcd\r\x1b[Ke\rfg\rh\n", "hg\n"),
        (b"abc\b\bX", "aXc"),
        (b"|\b/\b-\b\\\b done", " done"),
        (b"abc\b \b\b \b", "a  "),
        (b"\b\bx", "x"),
        (b"N\bNA\bAM\bME\bE", "NAME"),
        (b"ab\x1b[1A\bX", "aX"),
    ],
)
def test_carriage_returns_and_backspaces_write_over(data: bytes, text: str) -> None:
    """T25: progress bars are folded to their last state, backspaces are applied."""
    assert clean(data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\r\ntwo\r\n\x1b[1A\x1b[2Kthree\r\n", "one\nthree\n"),
        (b"a\nb\n\x1b[2A\x1b[Jdone\n", "done\n"),
        (b"a\nb\n\x1b[2FX\x1b[EY", "X\nY\n"),
        (b"abc\x1b[2DX", "aXc"),
        (b"abc\x1b[3CX", "abc   X"),
        (b"abc\x1b[1GX\x1b[5GY", "Xbc Y"),
        (b"abc\ndef\x1b[1;2HX", "aXc\ndef"),
        (b"a\nb\nc\x1b[2dX", "a\nbX\nc"),
        (b"a\x1b[3BX", "a\n\n\n X"),
        (b"a\x1b[9B", "a"),
        (b"abcdef\x1b[3D\x1b[1K", "    ef"),
        (b"abcdef\x1b[1K", ""),
        (b"abcdef\r\x1b[2P", "cdef"),
        (b"abcdef\r\x1b[2@", "  abcdef"),
        (b"abcdef\r\x1b[2X", "  cdef"),
        (b"abcdef\r\x1b[9X", ""),
        (b"ab\x1b7cd\x1b8X", "abXd"),
        (b"ab\x1b[scd\x1b[uX", "abXd"),
        (b"a\nb\x1bMX", "aX\nb"),
        (b"a\x1b[5AX", "aX"),
        (b"x\ny\x1b[1JZ", "\n Z"),
        (b"a\x1b[99999999CX", "a" + " " * 198 + "X"),
    ],
)
def test_cursor_movement_and_erasing_are_applied(data: bytes, text: str) -> None:
    """T25: line redraws are applied."""
    assert clean(data) == text


def test_the_cursor_never_goes_above_the_screen() -> None:
    lines = b"".join(b"%d\n" % n for n in range(10))
    assert clean(lines + b"\x1b[99AX", rows=4) == "0\n1\n2\n3\n4\n5\n6\nX\n8\n9\n"
    assert clean(lines + b"\x1b[HX", rows=4) == "0\n1\n2\n3\n4\n5\n6\nX\n8\n9\n"


@pytest.mark.parametrize(
    "sequence",
    [
        b"\x1b[31m", b"\x1b[38;2;1;2;3m", b"\x1b[4:3m", b"\x1b[?25l", b"\x1b[>4;1m", b"\x1b[6n", b"\x1b[c",
        b"\x1b[!p", b"\x1b[ q", b"\x1b=", b"\x1b(B", b"\x1b(0", b"\x1b#8", b"\x1b]0;title\a", b"\x1b]0;title\x1b\\",
        b"\x1b]11;?\a", b"\x1b]52;c;c2VjcmV0\a", b"\x1b]8;;http://x/\x1b\\", b"\x1b]133;D;0\a",
        b"\x1b_Gi=1;AAAA\x1b\\", b"\x1b^private\x1b\\", b"\x1bXsos\x1b\\", b"\x1bktitle\x1b\\", b"\x1bP+q544e\x1b\\",
        b"\x1b[12\x18", b"\x1b]0;t\x1a", b"\x1b\x1b[1m", b"\x1b[1\x1b[1m",
        b"\x1bP0;1q\"1;1;9;9#0;2;0;0;0#0~~@@\r\n$-!9~\x1b\\", b"\xc2\x9b", b"\xc2\x85",
        b"\x1bPtmux;\x1b\x1b]52;c;AAAA\a\x1b\\", b"\x1b]1337;File=inline=1:" + b"QUJD" * 300_000 + b"\a",
    ],
)  # fmt: skip
def test_all_other_sequences_vanish_and_nothing_else_does(sequence: bytes) -> None:
    """T25: escape sequences gone."""
    assert clean(b"before" + sequence + b"after\n") == "beforeafter\n"


def test_a_link_goes_and_its_text_stays() -> None:
    assert clean(b"see \x1b]8;id=1;https://x/\x1b\\here\x1b]8;;\x1b\\.") == "see here."


def test_a_forgotten_terminator_costs_the_rest_of_its_line_and_no_more() -> None:
    assert clean(b"a\x1b]0;title and output\r\nnext\r\n") == "a\nnext\n"
    assert clean(b"a\x1bPq hello\nnext") == "a hello\nnext"
    assert clean(b"\x1bP1$" + b"x" * (5 << 20))[:9] == "xxxxxxxxx"


def test_an_endless_sequence_is_given_up() -> None:
    assert clean(b"\x1b[" + b"1" * 1000 + b"mx").endswith("111mx")


@pytest.mark.parametrize(
    "clear", [b"\x1b[2J", b"\x1b[3J", b"\x1bc", b"\x1b[H\x1b[2J\x1b[3J", b"\x1b[H\x1b[J", b"\x1b[2J\x1b[H"]
)
def test_clearing_the_screen_keeps_what_was_printed(clear: bytes) -> None:
    """Earlier output stays in the log; what follows begins on a new line, and that line is the screen's top."""
    assert clean(b"one\r\ntwo" + clear + b"three\x1b[9AX\x1b[HY") == "one\ntwo\nYhreeX"
    assert clean(b"one\r\n" + clear + clear + b"two\r\n") == "one\ntwo\n"
    assert clean(clear + b"one") == "one"


@pytest.mark.parametrize("mode", [b"47", b"1047", b"1049", b"1049;25"])
def test_the_alternate_screen_is_not_output(mode: bytes) -> None:
    data = b"before\x1b[?%bh\x1b[H~ vim ~\r\n\x1b[2J\x1b[?%bl after" % (mode, mode)
    assert clean(data) == "before after"
    assert clean(b"before\x1b[?1049hlost\x1bcafter") == "before\nafter"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("日本語\rab", "ab本語"),
        ("日本語\ra", "a 本語"),
        ("abcd\r日", "日cd"),
        ("日本\b\bx", "日x "),
        ("日本\bx", "日 x"),
        ("e\u0301a\rx", "xa"),
        ("ae\u0301\rx", "xe\u0301"),
        ("ab\re\u0301", "e\u0301b"),
        ("👩\u200d💻 ok\r\n", "👩\u200d💻 ok\n"),
        ("a\tb\rXY", "XY      b"),
        ("a\tb\rX", "X\tb"),
        ("a\tb\rX\tY", "X\tY"),
    ],
)
def test_wide_and_combining_characters_are_overwritten_whole(data: str, text: str) -> None:
    assert clean(data.encode()) == text


def test_bad_utf_8_is_replaced_and_good_is_never_cut() -> None:
    """T25: invalid UTF-8 replaced, never split inside a character."""
    assert clean("a€\n".encode("latin-1", "replace") + b"\xff\xe2\x82") == "a?\n\ufffd\ufffd"
    renderer = Renderer()
    seen = []
    for byte in "ü€😀".encode():
        renderer.feed(bytes([byte]))
        seen.append(renderer.text())
    assert seen == ["", "ü", "ü", "ü", "ü€", "ü€", "ü€", "ü€", "ü€😀"]


def test_half_a_character_shows_only_at_the_end() -> None:
    renderer = Renderer()
    renderer.feed(b"a\xe2\x82")
    assert (renderer.text(), renderer.finish()) == ("a", "a\ufffd")


def test_lines_above_the_screen_are_settled() -> None:
    renderer = rendered(b"x\n" * 100 + b"y", rows=10)
    assert renderer.settled == 91
    assert rendered(b"x\n\x1b[2J").settled == 1


def test_released_lines_are_forgotten() -> None:
    renderer = rendered(b"1\n2\n3\n4", rows=2)
    assert (renderer.release(), renderer.release(), renderer.text()) == ("1\n2\n", "", "3\n4")


@given(streams, st.lists(st.integers(0, 120), max_size=6), st.integers(1, 5))
@example(b"\x1b[H\x1b[J", [3], 2)
def test_any_split_of_the_bytes_gives_the_same(data: bytes, cuts: list[int], rows: int) -> None:
    whole = rendered(data, rows=rows)
    parts = rendered(data, *(cut for cut in cuts if cut <= len(data)), rows=rows)
    single = rendered(data, *range(len(data)), rows=rows)
    states = {(r.text(), r.settled) for r in (whole, parts, single)}
    assert len(states) == 1


@given(streams)
def test_no_control_character_ever_comes_out(data: bytes) -> None:
    """T25: escape sequences gone, whatever the bytes."""
    assert not CONTROL.search(clean(data))


@given(streams, streams)
def test_settled_lines_never_change(before: bytes, after: bytes) -> None:
    renderer = Renderer(rows=3)
    renderer.feed(before)
    settled = renderer.text().split("\n")[: renderer.settled]
    renderer.feed(after)
    assert renderer.finish().split("\n")[: len(settled)] == settled


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\n\t"), max_size=200))
def test_text_without_controls_is_left_alone(text: str) -> None:
    assert clean(text.encode()) == text
    assert clean(text.replace("\n", "\r\n").encode()) == text


class Screen:
    """The slow and obvious way: one character after another on a grid, for a screen that does not scroll."""

    def __init__(self) -> None:
        self.grid: list[list[str]] = [[]]
        self.row = self.column = 0

    def feed(self, text: str) -> str:
        for token in re.findall(r"\x1b\[\d*[A-Z]|.", text, re.DOTALL):
            count = int(token[2:-1] or 0) if len(token) > 2 else 0
            line = self.grid[self.row] if self.row < len(self.grid) else []
            match token[-1] if token[0] == "\x1b" else token:
                case "\r":
                    self.column = 0
                case "\n":
                    self.row, self.column = self.row + 1, 0
                    self.reach()
                case "\b":
                    self.column = max(0, self.column - 1)
                case "A" if count:
                    self.row = max(0, self.row - count)
                case "B" if count:
                    self.row += count
                case "C" if count:
                    self.column += count
                case "K":
                    if count == 2:
                        line.clear()
                    del line[self.column :]
                case character:
                    self.reach()
                    line = self.grid[self.row]
                    line.extend(" " * (self.column - len(line)))
                    line[self.column : self.column + 1] = [character]
                    self.column += 1
        return "\n".join("".join(line) for line in self.grid)

    def reach(self) -> None:
        while len(self.grid) <= self.row:
            self.grid.append([])


@settings(max_examples=400)
@given(
    st.lists(
        st.sampled_from(["a", "bc", "def ", "üö", "\r", "\r", "\n", "\r\n", "\b", "\x1b[K", "\x1b[2K"])
        | st.sampled_from(["\x1b[1A", "\x1b[2A", "\x1b[1B", "\x1b[3C"]),
        max_size=40,
    )
)
def test_every_quick_way_gives_what_the_slow_one_gives(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert clean(text.encode(), rows=1000) == Screen().feed(text)


@given(st.lists(st.sampled_from(["a", "ü", "e\u0301", "o\u0308\u0323", "x\ufe0f"]), max_size=9), st.integers(0, 9))
def test_overwriting_never_puts_a_mark_on_another_letter(letters: list[str], count: int) -> None:
    after = clean("".join(letters).encode() + b"\r" + b"X" * count)
    assert after == "X" * count + "".join(letters[count:])


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        (b"the quick brown fox jumps over the lazy dog\r\n" * 200_000, 0.11),
        (b"\x1b[32mINFO\x1b[0m the quick brown fox \x1b[1mjumps\x1b[0m\r\n" * 100_000, 0.12),
        (b"".join(b"\r %3d%% |####      |" % (n % 100) for n in range(100_000)), 0.15),
        (b"".join(b"\r %3d%% |####      |\x1b[K" % (n % 100) for n in range(100_000)), 0.3),
        (b"x" * 3_000_000, 0.1),
        (b"y\n" * 200_000, 0.1),
        (b"\x1b[1A\x1b[2Kline of text\r\n" * 10_000, 0.1),
        (b"e" + "\u0301".encode() * 500_000 + b"\rx", 0.5),
        (b"x" * 500_000 + b"\rX\x1b[5C\x1b[1P\x1b[2@\x1b[1K" * 5_000, 0.3),
    ],
    ids=["plain", "coloured", "progress", "progress-erased", "one-line", "short-lines", "redraws", "accents", "edits"],
)
@pytest.mark.parametrize("size", [4096, 1 << 30])
def test_time_grows_with_the_bytes_and_not_faster(data: bytes, seconds: float, size: int) -> None:
    """Ten times what was measured would still pass: this is here to catch the quadratic, not the noise."""
    started = time.process_time()
    renderer = Renderer()
    for start in range(0, len(data), size):
        renderer.feed(data[start : start + size])
    renderer.finish()
    assert time.process_time() - started < seconds * 5


def test_a_long_progress_bar_reads_the_same_in_one_piece_and_in_many() -> None:
    """T25: a hundred thousand states, some empty, some longer than those after them, some that erase."""
    for erase in ("", "\x1b[K"):
        states = [f"{'#' * (n % 7)}{n}" if n % 5 else erase for n in range(40_000)]
        data = ("start\r" + "\r".join(states)).encode()
        whole, pieces = Renderer(), Renderer()
        whole.feed(data)
        for at in range(0, len(data), 999):
            pieces.feed(data[at : at + 999])
        assert whole.finish() == pieces.finish()


@given(st.lists(st.text("ab", max_size=4), min_size=1, max_size=12), st.booleans())
def test_the_longest_state_of_a_bar_is_found_however_they_are_mixed(states: list[str], even: bool) -> None:
    """T25: of one length, as bars are, or of any."""
    text = "\r".join(each.ljust(4) for each in states) if even else "\r".join(states)
    assert _longest_state(text) == max(map(len, text.split("\r")))
