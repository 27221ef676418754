"""The options and operands of programs that are known to only read. The data is in rules/.

words → match(grammar, words) → ParsedArguments(options, operands, paths) | Unproven

Options are written as in getopt: a letter or a name, then `:` if a value follows, `::` if a value may be attached, `@`
if the value is a path, `+` if two values follow. An option that is not listed is not proven. Long names may be
shortened as getopt_long allows. Names in `refuse` are known too, so that their abbreviations are not taken for other
options.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tarmac.policy.programs.program import Grammar, Trait, known, make_grammar
from tarmac.policy.verdict import Unproven


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
    return reading


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
            raise Unproven(f"`{operand}` is no number")
        elif kind == "word" and not re.fullmatch(r"[A-Za-z0-9_@.,:+*=/-]*", operand):
            raise Unproven(f"`{operand}` is no plain name")
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
