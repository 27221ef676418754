"""write_to_file as a tool: a whole file, new or in place of the old one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.tools import file_change
from tarmac.tools.aside import aside
from tarmac.tools.edit import (
    WRITE_ALL,
    broken_by,
    clean_content,
    decode,
    is_cut_short,
    is_prose,
    new_text_file,
    refuse_omissions,
)
from tarmac.tools.file_change import Change
from tarmac.tools.tool import PATH_SPELLINGS, Bench, Group, Ready, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteToFile(Tool):
    name: ClassVar[str] = "write_to_file"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = (
        "Write a whole file: make a new one, or replace all of an old one; folders on the way are made. The content "
        "must be complete, without placeholders such as `// rest of the code`. Use another tool to change parts."
    )
    spellings: ClassVar[Mapping[str, str]] = {
        **PATH_SPELLINGS,
        "text": "content",
        "contents": "content",
        "file_text": "content",
    }

    path: Annotated[str, Meta(min_length=1, description="The file, relative to the workspace.")]
    content: Annotated[str, Meta(description="All of its content, as it shall be.")]
    line_count: Annotated[
        int | None, Meta(description="How many lines the content has; content with clearly fewer was cut off.")
    ] = None

    async def prepare(self, bench: Bench) -> Ready:
        original = await file_change.open_original(bench, self.path, must_exist=False)
        place, before = original.place, original.data
        try:
            after = await aside(len(self.content) + len(before or b""), self._made, place.said, before)
        except TarmacError as error:
            raise ToolFailed(f"'{place.name}' was not written: {error.what}", hint=error.hint) from None
        if after == before:
            return file_change.unchanged(place)
        made = Change(place=place, before=before, after=after)
        verbs = ("Creating", "Created") if before is None else ("Writing", "Wrote")
        return await file_change.ready(bench, [made], title=f"{verbs[0]} {place.name}", done=f"{verbs[1]} {place.name}")

    def _made(self, path: str, before: bytes | None) -> bytes:
        content = clean_content(self.content, path)
        file = None if before is None else decode(before)
        self._check_whole(content, path, file.text if file is not None else None)
        return (new_text_file(content) if file is None else file.with_text(content)).encode()

    def _check_whole(self, content: str, path: str, before: str | None) -> None:
        """A file with a part left out would lose that part."""
        if self.line_count is not None and is_cut_short(content, self.line_count):
            lines = content.count("\n") + 1
            raise ToolFailed(
                f"the content has {lines} lines where line_count says {self.line_count}: it appears to be truncated. "
                "Write all of it, or use apply_diff"
            )
        if before is None and is_prose(path):
            return
        shorter = content.count("\n") < (before or "").count("\n")
        if why := refuse_omissions(content, before or "", shorter=shorter):
            raise ToolFailed(f"{why}. Write all of it, or change parts with apply_diff", hint=WRITE_ALL)
        if before is not None and (why := broken_by(before, content, path)):
            raise ToolFailed(f"the indentation would be broken: {why}")
