"""Two readers of a line must agree, or it is not allowed by itself: the parser, and second_reader.py.

disagreement(text, steps) → why they don't; empty when they do

Both readings are brought into one form: commands (words, then redirections) and what stands between them. So neither
a word nor the end of a command, nor the way two are joined, can be missed by one of them.
"""

from collections.abc import Iterable, Iterator, Sequence

from tarmac.policy.parse import second_reader
from tarmac.policy.parse.command import Redirect, Simple
from tarmac.policy.parse.control_flow import Condition, Course, Group, Loop, Pipeline
from tarmac.policy.parse.second_reader import Token
from tarmac.policy.parse.words import Word

Form = list[tuple[str, ...]]
_OPENS = frozenset(["do", "then", "else", "elif", "if", "{"])  # after these a new line ends no command
_JOIN = {"always": ";", "success": "&&", "failure": "||"}
END = Token("join", ";")
END_OF_COMMAND = ("join", ";")


def disagreement(text: str, steps: Sequence[Course], *, comments: bool) -> str:
    """Why the line is not what we take it for; empty when two readers agree on it."""
    documents: list[str] = []
    try:
        found = second_reader.read(text, comments=comments, variables=True, documents=documents)
    except second_reader.Vetoed as error:
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
        case Pipeline():
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
