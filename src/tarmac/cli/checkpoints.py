"""What a task changed, shown and taken back: `tarmac tasks diff|restore|checkpoints`, `/diff`, `/undo`, `/rewind`."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tarmac.errors import BadRequest
from tarmac.events import TaskId
from tarmac.show.look import Look, cut, diff_lines, one_line, padded
from tarmac.show.summary import when
from tarmac.tasks.checkpoints import Checkpoints, Fate, Restoration, RestoredFile, undone_text
from tarmac.tasks.context import now
from tarmac.tasks.events import FileEdit, HistoryRewound, ModelTold, TaskCreated
from tarmac.tasks.log import TaskLog
from tarmac.tasks.store import TaskStore
from tarmac.tasks.views.file_history import Point
from tarmac.tools.edit.unified_diff import FileDiff

MOST_LINES: Final = 400  # of one file's diff
_VERBS: Final = {
    Fate.RESTORED: "restored",
    Fate.CHANGED_SINCE: "left: somebody else has changed it since",
    Fate.NOT_KEPT: "can't be restored: its content was not stored",
    Fate.FAILED: "can't be restored",
    Fate.UNCHANGED: "unchanged",
}


@asynccontextmanager
async def opened(store: TaskStore, task: str) -> AsyncIterator[tuple[TaskLog, Checkpoints]]:
    """The checkpoints of a task that nobody works on."""
    async with store.open(TaskId(store.path(task).name)) as log:
        past, log.past = log.past, []
        created = next((each for each in past if isinstance(each, TaskCreated)), None)
        if created is None:
            raise BadRequest("this log does not name the workspace of the task")
        if created.place:
            raise BadRequest(f"there are no checkpoints of files at {created.place}: nothing can be undone there")
        checkpoints = Checkpoints(log, created.workspace, past)
        try:
            yield log, checkpoints
        finally:
            await checkpoints.aclose()


# The verbs


async def list_points(store: TaskStore, task: str, look: Look, *, as_json: bool) -> int:
    """`tarmac tasks checkpoints ID`"""
    async with opened(store, task) as (_, checkpoints):
        points = checkpoints.history.points
    if as_json:
        for each in points:
            print(json.dumps({"to": each.seq, "at": each.at, "said": each.said, "text": each.text}))
    else:
        print("\n".join(point_lines(points, look)) or "this task has no messages and no changes")
    return 0


async def show_diff(store: TaskStore, task: str, to: int | None, look: Look, *, as_json: bool) -> int:
    """`tarmac tasks diff ID`"""
    async with opened(store, task) as (_, checkpoints):
        if to is None and checkpoints.history.first is None:
            await checkpoints.settle()
        if to is None and checkpoints.history.first is None:
            found, root = [], Path()
        else:
            found, root = await checkpoints.diff(checkpoints.find(to)), checkpoints.workspace
    if as_json:
        for file, diff in found:
            print(json.dumps(_as_data(file) | {"diff": str(diff) if diff else None}))
    elif found:
        print("\n".join(diff_of(found, root, look)))
    else:
        print("this task has changed no files")
    return 0


async def restore(
    store: TaskStore,
    task: str,
    to: int | None,
    look: Look,
    *,
    files: bool,
    conversation: bool,
    yes: bool,
    force: bool,
    as_json: bool,
) -> int:
    """`tarmac tasks restore ID`. 1: some files were left or failed."""
    async with opened(store, task) as (log, checkpoints):
        await checkpoints.settle()
        to = checkpoints.find(to)
        plan = await checkpoints.preview(to) if files else Restoration(to=to, files=())
        if not yes:
            _sure(plan, checkpoints.workspace, look, conversation=conversation, force=force)
        done = await checkpoints.restore(to, force=force) if files else plan
        if conversation:
            await log.append(HistoryRewound(at=now(), to=checkpoints.history.conversation_end(to)))
        elif restored := done.of(Fate.RESTORED):
            await log.append(ModelTold(at=now(), text=undone_text(restored), about="other"))
        root = checkpoints.workspace
    if as_json:
        print(json.dumps({"to": to, "conversation": conversation, "files": [_as_data(each) for each in done.files]}))
    else:
        told = restored_lines(done, root, look) if files else ()
        print("\n".join([*told, *(["the conversation was rewound"] if conversation else [])]))
    return 1 if done.of(Fate.CHANGED_SINCE, Fate.NOT_KEPT, Fate.FAILED) else 0


def _sure(plan: Restoration, root: Path, look: Look, *, conversation: bool, force: bool) -> None:
    """Show what would happen, and ask."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadRequest("restoring changes files, and nobody can confirm it here", hint="add --yes")
    for each in plan.files:
        fate = Fate.RESTORED if force and each.fate is Fate.CHANGED_SINCE else each.fate
        if fate is not Fate.UNCHANGED:
            what = _intent(each.edit) if fate is Fate.RESTORED else _VERBS[fate]
            sys.stderr.write(f"  {one_line(shown(each.edit.path, root))}: {what}\n")
    if conversation:
        sys.stderr.write("  the conversation continues from there\n")
    sys.stderr.write("Restore? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise BadRequest("nothing was changed")


# As text


def point_lines(points: list[Point], look: Look) -> list[str]:
    """Where one can go back to, one in a line."""
    return [
        f"  {each.seq:>6}  {padded(when(each.at), 11)} "
        + (look.paint("1", _short(each, look)) if each.said else look.paint("2", _short(each, look)))
        for each in points
    ]


def _short(point: Point, look: Look) -> str:
    return cut(one_line(f"❯ {point.text}" if point.said else f"  {point.text}"), max(look.columns - 22, 20))


def diff_of(found: list[tuple[RestoredFile, FileDiff | None]], root: Path, look: Look) -> Iterator[str]:
    """Each file with its changes."""
    for file, diff in found:
        counts = f"  +{diff.added} −{diff.removed}" if diff else ""
        note = " (also changed by somebody else since)" if file.fate is Fate.CHANGED_SINCE else ""
        yield look.paint("1", f"{_mark(file.edit)} {one_line(shown(file.edit.path, root))}{counts}{note}")
        if diff is not None and diff.text.strip():
            yield from diff_lines(diff.text, look, most=MOST_LINES)
        elif diff is None:
            yield "  not shown: it is not text, or its content was not stored"
        else:
            yield "  only its mode changed" if _mark(file.edit) == "M" else "  an empty file"


def restored_lines(done: Restoration, root: Path, look: Look) -> Iterator[str]:
    """What became of each file."""
    for each in done.files:
        if each.fate is Fate.UNCHANGED:
            continue
        colour = "32" if each.fate is Fate.RESTORED else "31"
        what = _intent(each.edit) if each.fate is Fate.RESTORED else _VERBS[each.fate]
        why = f": {one_line(each.why)}" if each.why else ""
        yield f"  {one_line(shown(each.edit.path, root))}  {look.paint(colour, what + why)}"
    if not done.of(Fate.RESTORED, Fate.CHANGED_SINCE, Fate.NOT_KEPT, Fate.FAILED):
        yield "  no file has changed since then"


def _intent(edit: FileEdit) -> str:
    if edit.before is None:
        return "removed: it was not there"
    return "brought back" if edit.after is None else "as it was"


def _mark(edit: FileEdit) -> str:
    return "A" if edit.before is None else "D" if edit.after is None else "M"


def shown(path: Path, root: Path) -> str:
    """A path as seen from the workspace."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _as_data(file: RestoredFile) -> dict[str, object]:
    return {"path": str(file.edit.path), "change": _mark(file.edit), "fate": file.fate.value, "why": file.why}
