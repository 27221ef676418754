"""Put the new lines where the old ones were, in the file's own words.

The model wrote its lines with its own indentation, and may remember some of the old ones wrongly. `reindented` moves
its lines to the indentation of the place; `merged` changes only what differs between its old and its new lines, so
that a line it remembers wrongly but did not mean to change stays as the file has it.
"""

import difflib
from collections.abc import Sequence
from itertools import pairwise

from tarmac.tools.edit.locate import Place


def new_lines(lines: Sequence[str], place: Place, old: Sequence[str], new: Sequence[str], *, keep: bool) -> list[str]:
    """What goes in place of `lines[place.first:place.end]`. `keep`: lines that are the same in old and new stay."""
    if place.rung == "exact":
        return list(new)
    moved = reindented(lines, place, old, new)
    return merged(lines, place, old, new, moved) if keep or place.rung in ("fuzzy", "blank lines") else moved


def merged(
    lines: Sequence[str], place: Place, old: Sequence[str], new: Sequence[str], moved: Sequence[str]
) -> list[str]:
    """Old lines that stay come from the file, the others from `moved`."""
    starts = (*place.starts, place.end)
    result: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        result += lines[starts[a] : starts[b]] if tag == "equal" else moved[c:d]
    return result


def reindented(lines: Sequence[str], place: Place, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """`new`, with each indentation of the model's old lines made that of the file's."""
    indents: dict[str, str] = {}
    for ours, at in zip(old, place.starts, strict=True):
        theirs = lines[at] if at < place.end else ""
        if ours.strip() and theirs.strip():
            indents.setdefault(_indent(ours), _indent(theirs))
    if not indents or all(ours == theirs for ours, theirs in indents.items()):
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
        if unit and len(rest) % len(unit) == 0 and rest == unit * (len(rest) // len(unit)):
            rest = theirs * (len(rest) // len(unit))
        return indents[base] + rest + body
    ours, theirs = next(iter(indents.items()))  # less deep than all: as much less than the first one
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
