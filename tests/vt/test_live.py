"""LiveText: clean text that only grows, for someone who watches (T25)."""

import re
import sys

from hypothesis import given
from hypothesis import strategies as st

from tarmac.vt.text import LiveText, clean

PLAIN = [
    b"abc",
    b"some text ",
    b"\r\n",
    b"\n",
    b"\t",
    b"\x1b[31m",
    b"\x1b[0m",
    b"\x1b[K",
    b"\x1b]0;t\a",
    "日本ü".encode(),
]
NASTY = [
    *PLAIN,
    b"\r",
    b"\b",
    b"\x1b[A",
    b"\x1b[2K",
    b"\x1b[J",
    b"\x1b[2J",
    b"\x1b[H",
    b"\x1b[?1049h",
    b"\x1b[3B",
    b"\xff",
]


def watched(*chunks: bytes, rows: int = 40) -> list[str]:
    live = LiveText(rows=rows)
    return [*(live.feed(chunk) for chunk in chunks), live.finish()]


def test_a_prompt_is_visible_at_once() -> None:
    assert watched(b"Name: ", b"Bo", b"b\r\nhello ", b"Bob\r\n") == ["Name: ", "Bo", "b\nhello ", "Bob\n", ""]


def test_a_progress_bar_gives_one_line_for_each_look() -> None:
    assert watched(b"10%\r20%", b"\r30%\r40%", b"\r50%", b"\r\ndone\r\n") == ["20%", "\n40%", "\n50%", "\ndone\n", ""]


def test_a_bar_that_is_wiped_before_it_is_drawn_gives_no_empty_lines() -> None:
    assert watched(b"10%\r\x1b[K", b"20%\r\x1b[K", b"30%", b"\r\x1b[K", b"40%\r\n") == [
        "",
        "",
        "30%",
        "",
        "\n40%\n",
        "",
    ]


def test_a_wiped_bar_is_followed_by_a_new_line() -> None:
    assert watched(b"10%", b"\r\x1b[K", b"done\r\n") == ["10%", "", "\ndone\n", ""]


def test_redrawn_lines_come_again_below() -> None:
    layers = b"a: 1\r\nb: 1\r\n", b"\x1b[2A\x1b[2Ka: 2\r\n\x1b[2Kb: 1\r\n", b"\x1b[1A\x1b[2Kb: 2\r\n", b"end\r\n"
    assert watched(*layers) == ["a: 1\nb: 1\n", "a: 2", "\nb: 2", "\nend\n", ""]


def test_the_last_line_is_ended_if_the_program_ended_it() -> None:
    assert "".join(watched(b"a: 1\r\n", b"\x1b[1A\x1b[2Ka: 2\r\n")) == "a: 1\na: 2\n"


def test_half_a_character_waits_for_the_other_half() -> None:
    assert watched(b"\xe2\x82", b"\xac\xe2") == ["", "€", "\ufffd"]


def test_a_line_without_end_is_passed_on_and_not_kept() -> None:
    live = LiveText()
    pieces = [live.feed(b"x" * 10_000) for _ in range(300)]
    assert "".join(pieces) == "x" * 3_000_000
    assert sum(sys.getsizeof(line) for line in live._shown) < 40_000


def test_lines_that_left_the_screen_are_not_kept() -> None:
    live = LiveText(rows=5)
    for _ in range(100):
        live.feed(b"line\r\n" * 100)
    assert len(live._shown) == 5


@given(st.lists(st.lists(st.sampled_from(PLAIN), max_size=8).map(b"".join), max_size=12), st.integers(1, 4))
def test_output_that_is_never_rewritten_comes_out_as_it_is(chunks: list[bytes], rows: int) -> None:
    assert "".join(watched(*chunks, rows=rows)) == clean(b"".join(chunks))


@given(st.lists(st.lists(st.sampled_from(NASTY), max_size=8).map(b"".join) | st.binary(max_size=9), max_size=12))
def test_no_control_character_comes_out_and_the_last_lines_are_always_told(chunks: list[bytes]) -> None:
    seen = "".join(watched(*chunks, rows=3))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", seen)
    assert set(clean(b"".join(chunks), rows=3).split("\n")) <= {*seen.split("\n"), ""}
