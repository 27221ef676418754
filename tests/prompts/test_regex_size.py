"""Patterns of others are not compiled when that alone would take the machine."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.prompts.mode import GroupRule, Mode, check_size, compiled


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1000000000}",
        "((a{999}){999}){999}",
        "(?:(?:(?:a{99}){99}){99}){99}",
        "(?x)a{ 1 000 000 }",
        "(?x)a{1#\n000000}",
        "[{](a{9999}){9999}",
        "(?:" + "b" * 480 + "){9999}",
        "a{1000000,}",
    ],
)
def test_a_pattern_that_would_take_gigabytes_is_not_compiled(pattern: str) -> None:
    with pytest.raises(ValueError, match="too many counted repetitions"):
        check_size(pattern)
    mode = Mode(slug="x", name="X", role="r", groups=(GroupRule(group="edit", file_pattern=pattern),))
    assert mode.allows("t", "edit", "a" * 100)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\.md$",
        r"^src/.*\.(ts|tsx)$",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}",
        r".{0,200}error.{0,200}(?:.{0,80}){0,5}",
        r"[0-9a-f]{64}",
    ],
)
def test_patterns_that_people_write_are_compiled(pattern: str) -> None:
    check_size(pattern)


counted = st.recursive(
    st.sampled_from(["a", "[ab]", "."]),
    lambda inner: (
        st.tuples(inner, st.integers(1, 400)).map(lambda one: f"(?:{one[0]}){{{one[1]}}}")
        | st.tuples(inner, inner).map("".join)
    ),
    max_leaves=6,
)


@given(counted)
def test_whatever_passes_is_compiled_soon(pattern: str) -> None:
    try:
        check_size(pattern)
    except ValueError:
        return
    began = time.process_time()
    compiled.__wrapped__(pattern)
    assert time.process_time() - began < 10
