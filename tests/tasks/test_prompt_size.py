"""How many tokens a conversation is, before the provider has counted them."""

from pathlib import Path

import pytest
from hypothesis import given
from tests.models.test_conversation import messages

from tarmac.models.messages import Message, Text
from tarmac.models.provider import Prompt, ToolSchema
from tarmac.tasks.views.model_history import prompt_size


def prompt(text: str) -> Prompt:
    return Prompt("Be brief.", (Message("user", (Text(text),)),))


def test_source_code_is_about_what_a_tokenizer_counts() -> None:
    source = "".join(file.read_text() for file in sorted(Path(str(pytest.__file__)).parent.glob("*.py")))
    assert (
        len(source) / 6 < prompt_size(prompt(source)) < len(source) / 3
    )  # tokenizers of today: 4 to 5 characters a token


@given(messages, messages)
def test_more_is_never_less(first: list[Message], more: list[Message]) -> None:
    assert prompt_size(Prompt("", tuple(first))) <= prompt_size(Prompt("", (*first, *more)))


def test_tools_and_signs_of_other_scripts_count() -> None:
    tool = ToolSchema("read_file", "Read a file." * 50, {"type": "object"})
    assert prompt_size(Prompt("", (), (tool,))) > 150
    assert prompt_size(prompt("漢字" * 100)) > prompt_size(prompt("ab" * 100))
