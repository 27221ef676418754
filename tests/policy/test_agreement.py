"""The second reader of a line, and that it must agree with the first: on words, on commands, on what joins them."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.policy.parse import agreement as veto
from tarmac.policy.parse.agreement import disagreement
from tarmac.policy.parse.command import Course, read_line
from tarmac.policy.parse.parser import parse


def words_of(line: str) -> list[str]:
    return [token.text for token in veto.read(line) if token.kind == "word"]


async def course(line: str) -> tuple[Course, ...]:
    """As the parser reads it."""
    steps = read_line(await parse(line, "bash", timeout=5), line, most=50).steps
    assert steps is not None
    return steps


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls -la", ["ls", "-la"]),
        ("a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]),
        ("a && b || c | d; e\nf", ["a", "b", "c", "d", "e", "f"]),
        ("ls 2>&1 >/dev/null", ["ls"]),
        ("ls 2> /dev/null -l", ["ls", "-l"]),
        ("(cd src && ls)", ["cd", "src", "ls"]),
        ("git show HEAD@{1} stash@{0} a^", ["git", "show", "HEAD@{1}", "stash@{0}", "a^"]),
        ("grep 'a$(b)`c`' x", ["grep", "a$(b)`c`", "x"]),
        ("grep 'x$' y; echo \"5$\"", ["grep", "x$", "y", "echo", "5$"]),
        ("a \\\nb \\\n  c", ["a", "b", "c"]),
    ],
)
def test_the_second_reader_splits_plain_lines(line: str, words: list[str]) -> None:
    assert words_of(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "a `b`", "a $(b)", 'a "$(b)"', 'a "`b`"', "a ${b}", "a $b", 'a "$b"', "a <(b)", "a >(b)", "a & b", "a <<X",
        "a $'b'", "a ((b))", "a # b", "a\\\nb", "a b\\\n", "a;\\\nb", "a !!", 'a "!x"', "a 'b", 'a "b', "a >| b",
        "a <> b", "a $[1]", 'a $"b"', "a &> b",
    ],
)  # fmt: skip
def test_the_second_reader_gives_up_on_all_else(line: str) -> None:
    """P2: a textual veto that can only take trust away."""
    with pytest.raises(veto.Vetoed):
        veto.read(line)


@given(st.lists(st.text("abc-_./ '\"$`\\;|&<>(){}*?!#\n", min_size=1), min_size=1, max_size=4))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    assert words_of(shlex.join(words)) == words


PLAIN = [
    "ls", "ls -l | head; pwd", "(cd src && ls)", "{ ls; pwd; }", "if a; then b; else c; fi", "if a\nthen\nb\nfi",
    "if a; then b; elif c; then d; fi", "for f in a b; do c $f; done", "for f in a b\ndo\nc\ndone", "ls 2>/dev/null -l",
    "ls 2>&1 | head", "a &&\n b", "a |\n b", "a < b", "a <<< b", "a <<X\nb\nX", "! a", "time a", "a |& b",
    "a > b; c >> d",
    "(a; b); c", "(a\nb\n)", "A=b c", "a; # b", "a\n\n\nb", "a;\nb;", "{ a; } && b", "[[ -f a ]] && b", "a 2> b 1>&2",
    "echo '|' \";\" \\& {", "a && b || c && d",
]  # fmt: skip


@pytest.mark.parametrize("line", PLAIN)
async def test_the_readers_agree_on_plain_lines(line: str) -> None:
    """P2: nothing everyday is lost by asking twice."""
    assert disagreement(line, await course(line), comments=True) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a; b", "a && b"), ("a || b", "a && b"), ("a | b", "a; b"), ("a b", "a; b"), ("(a; b)", "a; b"),
        ("a |& b", "a | b"),
        ("a 2>/dev/null", "a >/dev/null"), ("a '|' b", "a | b"), ("a ';' b", "a; b"), ("{ a; b; }", "a; b"),
        ("! a", "a"),
        ("a > b", "a b"), ("a 2>&1", "a 1>&2"), ("if a; then b; fi", "a; b"), ("a < b", "a b"), ("(a); b", "(a; b)"),
        ("a && (b || c)", "a && b || c"), ("a > b", "a >> b"), ("a > b", "a > c"), ("a\nb", "a b"), ("time a", "a"),
        ("for f in a b; do c; done", "for f in a; do b c; done"), ("if a; then b; c; fi", "if a; then b; fi; c"),
        ("if a; then b; else c; fi", "if a; then b; c; fi"), ("a <<X\nb\nX", "a <<X\nc\nX"), ("a | b; c", "a | b | c"),
        ("{ a; }; b", "{ a; b; }"), ("a 'b c'", "a b c"), ("a \\; b", "a; b"), ("a &>/dev/null", "a >/dev/null"),
    ],
)  # fmt: skip
async def test_a_line_that_is_read_as_another_is_seen(one: str, other: str) -> None:
    """P2: had the parser taken one for the other, the second reader would say no."""
    assert disagreement(one, await course(other), comments=True)
    assert disagreement(other, await course(one), comments=True)


@pytest.mark.parametrize("line", ["a >", "a 2>", "a > ; b", "a <", "a > | b", "a >\nb"])
def test_a_redirection_that_leads_nowhere_is_vetoed(line: str) -> None:
    with pytest.raises(veto.Vetoed):
        veto.read(line)
