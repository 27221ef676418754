"""Find Python code whose indentation is broken, and shift lines to another indentation.

Only Python is checked: in most other languages indentation has no meaning.
"""

import io
import tokenize
from collections.abc import Sequence

_STEPS = ("\t", "  ", "    ")  # one level of indentation
_PYTHON = (".py", ".pyi")
_MOST = 512 << 10  # characters; a larger file is not checked
_LAYOUT = (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING)


def broken_by(before: str, after: str, path: str) -> str:
    """What is wrong with the indentation of `after`; empty if nothing is, or if `before` was broken already."""
    if not path.lower().endswith(_PYTHON) or len(after) > _MOST or len(before) > _MOST:
        return ""
    problem = _problem(after)
    return problem if problem and not _problem(before) else ""


def _problem(text: str) -> str:
    """The first line that is indented wrongly, and why."""
    opened = 0  # the line of a colon at the end of the last statement
    last = tokenize.TokenInfo(tokenize.NEWLINE, "", (0, 0), (0, 0), "")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in _LAYOUT:
                continue
            if token.type == tokenize.INDENT and not opened:
                return f"line {token.start[0]} is indented for no reason"
            if opened and token.type != tokenize.INDENT:
                return f"line {token.start[0]} should be indented, because line {opened} ends with a colon"
            opened = last.start[0] if token.type == tokenize.NEWLINE and last.string == ":" else 0
            last = token
    except IndentationError as error:
        return f"line {error.lineno} is indented like no line before it"
    except (tokenize.TokenError, SyntaxError):  # not Python, or not whole
        return ""
    return ""


def indent_of(line: str) -> str:
    """The white space at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


def first_indent(lines: Sequence[str]) -> str:
    """The indentation of the first line that is not blank."""
    return next((indent_of(each) for each in lines if each.strip()), "")


def shifted(lines: Sequence[str], indent: str) -> list[str]:
    """The lines, moved together so that the first one has this indentation."""
    base = first_indent(lines)
    return [_shifted(each, base, indent) if each.strip() else each for each in lines]


def _shifted(line: str, base: str, indent: str) -> str:
    if line.startswith(base):
        return indent + line[len(base) :]
    short = len(base) - len(indent_of(line))  # less deep than the first one
    return indent[: max(0, len(indent) - short)] + line.lstrip()


def placements(lines: Sequence[str], indent: str) -> list[list[str]]:
    """Where a model may have meant its lines to be: moved together, or all but the first one moved."""
    together = shifted(lines, indent)
    first = next((at for at, each in enumerate(lines) if each.strip()), 0)
    rest = [indent + each if each.strip() else each for each in lines[first + 1 :]]
    step = first_indent(rest).removeprefix(indent)
    alone = [[*together[: first + 1], *rest]] if step in _STEPS else []
    return [together, *alone]
