"""apply_diff, insert_content and search_and_replace as tools: parts of one file."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import BadArguments, TarmacError, ToolFailed
from tarmac.tools import change
from tarmac.tools.change import Change, Original
from tarmac.tools.edit import Edited, Failure, apply_diff, decode, insert_content, search_and_replace
from tarmac.tools.tool import Bench, Group, Ready, Tool

Line = Annotated[int, Meta(ge=1)]
_PATH = "The file, relative to the workspace."
_FILE = re.compile(r"<file>(.*?)</file>", re.DOTALL)
_IN_FILE = re.compile(r"<path>(.*?)</path>(.*)", re.DOTALL)
_CONTENT = re.compile(r"<content>\n?(.*?)\s*</content>", re.DOTALL)
_START = re.compile(r"<start_line>\s*(\d+)\s*</start_line>")
_SEARCH = "<<<<<<< SEARCH\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyDiff(Tool):
    name: ClassVar[str] = "apply_diff"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = (
        "Change parts of a file with SEARCH/REPLACE blocks. Each block is:\n"
        "<<<<<<< SEARCH\n:start_line:12\n-------\nlines as they are now\n=======\nlines as they shall be\n"
        ">>>>>>> REPLACE\n"
        "The lines to search for must be those of the file, white space and all, and belong to one place; :start_line: "
        "says near which line. Put all changes to a file into one call. If unsure of the file's lines, read it first."
    )
    spellings: ClassVar[Mapping[str, str]] = {"file_path": "path"}

    path: Annotated[str, Meta(min_length=1, description=_PATH)]
    diff: Annotated[str, Meta(min_length=1, description="One or more SEARCH/REPLACE blocks.")]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """The nested `args` of XML calls, as path and diff; `start_line` beside a diff goes into it."""
        args = arguments.pop("args", None)
        if isinstance(args, str):
            files = _FILE.findall(args)
            if len(files) != 1:
                raise BadArguments(f"apply_diff: `args` must have one <file>, not {len(files)}. Make a call for each.")
            if found := _IN_FILE.search(files[0]):
                start = _START.search(_CONTENT.sub("", found[2]))
                diff = "\n".join(_CONTENT.findall(found[2])) or found[2]
                diff = diff.strip().removeprefix("<![CDATA[").removesuffix("]]>")
                arguments = {"path": found[1].strip(), "diff": diff, "start_line": start[1] if start else None}
        elif isinstance(args, dict):
            file = args.get("file", args)
            diff = file.get("diff") if isinstance(file, dict) else None
            if isinstance(file, list) or not isinstance(file, dict):
                raise BadArguments("apply_diff: `args` must have one file. Make a call for each.")
            inner = diff if isinstance(diff, dict) else {"content": diff}
            arguments = {"path": file.get("path"), "diff": inner.get("content"), "start_line": inner.get("start_line")}
        start_line = arguments.pop("start_line", None)
        diff = arguments.get("diff")
        if start_line and isinstance(diff, str) and diff.count(_SEARCH) == 1 and ":start_line:" not in diff:
            arguments["diff"] = diff.replace(_SEARCH, f"{_SEARCH}:start_line:{start_line}\n-------\n")
        return arguments

    async def prepare(self, bench: Bench) -> Ready:
        threshold = bench.settings.fuzzy_threshold
        return await _edit(bench, self.path, lambda text: apply_diff(text, self.diff, threshold=threshold))


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertContent(Tool):
    name: ClassVar[str] = "insert_content"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = "Add new lines to a file, before a line of it or at its end; nothing else changes."
    spellings: ClassVar[Mapping[str, str]] = {"file_path": "path", "line_number": "line"}

    path: Annotated[str, Meta(min_length=1, description=_PATH)]
    line: Annotated[int, Meta(ge=0, description="The line, from 1, before which they go; 0: at the end.")]
    content: Annotated[str, Meta(description="The new lines.")]

    async def prepare(self, bench: Bench) -> Ready:
        return await _edit(bench, self.path, lambda text: insert_content(text, self.line, self.content))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAndReplace(Tool):
    name: ClassVar[str] = "search_and_replace"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = (
        "Replace every occurrence of a text or a pattern in a file, or in a range of its lines. With use_regex the "
        "search is a regular expression, and $1 or ${name} in the replacement stand for its groups."
    )
    spellings: ClassVar[Mapping[str, str]] = {"file_path": "path", "old_string": "search", "new_string": "replace"}

    path: Annotated[str, Meta(min_length=1, description=_PATH)]
    search: Annotated[str, Meta(min_length=1, description="What to look for.")]
    replace: Annotated[str, Meta(description="What takes its place.")]
    start_line: Annotated[Line | None, Meta(description="The first line to look at.")] = None
    end_line: Annotated[Line | None, Meta(description="The last line to look at.")] = None
    use_regex: Annotated[bool, Meta(description="Whether the search is a regular expression.")] = False
    ignore_case: Annotated[bool, Meta(description="Whether upper and lower case are the same.")] = False

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Every occurrence is replaced anyhow."""
        return {key: value for key, value in arguments.items() if key != "replace_all"}

    async def prepare(self, bench: Bench) -> Ready:
        def replaced(text: str) -> Edited:
            return search_and_replace(
                text,
                self.search,
                self.replace,
                pattern=self.use_regex,
                ignore_case=self.ignore_case,
                start_line=self.start_line,
                end_line=self.end_line,
            )

        return await _edit(bench, self.path, replaced)


async def _edit(bench: Bench, path: str, make: Callable[[str], Edited]) -> Ready:
    original = await change.open_original(bench, path)
    place, before = original.place, original.data or b""

    def made() -> tuple[Edited, bytes]:
        file = decode(before)
        edited = make(file.text)
        return edited, file.with_text(edited.text).encode() if edited.applied else before

    try:
        edited, after = await asyncio.to_thread(made)
        if not edited.applied:
            raise ToolFailed(f"Nothing was changed in {place.name}.\n{_failures(original, edited.failed)}")
    except ToolFailed:
        raise
    except TarmacError as error:
        raise ToolFailed(f"'{place.name}' was not changed: {error.what}", hint=error.hint) from None
    if after == before:
        return change.unchanged(place)
    notes = [f"Changed in {len(edited.applied)} place{'s' * (len(edited.applied) != 1)}."]
    loose = [each for each in edited.applied if each.rung != "exact"]
    notes += [f"Block {each.part} was found at lines {each.first}-{each.last} ({each.rung} match)." for each in loose]
    if edited.failed:
        notes.append(
            f"But not all parts could be applied; read {place.name} again and send the rest anew:\n"
            f"{_failures(original, edited.failed)}"
        )
    return await change.ready(
        bench,
        [Change(place=place, before=before, after=after)],
        title=f"Editing {place.name}",
        done=f"Edited {place.name}",
        notes=notes,
        show_diff=bool(loose),
        partly=bool(edited.failed),
    )


def _failures(original: Original, failed: tuple[Failure, ...]) -> str:
    if original.may_quote:
        return "\n".join(map(str, failed))
    return "\n".join(
        f"block {each.part}: {each.reason} (its lines are not shown: read the file first)" for each in failed
    )
