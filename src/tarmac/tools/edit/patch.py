"""Work out what a patch makes of the files, before anything is written.

A patch is applied as a whole or not at all. (Codex writes what comes before a failure.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tarmac.errors import EditFailed
from tarmac.tools.edit.content_checks import WRITE_ALL, is_prose, refuse_omissions
from tarmac.tools.edit.edit_result import FailedPart, ambiguous, not_found
from tarmac.tools.edit.locate import THRESHOLD, Ambiguous, Haystack, Location, NotFound, find, loose
from tarmac.tools.edit.patch_parser import AddFile, Chunk, DeleteFile, Section, UpdateFile, parse_patch
from tarmac.tools.edit.splice import Insert, broken_by, repaired, spliced
from tarmac.tools.edit.text_file import join_lines, split_lines

_MORE = "put a line above the change after @@, or more lines around it"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of one file before and after. None means no file. A move is a removal and a new file."""

    path: str
    before: str | None
    after: str | None
    moved_from: str = ""


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
    if problems:
        raise EditFailed("the patch was not applied, no file was changed:\n" + "\n".join(problems))
    paths = [path for path in after if after[path] != before[path]]
    return [FileChange(path, before[path], after[path], moved.get(path, "")) for path in paths]


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


__all__ = ["FileChange", "Section", "plan_patch"]
