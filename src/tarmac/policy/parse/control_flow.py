"""The order in which a line runs its commands, if a plan can have that order.

tree → plain_course() → CommandPipeline, Group, Condition, Loop … | NotPlain

`a && b | c; (d)`, `if a; then b; else c; fi`, `for x in a b; do c "$x"; done`, `time a`. Everything else (while, case,
functions, the background, redirections of whole blocks) is NotPlain, and a person is asked.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Union, cast

from tarmac.policy.parse.words import Node, Simple, Word, read_word, word_of
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
