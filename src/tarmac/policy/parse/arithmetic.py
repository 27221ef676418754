"""Calculate `$((1+2))` where it holds nothing but whole numbers: by the parser's tree, and by the text alone.

Both readers of a line use one of them each, and must come to the same number. Names, assignments, other bases and
results beyond 64 bits are not calculated: None.
"""

import ast
import re
from collections.abc import Callable, Mapping

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
