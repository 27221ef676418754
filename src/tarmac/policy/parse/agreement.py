"""Two readers must agree on a line before it is allowed automatically: shfmt, and the small reader below.

disagreement(text, steps) → why they don't; empty when they do

Both readings are brought into one form: commands (words, then redirections) and the operators between them. So neither
reader can miss a word, the end of a command, or an operator.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tarmac.policy.parse.command import CommandPipeline, Condition, Course, Group, Loop
from tarmac.policy.parse.words import Redirect, Simple, Word, value_of_text

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


Form = list[tuple[str, ...]]
_OPENS = frozenset(["do", "then", "else", "elif", "if", "{"])  # words after which a new line does not end a command
_JOIN = {"always": ";", "success": "&&", "failure": "||"}
END = Token("join", ";")
END_OF_COMMAND = ("join", ";")


def disagreement(text: str, steps: Sequence[Course], *, comments: bool) -> str:
    """Why the line is not what we take it for; empty when two readers agree on it."""
    documents: list[str] = []
    try:
        found = read(text, comments=comments, variables=True, documents=documents)
    except Vetoed as error:
        return f"it holds more than plain words: {error}"
    bodies: list[str] = []
    same = form(found) == form(_list(steps, bodies))
    return "" if same and documents == bodies else "two ways to read it do not agree"


def form(tokens: Iterable[Token]) -> Form:
    """Commands and what joins them, in order; ends that end nothing are left out."""
    found: Form = []
    words: list[str] = []
    redirections: list[str] = []

    def close() -> None:
        if words or redirections:
            found.append(("command", *words, "\0redirected", *redirections))
        words.clear()
        redirections.clear()

    for token in tokens:
        if token.kind == "word":
            words.append(token.text)
        elif token.kind == "redirection":
            redirections.append(token.text)
        elif token == END:
            if words and not redirections and all(word in _OPENS for word in words):
                continue  # `then`, and a new line
            close()
            if (found and found[-1][0] == "command") or (found and found[-1] == ("join", ")")):
                found.append(("join", ";"))
        else:
            close()
            if token.text == ")" and found[-1:] == [END_OF_COMMAND]:
                found.pop()
            found.append(("join", token.text))
    close()
    return found[:-1] if found[-1:] == [END_OF_COMMAND] else found


# the parser's reading


def _list(courses: Sequence[Course], bodies: list[str]) -> Iterator[Token]:
    for number, course in enumerate(courses):
        if number:
            yield Token("join", _JOIN[course.when])
        yield from _course(course, bodies)


def _course(course: Course, bodies: list[str]) -> Iterator[Token]:
    match course:
        case CommandPipeline():
            yield from _words(["time"] * course.timed + ["!"] * course.negated)
            for number, stage in enumerate(course.stages):
                if number:
                    yield Token("join", "|&" if course.merged[number - 1] else "|")
                yield from _simple(stage, bodies)
        case Group():
            yield Token("join", "(") if course.alone else Token("word", "{")
            yield from _list(course.body, bodies)
            yield from [Token("join", ")")] if course.alone else [END, Token("word", "}")]
        case Loop():
            yield from _words(["for", course.name, "in", *(item.template for item in course.items)])
            yield from [END, Token("word", "do")]
            yield from _list(course.body, bodies)
            yield from [END, Token("word", "done")]
        case Condition():
            yield from _words(["if"])
            yield from _branches(course, bodies)
            yield from [END, Token("word", "fi")]


def _branches(condition: Condition, bodies: list[str]) -> Iterator[Token]:
    yield from _list(condition.test, bodies)
    yield from [END, Token("word", "then")]
    yield from _list(condition.then, bodies)
    if isinstance(condition.otherwise, Condition):
        yield from [END, Token("word", "elif")]
        yield from _branches(condition.otherwise, bodies)
    elif condition.otherwise is not None:
        yield from [END, Token("word", "else")]
        yield from _list(condition.otherwise, bodies)


def _simple(stage: Simple, bodies: list[str]) -> Iterator[Token]:
    yield from _words(f"{name}={value.template if value else ''}" for name, value in stage.assigns)
    if stage.text.startswith("[["):  # it became the words of `test`
        yield from _words(["[[", *(_written(word) for word in stage.words[1:]), "]]"])
    else:
        yield from _words(word.template for word in stage.words)
    for redirect in stage.redirects:
        if redirect.op == "<<" and redirect.body is not None:
            bodies.append(redirect.body)
            yield Token("redirection", "<<")
        else:
            yield Token("redirection", _redirection(redirect))


def _redirection(redirect: Redirect) -> str:
    return f"{redirect.fd}{redirect.op} {redirect.target.template if redirect.target else ''}"


def _written(word: Word) -> str:
    return word.source if word.plain else word.template


def _words(texts: Iterable[str]) -> Iterator[Token]:
    return (Token("word", text) for text in texts)
