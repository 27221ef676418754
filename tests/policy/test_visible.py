"""What is shown is what runs."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.policy.visible import is_plain, shortened, visible, warnings

tricky = st.text(
    st.sampled_from(" \n\tab⟨⟩\x1b\x07\r\x00\u202e\u2066\u200b\u00a0\ufeff\u3164\u2028\udc80\u0301é漢0;⟩U+")
    | st.characters(),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -la", "ls -la"),
        ("echo 'über 漢字'", "echo 'über 漢字'"),
        ("rm\x1b[8m x", "rm⟨U+001B⟩[8m x"),
        ("a\rb", "a⟨U+000D⟩b"),
        ("a\tb", "a⟨U+0009⟩b"),
        ("x\u202ey", "x⟨U+202E⟩y"),
        ("x\u200by", "x⟨U+200B⟩y"),
        ("x\u00a0y", "x⟨U+00A0⟩y"),
        ("ls" + " " * 80 + "; rm x", "ls⟨80 blanks⟩; rm x"),
        ("if x:\n        y", "if x:\n        y"),
        ("a  \nb", "a⟨2 blanks⟩\nb"),
        ("a\n\n\n\n\n\n\nb", "a\n⟨6 empty lines⟩\nb"),
        ("⟨U+202E⟩", "⟨U+27E8⟩U+202E⟨U+27E9⟩"),
        ("\udcff", "⟨byte FF⟩"),
        ("e\u0301", "e⟨U+0301⟩"),
        ("x\u3164y", "x⟨U+3164⟩y"),
        ("x\U000e0041y", "x⟨U+E0041⟩y"),
    ],
)
def test_what_a_screen_would_hide_is_marked(text: str, shown: str) -> None:
    """P6."""
    assert visible(text) == shown


def _read_back(shown: str) -> str:
    def text(found: re.Match[str]) -> str:
        number, kind = found["number"], found["kind"]
        if kind == " blanks":
            return " " * int(number)
        if kind == " empty lines":
            return "\n" * (int(number) - 1)  # the newline on either side stands for itself
        return chr(int(found["hex"], 16)) if found["hex"] else chr(0xDC00 + int(found["byte"], 16))

    return re.sub(
        r"⟨(?:(?P<number>\d+)(?P<kind> blanks| empty lines)|U\+(?P<hex>[0-9A-F]+)|byte (?P<byte>[0-9A-F]{2}))⟩",
        text,
        shown,
    )


@given(tricky)
def test_no_two_texts_look_the_same(text: str) -> None:
    """P6: what is shown can be read back to the very text."""
    assert _read_back(visible(text)) == text


@given(tricky)
def test_nothing_shown_is_invisible_moves_the_cursor_or_pushes_the_rest_away(text: str) -> None:
    """P6."""
    shown = visible(text)
    for each in shown:
        assert each == "\n" or each.isprintable()
        assert unicodedata.bidirectional(each) not in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    assert "\n" * 5 not in shown
    assert " " * 33 not in shown
    assert not re.search(r"[^\n ] {9}", shown)


@given(tricky, st.integers(10, 50))
def test_a_shortened_text_keeps_its_tail(text: str, limit: int) -> None:
    """P6."""
    short = shortened(text, limit)
    assert len(short) <= limit + 40
    assert short[-4:] == text[-4:]
    assert short == text or "not shown⟩" in short


def test_letters_of_two_alphabets_in_one_word_are_pointed_out() -> None:
    """P6: `а` (Cyrillic) is not `a`."""
    assert "U+0430" in warnings("cаt notes")[0]
    assert warnings("cat заметки") == ()
    assert warnings("cat über") == ()
    assert "can't be seen" in warnings("ls\u200b")[0]


def test_plain_is_what_needs_no_mark() -> None:
    """P6."""
    assert is_plain("git push")
    assert not is_plain("a\nb")
    assert is_plain("a\nb", lines=True)
    assert not is_plain("a\u202e")
