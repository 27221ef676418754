"""What somebody meant who wrote a model's name another way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import ConfigError
from tarmac.models.model_catalog import PROVIDERS, nearest_spec, parse_spec
from tarmac.models.provider import ModelError


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        ("gpt-5", "openai/gpt-5"),
        ("openai:gpt-5", "openai/gpt-5"),
        ("Anthropic/claude-opus-5", "anthropic/claude-opus-5"),
        ("claude-opus-5", "anthropic/claude-opus-5"),
        ("opnai/gpt-5", "openai/gpt-5"),
        ("google/gemini-3", "gemini/gemini-3"),
        ("o4-mini", "openai/o4-mini"),
        ("llama3:8b", "ollama/llama3:8b"),
        ("ollama:llama3:8b", "ollama/llama3:8b"),
        ("openai gpt-5", "openai/gpt-5"),
        ("openai", ""),
        ("openai/", ""),
        ("", ""),
        ("my-own-thing", ""),
        ("zzz/x", ""),
    ],
)
def test_the_nearest_right_name(spec: str, right: str) -> None:
    """A5: a model that is typed wrong is answered with the nearest right one."""
    assert nearest_spec(spec) == right
    if right:
        assert parse_spec(right)[0].name in PROVIDERS


@given(st.text())
def test_what_is_meant_can_always_be_asked_for(spec: str) -> None:
    right = nearest_spec(spec)
    assert not right or (parse_spec(right) and right != spec)


def test_a_provider_that_is_unknown_says_the_nearest_or_all() -> None:
    with pytest.raises(ModelError) as close:
        parse_spec("Anthropic/claude-opus-5")
    assert close.value.hint == "did you mean `anthropic/claude-opus-5`?"
    with pytest.raises(ModelError) as far:
        parse_spec("zzz/x")
    assert "anthropic, openai" in far.value.hint
    assert not isinstance(far.value, ConfigError)
