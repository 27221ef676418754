"""All that the policy knows of programs: one description for each, whatever the question. The data is in rules/.

known(name)           → Program: how it only reads, what it runs, what it does otherwise, what it needs, what is granted
grammars()            → the programs and commands that are known to only read, by name ("ls", "git log")
match(grammar, words) → ParsedArguments(options, operands, paths), or Unproven

A program stands in one table only, with all that is known of it. No other module knows programs by their names.

Options are written as in getopt: a letter or a name, then `:` if a value follows, `::` if a value may be attached, `@`
if the value is a path, `+` if two values follow. An option that is not listed is not proven. Long names may be
shortened as getopt_long allows. Names in `refuse` are known too, so that their abbreviations are not taken for other
options.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry, Table, WrapperEntry, names
from tarmac.policy.verdict import EffectKind, Risk, Unproven


class Trait(StrEnum):
    """What is true of some programs, and decides how their words are read."""

    # How it is named and asked
    VERSIONED = "versioned"  # python3.11 is python
    ANSWERS = "answers"  # --version and --help print something, and no more
    HELPS = "helps"  # its commands print help and stop: `docker run --help`
    # What it runs
    SHELL = "shell"
    INTERPRETS = "interprets"  # it runs code in another language
    RUNS_IN_SHELL = "runs-in-shell"  # the shell itself runs what it is given: eval, source
    JOINS_WORDS = "joins-words"  # its words together are the text to run: eval
    RUNS_FILE = "runs-file"  # a file it is given is run, not changed
    ADMINISTRATOR = "administrator"  # it runs a command with power over the machine
    PRINTS_SETUP = "prints-setup"  # it prints text for eval that sets up a shell
    DANGEROUS_INSIDE = "dangerous-inside"  # looked for among the words of a wrapper that is not understood
    SAYS_WHERE = "says-where"  # `command -v` says where a program is
    NO_EXEC = "no-exec"  # it starts others, or reads its own settings: not for find -exec
    # What it carries
    FETCHES = "fetches"
    SENDS = "sends"
    CARRIES = "carries"  # to or from another machine, whatever else is said
    DECODES = "decodes"
    SAVES_BY_ADDRESS = "saves-by-address"  # the file is called as the address ends
    CMDLET_FETCHES = "cmdlet-fetches"  # in PowerShell
    # What it does to files
    NAMES_ONLY = "names-only"  # it shows or changes no more of a file than its name, dates and rights
    SHOWS_CONTENT = "shows-content"
    TEXTUAL = "textual"  # its operands are patterns or texts as often as files
    NO_FILES = "no-files"  # its operands are not files
    FILTER = "filter"  # an operand that begins with a dot is a filter, no file
    REVISIONS = "revisions"  # `HEAD:file`
    QUIET = "quiet"  # its words are not files, and it only prints
    WRITES_ALL = "writes-all"  # every operand is written
    COPIES = "copies"  # the last operand is written
    LAST_WRITTEN = "last-written"  # the last operand may be a file of secrets that will be written
    TO_LAST = "to-last"  # a cmdlet that writes its last operand, not its first
    SIZE_OPERAND = "size-operand"  # an operand may be a size
    MOVES_AWAY = "moves-away"  # what it is given is gone afterwards
    SECOND_NAME = "second-name"  # what it is given gets another name
    LINKS = "links"
    MODE = "mode"  # its first operand may give a program its owner's power
    CHANGES_RIGHTS = "changes-rights"
    WRITES_BY_FORM = "writes-by-form"  # a reader that writes in some of its forms
    PLACES_JUDGED = "places-judged"  # what it writes is judged by a function of its own
    PARTIAL = "partial"  # its special function only looks further; the rest that is known still counts
    SHOWS_WHEN_ALONE = "shows-when-alone"  # without a word it prints settings
    PRINTS_WORDS = "prints-words"
    PRINTS_ENVIRONMENT = "prints-environment"
    SETS_VARIABLE = "sets-variable"  # with -v
    MOVES = "moves"  # it changes the directory of the shell
    # How it only reads
    TEXT_VALUES = "text-values"  # its options take patterns and formats: a slash in them is text
    TAKES_STATUS = "takes-status"  # `$?` may be among its words
    RESPONSE_FILES = "response-files"  # `nm @file`: what is in the file is read as if it was typed
    CLOSING_BRACKET = "closing-bracket"
    ADDS_NOT_ON_MAC = "adds-not-on-mac"  # the plan's own options are GNU's only
    NO_DEREFERENCE = "no-dereference"  # --recursive follows links unless it is told not to
    RECURSIVE_LINKS = "recursive-links"  # -R follows links, -r does not
    COUNTS = "counts"  # it reads a file to its end to tell a number
    ENDS_SOON = "ends-soon"  # it reads no more than it prints
    FINDS = "finds"  # it prints names of files that it looks for, and runs commands on them
    PRINTS_NAMES = "prints-names"  # it prints names of files, and not what is in them
    PRINTS_DASHES = "prints-dashes"  # `--` is a word like others
    METADATA = "metadata"  # what it shows of a file is no more than its name, size or a count
    SEARCHES = "searches"  # it prints lines with a pattern, not the whole
    OPENS = "opens"  # it prints files that it is given
    FILTERS = "filters"  # it chooses among lines
    COMPOSE = "compose"  # options with a file or a project stand before its command
    REPOSITORY = "repository"  # it believes the settings of the repository
    REPOSITORY_SETTINGS = "repository-settings"  # it reads the repository's files and the person's git settings
    ADDRESSES = "addresses"  # it prints addresses of remotes, which may hold credentials
    OUTSIDE_FILES = "outside-files"  # outside of a repository it reads any file
    LINE_RANGES = "line-ranges"  # -L names a file
    WAITS_FOR_LOG = "waits-for-log"  # without a terminal it waits for a log
    ANY_ADDRESS = "any-address"  # an address is what it is meant for
    # What its plan needs
    NAMED_ONLY = "named-only"  # it reads the files it is given, and nothing else of the workspace
    LOOKED_INTO = "looked-into"  # given a folder, it reads all in it
    TEMPORARY = "temporary"  # it puts what does not fit into memory into a temporary file
    EMPTY_HOME = "empty-home"  # it takes a home that it can't read for an error, so it gets an empty one
    SERVER = "server"  # it asks a server: a plan has no network, so a person is asked
    LOCAL = "local"  # a command of such a program that asks nobody
    CORE = "core"  # it runs without a question also where nothing keeps a command to reading
    # What may be granted
    SUGGEST_LINE = "suggest-line"  # "always allow" suggests only the whole line: each call of it is another thing
    SUGGEST_NAME = "suggest-name"  # "always allow" suggests its name alone: what its options can do is known
    BUILDS = "builds"  # to write with -o is what it is for
    SCOPED = "scoped"  # `@scope/package` is a package
    MAKE_WORDS = "make-words"  # only targets and harmless options may follow
    SINGLE_DASH = "single-dash"  # long options with one dash
    MODULES = "modules"  # `-m` runs a module
    # Who reads what is typed
    TYPED_SHELL = "typed-shell"
    TYPED_CODE = "typed-code"  # it runs what it reads
    RELAY = "relay"  # behind it is another machine or another terminal: nobody sees who reads
    KEYBOARD = "keyboard"  # it takes keys, and some keys start a shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """What a program, or a command of one, may be given and is then known to only read."""

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
    check: str  # a function of checks.py, for what the next fields can't say
    one_of: frozenset[str]  # options, one of which must be given
    each: re.Pattern[str] | None  # every operand must be like this
    never: re.Pattern[str] | None  # no operand may hold this
    first: frozenset[str]  # the first operand, if there is one, must be one of these
    or_else: str  # why it isn't proven otherwise
    unless: tuple[str, ...]  # files in the project that make it run code
    cwd: bool  # reads the directory it stands in
    instead: tuple[str, ...]  # what the plan runs in its place: a builtin has no program
    connects: str  # the server or daemon that it asks; then a person is asked first
    adds: tuple[str, ...]  # what the plan puts before its arguments, to be certain


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a program that runs others lays out its arguments."""

    name: str
    value: frozenset[str] = frozenset()  # options with a value
    code: frozenset[str] = frozenset()  # options whose value is shell text
    skip: int = 0  # words before the command
    assigns: bool = False  # NAME=value may stand before the command
    script: bool = False  # the words are shell text
    shell: bool = False
    fed: bool = False  # the rest of the words comes from its input
    multi: bool = False  # busybox: the next word is the program
    risk: Risk = "low"
    does: str = ""
    project: str = ""  # what it runs is code of the project, or fetched
    fetches: bool = False  # it fetches what it runs
    elsewhere: bool = False  # what it runs sees other files than those of this machine
    plain: str | None = None  # its options that a plan may have; None: a plan can't have it at all
    before: str = ""  # a pattern for the word before the command, in a plan
    left_out: bool = False  # the plan leaves it out


@dataclass(frozen=True, slots=True)
class EffectRule:
    """One thing that a program does, and when."""

    run: tuple[str, ...]
    options: tuple[frozenset[str], ...]
    operand: re.Pattern[str] | None
    risk: Risk
    kind: EffectKind
    does: str
    instead: bool
    skip: int
    vague: bool


@dataclass(frozen=True, slots=True)
class Program:
    """All that is known of one program, or of a command of one."""

    name: str = ""
    reads: Grammar | None = None
    runs: Wrapper | None = None
    does: tuple[EffectRule, ...] = ()
    traits: frozenset[Trait] = frozenset()
    # Its effects
    special: str = ""  # a function of specials.py: what it does depends on what it is pointed at
    touches: str = ""  # what it does to a file that it is given, where that is not reading
    verb: str = ""  # what it does to a file that it writes, for a person
    unpacks_into: tuple[str, ...] = ()  # the options that name a folder
    writes_by: tuple[str, ...] = ()  # a reader that writes by these options
    changes: tuple[str, ...] = ()  # its commands that change the files they are given
    saves: tuple[str, ...] = ()  # the options that name a file for what it fetches
    uploads: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()  # options before its command that take a value: `git -C dir push`
    # How it only reads
    prove: str = ""  # a function of readonly.py in place of a grammar
    front: tuple[str, ...] = ()  # what the plan puts before it
    choosing: str = ""  # options that choose among whole names; others cut names or put something before them
    listing: tuple[str, ...] = ()  # words that make it print names of files
    whole: str = ""  # the option that ends each of those names with a NUL
    names_by: tuple[str, ...] = ()  # the options that make it print names and no more; none: it does so anyway
    naming: tuple[str, ...] = ()  # the options with which it still does
    answers_to: tuple[str, ...] = ()  # other words than --version and --help that it answers, by its manual
    answers_unless: tuple[str, ...] = ()  # files of the project that it believes before it answers
    groups: tuple[str, ...] = ()  # its commands that have commands of their own: `gh pr create --help`
    own: tuple[str, ...] = ()  # its commands that no project can give another meaning
    # What its plan needs to read besides the files it is given
    needs: tuple[str, ...] = ()
    needs_in_home: tuple[str, ...] = ()  # what was installed or downloaded before, and holds no credentials
    variables: tuple[str, ...] = ()  # what tells it that it can't keep what it downloads
    server_commands: tuple[str, ...] = ()  # its commands that ask a server
    core_commands: tuple[str, ...] = ()  # see Trait.CORE
    # What may be granted: see grants.py
    grant: str = ""  # "never", "line", "command" (name the command), "script" (name the script); else its name
    grant_words: tuple[str, ...] = ()  # its commands that take one more word
    grant_program: tuple[str, ...] = ()  # its commands that take a program, which must be fit to be granted
    grant_line: tuple[str, ...] = ()  # its commands that are good for a whole line only
    suggest_line: tuple[str, ...] = ()  # its commands, as Trait.SUGGEST_LINE
    turning: tuple[str, ...] = ()  # options that make another thing of it: no prefix covers them
    typed_code: str = ""  # it runs what it reads; the option by which the same code is a command

    @property
    def starts_only(self) -> bool:
        """Whether it does no more than start the command in its words: timeout, nice, nohup."""
        return self.runs is not None and self.runs.plain is not None


_NOBODY = Program()
_TEXTS = frozenset(["special", "prove", "touches", "verb", "choosing", "whole", "grant", "typed_code"])
_WORDS = frozenset(each.name for each in fields(Program)) - _TEXTS - {"name", "reads", "runs", "does", "traits"}


@functools.lru_cache(maxsize=4096)
def known(name: str | None) -> Program:
    """What is known of a program; a description without anything when it is nothing."""
    table = registry()
    return table[name] if name is not None and name in table else _NOBODY


@functools.cache
def registry() -> Mapping[str, Program]:
    """All programs that are known, and those commands of theirs that have an entry."""
    return Table(entries(), _program)


@functools.cache
def entries() -> Mapping[str, ProgramEntry]:
    """The tables, by name."""
    return {name: entry for names_, entry in _all_entries() for name in names(names_)}


def _all_entries() -> Iterator[tuple[str, ProgramEntry]]:
    from tarmac.policy.programs.rules import coreutils, git, machine, shell, tools

    for table in (coreutils, git, machine, tools, shell):
        yield from table.PROGRAMS.items()


@functools.cache
def grammars() -> Mapping[str, Grammar]:
    """All programs and commands that are known to read, by name."""
    found = {name: entry for name, entry in entries().items() if "why" in entry or "like" in entry}
    return Table(found, _reads)


@functools.cache
def readers() -> frozenset[str]:
    """The programs that are known to read, at least by one of their commands."""
    return frozenset(name.partition(" ")[0] for name in grammars())


def _program(name: str, entry: ProgramEntry) -> Program:
    given: dict[str, str] = {key: value for key, value in entry.items() if isinstance(value, str)}
    return Program(
        name=name,
        reads=grammars().get(name),
        runs=_wrapper(name, entry["runs"]) if "runs" in entry else None,
        does=tuple(_rules(name, entry.get("does", []))),
        traits=frozenset(map(Trait, entry.get("traits", "").split())),
        **{key: given[key] for key in _TEXTS & given.keys()},  # type: ignore[arg-type]
        **{key: tuple(given[key].split()) for key in _WORDS & given.keys()},  # type: ignore[arg-type]
    )


def _wrapper(name: str, entry: WrapperEntry) -> Wrapper:
    value, code = frozenset(entry.get("value", "").split()), frozenset(entry.get("code", "").split())
    return Wrapper(name, **{**entry, "value": value, "code": code})  # type: ignore[arg-type]


def _rules(name: str, found: Iterable[EffectEntry]) -> Iterator[EffectRule]:
    for each in found:
        for command in names(each.commands):
            yield EffectRule(
                (name, *command.split()),
                tuple(frozenset(group.split()) for group in each.options.split(",") if group.strip()),
                re.compile(each.operand) if each.operand else None,
                each.risk,
                EffectKind(each.kind),
                each.does,
                each.instead,
                each.skip,
                each.vague,
            )


def _reads(name: str, entry: ProgramEntry) -> Grammar:
    from tarmac.policy.programs.rules.git import SHARED

    inherit: Mapping[str, object] = {}
    if like := entry.get("like"):
        inherit = SHARED[like] if like in SHARED else _with_shared(entries()[like], SHARED)
    return make_grammar(name, entry, inherit=inherit)


def _with_shared(entry: ProgramEntry, shared: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    more = shared.get(entry.get("like", ""), {})
    return {**more, **entry, "long": f"{more.get('long', '')} {entry.get('long', '')}"}


def make_grammar(name: str, entry: Mapping[str, object], *, inherit: Mapping[str, object]) -> Grammar:
    """One entry as a grammar; what it does not say is as in `inherit`."""

    def take(key: str, default: object) -> object:
        return entry.get(key, inherit.get(key, default))

    most = take("most", None)
    return Grammar(
        name=name,
        why=str(entry["why"] if "why" in entry else inherit["why"]),
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
        prefix=bool(take("prefix", False)),
        check=str(take("check", "")),
        one_of=frozenset(_words(take("one_of", ""))),
        each=_pattern(take("each", "")),
        never=_pattern(take("never", "")),
        first=frozenset(_words(take("first", ""))),
        or_else=str(take("or_else", "")),
        unless=tuple(str(take("unless", "")).split()),
        cwd=bool(take("cwd", False)),
        instead=_words(take("instead", "")),
        connects=str(take("connects", "")),
        adds=_words(take("adds", "")),
    )


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


def _pattern(value: object) -> re.Pattern[str] | None:
    return re.compile(str(value), re.DOTALL) if value else None


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else tuple(str(value).split())


@dataclass(slots=True)
class ParsedArguments:
    """Arguments, understood."""

    options: list[tuple[str, str | None]] = field(default_factory=list)  # name without dashes, value
    operands: list[str] = field(default_factory=list)
    paths: list[tuple[str, bool]] = field(default_factory=list)  # path, whether its content is read
    patterns: list[tuple[str, bool]] = field(default_factory=list)  # git's paths, with * and ?; whether it is certain
    ended: int | None = None  # how many operands stand before `--`


def read_programs(data: Mapping[str, object]) -> dict[str, Grammar]:
    """The programs of a user's own rules."""
    found: dict[str, Grammar] = {}
    shared: Mapping[str, Mapping[str, object]] = data.get("shared", {})  # type: ignore[assignment]
    for name, entry in data.items():
        if name in ("shared", "versions") or not isinstance(entry, dict):
            continue
        inherit = shared.get(str(entry.get("like", "")), {})
        for each in (name, *str(entry.get("also", "")).split("|")):
            if each.strip():
                found[each.strip()] = make_grammar(each.strip(), entry, inherit=inherit)
    return found


def answers(name: str, word: str) -> bool:
    """Whether `word` makes the program `name` tell its version or help, and stop."""
    program = known(name)
    return Trait.ANSWERS in program.traits and (word in ("--version", "--help") or word in program.answers_to)


def helps(words: tuple[str, ...]) -> bool:
    """`docker run --help`, `gh pr create --help`: whether it prints help, and stops."""
    name, *commands, last = words
    program = known(name)
    if last != "--help" and not (last == "-h" and program.own):
        return False
    if not all(re.fullmatch(r"[a-z][a-z-]*", command) for command in commands):
        return False
    if len(commands) == 2:  # one more word may be an image or a script that gets the --help: `docker run x --help`
        return commands[0] in program.groups
    return len(commands) == 1 and (Trait.HELPS in program.traits or commands[0] in program.own)


def match(program: Grammar, words: Sequence[str]) -> ParsedArguments:
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
    _form(program, reading)
    return reading


def _form(program: Grammar, reading: ParsedArguments) -> None:
    words = reading.operands
    if program.one_of and program.one_of.isdisjoint(name for name, _ in reading.options):
        raise Unproven(program.or_else)
    if program.each and not all(map(program.each.fullmatch, words)):
        raise Unproven(program.or_else)
    if program.never and any(map(program.never.search, words)):
        raise Unproven(program.or_else)
    if program.first and words and words[0] not in program.first:
        raise Unproven(f"`{words[0]}` is not known to only show")


def _long(program: Grammar, text: str, rest: list[str], reading: ParsedArguments) -> None:
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


def _short(program: Grammar, letters: str, rest: list[str], reading: ParsedArguments) -> None:
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


def _operands(program: Grammar, reading: ParsedArguments) -> None:
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
    takes_files = Trait.RESPONSE_FILES in known(program.name.split()[0]).traits
    for number, operand in enumerate(reading.operands):
        kind = kinds[min(number, len(kinds) - 1)]
        if kind in ("path", "name") and "://" in operand:
            raise Unproven(f"`{operand}` is an address, not a file")
        if operand.startswith("@") and takes_files:
            raise Unproven(f"it takes more words, options too, from the file {operand[1:]}")
        if kind in ("rev", "listed"):
            _of_repository(operand, kind, reading, path=reading.ended is not None and number >= reading.ended)
        elif kind == "path":
            if operand != "-":
                reading.paths.append((operand, True))
        elif kind == "name":
            reading.paths.append((operand, False))
        elif kind == "number" and not re.fullmatch(r"-?[0-9.]+[a-zA-Z]?", operand):
            raise Unproven(f"`{operand}` is not a number")
        elif kind == "word" and not re.fullmatch(r"[A-Za-z0-9_@.,:+*=/-]*", operand):
            raise Unproven(f"`{operand}` is not a plain name")
        elif kind == "word" and "://" in operand and Trait.ANY_ADDRESS not in known(program.name).traits:
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
