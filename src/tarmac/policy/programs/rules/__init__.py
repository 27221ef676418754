"""The tables of programs, and the shapes of their entries.

The type checker finds a wrong key or value, and program.py a wrong trait. The tables are not formatted by ruff: with
each field on a line of its own they would be half as long again, and no easier to read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypedDict, TypeVar

from tarmac.policy.verdict import Risk


@dataclass(frozen=True, slots=True)
class EffectEntry:
    """What a program does that isn't proven to only read. The highest risk that matches counts."""

    risk: Risk
    kind: str  # a value of verdict.EffectKind
    does: str  # what a person reads; {what} stands for the operands, {words} for the same with blanks between
    commands: str = ""  # only these commands of the program, `|` between; an empty one is the program itself
    options: str = ""  # only with one of these, bundled or shortened or not; of groups with `,` between one of each
    operand: str = ""  # only with an operand that this regular expression matches
    skip: int = 0  # how many operands {what} leaves out (a mode, an owner)
    instead: bool = False  # it counts in place of those before it, also when it weighs less
    vague: bool = False  # not said where something else is known of the command

    def on(self, commands: str = "", *, options: str = "", operand: str = "") -> "EffectEntry":
        """The same effect, of some commands or options of a program."""
        return replace(
            self,
            commands=commands or self.commands,
            options=options or self.options,
            operand=operand or self.operand,
        )


class WrapperEntry(TypedDict, total=False):
    """How a program lays out its arguments that runs the command in them: see program.Wrapper."""

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


class ReaderFields(TypedDict, total=False):
    """What a program that is known to only read may be given: the fields of program.Grammar, as text."""

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
    one_of: str
    each: str
    never: str
    first: str
    or_else: str
    unless: str
    cwd: bool
    instead: str | list[str]
    adds: str
    connects: str


class ProgramEntry(ReaderFields, total=False):
    """One program, or a command of one: all that is known of it. Names of the same have `|` between them."""

    why: str  # it is known to only read with these arguments, and this is what it does
    like: str  # its arguments are as those of this entry, or of SHARED, where nothing else is said
    prefix: bool  # what stands between a program and its command: not a command on its own
    runs: WrapperEntry  # it runs the command in its arguments
    does: list[EffectEntry]  # what it does when it isn't proven to only read
    traits: str  # names of program.Trait
    # The others are texts of words, described in program.Program.
    special: str
    prove: str
    touches: str
    verb: str
    unpacks_into: str
    writes_by: str
    changes: str
    saves: str
    uploads: str
    globals: str
    front: str
    choosing: str
    listing: str
    whole: str
    names_by: str
    naming: str
    answers_to: str
    answers_unless: str
    groups: str
    own: str
    needs: str
    needs_in_home: str
    variables: str
    server_commands: str
    core_commands: str
    grant: str
    grant_words: str
    grant_program: str
    grant_line: str
    suggest_line: str
    turning: str
    typed_code: str


Data = TypeVar("Data")
Entry = TypeVar("Entry")


class Table(Mapping[str, Entry], Generic[Data, Entry]):
    """Reads like a dictionary of entries. Each is made when it is first asked for."""

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
