"""The shapes of the entries. They are dictionaries; a wrong key or value is found by the type checker."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, NotRequired, Required, TypedDict, TypeVar

from tarmac.policy.verdict import Risk


class ReaderFields(TypedDict, total=False):
    """What programs that are known to only read may be given: the fields of grammar.Program, as text."""

    short: str
    long: str
    refuse: str
    operands: str
    most: int
    least: int
    numbers: bool
    single: bool
    abbreviate: bool
    interspersed: bool
    harmless_options: bool
    check: str
    unless: str
    cwd: bool
    instead: str | list[str]
    adds: str
    connects: str


class ReaderEntry(ReaderFields, total=False):
    """One of these programs, or a command of one."""

    why: Required[str]
    also: str  # other names of the same, `|` between
    like: str  # a name in SHARED: what is not said here is as there
    prefix: bool


class EffectEntry(TypedDict):
    """What a command does that isn't proven to only read: see effects.py."""

    run: str
    risk: Risk
    kind: str  # a value of rule.EffectKind
    does: str
    options: NotRequired[list[str]]
    operand: NotRequired[str]
    skip: NotRequired[int]
    instead: NotRequired[bool]
    vague: NotRequired[bool]


class WrapperEntry(TypedDict, total=False):
    """A program that runs the command in its arguments: see wrappers.py."""

    like: str  # the name of another, which is laid out the same
    value: str
    code: str
    skip: int
    assigns: bool
    script: bool
    shell: bool
    fed: bool
    multi: bool
    risk: Risk
    does: str
    project: str
    fetches: bool
    elsewhere: bool
    plain: str
    before: str
    left_out: bool


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
