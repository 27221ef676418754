"""The words of a command line, and the simple commands they make: what is known of them before they run.

`text` is the word the program would get, when that is certain. `shape` is the nearest one can say otherwise: the
literal pieces with UNKNOWN between them, so that `rm -rf "$HOME"/x` is still seen to lie below something.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_TEXT = re.compile(r"[0-9+\-*/%() \t]+")
_LIMIT = 1 << 63
LONGEST = 200  # characters


def _divide(a: int, b: int) -> int | None:
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # towards zero, as in C


def _remainder(a: int, b: int) -> int | None:
    whole = _divide(a, b)
    return None if whole is None else a - whole * b


_BINARY: Mapping[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
}
_NAMES = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}


def _apply(op: str, a: int | None, b: int | None) -> int | None:
    if a is None or b is None or op not in _BINARY:
        return None
    value = _BINARY[op](a, b)
    return value if value is not None and -_LIMIT <= value < _LIMIT else None


def value_of(node: object) -> int | None:
    """The number that a node of shfmt's tree stands for."""
    if not isinstance(node, dict):
        return None
    match node.get("Type"):
        case "ArithmExp" if not node.get("Bracket") and not node.get("Unsigned"):
            return value_of(node.get("X"))
        case "ParenArithm":
            return value_of(node.get("X"))
        case "UnaryArithm" if node.get("Op") in ("+", "-") and not node.get("Post"):
            return _apply(str(node["Op"]), 0, value_of(node.get("X")))
        case "BinaryArithm":
            return _apply(str(node.get("Op")), value_of(node.get("X")), value_of(node.get("Y")))
        case "Word":
            parts = node.get("Parts")
            only = parts[0] if isinstance(parts, list) and len(parts) == 1 else {}
            text = str(only.get("Value", "")) if only.get("Type") == "Lit" else ""
            return int(text) if _NUMBER.fullmatch(text) else None
    return None


def value_of_text(text: str) -> int | None:
    """The number that stands between `$((` and `))`, without the parser."""
    if len(text) > LONGEST or not _TEXT.fullmatch(text) or re.search(r"\*\s*\*|/\s*/|\+\s*\+|-\s*-", text):
        return None
    try:
        return _of_python(ast.parse(text.replace("/", "//").strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _of_python(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)) if _NUMBER.fullmatch(str(value)):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _apply("-" if isinstance(node.op, ast.USub) else "+", 0, _of_python(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return _apply(_NAMES.get(type(op), ""), _of_python(left), _of_python(right))
    return None


UNKNOWN = "\0"
_BARE = re.compile(r"[A-Za-z0-9_./+@%:=,-]+|\0")  # \0: a status, which a runner puts in
_PLAIN_VARIABLE = frozenset(("Type", "Pos", "End", "Dollar", "Short", "Rbrace", "Param"))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\?")
Node = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Word:
    """One word, as written and as far as it is known."""

    source: str
    text: str | None  # None: it depends on something
    shape: str
    glob: bool = False  # holds an active * ? [ or an extended pattern; `text` is then the pattern itself
    home: bool = False  # begins with an active ~
    brace: bool = False  # {a,b}: becomes several words
    plain: bool = False  # written without quotes, escapes or expansions
    bare: bool = False  # written without quotes and escapes, but perhaps with variables
    holes: tuple[tuple[str, bool], ...] = ()  # for each UNKNOWN in `shape`: which variable, and whether it is quoted

    @property
    def template(self) -> str:
        """The word with its variables written as \\0name\\0; as a second reader must find it."""
        if self.text is not None or not self.holes:
            return self.text or self.shape
        first, *rest = self.shape.split(UNKNOWN)
        return first + "".join(
            f"{UNKNOWN}{name}{UNKNOWN}{piece}" for (name, _), piece in zip(self.holes, rest, strict=True)
        )

    def filled(self, values: Mapping[str, str]) -> "Word":
        """With its variables put in, where their values make it one word that is certain; else as it was.

        Without quotes the shell would split a value, and take it for a pattern: it must hold plain letters only.
        """
        if self.text is not None or not self.holes or self.brace:
            return self
        first, *rest = self.shape.split(UNKNOWN)
        text = first
        for (name, quoted), piece in zip(self.holes, rest, strict=True):
            value = values.get(name)
            if value is None or not (quoted or _BARE.fullmatch(value)) or (self.glob and quoted):
                return self
            text += value + piece
        # A pattern is read where all around its variables is written without quotes.
        return Word(self.source, text, text, self.glob, self.home, plain=self.glob and self.bare)

    @property
    def literal(self) -> bool:
        """Whether the program gets exactly `text`."""
        return self.text is not None and not (self.glob or self.home or self.brace)


def word_of(source: str) -> Word:
    """A literal word that we made; it stands in no line."""
    return Word(source, source, source, plain=True)


class _Reading:
    """Collects the pieces of one word."""

    def __init__(self) -> None:
        self.shape: list[str] = []
        self.known = True
        self.glob = self.home = self.brace = False
        self.plain = self.bare = True
        self.holes: list[tuple[str, bool]] | None = []  # None: it depends on more than plain variables
        self.unquoted: list[str] = []  # the active characters, for what only counts across pieces: braces


def read_word(node: Node, source: str) -> Word:
    """A Word from shfmt's node."""
    reading = _Reading()
    parts = cast(Sequence[Node], node.get("Parts") or ())
    for number, part in enumerate(parts):
        _read_part(part, reading, first=number == 0)
    active = "".join(reading.unquoted)
    if shape_is_bracket(reading):
        reading.glob = False
    brace = "{" in active and _expands(active)
    shape = "".join(reading.shape)
    return Word(
        source,
        shape if reading.known else None,
        shape,
        glob=reading.glob,
        home=reading.home,
        brace=brace,
        plain=reading.plain and bool(parts) and reading.known,
        bare=reading.bare,
        holes=tuple(reading.holes or ()),
    )


def _expands(active: str) -> bool:
    """Whether braces become several words: a list or a range inside of a pair, or pairs in pairs. Each letter once."""
    _, *pieces = active.split("{")
    for piece in pieces:
        inner, closed, _ = piece.partition("}")
        if closed and ("," in inner or ".." in inner):
            return True
    return len(pieces) > 1 and any("," in piece for piece in pieces[1:])


def shape_is_bracket(reading: _Reading) -> bool:
    """`[` alone is the command of that name, no pattern."""
    return reading.shape == ["["]


def _read_part(part: Node, reading: _Reading, *, first: bool) -> None:
    value = str(part.get("Value", ""))
    match part.get("Type"):
        case "Lit":
            _read_literal(value, reading, first=first)
        case "SglQuoted":
            reading.plain = reading.bare = False
            if part.get("Dollar"):
                decoded = ansi_c(value)
                if decoded is None:
                    reading.known, reading.holes = False, None
                reading.shape.append(UNKNOWN if decoded is None else decoded)
            else:
                reading.shape.append(value)
            reading.unquoted.append(" ")
        case "DblQuoted":
            reading.plain = reading.bare = False
            if part.get("Dollar"):  # $"…" is translated
                reading.known, reading.holes = False, None
            for inner in cast(Sequence[Node], part.get("Parts") or ()):
                if inner.get("Type") == "Lit":
                    reading.shape.append(re.sub(r'\\([$`"\\\n])', _unescape, str(inner.get("Value", ""))))
                elif (number := value_of(inner)) is not None:
                    reading.shape.append(str(number))
                else:
                    _unknown(inner, reading, quoted=True)
            reading.unquoted.append(" ")
        case "ExtGlob":
            pattern = cast(Node, part.get("Pattern") or {})
            reading.glob = True
            reading.known = reading.plain = reading.bare = False
            reading.holes = None
            reading.shape.append(f"{part.get('Op')}{pattern.get('Value')})")
        case "ArithmExp" if (number := value_of(part)) is not None:
            reading.plain = False
            reading.shape.append(str(number))
            reading.unquoted.append(" ")
        case _:
            reading.plain = False
            _unknown(part, reading, quoted=False)
            reading.unquoted.append(" ")


def _unknown(part: Node, reading: _Reading, *, quoted: bool) -> None:
    """A piece that is known only when it runs: a plain variable, or more."""
    reading.known = False
    reading.shape.append(UNKNOWN)
    if reading.holes is not None:
        name = plain_variable(part)
        reading.holes = [*reading.holes, (name, quoted)] if name else None


def plain_variable(part: Node) -> str:
    """The name in `$name` and `${name}`; empty for all that does more with it."""
    if part.get("Type") != "ParamExp" or part.keys() - _PLAIN_VARIABLE:
        return ""
    name = part.get("Param")
    value = str(name.get("Value", "")) if isinstance(name, dict) else ""
    return value if _NAME.fullmatch(value) else ""


def _unescape(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _read_literal(value: str, reading: _Reading, *, first: bool) -> None:
    if first and value.startswith("~"):
        reading.home = True
    escaped = False
    for character in value:
        if escaped:
            escaped = False
            if character != "\n":
                reading.shape.append(character)
            reading.unquoted.append(" ")
        elif character == "\\":
            escaped = True
            reading.plain = reading.bare = False
        else:
            if character in "*?[":
                reading.glob = True
            reading.shape.append(character)
            reading.unquoted.append(character)
    if escaped:  # a backslash at the very end stands for itself
        reading.shape.append("\\")


_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


_HEX = {kind: f"[0-9a-fA-F]{{1,{most}}}" for kind, most in (("x", 2), ("u", 4), ("U", 8))}


def ansi_c(value: str) -> str | None:
    """What `$'value'` stands for; None when it holds an escape whose meaning depends on the locale."""
    first, *pieces = value.split("\\")
    out = [first]
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        if not piece:  # two backslashes, or one at the very end
            if not pieces:
                return None
            out += ["\\", pieces.pop()]
        elif piece[0] in _ANSI:
            out += [_ANSI[piece[0]], piece[1:]]
        elif piece[0] in "'\"?":
            out.append(piece)
        else:
            taken, decoded = _numeric(piece[0], piece[1:9])
            if decoded is None:
                return None
            out += [decoded, piece[1 + taken :]]
    return "".join(out)


def _numeric(kind: str, tail: str) -> tuple[int, str | None]:
    """An escape with digits: how many characters of `tail` it takes, and what it means (ASCII only)."""
    if kind and kind in "01234567":
        match = re.match(r"[0-7]{0,2}", tail)
        digits, base = kind + (match[0] if match else ""), 8
        taken = len(digits) - 1
    elif kind in ("x", "u", "U"):
        match = re.match(_HEX[kind], tail)
        if match is None:
            return 0, None
        digits, base, taken = match[0], 16, len(match[0])
    else:
        return 0, None
    code = int(digits, base)
    return taken, chr(code) if 0 < code < 128 else None


@dataclass(frozen=True, slots=True)
class Redirect:
    """`2>&1`, `> file`, `<<END`."""

    op: str
    fd: str  # "" when the operator's own
    target: Word | None
    heredoc: Word | None
    source: str
    body: str | None = None  # of a here-document in which nothing is expanded


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command: assignments, words, redirections."""

    words: tuple[Word, ...]
    assigns: tuple[tuple[str, Word | None], ...]
    redirects: tuple[Redirect, ...]
    text: str
    upstream: tuple["Simple", ...] = ()  # whose output it reads, in a pipe
    holds: tuple["Simple", ...] = ()  # the commands in its own substitutions
    nested: bool = False  # it stands in a substitution, a function, a loop …, not at the top of the line

    @property
    def name(self) -> str | None:
        """The command word, when it is certain."""
        return self.words[0].text if self.words and self.words[0].literal else None

    def literal_words(self) -> tuple[str, ...] | None:
        """All words, when all are certain."""
        return tuple(cast(str, w.text) for w in self.words) if all(w.literal for w in self.words) else None
