"""list_files, search_files and list_code_definition_names as tools: they look, and leave out what is hidden."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.tools import code_definitions, file_access, list_files, search_files
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool

_FOLDER = "The folder, relative to the workspace; `.` is the workspace itself."


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFiles(Tool):
    name: ClassVar[str] = "list_files"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "List what is in a folder, without what git ignores. Names of folders end in `/`; at most 200 names are shown. "
        "Do not use it to check whether a file was written: the result of the edit says so."
    )

    path: Annotated[str, Meta(description=_FOLDER)] = "."
    recursive: Annotated[bool, Meta(description="Whether to go into folders.")] = False

    async def prepare(self, bench: Bench) -> Ready:
        place, want = file_access.to_read(bench, self.path)

        async def act(_: Go) -> Done:
            try:
                found = await list_files.list_files(
                    file_access.unmoved(bench, place).path,
                    recursive=self.recursive,
                    hidden=file_access.hides(bench, contents=False),
                )
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text(str(found))

        return Ready(title=f"Listing {place.name}", done=f"Listed {place.name}", wants=(want,), act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFiles(Tool):
    name: ClassVar[str] = "search_files"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Search the files below a folder for a regular expression (Rust syntax, as ripgrep knows it). Lines that match "
        "are shown with their neighbours; files that git ignores, hidden and binary ones are not searched."
    )
    spellings: ClassVar[Mapping[str, str]] = {"pattern": "regex", "query": "regex", "glob": "file_pattern"}

    regex: Annotated[str, Meta(min_length=1, description="The regular expression.")]
    path: Annotated[str, Meta(description=_FOLDER)] = "."
    file_pattern: Annotated[str, Meta(description="Only files whose names match this glob, such as `*.py`.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        place, want = file_access.to_read(bench, self.path)

        async def act(_: Go) -> Done:
            try:
                found = await search_files.search_files(
                    file_access.unmoved(bench, place).path,
                    self.regex,
                    file_pattern=self.file_pattern,
                    hidden=file_access.hides(bench, contents=True),
                )
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text(str(found))

        shown = self.regex if len(self.regex) <= 60 else self.regex[:59] + "…"
        where = "" if place.name == "." else f" in {place.name}"
        title = f"Searching for {shown!r}{where}"
        return Ready(title=title, done=f"Searched for {shown!r}{where}", wants=(want,), act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCodeDefinitionNames(Tool):
    name: ClassVar[str] = "list_code_definition_names"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "List the classes, functions and types that a source file defines, or the files right inside a folder: an "
        "overview before reading. Known are Python, JavaScript, TypeScript, Go, Rust, Java, C and C++."
    )

    path: Annotated[str, Meta(min_length=1, description="A source file, or a folder of them.")]

    async def prepare(self, bench: Bench) -> Ready:
        place, want = file_access.to_read(bench, self.path)

        async def act(_: Go) -> Done:
            hidden = file_access.hides(bench, contents=True)
            try:
                found = await code_definitions.list_definitions(file_access.unmoved(bench, place).path, hidden=hidden)
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text("\n\n".join(map(str, found)) or "No source code definitions found.")

        title = f"Listing definitions of {place.name}"
        return Ready(title=title, done=f"Listed definitions of {place.name}", wants=(want,), act=act)
