"""Read a patch, and work out what it makes of the files before anything is written.

parse_patch(text) → AddFile | DeleteFile | UpdateFile … ─plan_patch→ FileChange …

    *** Begin Patch
    *** Update File: src/app.py
    *** Move to: src/main.py        optional
    @@ class App                    optional: a line above the change, to say which place is meant
     context
    -old
    +new
    *** End of File                 optional: the change is at the end
    *** Add File: new.txt
    +its lines
    *** Delete File: old.txt
    *** End Patch

This is the format of Codex. A unified diff, as `diff -u` and git write it, is a patch, too.

Models are careless, so these are accepted: spaces around marks, a shell here-document or a code fence around the patch,
no first or last mark, a blank context line without its space.

A patch is applied as a whole or not at all. (Codex writes what comes before a failure.)
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tarmac.errors import EditFailed
from tarmac.tools.edit.content_checks import WRITE_ALL, is_prose, refuse_omissions
from tarmac.tools.edit.locate import THRESHOLD, Ambiguous, Haystack, Location, NotFound, find, loose
from tarmac.tools.edit.splice import FailedPart, Insert, ambiguous, broken_by, not_found, repaired, spliced
from tarmac.tools.edit.text_file import join_lines, split_lines

__all__ = ["FileChange", "Section", "plan_patch"]


_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"
_EOF, _ENVIRONMENT = "*** End of File", "*** Environment ID:"
_CLOSING = ("EOF", "```")  # of a here-document, of a code block
_FORM = "*** Begin Patch / *** Update File: path / @@ / -old / +new / *** End Patch"


@dataclass(slots=True)
class Chunk:
    """Old and new lines, both with context."""

    anchors: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    at_end: bool = False
    near: int | None = None  # the line, from 0, at which a unified diff has it
    counted: bool = False  # from a unified diff: without old lines it must not go to the end of the file


@dataclass(slots=True)
class AddFile:
    """A new file."""

    path: str
    lines: list[str] = field(default_factory=list)
    ended: bool = True  # the last line ends in a newline

    @property
    def text(self) -> str:
        """The content, in CRLF if each line ends in a CR."""
        text = "\n".join(self.lines) + ("\n" if self.lines and self.ended else "")
        if self.lines and all(each.endswith("\r") for each in self.lines):
            return text
        return "\n".join(each.removesuffix("\r") for each in text.split("\n"))


@dataclass(slots=True)
class DeleteFile:
    """A file to remove."""

    path: str


@dataclass(slots=True)
class UpdateFile:
    """Changes to a file, which may get a new name."""

    path: str
    moved_to: str | None = None
    chunks: list[Chunk] = field(default_factory=list)


Section = AddFile | DeleteFile | UpdateFile


def is_patch(text: str) -> bool:
    """Whether this is a patch or a unified diff."""
    lines = [each.strip() for each in text.split("\n")]
    return _BEGIN in lines or any(map(_is_file_mark, lines)) or _is_unified(lines)


def parse_patch(patch: str, path: str = "") -> list[Section]:
    """The files of a patch, in order; EditFailed says which line is wrong. `path` is for a patch that names none."""
    lines = patch.split("\n")
    marked = any(each.strip() == _BEGIN or _is_file_mark(each) for each in lines)
    sections = _marked(lines) if marked or not _is_unified(lines) else _unified(lines, path)
    if not sections:
        raise EditFailed("the patch changes no file", hint=_FORM)
    for each in sections:
        if isinstance(each, UpdateFile):
            each.chunks = [one for one in each.chunks if one.old or one.new]
            if not each.chunks and each.moved_to is None:
                raise EditFailed(f"the patch has no change for {each.path}", hint=_FORM)
    return sections


def _is_file_mark(line: str) -> bool:
    return line.lstrip().startswith((_ADD, _DELETE, _UPDATE))


def _marked(lines: Sequence[str]) -> list[Section]:
    """The sections of a patch with `***` marks."""
    sections: list[Section] = []
    chunk: Chunk | None = None
    for number, raw in _body(lines):
        line = raw.removesuffix("\r")
        text = line.strip()
        section = sections[-1] if sections else None
        # In a change, a line that begins with a space is context, even if it looks like a mark.
        if text.startswith("*** ") and (line.startswith("***") or (chunk is None and line[:1] not in "+-")):
            if text.startswith(_ENVIRONMENT) and not sections:
                pass  # names a Codex environment; there is only one here
            elif text == _EOF and chunk is not None:
                chunk.at_end, chunk = True, None
            elif text.startswith(_MOVE) and isinstance(section, UpdateFile) and not section.chunks:
                section.moved_to = _named(text, _MOVE, number)
            else:
                sections.append(_section(text, number))
                chunk = None
            continue
        match section:
            case AddFile():
                if not line.startswith("+"):
                    raise _wrong(number, line, "each line of a new file begins with +")
                section.lines.append(raw[1:])
            case UpdateFile():
                chunk = _change(section, chunk, line, number)
            case _ if text:
                raise _wrong(number, line, f"expected *** Add File:, *** Update File: or *** Delete File:; {_FORM}")
    return sections


def _body(lines: Sequence[str]) -> list[tuple[int, str]]:
    """The lines between the marks, with their numbers."""
    numbered = list(enumerate(lines, 1))
    begin = next((at + 1 for at, line in enumerate(lines) if line.strip() == _BEGIN), None)
    if begin is None:
        begin = next((at for at, line in enumerate(lines) if _is_file_mark(line)), None)
    if begin is None:
        raise EditFailed(f"the patch does not begin with {_BEGIN!r}", hint=_FORM)
    rest = numbered[begin:]
    ends = [at for at, (_, line) in enumerate(rest) if line.strip() == _END and line[:1] not in "+-"]
    if ends:
        return rest[: ends[-1]]  # an earlier one is content
    closed = False
    while rest and rest[-1][1].strip() in ("", *_CLOSING):
        closed |= rest.pop()[1].strip() in _CLOSING
    if not closed and begin and lines[begin - 1].strip() == _BEGIN:
        raise EditFailed(f"the patch has no {_END!r}: it may have been cut off", hint="send all of it again")
    return rest


def _section(text: str, number: int) -> Section:
    if text.startswith(_ADD):
        return AddFile(_named(text, _ADD, number))
    if text.startswith(_DELETE):
        return DeleteFile(_named(text, _DELETE, number))
    if text.startswith(_UPDATE):
        return UpdateFile(_named(text, _UPDATE, number))
    raise _wrong(number, text, f"unknown; {_FORM}")


def _named(text: str, mark: str, number: int) -> str:
    name = text.removeprefix(mark).strip()
    if not name:
        raise _wrong(number, text, "the name of the file is missing")
    return name


def _change(section: UpdateFile, chunk: Chunk | None, line: str, number: int) -> Chunk | None:
    """One line of an update; returns the chunk it belongs to."""
    if line.rstrip() == "@@" or line.startswith("@@ "):
        anchor = line[3:].strip().removesuffix("@@").strip()
        if chunk is None or chunk.old or chunk.new:
            chunk = Chunk()
            section.chunks.append(chunk)
        if found := _RANGE.match(line):
            chunk.near = max(int(found[1]) - 1, 0)
        elif anchor:
            chunk.anchors.append(anchor)
        return chunk
    if chunk is None:
        if not line.strip():
            return None
        chunk = Chunk()
        section.chunks.append(chunk)
    match line[:1]:
        case "+":
            chunk.new.append(line[1:])
        case "-":
            chunk.old.append(line[1:])
        case " " | "":
            chunk.old.append(line[1:])
            chunk.new.append(line[1:])
        case _:
            raise _wrong(number, line, "each line of a change begins with a space, + or -")
    return chunk


# Unified diffs

_RANGE = re.compile(r"@@+ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))?(?: @@|$)")
_HUNK = re.compile(r"@@(?: .*)?$")
_OUTSIDE = (
    "diff ",
    "index ",
    "Index: ",
    "similarity ",
    "rename ",
    "new file",
    "deleted file",
    "old mode",
    "new mode",
    "```",
)
_NOTHING = "/dev/null"


def _is_unified(lines: Sequence[str]) -> bool:
    return any(map(_RANGE.match, lines)) or any(map(_is_heading, lines, lines[1:])) or "rename to " in "\n".join(lines)


def headless(patch: str) -> str:
    """A unified diff without the two lines that name its file, if they look made up: `--- original`, `+++ updated`."""
    lines = patch.split("\n")
    at = next((at for at in range(len(lines) - 1) if _is_heading(lines[at], lines[at + 1])), None)
    if at is None or any(map(_is_file_mark, lines)):
        return ""
    section = _headed(lines[at], lines[at + 1], at + 1)
    made_up = isinstance(section, UpdateFile) and section.moved_to is not None
    return "\n".join(lines[at + 2 :]) if made_up else ""


def _is_heading(line: str, following: str) -> bool:
    return line.startswith("--- ") and following.startswith("+++ ")


def _unified(lines: Sequence[str], path: str) -> list[Section]:
    """The sections of a unified diff."""
    sections: list[Section] = [UpdateFile(path)] if path else []
    chunk: Chunk | None = None
    counts: tuple[int, int] | None = None  # how many old and new lines the hunk says it has
    renamed = ""
    rows = [each.removesuffix("\r") for each in lines]
    at = 0
    while at < len(rows):
        line = rows[at]
        if _begins_file(rows, at, chunk, counts):
            section = _headed(line, rows[at + 1], at + 1)
            last = sections[-1] if sections else None
            same = isinstance(last, UpdateFile) and last.path == section.path and not last.chunks
            sections[len(sections) - same :] = [section]
            chunk = None
            at += 1
        elif _HUNK.match(line):
            chunk = Chunk(counted=True)
            counts = None
            if found := _RANGE.match(line):
                chunk.near = max(int(found[1]) - 1, 0)
                counts = int(found[2] or 1), int(found[3] or 1)
            if not sections:
                raise _wrong(at + 1, line, "the name of the file is missing: --- old / +++ new")
            if isinstance(sections[-1], UpdateFile):
                sections[-1].chunks.append(chunk)
        elif line.startswith(_OUTSIDE):
            chunk = None
            if line.startswith("rename from "):
                renamed = line.removeprefix("rename from ").strip()
            elif line.startswith("rename to ") and renamed:
                sections.append(UpdateFile(renamed, line.removeprefix("rename to ").strip()))
        elif chunk is not None:
            _hunk_line(sections[-1], chunk, lines[at], at + 1)
        at += 1
    for section in sections:
        if isinstance(section, UpdateFile) and section.chunks:
            _without_last_blank(section.chunks[-1])
    return [each for each in sections if not isinstance(each, UpdateFile) or each.chunks or each.moved_to]


def _begins_file(rows: Sequence[str], at: int, chunk: Chunk | None, counts: tuple[int, int] | None) -> bool:
    """Whether the line and the next one name a file. In a hunk they may also be a removed and an added line."""
    if at + 1 >= len(rows) or not _is_heading(rows[at], rows[at + 1]):
        return False
    if chunk is None:
        return True
    is_whole = counts is None or (len(chunk.old) >= counts[0] and len(chunk.new) >= counts[1])
    return is_whole and at + 2 < len(rows) and bool(_HUNK.match(rows[at + 2]))


def _headed(old: str, new: str, number: int) -> Section:
    """The file that the two lines `--- a/old` and `+++ b/new` name."""
    before, after = (line[4:].split("\t")[0].strip() for line in (old, new))
    if not before or not after:
        raise _wrong(number, old, "the name of the file is missing")
    if before in (_NOTHING, "a/" + after[2:]) or after == _NOTHING:
        before, after = before.removeprefix("a/"), after.removeprefix("b/")
    elif before.startswith("a/") and after.startswith("b/"):
        before, after = before[2:], after[2:]
    if before == _NOTHING:
        return AddFile(after)
    if after == _NOTHING:
        return DeleteFile(before)
    return UpdateFile(before, None if before == after else after)


def _hunk_line(section: Section, chunk: Chunk, raw: str, number: int) -> None:
    line = raw.removesuffix("\r")
    if line.startswith("\\"):  # \ No newline at end of file
        if isinstance(section, AddFile):
            section.ended = False
        return
    match section, line[:1]:
        case AddFile(), "+":
            section.lines.append(raw[1:])
            chunk.new.append(line[1:])
        case AddFile(), "" | " " if not line.strip():
            pass
        case DeleteFile(), "-" | " " | "":
            chunk.old.append(line[1:])
        case UpdateFile(), "+":
            chunk.new.append(line[1:])
        case UpdateFile(), "-":
            chunk.old.append(line[1:])
        case UpdateFile(), " " | "":
            chunk.old.append(line[1:])
            chunk.new.append(line[1:])
        case UpdateFile(), "\t":  # the space before it was forgotten; it must still be in the file
            chunk.old.append(line)
            chunk.new.append(line)
        case _:
            raise _wrong(number, line, "each line of a change begins with a space, + or -")


def _without_last_blank(chunk: Chunk) -> None:
    """Drop the empty lines that end the text of the diff, not the change."""
    while chunk.old and chunk.new and not chunk.old[-1] and not chunk.new[-1] and len(chunk.old) > 1:
        chunk.old.pop()
        chunk.new.pop()


def _wrong(number: int, line: str, what: str) -> EditFailed:
    return EditFailed(f"line {number} of the patch, {line[:80]!r}: {what}")


_MORE = "put a line above the change after @@, or more lines around it"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of one file before and after. None means no file. A move is a removal and a new file."""

    path: str
    before: str | None
    after: str | None
    moved_from: str = ""
    whole: bool = False  # whatever the file was before


def plan_patch(
    patch: str,
    read: Callable[[str], str | None],
    *,
    threshold: float = THRESHOLD,
    path: str = "",
    nearest: Callable[[str], str] = lambda _: "",
) -> list[FileChange]:
    """The changes of `patch`; EditFailed, with every reason, if any part of it is wrong.

    `read` gives a file's text, or None. `path` is the file that is meant where a unified diff names none.
    `nearest` suggests a file for a path that does not exist.
    """
    before: dict[str, str | None] = {}
    after: dict[str, str | None] = {}
    moved: dict[str, str] = {}
    whole: set[str] = set()
    problems: list[str] = []

    def now(path: str) -> str | None:
        if path not in before:
            before[path] = after[path] = read(path)
        return after[path]

    for section in parse_patch(patch, path):
        text = now(section.path)
        match section:
            case AddFile():
                after[section.path] = section.text
                whole.add(section.path)
                if not is_prose(section.path) and (why := refuse_omissions(section.text, text or "")):
                    problems.append(f"{section.path}: {why}\nhint: {WRITE_ALL}")
            case _ if text is None:
                near = nearest(section.path)
                problems.append(f"{section.path} does not exist{f'.{near}' if near else ''}")
            case DeleteFile():
                after[section.path] = None
            case UpdateFile():
                result, failures = _updated(text, section, threshold)
                problems += [f"{section.path}, {failure}" for failure in failures]
                target = section.moved_to or section.path
                now(target)
                after[section.path] = None
                after[target] = result
                if target != section.path:
                    moved[target] = section.path
                    whole.add(target)
    if problems:
        raise EditFailed("the patch was not applied, no file was changed:\n" + "\n".join(problems))
    paths = [path for path in after if after[path] != before[path]]
    return [FileChange(path, before[path], after[path], moved.get(path, ""), path in whole) for path in paths]


def _updated(text: str, section: UpdateFile, threshold: float) -> tuple[str, list[FailedPart]]:
    """The text after all chunks. Each is looked for after the one before it."""
    lines, ended = split_lines(text)
    hay = Haystack(lines)
    inserts: list[Insert] = []
    failures: list[FailedPart] = []
    cursor = 0
    for number, chunk in enumerate(section.chunks, 1):
        found = _place(hay, chunk, cursor, threshold, number)
        if isinstance(found, FailedPart):
            failures.append(found)
        elif any(one.place.first < found.end and found.first < one.place.end for one in inserts):
            failures.append(FailedPart(number, "overlaps", f"block {number}: its lines were changed by one before it"))
        elif why := refuse_omissions("\n".join(chunk.new), text, shorter=len(chunk.new) < len(chunk.old)):
            failures.append(FailedPart(number, "placeholder", f"block {number}: {why}", WRITE_ALL))
        else:
            inserts.append(Insert(number, found, chunk.old, chunk.new))
            cursor = found.end
    path = section.moved_to or section.path
    inserts, broken = repaired(lines, inserts, lambda result: broken_by(text, join_lines(result, ended), path))
    return join_lines(spliced(lines, inserts), ended), failures + broken


def _place(hay: Haystack, chunk: Chunk, cursor: int, threshold: float, number: int) -> Location | FailedPart:
    start = cursor
    for anchor in chunk.anchors:
        at = _anchor(hay, anchor, start)
        if at is None:
            at = _anchor(hay, anchor, 0)  # the chunks may be out of order
        if at is None:
            return FailedPart(
                number, "not found", f"block {number}: no line is {anchor!r}", "after @@ goes a whole line"
            )
        start = at + 1
    if not chunk.old and chunk.counted and hay.lines:
        what = f"block {number}: new lines without a line around them"
        return FailedPart(number, "ambiguous", what, "add a line of the file before or after them")
    if not chunk.old:
        return _insertion(hay.lines, start if chunk.anchors else None)
    if chunk.at_end and (end := _at_end(hay.lines, chunk.old)) is not None:
        return end
    found = find(hay, chunk.old, near=chunk.near, start=start, threshold=threshold)
    if isinstance(found, NotFound) and start:
        found = find(hay, chunk.old, near=chunk.near, threshold=threshold)
    match found:
        case Location():
            return found
        case Ambiguous(places=places) if chunk.anchors:
            return places[0]  # the first one after the anchor
        case Ambiguous():
            return ambiguous(number, found, _MORE)
        case _:
            return not_found(number, found, hay, chunk.old, chunk.new, threshold)


def _anchor(hay: Haystack, anchor: str, start: int) -> int | None:
    """The line that an anchor names: one that is equal but for spaces, else one that begins with it."""
    if hay.huge:
        return next(iter(hay.keyed(str).places([anchor], start=start, most=1)), None)
    key, keys = loose(anchor), hay.loose
    if whole := hay.keyed(loose).places([key], start=start, most=1):
        return whole[0]
    return next((at for at in range(start, len(keys)) if keys[at].startswith(key)), None)


def _insertion(lines: Sequence[str], after_anchor: int | None) -> Location:
    """New lines without old ones: after their anchor, else at the end of the file."""
    at = len(lines) if after_anchor is None else after_anchor
    return Location(at, at, "exact", 1.0, ())


def _at_end(lines: Sequence[str], old: Sequence[str]) -> Location | None:
    last = len(lines)
    first = last - len(old)
    if first >= 0 and [loose(each) for each in lines[first:last]] == [loose(each) for each in old]:
        exact = list(lines[first:last]) == list(old)
        return Location(first, last, "exact" if exact else "whitespace", 1.0, tuple(range(first, last)))
    return None
