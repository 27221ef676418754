"""A line that is typed key by key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.cli.person import InputLine
from tarmac.show.look import width

keys = st.lists(
    st.sampled_from(["a", "b", " ", "é", "漢", "e\u0301", "\x7f", "\x17", "\x15", "\x1b[A", "\x1bOP", "\x00"])
)


def seen(shown: str) -> str:
    """What stands on the screen then, a cell a column: wide characters have two."""
    cells: list[str] = []
    at = 0
    for character in shown:
        if character == "\b":
            at -= 1
        elif character != "\n":
            wide = width(character)
            cells[at : at + wide] = [character, *[""] * (wide - 1)][:wide]
            at += wide
    return "".join(cells).rstrip(" ")


@given(keys, st.integers(1, 5))
def test_what_stands_on_the_screen_is_what_was_typed_however_it_comes(keys: list[str], size: int) -> None:
    """S5: the echo is ours where the first key matters; keys may be cut anywhere by a read."""
    line, stream = InputLine(), "".join([*keys, "\r", "more\n"]).encode()
    shown = ""
    for place in range(0, len(stream), size):
        if line.done:
            line.rest += stream[place : place + size]
        else:
            shown += line.feed(stream[place : place + size])
    assert line.done and line.rest == b"more\n" and not line.ended
    assert seen(shown.removesuffix("\n")) == line.text.replace("\u0301", "").rstrip(" ")
    assert all(each.isprintable() for each in line.text)


@pytest.mark.parametrize(
    ("typed", "text", "ended"),
    [
        (b"red\n", "red", False),
        (b"redd\x7f\r", "red", False),
        (b"a big blue  \x17boat\n", "a big boat", False),
        (b"word\x17x\n", "x", False),
        (b"wrong\x15right\n", "right", False),
        (b"\x7f\x7f\x17ok\n", "ok", False),
        (b"\x1b[D\x1b[1;5Cok\n", "ok", False),
        (b"half\x04", "half", False),
        (b"\x04", "", True),
        ("e\u0301\x7fx\n".encode(), "x", False),
    ],
)
def test_keys_take_back_what_they_take_back_in_a_terminal(typed: bytes, text: str, ended: bool) -> None:
    line = InputLine()
    line.feed(typed)
    assert (line.done, line.text, line.ended) == (True, text, ended)
