"""The providers known by name: where they are, and which variable holds their key.

Any other server that speaks OpenAI's language is `compatible/NAME` with a base URL of its own.
"""

import importlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tarmac.errors import BadRequest, FileUnavailable
from tarmac.models.address import address, usable
from tarmac.models.catalog import described
from tarmac.models.provider import Model, ModelError, ModelSettings


@dataclass(frozen=True, slots=True)
class Provider:
    """A place where models are."""

    name: str
    base_url: str | None  # None: must be given
    key: str = ""  # the variable that holds it
    needs_key: bool = True
    dialect: Literal["openai", "anthropic", "scripted"] = "openai"
    url: str = ""  # a variable that moves it elsewhere


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(
            "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", True, "anthropic", "ANTHROPIC_BASE_URL"
        ),
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", url="OPENAI_BASE_URL"),
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
        Provider("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        Provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
        Provider("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
        Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        Provider("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        Provider("ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY", needs_key=False, url="OLLAMA_BASE_URL"),
        Provider("lmstudio", "http://localhost:1234/v1", "LMSTUDIO_API_KEY", needs_key=False, url="LMSTUDIO_BASE_URL"),
        Provider("llamacpp", "http://localhost:8080/v1", "LLAMACPP_API_KEY", needs_key=False, url="LLAMACPP_BASE_URL"),
        Provider("vllm", "http://localhost:8000/v1", "VLLM_API_KEY", needs_key=False, url="VLLM_BASE_URL"),
        Provider("compatible", None, "COMPATIBLE_API_KEY", needs_key=False, url="COMPATIBLE_BASE_URL"),
        Provider("scripted", None, needs_key=False, dialect="scripted"),
    )
}

# None of these may reach a command that an agent runs.
KEY_VARIABLES = frozenset(provider.key for provider in PROVIDERS.values() if provider.key)


def keys_from(environ: Mapping[str, str]) -> dict[str, str]:
    """The keys an environment holds, by provider."""
    found = {name: environ.get(provider.key, "").strip() for name, provider in PROVIDERS.items() if provider.key}
    return {name: key for name, key in found.items() if key}


def base_urls_from(environ: Mapping[str, str]) -> dict[str, str]:
    """Where an environment says providers are."""
    found = {name: environ.get(provider.url, "").strip() for name, provider in PROVIDERS.items() if provider.url}
    return {name: url for name, url in found.items() if url}


def split(spec: str) -> tuple[Provider, str]:
    """ "provider/name" → who, and the name there (which may have slashes of its own)."""
    who, _, name = spec.partition("/")
    provider = PROVIDERS.get(who)
    if provider is None:
        from tarmac.models.spelling import meant

        known = f"a model is named provider/name; providers: {', '.join(PROVIDERS)}"
        close = meant(spec)
        raise ModelError(
            f"no provider of models is called {who!r}",
            kind="not_found",
            hint=f"did you mean `{close}`?" if close else known,
        )
    if not name:
        raise BadRequest(f"{spec!r} names no model", hint=f"write {who}/NAME")
    return provider, name


def opened(spec: str, settings: ModelSettings) -> Model:
    """See `provider.open_model`."""
    model = _model(spec, settings)
    if model.info.native_tools:
        return model
    from tarmac.models.xmlcalls import XmlCalls

    return XmlCalls(model)


def _model(spec: str, settings: ModelSettings) -> Model:
    provider, name = split(spec)
    if provider.dialect == "scripted":
        from tarmac.models.script import read_script
        from tarmac.models.scripted import Scripted

        path = Path(name).expanduser()
        if not path.exists():
            raise FileUnavailable(
                f"the script {path} can't be read: there is none", hint="--script FILE says which to play"
            )
        return Scripted(read_script(path))
    base_url = settings.base_urls.get(provider.name) or provider.base_url
    key = usable(settings.keys.get(provider.name, ""), provider.name, provider.key)
    if not base_url:
        raise ModelError(
            f"nobody said where {spec} is", kind="not_found", hint=f"give a base URL, or set {provider.url}"
        )
    if not key and provider.needs_key and provider.name not in settings.base_urls:
        raise ModelError(f"there is no key for {provider.name}", kind="auth", hint=f"set {provider.key}")
    base_url = address(base_url, dialect=provider.dialect, usual=provider.base_url)
    if provider.dialect == "anthropic":
        from tarmac.models.anthropic import Anthropic

        return Anthropic(described(spec, settings, caching=True), base_url=base_url, key=key, settings=settings)
    if provider.name == "openai" and base_url == provider.base_url:
        from tarmac.models.openai_responses import Responses

        return Responses(described(spec, settings), base_url=base_url, key=key, settings=settings)
    from tarmac.models.openai import OpenAI

    return OpenAI(described(spec, settings), base_url=base_url, key=key, settings=settings)


def warmed(spec: str) -> None:
    """See `provider.warm`."""
    provider, _ = split(spec)
    modules = {"scripted": (), "anthropic": ("anthropic", "genai_prices"), "openai": ("openai", "genai_prices")}
    for module in modules[provider.dialect]:
        threading.Thread(target=importlib.import_module, args=[module], daemon=True).start()
