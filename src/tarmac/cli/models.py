"""`tarmac models`: what the providers offer, with context window and price. And the choice where no model is set.

set_up(): keys in the environment, servers on this machine → a list → the person's choice → config.toml (mode 0600)
"""

import asyncio
import getpass
import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tarmac.cli.exit_status import complain
from tarmac.cli.export import write_whole
from tarmac.cli.parser import parse
from tarmac.cli.shutdown import run
from tarmac.config import Config, load_config
from tarmac.config.load import user_file
from tarmac.errors import BadRequest, TarmacError, nearest
from tarmac.models.model_catalog import (
    PROVIDERS,
    Provider,
    context_window,
    keys_from,
    model_info,
    parse_spec,
    price_per_million,
)
from tarmac.models.offered import LOCAL, OfferedModel, find_local, list_models
from tarmac.models.provider import ModelError, ModelSettings
from tarmac.paths import shown
from tarmac.show.look import Look, cut, look_of, one_line, padded, wrapped
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


# The choice, where no model is set

MOST_LOCAL = 5  # models of one server that are offered
NAMES = {"ollama": "Ollama", "lmstudio": "LM Studio", "llamacpp": "llama.cpp", "vllm": "vLLM"}
HOSTED = tuple(name for name, each in PROVIDERS.items() if each.needs_key)


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model that can be used now, and why."""

    spec: str
    why: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the person chose."""

    model: str
    key: str = ""  # typed by them; "": there is one already, or none is needed


def set_up(config: Config, environ: Mapping[str, str]) -> Path:
    """Let the person choose a model and keep that; return the file. BadRequest when they leave."""
    _say("No model is set up yet. Looking for keys and for servers on this machine …")
    settings = config.models_for("")
    offers = offered(settings, environ, asyncio.run(find_local(settings)))
    try:
        chosen = _choose(offers, settings)
    except (EOFError, KeyboardInterrupt):
        raise BadRequest("no model was chosen", hint="`tarmac demo` shows Tarmac without one") from None
    file = user_file(config.user_folder)
    keep(file, chosen)
    _say(f"  Wrote {shown(file)}. `tarmac models` lists more models; --model and /model change it.\n")
    return file


def offered(
    settings: ModelSettings, environ: Mapping[str, str], local: Mapping[str, Sequence[OfferedModel]]
) -> list[ModelOffer]:
    """PURE: the models that need nothing more, best first."""
    found = []
    for name, provider in PROVIDERS.items():
        if name not in LOCAL and name in settings.keys and provider.default:
            where = f"{provider.key} is set" if name in keys_from(environ) else "its key is in config.toml"
            found.append(ModelOffer(f"{name}/{provider.default}", where))
    for name, models in local.items():
        found += [ModelOffer(each.spec, f"{NAMES[name]} on this machine") for each in models[:MOST_LOCAL]]
    return found


def _choose(offers: Sequence[ModelOffer], settings: ModelSettings) -> Chosen:
    other = len(offers) + 1
    if not offers:
        _say("  None was found. Start Ollama or another server, or use a key. Ctrl-D leaves.")
    for number, offer in enumerate(offers, 1):
        _say(f"  {number:>2}  {padded(one_line(offer.spec), 40)} {offer.why}")
    _say(f"  {other:>2}  {padded('another provider', 40)} with a key of yours\n")
    names = [offer.spec for offer in offers]
    while True:
        line = _typed("Which one? A number, or provider/name (Enter: 1) ", names) or "1"
        try:
            if not line.isdecimal():
                provider, _ = parse_spec(line)
                return Chosen(line, "" if _has_key(provider, settings) else _key(provider, settings)[0])
            if 1 <= int(line) <= len(offers):
                return Chosen(offers[int(line) - 1].spec)
            if int(line) == other:
                return _with_key(settings)
            _say(f"  `{line}` is not on the list.")
        except TarmacError as error:
            _say(f"  {one_line(error.what)}{f' ({one_line(error.hint)})' if error.hint else ''}")


def _has_key(provider: Provider, settings: ModelSettings) -> bool:
    return not provider.needs_key or provider.name in settings.keys or provider.name in settings.base_urls


def _with_key(settings: ModelSettings) -> Chosen:
    """Ask for a provider, its key, and one of its models."""
    _say(f"  Providers: {', '.join(HOSTED)}")
    while (name := _typed("Which provider? ", HOSTED).lower()) not in HOSTED:
        close = nearest(name, HOSTED)
        if name in NAMES:
            _say(f"  {NAMES[name]} needs no key. Start it, then run `tarmac` again.")
        elif name:
            _say(f"  `{one_line(name)}` is not one of them{f'. Did you mean `{close}`?' if close else '.'}")
    provider = PROVIDERS[name]
    key, models = _key(provider, settings)
    specs = [each.spec for each in models]
    default = f"{name}/{provider.default}"
    default = default if default in specs or not specs else specs[0]
    line = _typed(f"Which model? Tab lists them (Enter: {default}) ", specs) or default
    return Chosen(line if line.startswith(f"{name}/") else f"{name}/{line}", key)


def _key(provider: Provider, settings: ModelSettings) -> tuple[str, list[OfferedModel]]:
    """A key that the provider takes, and its models. A provider that can't be reached is believed later."""
    while True:
        key = getpass.getpass(f"Key for {provider.name} (it is not shown): ").strip()
        if not key:
            raise BadRequest("no key was given")
        _say("  Checking it …")
        try:
            tried = replace(settings, keys={**settings.keys, provider.name: key})
            return key, asyncio.run(list_models(provider, tried))
        except ModelError as error:
            _say(f"  {one_line(error.what)}")
            if error.kind != "auth":
                _say("  The key could not be checked. It is used anyway.")
                return key, []


def _say(text: str) -> None:
    print("\n".join(wrapped(text, look_of(sys.stdout, os.environ).columns - 1, indent="  ")), flush=True)


def _typed(prompt: str, words: Sequence[str]) -> str:
    """A line that the person types, with Tab completion."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter

    completer = WordCompleter(list(words), sentence=True, match_middle=True)
    session: PromptSession[str] = PromptSession(completer=completer, complete_while_typing=False)
    return session.prompt(prompt).strip()


# The file


def keep(file: Path, chosen: Chosen) -> None:
    """Write the model and the key into the user's configuration; what else is in it stays as it is."""
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    new = with_settings(old, chosen)
    if new is None:
        lines = f"model = {json.dumps(chosen.model)}"
        raise BadRequest(f"{shown(file)} could not be changed", hint=f"add this line to it yourself: {lines}")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(file, new)


def with_settings(text: str, chosen: Chosen) -> str | None:
    """PURE: TOML with the model and the key set; None if that can't be done without changing something else."""
    provider = chosen.model.partition("/")[0]
    try:
        wanted = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return None
    wanted = {**wanted, "model": chosen.model}
    first = f"model = {json.dumps(chosen.model, ensure_ascii=False)}\n"
    new = re.sub(r"\A\ufeff?(?:\s*model\s*=[^\n]*\n)?", lambda _: first, text, count=1)
    if chosen.key:
        wanted["keys"] = {**wanted.get("keys", {}), provider: chosen.key}
        line = f"{provider} = {json.dumps(chosen.key)}\n"
        if re.search(r"^\[keys\][^\n]*\n", new, re.MULTILINE):
            new = re.sub(rf"^{provider}\s*=[^\n]*\n", "", new, flags=re.MULTILINE)
            new = re.sub(r"^\[keys\][^\n]*\n", lambda found: found[0] + line, new, count=1, flags=re.MULTILINE)
        else:
            new = f"{new.rstrip()}\n\n[keys]\n{line}"
    try:
        return new if tomllib.loads(new) == wanted else None
    except tomllib.TOMLDecodeError:
        return None
