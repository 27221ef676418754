"""Apply SEARCH/REPLACE blocks to a text.

Each block is looked for in the text as it was, and no two may share a line. A block that is not found there is looked
for once more in the result, because it may build on another one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tarmac.errors import EditFailed
from tarmac.tools.edit import explain
from tarmac.tools.edit.blocks import Block, parse_blocks
from tarmac.tools.edit.content_checks import WRITE_ALL, refuse_omissions
from tarmac.tools.edit.edit_result import Edited, Failure
from tarmac.tools.edit.hay import Hay
from tarmac.tools.edit.indentation import broken_by
from tarmac.tools.edit.lines import join_lines, split_lines
from tarmac.tools.edit.locate import THRESHOLD, Ambiguous, NotFound, Place, find, find_equal
from tarmac.tools.edit.splice import Insert, repaired, spliced

_NUMBER = re.compile(r"^\s*(\d+)\s?\|(?: |$)")
_MORE = "give :start_line:, or more lines around it"


@dataclass(frozen=True, slots=True)
class _Part:
    """A block with its number, ready to be looked for."""

    number: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    near: int | None


def apply_diff(text: str, diff: str | Sequence[Block], *, threshold: float = THRESHOLD, path: str = "") -> Edited:
    """The text after the blocks of `diff`. Blocks that fit are applied even if others fail, as models expect.

    `path` says what language it is: Python whose indentation would break is not written.
    """
    try:
        blocks = parse_blocks(diff, text) if isinstance(diff, str) else list(diff)
    except EditFailed as error:
        return Edited(text, failed=(Failure(0, "malformed", error.what, error.hint),))
    lines, ended = split_lines(text)
    hay = Hay(lines)
    inserts: list[Insert] = []
    later: list[tuple[_Part, Failure]] = []
    failed: list[Failure] = []
    for number, block in enumerate(blocks, 1):
        part, answer = _look(hay, number, block, threshold)
        if isinstance(answer, Place) and (why := _left_out(part, text)):
            failed.append(why)
        elif isinstance(answer, Place):
            other = next((each for each in inserts if _share(each.place, answer)), None)
            if other is None:
                inserts.append(Insert(part.number, answer, part.old, part.new))
            else:
                what = f"block {number}: its lines are those of block {other.part}; nothing was changed for it"
                failed.append(Failure(number, "overlaps", what, "make one block of the two"))
        elif answer.reason == "not found":
            later.append((part, answer))
        else:
            failed.append(answer)
    inserts, broken = repaired(lines, inserts, lambda result: broken_by(text, join_lines(result, ended), path))
    failed += broken
    applied = [each.applied for each in inserts]
    result = spliced(lines, inserts)
    hay = Hay(result)
    for part, failure in later:
        place = find_equal(hay, part.old, near=part.near) if inserts else None
        if not isinstance(place, Place):
            failed.append(failure)
            continue
        if why := _left_out(part, text):
            failed.append(why)
            continue
        before = join_lines(result, ended)
        insert, broken = repaired(
            result,
            [Insert(part.number, place, part.old, part.new)],
            lambda lines, before=before: broken_by(before, join_lines(lines, ended), path),  # type: ignore[misc]
        )
        failed += broken
        applied += [each.applied for each in insert]
        result = spliced(result, insert)
        hay = Hay(result)
    applied.sort(key=lambda each: each.part)
    failed.sort(key=lambda each: each.part)
    return Edited(join_lines(result, ended), tuple(applied), tuple(failed))


def _left_out(part: _Part, text: str) -> Failure | None:
    """Refuse a block whose new lines have a placeholder for old ones."""
    shorter = sum(map(bool, map(str.strip, part.new))) < sum(map(bool, map(str.strip, part.old)))
    why = refuse_omissions("\n".join(part.new), text, shorter=shorter)
    return Failure(part.number, "placeholder", f"block {part.number}: {why}", WRITE_ALL) if why else None


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
    """The block as it is, and without line numbers if it was copied from read_file with them."""
    variants = [part]
    numbers = [found[1] for each in part.old if (found := _NUMBER.match(each))]
    if numbers:
        near = int(numbers[0]) - 1 if part.near is None else part.near
        old = tuple(_NUMBER.sub("", each) for each in part.old)
        numbered = all(_NUMBER.match(each) for each in part.new if each.strip())
        new = tuple(_NUMBER.sub("", each) for each in part.new) if numbered else part.new
        variants.append(replace(part, old=old, new=new, near=near))
    return variants


def _share(one: Place, other: Place) -> bool:
    return one.first < other.end and other.first < one.end
