"""Providers by name, and what the documentation says of them."""

import re
from pathlib import Path
from typing import get_args

from tarmac.models.factory import open_model
from tarmac.models.model_catalog import KEY_VARIABLES, PROVIDERS, base_urls_from, keys_from
from tarmac.models.provider import TRANSIENT, ErrorKind, ModelSettings

GUIDE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()


def rows(heading: str) -> list[list[str]]:
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_guide_lists_every_provider_with_its_variables() -> None:
    listed = {re.sub("`", "", name): (key, where) for name, key, where in rows("Providers")}
    assert list(listed) == list(PROVIDERS)
    for name, provider in PROVIDERS.items():
        key, where = listed[name]
        assert (f"`{provider.key}`" in key) if provider.needs_key else ("none needed" in key or "if it wants" in key)
        assert provider.url in where
        if provider.base_url and "localhost" in provider.base_url:
            assert re.search(r":(\d+)/", provider.base_url)[1] in where  # type: ignore[index]


def test_the_guide_lists_every_kind_of_failure() -> None:
    listed = {kind.strip("`"): again for kind, _, again in rows("Errors")}
    assert set(listed) == set(get_args(ErrorKind))
    assert {kind for kind, again in listed.items() if again.startswith("yes")} == TRANSIENT


def test_keys_and_addresses_are_taken_from_an_environment() -> None:
    environ = {
        "OPENAI_API_KEY": " sk-1\n",
        "ANTHROPIC_API_KEY": "",
        "OLLAMA_BASE_URL": "http://elsewhere:1/v1",
        "HOME": "/",
    }
    assert keys_from(environ) == {"openai": "sk-1"}
    assert base_urls_from(environ) == {"ollama": "http://elsewhere:1/v1"}
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"} <= KEY_VARIABLES


def test_what_a_model_holds_is_known_set_or_unknown() -> None:
    keys = {"openrouter": "k", "anthropic": "k"}
    plain = ModelSettings(keys=keys)
    assert open_model("anthropic/claude-opus-4-6", plain).info.context_window == 1_000_000
    assert open_model("openrouter/anthropic/claude-opus-4.6", plain).info.context_window == 1_000_000
    assert open_model("anthropic/claude-3-haiku-20240307", plain).info.max_output == 4_096
    assert open_model("ollama/gpt-oss:20b").info.context_window is None  # as much as its server was told to
    info = open_model("ollama/gpt-oss:20b", ModelSettings(context_window=32_000, images=True, max_output=99)).info
    assert (info.context_window, info.images, info.max_output) == (32_000, True, 99)
