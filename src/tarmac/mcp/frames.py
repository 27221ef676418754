"""PURE: a stream of bytes into lines, one message each, however it was cut; one that is too long costs itself only."""

import json
import re
from dataclasses import dataclass

LONGEST = 16 << 20  # bytes of one message
_ENDS = 4096  # bytes at each end of a line that is too long: its id is there
_TEXT = rb'"(?:[^"\\]|\\.)*+"'
_SCALAR = rb"(?:" + _TEXT + rb"|-?\d+|true|false|null)"
_ID = rb'"id"\s*:\s*(' + _TEXT + rb"|-?\d{1,18})\s*"
_FIRST = re.compile(rb"\s*\{\s*(?:" + _TEXT + rb"\s*:\s*" + _SCALAR + rb"\s*,\s*)*" + _ID + rb"[,}]")
_LAST = re.compile(rb"[,{]\s*" + _ID + rb"\}\s*$")  # the line's own brace: one of an inner object has another behind it


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line of more than `LONGEST` bytes; it is gone, the next one is whole."""

    bytes: int
    id: str | int | None = None  # if it can be read


class MessageFrames:
    """Feed it pieces; it gives whole lines, without their ends. Empty lines are none."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._lost = 0  # bytes of the line that is being dropped …
        self._first = self._last = b""  # … and its two ends

    def feed(self, piece: bytes) -> list[bytes | TooLong]:
        """The lines that end in this piece."""
        found: list[bytes | TooLong] = []
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._add(part)
            self._end(found)
        self._add(rest)
        return found

    def close(self) -> list[bytes | TooLong]:
        """What came after the last end of line, if it is anything."""
        found: list[bytes | TooLong] = []
        self._end(found)
        return found

    def _add(self, part: bytes) -> None:
        if self._lost or len(self._held) + len(part) > self._longest:
            self._first += bytes(self._held[:_ENDS] + part[:_ENDS])[: _ENDS - len(self._first)]
            self._last = (self._last + self._held[-_ENDS:] + part[-_ENDS:])[-_ENDS:]
            self._lost += len(self._held) + len(part)
            self._held.clear()
        else:
            self._held += part

    def _end(self, found: list[bytes | TooLong]) -> None:
        if self._lost:
            found.append(TooLong(self._lost, id_of(self._first, self._last)))
        elif self._held.strip():
            found.append(bytes(self._held).removesuffix(b"\r"))
        self._held.clear()
        self._lost, self._first, self._last = 0, b"", b""


def id_of(first: bytes, last: bytes) -> str | int | None:
    """The id of a message, by its two ends: before all that is nested, or as its very last field."""
    found = _FIRST.match(first) or _LAST.search(last)
    try:
        id = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return id if isinstance(id, str | int) else None
