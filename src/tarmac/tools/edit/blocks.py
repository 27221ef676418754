"""Parse SEARCH/REPLACE blocks, the diff format of Roo-Code and Cline.

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
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tarmac.errors import EditFailed

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
    """Old lines and what takes their place."""

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
    """The divider of the block: `=======`, or what stands for it where the model miscounted."""
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
