"""Read settings from files, environment variables and command-line options, and check them.

read_file(path) · variables(environ) · options(overrides) → list of Assignment, or ConfigError
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tarmac.config.config import Origin, OriginPlace
from tarmac.config.schema import Key, by_name
from tarmac.config.value_types import Value
from tarmac.errors import ConfigError
from tarmac.nearest import nearest
from tarmac.paths import read_plain, shown
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
            line, f"not valid TOML: {error.what}", hint="strings need quotes; see docs/configuration.md"
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
