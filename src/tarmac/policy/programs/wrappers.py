"""Peel wrappers: from `sudo -u x timeout 5 bash -c 'rm y'` to the command inside. Data in rules/wrappers.py.

peel(words) → Peeled(inner words | a script to parse again | nothing that is known) | None when it is no wrapper
"""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tarmac.policy.parse.words import Word, word_of
from tarmac.policy.programs.rules.shapes import Wrapping
from tarmac.policy.programs.rules.table import Table
from tarmac.policy.verdict import Risk

VERSIONED = re.compile(r"^(bash|zsh|fish|ksh|python|pypy|ruby|perl|node|php|lua)[-\d.]*$")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one wrapper lays out its arguments."""

    name: str
    value: frozenset[str]
    code: frozenset[str]
    skip: int
    assigns: bool
    script: bool
    shell: bool
    fed: bool  # the rest of the words comes from its input
    multi: bool  # busybox: the next word is the program
    risk: Risk
    does: str
    project: str  # what it runs is code of the project, or fetched
    fetches: bool  # it fetches what it runs
    elsewhere: bool  # what it runs sees other files than those of this machine
    plain: str | None  # its options that a plan may have; None: a plan can't have it at all
    before: str
    left_out: bool


@dataclass(frozen=True, slots=True)
class Peeled:
    """What is inside of a wrapper."""

    wrapper: Wrapper
    words: tuple[Word, ...] = ()  # the command inside
    script: str | None = None  # shell text inside
    hidden: bool = False  # there is something inside, but nobody knows what
    stdin: bool = False  # a shell without a script: it runs what it reads
    file: Word | None = None  # a shell with a script file
    certain: bool = True  # False: an option was not known, so the command may begin elsewhere
    assigns: tuple[str, ...] = ()  # names of variables it sets


@functools.cache
def wrappers() -> Mapping[str, Wrapper]:
    from tarmac.policy.programs.rules.wrappers import WRAPPERS

    def make(name: str, entry: Wrapping) -> Wrapper:
        entry = WRAPPERS[entry["like"]] if "like" in entry else entry
        return Wrapper(
            name=name,
            value=frozenset(entry.get("value", "").split()),
            code=frozenset(entry.get("code", "").split()),
            skip=entry.get("skip", 0),
            assigns=entry.get("assigns", False),
            script=entry.get("script", False),
            shell=entry.get("shell", False),
            fed=entry.get("fed", False),
            multi=entry.get("multi", False),
            risk=entry.get("risk", "low"),
            does=entry.get("does", ""),
            project=entry.get("project", ""),
            fetches=entry.get("fetches", False),
            elsewhere=entry.get("elsewhere", False),
            plain=entry.get("plain"),
            before=entry.get("before", ""),
            left_out=entry.get("left_out", False),
        )

    return Table(WRAPPERS, make)


def program_name(word: Word) -> str | None:
    """The name of a program, without its folder and version: /usr/bin/python3.11 is python."""
    if word.text is None or word.brace or word.home:
        return None
    name = os.path.basename(word.text.lstrip("\\")) or word.text
    match = VERSIONED.match(name)
    return match[1] if match else name


def peel(words: Sequence[Word]) -> Peeled | None:
    """What is inside of the outermost wrapper; None when the command is none."""
    if not words:
        return None
    name = program_name(words[0])
    if name is None:
        return None
    table = wrappers()
    plain = [name, *(w.text if w.text is not None else "\0" for w in words[1:3])]
    for size in (3, 2, 1):
        if len(plain) >= size and (wrapper := table.get(" ".join(plain[:size]))):
            return _inside(wrapper, list(words[size:]))
    return None


def _inside(wrapper: Wrapper, rest: list[Word]) -> Peeled:
    if wrapper.multi:
        return Peeled(wrapper, words=tuple(rest), hidden=not rest)
    certain = True
    assigns: list[str] = []
    while rest:
        word = rest[0]
        text = word.shape
        if text == "--":
            rest.pop(0)
            break
        if wrapper.assigns and (match := re.match(r"[A-Za-z_]\w*(?==)", text)):
            assigns.append(match[0])
            rest.pop(0)
            continue
        if not (text.startswith("-") or (wrapper.shell and text.startswith("+"))) or text == "-":
            break
        rest.pop(0)
        code = _code(wrapper, text, rest)
        if code is not None:
            if wrapper.name == "env":
                return Peeled(
                    wrapper, words=tuple(word_of(each) for each in (code.text or "").split()), hidden=not code.literal
                )
            return Peeled(wrapper, script=code.text if code.literal else None, hidden=not code.literal, certain=certain)
        name, equals, _ = text.partition("=")
        if equals:
            continue
        if name in wrapper.value:
            del rest[:1]
        elif re.fullmatch(r"-\w\w+", name) and name[:2] not in wrapper.value and f"-{name[-1]}" in wrapper.value:
            del rest[:1]  # bundled letters, the last of which takes a value: -iu root
    if wrapper.code and not wrapper.shell:  # su root -c 'x'
        for number, word in enumerate(rest):
            late = rest[number + 1 : number + 4]
            if word.shape.startswith("-") and (code := _code(wrapper, word.shape, late)) is not None:
                return Peeled(wrapper, script=code.text if code.literal else None, hidden=not code.literal)
    if wrapper.shell:
        first = rest[0] if rest else None
        if first is None or first.shape == "-":
            return Peeled(wrapper, stdin=True)
        return Peeled(wrapper, file=first)
    skipped, rest = rest[: wrapper.skip], rest[wrapper.skip :]
    if wrapper.assigns:
        while rest and (match := re.match(r"[A-Za-z_]\w*(?==)", rest[0].shape)):
            assigns.append(match[0])
            rest.pop(0)
    if rest and rest[0].shape == "--":
        rest.pop(0)
    if wrapper.script and rest:
        known = all(word.literal for word in rest)
        return Peeled(
            wrapper, script=" ".join(w.text or "" for w in rest) if known else None, hidden=not known, words=tuple(rest)
        )
    return Peeled(
        wrapper, words=tuple(rest), certain=certain and bool(skipped or not wrapper.skip), assigns=tuple(assigns)
    )


def _code(wrapper: Wrapper, text: str, rest: list[Word]) -> Word | None:
    """The value of an option like `bash -c`; bundled letters (-lc, -ec) too."""
    for option in wrapper.code:
        if text == option or (not option.startswith("--") and option[1:] in text and re.fullmatch(r"-[a-zA-Z]*", text)):
            while wrapper.shell and rest and rest[0].shape.startswith(("-", "+")) and rest[0].shape not in ("-", "--"):
                rest.pop(0)  # bash -c -x 'script'
            if rest and rest[0].shape == "--":
                rest.pop(0)
            return rest.pop(0) if rest else word_of("")
        if text.startswith(option + "=") and option.startswith("--"):
            return word_of(text[len(option) + 1 :])
    return None
