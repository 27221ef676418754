"""Replace every occurrence of a text or a pattern, and insert lines.

Patterns are those of the `regex` module. `^` and `$` match at each line. In the replacement, `$1`, `${name}`, `$&` and
`\\1` stand for groups, and `$$` for a dollar. A pattern that takes too long is stopped.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tarmac.prompts.mode import check_size
from tarmac.tools.edit.content_checks import WRITE_ALL, refuse_omissions
from tarmac.tools.edit.locate import Ambiguous, Haystack, Location, NotFound, find
from tarmac.tools.edit.splice import (
    SAME,
    Applied,
    Edited,
    FailedPart,
    Insert,
    Reason,
    broken_by,
    first_indent,
    not_found,
    placements,
    repaired,
    shifted,
    spliced,
)
from tarmac.tools.edit.text_file import join_lines, split_lines

if TYPE_CHECKING:
    from regex import Match

PATIENCE = 1.0  # seconds of processor time for a pattern
_A_SECOND_MORE = 5_000_000  # characters that give a pattern one more second
MOST_SPOTS = 1_000_000
_MOST_REINDENTED = 50  # places; each is checked by itself
_TOO_MANY = "search for more of it, in a range of lines, or use a command such as sed"
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
    expected: int | None = None,
    path: str = "",
    patience: float = PATIENCE,
) -> Edited:
    """`text` with each occurrence replaced; lines are counted from 1, `end_line` is the last one searched.

    `expected` is the number of places that must match; another number changes nothing.
    """
    search, replacement = search.replace("\r\n", "\n"), replacement.replace("\r\n", "\n")
    if not search and not text:
        return Edited(replacement, (Applied(1, 1, 0),))
    if not search:
        return _failed(text, "empty", "the search is empty", "give a text to search for")
    if left_out := refuse_omissions(replacement, text, shorter=replacement.count("\n") < search.count("\n")):
        return _failed(text, "placeholder", left_out, WRITE_ALL)
    count = text.count("\n") + (text[-1:] not in ("", "\n"))  # splitlines() would also split at a form feed
    first, last = (start_line or 1), (count if end_line is None else min(end_line, count))
    if first < 1 or first > max(last, 1):
        what = f"lines {first} to {end_line or count} are outside the file, which has {count} lines"
        return _failed(text, "out of range", what, f"1 to {count}")
    start = _line_start(text, first)
    end = len(text) if last == count else _line_start(text, last + 1 - first + 1, start)
    body = text[start:end]
    try:
        if pattern or ignore_case:
            after, spots = _by_pattern(
                body, search, replacement, pattern=pattern, ignore_case=ignore_case, patience=patience
            )
        else:
            after, spots = body.replace(search, replacement), _spots(body, search)
    except _Refused as why:
        return _failed(text, "malformed", *why.args)
    if not spots:
        whole = not pattern and not ignore_case and len(body) == len(text)
        loosely = _differently_indented(text, search, replacement, expected, path) if whole else None
        return loosely or _none(text, search, pattern=pattern, first=first, last=last)
    if expected is not None and len(spots) != expected:
        return _failed(text, "ambiguous", *_unexpected(body, spots, first, expected))
    if after == body:
        return _failed(text, "no change", "the replacement is the same as the old text", SAME)
    problem = broken_by(text, text[:start] + after + text[end:], path)
    if problem and not pattern and not ignore_case:
        after = _reindented(body, search, replacement)
        problem = broken_by(text, text[:start] + after + text[end:], path)
    if problem:
        hint = "write the new lines with the indentation that the file has there"
        return _failed(text, "indentation", f"the indentation would be broken: {problem}", hint)
    applied = []
    line, before = first, 0
    for part, spot in enumerate(spots, 1):
        line, before = line + body.count("\n", before, spot), spot
        applied.append(Applied(part, line, line))
    return Edited(text[:start] + after + text[end:], tuple(applied))


def _unexpected(body: str, spots: list[int], first: int, expected: int) -> tuple[str, str]:
    """The message for an unexpected number of places."""
    lines = [str(first + body.count("\n", 0, spot)) for spot in spots[:10]]
    what = f"{len(spots)} place{'s match' if len(spots) != 1 else ' matches'} (lines {', '.join(lines)}"
    what += f" and {len(spots) - 10} more)" if len(spots) > 10 else ")"
    if expected == 1:
        return f"{what}, and one was expected", "search for more lines around it, or set replace_all to true"
    return f"{what}, and expected_replacements is {expected}", "read the file again, or leave expected_replacements out"


def _reindented(body: str, search: str, replacement: str) -> str:
    """Replace each occurrence, with the new lines shifted to the indentation of that place."""
    pieces = body.split(search)
    result = pieces[0]
    for piece in pieces[1:]:
        ahead = result[result.rfind("\n") + 1 :]
        if ahead.strip():
            new = replacement
        elif ahead:  # the search begins after the indentation
            head, *rest = replacement.split("\n")
            new = "\n".join([head, *(ahead + each if each.strip() else each for each in rest)])
        else:
            new = "\n".join(shifted(replacement.split("\n"), first_indent(search.split("\n"))))
        result += new + piece
    return result


def _differently_indented(text: str, search: str, replacement: str, expected: int | None, path: str) -> Edited | None:
    """Replace the lines that differ from the search in indentation alone, each with its own indentation."""
    lines, ended = split_lines(text)
    hay = Haystack(lines)
    old, new = ([] if not each else each.removesuffix("\n").split("\n") for each in (search, replacement))
    needle = list(map(str.strip, old))
    if hay.huge or not any(needle):
        return None
    places: list[int] = []
    for at in hay.keyed(str.strip).places(needle, most=_MOST_REINDENTED + 1):
        if not places or at >= places[-1] + len(old):
            places.append(at)
    if not places or len(places) > _MOST_REINDENTED:
        return None
    if expected is not None and len(places) != expected:
        offsets = [_line_start(text, at + 1) for at in places]
        return _failed(text, "ambiguous", *_unexpected(text, offsets, 1, expected))
    size = len(old)
    inserts = [
        Insert(part, Location(at, at + size, "whitespace", 1.0, tuple(range(at, at + size))), old, new)
        for part, at in enumerate(places, 1)
    ]
    inserts, failed = repaired(lines, inserts, lambda result: broken_by(text, join_lines(result, ended), path))
    result = join_lines(spliced(lines, inserts), ended)
    return Edited(result, tuple(each.applied for each in inserts), tuple(failed))


def _line_start(text: str, line: int, start: int = 0) -> int:
    """The offset of a line, counted from 1 at `start`; the end of the text if there are fewer lines."""
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if not start:
            return len(text)
    return start


class _Refused(Exception):
    """What is wrong, and a hint."""


def _spots(body: str, search: str) -> list[int]:
    """The offsets of a text."""
    if body.count(search) > MOST_SPOTS:
        raise _Refused(f"it is found in more than {MOST_SPOTS:,} places", _TOO_MANY)
    spots: list[int] = []
    at = body.find(search)
    while at >= 0:
        spots.append(at)
        at = body.find(search, at + len(search))
    return spots


def _by_pattern(
    body: str, search: str, replacement: str, *, pattern: bool, ignore_case: bool, patience: float
) -> tuple[str, list[int]]:
    """The text with each match replaced, and the offsets of the matches."""
    import regex

    flags = regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    spots: list[int] = []
    expand = _expander(replacement) if pattern else lambda _: replacement

    def put(match: "Match[str]") -> str:
        spots.append(match.start())
        if len(spots) > MOST_SPOTS:
            raise _Refused(f"it is found in more than {MOST_SPOTS:,} places", _TOO_MANY)
        return expand(match)

    patience *= 1 + len(body) / _A_SECOND_MORE
    try:
        if pattern:
            check_size(search)
        compiled = regex.compile(search if pattern else regex.escape(search, literal_spaces=True), flags)
        return compiled.sub(put, body, timeout=patience, concurrent=True), spots
    except (regex.error, ValueError, RecursionError) as error:
        raise _Refused(f"the pattern is invalid: {error}", "escape what is meant literally") from None
    except (IndexError, KeyError):
        raise _Refused("the replacement names a group the pattern does not have", "") from None
    except TimeoutError:
        what = f"the pattern took longer than {patience:.2g} s"
        raise _Refused(what, "make it simpler: no repetition inside a repetition") from None


def _expander(replacement: str) -> "Callable[[Match[str]], str]":
    """A function that puts groups into the replacement."""

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
    """The failure for a search without a match, with the closest line for a literal text."""
    lines, _ = split_lines(text)
    where = f" in lines {first}-{last}" if (first, last) != (1, len(lines)) else ""
    if pattern:
        return _failed(text, "not found", f"the pattern matches nothing{where}", "try it with search_files first")
    wanted = search.strip("\n").split("\n")
    hay = Haystack(lines)
    found = find(hay, wanted, threshold=1)
    if isinstance(found, Location):
        what = f"not found{where} as written; line {found.first + 1} differs in white space, or lies outside the range"
        return _failed(text, "not found", what, f"read lines {found.first + 1}-{found.end} and copy them")
    if isinstance(found, Ambiguous):
        places = ", ".join(str(each.first + 1) for each in found.places[:10])
        what = f"not found{where} as written; lines {places} differ in white space, or lie outside the range"
        return _failed(text, "not found", what, "read these lines and copy one, or use_regex with \\s*")
    at = text.casefold().find(search.casefold())
    if at >= 0:
        what = f"not found{where} as written; upper and lower case differ at line {text.count(chr(10), 0, at) + 1}"
        return _failed(text, "not found", what, "copy it as it is there, or set ignore_case")
    failure = not_found(1, found if isinstance(found, NotFound) else NotFound(None), hay, wanted, None, 0)
    return _failed(text, failure.reason, failure.message.removeprefix("block 1: "), failure.hint)


def _failed(text: str, reason: Reason, message: str, hint: str) -> Edited:
    return Edited(text, failed=(FailedPart(1, reason, message, hint),))


def insert_content(text: str, line: int, content: str, *, path: str = "") -> Edited:
    """`text` with `content` before `line` (from 1); 0 puts it at the end. A missing final newline stays missing."""
    content = content.replace("\r\n", "\n").removesuffix("\n")
    lines, ended = split_lines(text)
    last = len(lines)
    if not 0 <= line <= last + 1:
        what = f"line {line} is outside the file, which has {last} line{'s' if last != 1 else ''}"
        return Edited(text, failed=(FailedPart(1, "out of range", what, f"1 to {last + 1}, or 0 for the end"),))
    if why := refuse_omissions(content, text):
        return Edited(text, failed=(FailedPart(1, "placeholder", why, WRITE_ALL),))
    at = last if line == 0 else line - 1
    new = content.split("\n")

    def problem(candidate: list[str]) -> str:
        return broken_by(text, join_lines([*lines[:at], *candidate, *lines[at:]], ended), path)

    why = problem(new)
    moved = new
    if why:
        indents = dict.fromkeys([first_indent(lines[at:]), first_indent(lines[:at][::-1])])
        candidates = [each for indent in indents for each in placements(new, indent)]
        repaired = next((each for each in candidates if not problem(each)), None)
        if repaired is None:
            hint = "write the new lines with the indentation that the file has there"
            what = f"the indentation would be broken: {why}"
            return Edited(text, failed=(FailedPart(1, "indentation", what, hint),))
        moved = repaired
    result = [*lines[:at], *moved, *lines[at:]]
    return Edited(join_lines(result, ended), (Applied(1, at + 1, at, reindented=bool(why)),))
