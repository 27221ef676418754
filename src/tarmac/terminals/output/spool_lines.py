"""What a spool holds, by line and by search: what was dropped is a line end, and a line may be of any length."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tarmac.errors import BadRequest

BLOCK = 64 << 10  # how much is looked at in one go
SEAM = 4 << 10  # the longest match that is sure to be found where a very long line is cut into windows

_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rb"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS and the other strings
    rb"|[ -/]*[0-~])"  # the short ones
)


class Kept(Protocol):
    """Bytes by offset, as a spool has them."""

    end: int

    @property
    def start(self) -> int: ...
    def read(self, offset: int, size: int) -> tuple[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines, without their line ends."""

    first: int  # the number of lines[0], from 1
    lines: tuple[bytes, ...]
    total: int  # lines in the spool, an unfinished last one included
    cut: bool  # the range held more bytes than were asked for; the last line here may be a part


@dataclass(frozen=True, slots=True)
class Match:
    """A line that matched, as it was printed; of a very long one the window of 64 KiB or so that matched."""

    line_number: int
    line: bytes
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]


def lines_of(spool: Kept, first: int, last: int = -1, *, most: int = 256 << 10) -> Lines:
    """Lines `first` to `last`, both included, in at most `most` bytes; -1 is the last line, -2 the one before.

    Numbers count from the oldest line kept, which is a part of a line when `start` > 0. A hole ends a line.
    """
    if first == 0 or last == 0:
        raise BadRequest("there is no line 0", hint="lines count from 1, or from the end with -1")
    end = spool.end
    total, tail = 0, b"\n"
    for block in _blocks(spool, end):
        total += block.count(b"\n")
        tail = block[-1:]
    total += tail != b"\n"
    first = first if first > 0 else max(1, total + 1 + first)
    last = min(total, last if last > 0 else total + 1 + last)
    wanted = last - first + 1
    if wanted <= 0:
        return Lines(first, (), total, cut=False)
    text, complete = b"", 0
    for block in _from_line(spool, first, end):
        text += block
        complete += block.count(b"\n")
        if complete >= wanted or len(text) > most:
            break
    text = b"\n".join(text.split(b"\n", wanted)[:wanted])
    found = tuple(line.rstrip(b"\r") for line in text[:most].split(b"\n"))
    return Lines(first, found, total, cut=len(text) > most)


def search_in(spool: Kept, pattern: str | re.Pattern[bytes], *, limit: int = 100, context: int = 0) -> list[Match]:
    """The first `limit` lines that match, each with `context` lines around it; escape sequences do not count.

    Line numbers are those of lines(). A line longer than 64 KiB is searched in windows that overlap by
    4 KiB: a longer match than that may be missed there.
    """
    regex = _compiled(pattern)
    matches: list[tuple[int, bytes, tuple[bytes, ...], list[bytes]]] = []
    before: deque[bytes] = deque(maxlen=max(0, context))
    number, shown, begins = 1, b"", True  # of the line at hand: its number, what to show of it, is this its start
    hit = False
    for window, ends in _windows(spool):
        if begins:
            shown, hit = window, False
        if not hit and len(matches) < limit and _matches(regex, window, begins=begins, ends=ends):
            shown, hit = window, True
        begins = ends
        if not ends:
            continue
        for at, _, _, after in reversed(matches):
            if number - at > context:
                break
            after.append(shown)
        if hit:
            matches.append((number, shown, tuple(before), []))
        before.append(shown)
        if len(matches) >= limit and (not matches or number - matches[-1][0] >= context):
            break
        number += 1
    return [Match(number, line, around, tuple(after)) for number, line, around, after in matches]


def _blocks(spool: Kept, end: int) -> Iterator[bytes]:
    """All that is kept up to `end`, in pieces; a hole is a line end, lest two halves pass for one line."""
    here, tail = spool.start, b"\n"
    while here < end:
        at, block = spool.read(here, min(BLOCK, end - here))
        block = block[: max(0, end - at)]
        if not block:
            return
        if at > here and tail != b"\n":
            yield b"\n"
        yield block
        here, tail = at + len(block), block[-1:]


def _from_line(spool: Kept, number: int, end: int) -> Iterator[bytes]:
    """As _blocks(), from the start of a line."""
    skip = number - 1
    for block in _blocks(spool, end):
        if (found := block.count(b"\n")) < skip:
            skip -= found
            continue
        yield block.split(b"\n", skip)[skip] if skip else block
        skip = 0


def _windows(spool: Kept) -> Iterator[tuple[bytes, bool]]:
    """Line by line, a very long one in overlapping windows; True with the last (mostly: only) window of a line."""
    rest = b""
    for block in _blocks(spool, spool.end):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r"), True
        if len(rest) >= BLOCK:
            yield rest, False
            rest = rest[-SEAM:]
    if rest:
        yield rest.rstrip(b"\r"), True


def _matches(regex: re.Pattern[bytes], window: bytes, *, begins: bool, ends: bool) -> bool:
    """Whether it matches, `^` only where the line begins and `$` only where it ends."""
    text = _ESCAPE.sub(b"", window) if b"\x1b" in window else window
    first = 0 if begins else 1  # re takes `^` for the start of the text, not for where we ask it to start
    # A byte no pattern asks for stands for the rest of the line.
    return regex.search(text if ends else text + b"\0", first) is not None


def _compiled(pattern: str | re.Pattern[bytes]) -> re.Pattern[bytes]:
    if not isinstance(pattern, str):
        return pattern  # or what searches like one
    try:
        return re.compile(pattern.encode("utf-8", "surrogateescape"))
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise BadRequest(
            f"{pattern[:80]!a} is no regular expression: {error}", hint="escape what is meant literally: `\\(`"
        ) from None
