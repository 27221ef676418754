"""The tool read_file: several files and line ranges in one call, as numbered lines.

Pictures come as pictures, PDF and DOCX as their text, other binary files as a notice. One file that can't be read does
not spoil the others.
"""

import asyncio
import io
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar
from xml.etree import ElementTree

from msgspec import Meta

from tarmac.errors import BadArguments, EditorSilent, FileUnavailable, PlaceFailed, TarmacError
from tarmac.file_system import LOCAL, FileSystem
from tarmac.models.messages import Image, Part, Text
from tarmac.paths import shown
from tarmac.policy import ReadFile as ReadAction
from tarmac.tools import file_access
from tarmac.tools.child_process import running
from tarmac.tools.edit.text_file import decode, is_binary, split_lines
from tarmac.tools.file_access import ResolvedPath, aside
from tarmac.tools.list_files import suggestion
from tarmac.tools.tool import Bench, Done, EditorBuffers, Go, Group, Ready, Seen, Tool, Want

PATIENCE = 30.0
MOST_EXTRACTED = 2_000_000  # characters of a document
_MOST_XML = 32 << 20
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PDF = """
import sys, pypdfium2
document = pypdfium2.PdfDocument(sys.argv[1])
left = int(sys.argv[2])
for number in range(len(document)):
    text = document[number].get_textpage().get_text_range().replace("\\r\\n", "\\n")[:left]
    left -= len(text)
    sys.stdout.buffer.write(f"--- page {number + 1} ---\\n{text}\\n".encode("utf-8", "replace"))
    if left <= 0:
        break
"""


async def pdf_text(path: Path) -> str:
    """The text of a PDF, page by page."""
    argv = [sys.executable, "-I", "-c", _PDF, str(path), str(MOST_EXTRACTED)]
    try:
        async with asyncio.timeout(PATIENCE), running(argv) as process:
            output, errors = await process.communicate()
    except TimeoutError:
        raise FileUnavailable(f"{shown(path)}: its text could not be read in {PATIENCE:g} s") from None
    if process.returncode:
        last = (errors.decode(errors="replace").strip().splitlines() or ["the reader crashed"])[-1]
        raise FileUnavailable(f"{shown(path)} can't be read as a PDF: {last[:200]}")
    return output.decode("utf-8", "replace")


def docx_text(data: bytes) -> str:
    """The paragraphs of a DOCX, one per line. Cells of a table are separated by tabs."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("word/document.xml") as file:
            xml = file.read(_MOST_XML + 1)
        if len(xml) > _MOST_XML or b"<!DOCTYPE" in xml[:4096]:
            raise FileUnavailable("the document is too large, or not what Word writes")
        root = ElementTree.fromstring(xml)
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, NotImplementedError, RuntimeError, EOFError) as error:
        raise FileUnavailable(f"it can't be read as a DOCX: {error}") from None
    return "".join(f"{line}\n" for line in _paragraphs(root))


def _paragraphs(node: ElementTree.Element) -> Iterator[str]:
    for child in node:
        if child.tag == f"{_W}p":
            yield "".join(_runs(child))
        elif child.tag == f"{_W}tr":
            yield "\t".join(" ".join(_paragraphs(cell)) for cell in child.iter(f"{_W}tc"))
        else:
            yield from _paragraphs(child)


def _runs(paragraph: ElementTree.Element) -> Iterator[str]:
    for node in paragraph.iter():
        if node.tag == f"{_W}t":
            yield node.text or ""
        elif node.tag == f"{_W}tab":
            yield "\t"
        elif node.tag in (f"{_W}br", f"{_W}cr"):
            yield "\n"


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
        ranges = [parse_ranges(each.line_ranges) for each in self.files]
        seen = await file_access.looking(bench, _seen, [each.path for each in self.files])
        found = [(place, lines) for (place, _), lines in zip(seen, ranges, strict=True)]
        refused = [why for _, why in seen]
        asked = [number for number, why in enumerate(refused) if not why]
        places = [found[n][0] for n in asked]
        wants = [Want(action=ReadAction(p.full, leads_to=p.path), outside=not p.look.inside) for p in places]

        async def act(go: Go) -> Done:
            denied = {asked[each] for each in go.refused}
            reasons = {n: f"Access denied: {why}" for n, why in enumerate(refused) if why}
            reasons |= dict.fromkeys(denied, "Denied by user")
            return await _read(bench, found, reasons)

        names = ", ".join(place.name for place, _ in found)
        return Ready(title=f"Reading {names}", done=f"Read {names}", wants=tuple(wants), act=act)


def _seen(bench: Bench, names: Sequence[str]) -> list[tuple[ResolvedPath, str]]:
    """Each path, and why it may never be read."""
    places = [file_access.find(bench, each) for each in names]
    return [(place, file_access.refusal(bench, place)) for place in places]


def _unmoved(bench: Bench, places: Sequence[ResolvedPath]) -> list[Path]:
    return [file_access.unmoved(bench, each).path for each in places]


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
    notice: str = ""
    error: str = ""
    missing: bool = False  # there is no such file
    data: bytes | None = None  # the content on disk, which an edit will expect


async def _read(
    bench: Bench, found: list[tuple[ResolvedPath, tuple[tuple[int, int], ...]]], reasons: Mapping[int, str]
) -> Done:
    asked = [each for number, each in enumerate(found) if number not in reasons]
    now = await file_access.looking(bench, _unmoved, [place for place, _ in asked])
    wanted = [RequestedFile(there, ranges, place.name) for there, (place, ranges) in zip(now, asked, strict=True)]
    texts = iter(await read_files(wanted, bench.buffers, bench.files.system))
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
            near = await file_access.beside(bench, suggestion, place)
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


async def read_files(
    files: Sequence[RequestedFile], editor: EditorBuffers | None = None, system: FileSystem = LOCAL
) -> list[FileText]:
    """Read all of `files`, in order."""
    return list(await asyncio.gather(*(read_file(each, editor, system) for each in files)))


async def read_file(wanted: RequestedFile, editor: EditorBuffers | None = None, system: FileSystem = LOCAL) -> FileText:
    """Read one file. Any problem is in `error`. If an editor has unsaved changes, its text is read."""
    name = wanted.shown_as or str(wanted.path)
    try:
        data = await asyncio.to_thread(system.read, wanted.path)
        if data is None:
            return FileText(name, error="File not found", missing=True)
        text, notice = await _text(wanted.path, data, system)
        try:
            if editor is not None and (theirs := await unsaved_text(editor, wanted.path, data)) is not None:
                text, notice = theirs, NOT_SAVED
        except EditorSilent as silent:
            notice = "; ".join(filter(None, (notice, f"as it is on disk: {silent.what}")))
    except PlaceFailed:
        raise
    except TarmacError as error:
        return FileText(name, error=str(error))
    if text is None:
        return FileText(name, notice=BINARY, data=data)
    return await aside(len(data), _numbered, name, text, wanted.ranges, notice, data)


async def unsaved_text(editor: EditorBuffers, path: Path, data: bytes) -> str | None:
    """The text that an editor has for a file, if it differs from the saved one. Only UTF-8 files are compared."""
    if is_binary(data) or data.startswith((b"%PDF-", b"PK\x03\x04")):
        return None
    file = await aside(len(data), decode, data)
    return await editor.unsaved(path, file.text) if file.encoding == "utf-8" and not file.stray_bytes else None


async def _text(path: Path, data: bytes, system: FileSystem) -> tuple[str | None, str]:
    """The text of a file and a notice about it; None for a binary file."""
    if data.startswith(b"%PDF-"):
        if not system.place:
            return await pdf_text(path), "text extracted from a PDF"
        with tempfile.NamedTemporaryFile(prefix="tarmac-", suffix=".pdf") as copy:
            await asyncio.to_thread(copy.write, data)
            copy.flush()
            return await pdf_text(Path(copy.name)), "text extracted from a PDF"
    if data.startswith(b"PK\x03\x04") and path.suffix.lower() == ".docx":
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
    return FileText(name, tuple(parts), "; ".join(notices), data=data)


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
