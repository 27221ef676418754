"""read_file as a tool: several files and ranges a call, pictures as pictures; one bad file spoils no other."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import BadArguments
from tarmac.models.messages import Image, Part, Text
from tarmac.policy import ReadFile as ReadAction
from tarmac.tools import file_access
from tarmac.tools.aside import aside
from tarmac.tools.file_access import Place
from tarmac.tools.images import media_type
from tarmac.tools.reading import BINARY, FileText, Wanted, as_xml, read_files
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Seen, Tool, Want

_RANGE = re.compile(r"\s*(\d+)\s*[-:,]\s*(\d+|end|\$)?\s*")
_FILE = re.compile(r"<file>(.*?)</file>", re.DOTALL)
_PATH = re.compile(r"<path>(.*?)</path>", re.DOTALL)
_LINES = re.compile(r"<line_range>(.*?)</line_range>", re.DOTALL)
_LAST = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWanted:
    """A file, whole or in parts."""

    path: Annotated[str, Meta(min_length=1, description="The file, relative to the workspace.")]
    line_ranges: Annotated[
        tuple[str, ...], Meta(description="Parts of it as `first-last`, from 1, both included. None: all of it.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile(Tool):
    name: ClassVar[str] = "read_file"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Read one or more files, at most five a call. Text comes with line numbers (`12 | text`), of PDF and DOCX "
        "files their text, pictures as pictures. Read files that belong together in one call; give ranges for parts "
        "of long ones."
    )

    files: Annotated[tuple[FileWanted, ...], Meta(min_length=1, description="The files to read.")]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """One file by `path`, and the nested `args` of XML calls, as a list of files."""
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


async def _read(
    bench: Bench, found: list[tuple[Place, tuple[tuple[int, int], ...]]], reasons: Mapping[int, str]
) -> Done:
    wanted = [
        Wanted(file_access.unmoved(bench, place).path, ranges, place.name)
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
            near = await asyncio.to_thread(file_access.suggestion, bench, place)
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
    """The file as a picture, if there is room for it."""
    data = file.data or b""
    size = f"{kind.partition('/')[2].upper()} image, {len(data):,} bytes"
    if len(data) > min(bench.settings.largest_image, room):
        return replace(file, notice=f"{size}: too large to be shown"), room
    images.append(Image(bench.store(data, kind)))
    return replace(file, notice=f"{size}, shown as picture {len(images)} of this result"), room - len(data)


def parse_ranges(ranges: tuple[str, ...], *, tool: str = "read_file") -> tuple[tuple[int, int], ...]:
    """`("1-20", "40-")` as numbers; BadArguments for what is no range."""
    found: list[tuple[int, int]] = []
    for text in ranges:
        if match := _RANGE.fullmatch(text):
            found.append((int(match[1]), int(match[2]) if (match[2] or "").isdigit() else _LAST))
        elif text.strip().isdigit():
            found.append((int(text), int(text)))
        else:
            raise BadArguments(f"{tool}: '{text[:40]}' is no range of lines: write it as `first-last`, such as 10-40.")
    return tuple(found)


def _one(given: object) -> object:
    """A file in any of the shapes models know, as ours."""
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
