"""Programs that run others, where what they run only reads: timeout, nice, xargs, python -m, docker compose."""

import itertools
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tarmac.policy.parse.words import Simple
from tarmac.policy.paths.files import PathStatus
from tarmac.policy.paths.places import Ground
from tarmac.policy.programs.grammar import ParsedArguments
from tarmac.policy.programs.own_grammars import SAMPLE, check_found, has, of_whole_names, plain_files
from tarmac.policy.programs.program import Grammar, Trait, grammars, known
from tarmac.policy.verdict import Proof, Stage, Unproven


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
    if before:
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
        if not has(lines[0][0], Trait.FINDS) or exact is not ("-print0" in lines[0]) or (exact and len(lines) != 1):
            raise Unproven(f"xargs gives `{opener}` names that are not known")
        before = () if exact else (plain_files(lines[0]), *map(of_whole_names, lines[1:]))
        check_found(prover.read(*prover.find((before or lines)[0])[:2]), opener, prover.named)
    elif not has(opener, Trait.METADATA) or not _prints_names(lines[0]):
        raise Unproven(f"xargs gives `{opener}` names that are not known")
    for words in lines[1:]:
        if (
            not (has(words[0], Trait.FILTERS) or has(words[0], Trait.SEARCHES))
            or prover.read(*prover.find(words)[:2]).paths
        ):
            raise Unproven(f"xargs gives `{opener}` names that are not known")
    return before


def python_module(prover: WordProver, words: tuple[str, ...], upstream: tuple[Simple, ...]) -> Proof:
    """python -m pip list: by itself (-I), so that no module of the project takes its place."""
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
