"""Entries by name, each made of its data when it is first asked for: a judge needs a few of hundreds."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

Data = TypeVar("Data")
Entry = TypeVar("Entry")


class Table(Mapping[str, Entry], Generic[Data, Entry]):
    """Reads like a dictionary of entries."""

    def __init__(self, data: Mapping[str, Data], make: Callable[[str, Data], Entry]) -> None:
        self._data = data
        self._make = make
        self._made: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(name, self._data[name])
        return made

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def names(text: str) -> list[str]:
    """Names with `|` between them, on one or more lines."""
    return [" ".join(each.split()) for each in text.split("|")]
