"""Read and write a text file without changing anything by accident.

`decode(data).encode() == data` for every text file. UTF-8 is tried first, UTF-16 is recognised by its BOM. A file that
is not UTF-8 at all is read as Windows-1252 or Latin-1. A file with a few bytes that are not UTF-8 keeps them as lone
surrogates. Inside, every line ends in LF.
"""

import codecs
import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tarmac.errors import EditFailed

_SNIFF = 8192
_MOST_TO_ALIGN = 4000  # lines that changed in a file of mixed endings; beyond it new lines get the usual ending
_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_STRAY = "surrogateescape"
_STRAYS = re.compile("[\udc80-\udcff]")
_VALID = re.compile("[^\0-\x7f\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text with LF, and what is needed to write it back."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    ending: str = "\n"  # for new lines: the most frequent one of the file
    endings: tuple[str, ...] | None = None  # of each line, if they differ

    @property
    def stray_bytes(self) -> bool:
        """Whether it has bytes that are not UTF-8. They are kept, but can't be shown."""
        return not self.text.isascii() and _STRAYS.search(self.text) is not None

    def encode(self) -> bytes:
        """The bytes to write."""
        if self.endings is not None:
            lines = self.text.split("\n")
            text = "".join(line + end for line, end in zip(lines, (*self.endings, ""), strict=True))
        else:
            text = self.text if self.ending == "\n" else self.text.replace("\n", self.ending)
        try:
            return self.bom + text.encode(self.encoding, _STRAY if self.encoding == "utf-8" else "strict")
        except UnicodeEncodeError as error:
            raise EditFailed(
                f"{text[error.start]!r} can't be written: the file is {self.encoding}",
                hint="write it without that character, or convert the file to UTF-8 first",
            ) from None

    def with_text(self, text: str) -> "TextFile":
        """The file with another text. Lines that stay keep their ending, new ones get that of a neighbour."""
        if "\r\n" not in self.text:  # else a CR is part of the line
            text = text.replace("\r\n", "\n")
        if "\ufffd" in text and text.count("\ufffd") > self.text.count("\ufffd") and self.stray_bytes:
            raise EditFailed(
                "the edit has U+FFFD where the file has bytes that are not UTF-8, and they would be lost",
                hint="leave those lines out of the edit, or convert the file to UTF-8 first",
            )
        if self.endings is None:
            return replace(self, text=text)
        return replace(self, text=text, endings=_carried(self.text.split("\n"), text.split("\n"), self))


def new_text_file(content: str, *, ending: str = "") -> TextFile:
    """A file that does not exist yet, with the line endings of its content, or with `ending`."""
    if ending == "\r\n":
        content = content.replace("\r\n", "\n").replace("\n", "\r\n")
    return _with_endings(content, "utf-8", b"")


def line_ending(text: str) -> str:
    """CRLF if every line of the text ends in it, else LF."""
    count = text.count("\n")
    return "\r\n" if count and text.count("\r\n") == count else "\n"


def is_binary(data: bytes) -> bool:
    """Whether the beginning of a file shows that it is binary."""
    return b"\0" in data[:_SNIFF] and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decode(data: bytes) -> TextFile:
    """The text in `data`; EditFailed if it is binary."""
    if is_binary(data):
        raise EditFailed("it is a binary file", hint="edit it with a command that knows the format")
    bom = next((each for each in _BOMS if data.startswith(each)), b"")
    encoding, text = _decoded(data[len(bom) :], _BOMS.get(bom, "utf-8"))
    return _with_endings(text, encoding, bom)


def _decoded(data: bytes, encoding: str) -> tuple[str, str]:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise EditFailed(f"it begins like {encoding}, but is not", hint="it may be a binary file") from None
    else:
        return encoding, text
    text = data.decode("utf-8", _STRAY)
    if _VALID.search(text):
        return "utf-8", text  # UTF-8 but for some bytes
    for other in ("cp1252", "latin-1"):
        try:
            return other, data.decode(other)
        except UnicodeDecodeError:  # five bytes mean nothing in Windows-1252; Latin-1 knows all 256
            continue
    raise AssertionError("every byte is Latin-1")


def _with_endings(text: str, encoding: str, bom: bytes) -> TextFile:
    windows, all_of_them = text.count("\r\n"), text.count("\n")
    if all_of_them == 0 and "\r" in text:  # as Macs wrote before 2001
        return TextFile(text.replace("\r", "\n"), encoding, bom, "\r")
    if windows == 0:
        return TextFile(text, encoding, bom)
    plain = text.replace("\r\n", "\n")
    if windows == all_of_them:
        return TextFile(plain, encoding, bom, "\r\n")
    pieces = text.split("\n")
    # A line that itself ends in CR before its CRLF keeps that CR: only the one next to LF is the ending's.
    endings = tuple("\r\n" if piece.endswith("\r") else "\n" for piece in pieces[:-1])
    return TextFile(plain, encoding, bom, Counter(endings).most_common(1)[0][0], endings)


def _carried(old: list[str], new: list[str], file: TextFile) -> tuple[str, ...]:
    """The ending of each new line: its old one, or that of the line it replaces or follows."""
    assert file.endings is not None
    endings = (*file.endings, file.ending)  # the last line has none; it may get one now
    head, tail = common_ends(old, new)
    result = list(endings[:head])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(middle_old), len(middle_new)) > _MOST_TO_ALIGN:
        result += [file.ending] * len(middle_new)
    else:
        blocks = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_matching_blocks()
        for here, after in pairwise([difflib.Match(0, 0, 0), *blocks]):
            start, end = here.a + here.size, after.a  # lines that were replaced, by …
            for offset in range(after.b - here.b - here.size):
                at = head + start + offset
                result.append(endings[at] if start + offset < end else result[-1] if result else endings[0])
            result += endings[head + after.a : head + after.a + after.size]
    result += endings[len(old) - tail :] if tail else ()
    return tuple(result[: len(new) - 1])


def split_lines(text: str) -> tuple[list[str], bool]:
    """The lines, and whether the last one ends in a newline (true for an empty text)."""
    lines = text.split("\n")
    return (lines[:-1], True) if lines[-1] == "" else (lines, False)


def join_lines(lines: Sequence[str], ended: bool) -> str:
    """The text from its lines."""
    return "\n".join([*lines, ""] if ended and lines else lines)


def common_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many lines are equal at the start of both, and how many of the rest at the end."""
    most = min(len(one), len(other))
    head = _same(most, lambda start, end: one[start:end] == other[start:end])
    ends = len(one), len(other)
    tail = _same(
        most - head, lambda start, end: one[ends[0] - end : ends[0] - start] == other[ends[1] - end : ends[1] - start]
    )
    return head, tail


def _same(most: int, equal: Callable[[int, int], bool]) -> int:
    """How many lines are equal. Compares large slices first, because line by line is slow in a large file."""
    done, stride = 0, 1 << 14
    while stride and done < most:
        end = min(done + stride, most)
        if equal(done, end):
            done = end
        else:
            stride //= 2
    return done
