"""Peel wrappers: from `sudo -u x timeout 5 bash -c 'rm y'` to the command inside.

peel(words) → Peeled(inner words | a script to parse again | nothing that is known) | None when it is no wrapper
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tarmac.policy.parse.words import Word, word_of
from tarmac.policy.programs.program import Trait, Wrapper, known

_NUMBERED = re.compile(r"([a-z]+)[-\d.]*")


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


def program_name(word: Word) -> str | None:
    """The name of a program, without its folder and version: /usr/bin/python3.11 is python."""
    if word.text is None or word.brace or word.home:
        return None
    name = os.path.basename(word.text.lstrip("\\")) or word.text
    match = _NUMBERED.fullmatch(name)
    return match[1] if match and Trait.VERSIONED in known(match[1]).traits else name


def peel(words: Sequence[Word]) -> Peeled | None:
    """What is inside of the outermost wrapper; None when the command is none."""
    if not words:
        return None
    name = program_name(words[0])
    if name is None:
        return None
    plain = [name, *(w.text if w.text is not None else "\0" for w in words[1:3])]
    for size in (3, 2, 1):
        if len(plain) >= size and (wrapper := known(" ".join(plain[:size])).runs):
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
            if wrapper.assigns:  # env -S: words, no shell text
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
