"""What models hold and cost, as far as it is known: a short list of our own, and the data of genai-prices.

known(id) is our own list, at once · looked_up(id) asks genai-prices (0.3 s to import) · priced(id, usage)

Nothing is fetched: the data is that of the installed version. What nobody knows is None, never 0 and never a guess.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tarmac.models.messages import Usage
from tarmac.models.provider import ModelInfo, ModelSettings

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo as Priced

# Where a provider has another name in genai-prices. Those that run on one's own machine are not there at all.
PRICED_AS = {
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
class Size:
    """Tokens a model takes and gives, and whether it sees pictures."""

    window: int | None = None
    output: int | None = None
    images: bool = False


# By the beginning of a name; the longest wins. Anthropic wants a limit for every answer, so its families are here.
FAMILIES = {
    "claude-": Size(200_000, 32_000, True),
    "claude-3-": Size(200_000, 4_096, True),
    "claude-3-5-": Size(200_000, 8_192, True),
    "claude-3-7-": Size(200_000, 64_000, True),
    "claude-haiku-4-": Size(200_000, 64_000, True),
    "claude-haiku-5-": Size(1_000_000, 64_000, True),
    "claude-sonnet-4": Size(200_000, 64_000, True),
    "claude-sonnet-4-6": Size(1_000_000, 64_000, True),
    "claude-sonnet-5": Size(1_000_000, 64_000, True),
    "claude-opus-4": Size(200_000, 32_000, True),
    "claude-opus-4-5": Size(200_000, 64_000, True),
    "claude-opus-4-6": Size(1_000_000, 64_000, True),
    "claude-opus-4-7": Size(1_000_000, 64_000, True),
    "claude-opus-4-8": Size(1_000_000, 64_000, True),
    "claude-opus-5": Size(1_000_000, 64_000, True),
    "claude-fable-5": Size(1_000_000, 64_000, True),
    "gpt-4o": Size(128_000, 16_384, True),
    "gpt-4.1": Size(1_000_000, 32_768, True),
    "gpt-5": Size(400_000, 128_000, True),
    "gpt-5.4": Size(1_050_000, 128_000, True),
    "gpt-5.4-mini": Size(400_000, 128_000, True),
    "gpt-5.4-nano": Size(400_000, 128_000, True),
    "gpt-5.5": Size(1_000_000, 128_000, True),
    "gpt-5.6": Size(1_050_000, 128_000, True),
    "gpt-6": Size(1_050_000, 128_000, True),
    "gpt-oss": Size(131_072, 131_072),
    "o1": Size(200_000, 100_000, True),
    "o3": Size(200_000, 100_000, True),
    "o4": Size(200_000, 100_000, True),
    "gemini-": Size(1_000_000, 65_536, True),
    "gemma-3": Size(None, None, True),
    "gemma3": Size(None, None, True),
    "grok-4": Size(256_000, None, True),
    "llava": Size(None, None, True),
    "pixtral": Size(None, None, True),
    "qwen2.5vl": Size(None, None, True),
    "qwen3-vl": Size(None, None, True),
}
UNKNOWN = Size()


class Match(NamedTuple):
    """A model as genai-prices has it."""

    provider: str
    name: str
    model: "Priced"


def known(name: str) -> Size:
    """What our own list says of a model, by the last part of its name ("anthropic/claude-…" at OpenRouter)."""
    plain = name.rpartition("/")[2].lower()
    if plain.startswith("claude-"):
        plain = plain.replace(".", "-")  # OpenRouter's way to write 4-5
    fits = [family for family in FAMILIES if plain.startswith(family)]
    return FAMILIES[max(fits, key=len)] if fits else UNKNOWN


def described(spec: str, settings: ModelSettings, *, caching: bool = False) -> ModelInfo:
    """What is known of "provider/name" without importing anything; settings win."""
    provider, _, name = spec.partition("/")
    size = known(name)
    elsewhere = provider in PRICED_AS  # a server of one's own holds as much as it was told to, and cuts off the rest
    return ModelInfo(
        id=spec,
        context_window=settings.context_window or (size.window if elsewhere else None),
        max_output=settings.max_output or size.output,
        images=size.images if settings.images is None else settings.images,
        native_tools=settings.native_tools is not False,
        caching=caching,
        price=settings.price,
    )


def looked_up(spec: str) -> Match | None:
    """The model in genai-prices' data, if it is there. Imports it."""
    provider, _, name = spec.partition("/")
    there = PRICED_AS.get(provider)
    if there is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, model = get_snapshot().find_provider_model(name, None, there, None)
    except LookupError:
        return None
    return Match(there, name, model)


def window(spec: str) -> int | None:
    """The context window that genai-prices knows of. Imports it."""
    match = looked_up(spec)
    return match.model.context_window if match else None


def priced(spec: str, usage: Usage) -> float | None:
    """What `usage` costs in US dollars at list prices, or None."""
    match = looked_up(spec)
    if match is None:
        return None
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(
        input_tokens=usage.input + usage.cache_reads + usage.cache_writes,
        cache_read_tokens=usage.cache_reads,
        cache_write_tokens=usage.cache_writes,
        output_tokens=usage.output,
    )
    found = calc_price(counted, match.name, provider_id=match.provider)
    prices = found.model_price
    if prices.input_mtok is None or prices.output_mtok is None:
        return None
    return float(found.total_price)
