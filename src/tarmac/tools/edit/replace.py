"""search_and_replace: every occurrence of a text or a pattern, in a range of lines.

Patterns are those of the `regex` module (Python's own, and more), `^` and `$` meet at each line. In the replacement
`$1`, `${name}`, `$&` and `\\1` stand for groups, `$$` for a dollar. A pattern that takes too long is stopped: it is the
model's, and nothing may hang on it.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tarmac.prompts.patterns import check_size
from tarmac.tools.edit import explain
from tarmac.tools.edit.lines import split_lines
from tarmac.tools.edit.locate import NotFound, Place, find
from tarmac.tools.edit.result import Applied, Edited, Failure, Reason

if TYPE_CHECKING:
    from regex import Match

PATIENCE = 1.0  # of processor time
_GROUP = re.compile(r"\$(?:(\$)|(&)|(\d{1,2})|\{(\w+)\})|\\(\d{1,2}|g<(\w+)>|n|t|\\)")


def search_and_replace(
    text: str,
    search: str,
    replacement: str,
    *,
    pattern: bool = False,
    ignore_case: bool = False,
    start_line: int | None = None,
    end_line: int | None = None,
    patience: float = PATIENCE,
) -> Edited:
    """`text` with each occurrence replaced; lines are counted from 1, `end_line` is the last one searched."""
    search, replacement = search.replace("\r\n", "\n"), replacement.replace("\r\n", "\n")
    if not search:
        return _failed(text, "empty", "the search is empty", "give a text to search for")
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # not splitlines(), to which a form feed is a line's end
    first, last = (start_line or 1), (len(lines) if end_line is None else min(end_line, len(lines)))
    if first < 1 or first > max(last, 1):
        what = f"lines {first} to {end_line or len(lines)} are outside the file, which has {len(lines)} lines"
        return _failed(text, "out of range", what, f"1 to {len(lines)}")
    head, body, tail = "".join(lines[: first - 1]), "".join(lines[first - 1 : last]), "".join(lines[last:])
    import regex

    flags = regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    spots: list[int] = []
    expand = _expander(replacement) if pattern else lambda _: replacement

    def put(match: "Match[str]") -> str:
        spots.append(match.start())
        return expand(match)

    try:
        if pattern:
            check_size(search)
        compiled = regex.compile(search if pattern else regex.escape(search, literal_spaces=True), flags)
        after = compiled.sub(put, body, timeout=patience, concurrent=True)
    except (regex.error, ValueError, RecursionError) as error:
        return _failed(text, "malformed", f"the pattern is wrong: {error}", "escape what is meant literally")
    except (IndexError, KeyError):
        return _failed(text, "malformed", "the replacement names a group the pattern does not have", "")
    except TimeoutError:
        hint = "make it simpler: no repetition inside a repetition"
        return _failed(text, "malformed", f"the pattern took longer than {patience:g} s", hint)
    if not spots:
        return _none(text, search, pattern=pattern, first=first, last=last)
    if after == body:
        return _failed(text, "no change", "the replacement is what is there already", "")
    applied = []
    for part, spot in enumerate(spots, 1):
        line = first + body.count("\n", 0, spot)
        applied.append(Applied(part, line, line))
    return Edited(head + after + tail, tuple(applied))


def _expander(replacement: str) -> "Callable[[Match[str]], str]":
    """A function that fills groups into the replacement."""

    def fill(match: "Match[str]") -> str:
        def group(found: re.Match[str]) -> str:
            dollar, whole, number, name, escape, angle = found.groups()
            if dollar:
                return "$"
            if whole:
                return str(match.group(0))
            if escape in ("n", "t", "\\"):
                return {"n": "\n", "t": "\t", "\\": "\\"}[escape]
            key = number or name or angle or escape
            return match.group(int(key) if key.isdigit() else key) or ""

        return _GROUP.sub(group, replacement)

    return fill


def _none(text: str, search: str, *, pattern: bool, first: int, last: int) -> Edited:
    """Nothing found: for a literal text, the closest line there is."""
    lines, _ = split_lines(text)
    where = f" in lines {first}-{last}" if (first, last) != (1, len(lines)) else ""
    if pattern:
        return _failed(text, "not found", f"the pattern matches nothing{where}", "try it with search_files first")
    wanted = search.strip("\n").split("\n")
    found = find(lines, wanted, threshold=1)
    if isinstance(found, Place):
        what = f"not found{where} as written; line {found.first + 1} differs in white space, or lies outside the range"
        return _failed(text, "not found", what, f"read lines {found.first + 1}-{found.end} and copy them")
    failure = explain.not_found(1, found if isinstance(found, NotFound) else NotFound(None), lines, wanted, None, 1)
    return Edited(text, failed=(failure,))


def _failed(text: str, reason: Reason, message: str, hint: str) -> Edited:
    return Edited(text, failed=(Failure(1, reason, message, hint),))
