"""apply_diff: SEARCH/REPLACE blocks on a text.

blocks ─find in the text as it was→ places ─no two share a line→ all put in, from the end
A block that is not found there is looked for once more in the result: it may build on another one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tarmac.errors import EditFailed
from tarmac.tools.edit import explain
from tarmac.tools.edit.blocks import Block, parse_blocks
from tarmac.tools.edit.hay import Hay
from tarmac.tools.edit.lines import join_lines, split_lines
from tarmac.tools.edit.locate import THRESHOLD, Ambiguous, NotFound, Place, find, find_equal
from tarmac.tools.edit.result import Applied, Edited, Failure
from tarmac.tools.edit.splice import new_lines

_NUMBER = re.compile(r"^\s*(\d+)\s?\|(?: |$)")
_MORE = "give :start_line:, or more lines around it"


@dataclass(frozen=True, slots=True)
class _Part:
    """A block with its number, ready to be looked for."""

    number: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    near: int | None


def apply_diff(text: str, diff: str | Sequence[Block], *, threshold: float = THRESHOLD) -> Edited:
    """`text` after the blocks of `diff`. Blocks that fit are applied even when others fail, as models expect."""
    try:
        blocks = parse_blocks(diff) if isinstance(diff, str) else list(diff)
    except EditFailed as error:
        return Edited(text, failed=(Failure(0, "malformed", error.what, error.hint),))
    lines, ended = split_lines(text)
    hay = Hay(lines)
    taken: list[tuple[Place, _Part]] = []
    later: list[tuple[_Part, Failure]] = []
    failed: list[Failure] = []
    for number, block in enumerate(blocks, 1):
        part, answer = _look(hay, number, block, threshold)
        if isinstance(answer, Place):
            other = next((each for place, each in taken if _share(place, answer)), None)
            if other is None:
                taken.append((answer, part))
            else:
                what = f"block {number}: its lines are those of block {other.number}; nothing was changed for it"
                failed.append(Failure(number, "overlaps", what, "make one block of the two"))
        elif answer.reason == "not found":
            later.append((part, answer))
        else:
            failed.append(answer)
    taken.sort(key=lambda pair: pair[0].first)
    applied = [_applied(part, place) for place, part in taken]
    result = _spliced(lines, taken)
    hay = Hay(result)
    for part, failure in later:
        place = find_equal(hay, part.old, near=part.near) if taken else None
        if isinstance(place, Place):
            applied.append(_applied(part, place))
            result = _spliced(result, [(place, part)])
            hay = Hay(result)
        else:
            failed.append(failure)
    applied.sort(key=lambda each: each.part)
    failed.sort(key=lambda each: each.part)
    return Edited(join_lines(result, ended), tuple(applied), tuple(failed))


def _look(hay: Hay, number: int, block: Block, threshold: float) -> tuple[_Part, Place | Failure]:
    """Where a block belongs, or why nowhere; as it was written first, then without line numbers and blank edges."""
    near = block.start_line - 1 if block.start_line else None
    part = _Part(number, block.old, block.new, near)
    if not any(block.old):
        if not hay.lines:
            return part, Place(0, 0, "exact", 1.0, ())
        failure = Failure(number, "empty", f"block {number}: the search is empty", "add lines with insert_content")
        return part, failure
    if block.old == block.new:
        return part, Failure(number, "no change", f"block {number}: old and new lines are the same")
    first: NotFound | None = None
    for variant in _variants(part):
        found = find(hay, variant.old, near=variant.near, threshold=threshold)
        match found:
            case Place():
                return variant, found
            case Ambiguous():
                return variant, explain.ambiguous(number, found, _MORE)
            case NotFound():
                better = first is None or _likeness(found) > _likeness(first)
                first, part = (found, variant) if better else (first, part)
    assert first is not None
    return part, explain.not_found(number, first, hay, part.old, part.new, threshold)


def _likeness(found: NotFound) -> float:
    return found.closest.similarity if found.closest else 0.0


def _variants(part: _Part) -> list[_Part]:
    variants = [part]
    numbers = [found[1] for each in part.old if (found := _NUMBER.match(each))]
    if numbers:  # copied from read_file, numbers and all
        near = int(numbers[0]) - 1 if part.near is None else part.near
        old = tuple(_NUMBER.sub("", each) for each in part.old)
        numbered = all(_NUMBER.match(each) for each in part.new if each.strip())
        new = tuple(_NUMBER.sub("", each) for each in part.new) if numbered else part.new
        variants.append(_Part(part.number, old, new, near))
    return variants


def _share(one: Place, other: Place) -> bool:
    return one.first < other.end and other.first < one.end


def _applied(part: _Part, place: Place) -> Applied:
    return Applied(part.number, place.first + 1, place.end, place.rung, place.similarity)


def _spliced(lines: list[str], taken: list[tuple[Place, _Part]]) -> list[str]:
    result: list[str] = []
    done = 0
    for place, part in taken:
        result += lines[done : place.first]
        result += new_lines(lines, place, part.old, part.new)
        done = place.end
    return result + lines[done:]
