"""Changes to files: shown as a diff, written all or none, reported to the model.

Every edit tool computes `Change` values. `ready` turns them into a call that the policy can judge.
"""

import asyncio
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tarmac.errors import EditorSilent, TarmacError, ToolFailed
from tarmac.models.messages import Text
from tarmac.policy import WriteFile
from tarmac.tools import file_access
from tarmac.tools.aside import aside
from tarmac.tools.diagnostics import new_syntax_errors, reported
from tarmac.tools.diagnostics import told as diagnostics_told
from tarmac.tools.edit import decode, read_bytes, remove_file, save_file, unified_diff
from tarmac.tools.file_access import ResolvedPath, digest
from tarmac.tools.list_files import suggestion
from tarmac.tools.read_file import unsaved_text
from tarmac.tools.tool import Bench, Done, Go, Intent, Ready, Seen, Want

MOST_DIFF = 2000  # lines of the diff that a front end gets
LONGEST_IN_DIFF = 1000  # characters of a line in the diff
MOST_TOLD = 60  # lines of the diff that the model gets if its edit did not match exactly
KNOWN = "You do not need to read the file again: it has the content that you wrote."


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The content of a file before and after an edit. None means no file."""

    place: ResolvedPath
    before: bytes | None
    after: bytes | None
    like: Path | None = None  # the file that it was renamed from, whose mode it keeps

    @property
    def operation(self) -> str:
        return "created" if self.before is None else "deleted" if self.after is None else "modified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A file to edit: its path, its content, and whether an error may quote it."""

    place: ResolvedPath
    data: bytes | None
    may_quote: bool


async def open_original(bench: Bench, said: str, *, must_exist: bool = True) -> Original:
    """The file to edit. ToolFailed if it may not be written, is missing, or has changed since the task read it."""
    place = file_access.find(bench, said)
    if why := file_access.refusal(bench, place, writing=True):
        raise ToolFailed(f"'{place.name}' may not be written: {why}")
    try:
        data = await asyncio.to_thread(read_bytes, place.path)
    except TarmacError as error:
        raise ToolFailed(error.what, hint=error.hint) from None
    if data is None and must_exist:
        near = await asyncio.to_thread(suggestion, bench, place)
        raise ToolFailed(
            f"File does not exist at path: {place.name}.{near} Check the path, or make the file with write_to_file."
        )
    await aside(len(data or b""), check_seen, bench, place, data)
    await check_saved(bench, place, data)
    # A file that needs an approval to be read must not be quoted in the message of a failed edit.
    return Original(place=place, data=data, may_quote=place.path in bench.seen or not place.look.unread)


def check_seen(bench: Bench, place: ResolvedPath, data: bytes | None) -> None:
    """ToolFailed if somebody else changed the file since the task last read it."""
    if place.path not in bench.seen or bench.seen[place.path] == digest(data):
        return
    was = "made" if bench.seen[place.path] is None else "removed" if data is None else "changed"
    raise ToolFailed(
        f"'{place.name}' was {was} by somebody else since you last saw it, so nothing was written. "
        "Read it again with read_file, then repeat the edit."
    )


async def check_saved(bench: Bench, place: ResolvedPath, data: bytes | None) -> str:
    """ToolFailed if the editor has unsaved changes of the file. A note if the editor does not answer."""
    if bench.unsaved is None or data is None:
        return ""
    try:
        theirs = await unsaved_text(bench.unsaved, place.path, data)
    except EditorSilent as silent:
        return f"Note: {silent.what}. The user was told."
    except TarmacError:  # not text: the edit itself fails and says why
        return ""
    if theirs is not None:
        raise ToolFailed(
            f"'{place.name}' has unsaved changes in the person's editor, so nothing was written. "
            "Ask them to save the file, then read it again and repeat the edit."
        )
    return ""


async def ready(
    bench: Bench,
    changes: Sequence[Change],
    *,
    title: str,
    done: str,
    notes: Sequence[str] = (),
    show_diff: bool = False,
    partly: bool = False,
) -> Ready:
    """The edit, ready to be judged. `show_diff`: the match was not exact, so the model gets the diff."""
    size = sum(len(each.before or b"") + len(each.after or b"") for each in changes)
    diffs = await aside(size, lambda: [_diff(each) for each in changes])
    intents = await aside(size, lambda: tuple(map(_intent, changes)))

    async def act(go: Go) -> Done:
        if go.refused:
            names = ", ".join(changes[each].place.name for each in sorted(go.refused))
            raise ToolFailed(f"The person did not approve the change to {names}, so nothing was changed.")
        silent: dict[Path, str] = {}
        for each in changes:
            file_access.unmoved(bench, each.place)
            silent[each.place.path] = await check_saved(bench, each.place, each.before)
        extra = await asyncio.to_thread(_write, changes)
        told = [_told(each, [*notes, *extra.get(each.place.path, ())], partly=partly) for each in changes]
        told += [note for note in dict.fromkeys(silent.values()) if note]
        told += await _problems(bench, changes)
        if show_diff:
            told += [f"The changes as they were made:\n{_bounded(each['diff'])}" for each in diffs]
        return Done(
            content=(Text("\n".join(told)),),
            details={"files": diffs},
            seen=tuple(Seen(path=each.path, digest=each.after, how="edited") for each in intents),
        )

    return Ready(
        title=title,
        done=done,
        wants=tuple(
            Want(
                action=WriteFile(each.place.full, new=each.before is None),
                before=each.before,
                content=each.after if each.after is not None else b"",
                outside=not each.place.look.inside,
                protected=each.place.look.protected,
            )
            for each in changes
        ),
        intents=intents,
        act=act,
    )


async def _problems(bench: Bench, changes: Sequence[Change]) -> list[str]:
    """A sentence about the problems that are new, if there are some."""
    size = sum(len(each.after or b"") for each in changes)
    found = [
        problem
        for each in changes
        for problem in await aside(size, partial(new_syntax_errors, each.place.path, each.before, each.after))
    ]
    if not found and bench.settings.diagnostics:
        found += await reported(bench, [each.place.path for each in changes if each.after is not None])
    return [text] if (text := diagnostics_told(found)) else []


def unchanged(place: ResolvedPath) -> Ready:
    """A call that has nothing to do."""

    async def act(_: Go) -> Done:
        return Done.text(f"No changes needed for '{place.name}': it already has this content.")

    return Ready(title=f"Checking {place.name}", done=f"Checked {place.name}", act=act)


def _write(changes: Sequence[Change]) -> dict[Path, list[str]]:
    """Write all changes or none. After a failure, what was written is undone."""
    made: list[Change] = []
    notes: dict[Path, list[str]] = {}
    modes = {each.like: each.like.stat().st_mode for each in changes if each.like is not None and each.like.exists()}
    try:
        for each in changes:
            if each.after is None:
                remove_file(each.place.path, expected=each.before)
            else:
                saved = save_file(each.place.path, each.after, expected=each.before, new=each.before is None)
                if saved.other_names:
                    notes[each.place.path] = [f"{saved.other_names} other names (hard links) keep the old content."]
                if each.like in modes:
                    saved.path.chmod(stat.S_IMODE(modes[each.like]))
            made.append(each)
    except TarmacError as error:
        left = [each.place.name for each in reversed(made) if not _undo(each)]
        also = f" These could not be restored: {', '.join(left)}." if left else " Nothing was changed."
        raise ToolFailed(f"{error.what}.{also}", hint=error.hint) from None
    return notes


def _undo(change: Change) -> bool:
    try:
        if change.before is None:
            remove_file(change.place.path, expected=change.after)
        else:
            save_file(change.place.path, change.before, expected=change.after, new=change.after is None)
    except TarmacError:
        return False
    return True


def _told(change: Change, notes: Sequence[str], *, partly: bool) -> str:
    """The result for one file, in the form of Roo-Code."""
    rows = [
        "<file_write_result>",
        f"<path>{change.place.name}</path>",
        f"<operation>{change.operation}</operation>",
        *(f"<notice>{note}</notice>" for note in (notes if partly or change.after is None else (*notes, KNOWN))),
        "</file_write_result>",
    ]
    return "\n".join(rows)


def _intent(change: Change) -> Intent:
    return Intent(path=change.place.path, before=digest(change.before), after=digest(change.after))


def _diff(change: Change) -> dict[str, str | int]:
    texts = [_text(change.before), _text(change.after)]
    diff = unified_diff(texts[0], texts[1], change.place.name, most_lines=MOST_DIFF, longest=LONGEST_IN_DIFF)
    return {
        "path": str(change.place.path),
        "name": change.place.name,
        "operation": change.operation,
        "diff": diff.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        "added": diff.added,
        "removed": diff.removed,
    }


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return decode(data).text
    except TarmacError:
        return "(binary)\n"


def _bounded(diff: str | int) -> str:
    lines = str(diff).splitlines()
    more = [f"({len(lines) - MOST_TOLD} more lines)"] if len(lines) > MOST_TOLD else []
    return "\n".join(lines[:MOST_TOLD] + more)
