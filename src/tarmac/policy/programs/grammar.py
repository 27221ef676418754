"""The options and operands of programs that are known to only read. The data is in rules/.

words → match(program, words) → ParsedArguments(options, operands, paths) | Unproven

Options are written as in getopt: a letter or a name, then `:` if a value follows, `::` if a value may be attached, `@`
if the value is a path, `+` if two values follow. An option that is not listed is not proven. Long names may be
shortened as getopt_long allows. Names in `refuse` are known too, so that their abbreviations are not taken for other
options.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tarmac.policy.programs.rules.table import Table, names
from tarmac.policy.verdict import Unproven

# `nm @file`: what is in the file is read as if it was typed, and may be `--plugin=x.so`.
_TAKES_WORDS_FROM_FILES = frozenset(
    """
    nm objdump readelf size strings ar c++filt addr2line otool javap jar 7z 7za 7zz
""".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program, or one subcommand of it, and what it may be given."""

    name: str  # "ls", "git log"
    why: str
    short: Mapping[str, str]  # letter → "", ":", "::", "@"
    long: Mapping[str, str]
    refuse: frozenset[str]
    operands: tuple[str, ...]  # kinds, the last one repeated: text, path, name, rev, listed, number, none
    most: int | None
    least: int
    numbers: bool  # -5
    single: bool  # long names with one dash, never bundled: -version
    abbreviate: bool
    interspersed: bool  # options may follow operands
    harmless_options: bool  # no option of it does anything but read: a pattern may become one
    prefix: bool  # only the global options before a subcommand
    check: str
    unless: tuple[str, ...]  # files in the project that make it run code
    cwd: bool  # reads the directory it stands in
    instead: tuple[str, ...]  # what the plan runs in its place: a builtin has no program
    connects: str  # the server or daemon that it asks: then it is no reading of this machine
    adds: tuple[str, ...]  # what the plan puts before its arguments, to be certain


@dataclass(slots=True)
class ParsedArguments:
    """Arguments, understood."""

    options: list[tuple[str, str | None]] = field(default_factory=list)  # name without dashes, value
    operands: list[str] = field(default_factory=list)
    paths: list[tuple[str, bool]] = field(default_factory=list)  # path, whether its content is read
    patterns: list[tuple[str, bool]] = field(default_factory=list)  # git's paths, with * and ?; whether it is certain
    ended: int | None = None  # how many operands stand before `--`


def _spec(text: str) -> dict[str, str]:
    """Long names: "all color:: file@ width:"."""
    found = {}
    for word in text.split():
        name = word.rstrip(":@+")
        found[name] = word[len(name) :]
    return found


def _letters(text: str) -> dict[str, str]:
    """Letters: "abc:d::e@"."""
    return {m[1]: m[2] for m in re.finditer(r"([^:@\s])(::|:|@|)", text)}


def _program(name: str, entry: Mapping[str, object], *, inherit: Mapping[str, object]) -> Program:
    def take(key: str, default: object) -> object:
        return entry.get(key, inherit.get(key, default))

    most = take("most", None)
    return Program(
        name=name,
        why=str(entry["why"]),
        short=_letters(str(take("short", ""))),
        long=_spec(f"{inherit.get('long', '')} {entry.get('long', '')}"),
        refuse=frozenset(str(take("refuse", "")).split()),
        operands=tuple(str(take("operands", "none")).split()),
        most=int(str(most)) if most is not None else None,
        least=int(str(take("least", 0))),
        numbers=bool(take("numbers", False)),
        single=bool(take("single", False)),
        abbreviate=bool(take("abbreviate", True)),
        interspersed=bool(take("interspersed", True)),
        harmless_options=bool(take("harmless_options", False)),
        prefix=bool(entry.get("prefix", False)),
        check=str(take("check", "")),
        unless=tuple(str(take("unless", "")).split()),
        cwd=bool(take("cwd", False)),
        instead=_words(take("instead", "")),
        connects=str(take("connects", "")),
        adds=_words(take("adds", "")),
    )


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else tuple(str(value).split())


@functools.cache
def programs() -> Mapping[str, Program]:
    """All programs that are known to read, by name; subcommands as "git log"."""
    from tarmac.policy.programs.rules import git, read_files, read_system, read_tools

    found: dict[str, Mapping[str, object]] = {}
    for file in (read_files, git, read_system, read_tools):
        for name, entry in file.READERS.items():
            found[name] = entry
            if "also" in entry:
                found.update(dict.fromkeys(names(entry["also"]), entry))

    def make(name: str, entry: Mapping[str, object]) -> Program:
        return _program(name, entry, inherit=git.SHARED[str(entry["like"])] if "like" in entry else {})

    return Table(found, make)


def read_programs(data: Mapping[str, object]) -> dict[str, Program]:
    """The programs of a user's own rules."""
    found: dict[str, Program] = {}
    shared: Mapping[str, Mapping[str, object]] = data.get("shared", {})  # type: ignore[assignment]
    for name, entry in data.items():
        if name in ("shared", "versions") or not isinstance(entry, dict):
            continue
        inherit = shared.get(str(entry.get("like", "")), {})
        for each in (name, *str(entry.get("also", "")).split("|")):
            if each.strip():
                found[each.strip()] = _program(each.strip(), entry, inherit=inherit)
    return found


@dataclass(frozen=True, slots=True)
class Versions:
    """Programs that may be asked for their version or help by one word."""

    words: frozenset[str]
    programs: frozenset[str]
    helped: frozenset[str]
    unless: frozenset[str]  # "yarn:.yarnrc": with that file in the project it may start other code
    also: Mapping[str, frozenset[str]]  # other words that ask for it, and the programs that read them so
    own: Mapping[str, frozenset[str]]  # the commands of a program that no project can give another meaning
    groups: Mapping[str, frozenset[str]]  # commands that have commands of their own: `gh pr create`

    def answer(self, name: str, word: str) -> bool:
        """Whether `word` makes the program `name` tell its version or help, and stop."""
        return name in self.programs and (word in self.words or name in self.also.get(word, ()))

    def helps(self, words: tuple[str, ...]) -> bool:
        """`docker run --help`, `gh pr create --help`: whether it prints help, and stops."""
        name, *commands, last = words
        if last != "--help" and not (last == "-h" and name in self.own):
            return False
        if not all(re.fullmatch(r"[a-z][a-z-]*", command) for command in commands):
            return False
        if len(commands) == 2:  # one more word may be an image or a script that gets the --help: `docker run x --help`
            return commands[0] in self.groups.get(name, ())
        return len(commands) == 1 and (name in self.helped or commands[0] in self.own.get(name, ()))


@functools.cache
def versions() -> Versions:
    from tarmac.policy.programs.rules import read_tools as listed

    def sets(lists: Mapping[str, str]) -> dict[str, frozenset[str]]:
        return {name: frozenset(words.split()) for name, words in lists.items()}

    words, programs, helped, unless = (
        frozenset(each.split()) for each in (listed.WORDS, listed.PROGRAMS, listed.HELPED, listed.UNLESS)
    )
    return Versions(words, programs, helped, unless, sets(listed.ALSO), sets(listed.OWN), sets(listed.GROUPS))


def match(program: Program, words: Sequence[str]) -> ParsedArguments:
    """The arguments of `program`, each of them known; Unproven otherwise."""
    reading = ParsedArguments()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            reading.ended = len(reading.operands)
            reading.operands += rest
            break
        if program.numbers and re.fullmatch(r"-[0-9]+[bckmlq]?", word):
            reading.options.append((word[1:], None))
        elif program.single and len(word) > 1 and word[0] == "-":
            _long(program, word.lstrip("-") if word.startswith("--") else word[1:], rest, reading)
        elif word.startswith("--"):
            _long(program, word[2:], rest, reading)
        elif len(word) > 1 and word[0] == "-":
            _short(program, word[1:], rest, reading)
        else:
            reading.operands.append(word)
            if not program.interspersed:
                reading.operands += rest
                break
    _operands(program, reading)
    return reading


def _long(program: Program, text: str, rest: list[str], reading: ParsedArguments) -> None:
    name, equals, value = text.partition("=")
    kind = program.long.get(name) if name not in program.refuse else None
    if kind is None and program.abbreviate and name not in program.refuse:
        meant = [n for n in (*program.long, *program.refuse) if n.startswith(name)]
        if len(meant) == 1 and meant[0] in program.long and len(name) > 1:
            name = meant[0]
            kind = program.long[name]
    if kind is None:
        dash = "-" if program.single else "--"
        raise Unproven(f"`{program.name}` is not known to only read with {dash}{name}")
    if kind in (":", "@") and not equals:
        if not rest:
            raise Unproven(f"--{name} lacks its value")
        value, equals = rest.pop(0), "="
    if kind == "+":  # two values, each a word of its own
        if equals or len(rest) < 2:
            raise Unproven(f"--{name} lacks its values")
        del rest[:2]
    if kind == "" and equals:
        raise Unproven(f"--{name} takes no value")
    reading.options.append((name, value if equals else None))
    if kind == "@":
        reading.paths.append((value, True))


def _short(program: Program, letters: str, rest: list[str], reading: ParsedArguments) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        kind = program.short.get(letter)
        if kind is None:
            raise Unproven(f"`{program.name}` is not known to only read with -{letter}")
        value: str | None = None
        if kind == "::":
            value, letters = letters or None, ""
        elif kind:
            if not letters and not rest:
                raise Unproven(f"-{letter} lacks its value")
            value = letters or rest.pop(0)
            letters = ""
        reading.options.append((letter, value))
        if kind == "@" and value is not None:
            reading.paths.append((value, True))


def _operands(program: Program, reading: ParsedArguments) -> None:
    kinds = program.operands
    count = len(reading.operands)
    if kinds == ("none",) and count:
        raise Unproven(f"`{program.name}` is not known to only read with `{reading.operands[0]}`")
    if program.most is not None and count > program.most:
        raise Unproven(f"`{program.name}` with more than {program.most} operand{'s' * (program.most != 1)} may write")
    if count < program.least:
        raise Unproven(f"`{program.name}` with so few operands does more than read")
    if kinds[0] == "pattern":  # grep: the first operand is the pattern, unless an option gave one
        given = {"e", "f", "regexp", "file", "files"}
        kinds = kinds[1:] if given & {name for name, _ in reading.options} else ("text", *kinds[1:])
    if kinds[0] == "script":  # sed: likewise; its check reads the script
        given = {"e", "expression"} if program.check == "sed" else set()
        kinds = kinds[1:] if given & {name for name, _ in reading.options} else ("text", *kinds[1:])
    for number, operand in enumerate(reading.operands):
        kind = kinds[min(number, len(kinds) - 1)]
        if kind in ("path", "name") and "://" in operand:
            raise Unproven(f"`{operand}` is an address, not a file")
        if operand.startswith("@") and program.name.split()[0] in _TAKES_WORDS_FROM_FILES:
            raise Unproven(f"it takes more words, options too, from the file {operand[1:]}")
        if kind in ("rev", "listed"):
            _of_repository(operand, kind, reading, path=reading.ended is not None and number >= reading.ended)
        elif kind == "path":
            if operand != "-":
                reading.paths.append((operand, True))
        elif kind == "name":
            reading.paths.append((operand, False))
        elif kind == "number" and not re.fullmatch(r"-?[0-9.]+[a-zA-Z]?", operand):
            raise Unproven(f"`{operand}` is no number")
        elif kind == "word" and not re.fullmatch(r"[A-Za-z0-9_@.,:+*=/-]*", operand):
            raise Unproven(f"`{operand}` is no plain name")
        elif kind == "word" and "://" in operand and program.name != "aws s3 ls":
            raise Unproven(f"`{operand}` is an address: it may lead anywhere")


def _of_repository(operand: str, kind: str, reading: ParsedArguments, *, path: bool) -> None:
    """A revision or path of git: `main..x`, `HEAD:src/x`, `*.py`, `:!x`. What it names inside is looked at by name."""
    if re.match(r":[!^]|:\([a-z,]*exclude", operand):
        return  # what it leaves out
    name = re.sub(r"^:\([a-z,]*\)|^:/?|^[^:]*:", "", operand)
    if name.startswith(("/", "~")) or ".." in name.split("/"):
        reading.paths.append((name, kind == "rev"))
    elif kind == "rev" and name and (path or not re.search(r"\.\.|[~^@{]", name)):
        reading.patterns.append((name, path or name != operand))  # else it may as well be a branch
