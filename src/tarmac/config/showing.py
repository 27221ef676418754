"""Every value as a person reads it: with where it comes from, and nothing that should stay secret."""

import re
from dataclasses import dataclass

from tarmac.config.config import Config, Origin
from tarmac.config.keys import KEYS, Key
from tarmac.config.kinds import toml

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """One setting, as it is now."""

    key: Key
    value: object  # ready for JSON
    origin: Origin

    def __str__(self) -> str:
        return f"{self.key.name} = {toml(self.value)}"


def rows(config: Config) -> list[Row]:
    """All settings, in the order of the guide."""
    return [Row(key, _plain(config.values[key.name]), config.origin(key.name)) for key in KEYS]


def _plain(value: object) -> object:
    """As JSON has it; keys as they show themselves, variables that sound like secrets without their values."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {name: "…" if _masks(name, each) else _plain(each) for name, each in value.items()}
    return str(value)


def _masks(name: str, value: object) -> bool:
    return isinstance(value, str) and bool(value) and bool(_SECRET.search(name))
