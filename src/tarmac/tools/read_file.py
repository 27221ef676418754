"""The tool read_file: several files and line ranges in one call, as numbered lines.

Pictures come as pictures, PDF and DOCX as their text, other binary files as a notice. One file that can't be read does
not spoil the others.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import BadArguments, EditorSilent, TarmacError
from tarmac.models.messages import Image, Part, Text
from tarmac.policy import ReadFile as ReadAction
from tarmac.tools import file_access
from tarmac.tools.aside import aside
from tarmac.tools.edit.save import read_bytes
from tarmac.tools.edit.text_file import decode, is_binary, split_lines
from tarmac.tools.file_access import ResolvedPath
from tarmac.tools.list_files import suggestion
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Seen, Tool, Unsaved, Want

MOST_LINES = 2000
MOST_CHARACTERS = 100_000
LONGEST_LINE = 2000
NOT_SAVED = "text from the editor, with unsaved changes: the file can't be edited until they are saved"
BINARY = "Binary file - content not displayed"
_RANGE = re.compile(r"\s*(\d+)\s*[-:,]\s*(\d+|end|\$)?\s*")
_FILE = re.compile(r"<file>(.*?)</file>", re.DOTALL)
_PATH = re.compile(r"<path>(.*?)</path>", re.DOTALL)
_LINES = re.compile(r"<line_range>(.*?)</line_range>", re.DOTALL)
_LAST = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWanted:
    """A file, or parts of it."""

    path: Annotated[str, Meta(min_length=1, description="The file.")]
    line_ranges: Annotated[
        tuple[str, ...],
        Meta(description="Parts to read, such as `10-40`. Lines count from 1. Without it, the whole file."),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile(Tool):
    name: ClassVar[str] = "read_file"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Read up to five files. Text has line numbers (`12 | text`). PDF and DOCX files are read as text, pictures are "
        "shown. Read related files in one call. For long files, give line ranges."
    )

    files: Annotated[tuple[FileWanted, ...], Meta(min_length=1, description="The files to read.")]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Accept one file as `path`, and the nested `args` of XML calls."""
        given = arguments.get("args", arguments.get("files"))
        if isinstance(given, str) and "<" in given:
            pieces = _FILE.findall(given) or [given]
            given = [
                {"path": path[1].strip(), "line_range": _LINES.findall(one)}
                for one in pieces
                if (path := _PATH.search(one))
            ]
        if isinstance(given, dict):
            given = given.get("file", given)
            given = given if isinstance(given, list) else [given]
        if given is None and "path" in arguments:
            given = [arguments]
        if isinstance(given, list):
            return {"files": [_one(each) for each in given]}
        return {"files": given} if given is not None else arguments

    async def prepare(self, bench: Bench) -> Ready:
        most = bench.settings.files_per_read
        if len(self.files) > most:
            raise BadArguments(f"read_file: at most {most} files a call, not {len(self.files)}. Ask for the rest next.")
        found = [(file_access.find(bench, each.path), parse_ranges(each.line_ranges)) for each in self.files]
        refused = [file_access.refusal(bench, place) for place, _ in found]
        asked = [number for number, why in enumerate(refused) if not why]
        wants = [Want(action=ReadAction(found[n][0].full), outside=not found[n][0].look.inside) for n in asked]

        async def act(go: Go) -> Done:
            denied = {asked[each] for each in go.refused}
            reasons = {n: f"Access denied: {why}" for n, why in enumerate(refused) if why}
            reasons |= dict.fromkeys(denied, "Denied by user")
            return await _read(bench, found, reasons)

        names = ", ".join(place.name for place, _ in found)
        return Ready(title=f"Reading {names}", done=f"Read {names}", wants=tuple(wants), act=act)


@dataclass(frozen=True, slots=True)
class RequestedFile:
    """A file, and which of its lines to read: (first, last) from 1, both included. None means all."""

    path: Path
    ranges: tuple[tuple[int, int], ...] = ()
    shown_as: str = ""  # the name that the model used


@dataclass(frozen=True, slots=True)
class FileText:
    """The result of reading one file."""

    path: str
    parts: tuple[tuple[int, int, str], ...] = ()  # first and last line, and the numbered lines
    total_lines: int = 0
    notice: str = ""
    error: str = ""
    missing: bool = False  # there is no such file
    data: bytes | None = None  # the content on disk, which an edit will expect


async def _read(
    bench: Bench, found: list[tuple[ResolvedPath, tuple[tuple[int, int], ...]]], reasons: Mapping[int, str]
) -> Done:
    wanted = [
        RequestedFile(file_access.unmoved(bench, place).path, ranges, place.name)
        for number, (place, ranges) in enumerate(found)
        if number not in reasons
    ]
    texts = iter(await read_files(wanted, bench.unsaved))
    files: list[FileText] = []
    seen: list[Seen] = []
    images: list[Part] = []
    room = bench.settings.images_per_read
    for number, (place, _) in enumerate(found):
        if number in reasons:
            files.append(FileText(place.name, error=reasons[number]))
            continue
        file = next(texts)
        if file.missing:
            near = await asyncio.to_thread(suggestion, bench, place)
            file = replace(file, error=f"{file.error}.{near}" if near else file.error)
        if file.data is not None:
            digest = await aside(len(file.data), file_access.digest, file.data)
            seen.append(Seen(path=place.path, digest=digest, how="read"))
            kind = media_type(file.data) if file.notice == BINARY else None
            if kind is not None:
                file, room = _pictured(bench, file, kind, images, room)
        files.append(file)
    failed = all(each.error for each in files)
    return Done(content=(Text(as_xml(files)), *images), outcome="failed" if failed else "done", seen=tuple(seen))


def _pictured(bench: Bench, file: FileText, kind: str, images: list[Part], room: int) -> tuple[FileText, int]:
    """The file as a picture, if it is small enough."""
    data = file.data or b""
    size = f"{kind.partition('/')[2].upper()} image, {len(data):,} bytes"
    if len(data) > min(bench.settings.largest_image, room):
        return replace(file, notice=f"{size}: too large to be shown"), room
    images.append(Image(bench.store(data, kind)))
    return replace(file, notice=f"{size}, shown as picture {len(images)} of this result"), room - len(data)


def parse_ranges(ranges: tuple[str, ...], *, tool: str = "read_file") -> tuple[tuple[int, int], ...]:
    """Parse ranges such as `("1-20", "40-")`; BadArguments if one is not a range."""
    found: list[tuple[int, int]] = []
    for text in ranges:
        if match := _RANGE.fullmatch(text):
            found.append((int(match[1]), int(match[2]) if (match[2] or "").isdigit() else _LAST))
        elif text.strip().isdigit():
            found.append((int(text), int(text)))
        else:
            raise BadArguments(
                f"{tool}: '{text[:40]}' is not a range of lines. Write it as `first-last`, such as 10-40."
            )
    return tuple(found)


def _one(given: object) -> object:
    """Turn a file in any form that models use into ours."""
    if isinstance(given, str):
        return {"path": given}
    if not isinstance(given, dict):
        return given
    rest = dict(given)
    path = rest.pop("path", rest.pop("file_path", None))
    ranges = rest.pop("line_ranges", rest.pop("line_range", rest.pop("lines", ())))
    start, end = rest.pop("start_line", rest.pop("offset", None)), rest.pop("end_line", None)
    limit = rest.pop("limit", None)
    if start is not None or end is not None or limit is not None:
        first = _number(start, 1)
        ranges = [f"{first}-{first + _number(limit, 1) - 1 if limit is not None else end if end is not None else ''}"]
    rest.pop("mode", None)
    made: dict[str, object] = {**rest, "line_ranges": _texts(ranges)}
    return made if path is None else {"path": path, **made}


def _number(value: object, otherwise: int) -> int:
    return int(value) if isinstance(value, int | str) and str(value).strip().isdigit() else otherwise


def _texts(ranges: object) -> object:
    if isinstance(ranges, str):
        return [each for each in re.split(r"[,;\s]+(?=\d)", ranges) if each] if ranges.count("-") > 1 else [ranges]
    if not isinstance(ranges, list | tuple):
        return ranges
    if len(ranges) == 2 and all(isinstance(each, int) for each in ranges):
        ranges = [ranges]
    texts: list[object] = []
    for each in ranges:
        if isinstance(each, list | tuple) and len(each) == 2:
            texts.append(f"{each[0]}-{each[1]}")
        elif isinstance(each, dict):
            texts.append(f"{each.get('start', 1)}-{each.get('end', '')}")
        else:
            texts.append(each)
    return texts


async def read_files(files: Sequence[RequestedFile], unsaved: Unsaved | None = None) -> list[FileText]:
    """Read all of `files`, in order."""
    return list(await asyncio.gather(*(read_file(each, unsaved) for each in files)))


async def read_file(wanted: RequestedFile, unsaved: Unsaved | None = None) -> FileText:
    """Read one file. Any problem is in `error`. If an editor has unsaved changes, its text is read."""
    name = wanted.shown_as or str(wanted.path)
    try:
        data = await asyncio.to_thread(read_bytes, wanted.path)
        if data is None:
            return FileText(name, error="File not found", missing=True)
        text, notice = await _text(wanted.path, data)
        try:
            if unsaved is not None and (theirs := await unsaved_text(unsaved, wanted.path, data)) is not None:
                text, notice = theirs, NOT_SAVED
        except EditorSilent as silent:
            notice = "; ".join(filter(None, (notice, f"as it is on disk: {silent.what}")))
    except TarmacError as error:
        return FileText(name, error=str(error))
    if text is None:
        return FileText(name, notice=BINARY, data=data)
    return await aside(len(data), _numbered, name, text, wanted.ranges, notice, data)


async def unsaved_text(unsaved: Unsaved, path: Path, data: bytes) -> str | None:
    """The text that an editor has for a file, if it differs from the saved one. Only UTF-8 files are compared."""
    if is_binary(data) or data.startswith((b"%PDF-", b"PK\x03\x04")):
        return None
    file = await aside(len(data), decode, data)
    return await unsaved(path, file.text) if file.encoding == "utf-8" and not file.stray_bytes else None


async def _text(path: Path, data: bytes) -> tuple[str | None, str]:
    """The text of a file and a notice about it; None for a binary file."""
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
        notices.append("some bytes are not UTF-8, shown as \ufffd")
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
    """Lines such as `12 | text`, as many as fit. A very long line is cut and marked."""
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
    """The files in the XML form of Roo-Code, which models know."""
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


_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type(data: bytes) -> str | None:
    """The media type of a picture, from its first bytes; None if models do not accept it."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if data.startswith(magic)), None)
