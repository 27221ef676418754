"""Load the configuration from files, the environment and the command line.

Each source overrides the previous ones. The workspace comes last, and can only tighten.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from tarmac.config.config import Config, Origin, Secret, plain_value
from tarmac.config.schema import KEYS, OF_A_MODEL, WouldLoosen, by_name, tightened
from tarmac.config.sources import (
    Assignment,
    Source,
    config_error,
    options,
    read_file,
    readable_by_others,
    user_file,
    variables,
    workspace_files,
)
from tarmac.config.value_types import Value, toml
from tarmac.nearest import nearest
from tarmac.paths import config_dir, shown

DEFAULT = Source("default", "")
# A workspace that sets a switch to "ask" also caps `auto`: the value that asks, and the highest level that keeps it.
CAPS: dict[str, tuple[bool, str]] = {
    "policy.auto_approve_read": (False, "ask"),
    "policy.auto_approve_write": (False, "ask"),
    "policy.auto_approve_safe_commands": (False, "edits"),
    "policy.ask_medium": (True, "edits"),
    "policy.auto_approve_modes": (False, "edits"),
    "policy.auto_approve_write_outside": (False, "workspace"),
    "policy.auto_approve_browser": (False, "workspace"),
    "policy.auto_approve_mcp": (False, "workspace"),
    "policy.auto_approve_subtasks": (False, "workspace"),
}


@dataclass(slots=True)
class _Current:
    """The current value of a setting, and its source."""

    value: Value
    source: Source
    set_by: str  # the setting; a switch may cap `auto`

    @property
    def origin(self) -> Origin:
        return self.source.origin(self.set_by)


def load_config(workspace: Path, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None) -> Config:
    """The configuration for `workspace`. `overrides` are options of the command line, by name. Raises ConfigError."""
    folder = config_dir(environ)
    held = {key.name: _Current(key.default, DEFAULT, key.name) for key in KEYS}
    own = user_file(folder)
    meant_for: dict[str, str | None] = {}
    for place in (read_file(own, "user"), variables(environ), options(overrides or {})):
        for said in place:
            held[said.key.name] = _Current(said.value, said.source, said.key.name)
        model = cast(str | None, held["model"].value)  # the model that this source describes
        meant_for |= {said.key.name: model for said in place if said.key.name in OF_A_MODEL}
    model = cast(str | None, held["model"].value)
    meant_for = {name: each or model for name, each in meant_for.items()}
    _check_providers(held)
    notes: list[str] = []
    for path in workspace_files(workspace):
        if path.resolve() == own.resolve():  # the workspace is the user's folder
            continue
        for said in read_file(path, "workspace"):
            _tighten(held, said, notes)
            if held[said.key.name].source is said.source:
                meant_for.pop(said.key.name, None)  # a limit of the workspace holds for every model
    if held["keys"].value and readable_by_others(own):
        notes.append(f"{shown(own)} contains keys, and other users can read it: chmod 600 {own}")
    return _composed(workspace, folder, held, environ, notes, meant_for)


def _tighten(held: dict[str, _Current], said: Assignment, notes: list[str]) -> None:
    key, now = said.key, held[said.key.name]
    if key.secret:
        notes.append(f"{_at(said)}: a workspace can't set keys; put them into your own file (`tarmac config path`)")
        return
    if key.way is None:
        notes.append(f"{_at(said)}: a workspace can't set `{key.name}`; it stays {toml(plain_value(now.value))}")
        return
    try:
        value = tightened(key.way, now.value, said.value)
    except WouldLoosen:
        notes.append(
            f"{_at(said)}: {key.name} = {toml(said.value)} is ignored; it stays {toml(now.value)} ({now.origin}); "
            f"a workspace can only set {key.way.value}"
        )
        return
    if value != now.value:
        held[key.name] = _Current(value, said.source, key.name)
    if (cap := CAPS.get(key.name)) and value is cap[0]:
        _cap(held, cap[1], said)


def _at(said: Assignment) -> str:
    where = said.source.origin(said.key.name)
    return f"{where.where}, line {where.line}"


def _cap(held: dict[str, _Current], cap: str, said: Assignment) -> None:
    """Lower `auto` to the level at which the workspace's switch still asks."""
    way = by_name()["auto"].way
    assert way
    try:
        value = tightened(way, held["auto"].value, cap)
    except WouldLoosen:  # already lower
        return
    if value != held["auto"].value:
        held["auto"] = _Current(value, said.source, said.key.name)


def _check_providers(held: dict[str, _Current]) -> None:
    """Check the names of providers, and that a price is complete."""
    for name in ("keys", "models.base_urls"):
        table = held[name].value
        if not isinstance(table, dict) or not table:
            continue
        from tarmac.models.model_catalog import PROVIDERS

        for provider in table:
            if provider not in PROVIDERS:
                close = nearest(provider, PROVIDERS)
                hint = f"did you mean `{close}`?" if close else f"providers: {', '.join(PROVIDERS)}"
                where = held[name].source.origin(f"{name}.{provider}")
                raise config_error(where, f"`{name}.{provider}`: unknown provider", hint=hint)
    one, other = held["models.price_input"], held["models.price_output"]
    if (one.value is None) != (other.value is None):
        source = other.source if one.value is None else one.source
        raise config_error(source.origin("models.price_input"), "set both `price_input` and `price_output`, or neither")


def _composed(
    workspace: Path,
    folder: Path,
    held: dict[str, _Current],
    environ: Mapping[str, str],
    notes: list[str],
    meant_for: dict[str, str | None],
) -> Config:
    from tarmac.models.model_catalog import base_urls_from, keys_from

    own = cast(dict[str, str], held["keys"].value)
    urls = cast(dict[str, str], held["models.base_urls"].value)
    values: dict[str, object] = {name: each.value for name, each in held.items()}
    values["keys"] = {name: Secret(key) for name, key in own.items()}
    return Config(
        workspace=workspace,
        user_folder=folder,
        values=values,
        origins={name: partial(each.source.origin, each.set_by) for name, each in held.items()},
        notes=tuple(notes),
        keys={name: Secret(key) for name, key in (keys_from(environ) | own).items()},
        base_urls=base_urls_from(environ) | urls,
        variables=tuple(environ),
        meant_for=meant_for,
    )
