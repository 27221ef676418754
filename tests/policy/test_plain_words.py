"""Lines of plain words are read as the parser reads them."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.policy.parse.parser import DIALECTS, LONGEST, Unreadable, parsed_by, parser_path, plain_tree

SPECIAL = """
    if then elif else fi for foreach in do done end case esac while until select function time coproc repeat always
    declare typeset local export readonly nameref integer float let nocorrect noglob @test eval exec command builtin
    test source . : true - -- -p % %% + @ , / 0 1 2 00 a:b a,b ,, .. ./x ../.. @a +a -a %1 x@y.z --a-b --a:b 1.5 _ __
""".split()
words = st.sampled_from(SPECIAL) | st.text("aZ09_%+:,./@-", min_size=1, max_size=8)


def parsed(line: str, dialect: str) -> object:
    program = parser_path()
    assert program
    try:
        return asyncio.run(parsed_by(program, line, dialect, timeout=10))
    except Unreadable as error:
        return error.reason


@settings(deadline=None, max_examples=120)
@given(st.lists(words, min_size=1, max_size=5), st.sampled_from(sorted({*DIALECTS.values()})))
def test_plain_words_are_read_as_the_parser_reads_them(line: list[str], dialect: str) -> None:
    """P2: whatever the dialect, all of the tree."""
    tree = plain_tree(" ".join(line))
    assert tree is None or tree == parsed(" ".join(line), dialect)


@pytest.mark.parametrize("dialect", sorted({*DIALECTS.values()}))
@pytest.mark.parametrize("word", SPECIAL)
def test_no_word_alone_or_first_is_read_in_another_way(word: str, dialect: str) -> None:
    for line in (word, f"{word} a"):
        tree = plain_tree(line)
        assert tree is None or tree == parsed(line, dialect)


@given(st.text(max_size=20))
def test_anything_but_plain_words_is_left_to_the_parser(line: str) -> None:
    tree = plain_tree(line)
    assert (tree is None) or (line.isascii() and not set(line) & set("\"'\\$`;&|<>(){}[]*?~#!=^\n\t"))


def test_common_lines_are_plain_and_long_ones_are_not() -> None:
    assert plain_tree("git diff --stat src/main.py") is not None
    assert plain_tree("a" * LONGEST) is not None
    for line in ("a" * (LONGEST + 1), "", " ls", "ls ", "a  b", "A=1 b", "ls *", "cd ~", "a\nb", "time ls", "echo é"):
        assert plain_tree(line) is None
