"""From files, environment and command line to a Config.

Each later place counts over the earlier ones; what a workspace says comes last, and can only take away.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from tarmac.config.config import Config, Origin, Secret
from tarmac.config.keys import KEYS, OF_A_MODEL, by_name
from tarmac.config.kinds import Value, toml
from tarmac.config.sources import (
    Said,
    Source,
    complaint,
    open_to_others,
    options,
    read_file,
    user_file,
    variables,
    workspace_files,
)
from tarmac.config.tightening import Loosens, tightened
from tarmac.nearest import nearest
from tarmac.paths import config_dir, shown

DEFAULT = Source("default", "")
# A switch that a workspace set by name binds the level that would turn it again: this is the highest that does not.
CAPS: dict[str, tuple[bool, str]] = {  # the value that asks, and that level
    "policy.auto_approve_read": (False, "ask"),
    "policy.auto_approve_write": (False, "read"),
    "policy.auto_approve_safe_commands": (False, "edit"),
    "policy.ask_medium": (True, "edit"),
    "policy.auto_approve_modes": (False, "edit"),
    "policy.auto_approve_write_outside": (False, "safe"),
    "policy.auto_approve_browser": (False, "safe"),
    "policy.auto_approve_mcp": (False, "safe"),
    "policy.auto_approve_subtasks": (False, "safe"),
}


@dataclass(slots=True)
class _Held:
    """The value of a key so far, and who said it."""

    value: Value
    source: Source
    said_as: str  # the key that was said: a switch may hold down `auto`

    @property
    def origin(self) -> Origin:
        return self.source.origin(self.said_as)


def load_config(workspace: Path, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None) -> Config:
    """The configuration for `workspace`; `overrides` are the command line's, by key. ConfigError."""
    folder = config_dir(environ)
    held = {key.name: _Held(key.default, DEFAULT, key.name) for key in KEYS}
    own = user_file(folder)
    meant_for: dict[str, str | None] = {}
    for place in (read_file(own, "user"), variables(environ), options(overrides or {})):
        for said in place:
            held[said.key.name] = _Held(said.value, said.source, said.key.name)
        model = cast(str | None, held["model"].value)  # the one that this place speaks of
        meant_for |= {said.key.name: model for said in place if said.key.name in OF_A_MODEL}
    model = cast(str | None, held["model"].value)
    meant_for = {name: each or model for name, each in meant_for.items()}
    _check_providers(held)
    notes: list[str] = []
    for path in workspace_files(workspace):
        if path.resolve() == own.resolve():  # a person works in their own folder
            continue
        for said in read_file(path, "workspace"):
            _tighten(held, said, notes)
            if held[said.key.name].source is said.source:
                meant_for.pop(said.key.name, None)  # a limit here is one for every model
    if held["keys"].value and open_to_others(own):
        notes.append(f"{shown(own)} holds keys, and others may read it: chmod 600 {own}")
    return _composed(workspace, folder, held, environ, notes, meant_for)


def _tighten(held: dict[str, _Held], said: Said, notes: list[str]) -> None:
    key, now = said.key, held[said.key.name]
    if key.secret:
        notes.append(f"{_at(said)}: a workspace can hold no keys; they go into your own file (`tarmac config path`)")
        return
    if key.way is None:
        notes.append(f"{_at(said)}: `{key.name}` can't be set by a workspace; it stays {toml(now.value)}")
        return
    try:
        value = tightened(key.way, now.value, said.value)
    except Loosens:
        notes.append(
            f"{_at(said)}: {key.name} = {toml(said.value)} would loosen {toml(now.value)} ({now.origin}), which stays; "
            f"a workspace may only tighten: {key.way.value}"
        )
        return
    if value != now.value:
        held[key.name] = _Held(value, said.source, key.name)
    if (cap := CAPS.get(key.name)) and value is cap[0]:
        _cap(held, cap[1], said)


def _at(said: Said) -> str:
    where = said.source.origin(said.key.name)
    return f"{where.where}, line {where.line}"


def _cap(held: dict[str, _Held], cap: str, said: Said) -> None:
    """A workspace that wants to be asked about something is, whatever level `auto` is at."""
    way = by_name()["auto"].way
    assert way
    try:
        value = tightened(way, held["auto"].value, cap)
    except Loosens:  # it is lower already
        return
    if value != held["auto"].value:
        held["auto"] = _Held(value, said.source, said.key.name)


def _check_providers(held: dict[str, _Held]) -> None:
    """Tables by provider name providers that exist."""
    for name in ("keys", "models.base_urls"):
        table = held[name].value
        if not isinstance(table, dict) or not table:
            continue
        from tarmac.models.catalog import PROVIDERS

        for provider in table:
            if provider not in PROVIDERS:
                close = nearest(provider, PROVIDERS)
                hint = f"did you mean `{close}`?" if close else f"providers: {', '.join(PROVIDERS)}"
                where = held[name].source.origin(f"{name}.{provider}")
                raise complaint(where, f"`{name}.{provider}`: no provider has that name", hint=hint)
    one, other = held["models.price_input"], held["models.price_output"]
    if (one.value is None) != (other.value is None):
        source = other.source if one.value is None else one.source
        raise complaint(source.origin("models.price_input"), "a price has both `price_input` and `price_output`")


def _composed(
    workspace: Path,
    folder: Path,
    held: dict[str, _Held],
    environ: Mapping[str, str],
    notes: list[str],
    meant_for: dict[str, str | None],
) -> Config:
    from tarmac.models.catalog import base_urls_from, keys_from

    own = cast(dict[str, str], held["keys"].value)
    urls = cast(dict[str, str], held["models.base_urls"].value)
    values: dict[str, object] = {name: each.value for name, each in held.items()}
    values["keys"] = {name: Secret(key) for name, key in own.items()}
    return Config(
        workspace=workspace,
        user_folder=folder,
        values=values,
        origins={name: partial(each.source.origin, each.said_as) for name, each in held.items()},
        notes=tuple(notes),
        keys={name: Secret(key) for name, key in (keys_from(environ) | own).items()},
        base_urls=base_urls_from(environ) | urls,
        meant_for=meant_for,
    )
