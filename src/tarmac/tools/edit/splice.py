"""Put the new lines where the old ones were, in the file's own words.

The model wrote its lines with its own indentation, and may remember some of the old ones wrongly. So only what differs
between its old and its new lines is changed, and that is moved to the indentation around it: a line it did not mean to
change stays as the file has it, to the last blank.
"""

import difflib
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tarmac.tools.edit.locate import Place

_OPENERS = (":", "{", "(", "[", "=>", "then", "do")


def new_lines(lines: Sequence[str], place: Place, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """What goes in place of `lines[place.first:place.end]`."""
    if place.rung == "exact":
        return list(new)
    starts = (*place.starts, place.end)
    pairs = [
        (index, _indent(ours), _indent(lines[at]))
        for index, (ours, at) in enumerate(zip(old, place.starts, strict=True))
        if at < place.end and ours.strip() and lines[at].strip()
    ]
    if pairs and (indent := _lost_at_the_start(pairs, new)):
        old, new = [indent + old[0], *old[1:]], [indent + new[0], *new[1:]]
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
    if index or ours or not indent or not new or _indent(new[0]) or not new[0].strip():
        return ""
    if others:
        return indent if all(one == two for _, one, two in others) else ""
    rest = [each for each in new[1:] if each.strip()]
    whole = bool(rest) and all(each.startswith(indent) for each in rest)
    return indent if whole and not new[0].rstrip().endswith(_OPENERS) else ""


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
    indent = _indent(line)
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


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
