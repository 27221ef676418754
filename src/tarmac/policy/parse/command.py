"""A syntax tree → the simple commands in it, wherever they hide, and the plain order they run in, if it is plain.

tree → read_line() → CommandLine(simples, obstacles, steps)

`simples` are all commands of the line: in pipes, lists, groups, functions, loops, substitutions, here-documents.
`obstacles` say why the line can't run without a question although each command could. `steps` is the order they run in
when a plan can have it. A node this file doesn't know is an obstacle: it asks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Union, cast

from tarmac.policy.parse.words import Node, Redirect, Simple, Word, plain_variable, read_word, value_of, word_of
from tarmac.policy.verdict import When


@dataclass(frozen=True, slots=True)
class CommandPipeline:
    """Simple commands joined by `|`."""

    when: When
    stages: tuple[Simple, ...]
    merged: tuple[bool, ...]  # of each stage: `|&`, its errors go down the pipe too
    negated: bool = False
    timed: bool = False  # `time …`: the result says how long it took


@dataclass(frozen=True, slots=True)
class Group:
    """`{ …; }`, or `( … )`, which is `alone`: a `cd` in it moves nobody else."""

    when: When
    body: tuple["Course", ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """`if`; an `elif` is a Condition in `otherwise`, which is None without an `else`."""

    when: When
    test: tuple["Course", ...]
    then: tuple["Course", ...]
    otherwise: Union[tuple["Course", ...], "Condition", None]


@dataclass(frozen=True, slots=True)
class Loop:
    """`for name in items; do body; done`."""

    when: When
    name: str
    items: tuple[Word, ...]
    body: tuple["Course", ...]


Course = CommandPipeline | Group | Condition | Loop


class NotPlain(Exception):
    """The line is more than a list of pipelines, conditions and loops over words."""


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes courses of statements."""

    simple_of: Mapping[int, Simple]  # by the id of their statement
    source: Callable[[Node], str]

    def list_of(self, statements: object) -> tuple[Course, ...]:
        return tuple(course for statement in nodes(statements) for course in self._course(statement, "always"))

    def _course(self, statement: Node, when: When) -> Iterator[Course]:
        if statement.get("Background") or statement.get("Coprocess") or statement.get("Disown"):
            raise NotPlain("it leaves something running in the background")
        command = statement.get("Cmd")
        negated = bool(statement.get("Negated"))
        if not isinstance(command, dict):
            raise NotPlain("it holds a redirection without a command")
        kind, op = command.get("Type"), command.get("Op")
        if id(statement) in self.simple_of:
            yield CommandPipeline(when, (self.simple_of[id(statement)],), (False,), negated)
        elif kind == "BinaryCmd" and op in ("|", "|&"):
            stages = list(self._stages(statement))
            yield CommandPipeline(when, tuple(s for s, _ in stages), tuple(m for _, m in stages), negated)
        elif negated or statement.get("Redirs"):
            raise NotPlain("it is more than a list of simple commands")
        elif kind == "BinaryCmd" and op in ("&&", "||"):
            yield from self._course(cast(Node, command["X"]), when)
            right = cast(Node, command["Y"])
            if isinstance(right.get("Cmd"), dict) and cast(Node, right["Cmd"]).get("Op") in ("&&", "||"):
                raise NotPlain("its commands are grouped")
            yield from self._course(right, "success" if op == "&&" else "failure")
        elif kind in ("Subshell", "Block"):
            yield Group(when, self.list_of(command.get("Stmts")), kind == "Subshell")
        elif kind == "TimeClause" and isinstance(command.get("Stmt"), dict) and not command.get("PosixFormat"):
            inner = tuple(self._course(cast(Node, command["Stmt"]), when))
            if len(inner) != 1 or not isinstance(inner[0], CommandPipeline):
                raise NotPlain("it takes the time of more than a simple command")
            only = inner[0]
            yield CommandPipeline(only.when, only.stages, only.merged, only.negated, timed=True)
        elif kind == "IfClause":
            yield self._condition(command, when)
        elif kind == "ForClause" and cast(Node, command.get("Loop") or {}).get("Type") == "WordIter":
            yield self._loop(command, when)
        else:
            raise NotPlain("it is more than a list of simple commands")

    def _condition(self, node: Node, when: When) -> Condition:
        other = node.get("Else")
        otherwise: tuple[Course, ...] | Condition | None = None
        if isinstance(other, dict):
            otherwise = self._condition(other, "always") if other.get("Cond") else self.list_of(other.get("Then"))
        return Condition(when, self.list_of(node.get("Cond")), self.list_of(node.get("Then")), otherwise)

    def _loop(self, node: Node, when: When) -> Loop:
        loop = cast(Node, node["Loop"])
        name = str(cast(Node, loop.get("Name") or {}).get("Value", ""))
        items = tuple(read_word(item, self.source(item)) for item in nodes(loop.get("Items")))
        if node.get("Select") or node.get("Braces") or not items or not name.isidentifier() or name.isupper():
            raise NotPlain("it holds a loop")
        return Loop(when, name, items, self.list_of(node.get("Do")))

    def _stages(self, statement: Node, *, merged: bool = False) -> Iterator[tuple[Simple, bool]]:
        command = statement.get("Cmd")
        if not isinstance(command, dict):
            raise NotPlain("it pipes a redirection")
        if command.get("Type") == "BinaryCmd" and command.get("Op") in ("|", "|&") and not statement.get("Redirs"):
            yield from self._stages(cast(Node, command["X"]), merged=command.get("Op") == "|&")
            yield from self._stages(cast(Node, command["Y"]), merged=merged)
        elif id(statement) in self.simple_of and not statement.get("Negated"):
            yield self.simple_of[id(statement)], merged
        else:
            raise NotPlain("it pipes more than simple commands")


_UNARY = frozenset(("-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-z", "-n"))
_BINARY = {"==": "=", "=": "=", "!=": "!="}
_NUMERIC = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))  # here `[[` would calculate, and `test` does not


def as_test(node: Node, source: Callable[[Node], str]) -> tuple[Word, ...] | None:
    """`[[ -f x ]]` as words of `test`; None when it is more than one question about plain words."""
    kind, op = node.get("Type"), str(node.get("Op", ""))
    if kind == "UnaryTest" and op == "!" and isinstance(node.get("X"), dict):
        inner = as_test(cast(Node, node["X"]), source)
        return (inner[0], word_of("!"), *inner[1:]) if inner and inner[1].text != "!" else None
    if kind == "UnaryTest" and op in _UNARY:
        words = [word_of(op), _operand(node.get("X"), source)]
    elif kind == "BinaryTest" and op in _BINARY:
        means = _BINARY[op]
        words = [_operand(node.get("X"), source), Word(op, means, means, plain=True), _operand(node.get("Y"), source)]
    elif kind == "BinaryTest" and op in _NUMERIC:
        words = [_operand(node.get("X"), source), word_of(op), _operand(node.get("Y"), source)]
        if not all(word and (word.holes or re.fullmatch("-?[0-9]+", word.text or "")) for word in words[::2]):
            return None
    else:
        return None
    if any(word is None or word.glob or word.home or word.brace for word in words):
        return None
    return (word_of("test"), *cast(list[Word], words))


def _operand(node: object, source: Callable[[Node], str]) -> Word | None:
    if not isinstance(node, dict) or node.get("Type") != "Word":
        return None
    word = read_word(node, source(node))
    # [[ splits nothing, so that `$x` is one word here, quoted or not.
    return replace(word, plain=False, holes=tuple((name, True) for name, _ in word.holes))


def nodes(value: object) -> Sequence[Node]:
    return cast(list[Node], value) if isinstance(value, list) else []


class ObstacleKind(Enum):
    """Why a line can't run without a question although each of its commands could."""

    SUBSTITUTION = "it holds a substitution"
    CONDITION = "it holds a condition"
    LOOP = "it holds a loop"
    CASE = "it holds a case"
    FUNCTION = "it holds a function"
    COPROCESS = "it holds a coprocess"
    ARITHMETIC = "it holds arithmetic"
    TEST = "it holds a test"
    DECLARATION = "it holds a declaration"
    VARIABLE = "it holds a variable"
    EXTENDED_PATTERN = "it holds an extended pattern"
    BLOCK_REDIRECTED = "it redirects a whole block"
    SYNTAX = "it holds syntax that is not known here ({})"
    TOO_MANY = "it is a line of {} commands, more than run without a question"
    NOT_PLAIN = "{}"
    BRACES = "not every shell expands its braces"
    ZSH = "zsh gives a meaning of its own to {}"
    FOREIGN = "it is too long, part of another command, or in another shell's language"
    ELSEWHERE = "it runs at another place, where it can't be kept to what it says"
    NO_PLAN = "{0}"


@dataclass(frozen=True, slots=True)
class LineObstacle:
    """One of them, with what a person is told besides."""

    kind: ObstacleKind
    detail: str = ""

    @property
    def words(self) -> str:
        return self.kind.value.format(self.detail)


@dataclass(slots=True)
class CommandLine:
    """All that is known of a command line."""

    text: str
    simples: list[Simple] = field(default_factory=list)
    obstacles: list[LineObstacle] = field(default_factory=list)
    hurdles: list[LineObstacle] = field(default_factory=list)  # obstacles, unless a plan can be made all the same
    steps: tuple[Course, ...] | None = None


# Nodes that hold commands, and the obstacle that each is.
BLOCKS = {
    "IfClause": ObstacleKind.CONDITION,
    "WhileClause": ObstacleKind.LOOP,
    "ForClause": ObstacleKind.LOOP,
    "CaseClause": ObstacleKind.CASE,
    "Block": None,
    "Subshell": None,
    "FuncDecl": ObstacleKind.FUNCTION,
    "TimeClause": None,
    "CoprocClause": ObstacleKind.COPROCESS,
}
# Nodes without commands of their own; what they hold is looked through.
QUIET = {
    "ArithmCmd": ObstacleKind.ARITHMETIC,
    "LetClause": ObstacleKind.ARITHMETIC,
    "TestClause": ObstacleKind.TEST,
    "DeclClause": ObstacleKind.DECLARATION,
    "TestDecl": ObstacleKind.DECLARATION,
}
# They are commands too: what stands in the brackets of a variable's name is run by the shell, even in quotes.
CALCULATING = {"ArithmCmd": "((", "LetClause": "let", "TestClause": "[["}
SUBSTITUTIONS = frozenset(("CmdSubst", "ProcSubst"))
EXPANSIONS = {
    "ParamExp": ObstacleKind.VARIABLE,
    "ArithmExp": ObstacleKind.ARITHMETIC,
    "ExtGlob": ObstacleKind.EXTENDED_PATTERN,
}
LEAVES = frozenset(
    """
    File Lit SglQuoted DblQuoted Word CallExpr BinaryCmd CStyleLoop WordIter BinaryArithm UnaryArithm
    ParenArithm FlagsArithm BinaryTest UnaryTest ParenTest
""".split()
)
PLACES = frozenset(("Pos", "End", "ValuePos", "ValueEnd", "Position", "Semicolon", "Comments", "Last"))


def read_line(tree: Mapping[str, object], text: str, *, most: int) -> CommandLine:
    """The commands of a line."""
    reader = _Reader(text)
    reader.read(tree, upstream=(), nested=False)
    line = reader.line
    if len(line.simples) > most:
        line.obstacles.insert(0, LineObstacle(ObstacleKind.TOO_MANY, str(len(line.simples))))
        return line
    try:
        line.steps = Builder(reader.simple_of, reader.source).list_of(tree.get("Stmts"))
    except NotPlain as error:
        line.obstacles.append(LineObstacle(ObstacleKind.NOT_PLAIN, str(error)))
    return line


class _Reader:
    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "surrogatepass")
        self.line = CommandLine(text)
        self.simple_of: dict[int, Simple] = {}

    def source(self, node: Node) -> str:
        try:
            start, end = cast(Node, node["Pos"]), cast(Node, node["End"])
            piece = self.data[int(cast(int, start["Offset"])) : int(cast(int, end["Offset"]))]
        except (KeyError, TypeError, ValueError):
            return ""
        return piece.decode("utf-8", "replace")

    def obstacle(self, kind: ObstacleKind, detail: str = "", *, hurdle: bool = False) -> None:
        found = self.line.hurdles if hurdle else self.line.obstacles
        if (new := LineObstacle(kind, detail)) not in found:
            found.append(new)

    # finding every command

    def read(self, node: object, *, upstream: tuple[Simple, ...], nested: bool) -> None:
        """Look through `node` and all below it."""
        if isinstance(node, list):
            for each in node:
                self.read(each, upstream=upstream, nested=nested)
        if not isinstance(node, dict):
            return
        kind = node.get("Type")
        if kind is None:
            self._read_untyped(node, upstream=upstream, nested=nested)
        elif kind == "BinaryCmd" and node.get("Op") in ("|", "|&"):
            before = len(self.line.simples)
            self.read(node.get("X"), upstream=upstream, nested=nested)
            self.read(node.get("Y"), upstream=(*upstream, *self.line.simples[before:]), nested=nested)
        else:
            self._read_typed(str(kind), node, upstream=upstream, nested=nested)

    def _read_untyped(self, node: Node, *, upstream: tuple[Simple, ...], nested: bool) -> None:
        if "Cmd" in node:  # a statement: its redirections belong to what it runs
            command = node["Cmd"]
            if isinstance(command, dict) and command.get("Type") == "CallExpr":
                self._read_call(command, node, upstream=upstream, nested=nested)
                return
            if isinstance(command, dict) and command.get("Type") == "TestClause" and not node.get("Redirs"):
                self._read_test(command, node, nested=nested)
                return
            self.read(command, upstream=upstream, nested=nested)
            self._read_loose_redirects(node, nested=nested)
            self._children(node, skip={"Cmd"}, upstream=(), nested=nested)
        elif "Redirs" in node:  # `> file` alone
            self._read_call({}, node, upstream=upstream, nested=nested)
        else:
            self._children(node, skip=set(), upstream=(), nested=nested)

    def _read_typed(self, kind: str, node: Node, *, upstream: tuple[Simple, ...], nested: bool) -> None:
        if kind in SUBSTITUTIONS:
            self.obstacle(ObstacleKind.SUBSTITUTION)
            self._children(node, skip=set(), upstream=(), nested=True)
        elif kind in BLOCKS:
            block = BLOCKS[kind]
            if block is not None:
                self.obstacle(block, hurdle=kind in ("IfClause", "ForClause"))
            self._children(node, skip=set(), upstream=upstream, nested=nested or block is not None)
        elif kind in QUIET:
            self.obstacle(QUIET[kind])
            if kind == "DeclClause":
                self._read_declaration(node, nested=nested)
            elif kind in CALCULATING:
                words = (word_of(CALCULATING[kind]), Word(source := self.source(node), None, source))
                self.line.simples.append(Simple(words, (), (), source, nested=nested))
            self._children(node, skip=set(), upstream=(), nested=nested)
        elif kind in EXPANSIONS:
            self.obstacle(EXPANSIONS[kind], hurdle=bool(plain_variable(node)) or value_of(node) is not None)
            self._children(node, skip=set(), upstream=(), nested=nested)
        elif kind in LEAVES:
            self._children(node, skip=set(), upstream=upstream, nested=nested)
        else:
            self.obstacle(ObstacleKind.SYNTAX, kind)
            self._children(node, skip=set(), upstream=(), nested=nested)

    def _children(self, node: Node, *, skip: set[str], upstream: tuple[Simple, ...], nested: bool) -> None:
        for key, child in node.items():
            if key not in skip and key not in PLACES and isinstance(child, dict | list):
                self.read(child, upstream=upstream, nested=nested)

    def _read_call(self, call: Node, statement: Node, *, upstream: tuple[Simple, ...], nested: bool) -> None:
        place = len(self.line.simples)
        self._children(call, skip=set(), upstream=(), nested=nested)  # substitutions in its words
        for redirect in nodes(statement.get("Redirs")):
            self._children(redirect, skip=set(), upstream=(), nested=nested)
        simple = Simple(
            words=tuple(read_word(word, self.source(word)) for word in nodes(call.get("Args"))),
            assigns=tuple(self._assign(each) for each in nodes(call.get("Assigns"))),
            redirects=tuple(self._redirect(each) for each in nodes(statement.get("Redirs"))),
            text=self._text(call, statement),
            upstream=upstream,
            holds=tuple(self.line.simples[place:]),
            nested=nested,
        )
        self.simple_of[id(statement)] = simple
        self.line.simples.insert(place, simple)

    def _read_test(self, test: Node, statement: Node, *, nested: bool) -> None:
        """`[[ … ]]`: one question about words is the program `test`."""
        words = as_test(cast(Node, test.get("X") or {}), self.source)
        if words is None:
            self._read_typed("TestClause", test, upstream=(), nested=nested)
            return
        self.obstacle(ObstacleKind.TEST, hurdle=True)
        place = len(self.line.simples)
        self._children(test, skip=set(), upstream=(), nested=nested)
        simple = Simple(words, (), (), self.source(test), holds=tuple(self.line.simples[place:]), nested=nested)
        self.simple_of[id(statement)] = simple
        self.line.simples.insert(place, simple)

    def _read_declaration(self, node: Node, *, nested: bool) -> None:
        """`export PATH=…`: a command like any other, but that shfmt gives it a node of its own."""
        verb = str(cast(Node, node.get("Variant") or {}).get("Value", "declare"))
        words = [word_of(verb), *(Word(s, None, s) for s in map(self.source, nodes(node.get("Args"))))]
        assigns = tuple(self._assign(each) for each in nodes(node.get("Args")) if each.get("Name"))
        self.line.simples.append(Simple(tuple(words), assigns, (), self.source(node), nested=nested))

    def _text(self, call: Node, statement: Node) -> str:
        """The command as it stands in the line, without `&`, `;` and bodies of here-documents."""
        starts = [self._offset(n, "Pos") for n in (call, *nodes(statement.get("Redirs"))) if n]
        ends = [self._offset(call, "End")] if call else []
        for redirect in nodes(statement.get("Redirs")):
            word = redirect.get("Word")
            ends.append(self._offset(cast(Node, word) if isinstance(word, dict) else redirect, "End"))
        if not starts:
            return self.source(statement)
        return self.data[min(starts) : max(ends)].decode("utf-8", "replace")

    def _offset(self, node: Node, which: str) -> int:
        place = node.get(which)
        return int(cast(int, place.get("Offset", 0))) if isinstance(place, dict) else 0

    def _read_loose_redirects(self, statement: Node, *, nested: bool) -> None:
        """Redirections of a whole block count as a command of their own: `{ …; } > file`."""
        redirects = tuple(self._redirect(each) for each in nodes(statement.get("Redirs")))
        if redirects:
            self.obstacle(ObstacleKind.BLOCK_REDIRECTED)
            self.line.simples.append(Simple((), (), redirects, " ".join(r.source for r in redirects), nested=nested))

    def _assign(self, node: Node) -> tuple[str, Word | None]:
        name = cast(Node, node.get("Name") or {})
        value = node.get("Value")
        if node.get("Array") is not None or node.get("Index") is not None or node.get("Append"):
            return str(name.get("Value", "")), None
        if not isinstance(value, dict):  # `X=` is empty, the X of `export X` is not known
            return str(name.get("Value", "")), None if node.get("Naked") else word_of("")
        return str(name.get("Value", "")), read_word(value, self.source(value))

    def _redirect(self, node: Node) -> Redirect:
        number = cast(Node, node.get("N") or {})
        word, heredoc = node.get("Word"), node.get("Hdoc")
        return Redirect(
            op=str(node.get("Op", "")),
            fd=str(number.get("Value", "")),
            target=read_word(word, self.source(word)) if isinstance(word, dict) else None,
            heredoc=read_word(heredoc, self.source(heredoc)) if isinstance(heredoc, dict) else None,
            source=self.source(node),
            body=_body(word, heredoc) if isinstance(word, dict) and node.get("Op") == "<<" else None,
        )


def _body(delimiter: Node, heredoc: object) -> str | None:
    """The text of a here-document, when it is what is written."""
    if not isinstance(heredoc, dict) or any(part.get("Type") != "Lit" for part in nodes(heredoc.get("Parts"))):
        return None
    text = "".join(str(part.get("Value", "")) for part in nodes(heredoc.get("Parts")))
    quoted = any(part.get("Type") != "Lit" for part in nodes(delimiter.get("Parts")))
    return text if quoted or "\\" not in text else None
