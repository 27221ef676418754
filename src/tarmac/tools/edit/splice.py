"""Put new lines in the place of old ones, with the indentation of the file.

The model wrote its lines with its own indentation, and may remember some of the old ones wrongly. So only what differs
between its old and its new lines is changed, and that is moved to the indentation around it. A line that it did not
mean to change stays exactly as the file has it.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tarmac.tools.edit.edit_result import Applied, Failure
from tarmac.tools.edit.indentation import first_indent, indent_of, placements
from tarmac.tools.edit.locate import Place

_OPENERS = (":", "{", "(", "[", "=>", "then", "do")


@dataclass(frozen=True, slots=True)
class Insert:
    """Part of an edit whose place is known."""

    part: int  # its number in the call
    place: Place
    old: Sequence[str]
    new: Sequence[str]
    instead: Sequence[str] | None = None  # what is put in, if not what new_lines() gives

    @property
    def applied(self) -> Applied:
        place = self.place
        return Applied(self.part, place.first + 1, place.end, place.rung, place.similarity, self.instead is not None)


def spliced(lines: Sequence[str], inserts: Sequence[Insert]) -> list[str]:
    """The lines with all of these put in."""
    result: list[str] = []
    done = 0
    for each in sorted(inserts, key=lambda insert: insert.place.first):
        result += lines[done : each.place.first]
        result += each.instead if each.instead is not None else new_lines(lines, each.place, each.old, each.new)
        done = each.place.end
    return [*result, *lines[done:]]


def repaired(
    lines: Sequence[str], inserts: Sequence[Insert], problem: Callable[[list[str]], str]
) -> tuple[list[Insert], list[Failure]]:
    """The inserts, re-indented where they would break the indentation; those that can't be repaired fail.

    `problem` says what is wrong with the lines after an edit.
    """
    if not inserts or not problem(spliced(lines, inserts)):
        return list(inserts), []
    good: list[Insert] = []
    failed: list[Failure] = []
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


def _refused(part: int, why: str) -> Failure:
    what = f"block {part}: the indentation would be broken: {why}; nothing was changed for it"
    return Failure(part, "indentation", what, "write the new lines with the indentation that the file has there")


def new_lines(lines: Sequence[str], place: Place, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """What goes in place of `lines[place.first:place.end]`."""
    if place.rung == "exact":
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
    result: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            result += lines[starts[a] : starts[b]]
            continue
        result += reindented(new[c:d], _nearest(pairs, a, b))
        if b > a and old[b - 1].strip():  # blank lines that the model forgot after the last one
            result += [each for each in lines[starts[b - 1] + 1 : starts[b]] if not each.strip()]
    return result


def _lost_at_the_start(pairs: Sequence[tuple[int, str, str]], new: Sequence[str]) -> str:
    """The indentation that only the first line lost, as happens at the beginning of an argument; else empty."""
    (index, ours, indent), others = pairs[0], pairs[1:]
    if index or ours or not indent or not new or indent_of(new[0]) or not new[0].strip():
        return ""
    if others:
        return indent if all(one == two for _, one, two in others) else ""
    rest = [each for each in new[1:] if each.strip()]
    whole = bool(rest) and all(each.startswith(indent) for each in rest)
    return indent if whole and not new[0].rstrip().endswith(_OPENERS) else ""


def _is_relative(old: Sequence[str], new: Sequence[str], indent: str) -> bool:
    """Whether all new lines lost the indentation, and not the first one alone, as in the old lines."""
    before, after = ([each for each in lines[1:] if each.strip()] for lines in (old, new))
    if not after or set(before) & set(after):
        return False
    if new[0].rstrip().endswith(_OPENERS) and indent_of(after[0]) == indent:
        return True
    return bool(before) and min(map(len, map(indent_of, after))) < min(map(len, map(indent_of, before)))


def _nearest(pairs: Iterable[tuple[int, str, str]], a: int, b: int) -> dict[str, str]:
    """The model's indentations and the file's; where the model was not consistent, those closest to lines a … b-1."""

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
    """`new`, with each indentation of the model's old lines made that of the file's."""
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
    """One step of indentation: the model's, and the file's."""
    by_depth = sorted(indents.items(), key=lambda pair: len(pair[0]))
    for (ours, theirs), (deeper, theirs_deeper) in pairwise(by_depth):
        if deeper.startswith(ours) and theirs_deeper.startswith(theirs):
            return deeper[len(ours) :], theirs_deeper[len(theirs) :]
    ours, theirs = by_depth[-1]
    if theirs and set(theirs) == {"\t"} and set(ours) == {" "} and len(ours) % len(theirs) == 0:
        return " " * (len(ours) // len(theirs)), "\t"
    return "", ""
