"""The result of an edit, and the words for one that failed.

A failed edit is an everyday result, not an exception. The model gets the closest place and the likely cause, in a few
lines. It does not get its whole search text again, because that only fills the context.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tarmac.tools.edit.locate import Ambiguous, Haystack, Location, MatchKind, NotFound, loose

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
    what = f"{len(found.places)} places match: lines {shown}{more}"
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
        what = f"in a file of {len(hay.lines):,} lines only the very same ones are looked for, white space and all"
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
