"""Open a model by its name.

open_model("anthropic/claude-…", settings) → Model · warm("anthropic/claude-…")
"""

import importlib
import threading
from pathlib import Path

from tarmac.errors import FileUnavailable
from tarmac.models.anthropic import Anthropic
from tarmac.models.endpoint import checked_key, normalized_url
from tarmac.models.model_catalog import model_info, parse_spec
from tarmac.models.openai import ChatCompletions
from tarmac.models.openai_responses import Responses
from tarmac.models.provider import Model, ModelError, ModelSettings
from tarmac.models.scripted import Scripted, read_script
from tarmac.models.xml_calls import XmlCalls


def open_model(spec: str, settings: ModelSettings | None = None) -> Model:
    """The model "provider/name", with tool calls whether or not they are native. It connects with its first request.

    ModelError "not_found" if the provider is unknown, "auth" if a required key is missing.
    """
    model = _open(spec, settings or ModelSettings())
    return model if model.info.native_tools else XmlCalls(model)


def _open(spec: str, settings: ModelSettings) -> Model:
    provider, name = parse_spec(spec)
    if provider.dialect == "scripted":
        path = Path(name).expanduser()
        if not path.exists():
            raise FileUnavailable(f"the script {path} does not exist", hint="--script FILE names the script")
        return Scripted(read_script(path))
    base_url = settings.base_urls.get(provider.name) or provider.base_url
    key = checked_key(settings.keys.get(provider.name, ""), provider.name, provider.key)
    if not base_url:
        raise ModelError(
            f"the address of {spec} is not set", kind="not_found", hint=f"use --base-url URL, or set {provider.url}"
        )
    if not key and provider.needs_key and provider.name not in settings.base_urls:
        raise ModelError(f"there is no key for {provider.name}", kind="auth", hint=f"set {provider.key}")
    base_url = normalized_url(base_url, dialect=provider.dialect, default=provider.base_url)
    if provider.dialect == "anthropic":
        return Anthropic(model_info(spec, settings, caching=True), base_url=base_url, key=key, settings=settings)
    info = model_info(spec, settings)
    if provider.name == "openai" and base_url == provider.base_url:
        return Responses(info, base_url=base_url, key=key, settings=settings)
    return ChatCompletions(info, base_url=base_url, key=key, settings=settings)


def warm(spec: str) -> None:
    """Import what `spec` needs in a background thread, so that the first request does not wait for it."""
    provider, _ = parse_spec(spec)
    modules = {"scripted": (), "anthropic": ("anthropic", "genai_prices"), "openai": ("openai", "genai_prices")}
    for module in modules[provider.dialect]:
        try:
            threading.Thread(target=importlib.import_module, args=[module], daemon=True).start()
        except RuntimeError:  # the system allows no more threads; imported when first needed
            return
