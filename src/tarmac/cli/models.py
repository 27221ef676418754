"""`tarmac models`: what the providers offer, with context window and price."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tarmac.cli.exit_status import complain
from tarmac.cli.parser import parse
from tarmac.cli.shutdown import run
from tarmac.config import load_config
from tarmac.errors import BadRequest, nearest
from tarmac.models.model_catalog import PROVIDERS, context_window, model_info, price_per_million
from tarmac.models.offered import LOCAL, OfferedModel, find_local, list_models
from tarmac.models.provider import ModelError, ModelSettings
from tarmac.show.look import Look, cut, look_of, one_line, padded
from tarmac.show.summary import tokens


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as the list shows it."""

    spec: str
    window: int | None
    price: tuple[float, float] | None  # US dollars for a million tokens in and out


def main(arguments: list[str]) -> int:
    """List them; the exit code."""
    given, words = parse("models", arguments)
    if words:
        raise BadRequest(f"`tarmac models` takes no `{words[0]}`", hint=f"tarmac models --provider {words[0]}")
    provider = given["provider"][-1] if "provider" in given else ""
    if provider and provider not in PROVIDERS:
        close = nearest(provider, PROVIDERS)
        hint = f"did you mean `{close}`?" if close else ", ".join(PROVIDERS)
        raise BadRequest(f"there is no provider `{provider}`", hint=hint)
    if "base-url" in given and not provider:
        raise BadRequest("--base-url needs --provider", hint="--provider compatible is for a server of your own")
    config = load_config(Path.cwd(), os.environ)
    settings = config.models_for(f"{provider}/" if provider else "")
    if "base-url" in given:
        settings = ModelSettings(keys=settings.keys, base_urls={**settings.base_urls, provider: given["base-url"][-1]})
    return run(lambda stop: _list([provider] if provider else [], settings, as_json="json" in given))


async def _list(providers: list[str], settings: ModelSettings, *, as_json: bool) -> int:
    look = look_of(sys.stdout, os.environ)
    groups, failures = await _offered(providers, settings)
    for offered in groups:
        for listed in await asyncio.to_thread(_described, offered, settings):
            print(json.dumps(_record(listed)) if as_json else _line(listed, look))
    for each in failures:
        complain(each.what, hint=each.hint)
    if not groups and not failures:
        hint = "set ANTHROPIC_API_KEY or OPENAI_API_KEY, start Ollama, or call `tarmac`: it asks for a key"
        return complain("there is no key and no server on this machine", hint=hint, code=1)
    return 1 if failures else 0


async def _offered(providers: list[str], settings: ModelSettings) -> tuple[list[list[OfferedModel]], list[ModelError]]:
    """What these providers offer, and who failed. None given: servers on this machine, and providers with a key."""
    failures: list[ModelError] = []
    groups = []
    if not providers:
        groups = list((await find_local(settings)).values())
        providers = [
            name for name, each in PROVIDERS.items() if name not in LOCAL and each.key and _known(name, settings)
        ]
    for name in providers:
        try:
            groups.append(await list_models(PROVIDERS[name], settings))
        except ModelError as error:
            failures.append(error)
    return groups, failures


async def model_names(settings: ModelSettings) -> list[str]:
    """The models that can be used now, as `provider/name`."""
    groups, _ = await _offered([], settings)
    return [each.spec for offered in groups for each in offered]


def _known(name: str, settings: ModelSettings) -> bool:
    return name in settings.keys or name in settings.base_urls


def _described(offered: list[OfferedModel], settings: ModelSettings) -> list[ListedModel]:
    """With what the provider does not say. Slow: the prices take 0.3 s to import."""
    return [
        ListedModel(
            each.spec,
            each.window or model_info(each.spec, settings).context_window or context_window(each.spec),
            price_per_million(each.spec),
        )
        for each in offered
    ]


def _record(listed: ListedModel) -> dict[str, object]:
    into, out = listed.price or (None, None)
    return {"model": listed.spec, "context_window": listed.window, "price_input": into, "price_output": out}


def _line(listed: ListedModel, look: Look) -> str:
    window = f"{tokens(listed.window)} tokens" if listed.window else ""
    price = f"${listed.price[0]:g} in, ${listed.price[1]:g} out" if listed.price else ""
    name = one_line(listed.spec)
    if not look.live:
        return f"{name}\t{window}\t{price}"
    room = look.columns - 1 - 16 - 24
    line = f"{padded(name, room) if room >= 30 else name} {window:>15} {price:>23}".rstrip()
    return cut(line, look.columns - 1)
