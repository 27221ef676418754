"""Ask providers which models they offer, and find servers on this machine.

list_models(provider, settings) → OfferedModel, …        GET BASE_URL/models
find_local(settings) → {provider: OfferedModel, …}       Ollama, LM Studio, llama.cpp and vLLM, all at once

The standard library asks: an SDK takes a second to import. Redirects are not followed, because they would carry the
key to another host.
"""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO

from tarmac.models.endpoint import Endpoint, checked_key, is_local, normalized_url
from tarmac.models.model_catalog import PROVIDERS, Provider
from tarmac.models.provider import ModelError, ModelSettings

LARGEST = 8 << 20  # bytes of a list
PATIENCE = 10.0  # seconds for a provider
LOCAL_PATIENCE = 1.5  # seconds for a server on this machine
LOCAL = ("ollama", "lmstudio", "llamacpp", "vllm")
_WINDOWS = ("context_length", "context_window", "max_model_len", "max_context_length", "inputTokenLimit")


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that a provider offers."""

    spec: str  # "provider/name"
    window: int | None = None  # tokens, if the provider says so


async def list_models(provider: Provider, settings: ModelSettings, *, patience: float = PATIENCE) -> list[OfferedModel]:
    """What it offers, in its own order; ModelError if it does not answer, or refuses the key."""
    return await asyncio.to_thread(_ask, provider, settings, patience)


async def find_local(settings: ModelSettings) -> dict[str, list[OfferedModel]]:
    """The servers on this machine that answer, and their models."""

    async def ask(name: str) -> list[OfferedModel]:
        try:
            return await list_models(PROVIDERS[name], settings, patience=LOCAL_PATIENCE)
        except ModelError:
            return []

    found = await asyncio.gather(*(ask(name) for name in LOCAL))
    return {name: models for name, models in zip(LOCAL, found, strict=True) if models}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def _ask(provider: Provider, settings: ModelSettings, patience: float) -> list[OfferedModel]:
    path = "/v1/models?limit=1000" if provider.dialect == "anthropic" else "/models"
    return _read(provider.name, ask_json(provider, settings, path, what="a list of models", patience=patience))


def ask_json(
    provider: Provider,
    settings: ModelSettings,
    path: str,
    body: Mapping[str, object] | None = None,
    *,
    what: str,
    patience: float,
    largest: int = LARGEST,
) -> object:
    """What a provider answers at a path below its base URL. Blocks. ModelError says that it did not give `what`."""
    base_url = settings.base_urls.get(provider.name) or provider.base_url
    key = checked_key(settings.keys.get(provider.name, ""), provider.name, provider.key)
    if not base_url:
        raise ModelError(
            f"the address of {provider.name} is not set",
            kind="not_found",
            hint=f"use --base-url URL, or set {provider.url}" if provider.url else f"a script has not {what}",
        )
    if not key and provider.needs_key and provider.name not in settings.base_urls:
        raise ModelError(f"there is no key for {provider.name}", kind="auth", hint=f"set {provider.key}")
    base_url = normalized_url(base_url, dialect=provider.dialect, default=provider.base_url)
    endpoint = Endpoint.of(provider.name, base_url=base_url, key=key)
    proxies = urllib.request.ProxyHandler({} if is_local(base_url) else None)
    opener = urllib.request.build_opener(proxies, _NoRedirects)
    data = None if body is None else json.dumps(body).encode()
    headers = _headers(provider, key) | ({} if data is None else {"Content-Type": "application/json"})
    try:
        request = urllib.request.Request(base_url + path, data=data, headers=headers)
        with opener.open(request, timeout=patience) as response:
            return json.loads(response.read(largest))
    except urllib.error.HTTPError as error:
        with error:
            refused = error.code in (401, 403)
            said = "" if body is None else endpoint.mask(_said(error.read(2_000)))
        raise ModelError(
            f"{provider.name} {'refuses the key' if refused else f'does not give {what}'} (HTTP {error.code}){said}",
            kind="auth" if refused else "not_found",
            status=error.code,
            hint=f"check {provider.key}" if refused else f"is {endpoint.base_url} the right address?",
        ) from None
    except (OSError, ValueError, HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise ModelError(
            endpoint.mask(f"{provider.name} at {endpoint.base_url} does not answer with {what}: {why}"),
            kind="connection",
            hint="is the server running, and the address right?",
        ) from None


def _said(body: bytes) -> str:
    """What a refusal says in words, behind a colon."""
    try:
        text = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {text[:300]}" if isinstance(text, str) and text.isprintable() else ""


def _headers(provider: Provider, key: str) -> dict[str, str]:
    common = {"Accept": "application/json", "User-Agent": "tarmac"}
    if not key:
        return common
    if provider.dialect == "anthropic":
        return {**common, "x-api-key": key, "anthropic-version": "2023-06-01"}
    return {**common, "Authorization": f"Bearer {key}"}


def _read(provider: str, data: object) -> list[OfferedModel]:
    """PURE: the models in an answer, in whatever dialect."""
    listed = data.get("data") or data.get("models") if isinstance(data, Mapping) else data
    found: dict[str, OfferedModel] = {}
    for each in listed if isinstance(listed, list) else []:
        name = each.get("id") or each.get("name") if isinstance(each, Mapping) else None
        if isinstance(name, str) and name.strip() and name.isprintable():
            name = name.removeprefix("models/") if provider == "gemini" else name
            windows = [each.get(key) for key in _WINDOWS]
            window = next((value for value in windows if isinstance(value, int) and value > 0), None)
            found[name] = OfferedModel(f"{provider}/{name}", window)
    return list(found.values())
