"""Known providers, and the context windows and prices of their models.

PROVIDERS · ModelSize, from our own short list · price(model, usage), from the data of genai-prices

Nothing is downloaded: the data is that of the installed genai-prices, which takes 0.3 s to import. An unknown price or
window is None, never 0 and never a guess.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from tarmac.errors import BadRequest, nearest
from tarmac.models.messages import Usage
from tarmac.models.provider import ModelError, ModelInfo, ModelSettings

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo as PricesEntry


@dataclass(frozen=True, slots=True)
class Provider:
    """A service or a local server that offers models."""

    name: str
    base_url: str | None  # None: the user must give one
    key: str = ""  # the environment variable with the key
    needs_key: bool = True
    dialect: Literal["openai", "anthropic", "scripted"] = "openai"
    url: str = ""  # the environment variable with another base URL
    default: str = ""  # the model that is offered first; "": the first one that the server has


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(
            name="anthropic",
            base_url="https://api.anthropic.com",
            key="ANTHROPIC_API_KEY",
            dialect="anthropic",
            url="ANTHROPIC_BASE_URL",
            default="claude-opus-5",
        ),
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", url="OPENAI_BASE_URL", default="gpt-5.5"),
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", default="anthropic/claude-opus-5"),
        Provider(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            default="gemini-2.5-pro",
        ),
        Provider("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", default="deepseek-chat"),
        Provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", default="mistral-large-latest"),
        Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", default="openai/gpt-oss-120b"),
        Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY", default="grok-4.7"),
        Provider("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", default="kimi-k2.7-code"),
        Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", default="openai/gpt-oss-120b"),
        Provider(
            "fireworks",
            "https://api.fireworks.ai/inference/v1",
            "FIREWORKS_API_KEY",
            default="accounts/fireworks/models/gpt-oss-120b",
        ),
        Provider("ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY", needs_key=False, url="OLLAMA_BASE_URL"),
        Provider("lmstudio", "http://localhost:1234/v1", "LMSTUDIO_API_KEY", needs_key=False, url="LMSTUDIO_BASE_URL"),
        Provider("llamacpp", "http://localhost:8080/v1", "LLAMACPP_API_KEY", needs_key=False, url="LLAMACPP_BASE_URL"),
        Provider("vllm", "http://localhost:8000/v1", "VLLM_API_KEY", needs_key=False, url="VLLM_BASE_URL"),
        Provider("compatible", None, "COMPATIBLE_API_KEY", needs_key=False, url="COMPATIBLE_BASE_URL"),
        Provider("scripted", None, needs_key=False, dialect="scripted"),
    )
}

# No command of an agent may receive one of these.
KEY_VARIABLES = frozenset(provider.key for provider in PROVIDERS.values() if provider.key)

# The provider's name in genai-prices. Local servers are not listed there.
_GENAI_PRICES_NAMES = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openrouter": "openrouter",
    "gemini": "google",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "groq": "groq",
    "xai": "x-ai",
    "moonshot": "moonshotai",
    "together": "together",
    "fireworks": "fireworks",
}


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The limits of a model, in tokens, and whether it accepts images."""

    window: int | None = None
    output: int | None = None
    images: bool = False


# By prefix of the model's name; the longest match wins. Anthropic requires an output limit in every request, so all of
# its families are listed.
_SIZES = {
    "claude-": ModelSize(200_000, 32_000, True),
    "claude-3-": ModelSize(200_000, 4_096, True),
    "claude-3-5-": ModelSize(200_000, 8_192, True),
    "claude-3-7-": ModelSize(200_000, 64_000, True),
    "claude-haiku-4-": ModelSize(200_000, 64_000, True),
    "claude-haiku-5-": ModelSize(1_000_000, 64_000, True),
    "claude-sonnet-4": ModelSize(200_000, 64_000, True),
    "claude-sonnet-4-6": ModelSize(1_000_000, 64_000, True),
    "claude-sonnet-5": ModelSize(1_000_000, 64_000, True),
    "claude-opus-4": ModelSize(200_000, 32_000, True),
    "claude-opus-4-5": ModelSize(200_000, 64_000, True),
    "claude-opus-4-6": ModelSize(1_000_000, 64_000, True),
    "claude-opus-4-7": ModelSize(1_000_000, 64_000, True),
    "claude-opus-4-8": ModelSize(1_000_000, 64_000, True),
    "claude-opus-5": ModelSize(1_000_000, 64_000, True),
    "claude-fable-5": ModelSize(1_000_000, 64_000, True),
    "gpt-4o": ModelSize(128_000, 16_384, True),
    "gpt-4.1": ModelSize(1_000_000, 32_768, True),
    "gpt-5": ModelSize(400_000, 128_000, True),
    "gpt-5.4": ModelSize(1_050_000, 128_000, True),
    "gpt-5.4-mini": ModelSize(400_000, 128_000, True),
    "gpt-5.4-nano": ModelSize(400_000, 128_000, True),
    "gpt-5.5": ModelSize(1_000_000, 128_000, True),
    "gpt-5.6": ModelSize(1_050_000, 128_000, True),
    "gpt-6": ModelSize(1_050_000, 128_000, True),
    "gpt-oss": ModelSize(131_072, 131_072),
    "o1": ModelSize(200_000, 100_000, True),
    "o3": ModelSize(200_000, 100_000, True),
    "o4": ModelSize(200_000, 100_000, True),
    "gemini-": ModelSize(1_000_000, 65_536, True),
    "gemma-3": ModelSize(None, None, True),
    "gemma3": ModelSize(None, None, True),
    "grok-4": ModelSize(256_000, None, True),
    "llava": ModelSize(None, None, True),
    "pixtral": ModelSize(None, None, True),
    "qwen2.5vl": ModelSize(None, None, True),
    "qwen3-vl": ModelSize(None, None, True),
}

# Which provider offers a family of models, by prefix of the model's name. Used for "did you mean".
_VENDORS = {
    "claude": "anthropic",
    "gpt-oss": "ollama",
    "gpt": "openai",
    "chatgpt": "openai",
    "codex": "openai",
    "gemini": "gemini",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "magistral": "mistral",
    "devstral": "mistral",
    "codestral": "mistral",
    "grok": "xai",
    "kimi": "moonshot",
    "llama": "ollama",
    "qwen": "ollama",
    "gemma": "ollama",
    "phi": "ollama",
}
_ALIASES = {"google": "gemini", "claude": "anthropic", "chatgpt": "openai", "grok": "xai", "x-ai": "xai"}
_REASONERS = re.compile(r"o[1-9](?:-|$)")  # OpenAI's o1, o3, o4-mini


def keys_from(environ: Mapping[str, str]) -> dict[str, str]:
    """The keys in an environment, by provider."""
    found = {name: environ.get(provider.key, "").strip() for name, provider in PROVIDERS.items() if provider.key}
    return {name: key for name, key in found.items() if key}


def base_urls_from(environ: Mapping[str, str]) -> dict[str, str]:
    """The base URLs in an environment, by provider."""
    found = {name: environ.get(provider.url, "").strip() for name, provider in PROVIDERS.items() if provider.url}
    return {name: url for name, url in found.items() if url}


def parse_spec(spec: str) -> tuple[Provider, str]:
    """ "provider/name" → the provider and the name. The name may contain slashes."""
    prefix, _, name = spec.partition("/")
    provider = PROVIDERS.get(prefix)
    if provider is None:
        close = nearest_spec(spec)
        providers = f"use provider/name, with one of these providers: {', '.join(PROVIDERS)}"
        raise ModelError(
            f"unknown provider {prefix!r}",
            kind="not_found",
            hint=f"did you mean `{close}`?" if close else providers,
        )
    if not name:
        raise BadRequest(f"{spec!r} does not name a model", hint=f"use {prefix}/NAME")
    return provider, name


def nearest_spec(spec: str) -> str:
    """The "provider/name" that a wrong spec probably means, such as "openai:gpt-5" or "opnai/gpt-5"; or ""."""
    spec = spec.strip()
    prefix, separator, name = _split(spec)
    if not separator:
        family = next((each for each in _VENDORS if spec.lower().startswith(each)), "")
        provider = _VENDORS.get(family, "openai" if _REASONERS.match(spec.lower()) else "")
        return f"{provider}/{spec}" if provider and spec.lower() not in PROVIDERS else ""
    lower = prefix.strip().lower()
    close = _ALIASES.get(lower) or nearest(lower, PROVIDERS)
    found = f"{close}/{name.strip()}" if close and name.strip() else ""
    return found if found != spec else ""


def _split(spec: str) -> tuple[str, str, str]:
    """Split at the slash, or at the character that was written instead."""
    for separator in ("/", ":", "\\", " "):
        prefix, found, name = spec.partition(separator)
        known = prefix.strip().lower() in PROVIDERS or prefix.strip().lower() in _ALIASES
        if found and (separator == "/" or known):
            return prefix, found, name
    return spec, "", ""


def model_info(spec: str, settings: ModelSettings, *, caching: bool = False) -> ModelInfo:
    """What is known about "provider/name" without an import of genai-prices. Settings win."""
    provider, _, name = spec.partition("/")
    size = _size(name)
    hosted = provider in _GENAI_PRICES_NAMES  # the window of a local server depends on its configuration
    return ModelInfo(
        id=spec,
        context_window=settings.context_window or (size.window if hosted else None),
        max_output=settings.max_output or size.output,
        images=size.images if settings.images is None else settings.images,
        native_tools=settings.native_tools is not False,
        caching=caching,
        price=settings.price,
    )


def _size(name: str) -> ModelSize:
    """By the last part of the name: OpenRouter has "anthropic/claude-…"."""
    plain = name.rpartition("/")[2].lower()
    if plain.startswith("claude-"):
        plain = plain.replace(".", "-")  # OpenRouter writes 4.5, Anthropic 4-5
    prefixes = [prefix for prefix in _SIZES if plain.startswith(prefix)]
    return _SIZES[max(prefixes, key=len)] if prefixes else ModelSize()


class _Listed(NamedTuple):
    """A model in the data of genai-prices."""

    provider: str
    name: str
    entry: "PricesEntry"


def _look_up(spec: str) -> _Listed | None:
    provider, _, name = spec.partition("/")
    listed_as = _GENAI_PRICES_NAMES.get(provider)
    if listed_as is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, entry = get_snapshot().find_provider_model(name, None, listed_as, None)
    except LookupError:
        return None
    return _Listed(listed_as, name, entry)


def context_window(spec: str) -> int | None:
    """The context window in genai-prices, which this imports."""
    listed = _look_up(spec)
    return listed.entry.context_window if listed else None


def price_per_million(spec: str) -> tuple[float, float] | None:
    """US dollars for a million tokens in and out, from genai-prices; None if they are unknown."""
    million = 1_000_000
    into, out = price(spec, Usage(input=million)), price(spec, Usage(output=million))
    return None if into is None or out is None else (into, out)


def price(model: ModelInfo | str, usage: Usage) -> float | None:
    """The cost of `usage` in US dollars; None if it is unknown, which is never 0.

    Fast after the first response or after `warm`. Before, it may import genai-prices: call it in a thread.
    """
    if isinstance(model, ModelInfo) and model.price is not None:
        return model.price.of(usage)
    listed = _look_up(model.id if isinstance(model, ModelInfo) else model)
    if listed is None:
        return None
    from genai_prices import Usage as CountedUsage
    from genai_prices import calc_price

    counted = CountedUsage(
        input_tokens=usage.input + usage.cache_reads + usage.cache_writes,
        cache_read_tokens=usage.cache_reads,
        cache_write_tokens=usage.cache_writes,
        output_tokens=usage.output,
    )
    found = calc_price(counted, listed.name, provider_id=listed.provider)
    prices = found.model_price
    if prices.input_mtok is None or prices.output_mtok is None:
        return None
    return float(found.total_price)
