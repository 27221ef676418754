"""insert_content and search_and_replace."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tarmac.tools.edit import insert_content, search_and_replace


@pytest.mark.parametrize(
    ("text", "line", "content", "expected"),
    [
        ("a\nb\n", 1, "x", "x\na\nb\n"),
        ("a\nb\n", 2, "x\n", "a\nx\nb\n"),
        ("a\nb\n", 0, "x\r\ny\r\n", "a\nb\nx\ny\n"),
        ("a\nb\n", 3, "x", "a\nb\nx\n"),
        ("a\nb", 0, "x", "a\nb\nx"),
        ("", 0, "x", "x\n"),
        ("", 1, "x\n\n", "x\n\n"),
    ],
)
def test_lines_are_inserted_before_a_line_or_at_the_end(text: str, line: int, content: str, expected: str) -> None:
    assert insert_content(text, line, content).text == expected


def test_a_line_that_does_not_exist_is_refused() -> None:
    edited = insert_content("a\nb\n", 4, "x")
    assert str(edited.failed[0]) == "line 4 is outside the file, which has 2 lines\nhint: 1 to 3, or 0 for the end"


@given(st.lists(st.sampled_from(["a", "", "b"]), max_size=6), st.integers(0, 7), st.lists(st.just("new"), min_size=1))
def test_an_insertion_adds_its_lines_and_changes_no_other(lines: list[str], at: int, new: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    edited = insert_content(text, at, "\n".join(new))
    if edited.success:
        where = len(lines) if at == 0 else at - 1
        assert edited.text.split("\n")[:-1] == [*lines[:where], *new, *lines[where:]]
    else:
        assert at > len(lines) + 1


@example("a", "a\n", "b")
@given(st.text("ab\n.*", max_size=30), st.text("ab\n.*", min_size=1, max_size=3), st.text("ab\n\\$1", max_size=3))
def test_a_literal_replacement_is_what_python_says(text: str, search: str, new: str) -> None:
    edited = search_and_replace(text, search, new)
    if search in text:
        assert edited.text == text.replace(search, new)
        assert len(edited.applied) in (0, text.count(search))
    elif edited.applied:  # whole lines that differ in white space alone; here only the end of the last line can
        assert search.endswith("\n")
        assert f"\n{text}\n".endswith(f"\n{search}")
    else:
        assert edited.text == text


def test_a_pattern_with_groups_in_a_range_of_lines() -> None:
    text = "foo(1)\nfoo(2)\nFOO(3)\nfoo(4)\n"
    edited = search_and_replace(
        text,
        r"^foo\((?<n>\d)\)$",
        r"bar(${n}, $1, \1, $&, $$)",
        pattern=True,
        ignore_case=True,
        start_line=2,
        end_line=3,
    )
    assert edited.text == "foo(1)\nbar(2, 2, 2, foo(2), $)\nbar(3, 3, 3, FOO(3), $)\nfoo(4)\n"
    assert [each.first for each in edited.applied] == [2, 3]


@pytest.mark.parametrize(
    ("search", "new", "pattern", "message"),
    [
        ("(", "x", True, "the pattern is invalid: missing ) at position 1"),
        ("a{1000000000}", "x", True, "the pattern is invalid: too many counted repetitions"),
        ("(a)", "$2", True, "the replacement names a group the pattern does not have"),
        ("nothing", "x", True, "the pattern matches nothing"),
        ("a", "a", False, "the replacement is the same as the old text"),
        ("", "a", False, "the search is empty"),
        ("b  c", "x", False, "not found as written; line 2 differs in white space, or lies outside the range"),
    ],
)
def test_a_replacement_that_fails_says_why(search: str, new: str, pattern: bool, message: str) -> None:
    edited = search_and_replace("a\nb c\n", search, new, pattern=pattern)
    assert (edited.text, edited.failed[0].message) == ("a\nb c\n", message)


def test_a_literal_that_is_not_there_shows_the_closest_line() -> None:
    edited = search_and_replace("alpha\nconst limit = 10;\nomega\n", "const limits = 10;", "x")
    assert "+ 2 | const limit = 10;" in edited.failed[0].message


def test_a_pattern_that_would_take_for_ever_is_stopped() -> None:
    """Nothing hangs: the pattern is a model's."""
    start = time.monotonic()
    edited = search_and_replace("a" * 200 + "b\n", r"(a|aa)+$", "x", pattern=True, patience=0.2)
    assert edited.failed[0].message == "the pattern took longer than 0.2 s"
    assert time.monotonic() - start < 10
