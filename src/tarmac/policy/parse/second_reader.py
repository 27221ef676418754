"""A second opinion on a line, without the parser: it can only take trust away.

read() reads a line by rules so few that they can be checked by eye (blanks, three kinds of quotes, a handful of
operators) and gives up on everything else. A line is allowed by itself only if both readings give the same words, in
the same commands, joined in the same way (agreement.py).
"""

import re
from dataclasses import dataclass
from typing import Literal

from tarmac.policy.parse.arithmetic import value_of_text

# What may stand between words. `&` alone, `<<`, `>|`, `<>`, `>(`, `((` and all others: not read, so not allowed.
_OPERATOR = re.compile(
    r"&&|\|\||\|&|\||;|\n|&>(?=[ \t]*/dev/null)|[012]?>&[12](?![0-9])|[012]?>>?(?![>&|(])|0?<(?![<>&(])"
    r"|0?<<<(?!<)"
)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*|\?)|\{([A-Za-z_][A-Za-z0-9_]*|\?)\})")
_ARITHMETIC = re.compile(r"\$\(\(([0-9+\-*/%() \t]+?)\)\)(?!\))")
_DOCUMENT = re.compile(r"""<<(?![<-])[ \t]*(?:'(\w+)'|"(\w+)"|(\w+))(?=[ \t\n|;&)])""")
_HOLE = "\0"  # around the name of a variable
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^\-]")
# Active, but they make no command: patterns, and braces that aren't expanded (`stash@{1}`).
_PATTERN = frozenset("*?[]{}~#")
_HISTORY = re.compile(r"![A-Za-z0-9!?#$*^:-]")


class Vetoed(Exception):
    """The line holds something this reader doesn't know."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word without its quotes; a redirection with what follows it; what stands between commands."""

    kind: Literal["word", "redirection", "join"]
    text: str


def read(
    line: str, *, comments: bool = False, variables: bool = False, documents: list[str] | None = None
) -> list[Token]:
    """The words of `line` and what stands between them; Vetoed when it is more than that.

    With `variables`, `$x` and `${x}` are read too, as \\0x\\0; with `documents`, the texts of here-documents go there.
    """
    found = _Tokens()
    word: list[str] | None = None
    awaited: list[tuple[str, bool]] = []  # here-documents: how they end, and whether they are taken as they are
    at = 0
    while at < len(line):
        character = line[at]
        operator = _OPERATOR.match(line, at) if word is None or not (character.isdigit()) else None
        if operator and (character not in "012" or word is None):
            found.word(word)
            word = None
            at = operator.end()
            found.operator(operator[0])
            if character == "\n" and awaited and documents is not None:
                at = _documents(line, at, awaited, documents)
                awaited = []
            continue
        if documents is not None and character == "<" and (document := _DOCUMENT.match(line, at)):
            found.word(word)
            word = None
            awaited.append((document[1] or document[2] or document[3], document[3] is None))
            found.add("redirection", "<<")
            at = document.end()
            continue
        bracket = character == ")" or (character == "(" and word is None and line[at + 1 : at + 2] != "(")
        if character in " \t" or bracket:
            found.word(word)
            word = None
            if bracket:
                found.operator(character)
            at += 1
            continue
        if word is None:
            if character == "#":
                if not comments:
                    raise Vetoed("a comment")
                end = line.find("\n", at)
                at = len(line) if end < 0 else end
                if line[at - 1] == "\\":
                    raise Vetoed("a comment that seems to go on")
                continue
            if character == "\\" and line[at + 1 : at + 2] == "\n" and line[at - 1 : at] in (" ", "\t"):
                at += 2  # the line goes on: between words it is no more than a blank
                continue
            word = []
        at = _take(line, at, word, variables=variables)
    found.word(word)
    found.done()
    if awaited:
        raise Vetoed("a here-document without an end")
    return found.tokens


class _Tokens:
    """Collects tokens; a redirection waits for the word that it leads to."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.waiting = ""

    def add(self, kind: Literal["word", "redirection", "join"], text: str) -> None:
        self.done()
        self.tokens.append(Token(kind, text))

    def word(self, word: list[str] | None) -> None:
        if word is None:
            return
        text, waiting, self.waiting = "".join(word), self.waiting, ""
        self.add(*(("redirection", f"{waiting} {text}") if waiting else ("word", text)))

    def operator(self, text: str) -> None:
        if text in ("\n", ";"):
            self.add("join", ";")
        elif text[-1:] in "<>":
            self.done()
            self.waiting = text
        elif text[-2:-1] == "&" and text[-1].isdigit():  # 2>&1
            self.add("redirection", f"{text[:-1]} {text[-1]}")
        else:
            self.add("join", text)

    def done(self) -> None:
        if self.waiting:
            raise Vetoed("a redirection that leads nowhere")


def _documents(line: str, at: int, awaited: list[tuple[str, bool]], documents: list[str]) -> int:
    """Read the here-documents that begin at `at`; where the line goes on."""
    for ending, exact in awaited:
        end = re.compile(rf"^{ending}$", re.MULTILINE).search(line, at)
        if end is None:
            raise Vetoed("a here-document without an end")
        text = line[at : end.start()]
        if not exact and re.search(r"[$`\\]", text):
            raise Vetoed("a here-document that is expanded")
        documents.append(text)
        at = min(end.end() + 1, len(line))
    return at


def _take(line: str, at: int, word: list[str], *, variables: bool) -> int:
    """Read one piece of a word at `at`; where the next begins."""
    character = line[at]
    if variables and character == "$" and (variable := _VARIABLE.match(line, at)):
        word.append(f"{_HOLE}{variable[1] or variable[2]}{_HOLE}")
        return variable.end()
    if variables and character == "$" and (end := _calculate(line, at, word)):
        return end
    if character == "'":
        end = line.find("'", at + 1)
        if end < 0:
            raise Vetoed("an open quote")
        word.append(line[at + 1 : end])
        return end + 1
    if character == '"':
        return _double(line, at + 1, word, variables=variables)
    if character == "\\":
        if at + 1 >= len(line) or line[at + 1] == "\n":
            raise Vetoed("a continued line")
        word.append(line[at + 1])
        return at + 2
    if _PLAIN.match(character) or character in _PATTERN or ord(character) > 127:
        word.append(character)
        return at + 1
    if character == "!" and not _HISTORY.match(line, at):
        word.append(character)
        return at + 1
    if character == "$" and (at + 1 == len(line) or line[at + 1] in " \t\n"):
        word.append(character)
        return at + 1
    raise Vetoed(f"`{character}`")


def _calculate(line: str, at: int, word: list[str]) -> int:
    """`$((1+2))` at `at`; where the word goes on, or 0."""
    found = _ARITHMETIC.match(line, at)
    value = value_of_text(found[1]) if found else None
    if found is None or value is None:
        return 0
    word.append(str(value))
    return found.end()


def _double(line: str, at: int, word: list[str], *, variables: bool) -> int:
    while at < len(line):
        character = line[at]
        if variables and character == "$" and (variable := _VARIABLE.match(line, at)):
            word.append(f"{_HOLE}{variable[1] or variable[2]}{_HOLE}")
            at = variable.end()
            continue
        if variables and character == "$" and (end := _calculate(line, at, word)):
            at = end
            continue
        if character == '"':
            return at + 1
        if character == "`":
            raise Vetoed("a backtick")
        if _HISTORY.match(line, at):
            raise Vetoed("the history")
        if character == "$" and re.match(r"[A-Za-z0-9_{(\['\"!@*#?$-]", line[at + 1 : at + 2]) and line[at + 1] != '"':
            raise Vetoed("an expansion")
        if character == "\\" and line[at + 1 : at + 2] in ("$", "`", '"', "\\"):
            word.append(line[at + 1])
            at += 2
            continue
        if character == "\\" and line[at + 1 : at + 2] == "\n":
            raise Vetoed("a continued line")
        word.append(character)
        at += 1
    raise Vetoed("an open quote")
