"""The tool apply_patch: change several files with one patch, all of it or nothing."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import BadArguments, TarmacError, ToolFailed
from tarmac.tools import file_access, file_change
from tarmac.tools.edit import FileChange, TextFile, decode, headless, new_text_file, parse_patch, plan_patch
from tarmac.tools.file_access import ResolvedPath
from tarmac.tools.file_change import Change
from tarmac.tools.list_files import suggestion
from tarmac.tools.tool import Bench, Group, Ready, Tool

MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPatch(Tool):
    name: ClassVar[str] = "apply_patch"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = (
        "Change, add, delete and rename files with one patch. It is applied as a whole or not at all:\n"
        "*** Begin Patch\n*** Update File: src/app.py\n@@ def main():\n context line\n-old line\n+new line\n"
        "*** Add File: new.txt\n+its lines\n*** Delete File: old.txt\n*** End Patch\n"
        "Lines begin with a space (context), - or +. @@ takes a line above the change, which says what place is "
        "meant. `*** Move to: path` after an Update line renames the file."
    )
    spellings: ClassVar[Mapping[str, str]] = {"input": "patch", "diff": "patch"}

    patch: Annotated[str, Meta(min_length=1, description="The patch, from `*** Begin Patch` to `*** End Patch`.")]

    async def prepare(self, bench: Bench) -> Ready:
        return await self._prepare(bench)

    async def prepare_for(self, bench: Bench, path: str) -> Ready:
        """Prepare a patch that was sent as the diff of one file."""
        place = await file_access.looking(bench, file_access.find, path)
        try:
            named = {each.path for each in parse_patch(self.patch, path)}
        except TarmacError as error:
            raise ToolFailed(error.what, hint=error.hint) from None
        found = {each: await file_access.looking(bench, file_access.find, each) for each in sorted(named)}
        others = [each for each in found if found[each].full != place.full]
        made_up = len(named) == 1 and others and not found[others[0]].look.exists
        if made_up and (bare := headless(self.patch)):  # `--- original`
            return await ApplyPatch(patch=bare)._prepare(bench, path)
        if others:
            raise BadArguments(
                f"apply_diff: the diff changes {', '.join(others)}, but `path` is {place.name}. "
                "Use apply_patch for several files."
            )
        return await self._prepare(bench, path)

    async def _prepare(self, bench: Bench, path: str = "") -> Ready:
        sources = _Sources(file_access.fresh(bench), path)
        try:
            changes = await asyncio.to_thread(sources.changes, self.patch, bench.settings.fuzzy_threshold)
        except ToolFailed:
            raise
        except TarmacError as error:
            if sources.unquotable:
                names = ", ".join(sources.unquotable)
                raise ToolFailed(f"The patch was not applied. Lines of {names} are not shown: read it first.") from None
            raise ToolFailed(error.what, hint=error.hint) from None
        if not changes:
            raise ToolFailed("The patch changes nothing: the files already are like this.")
        marks = {"created": " (new)", "deleted": " (deleted)", "modified": ""}
        names = ", ".join(f"{each.place.name}{marks[each.operation]}" for each in changes[:MOST_NAMED])
        names += f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
        return await file_change.ready(bench, changes, title=f"Patching {names}", done=f"Patched {names}")


@dataclass(slots=True)
class _Sources:
    """The files that a patch names, each read once."""

    bench: Bench
    path: str = ""  # the file, if the patch names none
    found: dict[str, tuple[ResolvedPath, bytes | None, TextFile]] = field(default_factory=dict)
    unquotable: list[str] = field(default_factory=list)

    def read(self, path: str) -> str | None:
        place = file_access.find(self.bench, path)
        if why := file_access.refusal(self.bench, place, writing=True):
            raise ToolFailed(f"'{place.name}' may not be written: {why}. No file was changed.")
        data = self.bench.files.system.read(place.path)
        file_change.check_seen(self.bench, place, data)
        if data is not None and place.look.unread and place.path not in self.bench.seen:
            self.unquotable.append(place.name)
        file = TextFile("") if data is None else decode(data)
        self.found[path] = (place, data, file)
        return None if data is None else file.text

    def changes(self, patch: str, threshold: float) -> list[Change]:
        """All changes of the patch. Run it in a thread."""

        def nearest(path: str) -> str:
            return suggestion(self.bench, file_access.find(self.bench, path))

        planned = plan_patch(patch, self.read, threshold=threshold, path=self.path, nearest=nearest)
        return [self.change(each) for each in planned]

    def change(self, planned: FileChange) -> Change:
        place, before, file = self.found[planned.path]
        origin: ResolvedPath | None = None
        if planned.moved_from:  # it keeps its line endings and its mode
            origin, _, file = self.found[planned.moved_from]
        after: bytes | None = None
        if planned.after is not None:
            new = before is None and origin is None
            after = (new_text_file(planned.after) if new else file.with_text(planned.after)).encode()
        return Change(place=place, before=before, after=after, like=origin.path if origin else None)
