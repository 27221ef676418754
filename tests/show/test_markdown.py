"""Markdown that streams: blocks are whole, nothing is lost, nothing is doubled, wherever a piece is cut."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.show.blocks import PART, BlockSplitter, MarkdownStream, render
from tarmac.show.look import Look

LOOK = Look(columns=60, live=True)
lines = st.sampled_from(
    ["", "words", "# title", "- item", "```", "```python", "~~~", "    code", "| a | b |", "1. one", "> quote"]
)
documents = st.lists(lines, max_size=30).map("\n".join)


def blocks(pieces: list[str]) -> list[str]:
    splitter = BlockSplitter()
    found = [block for piece in pieces for block in splitter.feed(piece)] + splitter.finish()
    return [block.text for block in found]


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@given(documents, st.integers(1, 9))
def test_blocks_are_the_same_wherever_the_text_is_cut(text: str, size: int) -> None:
    """U6."""
    assert blocks(cut(text, size)) == blocks([text])


@given(documents)
def test_no_line_is_lost_or_doubled(text: str) -> None:
    """U6: a piece that ends in a newline doubled it."""
    kept = [line for block in blocks([text]) for line in block.split("\n") if line.strip()]
    assert kept == [line for line in text.split("\n") if line.strip()]


def test_a_code_block_with_blank_lines_is_one_block() -> None:
    """U6."""
    assert blocks(["```\na\n\nb\n```\nafter"]) == ["```\na\n\nb\n```", "after"]
    assert blocks(["````\n```\n\n````\n"]) == ["````\n```\n\n````"]


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(20, 100))
def test_whatever_a_model_says_fits_the_screen_and_is_whole_lines(text: str, columns: int) -> None:
    """U6: without colour there is no escape in it."""
    stream = MarkdownStream(Look(columns=columns, live=True))
    told = "".join(stream.feed(piece) for piece in cut(text, 7)) + stream.finish()
    assert "\x1b" not in told and (not told or told.endswith("\n"))


def test_what_is_rendered_has_no_background_and_no_yellow() -> None:
    """U6: it can be read on black and on white."""
    shown = render(
        "# T\n\n`code` **bold**\n\n```python\nx = 'a'  # c\n```\n\n> quote\n", Look(colour=True, columns=60, live=True)
    )
    codes = {int(code) for found in re.findall(r"\x1b\[([0-9;]*)m", shown) for code in found.split(";") if code}
    assert codes and not codes & {33, 93, 37, 97, *range(40, 48), *range(100, 108)}


def test_lists_stay_together_and_paragraphs_apart() -> None:
    """U6."""
    stream = MarkdownStream(LOOK)
    told = stream.feed("One.\n\n- a\n\n- b\n\nTwo.\n\n") + stream.finish()
    assert told == "One.\n\n • a\n • b\n\nTwo.\n"


def test_the_block_that_grows_is_shown_until_it_is_whole() -> None:
    """U6."""
    stream = MarkdownStream(LOOK)
    assert stream.feed("Half a sen") == "" and stream.partial == ["Half a sen"]
    assert stream.feed("tence.\n\n") == "Half a sentence.\n" and stream.partial == []


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.sampled_from(["", "x = 1", "    y('a', b, c)", "# why not", "'''"]), min_size=300, max_size=500),
    st.integers(1, 900),
)
def test_long_code_is_given_out_in_parts_and_reads_as_if_it_were_whole(code: list[str], size: int) -> None:
    """U6: no key waits for the rendering of a thousand lines. Blank lines count in code, also where it is cut."""
    stream, told, longest = MarkdownStream(LOOK), "", 0
    for piece in cut("\n".join(["```python", "first", *code, "last", "```", "after"]), size):
        told += stream.feed(piece)
        longest = max(longest, len("\n".join(stream.partial)))
    told += stream.finish()
    assert told.split("\n") == [f" {line}".rstrip() for line in ["first", *code, "last"]] + ["", "after", ""]
    # A part ends with the line that reaches PART, and is given out when the line after it is whole.
    assert longest < PART + 2 * len("    y('a', b, c)\n")


def test_a_long_list_is_rendered_in_parts_and_stays_one_list() -> None:
    """U6."""
    whole = "\n".join(f"{number}. the item {number}\n   goes on" for number in range(1, 301))
    stream = MarkdownStream(LOOK)
    told = "".join(stream.feed(piece) for piece in cut(whole, 50)) + stream.finish()
    numbers = [line.split()[0] for line in told.split("\n") if line and line.split()[0].isdecimal()]
    assert numbers == [str(number) for number in range(1, 301)] and "\n\n" not in told
    assert max(len(block) for block in blocks([whole])) < PART + 100
