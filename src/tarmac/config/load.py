"""Load the configuration from files, the environment and the command line, and check it.

read_file(path) · variables(environ) · options(overrides) → Assignment …, or ConfigError → load_config → Config

Each source overrides the previous ones. The workspace comes last, and can only tighten.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

from tarmac.config.config import Config, Origin, OriginPlace, Secret, plain_value
from tarmac.config.schema import KEYS, OF_A_MODEL, Key, WouldLoosen, by_name, tightened
from tarmac.config.value_types import Value, toml
from tarmac.errors import ConfigError, nearest
from tarmac.paths import config_dir, read_plain, shown
from tarmac.prompts.located import InvalidText, Located, printable, read_toml

NAME = "config.toml"
LARGEST = 64 << 10
# Variables with our prefix that are not settings.
OTHERS = frozenset(["TARMAC_CONFIG_DIR", "TARMAC_STATE_DIR", "TARMAC_TERMINAL"])
LIKELY = 0.8  # similarity from which an unknown variable counts as misspelt


@dataclass(frozen=True, slots=True)
class Source:
    """A source of settings."""

    place: OriginPlace
    where: str
    located: Located | None = field(default=None, compare=False, repr=False)  # if it is a file

    def line(self, key: str) -> int | None:
        """The line of a setting. Slow, so only for messages."""
        return self.located.line(tuple(key.split("."))) if self.located else None

    def origin(self, key: str) -> Origin:
        return Origin(place=self.place, where=self.where, line=self.line(key))


@dataclass(frozen=True, slots=True)
class Assignment:
    """A setting and the value that a source gives it."""

    key: Key
    value: Value
    source: Source


def config_error(origin: Origin, what: str, *, hint: str = "") -> ConfigError:
    """An error with the file and line."""
    at = f", line {origin.line}" if origin.line else ""
    return ConfigError(f"{origin.where}{at}: {printable(what)}", hint=hint)


# Files


def user_file(folder: Path) -> Path:
    """The configuration file of the user."""
    return folder / NAME


def workspace_files(workspace: Path) -> list[Path]:
    """The files of the workspace and its parents in the repository, outermost first."""
    above = [workspace, *workspace.parents]
    top = next((number for number, each in enumerate(above) if os.path.lexists(each / ".git")), 0)
    return [each / ".tarmac" / NAME for each in reversed(above[: top + 1])]


def read_file(path: Path, place: OriginPlace) -> list[Assignment]:
    """The settings in a file; empty if there is no file."""
    origin = Origin(place=place, where=shown(path))
    raw = _bytes(path, origin, own=place == "user")
    if raw is None:
        return []
    try:
        located = read_toml(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise config_error(origin, "not UTF-8") from None
    except InvalidText as error:
        line = Origin(place=place, where=origin.where, line=error.line)
        raise config_error(
            line, f"not valid TOML: {error.what}", hint="strings need quotes, as in mode = 'code'"
        ) from None
    source = Source(place, origin.where, located)
    return [_checked(name, value, source) for name, value in _flat(located.data, "")]


def _bytes(path: Path, origin: Origin, *, own: bool) -> bytes | None:
    try:
        raw, found = read_plain(path, most=LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise config_error(origin, f"can't be read: {(error.strerror or '').lower()}") from None
    if own and (why := _distrust(found)):
        raise config_error(origin, why, hint=f"chmod go-w {path}")
    if len(raw) > LARGEST:
        raise config_error(origin, f"longer than {LARGEST:,} bytes")
    return raw


def _distrust(found: os.stat_result) -> str:
    """Why the file can't be trusted. Its author decides what runs."""
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    return "other users can write to it" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def readable_by_others(path: Path) -> bool:
    """Whether other users can read the file."""
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


def _flat(data: Mapping[str, object], above: str) -> Iterator[tuple[str, object]]:
    """Dotted names with their values. A table that is the value of a setting stays whole."""
    for name, value in data.items():
        full = f"{above}{name}" if "." not in name else f'{above}"{name}"'  # a quoted name with a dot
        if isinstance(value, dict) and full not in by_name() and (value or _is_section(full)):
            yield from _flat(value, f"{full}.")
        else:
            yield full, value


def _is_section(name: str) -> bool:
    return any(each.startswith(f"{name}.") for each in by_name())


# Variables and options


def variables(environ: Mapping[str, str]) -> list[Assignment]:
    """The settings in the environment. A misspelt variable is an error, as it would have no effect."""
    known = {key.variable: key for key in by_name().values() if key.variable}
    said = []
    for name, text in environ.items():
        if not name.startswith("TARMAC_") or name in OTHERS or not text.strip():
            continue
        source = Source("environment", name)
        if name in known:
            said.append(_parsed(known[name], text.strip(), source))
        elif close := nearest(name, known, cutoff=LIKELY):
            raise config_error(source.origin(""), "unknown setting", hint=f"did you mean {close}?")
    return said


def options(overrides: Mapping[str, object]) -> list[Assignment]:
    """The settings on the command line. None means that an option was not given."""
    said = []
    for name, value in overrides.items():
        source = Source("command line", "--" + name.rpartition(".")[2].replace("_", "-"))
        if value is None:
            continue
        if name not in by_name():
            raise _unknown(name, source)
        if by_name()[name].secret:
            raise config_error(
                source.origin(""), "keys can't be given on the command line, where other users can see them"
            )
        said.append(
            _parsed(by_name()[name], value, source) if isinstance(value, str) else _checked(name, value, source)
        )
    return said


# One value


def _checked(name: str, value: object, source: Source) -> Assignment:
    key = by_name().get(name)
    if key is None:
        raise _unknown(name, source)
    try:
        return Assignment(key, key.kind.check(value), source)
    except ValueError as error:
        raise config_error(source.origin(name), f"`{name}` {error}") from None


def _parsed(key: Key, text: str, source: Source) -> Assignment:
    try:
        return Assignment(key, key.kind.parse(text), source)
    except ValueError as error:
        raise config_error(source.origin(key.name), f"`{key.name}` {error}") from None


def _unknown(name: str, source: Source) -> ConfigError:
    close = nearest_key(name)
    hint = f"did you mean `{close}`?" if close else "`tarmac config show` lists all settings"
    return config_error(source.origin(name), f"unknown setting `{name}`", hint=hint)


def nearest_key(name: str) -> str:
    """The setting with the most similar name or last part of a name, or an empty string."""
    if close := nearest(name, by_name(), cutoff=0.75):
        return close
    last_words = {each.rpartition(".")[2]: each for each in by_name()}
    close = nearest(name.rpartition(".")[2], last_words, cutoff=0.75)
    return last_words[close] if close else ""


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
        model = cast("str | None", held["model"].value)  # the model that this source describes
        meant_for |= {said.key.name: model for said in place if said.key.name in OF_A_MODEL}
    model = cast("str | None", held["model"].value)
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

    own = cast("dict[str, str]", held["keys"].value)
    urls = cast("dict[str, str]", held["models.base_urls"].value)
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
