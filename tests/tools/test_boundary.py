"""The tags around what others wrote."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tarmac.tools.report import fenced, labelled

tags = st.from_regex(r"</?(output|prompt)-[0-9a-f]{12}>", fullmatch=True)
texts = st.lists(st.text() | tags | st.just("\n")).map("".join)


@given(texts, st.sampled_from(["output", "prompt"]))
def test_whatever_is_inside_the_text_is_all_that_is_between_the_tags(text: str, name: str) -> None:
    """S10: a boundary that output can't forge."""
    made = fenced(text, name)
    opening = re.match(rf"<({name}-[0-9a-f]{{12}})>\n", made)
    assert opening
    end = f"</{opening[1]}>"
    assert made.count(opening[1]) == 2
    assert made.endswith(end)
    inside = made[opening.end() : -len(end)]
    assert inside in (text, f"{text}\n")


def test_no_two_tags_are_the_same() -> None:
    assert len({fenced("x") for _ in range(100)}) == 100


def test_the_label_says_that_it_is_not_to_be_trusted() -> None:
    assert labelled("hello").startswith("Output (untrusted: ")
    assert labelled(" \n") == "Output: (none)"
