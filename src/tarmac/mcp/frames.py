"""PURE: a stream of bytes into lines, one message each, however it was cut; one that is too long costs itself only."""

from dataclasses import dataclass

LONGEST = 16 << 20  # bytes of one message


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line of more than `LONGEST` bytes; it is gone, the next one is whole."""

    bytes: int


class MessageFrames:
    """Feed it pieces; it gives whole lines, without their ends. Empty lines are none."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._lost = 0  # bytes of the line that is being dropped

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
            self._lost += len(self._held) + len(part)
            self._held.clear()
        else:
            self._held += part

    def _end(self, found: list[bytes | TooLong]) -> None:
        if self._lost:
            found.append(TooLong(self._lost))
        elif self._held.strip():
            found.append(bytes(self._held).removesuffix(b"\r"))
        self._held.clear()
        self._lost = 0
