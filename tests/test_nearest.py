"""Which name was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import nearest

NAMES = ["model", "mode", "auto", "limits.max_cost", "--max-turns"]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("modle", "model"),
        ("mdoe", "mode"),
        ("moed", "mode"),
        ("models", "model"),
        ("limits.max_csot", "limits.max_cost"),
        ("--max-turn", "--max-turns"),
        ("xyz", ""),
        ("", ""),
    ],
)
def test_swapped_letters_are_the_likeliest_slip(wrong: str, meant: str) -> None:
    """Issue 5, 10: the nearest right name."""
    assert nearest(wrong, NAMES) == meant


@given(st.sampled_from(NAMES), st.data())
def test_two_neighbours_swapped_are_always_found(name: str, data: st.DataObject) -> None:
    """Issue 5, 10."""
    at = data.draw(st.integers(0, len(name) - 2))
    assert nearest(name[:at] + name[at + 1] + name[at] + name[at + 2 :], NAMES) == name
