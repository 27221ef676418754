"""The tools that change files; how a change is checked, shown and written is in `file_change.py`.

write_to_file, apply_diff, insert_content, search_and_replace    one file
apply_patch       several files with one patch, all of it or nothing
generate_image    a picture that a model makes, as a file of the workspace
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from tarmac.errors import BadArguments, TarmacError, ToolFailed
from tarmac.models.messages import Image, Part, Text
from tarmac.policy import WriteFile
from tarmac.tools import file_access, file_change
from tarmac.tools.edit import (
    WRITE_ALL,
    Block,
    Edited,
    FailedPart,
    FileChange,
    TextFile,
    apply_diff,
    broken_by,
    clean_content,
    decode,
    headless,
    insert_content,
    is_cut_short,
    is_patch,
    is_prose,
    line_ending,
    new_text_file,
    parse_blocks,
    parse_patch,
    plan_patch,
    refuse_omissions,
    search_and_replace,
)
from tarmac.tools.edit.locate import MatchKind
from tarmac.tools.file_access import ResolvedPath, aside, digest
from tarmac.tools.file_change import Change, Original, open_original
from tarmac.tools.list_files import suggestion
from tarmac.tools.tool import PATH_SPELLINGS, Bench, Done, Go, Group, Intent, Need, Ready, Seen, Tool, Want

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

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Drop the path that some models give as well: the patch names its files."""
        return {key: value for key, value in arguments.items() if key not in ("path", "file_path")}

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
        return Change(
            place=place, before=before, after=after, like=origin.path if origin else None, whole=planned.whole
        )


Line = Annotated[int, Meta(ge=1)]
_PATH = "The file."
_FILE = re.compile(r"<file>(.*?)</file>", re.DOTALL)
_IN_FILE = re.compile(r"<path>(.*?)</path>(.*)", re.DOTALL)
_CONTENT = re.compile(r"<content>\n?(.*?)\s*</content>", re.DOTALL)
_START = re.compile(r"<start_line>\s*(\d+)\s*</start_line>")
_SEARCH = "<<<<<<< SEARCH\n"
_ONE_PLACE = frozenset(["old_string", "oldString", "old_str", "old_text"])  # with these models mean one place


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyDiff(Tool):
    name: ClassVar[str] = "apply_diff"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = (
        "Change parts of a file with SEARCH/REPLACE blocks. Each block is:\n"
        "<<<<<<< SEARCH\n:start_line:12\n-------\nold lines\n=======\nnew lines\n"
        ">>>>>>> REPLACE\n"
        "The old lines must be copied from the file, including white space, and occur once. :start_line: says where "
        "they are. Write new lines in full, without placeholders. Put all changes to a file into one call. If unsure, "
        "read the file first."
    )
    spellings: ClassVar[Mapping[str, str]] = {**PATH_SPELLINGS, "patch": "diff", "changes": "diff"}

    path: Annotated[str, Meta(min_length=1, description=_PATH)]
    diff: Annotated[str, Meta(min_length=1, description="One or more SEARCH/REPLACE blocks.")]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Accept the nested `args` of XML calls. A `start_line` beside the diff goes into it."""
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
        if "SEARCH" not in self.diff and is_patch(self.diff):
            return await ApplyPatch(patch=self.diff).prepare_for(bench, self.path)

        def applied(text: str, path: str) -> Edited:
            return apply_diff(text, self.diff, threshold=bench.settings.fuzzy_threshold, path=path)

        return await _edit(bench, self.path, applied, creates=self._creates(), ending=line_ending(self.diff))

    def _creates(self) -> bool:
        """Whether the diff may make a new file: its search is empty."""
        try:
            return not any(line for block in parse_blocks(self.diff) for line in block.old)
        except TarmacError:  # the edit itself says what is wrong
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertContent(Tool):
    name: ClassVar[str] = "insert_content"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = "Insert new lines into a file, before a line or at the end. Nothing else changes."
    spellings: ClassVar[Mapping[str, str]] = {
        **PATH_SPELLINGS,
        "line_number": "line",
        "new_str": "content",
        "insert_text": "content",
        "text": "content",
    }

    path: Annotated[str, Meta(min_length=1, description=_PATH)]
    line: Annotated[
        int, Meta(ge=0, description="The number of the line before which to insert. 0 is the end of the file.")
    ]
    content: Annotated[str, Meta(description="The new lines.")]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Anthropic's text editor inserts after `insert_line`; `line` is the one before which the new lines go."""
        after = arguments.pop("insert_line", None)
        if after is not None and "line" not in arguments:
            arguments["line"] = int(after) + 1 if isinstance(after, int | str) and str(after).isdigit() else after
        return arguments

    async def prepare(self, bench: Bench) -> Ready:
        def inserted(text: str, path: str) -> Edited:
            return insert_content(text, self.line, self.content, path=path)

        return await _edit(bench, self.path, inserted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAndReplace(Tool):
    name: ClassVar[str] = "search_and_replace"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = (
        "Replace every occurrence of a text in a file. With use_regex the search is a regular expression, and $1 or "
        "${name} stand for its groups. If expected_replacements is not the number of places, nothing changes."
    )
    spellings: ClassVar[Mapping[str, str]] = {
        **PATH_SPELLINGS,
        "search_text": "search",
        **dict.fromkeys(("new_string", "newString", "new_str", "new_text", "replacement"), "replace"),
        "expectedReplacements": "expected_replacements",
    }

    path: Annotated[str, Meta(min_length=1, description=_PATH)]
    search: Annotated[str, Meta(description="The text to search for.")]
    replace: Annotated[str, Meta(description="The text that replaces it.")]
    start_line: Annotated[Line | None, Meta(description="The first line to search.")] = None
    end_line: Annotated[Line | None, Meta(description="The last line to search.")] = None
    use_regex: Annotated[bool, Meta(description="Whether the search is a regular expression.")] = False
    ignore_case: Annotated[bool, Meta(description="Whether to ignore case.")] = False

    expected_replacements: Annotated[Line | None, Meta(description="How many places must match.")] = None

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """How many places must match: one if `replace_all` is false, or if it is missing beside `old_string`."""
        every = [arguments.pop(key) for key in ("replace_all", "replaceAll", "allow_multiple") if key in arguments]
        arguments.pop("instruction", None)
        one = any(str(each).lower() == "false" for each in every) or (not every and bool(_ONE_PLACE & arguments.keys()))
        if one:
            arguments.setdefault("expected_replacements", 1)
        return {"search" if key in _ONE_PLACE else key: value for key, value in arguments.items()}

    async def prepare(self, bench: Bench) -> Ready:
        def replaced(text: str, path: str) -> Edited:
            edited = search_and_replace(
                text,
                self.search,
                self.replace,
                pattern=self.use_regex,
                ignore_case=self.ignore_case,
                start_line=self.start_line,
                end_line=self.end_line,
                expected=self.expected_replacements,
                path=path,
            )
            if edited.applied or edited.failed[0].reason != "not found" or not self._means_one_place:
                return edited
            old, new = (each.replace("\r\n", "\n").removesuffix("\n") for each in (self.search, self.replace))
            block = Block(tuple(old.split("\n")), tuple(new.split("\n")))
            loosely = apply_diff(text, [block], threshold=bench.settings.fuzzy_threshold, path=path)
            found = loosely.applied or loosely.failed[0].reason != "not found"
            return loosely if found else edited

        return await _edit(bench, self.path, replaced, creates=not self.search, ending=line_ending(self.replace))

    @property
    def _means_one_place(self) -> bool:
        """Whether its lines may be looked for as those of a diff are: with other white space, then similar ones."""
        narrowed = self.use_regex or self.ignore_case or self.start_line or self.end_line
        return self.expected_replacements == 1 and bool(self.search.strip()) and not narrowed


async def _edit(
    bench: Bench, path: str, make: Callable[[str, str], Edited], *, creates: bool = False, ending: str = ""
) -> Ready:
    """The edit that `make` computes from the text and the path. `creates`: the file may be new, with this `ending`."""
    original = await file_change.open_original(bench, path, must_exist=not creates)
    place, before = original.place, original.data

    def made() -> tuple[Edited, bytes | None]:
        if before is None:
            edited = make("", place.said)
            return edited, new_text_file(edited.text, ending=ending).encode()
        file = decode(before)
        edited = make(file.text, place.said)
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
        return file_change.unchanged(place)
    made_change = Change(place=place, before=before, after=after)
    if before is None:
        return await file_change.ready(
            bench, [made_change], title=f"Creating {place.name}", done=f"Created {place.name}"
        )
    notes = [f"Changed in {len(edited.applied)} place{'s' * (len(edited.applied) != 1)}."]
    loose = [each for each in edited.applied if each.match_kind != "exact"]
    notes += [
        f"Block {each.part} was found at lines {each.first}-{each.last} ({_HOW[each.match_kind]})." for each in loose
    ]
    moved = [each for each in edited.applied if each.reindented]
    notes += [f"The new lines of block {each.part} were re-indented to fit the lines around them." for each in moved]
    if edited.failed:
        notes.append(
            f"But not all parts could be applied. Read {place.name} again and send the rest again:\n"
            f"{_failures(original, edited.failed)}"
        )
    return await file_change.ready(
        bench,
        [made_change],
        title=f"Editing {place.name}",
        done=f"Edited {place.name}",
        notes=notes,
        show_diff=bool(loose or moved),
        partly=bool(edited.failed),
    )


_HOW: Final[Mapping[MatchKind, str]] = {
    "exact": "exactly",
    "whitespace": "with other white space or punctuation",
    "blank lines": "but for blank lines",
    "fuzzy": "by similar lines",
}


def _failures(original: Original, failed: tuple[FailedPart, ...]) -> str:
    if original.may_quote:
        return "\n".join(map(str, failed))
    return "\n".join(
        f"block {each.part}: {each.reason} (its lines are not shown: read the file first)" for each in failed
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteToFile(Tool):
    name: ClassVar[str] = "write_to_file"
    group: ClassVar[Group] = "edit"
    description: ClassVar[str] = "Write a whole file, new or existing. Missing folders are created."
    spellings: ClassVar[Mapping[str, str]] = {
        **PATH_SPELLINGS,
        "text": "content",
        "contents": "content",
        "file_text": "content",
    }

    path: Annotated[str, Meta(min_length=1, description="The file.")]
    content: Annotated[
        str, Meta(description="The complete content, without placeholders such as `// rest of the code`.")
    ]
    line_count: Annotated[
        int | None,
        Meta(description="The number of lines in the content."),
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
        made = Change(place=place, before=before, after=after, whole=True)
        verbs = ("Creating", "Created") if before is None else ("Writing", "Wrote")
        return await file_change.ready(bench, [made], title=f"{verbs[0]} {place.name}", done=f"{verbs[1]} {place.name}")

    def _made(self, path: str, before: bytes | None) -> bytes:
        content = clean_content(self.content, path)
        file = None if before is None else decode(before)
        self._check_whole(content, path, file.text if file is not None else None)
        return (new_text_file(content) if file is None else file.with_text(content)).encode()

    def _check_whole(self, content: str, path: str, before: str | None) -> None:
        """Refuse content that leaves out a part of the file."""
        if self.line_count is not None and is_cut_short(content, self.line_count):
            lines = content.count("\n") + 1
            raise ToolFailed(
                f"the content has {lines} lines where line_count says {self.line_count}: it seems to be truncated. "
                "Write all of it, or use apply_diff"
            )
        if before is None and is_prose(path):
            return
        shorter = content.count("\n") < (before or "").count("\n")
        if why := refuse_omissions(content, before or "", shorter=shorter):
            raise ToolFailed(f"{why}. Write all of it, or change parts with apply_diff", hint=WRITE_ALL)
        if before is not None and (why := broken_by(before, content, path)):
            raise ToolFailed(f"the indentation would be broken: {why}")


SUFFIXES: Final = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateImage(Tool):
    name: ClassVar[str] = "generate_image"
    group: ClassVar[Group] = "edit"
    needs: ClassVar[Need | None] = "image model"
    description: ClassVar[str] = "Generate a picture from a description, and write it to a file."
    spellings: ClassVar[Mapping[str, str]] = PATH_SPELLINGS

    prompt: Annotated[str, Meta(min_length=1, description="A detailed description of the picture.")]
    path: Annotated[str, Meta(min_length=1, description="The file, such as `docs/logo.png`.")]

    async def prepare(self, bench: Bench) -> Ready:
        model = bench.image_model
        if model is None:
            raise ToolFailed("No model for pictures is configured.")
        original = await open_original(bench, self.path, must_exist=False)
        place = original.place
        suffix = place.path.suffix.lower().replace(".jpeg", ".jpg")
        if suffix not in SUFFIXES.values():  # before it is paid for
            raise ToolFailed(
                f"'{place.name}' is not the name of a picture. It must end in {', '.join(SUFFIXES.values())}."
            )

        async def act(_: Go) -> Done:
            try:
                made = await model.generate(self.prompt)
                await file_access.looking(bench, file_access.unmoved, place)
                new = original.data is None
                await asyncio.to_thread(bench.files.system.save, place.path, made.data, expected=original.data, new=new)
            except ToolFailed:
                raise
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            seen = Seen(path=place.path, digest=digest(made.data), how="edited")
            told = f"The picture is in {place.name} ({len(made.data):,} bytes)."
            if suffix != SUFFIXES[made.media_type]:
                told += f" It is {made.media_type}, whatever its name says: rename it to *{SUFFIXES[made.media_type]}."
            parts: list[Part] = [Text(told)]
            if bench.sees and len(made.data) <= bench.settings.largest_image:
                parts.append(Image(bench.store(made.data, made.media_type)))
            return Done(content=tuple(parts), seen=(seen,), details={"picture": {"path": str(place.path)}})

        want = Want(
            action=WriteFile(place.full, new=original.data is None, leads_to=place.path),
            before=original.data,
            outside=not place.look.inside,
            protected=place.look.protected,
        )
        before = digest(original.data)
        return Ready(
            title=f"Making the picture {place.name}",
            done=f"Made the picture {place.name}",
            wants=(want,),
            intents=(Intent(path=place.path, before=before, after=""),),  # nobody knows yet what it will be
            act=act,
        )
