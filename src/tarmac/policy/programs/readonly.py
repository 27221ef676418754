"""Prove that a simple command only reads, and say how to run it without a shell. Without a proof, a person is asked.

Simple → prove() → Proof(stage, paths looked at) | Unproven(reason)

The command word must be written plainly, and every other word must be certain. A pattern is expanded here, and its
names are judged like typed ones. If the directory does not exist, a pattern passes only if it can't become an option
that does more than read. Programs that run others (timeout, xargs, python -m, docker compose) are proven together with
what they run.
"""

import fnmatch
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Protocol

from tarmac.policy.budget import note
from tarmac.policy.files import IGNORE_FILES, Files, PathStatus
from tarmac.policy.parse.words import Redirect, Simple, Word
from tarmac.policy.places import Ground, expand, is_secret, listable
from tarmac.policy.plan import SYSTEM_PATH, search_path
from tarmac.policy.programs.checks import (
    FURTHER,
    OWN,
    SAMPLE,
    check_found,
    check_pattern,
    exec_of_plain_files,
    has,
    naming,
    of_whole_names,
    plain_files,
)
from tarmac.policy.programs.program import Grammar, ParsedArguments, Trait, answers, grammars, helps, known, match
from tarmac.policy.programs.repository import check_addresses, check_repository
from tarmac.policy.verdict import STATUS, Proof, Stage, Unproven


class WordProver(Protocol):
    """Proves the command inside of another one."""

    def prove_words(self, words: tuple[str, ...]) -> Proof: ...
    def find(self, words: tuple[str, ...]) -> tuple[Grammar, list[str], Ground | None]: ...
    def read(self, program: Grammar, arguments: list[str]) -> ParsedArguments: ...
    def check_paths(self, reading: ParsedArguments, program: Grammar) -> None: ...
    def check_path(self, path: str, *, content: bool) -> None: ...
    def named(self, name: str) -> PathStatus: ...


def wrapped(prover: WordProver, words: tuple[str, ...]) -> Proof:
    """timeout 5 ls, nice ls: no more than what they start."""
    rest = list(words[1:])
    if has(words[0], Trait.SAYS_WHERE) and rest[:1] in (["-v"], ["-V"]):
        if len(rest) >= 2 and all(re.fullmatch(r"[\w.+-]+", word) for word in rest[1:]):
            return Proof(
                Stage(("bash", "-p", "-c", 'command "$@"', "bash", *rest)),
                "read.command",
                "says where a program is",
            )
        raise Unproven("it asks for more than a command")
    wrapper = known(words[0]).runs
    assert wrapper is not None
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if not wrapper.plain or not re.fullmatch(wrapper.plain, option):
            raise Unproven(f"`{words[0]}` with {option} is not known")
        if option in wrapper.value and rest:
            rest.pop(0)
    for _ in range(wrapper.skip):
        if not rest or not re.fullmatch(wrapper.before, rest.pop(0)):
            raise Unproven(f"`{words[0]}` lacks a word before its command")
    if not rest or known(rest[0]).starts_only or PROVERS.get(known(rest[0]).prove) is xargs:
        raise Unproven(f"`{words[0]}` of another launcher")
    inner = prover.prove_words(tuple(rest))
    front = () if wrapper.left_out else words[: len(words) - len(rest)]
    return replace(inner, stage=Stage((*front, *inner.stage.words)))


def xargs(prover: WordProver, words: tuple[str, ...], upstream: tuple[Simple, ...]) -> Proof:
    """find … | xargs wc -l: a command that shows no more than sizes and counts, whatever names it gets."""
    rest = list(words[1:])
    exact, holder = False, ""
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word in ("-0", "--null", "-r", "--no-run-if-empty", "-t", "-0r", "-r0"):
            exact |= "0" in word or word == "--null"
        elif re.fullmatch(r"-[nPL][0-9]+", word):
            pass
        elif word in ("-n", "-P", "-L") and rest and rest[0].isdigit():
            rest.pop(0)
        elif word in ("-I{}", "-I%") or (word == "-I" and rest[:1] in (["{}"], ["%"])):
            holder = word[2:] or rest.pop(0)
        else:
            raise Unproven(f"`xargs` with {word} is not known")
    if not rest or not upstream:
        raise Unproven("xargs runs a command with words from elsewhere")
    own = words[: len(words) - len(rest)]
    if holder:
        if any(holder in word for word in rest[:-1]) or rest[-1] != holder:
            raise Unproven("xargs puts names inside other words")
        rest.pop()
    before = _check_handed(prover, rest[0], upstream, exact=exact)
    inner = prover.prove_words((*rest, f"{os.curdir}/{SAMPLE}"))
    hardened = inner.stage.words
    if hardened[-1] != f"{os.curdir}/{SAMPLE}":
        raise Unproven(f"xargs can't give names to `{rest[0]}`")
    end = () if has(rest[0], Trait.PRINTS_DASHES) or "--" in rest else ("--",)  # so that no name is an option
    sample = f"-{SAMPLE}"
    if (end or "--" in rest) and sample not in prover.read(*prover.find((*rest, *end, sample))[:2]).operands:
        raise Unproven(f"xargs could give `{rest[0]}` a name that it takes for an option")
    if before and not exact:
        own = (own[0], "-0", *own[1:])
    return replace(inner, stage=Stage((*own, *hardened[:-1], *end, *[holder] * bool(holder))), before=before)


def _check_handed(
    prover: WordProver, opener: str, upstream: tuple[Simple, ...], *, exact: bool
) -> tuple[tuple[str, ...], ...]:
    """Whether names from this pipe may be given to `opener`; and what must print them, if not what is written."""
    lines = [simple.literal_words() or (simple.name or "",) for simple in upstream]
    before: tuple[tuple[str, ...], ...] = ()
    if has(opener, Trait.OPENS, Trait.SEARCHES):
        if None in (simple.literal_words() for simple in upstream):
            raise Unproven(f"xargs gives `{opener}` names that are not known")
        first = _found_names if has(lines[0][0], Trait.FINDS) else _whole_names
        names, ended = first(prover, lines[0], opener)
        if exact is not ended or (exact and len(lines) != 1):
            raise Unproven(f"xargs gives `{opener}` names that are not known")
        before = (names, *map(of_whole_names, lines[1:]))
    elif not has(opener, Trait.METADATA) or not _prints_names(lines[0]):
        raise Unproven(f"xargs gives `{opener}` names that are not known")
    for words in lines[1:]:
        if not (has(words[0], Trait.FILTERS) or known(words[0]).choosing) or prover.read(*prover.find(words)[:2]).paths:
            raise Unproven(f"xargs gives `{opener}` names that are not known")
    return before


def _found_names(prover: WordProver, words: tuple[str, ...], opener: str) -> tuple[tuple[str, ...], bool]:
    """`find` as it is meant before xargs; and whether it was written to end each name with a NUL."""
    found = plain_files(words[:-1] if words[-1] == "-print0" else words)
    check_found(prover.read(*prover.find(found)[:2]), opener, prover.named)
    return found, "-print0" in words


def _whole_names(prover: WordProver, words: tuple[str, ...], opener: str) -> tuple[tuple[str, ...], bool]:
    """The same of `git ls-files`, `rg -l` …, with the words that a plan of it alone has."""
    program, written, moved = prover.find(words)
    reading = prover.read(program, written)
    whole = naming(program, reading, opener, prover.named)
    if moved is not None:
        raise Unproven("xargs gets names that are meant from another folder")
    ended = not {"z", "Z", "0", "null"}.isdisjoint(name for name, _ in reading.options)
    return prover.prove_words((*words[: len(words) - len(written)], whole, *written)).stage.words, ended


def python_module(prover: WordProver, words: tuple[str, ...], upstream: tuple[Simple, ...]) -> Proof:
    """python -m pip list: isolated (-I), so that no module of the project takes its place."""
    interpreter = (words[0], "-I", "-m")
    if words[2:3] == ("pip",) and len(words) > 3:
        inner = prover.prove_words(("pip", *words[3:]))
        return replace(inner, stage=Stage((*interpreter, *inner.stage.words)))
    if words[2:3] == ("json.tool",):
        program = grammars()["python -m json.tool"]
        prover.check_paths(prover.read(program, list(words[3:])), program)
        return Proof(Stage((*interpreter, *words[2:])), "read.json.tool", program.why)
    raise Unproven(f"`{' '.join(words[:3])}` is not known to only read")


def compose(prover: WordProver, words: tuple[str, ...], options: tuple[str, ...]) -> Proof:
    """docker compose -f FILE ps: the same as without, and the file is looked at."""
    head = words[: _length_of_compose(words)]
    for option, value in itertools.pairwise(options):
        if option in ("-f", "--file"):
            if ":" in value or value == "-":
                raise Unproven(f"`{value}` may be an address")
            prover.check_path(value, content=True)
    inner = prover.prove_words((*head, *words[len(head) + len(options) :]))
    return replace(inner, stage=Stage((*head, *options, *inner.stage.words[len(head) :])))


def _prints_names(words: tuple[str, ...]) -> bool:
    """Whether this command prints names of files, and not what is in them."""
    return has(words[0], Trait.PRINTS_NAMES) or not set(words).isdisjoint(known(words[0]).listing)


def compose_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """The options between `docker compose` and its command: its file, project and profile, each with a value."""
    start = at = _length_of_compose(words)
    while at and words[at : at + 1] and words[at] in ("-f", "--file", "-p", "--project-name", "--profile"):
        at += 2
    return words[start:at] if at < len(words) else ()


def _length_of_compose(words: tuple[str, ...]) -> int:
    """How many words say `docker compose`; none in other commands."""
    return next((size for size in (1, 2) if has(" ".join(words[:size]), Trait.COMPOSE)), 0)


# In place of a grammar: `prove` in the tables.
PROVERS: dict[str, Callable[[WordProver, tuple[str, ...], tuple[Simple, ...]], Proof]] = {
    each.__name__: each for each in (xargs, python_module)
}


def streams_of(redirects: Sequence[Redirect]) -> Stage:
    """Where the streams lead, by redirections that write nothing: to /dev/null, or between 1 and 2."""
    stdin: str | None = None
    text: str | None = None
    out, err = "out", "err"
    for each in redirects:
        target = each.target.text if each.target and each.target.literal else None
        match (each.fd, each.op, target):
            case ("" | "1", ">" | ">>" | ">|", "/dev/null"):
                out = "null"
            case ("2", ">" | ">>", "/dev/null"):
                err = "null"
            case ("", "&>" | "&>>", "/dev/null"):
                out = err = "null"
            case ("2", ">&", "1"):
                err = out
            case ("" | "1", ">&", "2"):
                out = "err" if err == "err" else err
            case ("" | "0", "<", str(path)):
                stdin, text = path, None
            case ("" | "0", "<<<", _) if each.target and each.target.text is not None and not each.target.home:
                stdin, text = None, f"{each.target.text}\n"
            case ("" | "0", "<<", _) if each.body is not None:
                stdin, text = None, each.body
            case (_, "<<" | "<<-" | "<<<", _):
                raise Unproven("it holds a here-document")
            case _:
                raise Unproven(f"it redirects: {each.source}")
    return Stage((), stdin=stdin, text=text, stdout=out, stderr=err)  # type: ignore[arg-type]


_ENDLESS = ("/dev/zero", "/dev/random", "/dev/urandom", "/dev/full", "/dev/tty")


@dataclass(frozen=True, slots=True)
class Prover:
    """Proves commands in one place."""

    files: Files
    ground: Ground
    extra: Callable[[str], Grammar | None]  # what the user's own rules know

    def prove(self, simple: Simple) -> Proof:
        """The proof; Unproven when there is none."""
        if not simple.words:
            raise Unproven("it holds no command")
        if not self.ground.inside:
            raise Unproven("it runs outside of the workspace")
        first = simple.words[0]
        if not (first.plain and first.literal):
            raise Unproven("its command is not written plainly")
        front = variables(simple.assigns)
        words = expand_words(simple.words, self.ground)
        if any(looks_alike(word) for word in words):
            raise Unproven("it holds letters that only look like others")
        if any(STATUS in word for word in words) and not has(words[0], Trait.TAKES_STATUS):
            raise Unproven("it uses the status of another command")
        streams = streams_of(simple.redirects)
        if streams.stdin is not None:
            self.check_path(streams.stdin, content=True)
            self._check_end(streams.stdin)
        came_from = (
            program_name(simple.upstream[0].name or "", workspace=self.ground.workspace) if simple.upstream else ""
        )
        if has(came_from, Trait.PRINTS_ENVIRONMENT) and _asks_for_secret(words):
            raise Unproven("it looks for secrets in the environment")
        name = program_name(words[0], workspace=self.ground.workspace)
        proof = self.prove_words((name, *words[1:]), upstream=simple.upstream)
        own = proof.stage.words
        if name != words[0]:
            if own[0] != name:
                raise Unproven(f"the plan has another program in place of `{words[0]}`")
            own = (words[0], *own[1:])
        return replace(proof, stage=replace(streams, words=(*front, *own)))

    def prove_words(self, words: tuple[str, ...], *, upstream: tuple[Simple, ...] = ()) -> Proof:
        name = words[0]
        named = known(name)
        if len(words) == 2 and answers(name, words[1]):
            self._check_unless(name)
            return Proof(Stage(words), "read.version", "prints its version or its help", alone=True)
        if named.starts_only:
            return wrapped(self, words)
        if len(words) > 2 and helps(words):
            self._check_unless(name)
            if Trait.REPOSITORY_SETTINGS in named.traits:
                check_repository(self.ground)
            return Proof(Stage(words), "read.help", "prints its help", alone=True)
        if prove := PROVERS.get(named.prove or known(" ".join(words[:2])).prove):
            return prove(self, words, upstream)
        if len(options := compose_options(words)) > 0:
            return compose(self, words, options)
        program, written, moved = self.find(words)
        arguments = written
        of = known(program.name).traits
        if Trait.FINDS in of:
            arguments = exec_of_plain_files(arguments)
        reading = self.read(program, arguments)
        place = self if moved is None else Prover(self.files, moved, self.extra)
        place.check_paths(reading, program)
        place._check_values(reading, program)
        if Trait.FINDS in of:
            arguments = place._harden_exec(reading, arguments)
        if Trait.REPOSITORY in named.traits:
            check_repository(place.ground)
        if Trait.ADDRESSES in of:
            check_addresses(place.ground)
        if Trait.OUTSIDE_FILES in of:  # outside of a repository they read any file
            for operand in reading.operands:
                if os.path.lexists(os.path.join(place.ground.cwd, operand)):
                    place.check_path(operand, content=True)
        own = program.instead or words[: len(words) - len(written)]
        plan = (
            *known(program.name).front,
            *own,
            *(() if Trait.ADDS_NOT_ON_MAC in of and sys.platform == "darwin" else program.adds),
            *_unlinked(program, arguments, reading),
            *_instead_of_terminal(program, reading, upstream),
        )
        rule = f"read.{program.name.replace(' ', '.')}"
        return Proof(Stage(plan), rule, program.why, program.connects, program=program.name.split()[0])

    def _check_unless(self, name: str) -> None:
        for file in known(name).answers_unless:
            if _exists_above(file, self.ground):
                raise Unproven(f"the project's {file} may name a program to run")

    def read(self, program: Grammar, arguments: list[str]) -> ParsedArguments:
        if has(program.name, Trait.CLOSING_BRACKET) and arguments[-1:] != ["]"]:
            raise Unproven("a test lacks its ]")
        if replacement := OWN.get(program.check):
            return replacement(arguments)
        reading = match(program, arguments)
        if further := FURTHER.get(program.check):
            further(reading)
        return reading

    def find(self, words: tuple[str, ...]) -> tuple[Grammar, list[str], Ground | None]:
        """The entry for these words, the arguments after its name, and the directory it is sent to (`git -C`)."""
        table = grammars()
        rest = list(words[1:])
        name = words[0]
        ground: Ground | None = None
        entry = self.extra(name) or table.get(name)
        while entry is not None and entry.prefix:
            rest, moved = self._past_options(entry, rest)
            ground = moved or ground
            for size in (2, 1):
                longer = " ".join((entry.name, *rest[:size]))
                if len(rest) >= size and (found := self.extra(longer) or table.get(longer)):
                    return self._deeper(found, rest[size:], ground)
            raise Unproven(f"`{' '.join((name, *rest[:1]))}` is not known to only read")
        for size in (3, 2):
            longer = " ".join(words[:size])
            if len(words) >= size and (found := self.extra(longer) or table.get(longer)):
                return self._deeper(found, list(words[size:]), ground)
        if entry is None:
            raise Unproven(f"`{name}` is not known to only read")
        return entry, rest, ground

    def _deeper(
        self, entry: Grammar, rest: list[str], ground: Ground | None
    ) -> tuple[Grammar, list[str], Ground | None]:
        if not entry.prefix:
            return entry, rest, ground
        if rest and (found := grammars().get(f"{entry.name} {rest[0]}")):
            return found, rest[1:], ground
        raise Unproven(f"`{' '.join((entry.name, *rest[:1]))}` is not known to only read")

    def _past_options(self, entry: Grammar, rest: list[str]) -> tuple[list[str], Ground | None]:
        """Past the options between a program and its subcommand."""
        ground: Ground | None = None
        reading = ParsedArguments()
        while rest and rest[0].startswith("-"):
            name, _, value = rest[0].lstrip("-").partition("=")
            kind = entry.long.get(name) if rest[0].startswith("--") else entry.short.get(rest[0][1:2])
            if kind is None or (not rest[0].startswith("--") and len(rest[0]) > 2):
                raise Unproven(f"`{entry.name}` is not known to only read with {rest[0]}")
            taken = 1
            if kind in (":", "@") and not value:
                if len(rest) < 2:
                    raise Unproven(f"{rest[0]} lacks its value")
                value, taken = rest[1], 2
            if kind == "@":  # git -C: the rest is meant from there
                ground = (ground or self.ground).moved(value)
                if not ground.inside:
                    raise Unproven("it looks outside of the workspace")
            reading.options.append((name if rest[0].startswith("--") else rest[0][1:], value))
            rest = rest[taken:]
        if further := FURTHER.get(entry.check):
            further(reading)
        return rest, ground

    def check_paths(self, reading: ParsedArguments, program: Grammar) -> None:
        for name in program.unless:
            if _exists_above(name, self.ground):
                raise Unproven(f"the project's {name} may name a program to run")
        of = known(program.name).traits
        for path, content in reading.paths:
            if program.check in ("recursive", "ls") and self.ground.look(self.files, path).inside:
                content = False  # names and sizes of all below it, no more
            self.check_path(path, content=content)
            if (content or Trait.COUNTS in of) and not (Trait.ENDS_SOON in of and _takes_little(reading)):
                self._check_end(path)

    def _check_end(self, path: str) -> None:
        if str(self.named(path).path) in _ENDLESS:
            raise Unproven(f"{path} has no end")

    def check_path(self, path: str, *, content: bool) -> None:
        look = self.ground.look(self.files, path)
        if content:
            why = look.unread or ("it is named like credentials" if is_secret(path) else "")
        elif look.inside or look.public:
            why = look.trouble or look.own or look.ignored
        else:
            why = "" if listable(self.ground.locate(path)) else "it is outside of the workspace"
        if why:
            raise Unproven(f"{path}: {why}")

    def named(self, name: str) -> PathStatus:
        """What a name would be here, that may be a pattern: the disk is not asked for it."""
        for folder, own in product((self.ground.cwd, self.ground.workspace), IGNORE_FILES):
            note(f"{folder}/{own}")
        return self.files.look(name, cwd=Path(self.ground.cwd), workspace=Path(self.ground.workspace))

    def _check_values(self, reading: ParsedArguments, program: Grammar) -> None:
        """The value of an option that names a file elsewhere is more than text, whatever the table says."""
        for pattern, certain in reading.patterns:
            check_pattern(pattern, self.named, certain=certain)
        ranges = has(program.name, Trait.LINE_RANGES)
        text_values = has(program.name.split()[0], Trait.TEXT_VALUES)
        for name, value in reading.options:
            if name in ("include", "g", "glob", "iglob") and value and not value.startswith("!"):
                check_pattern(value, self.named)
            if name == "L" and value and ranges:
                check_pattern(value.rpartition(":")[2], self.named)
            if not value or name.startswith("exec") or len(value) < 2 or text_values:
                continue
            if re.search(r"(^|[=@:,])(/|~|\.\./)", value) or self.ground.locate(value).kind in ("secret", "own"):
                raise Unproven(f"`{value}` may name a file")

    def _harden_exec(self, reading: ParsedArguments, arguments: list[str]) -> list[str]:
        """find -exec: the command inside reads too, and gets names below the workspace only. With its plan inside."""
        starts = [path for path, _ in reading.paths] or ["."]
        made: list[str] = list(arguments)
        for name, value in reading.options:
            if name not in ("exec", "exec+") or value is None:
                continue
            inner = value.split("\0")
            if "{}" in inner[0] or any("{}" in word and word != "{}" for word in inner):
                raise Unproven("find -exec puts names inside other words")
            check_found(reading, inner[0], self.named)
            if starts[0].startswith("-"):
                raise Unproven("a name could be an option")
            found = [
                os.path.join(starts[0], SAMPLE + each) for each in ("12" if name == "exec+" else "1")
            ]  # + gives several
            sample = [each for word in inner for each in (found if word == "{}" else [word])]
            if has(inner[0], Trait.NO_EXEC) or known(inner[0]).starts_only:
                raise Unproven("find -exec of another launcher")
            proof = self.prove_words(tuple(sample))
            if proof.connects:
                raise Unproven(f"find -exec of what asks {proof.connects}")
            hardened = ["{}" if word == found[0] else word for word in proof.stage.words if word not in found[1:]]
            if hardened.count("{}") != inner.count("{}"):
                raise Unproven("find -exec of a command that gets other words in a plan")
            made = _replaced(made, inner, hardened)
        return made


def _replaced(words: list[str], old: list[str], new: list[str]) -> list[str]:
    """`words` with the command after an -exec replaced."""
    for at, word in enumerate(words):
        if word == "-exec" and words[at + 1 : at + 1 + len(old)] == old:
            return [*words[: at + 1], *new, *words[at + 1 + len(old) :]]
    raise Unproven("find -exec of a command that can't be read")


def _takes_little(reading: ParsedArguments) -> bool:
    """Whether `head` ends soon, whatever it reads."""
    counts = [
        value or name for name, value in reading.options if name in ("c", "n", "bytes", "lines") or name.isdigit()
    ]
    return all(re.fullmatch(r"[0-9]{1,6}", count) for count in counts)


def _unlinked(program: Grammar, arguments: list[str], reading: ParsedArguments) -> list[str]:
    """The arguments, so that searching all below a folder does not follow links out of the workspace."""
    names = {name for name, _ in reading.options}
    if has(program.name, Trait.NO_DEREFERENCE) and {"r", "recursive"} & names:
        return ["--no-dereference", *arguments]
    if not has(program.name, Trait.RECURSIVE_LINKS) or not {"R", "dereference-recursive"} & names:
        return arguments
    made: list[str] = []
    value = False  # of the option before
    for number, word in enumerate(arguments):
        if word == "--" and not value:
            return made + arguments[number:]
        if value or not word.startswith("-"):
            made.append(word)
            value = False
        elif word.startswith("--"):
            made.append("--recursive" if word.startswith("--der") else word)
            value = "=" not in word and program.long.get(word[2:]) in (":", "@")
        else:
            end = next((i for i, letter in enumerate(word) if program.short.get(letter)), len(word))
            made.append(word[:end].replace("R", "r") + word[end:])
            value = end == len(word) - 1
    return made


def _instead_of_terminal(program: Grammar, reading: ParsedArguments, upstream: tuple[Simple, ...]) -> tuple[str, ...]:
    """What a program does in a terminal and not in a plan: without one, git shortlog waits for a log."""
    whole = {"all", "branches", "tags", "remotes"} & {name for name, _ in reading.options}
    return ("HEAD",) if has(program.name, Trait.WAITS_FOR_LOG) and not (upstream or reading.operands or whole) else ()


def _exists_above(name: str, ground: Ground) -> bool:
    place = Path(ground.cwd)
    for folder in (place, *place.parents):
        note(str(folder / name))
        if (folder / name).exists():
            return True
        if str(folder) == ground.workspace:
            return False
    return False


def _asks_for_secret(words: Sequence[str]) -> bool:
    return any(re.search(r"key|token|secret|passw|credential|auth|aws|api", word, re.IGNORECASE) for word in words[1:])


MOST_WORDS = 64  # that braces may become
_SWITCH = "|[0-3]|true|false|yes|no|always|never"
_LOCALE = r"(?!.*\.\.)[A-Za-z][A-Za-z0-9_.@-]*"  # no slash: a locale is a name, never a file of the workspace
# What may stand in front of a command, and the values that only change how its answer looks.
_VARIABLES = {
    **dict.fromkeys(("LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"), _LOCALE),
    "TZ": r"[A-Z][A-Za-z_]*([+-][0-9]{1,2})?(/[A-Z][A-Za-z_+-]*[0-9]{0,2}){0,2}",
    **dict.fromkeys(("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS"), _SWITCH),
    **dict.fromkeys(("COLUMNS", "LINES"), "[0-9]{1,4}"),
    "TERM": "dumb|xterm|xterm-color|xterm-256color|vt100|linux|screen|screen-256color",
    **dict.fromkeys(("PAGER", "GIT_PAGER", "GH_PAGER", "SYSTEMD_PAGER", "AWS_PAGER", "BAT_PAGER"), "|cat"),
    "MANPAGER": "cat",
    "MANWIDTH": "[0-9]{1,4}",
    **dict.fromkeys(("GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"), "0"),
    **dict.fromkeys(("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "HOMEBREW_NO_AUTO_UPDATE"), "1"),
    "DEBIAN_FRONTEND": "noninteractive",
}
_BRACED = re.compile(r"\{([A-Za-z0-9_./+@%:=*?,-]*,[A-Za-z0-9_./+@%:=*?,-]*)\}")
_AROUND = re.compile(r"[A-Za-z0-9_./+@%:=*?,-]*")


def variables(assigns: Sequence[tuple[str, Word | None]]) -> tuple[str, ...]:
    """`LC_ALL=C sort`: the words for `env` in front; Unproven when one could do more than change looks."""
    found: list[str] = []
    for name, value in assigns:
        if value is None or not value.literal or name not in _VARIABLES:
            raise Unproven("it sets a variable for the command")
        if not re.fullmatch(_VARIABLES[name], value.text or ""):
            raise Unproven(f"it sets {name} to what is not known to be harmless")
        found.append(f"{name}={value.text}")
    return ("env", *found) if found else ()


def braces(word: Word) -> list[str]:
    """`{a,b}.py` → a.py b.py: lists of plain letters, side by side; Unproven for sequences, nesting and quotes."""
    text = word.text or ""
    pieces = _BRACED.split(text)
    if not word.plain or len(pieces) == 1 or not all(map(_AROUND.fullmatch, pieces[::2])):
        raise Unproven("it holds a brace expansion")
    choices = [[piece] if number % 2 == 0 else piece.split(",") for number, piece in enumerate(pieces)]
    found = ["".join(each) for each in itertools.islice(itertools.product(*choices), MOST_WORDS + 1)]
    if len(found) > MOST_WORDS or not all(found):
        raise Unproven("it holds a brace expansion")
    return found


def program_name(path: str, *, workspace: str) -> str:
    """`/usr/bin/git` → git: a program where nobody in the workspace can put one. Other words stay as they are."""
    folder, _, name = path.rpartition("/")
    if folder not in SYSTEM_PATH or not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
        return path
    return name if folder in search_path("", workspace=Path(os.path.realpath(workspace))) else path


def written_out(word: Word) -> Iterator[tuple[str, bool]]:
    """The words that `word` stands for, and whether each is a pattern."""
    if not word.brace:
        yield word.text or "", word.glob
        return
    for text in braces(word):
        yield text, "*" in text or "?" in text


MOST_NAMES = 500  # that a pattern may become
MOST_FOLDERS = 40  # in a pattern
# Letters of other alphabets that look like ours.
_LOOKALIKES = frozenset("аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅαοινρτυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")


def expand_words(words: Sequence[Word], ground: Ground) -> tuple[str, ...]:
    """The words as the program gets them; Unproven when that isn't certain."""
    found: list[str] = []
    exists = os.path.isdir(ground.cwd)
    harmless = _any_option_reads(words[0].text)
    for word in words:
        if word.text is None:
            raise Unproven(f"`{word.source}` is not known before it runs")
        if word.home:
            raise Unproven("~ leads out of the workspace")
        for text, pattern in written_out(word):
            found += _names(word, text, ground, exists=exists, option=not harmless) if pattern else [text]
    return tuple(found)


def names_of(word: Word, ground: Ground) -> list[str]:
    """What one word of a loop's list becomes; no option, as nothing is run with it alone."""
    if word.text is None or word.home:
        raise Unproven(f"`{word.source}` is not known before it runs")
    exists = os.path.isdir(ground.cwd)
    found: list[str] = []
    for text, pattern in written_out(word):
        found += _names(word, text, ground, exists=exists, option=False) if pattern else [text]
    return found


def _names(word: Word, pattern: str, ground: Ground, *, exists: bool, option: bool) -> list[str]:
    """What a pattern becomes here and now; itself when nothing matches. `option`: a name must not become one."""
    if not word.plain or re.search(r"\[[\^:]|\[\[|\\", pattern):
        raise Unproven(f"the pattern `{word.source}` is not read here")
    if not listable(ground.locate(re.split(r"[*?\[]", pattern)[0].rpartition("/")[0] or ".")):
        raise Unproven(f"`{word.source}` gives names from outside of the workspace")
    names = sorted(_matching(pattern, ground.cwd)) if exists else []
    if len(names) > MOST_NAMES:
        raise Unproven(f"`{word.source}` matches more than {MOST_NAMES} names")
    if not exists and option and pattern[0] in "*?[":
        raise Unproven(f"a name that matches `{word.source}` could be an option")
    if not names and _may_be_secret(pattern):
        raise Unproven(f"`{word.source}` may be a file of secrets")
    return names or [pattern]


def _matching(pattern: str, cwd: str) -> list[str]:
    """What the shell would put for a pattern of * and ?; hidden names only when asked for."""
    note(cwd)
    parts = pattern.split("/")
    if len(parts) > MOST_FOLDERS:
        raise Unproven(f"a pattern of more than {MOST_FOLDERS} folders is not read here")
    for depth in range(1, len(parts)):  # a change in any folder it looks into may give other names
        note(os.path.join(cwd, *parts[:depth]))
    return expand(pattern, cwd) if len(pattern) < 4096 else []


def _may_be_secret(pattern: str) -> bool:
    """Whether a pattern that says something, more than `*`, could mean a file of secrets."""
    name = pattern.rpartition("/")[2]
    samples = ".env .env.local .netrc .npmrc .pypirc .git-credentials id_rsa server.pem server.key".split()
    return len(re.sub(r"[*?\[\]]", "", name)) >= 2 and any(fnmatch.fnmatchcase(each, name) for each in samples)


def _any_option_reads(name: str | None) -> bool:
    grammar = known(name).reads
    return grammar is not None and grammar.harmless_options


def looks_alike(word: str) -> bool:
    """Whether a word could be taken for another: Latin letters mixed with lookalikes, or nothing but lookalikes."""
    if word.isascii() or _LOOKALIKES.isdisjoint(word):
        return False
    letters = [character for character in word if character.isalpha()]
    return any(character.isascii() for character in letters) or _LOOKALIKES.issuperset(letters)
