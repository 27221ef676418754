"""read_file: files as numbered lines, several ranges each, bounded; one that can't be read does not spoil the others.

Text as it is (edit/text.py), PDF and DOCX as their text, other binary files as a notice. Images come with the loop.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.tools.aside import aside
from tarmac.tools.edit.lines import split_lines
from tarmac.tools.edit.save import read_bytes
from tarmac.tools.edit.text_file import decode, is_binary
from tarmac.tools.tool import Unsaved

MOST_LINES = 2000
MOST_CHARACTERS = 100_000
LONGEST_LINE = 2000
NOT_SAVED = "as it stands in the editor, with changes that are not saved: it can't be edited before they are"
BINARY = "Binary file - content not displayed"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file, and which of its lines: (first, last) from 1, both included; none means all."""

    path: Path
    ranges: tuple[tuple[int, int], ...] = ()
    shown_as: str = ""  # the name the model used


@dataclass(frozen=True, slots=True)
class FileText:
    """What came of reading one file."""

    path: str
    parts: tuple[tuple[int, int, str], ...] = ()  # first and last line, and the numbered lines
    total_lines: int = 0
    notice: str = ""
    error: str = ""
    missing: bool = False  # there is no such file
    data: bytes | None = None  # as it was on disk: what an edit will expect to find


async def read_files(files: Sequence[Wanted], unsaved: Unsaved | None = None) -> list[FileText]:
    """All of `files`, in order."""
    return list(await asyncio.gather(*(read_file(each, unsaved) for each in files)))


async def read_file(wanted: Wanted, unsaved: Unsaved | None = None) -> FileText:
    """One file; whatever is wrong with it is in `error`. Of one that an editor has changed, what the editor has."""
    name = wanted.shown_as or str(wanted.path)
    try:
        data = await asyncio.to_thread(read_bytes, wanted.path)
        if data is None:
            return FileText(name, error="File not found", missing=True)
        text, notice = await _text(wanted.path, data)
        if unsaved is not None and (theirs := await unsaved_text(unsaved, wanted.path, data)) is not None:
            text, notice = theirs, NOT_SAVED
    except TarmacError as error:
        return FileText(name, error=str(error))
    if text is None:
        return FileText(name, notice=BINARY, data=data)
    return await aside(len(data), _numbered, name, text, wanted.ranges, notice, data)


async def unsaved_text(unsaved: Unsaved, path: Path, data: bytes) -> str | None:
    """What an editor holds of a text file, where that is not what is saved; asked only where both mean the same."""
    if is_binary(data) or data.startswith((b"%PDF-", b"PK\x03\x04")):
        return None
    file = await aside(len(data), decode, data)
    return await unsaved(path, file.text) if file.encoding == "utf-8" and not file.stray_bytes else None


async def _text(path: Path, data: bytes) -> tuple[str | None, str]:
    """The text of a file, and what must be said about it; None for a binary one."""
    if data.startswith(b"%PDF-"):
        from tarmac.tools.documents import pdf_text

        return await pdf_text(path), "text extracted from a PDF"
    if data.startswith(b"PK\x03\x04") and path.suffix.lower() == ".docx":
        from tarmac.tools.documents import docx_text

        return await asyncio.to_thread(docx_text, data), "text extracted from a DOCX"
    if is_binary(data):
        return None, ""
    return await aside(len(data), _decoded, data)


def _decoded(data: bytes) -> tuple[str, str]:
    file = decode(data)
    notices = [f"encoding {file.encoding}"] if file.encoding != "utf-8" else []
    if file.stray_bytes:
        notices.append("some bytes are no UTF-8, shown as \ufffd")
    if file.endings is not None:
        notices.append("mixed line endings")
    return file.text, ", ".join(notices)


def _numbered(name: str, text: str, ranges: tuple[tuple[int, int], ...], notice: str, data: bytes) -> FileText:
    lines, _ = split_lines(text)
    total = len(lines)
    if not total:
        return FileText(name, notice="File is empty", data=data)
    notices = [notice] if notice else []
    parts: list[tuple[int, int, str]] = []
    room, characters = MOST_LINES, MOST_CHARACTERS
    for first, last in ranges or ((1, total),):
        first, last = max(1, first), min(last, total)
        if first > last:
            notices.append(f"no lines {first}-{last}: the file has {total}" if first > total else "an empty range")
            continue
        shown = numbered(lines[first - 1 : last], first, most_lines=room, most_characters=characters)
        end = first + len(shown) - 1
        room, characters = room - len(shown), characters - sum(map(len, shown))
        if shown:
            parts.append((first, end, "\n".join(shown)))
        if end < last:
            notices.append(f"showing lines {first}-{end} of {total}; read on with the range {end + 1}-{last}")
            break
    return FileText(name, tuple(parts), total, "; ".join(notices), data=data)


def numbered(lines: Sequence[str], first: int, *, most_lines: int, most_characters: int) -> list[str]:
    """`12 | text`, numbers aligned, as many as there is room for; a very long line is cut, and says so."""
    lines = lines[:most_lines]
    width = len(str(first + len(lines) - 1))
    rows: list[str] = []
    for number, line in enumerate(lines, first):
        if not line.isascii():
            line = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if len(line) > LONGEST_LINE:
            line = f"{line[:LONGEST_LINE]}… ({len(line) - LONGEST_LINE:,} more characters)"
        row = f"{number:{width}} | {line}"
        most_characters -= len(row) + 1
        if most_characters < 0 and rows:
            break
        rows.append(row)
    return rows


def as_xml(files: Sequence[FileText]) -> str:
    """The shape models know from Roo-Code."""
    rows = ["<files>"]
    for file in files:
        rows += ["<file>", f"<path>{file.path}</path>"]
        for first, last, text in file.parts:
            rows += [f'<content lines="{first}-{last}">', text, "</content>"]
        if file.error:
            rows.append(f"<error>{file.error}</error>")
        if file.notice:
            rows.append(f"<notice>{file.notice}</notice>")
        rows.append("</file>")
    return "\n".join([*rows, "</files>"])
