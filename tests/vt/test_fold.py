"""Folding, bounding, and showing what hides (T25)."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.vt.fold import Bounded, bound, bound_parts, fold_repeats, show_invisibles

texts = st.text(st.sampled_from("ab\n\n\u0301é"), max_size=80)
NOTICE = re.compile(r"\n?\[… [^\n]* left out[^\n]* …\]\n")
NUMBERS = re.compile(r"\[… (?:([\d,]+) lines? \()?([\d,]+) characters?\)? left out …\]")


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def parts_around_notice(text: str) -> tuple[str, str]:
    head, tail = NOTICE.split(text)
    return head, tail


def numbers_in_notice(text: str) -> tuple[int, int]:
    """The lines and the characters that it says were left out."""
    found = NUMBERS.search(text)
    assert found
    return int((found[1] or "0").replace(",", "")), int(found[2].replace(",", ""))


# ── repeats ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        ("a\n", "a\n"),
        ("a\na\n", "a\na\n"),
        ("a\na\na\n", "a\n[… the line above 2 more times]\n"),
        ("a\na\na", "a\n[… the line above 2 more times]"),
        ("x\n" + "y\n" * 1235 + "z\n", "x\ny\n[… the line above 1,234 more times]\nz\n"),
        ("a\n\n\n\n\nb\n", "a\n\n[… 3 more empty lines]\nb\n"),
        ("\n\n", "\n\n"),
        ("a\na\nb\na\na\n", "a\na\nb\na\na\n"),
    ],
)
def test_equal_lines_in_a_row_are_said_once_with_a_count(text: str, folded: str) -> None:
    """T25: 3 or more equal lines in a row folded with a count."""
    assert fold_repeats(text) == folded


def test_how_many_make_a_run_is_up_to_the_caller() -> None:
    assert fold_repeats("a\na\n", least=2) == "a\n[… the line above 1 more time]\n"


@given(st.lists(st.sampled_from(["a", "b", ""]), max_size=20), st.booleans())
def test_folding_loses_nothing_and_twice_is_once(lines: list[str], ends: bool) -> None:
    text = "\n".join(lines) + "\n" * ends
    folded = fold_repeats(text)
    unfolded: list[str] = []
    for line in folded.split("\n"):
        again = re.fullmatch(r"\[… (?:the line above )?(\d+) more .*\]", line)
        unfolded += [unfolded[-1]] * int(again[1]) if again else [line]
    assert "\n".join(unfolded) == text
    assert fold_repeats(folded) == folded


# ── bounds ───────────────────────────────────────────────────────────────────────


def test_text_that_fits_is_left_alone() -> None:
    text = "line\n" * 500
    assert bound(text) == Bounded(text, truncated=False)


def test_head_and_tail_stay_with_a_plain_notice_between() -> None:
    """T25: bounded by 500 lines, head and tail 70 : 30, with a plain notice of what was left out between."""
    text = "".join(f"{n}\n" for n in range(2000))
    short = bound(text)
    head, tail = parts_around_notice(short.text)
    assert head == "".join(f"{n}\n" for n in range(350)).removesuffix("\n")
    assert tail == "".join(f"{n}\n" for n in range(1850, 2000))
    assert "\n[… 1,500 lines (6,850 characters) left out …]\n" in short.text
    assert short.truncated


def test_one_huge_line_is_cut_inside() -> None:
    """T25: bounded by 50,000 characters."""
    short = bound("x" * 1_000_000)
    head, tail = parts_around_notice(short.text)
    assert (len(head), len(tail)) == (35_000, 15_000)
    assert "[… 950,000 characters left out …]" in short.text


def test_long_lines_are_cut_between_lines_where_one_ends_near() -> None:
    text = "".join(f"{n:099d}\n" for n in range(400))
    head, tail = parts_around_notice(bound(text, characters=1050).text)
    assert head == "".join(f"{n:099d}\n" for n in range(7)).removesuffix("\n")
    assert tail == "".join(f"{n:099d}\n" for n in range(397, 400))


def test_a_letter_and_its_accents_are_not_cut_apart() -> None:
    head, tail = parts_around_notice(bound("e\u0301" * 100, characters=21).text)
    assert (head, tail) == ("e\u0301" * 7, "e\u0301" * 3)


@given(texts, st.integers(1, 12), st.integers(1, 30), st.floats(0, 1))
def test_bounded_text_obeys_both_limits_and_is_two_ends(text: str, lines: int, characters: int, share: float) -> None:
    """T25: the limits hold, not counting the notice."""
    short = bound(text, lines=lines, characters=characters, head_share=share)
    if not short.truncated:
        assert short.text == text
        head, tail = text, ""
    else:
        head, tail = parts_around_notice(short.text)
        lines_said, characters_said = numbers_in_notice(short.text)
        if text.startswith(head + "\n") and len(head) + len(tail) + characters_said < len(text):
            head += "\n"  # its own, not the notice's
        assert text.startswith(head) and text.endswith(tail)
        left_out = text[len(head) : len(text) - len(tail)]
        assert (characters_said, lines_said) == (len(left_out), left_out.count("\n"))
    assert count_lines(head) + count_lines(tail) <= lines
    assert len(head) + len(tail) <= characters


def test_a_gap_that_was_there_before_is_counted_in() -> None:
    short = bound_parts("a\nb\n", "y\nz\n", gap_lines=1000, gap_bytes=5000)
    assert short == Bounded("a\nb\n[… 1,000 lines (5,000 bytes) left out …]\ny\nz\n", truncated=True)
    short = bound_parts("a\nb\n", "y\nz\n", gap_lines=1000, gap_bytes=5000, lines=2)
    assert short == Bounded("a\n[… 1,002 lines (5,004 bytes) left out …]\nz\n", truncated=True)


def test_parts_without_a_gap_are_one_text() -> None:
    assert bound_parts("a\nb", "c\n", gap_lines=0, gap_bytes=0) == Bounded("a\nbc\n", truncated=False)


def test_a_short_end_leaves_its_share_to_the_other() -> None:
    head = "".join(f"{n}\n" for n in range(480))
    assert bound_parts(head, "end\n", gap_lines=9, gap_bytes=99).text.startswith(head)
    assert bound_parts("start\n", head, gap_lines=9, gap_bytes=99).text.endswith(head)


@given(texts, texts, st.integers(1, 12), st.integers(1, 30), st.floats(0, 1))
def test_bounded_parts_obey_both_limits(head: str, tail: str, lines: int, characters: int, share: float) -> None:
    text = bound_parts(head, tail, gap_lines=1, gap_bytes=9, lines=lines, characters=characters, head_share=share).text
    start, end = parts_around_notice(text)
    assert head.startswith(start) and tail.endswith(end)
    assert count_lines(start) + count_lines(end) <= lines
    assert len(start) + len(end) <= characters


# ── invisibles ───────────────────────────────────────────────────────────────────


def test_characters_that_hide_or_reorder_text_are_shown() -> None:
    text = "a\u202eb\u2066\u200b\ufeff\u2028\u061c\U000e0041\U000e0100\u00ad"
    assert show_invisibles(text) == ("a<U+202E>b<U+2066><U+200B><U+FEFF><U+2028><U+061C><U+E0041><U+E0100><U+00AD>")


@pytest.mark.parametrize("text", ["plain\n\t", "ü 日本 ✓", "👩\u200d💻 ❤\ufe0f", "می\u200cخواهم", "e\u0301"])
def test_characters_that_scripts_and_emoji_need_are_left_alone(text: str) -> None:
    assert show_invisibles(text) == text


@pytest.mark.parametrize("text", ["x" * 3_000_000, "x\n" * 500_000, "\n" * 500_000, "\u0301" * 500_000])
def test_a_lot_of_text_takes_no_long_time(text: str) -> None:
    started = time.process_time()
    bound(show_invisibles(text))
    fold_repeats(text)
    assert time.process_time() - started < 2
