"""Why an edit found no place, in a few lines that a model can act on: the closest place and the likely cause.

Not the whole search text again, not forty lines around it: what fills the context gets the next edit wrong too.
"""

import difflib
import re
from collections.abc import Sequence

from tarmac.tools.edit.edit_result import Failure
from tarmac.tools.edit.hay import Hay, loose
from tarmac.tools.edit.locate import Ambiguous, NotFound, Place

_MOST_SHOWN = 24
_LONGEST = 160
_MOST_COMPARED = 500
_ELLIPSIS = re.compile(
    r"^\s*(?://|#|/\*|<!--|--|;|\*)?\s*(?:\.\.\.|…)\s*(?:\*/|-->)?\s*$|(?:\.\.\.|…)\s*(?:existing|rest)", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d+);")


def ambiguous(part: int, found: Ambiguous, hint: str) -> Failure:
    """Several places would do."""
    shown = ", ".join(str(each.first + 1) for each in found.places[:10])
    more = f" and {len(found.places) - 10} more" if len(found.places) > 10 else ""
    what = f"{len(found.places)} places match: lines {shown}{more}"
    return Failure(part, "ambiguous", f"block {part}: {what}; nothing was changed there", hint)


def not_found(
    part: int, found: NotFound, hay: Hay, wanted: Sequence[str], new: Sequence[str] | None, threshold: float
) -> Failure:
    """No place would do: the closest one, and why it is not it."""
    cause, hint = _cause(found, hay, wanted, new)
    place = found.closest
    if place is None:
        like = ", nor anything like it" if found.everywhere else ""
        return Failure(part, "not found", f"block {part}: not found{like}; {cause}", hint)
    head = (
        f"block {part}: not found; closest {_span(place)}, "
        f"{place.similarity:.0%} alike{f' ({threshold:.0%} needed)' if place.similarity < threshold else ''}"
    )
    return Failure(
        part, "not found", "\n".join([head, *_compared(place, hay.lines, wanted), f"likely cause: {cause}"]), hint
    )


def _compared(place: Place, lines: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The closest place with line numbers: `-` is what was searched, `+` what the file has."""
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


def _span(place: Place) -> str:
    return f"is line {place.end}" if place.end - place.first == 1 else f"are lines {place.first + 1}-{place.end}"


def _cut(line: str) -> str:
    line = line.translate(dict.fromkeys(range(56448, 56576), "�")) if not line.isascii() else line
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _cause(found: NotFound, hay: Hay, wanted: Sequence[str], new: Sequence[str] | None) -> tuple[str, str]:
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


def _already(hay: Hay, new: list[str]) -> int | None:
    """Where the replacement stands already; only one that says something."""
    while new and not new[0]:
        new = new[1:]
    while new and not new[-1]:
        new = new[:-1]
    if not new or sum(map(len, new)) < 8:
        return None
    return next(iter(hay.keyed(loose).places(new, most=1)), None)
