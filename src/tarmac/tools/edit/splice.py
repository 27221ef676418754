"""Put new lines in the place of old ones, with the indentation of the file; and say what came of it.

The model wrote its lines with its own indentation, and may remember some of the old ones wrongly. So only what differs
between its old and its new lines is changed, and that is moved to the indentation around it. A line that it did not
mean to change stays exactly as the file has it.

For Python, new lines that would break the indentation are shifted to where they fit, or refused. Other languages are
not checked, because in most of them indentation has no meaning.

A failed edit is an everyday result, not an exception. The model gets the closest place and the likely cause, in a few
lines. It does not get its whole search text again, because that only fills the context.
"""

import difflib
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tarmac.tools.edit.locate import MOST_PLACES, Ambiguous, Haystack, Location, MatchKind, NotFound, loose

SAME = "if the file is as you want it, go on; else read it again"
Reason = Literal[
    "not found",
    "ambiguous",
    "overlaps",
    "empty",
    "no change",
    "malformed",
    "out of range",
    "placeholder",
    "indentation",
]


@dataclass(frozen=True, slots=True)
class Applied:
    """A part of an edit that was applied."""

    part: int  # counted from 1, in the order of the call
    first: int  # lines of the old text, counted from 1; last < first means between two lines
    last: int
    match_kind: MatchKind = "exact"
    similarity: float = 1.0
    reindented: bool = False  # the new lines were shifted to the indentation around them


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A part of an edit that was not applied, and why, as text for a model."""

    part: int
    reason: Reason
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


@dataclass(frozen=True, slots=True)
class Edited:
    """The text after an edit; unchanged if nothing could be applied."""

    text: str
    applied: tuple[Applied, ...] = ()
    failed: tuple[FailedPart, ...] = ()

    @property
    def success(self) -> bool:
        """Whether any part was applied. Other parts may have failed."""
        return bool(self.applied)


_MOST_SHOWN = 24
_LONGEST = 160
_MOST_COMPARED = 500
_ELLIPSIS = re.compile(
    r"^\s*(?://|#|/\*|<!--|--|;|\*)?\s*(?:\.\.\.|…)\s*(?:\*/|-->)?\s*$|(?:\.\.\.|…)\s*(?:existing|rest)", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d+);")


def ambiguous(part: int, found: Ambiguous, hint: str) -> FailedPart:
    """The message for a search that matches several places."""
    shown = ", ".join(str(each.first + 1) for each in found.places[:10])
    more = f" and {len(found.places) - 10} more" if len(found.places) > 10 else ""
    at_least = "at least " if len(found.places) == MOST_PLACES else ""
    what = f"{at_least}{len(found.places)} places match: lines {shown}{more}"
    return FailedPart(part, "ambiguous", f"block {part}: {what}; nothing was changed there", hint)


def not_found(
    part: int, found: NotFound, hay: Haystack, wanted: Sequence[str], new: Sequence[str] | None, threshold: float
) -> FailedPart:
    """The message for a search that matches no place, with the closest one and the likely cause."""
    cause, hint = _cause(found, hay, wanted, new)
    place = found.closest
    if place is None:
        like = ", nor anything like it" if found.everywhere else ""
        return FailedPart(part, "not found", f"block {part}: not found{like}; {cause}", hint)
    head = (
        f"block {part}: not found; closest {_span(place)}, "
        f"{place.similarity:.0%} alike{f' ({threshold:.0%} needed)' if place.similarity < threshold else ''}"
    )
    return FailedPart(
        part, "not found", "\n".join([head, *_compared(place, hay.lines, wanted), f"likely cause: {cause}"]), hint
    )


def _compared(place: Location, lines: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The closest place with line numbers. `-` is the search, `+` is the file."""
    wanted, theirs = wanted[:_MOST_COMPARED], lines[place.first : min(place.end, place.first + _MOST_COMPARED)]
    width = len(str(place.end))
    matcher = difflib.SequenceMatcher(
        None, [loose(each) for each in wanted], [loose(each) for each in theirs], autojunk=False
    )
    result: list[str] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        numbered = [f"{place.first + 1 + at:{width}} | {_cut(theirs[at])}" for at in range(c, d)]
        if tag == "equal":
            if len(numbered) > 4:
                numbered = [*numbered[:2], f"{'':{width}} ⋮", *numbered[-2:]]
            result += [f"  {each}" for each in numbered]
        else:
            result += [f"- {'':{width}} | {_cut(each)}" for each in wanted[a:b]]
            result += [f"+ {each}" for each in numbered]
    if len(result) > _MOST_SHOWN:
        left = len(result) - _MOST_SHOWN + 1
        result = [*result[: _MOST_SHOWN - 1], f"  ({left} more lines of the comparison left out)"]
    return result


def _span(place: Location) -> str:
    return f"is line {place.end}" if place.end - place.first == 1 else f"are lines {place.first + 1}-{place.end}"


def _cut(line: str) -> str:
    line = line.translate(dict.fromkeys(range(56448, 56576), "�")) if not line.isascii() else line
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _cause(found: NotFound, hay: Haystack, wanted: Sequence[str], new: Sequence[str] | None) -> tuple[str, str]:
    if hay.huge:
        what = f"in a file of {len(hay.lines):,} lines only exact matches are searched"
        return what, "read the part you mean and copy it, or use search_and_replace or a command"
    if new is not None and set(new) - set(wanted) and (at := _already(hay, [loose(each) for each in new])) is not None:
        return f"the new text is already there, at line {at + 1}", "read the file before you edit it again"
    for number, line in enumerate(wanted, 1):
        if _ELLIPSIS.search(line) and not hay.where(loose(line)):
            what = f"line {number} of the search is an ellipsis; the search must be the text itself"
            return what, "search for fewer lines, each as it is in the file"
        if _ENTITY.search(line) and not hay.where(loose(line)):
            return f"line {number} of the search has HTML entities", "write < > & as they are"
    place, lines, keys = found.closest, hay.lines, hay.loose
    if place is None and not found.everywhere:
        return "the file is too large to look everywhere for something like it", "read the part of the file you mean"
    if place is None:
        return "the text is from another file, or the file was changed", "read the file again"
    ours, theirs = [loose(each) for each in wanted], keys[place.first : place.end]
    if [each.lower() for each in ours] == [each.lower() for each in theirs]:
        return "upper and lower case differ", "copy the text as it is"
    again = f"read lines {max(1, place.first - 1)}-{min(len(lines), place.end + 2)} again and copy them"
    different = sum(one != two for one, two in zip(ours, theirs, strict=True))
    if len(ours) < 3:
        return "too few lines to be sure; yours (-) are not the file's (+)", again
    if 2 * different > len(ours):
        return "most lines differ: lines are missing in the search or in the file, or it was changed", again
    return f"{different} line{'s differ' if different > 1 else ' differs'}: yours (-), the file's (+)", again


def _already(hay: Haystack, new: list[str]) -> int | None:
    """The line where the replacement already is. Short replacements are not looked for."""
    while new and not new[0]:
        new = new[1:]
    while new and not new[-1]:
        new = new[:-1]
    if not new or sum(map(len, new)) < 8:
        return None
    return next(iter(hay.keyed(loose).places(new, most=1)), None)


_OPENERS = (":", "{", "(", "[", "=>", "then", "do")


@dataclass(frozen=True, slots=True)
class Insert:
    """A part of an edit whose place is known."""

    part: int  # its number in the call
    place: Location
    old: Sequence[str]
    new: Sequence[str]
    instead: Sequence[str] | None = None  # what is put in, if not what new_lines() gives

    @property
    def applied(self) -> Applied:
        place = self.place
        return Applied(
            self.part, place.first + 1, place.end, place.match_kind, place.similarity, self.instead is not None
        )


def spliced(lines: Sequence[str], inserts: Sequence[Insert]) -> list[str]:
    """The lines with all inserts applied."""
    result: list[str] = []
    done = 0
    for each in sorted(inserts, key=lambda insert: insert.place.first):
        result += lines[done : each.place.first]
        result += each.instead if each.instead is not None else new_lines(lines, each.place, each.old, each.new)
        done = each.place.end
    return [*result, *lines[done:]]


def repaired(
    lines: Sequence[str], inserts: Sequence[Insert], problem: Callable[[list[str]], str]
) -> tuple[list[Insert], list[FailedPart]]:
    """The inserts, re-indented where they would break the indentation; those that can't be repaired fail.

    `problem` says what is wrong with the lines after an edit.
    """
    if not inserts or not problem(spliced(lines, inserts)):
        return list(inserts), []
    good: list[Insert] = []
    failed: list[FailedPart] = []
    for each in inserts:
        why = problem(spliced(lines, [each]))
        other = _reindented(lines, each, problem) if why else each
        if other is not None:
            good.append(other)
        else:
            failed.append(_refused(each.part, why))
    if good and (why := problem(spliced(lines, good))):
        return [], [_refused(each.part, why) for each in inserts]
    return good, failed


def _reindented(lines: Sequence[str], insert: Insert, problem: Callable[[list[str]], str]) -> Insert | None:
    place = insert.place
    indent = first_indent(lines[place.first : place.end] or lines[place.first : place.first + 1])
    for instead in placements(insert.new, indent):
        moved = replace(insert, instead=instead)
        if not problem(spliced(lines, [moved])):
            return moved
    return None


def _refused(part: int, why: str) -> FailedPart:
    what = f"block {part}: the indentation would be broken: {why}; nothing was changed for it"
    return FailedPart(part, "indentation", what, "write the new lines with the indentation that the file has there")


def new_lines(lines: Sequence[str], place: Location, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The lines that replace `lines[place.first:place.end]`."""
    if place.match_kind == "exact":
        return list(new)
    starts = (*place.starts, place.end)
    pairs = [
        (index, indent_of(ours), indent_of(lines[at]))
        for index, (ours, at) in enumerate(zip(old, place.starts, strict=True))
        if at < place.end and ours.strip() and lines[at].strip()
    ]
    if pairs and (indent := _lost_at_the_start(pairs, new)):
        if _is_relative(old, new, indent):
            new = [indent + each if each.strip() else each for each in new]
        else:
            new = [indent + new[0], *new[1:]]
        old = [indent + old[0], *old[1:]]
        pairs[0] = (pairs[0][0], indent, indent)
    if pairs and _is_absolute(pairs, new):
        known = {index: lines[place.starts[index]] for index, _, _ in pairs}
        old = [known.get(index, each) for index, each in enumerate(old)]
        pairs = [(index, theirs, theirs) for index, _, theirs in pairs]
    result: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            result += lines[starts[a] : starts[b]]
            continue
        result += reindented(new[c:d], _nearest(pairs, a, b))
        if b > a and old[b - 1].strip():  # blank lines after the last one, which the model forgot
            result += [each for each in lines[starts[b - 1] + 1 : starts[b]] if not each.strip()]
    return result


def _lost_at_the_start(pairs: Sequence[tuple[int, str, str]], new: Sequence[str]) -> str:
    """The indentation, if only the first line lost it, as happens at the start of an argument; else empty."""
    (index, ours, indent), others = pairs[0], pairs[1:]
    if index or ours or not indent or not new or indent_of(new[0]) or not new[0].strip():
        return ""
    if others:
        return indent if all(one == two for _, one, two in others) else ""
    rest = [each for each in new[1:] if each.strip()]
    whole = bool(rest) and all(each.startswith(indent) for each in rest)
    return indent if whole and not new[0].rstrip().endswith(_OPENERS) else ""


def _is_absolute(pairs: Sequence[tuple[int, str, str]], new: Sequence[str]) -> bool:
    """Whether the old lines lost their indentation, and the new ones have that of the file."""
    _, ours, theirs = pairs[0]
    filled = [each for each in new if each.strip()]
    return not ours and bool(theirs and filled) and all(each.startswith(theirs) for each in filled)


def _is_relative(old: Sequence[str], new: Sequence[str], indent: str) -> bool:
    """Whether all new lines lost the indentation, and not the first one alone, as in the old lines."""
    before, after = ([each for each in lines[1:] if each.strip()] for lines in (old, new))
    if not after or set(before) & set(after):
        return False
    if new[0].rstrip().endswith(_OPENERS) and indent_of(after[0]) == indent:
        return True
    return bool(before) and min(map(len, map(indent_of, after))) < min(map(len, map(indent_of, before)))


def _nearest(pairs: Iterable[tuple[int, str, str]], a: int, b: int) -> dict[str, str]:
    """The indentations of the model and of the file. If the model was inconsistent, those closest to lines a to b-1."""

    def distance(pair: tuple[int, str, str]) -> float:
        index = pair[0]
        if a == b:  # between two lines: the one before it first
            return a - 1 - index if index < a else index - a + 0.5
        return max(a - index, index - b + 1, 0)

    indents: dict[str, str] = {}
    for _, ours, theirs in sorted(pairs, key=distance):
        indents.setdefault(ours, theirs)
    return indents


def reindented(new: Sequence[str], indents: dict[str, str]) -> list[str]:
    """The new lines, with each indentation of the model replaced by that of the file."""
    if not indents or all(ours == theirs for ours, theirs in indents.items()) or not new:
        return list(new)
    return [_moved(each, indents) if each.strip() else each for each in new]


def _moved(line: str, indents: dict[str, str]) -> str:
    indent = indent_of(line)
    body = line[len(indent) :]
    if indent in indents:
        return indents[indent] + body
    known = [each for each in indents if indent.startswith(each)]
    if known:  # deeper than a line we know: from there on in the file's unit, if it is known
        base = max(known, key=len)
        unit, theirs = _unit(indents)
        rest = indent[len(base) :]
        if unit and rest == unit * (len(rest) // len(unit)):
            rest = theirs * (len(rest) // len(unit))
        return indents[base] + rest + body
    ours, theirs = min(
        indents.items(), key=lambda pair: len(pair[0])
    )  # less deep than all: as much less than the least
    return theirs[: max(0, len(theirs) - (len(ours) - len(indent)))] + body


def _unit(indents: dict[str, str]) -> tuple[str, str]:
    """One level of indentation, of the model and of the file."""
    by_depth = sorted(indents.items(), key=lambda pair: len(pair[0]))
    for (ours, theirs), (deeper, theirs_deeper) in pairwise(by_depth):
        if deeper.startswith(ours) and theirs_deeper.startswith(theirs):
            return deeper[len(ours) :], theirs_deeper[len(theirs) :]
    ours, theirs = by_depth[-1]
    if theirs and set(theirs) == {"\t"} and set(ours) == {" "} and len(ours) % len(theirs) == 0:
        return " " * (len(ours) // len(theirs)), "\t"
    return "", ""


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
