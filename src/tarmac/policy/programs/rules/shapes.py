"""The shapes of the entries. They are dictionaries; a wrong key or value is found by the type checker."""

from typing import NotRequired, Required, TypedDict

from tarmac.policy.verdict import Risk


class Shared(TypedDict, total=False):
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


class Reader(Shared, total=False):
    """One of these programs, or a command of one."""

    why: Required[str]
    also: str  # other names of the same, `|` between
    like: str  # a name in SHARED: what is not said here is as there
    prefix: bool


class Deed(TypedDict):
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


class Wrapping(TypedDict, total=False):
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
