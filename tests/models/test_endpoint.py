"""Addresses and keys as people write them."""

import asyncio

import pytest
from tests.models.asking import CLAUDE, GPT, KEY, Dialect, asked
from tests.models.server import Reply, refusal, serving

from tarmac.models.factory import open_model
from tarmac.models.openai_responses import Responses
from tarmac.models.provider import Model, ModelError, ModelSettings

pytestmark = pytest.mark.slow

OLLAMA = Dialect("ollama", "qwen3:8b", "", GPT.says)
COMPATIBLE = Dialect("compatible", "x", "", GPT.says)


def at(url: str, spec: str = "ollama/x", key: str = KEY) -> Model:
    provider = spec.partition("/")[0]
    return open_model(spec, ModelSettings(keys={provider: key}, base_urls={provider: url}))


async def answered(model: Model) -> None:
    await asked(model)
    await model.aclose()
    for _ in range(10):  # generators within the SDK's are closed by asyncio itself, one a turn of the loop
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("dialect", "written", "asks"),
    [
        *((CLAUDE, tail, "/v1/messages") for tail in ("", "/", "/v1", "/v1/", "/v1/messages")),
        (CLAUDE, "/anthropic/v1", "/anthropic/v1/messages"),
        *((OLLAMA, tail, "/v1/chat/completions") for tail in ("", "/", "/v1", "/v1//", "/v1/chat/completions")),
        (OLLAMA, "/proxy", "/proxy/chat/completions"),
        (COMPATIBLE, "", "/chat/completions"),
        (COMPATIBLE, "/api/v3/", "/api/v3/chat/completions"),
    ],
)
async def test_an_address_is_meant_as_people_write_it(dialect: Dialect, written: str, asks: str) -> None:
    """S6: with and without /v1, with a slash at its end, or copied with what an SDK adds."""
    async with serving(Reply(dialect.says("ok"))) as server:
        await answered(at(f"{server.url}{written}", dialect.spec))
        assert [each.path for each in server.requests] == [asks]


@pytest.mark.parametrize("url", ["https://api.openai.com", "https://api.openai.com/", "https://api.openai.com/v1/"])
def test_openai_is_known_however_its_address_is_written(url: str) -> None:
    assert isinstance(at(url, "openai/gpt-5"), Responses)


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:11434", "localhost", "http://", "ftp://x/y", "http://[::1", "http://a b/v1", "http://x:99999/v1"),
        *("me:geheim@host/v1", "http://me:geheim@[::1/v1", "http://x\n/v1"),
    ],
)
@pytest.mark.parametrize("spec", ["ollama/x", "anthropic/claude-opus-5"])
def test_what_is_no_address_is_told_before_anything_is_asked(url: str, spec: str) -> None:
    with pytest.raises(ModelError, match="is not a valid server address") as caught:
        at(url, spec)
    assert (caught.value.kind, caught.value.retryable) == ("not_found", False)
    assert "geheim" not in str(caught.value)


def test_an_address_without_its_beginning_is_completed_in_words() -> None:
    with pytest.raises(ModelError) as caught:
        at("localhost:11434")
    assert caught.value.hint == "did you mean http://localhost:11434?"


@pytest.mark.parametrize("key", ["sk-a\nb-geheim", "sk-“geheim”", "sk\0geheim", "\ufeffsk-geheim", "sk-\x1b[0mgeheim"])
def test_a_key_that_no_request_can_carry_is_told_and_not_shown(key: str) -> None:
    """S6: it was told as a server that can't be reached, and tried again."""
    for spec, variable in (("openai/gpt-5", "OPENAI_API_KEY"), ("anthropic/claude-opus-5", "ANTHROPIC_API_KEY")):
        with pytest.raises(ModelError, match="contains an invalid character") as caught:
            open_model(spec, ModelSettings(keys={spec.partition("/")[0]: key}))
        assert (caught.value.kind, caught.value.retryable) == ("auth", False)
        assert variable in caught.value.hint
        assert "geheim" not in str(caught.value)
    with pytest.raises(ModelError, match="there is no key for openai"):
        open_model("openai/gpt-5", ModelSettings(keys={"openai": " \n"}))


@pytest.mark.parametrize("dialect", [CLAUDE, OLLAMA])
async def test_a_server_on_this_machine_is_not_asked_through_a_proxy(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with serving(Reply(dialect.says("ok"))) as server:
        await answered(at(server.url, dialect.spec))
        assert len(server.requests) == 1


async def test_what_keeps_us_from_asking_at_all_is_told_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """S6: a proxy that we can't use is no answer of the model."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "socks7://me:geheim@127.0.0.1:1")
    model = at("http://nowhere.invalid/v1")
    with pytest.raises(ModelError, match="no request can be sent") as caught:
        await asked(model)
    await model.aclose()
    assert (caught.value.kind, caught.value.retryable) == ("unknown", False)
    assert "proxy" in str(caught.value).lower()
    assert "geheim" not in str(caught.value)


async def test_only_a_key_of_eight_characters_or_more_is_masked_in_errors() -> None:
    """S19: to mask every `x` would leave "does not e…ist" of an error."""
    for key, message in (("x", "the model does not exist"), ("sk-4711x", "no model for …")):
        async with serving(refusal(404, {"message": message.replace("…", key)})) as server:
            model = open_model("openai/gpt-5", ModelSettings(keys={"openai": key}, base_urls={"openai": server.url}))
            with pytest.raises(ModelError) as caught:
                await asked(model)
            await model.aclose()
        assert message in caught.value.what
