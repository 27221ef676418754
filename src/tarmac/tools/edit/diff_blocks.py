r"""Parse and apply SEARCH/REPLACE blocks, the diff format of Roo-Code and Cline.

    <<<<<<< SEARCH
    :start_line:12          optional: where the old lines are, may be a little wrong
    -------
    old lines
    =======
    new lines
    >>>>>>> REPLACE

Text around the blocks is ignored. A line of the file that looks like a mark is written with `\\` before it.
Models miscount the characters of a mark, so 5 to 9 are accepted. So are the marks of Cline, `------- SEARCH` and
`+++++++ REPLACE`.

Each block is looked for in the text as it was, and no two may share a line. A block that is not found there is looked
for once more in the result, because it may build on another one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tarmac.errors import EditFailed
from tarmac.tools.edit.content_checks import WRITE_ALL, refuse_omissions
from tarmac.tools.edit.locate import THRESHOLD, Ambiguous, Haystack, Location, NotFound, find, find_equal
from tarmac.tools.edit.splice import (
    SAME,
    Edited,
    FailedPart,
    Insert,
    ambiguous,
    broken_by,
    not_found,
    repaired,
    spliced,
)
from tarmac.tools.edit.text_file import join_lines, split_lines

_OPENING = re.compile(r"([<-])\1{4,8} ?SEARCH>?")
_CLOSING = re.compile(r"([>+])\1{4,8} ?REPLACE")
_DIVIDER = re.compile(r"={5,9}")
_MARK = re.compile(r"^(\s*\\*)\\(?=<{7}|={7}\s*$|>{7}|-{7}\s*$|:start_line:|:end_line:)")
_MISCOUNTED = re.compile(r"^(\s*\\*)\\(?=[<>]{5,9} (?:SEARCH|REPLACE)|={5,9}\s*$|-{5,9} SEARCH|\+{5,9} REPLACE)")
_LINE = re.compile(r":(start|end)_line:\s*(\d*)")
_SHAPE = "<<<<<<< SEARCH / :start_line:N / ------- / old lines / ======= / new lines / >>>>>>> REPLACE"
_USUAL = 7


@dataclass(frozen=True, slots=True)
class Block:
    """Old lines, and the new lines that replace them."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    start_line: int | None = None  # counted from 1


def parse_blocks(diff: str, text: str = "") -> list[Block]:
    """The blocks of a diff for a file with this text; EditFailed says which line is wrong."""
    lines = diff.replace("\r\n", "\n").split("\n")
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if _OPENING.fullmatch(line):
            block, at = _block(lines, at, text)
            blocks.append(block)
        elif line == "=======" or _CLOSING.fullmatch(line) or line.startswith((">>>>>>>", "<<<<<<<")):
            raise _wrong(at, line, "<<<<<<< SEARCH")
        else:
            at += 1
    if not blocks:
        raise EditFailed("the diff has no SEARCH/REPLACE block", hint=f"each block is: {_SHAPE}")
    return blocks


def _block(lines: Sequence[str], start: int, text: str) -> tuple[Block, int]:
    """The block that begins at line `start`, and the line after it."""
    divider = _divider(lines, start)
    near, at = _header(lines, start + 1)
    old: list[str] = []
    while at < len(lines) and (line := lines[at].strip()) != divider:
        if _is_mark(line):
            raise _wrong(at, line, "=======")
        old.append(_unescaped(lines[at], divider))
        at += 1
    if at == len(lines):
        raise _missing("=======")
    at += 1
    doubled = at < len(lines) and lines[at].strip() == divider
    if doubled:
        if any(each.strip() == divider for each in text.split("\n")):
            raise _wrong(at, divider, ">>>>>>> REPLACE")  # it may be a line of the file
        at += 1
    new: list[str] = []
    while at < len(lines) and not _CLOSING.fullmatch(line := lines[at].strip()):
        if line == divider or _is_mark(line):
            raise _wrong(at, line, ">>>>>>> REPLACE")
        if _LINE.match(line):
            raise EditFailed(
                f"line {at + 1} of the diff: {line!r} is in a REPLACE section",
                hint=":start_line: belongs right after <<<<<<< SEARCH; put \\ before it if it is content",
            )
        new.append(_unescaped(lines[at], divider))
        at += 1
    if at == len(lines):
        raise _missing(">>>>>>> REPLACE")
    if doubled and not any(new):
        raise _wrong(at, lines[at].strip(), "new lines after the doubled divider")
    return Block(tuple(old), tuple(new), near), at + 1


def _divider(lines: Sequence[str], start: int) -> str:
    """The divider of the block: `=======`, or another length if the model miscounted."""
    opening = _width(lines[start])
    end = next((at for at in range(start + 1, len(lines)) if _CLOSING.fullmatch(lines[at].strip())), len(lines))
    closing = _width(lines[end]) if end < len(lines) else opening
    found = {line for each in lines[start + 1 : end] if _DIVIDER.fullmatch(line := each.strip())}
    usual = "=" * _USUAL
    if usual in found and _USUAL in (opening, closing) and opening == closing:
        return usual
    close = [each for each in found if min(abs(len(each) - opening), abs(len(each) - closing)) <= 1]
    if not close:
        return usual
    if len(found) > 1:
        raise EditFailed(
            f"line {start + 1} of the diff: the block has several lines that may be its divider",
            hint=f"put \\ before those that are content; each block is: {_SHAPE}",
        )
    return close[0]


def _width(mark: str) -> int:
    mark = mark.strip()
    return len(mark) - len(mark.lstrip(mark[0]))


def _header(lines: Sequence[str], at: int) -> tuple[int | None, int]:
    """The line number that the model gave, and where the old lines begin."""
    near: int | None = None
    while at < len(lines):
        line = lines[at].strip()
        if found := _LINE.fullmatch(line):
            near = int(found[2]) if found[1] == "start" and found[2] else near
        else:
            return near, at + (line == "-------")
        at += 1
    return near, at


def _is_mark(line: str) -> bool:
    return line.startswith((">>>>>>>", "<<<<<<<")) or bool(_OPENING.fullmatch(line) or _CLOSING.fullmatch(line))


def _unescaped(line: str, divider: str) -> str:
    pattern = _MARK if len(divider) == _USUAL else _MISCOUNTED
    return pattern.sub(r"\1", line)


def _missing(mark: str) -> EditFailed:
    return EditFailed(f"the diff ends without {mark!r}", hint=f"each block is: {_SHAPE}")


def _wrong(at: int, line: str, expected: str) -> EditFailed:
    return EditFailed(
        f"line {at + 1} of the diff: {line!r} where {expected!r} was expected",
        hint=f"if it is content of the file, put \\ before it; each block is: {_SHAPE}",
    )


# Apply

_NUMBER = re.compile(r"^\s*(\d+)\s?\|(?: |$)")
_MORE = "give :start_line:, or more lines around it"


@dataclass(frozen=True, slots=True)
class _DiffPart:
    """A block with its number in the diff."""

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
        return Edited(text, failed=(FailedPart(0, "malformed", error.what, error.hint),))
    lines, ended = split_lines(text)
    hay = Haystack(lines)
    inserts: list[Insert] = []
    later: list[tuple[_DiffPart, FailedPart]] = []
    failed: list[FailedPart] = []
    for number, block in enumerate(blocks, 1):
        part, answer = _look(hay, number, block, threshold)
        if isinstance(answer, Location) and (why := _left_out(part, text)):
            failed.append(why)
        elif isinstance(answer, Location):
            other = next((each for each in inserts if _share(each.place, answer)), None)
            if other is None:
                inserts.append(Insert(part.number, answer, part.old, part.new))
            else:
                what = f"block {number}: its lines are those of block {other.part}; nothing was changed for it"
                failed.append(FailedPart(number, "overlaps", what, "make one block of the two"))
        elif answer.reason == "not found":
            later.append((part, answer))
        else:
            failed.append(answer)
    inserts, broken = repaired(lines, inserts, lambda result: broken_by(text, join_lines(result, ended), path))
    failed += broken
    applied = [each.applied for each in inserts]
    result = spliced(lines, inserts)
    hay = Haystack(result)
    for part, failure in later:
        place = find_equal(hay, part.old, near=part.near) if inserts else None
        if not isinstance(place, Location):
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
        hay = Haystack(result)
    applied.sort(key=lambda each: each.part)
    failed.sort(key=lambda each: each.part)
    return Edited(join_lines(result, ended), tuple(applied), tuple(failed))


def _left_out(part: _DiffPart, text: str) -> FailedPart | None:
    """Refuse a block whose new lines have a placeholder for old ones."""
    shorter = sum(map(bool, map(str.strip, part.new))) < sum(map(bool, map(str.strip, part.old)))
    why = refuse_omissions("\n".join(part.new), text, shorter=shorter)
    return FailedPart(part.number, "placeholder", f"block {part.number}: {why}", WRITE_ALL) if why else None


def _look(hay: Haystack, number: int, block: Block, threshold: float) -> tuple[_DiffPart, Location | FailedPart]:
    """Where a block belongs, or why it could not be found."""
    near = block.start_line - 1 if block.start_line else None
    part = _DiffPart(number, block.old, block.new, near)
    if not any(block.old):
        if not hay.lines:
            return part, Location(0, 0, "exact", 1.0, ())
        failure = FailedPart(number, "empty", f"block {number}: the search is empty", "add lines with insert_content")
        return part, failure
    if block.old == block.new:
        return part, FailedPart(number, "no change", f"block {number}: old and new lines are the same", SAME)
    first: NotFound | None = None
    for variant in _variants(part):
        found = find(hay, variant.old, near=variant.near, threshold=threshold)
        match found:
            case Location():
                return variant, found
            case Ambiguous():
                return variant, ambiguous(number, found, _MORE)
            case NotFound():
                better = first is None or _likeness(found) > _likeness(first)
                first, part = (found, variant) if better else (first, part)
    assert first is not None
    return part, not_found(number, first, hay, part.old, part.new, threshold)


def _likeness(found: NotFound) -> float:
    return found.closest.similarity if found.closest else 0.0


def _variants(part: _DiffPart) -> list[_DiffPart]:
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


def _share(one: Location, other: Location) -> bool:
    return one.first < other.end and other.first < one.end
