"""How many tokens a conversation is: the provider's count, and a guess that learns from it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.test_conversation import messages

from tarmac.models.messages import Message, Text, Usage
from tarmac.models.provider import Prompt, ToolSchema
from tarmac.models.tokens import LEAST, MOST, TokenEstimator, prompt_size


def prompt(text: str) -> Prompt:
    return Prompt("Be brief.", (Message("user", (Text(text),)),))


def test_source_code_is_about_what_a_tokenizer_counts() -> None:
    source = "".join(file.read_text() for file in sorted(Path(str(pytest.__file__)).parent.glob("*.py")))
    assert (
        len(source) / 6 < prompt_size(prompt(source)) < len(source) / 3
    )  # tokenizers of today: 4 to 5 characters a token


@given(messages, messages)
def test_more_is_never_less(first: list[Message], more: list[Message]) -> None:
    meter = TokenEstimator(1.3, 2)
    assert meter.tokens(Prompt("", tuple(first))) <= meter.tokens(Prompt("", (*first, *more)))
    usage = Usage(input=10, output=5, cache_reads=7, cache_writes=3)
    assert meter.after(usage, more) >= meter.after(usage, ()) == 25


@given(st.floats(0.5, 2.5), st.lists(st.integers(500, 50_000), min_size=1, max_size=6))
def test_a_meter_learns_what_a_model_counts(truth: float, lengths: list[int]) -> None:
    meter = TokenEstimator()
    for length in lengths:
        asked = prompt("x" * length)
        meter = meter.learned(asked, Usage(input=0, cache_reads=round(truth * prompt_size(asked)), output=99))
    asked = prompt("y" * 10_000)
    assert meter.tokens(asked) == pytest.approx(truth * prompt_size(asked), rel=0.02)


@given(st.integers(0, 10**9), st.integers(0, 10_000))
def test_a_strange_count_does_not_carry_a_meter_away(counted: int, length: int) -> None:
    meter = TokenEstimator().learned(prompt("x" * length), Usage(input=counted))
    assert LEAST <= meter.ratio <= MOST


def test_tools_and_signs_of_other_scripts_count() -> None:
    tool = ToolSchema("read_file", "Read a file." * 50, {"type": "object"})
    assert prompt_size(Prompt("", (), (tool,))) > 150
    assert prompt_size(prompt("漢字" * 100)) > prompt_size(prompt("ab" * 100))
    assert TokenEstimator().learned(prompt("x"), Usage(input=50_000)) == TokenEstimator()  # too little to learn from
