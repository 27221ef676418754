"""PURE: what somebody meant who wrote a model's name another way: "gpt-5", "openai:gpt-5", "Anthropic/…", "opnai/…"."""

import re
from collections.abc import Container

from tarmac.nearest import nearest

# By the beginning of a name: who has such models. The names are short-lived, their families less so.
_FAMILIES = {
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


def meant(spec: str) -> str:
    """The nearest right "provider/name"; empty when nobody knows."""
    from tarmac.models.known import PROVIDERS

    spec = spec.strip()
    who, mark, name = _parts(spec, PROVIDERS)
    if not mark:
        family = next((each for each in _FAMILIES if spec.lower().startswith(each)), "")
        provider = _FAMILIES.get(family, "openai" if _REASONERS.match(spec.lower()) else "")
        return f"{provider}/{spec}" if provider and spec.lower() not in PROVIDERS else ""
    low = who.strip().lower()
    close = _ALIASES.get(low) or nearest(low, PROVIDERS)
    found = f"{close}/{name.strip()}" if close and name.strip() else ""
    return found if found != spec else ""


def _parts(spec: str, providers: Container[str]) -> tuple[str, str, str]:
    """Before and after what was written for the slash."""
    for mark in ("/", ":", "\\", " "):
        who, found, name = spec.partition(mark)
        known = who.strip().lower() in providers or who.strip().lower() in _ALIASES
        if found and (mark == "/" or known):
            return who, found, name
    return spec, "", ""
