"""Split what comes out of a terminal into output, shell-integration marks and questions to the terminal.

bytes → MarkParser.feed() → [bytes | Mark | Query] …

A mark may be cut anywhere by a read, even inside its escape sequence; feed() holds back at most 4 KiB until it
knows. After that it is output, so a program that prints half a mark cannot silence its terminal.

Ours carry a nonce (`ESC ] 633 ; D ; nonce ; …`). A mark without it proves nothing: it comes as `Mark(trusted=False)`
with its bytes in `raw`, which are output. The nonce itself is blanked wherever else it shows up (`set` prints it).
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

LONGEST = 4096
SHORT = 1024  # bytes of a read that is looked at for our own marks alone

# The sequences somebody here cares about; all others are output and none of our business.
_OSC = rb"\](?:(?P<code>633|133|7|9;9|1337);(?P<text>[^\x07\x1b]*)|(?P<colour>1[0-2];\?|4;\d+;\?))(?:\x07|\x1b\\)"
_CSI = rb"\[(?:[>=?]?\d*c|\??[56]n|\?\d+\$p|>\d*q|\?u|(?:1[3-689]|2[01])t)"
_DCS = rb"P[$+]q[^\x07\x1b]*\x1b\\"
_WHOLE = re.compile(rb"\x1b(?:" + _OSC + rb"|(?P<query>" + _CSI + rb"|" + _DCS + rb"))")
# A beginning of one of them, up to the end of what has been read.
_BEGUN = re.compile(
    rb"\x1b(?:\](?:\d{0,4}|(?:633|133|7|9|1337|1[0-2]|4);[^\x07\x1b]*\x1b?)|\[[>=?]?\d{0,5}\$?|P[$+]?|P[$+]q[^\x07\x1b]*\x1b?)?\Z"
)
_LETTERS = {each.encode(): each for each in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}  # decode() is slower than all the rest
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


class Mark(NamedTuple):
    """A shell-integration sequence. `kind` is 633's letter, or the other code ("133;D", "7", …)."""

    kind: str
    fields: tuple[bytes, ...]
    trusted: bool
    raw: bytes


class Hints(NamedTuple):
    """What a shell without our integration says of itself, over `ssh` for example. Any program can print it."""

    cwd: str = ""
    at_prompt: bool | None = None  # None: it has not said
    exit_code: int | None = None  # of its last command


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the terminal (`ESC [ 6 n`): to be answered (`process/pty.py`), never shown."""

    raw: bytes


Piece = bytes | Mark | Query


def add_hint(hints: Hints, mark: Mark) -> Hints:
    """What is said, with this mark."""
    first = mark.fields[0].decode("utf-8", "replace") if mark.fields else ""
    match mark.kind:
        case "A" | "B" | "133;A" | "133;B":
            return hints._replace(at_prompt=True)
        case "C" | "133;C":
            return hints._replace(at_prompt=False)
        case "D" | "133;D":
            return hints._replace(exit_code=int(first) if first.isascii() and first.isdigit() else None)
        case "P" if first.startswith("Cwd="):
            return hints._replace(cwd=first[4:])
        case "7" if first.startswith("file://"):
            from urllib.parse import unquote  # rarely needed, and slow to import

            return hints._replace(cwd=unquote("/" + first[7:].partition("/")[2]))
        case "9;9":
            return hints._replace(cwd=first.strip('"'))
        case "1337" if first.startswith("CurrentDir="):
            return hints._replace(cwd=first[11:])
    return hints


class MarkParser:
    """Feed it reads; it gives pieces in order. `nonce` must be long enough not to occur by chance."""

    def __init__(self, nonce: bytes) -> None:
        self.nonce = nonce
        self._blank = b"*" * len(nonce)
        # A whole mark of ours, its letter, and its fields if nothing in them is escaped.
        self._ours = re.compile(rb"(\x1b\]633;([A-Z]);" + re.escape(nonce) + rb"(?:;([^\x07\x1b\\]+))?\x07)")
        self._held = b""

    def feed(self, data: bytes) -> list[Piece]:
        if self._held:
            data, self._held = self._held + data, b""
        if b"\x1b" not in data:
            return self._output(data)
        if len(data) <= SHORT and (ours := self._only_ours(data)) is not None:
            return ours
        pieces: list[Piece] = []
        done = 0
        for found in _WHOLE.finditer(data):
            start, end = found.span()
            if start > done:
                pieces.append(self._scrub(data[done:start]))
            pieces.append(self._piece(found))
            done = end
        rest = data[done:] if done else data
        if b"\x1b" not in rest:
            return pieces + self._output(rest) if rest else pieces
        begun = _BEGUN.search(rest, max(0, len(rest) - LONGEST))
        if begun:
            rest, self._held = rest[: begun.start()], begun.group()
        if rest:
            pieces += self._output(rest, more=bool(begun))
        return pieces

    def _only_ours(self, data: bytes) -> list[Piece] | None:
        """The pieces of a short read whose only sequences are whole marks of ours: most have no others.

        It gives what `feed` would give, in a third of its time.
        """
        parts = self._ours.split(data)  # text, mark, letter, fields, text, …
        if not data.count(b"\x1b") == data.count(self.nonce) == len(parts) // 4:
            return None
        rest = iter(parts)
        text = next(rest)
        pieces: list[Piece] = []
        for mark, letter, fields, after in zip(rest, rest, rest, rest, strict=True):
            if text:
                pieces.append(text)
            pieces.append(Mark(_LETTERS[letter], tuple(fields.split(b";")) if fields else (), True, mark))
            text = after
        return pieces + self._output(text) if text else pieces

    def flush(self) -> list[Piece]:
        """What was held back, when nothing more will come."""
        data, self._held = self._held, b""
        return [self._scrub(data)] if data else []

    def _piece(self, found: re.Match[bytes]) -> Piece:
        code, text = found.group(1, 2)
        if code is None:
            return Query(found.group())
        kind, *fields = text.split(b";")
        if code == b"633" and fields and fields[0] == self.nonce:
            del fields[0]
            if b"\\" in text:
                fields = list(map(unescape, fields))
            return Mark(_LETTERS.get(kind, "?"), tuple(fields), True, found.group())
        if code == b"633":
            return Mark(kind.decode("ascii", "replace"), tuple(fields), False, self._scrub(found.group()))
        if code == b"133":
            return Mark("133;" + kind.decode("ascii", "replace"), tuple(fields), False, found.group())
        return Mark(code.decode(), (found.group("text"),), False, found.group())

    def _output(self, data: bytes, *, more: bool = False) -> list[Piece]:
        """Output without the nonce; when a nonce may have begun at the end, that is held back."""
        if not more:
            first = data.rfind(self.nonce[:1], 1 - len(self.nonce))
            if first >= 0 and self.nonce.startswith(data[first:]):
                data, self._held = data[:first], data[first:]
        return [self._scrub(data)] if data else []

    def _scrub(self, data: bytes) -> bytes:
        return data.replace(self.nonce, self._blank) if self.nonce in data else data


def unescape(field: bytes) -> bytes:
    r"""A field of a mark as it was before the shell wrote `\x3b` for `;`."""
    if b"\\" not in field:
        return field
    return _ESCAPED.sub(lambda found: bytes([int(found.group(1), 16)]), field)
