"""Who says what: files, variables, options, each turned into checked values that know where they were said.

user_file(folder) · workspace_files(workspace) · variables(environ) · options(overrides) → Said …      ConfigError
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tarmac.config.config import Origin, Place
from tarmac.config.keys import Key, by_name
from tarmac.config.kinds import Value
from tarmac.errors import ConfigError
from tarmac.nearest import nearest
from tarmac.paths import read_plain, shown
from tarmac.prompts.located import Located, Wrong, printable, read_toml

NAME = "config.toml"
LARGEST = 64 << 10
# Variables with our prefix that are no settings.
OTHERS = frozenset(["TARMAC_CONFIG_DIR", "TARMAC_STATE_DIR", "TARMAC_TERMINAL"])
LIKELY = 0.8  # how alike a variable must be to a setting's for us to think that it was meant


@dataclass(frozen=True, slots=True)
class Source:
    """A place where values are said."""

    place: Place
    where: str
    located: Located | None = field(default=None, compare=False, repr=False)  # of a file

    def line(self, key: str) -> int | None:
        """Where in it: slow, so only asked when somebody wants to see it."""
        return self.located.line(tuple(key.split("."))) if self.located else None

    def origin(self, key: str) -> Origin:
        return Origin(place=self.place, where=self.where, line=self.line(key))


@dataclass(frozen=True, slots=True)
class Said:
    """A value for a key."""

    key: Key
    value: Value
    source: Source


def complaint(origin: Origin, what: str, *, hint: str = "") -> ConfigError:
    """The error that points at it."""
    at = f", line {origin.line}" if origin.line else ""
    return ConfigError(f"{origin.where}{at}: {printable(what)}", hint=hint)


# Files


def user_file(folder: Path) -> Path:
    """Where a person writes what Tarmac shall do."""
    return folder / NAME


def workspace_files(workspace: Path) -> list[Path]:
    """Those that may tighten, the outermost first: of the workspace, and of the repository it is a part of."""
    above = [workspace, *workspace.parents]
    top = next((number for number, each in enumerate(above) if os.path.lexists(each / ".git")), 0)
    return [each / ".tarmac" / NAME for each in reversed(above[: top + 1])]


def read_file(path: Path, place: Place) -> list[Said]:
    """What a file says; nothing when there is none."""
    origin = Origin(place=place, where=shown(path))
    raw = _bytes(path, origin, own=place == "user")
    if raw is None:
        return []
    try:
        located = read_toml(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise complaint(origin, "it is not UTF-8") from None
    except Wrong as wrong:
        line = Origin(place=place, where=origin.where, line=wrong.line)
        raise complaint(
            line, f"it is no TOML: {wrong.what}", hint="strings are in quotes; docs/configuration.md"
        ) from None
    source = Source(place, origin.where, located)
    return [_checked(name, value, source) for name, value in _flat(located.data, "")]


def _bytes(path: Path, origin: Origin, *, own: bool) -> bytes | None:
    try:
        raw, found = read_plain(path, most=LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise complaint(origin, f"it can't be read: {(error.strerror or '').lower()}") from None
    if own and (why := _distrust(found)):
        raise complaint(origin, why, hint=f"chmod go-w {path}")
    if len(raw) > LARGEST:
        raise complaint(origin, f"it is longer than {LARGEST:,} bytes")
    return raw


def _distrust(found: os.stat_result) -> str:
    """Why this can't be a person's own words: whoever writes here decides what runs."""
    if found.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    return "others may write to it" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def open_to_others(path: Path) -> bool:
    """Whether others may read it."""
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


def _flat(data: Mapping[str, object], above: str) -> Iterator[tuple[str, object]]:
    """Names with dots, down to where a value is: a table that is one key's value is not taken apart."""
    for name, value in data.items():
        full = f"{above}{name}" if "." not in name else f'{above}"{name}"'  # in quotes it is no table and key
        if isinstance(value, dict) and full not in by_name() and (value or _is_section(full)):
            yield from _flat(value, f"{full}.")
        else:
            yield full, value


def _is_section(name: str) -> bool:
    return any(each.startswith(f"{name}.") for each in by_name())


# Variables and options


def variables(environ: Mapping[str, str]) -> list[Said]:
    """What the environment says. One that is misspelt would be silently without effect: that is an error."""
    known = {key.variable: key for key in by_name().values() if key.variable}
    said = []
    for name, text in environ.items():
        if not name.startswith("TARMAC_") or name in OTHERS or not text.strip():
            continue
        source = Source("environment", name)
        if name in known:
            said.append(_parsed(known[name], text.strip(), source))
        elif close := nearest(name, known, cutoff=LIKELY):
            raise complaint(source.origin(""), "there is no such setting", hint=f"did you mean {close}?")
    return said


def options(overrides: Mapping[str, object]) -> list[Said]:
    """What the command line says; a value that is None was not said."""
    said = []
    for name, value in overrides.items():
        source = Source("command line", "--" + name.rpartition(".")[2].replace("_", "-"))
        if value is None:
            continue
        if name not in by_name():
            raise _unknown(name, source)
        if by_name()[name].secret:
            raise complaint(source.origin(""), "a key is not given on the command line, where others can see it")
        said.append(
            _parsed(by_name()[name], value, source) if isinstance(value, str) else _checked(name, value, source)
        )
    return said


# One value


def _checked(name: str, value: object, source: Source) -> Said:
    key = by_name().get(name)
    if key is None:
        raise _unknown(name, source)
    try:
        return Said(key, key.kind.check(value), source)
    except ValueError as error:
        raise complaint(source.origin(name), f"`{name}` {error}") from None


def _parsed(key: Key, text: str, source: Source) -> Said:
    try:
        return Said(key, key.kind.parse(text), source)
    except ValueError as error:
        raise complaint(source.origin(key.name), f"`{key.name}` {error}") from None


def _unknown(name: str, source: Source) -> ConfigError:
    close = nearest_key(name)
    hint = f"did you mean `{close}`?" if close else "`tarmac config show` lists them all"
    return complaint(source.origin(name), f"`{name}` is not known", hint=hint)


def nearest_key(name: str) -> str:
    """The key that was probably meant: one that looks like it, or whose last word does; empty when none does."""
    if close := nearest(name, by_name(), cutoff=0.75):
        return close
    last_words = {each.rpartition(".")[2]: each for each in by_name()}
    close = nearest(name.rpartition(".")[2], last_words, cutoff=0.75)
    return last_words[close] if close else ""
