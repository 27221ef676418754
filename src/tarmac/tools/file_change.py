"""Changes to files: shown as a diff, written all or none, reported to the model.

Every edit tool computes `Change` values. `ready` turns them into a call that the policy can judge. The result names
problems that are new: syntax errors, by tree-sitter, and what the commands of `tools.diagnostics` say of the file
(`"*.py: ruff check {file}"`). Those are the user's own, so they run without a question.
"""

import asyncio
import fnmatch
import shlex
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tarmac.errors import EditorSilent, TarmacError, ToolDenied, ToolFailed
from tarmac.file_system import FileSystem
from tarmac.models.messages import Text
from tarmac.policy import WriteFile
from tarmac.tools import file_access
from tarmac.tools.child_process import program, running
from tarmac.tools.code_definitions import language_of, syntax_errors
from tarmac.tools.edit import decode, read_bytes, unified_diff
from tarmac.tools.edit.text_file import is_binary
from tarmac.tools.file_access import ResolvedPath, aside, digest
from tarmac.tools.list_files import suggestion
from tarmac.tools.output import Problem
from tarmac.tools.output.parsers import parse_problems
from tarmac.tools.read_file import unsaved_text
from tarmac.tools.tool import Bench, Done, EditorBuffers, Go, Intent, Ready, Seen, Want

MOST_BYTES: Final = 1 << 20
MOST_PROBLEMS: Final = 10
PATIENCE: Final = 15.0  # seconds for all commands of an edit
MOST_OUTPUT: Final = 1 << 20


def new_syntax_errors(path: Path, before: bytes | None, after: bytes | None) -> tuple[Problem, ...]:
    """The syntax errors of a file that were not there before the edit."""
    language = language_of(path)
    if language is None or after is None or len(after) > MOST_BYTES:
        return ()
    found = syntax_errors(after, language)
    if not found:
        return ()
    if before is not None and len(syntax_errors(before, language)) >= len(found):
        return ()  # it was broken before, or its grammar does not know everything
    return tuple(Problem(str(path.name), line, text) for line, text in found)


async def reported(bench: Bench, files: Sequence[Path]) -> list[Problem]:
    """What the configured commands say of these files."""
    found: list[Problem] = []
    try:
        async with asyncio.timeout(PATIENCE):
            for file in files:
                for argv in _commands(bench, file):
                    found += [each for each in await _run(argv, bench.workspace) if _is(file, each, bench.workspace)]
    except TimeoutError:
        pass  # a linter that hangs does not hinder the edit
    return list(dict.fromkeys(found))


def _new(found: Sequence[Problem], before: Sequence[Problem]) -> list[Problem]:
    """The problems that were not there before, on whatever line."""
    known = Counter((each.path, each.code, each.text) for each in before)
    new = []
    for each in found:
        key = (each.path, each.code, each.text)
        known[key] -= 1
        if known[key] < 0:
            new.append(each)
    return new


def _commands(bench: Bench, file: Path) -> list[list[str]]:
    found = []
    for rule in bench.settings.diagnostics:
        pattern, _, command = rule.partition(":")
        if fnmatch.fnmatch(file.name, pattern.strip()):
            words = shlex.split(command)
            found.append([each.replace("{file}", str(file)) for each in words])
    return found


async def _run(argv: list[str], cwd: Path) -> tuple[Problem, ...]:
    path = program(argv[0]) if argv else None
    if path is None:
        return ()
    async with running([path, *argv[1:]], cwd=cwd) as process:
        assert process.stdout is not None and process.stderr is not None
        out, err = await asyncio.gather(process.stdout.read(MOST_OUTPUT), process.stderr.read(MOST_OUTPUT))
    return parse_problems((out + b"\n" + err).decode("utf-8", "replace"))


def _is(file: Path, problem: Problem, workspace: Path) -> bool:
    return (workspace / problem.path) == file


def problems_text(problems: Sequence[Problem]) -> str:
    """New problems, for the model; empty if there are none."""
    if not problems:
        return ""
    rows = [
        f"{each.place}{f' {each.code}' if each.code else ''}: {each.text[:200]}" for each in problems[:MOST_PROBLEMS]
    ]
    more = [f"and {len(problems) - MOST_PROBLEMS} more"] if len(problems) > MOST_PROBLEMS else []
    return "\n".join(["New problems after this edit:", *rows, *more])


MOST_DIFF = 2000  # lines of the diff that a front end gets
LONGEST_IN_DIFF = 1000  # characters of a line in the diff
MOST_TOLD = 60  # lines of the diff that the model gets if its edit did not match exactly
_MARK = b"\xef\xbb\xbf"
KNOWN = "You do not need to read the file again: it has the content that you wrote."


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The content of a file before and after an edit. None means no file."""

    place: ResolvedPath
    before: bytes | None
    after: bytes | None
    like: Path | None = None  # the file that it was renamed from, whose mode it keeps
    whole: bool = False  # whatever it was before

    @property
    def operation(self) -> str:
        return "created" if self.before is None else "deleted" if self.after is None else "modified"


@dataclass(slots=True)
class Save:
    """A change on its way to the disk. An editor may have written it already."""

    change: Change
    on_disk: bytes | None = field(init=False)
    exact: bool = True  # False: the editor saved another text, and that stays
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.on_disk = self.change.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A file to edit: its path, its content, and whether an error may quote it."""

    place: ResolvedPath
    data: bytes | None
    may_quote: bool


async def open_original(bench: Bench, said: str, *, must_exist: bool = True) -> Original:
    """The file to edit. ToolFailed if it may not be written, is missing, or has changed since the task read it."""
    place = await file_access.looking(bench, file_access.to_write, said)
    try:
        data = await asyncio.to_thread(bench.files.system.read, place.path)
    except TarmacError as error:
        raise ToolFailed(error.what, hint=error.hint) from None
    if data is None and must_exist:
        near = await file_access.beside(bench, suggestion, place)
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
    if bench.buffers is None or data is None:
        return ""
    try:
        theirs = await unsaved_text(bench.buffers, place.path, data)
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
    for each in changes:
        if each.after is not None and is_binary(each.after) and not is_binary(each.before or b""):
            raise ToolFailed(
                f"'{each.place.name}' was not written: the new text has a NUL character, and would be a binary file.",
                hint="write an escape of the language, such as \\0, or make the file with a command",
            )
    warnings = {each.place.path: await _warnings(bench, each) for each in changes if each.whole}
    diffs = await aside(size, lambda: [_diff(each) for each in changes])
    intents = await aside(size, lambda: tuple(map(_intent, changes)))

    async def act(go: Go) -> Done:
        kept, names = _refused(changes, go)
        allowed = [each for n, each in enumerate(changes) if n not in kept]
        if not allowed:
            raise ToolFailed(f"The person did not approve the change to {names}, so nothing was changed.")
        checked = [each.place.path for each in allowed if each.after is not None] if _checks(bench) else []
        before = await reported(bench, [path for path in checked if path.exists()])
        silent: dict[Path, str] = {}
        for each in allowed:
            await file_access.looking(bench, file_access.unmoved, each.place)
            silent[each.place.path] = await check_saved(bench, each.place, each.before)
        editor = None if any(silent.values()) else bench.buffers  # one that was silent is not waited for again
        saves = [Save(each) for each in allowed] if editor is None else await _write_through(editor, allowed)
        extra = await asyncio.to_thread(_write, saves, bench.files.system.afresh())
        told = [
            _told(
                each.change,
                [
                    *notes,
                    *each.notes,
                    *warnings.get(each.change.place.path, ()),
                    *extra.get(each.change.place.path, ()),
                ],
                known=each.exact and not partly,
            )
            for each in saves
        ]
        told += [note for note in dict.fromkeys(silent.values()) if note]
        told += (
            [f"The person did not approve the change to {names}: left as it was. The rest was done."] if kept else []
        )
        told += await _problems(bench, allowed, checked, before)
        made = [each for n, each in enumerate(diffs) if n not in kept]
        if show_diff:
            told += [f"The changes as they were made:\n{_bounded(each['diff'])}" for each in made]
        written = [each for n, each in enumerate(intents) if n not in kept]
        return Done(
            content=(Text("\n".join(told)),),
            details={"files": made},
            seen=tuple(Seen(path=each.path, digest=each.after, how="edited") for each in written),
        )

    return Ready(
        title=title,
        done=done,
        wants=tuple(
            Want(
                action=WriteFile(
                    each.place.full, new=each.before is None, deletes=each.after is None, leads_to=each.place.path
                ),
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


async def _warnings(bench: Bench, change: Change) -> list[str]:
    """What the model may not have meant: it replaces a file that it never read, or there is one of almost that name."""
    path = change.place.path
    if change.before is not None:
        lines = change.before.count(b"\n") + (change.before[-1:] not in (b"", b"\n"))
        read = path in bench.seen or not lines
        return [] if read else [f"It was there, and you had not read it: {lines} lines were replaced."]
    try:
        names = await asyncio.to_thread(bench.files.system.entries, str(path.parent))
    except (OSError, TarmacError):
        return []
    alike = [name for name, _ in names if name != path.name and name.casefold() == path.name.casefold()]
    return [f"There is also {alike[0]!r}, whose name differs only in upper and lower case."] if alike else []


def _refused(changes: Sequence[Change], go: Go) -> tuple[set[int], str]:
    """Which changes are left out, and their names. Of a file that is renamed, a no to one half is a no to both."""
    left = set(go.refused)
    for n, each in enumerate(changes):
        halves = {n, *(m for m, other in enumerate(changes) if each.like and other.place.path == each.like)}
        if halves & left:
            left |= halves
    return left, ", ".join(changes[n].place.name for n in sorted(left))


def _checks(bench: Bench) -> bool:
    return bool(bench.settings.diagnostics) and not bench.files.elsewhere


async def _problems(
    bench: Bench, changes: Sequence[Change], checked: Sequence[Path], before: Sequence[Problem]
) -> list[str]:
    """A sentence about the problems that are new, if there are some."""
    size = sum(len(each.after or b"") for each in changes)
    found = [
        problem
        for each in changes
        for problem in await aside(size, partial(new_syntax_errors, each.place.path, each.before, each.after))
    ]
    if not found and checked:
        found += _new(await reported(bench, checked), before)
    return [text] if (text := problems_text(found)) else []


def unchanged(place: ResolvedPath) -> Ready:
    """A call that has nothing to do."""

    async def act(_: Go) -> Done:
        return Done.text(f"No changes needed for '{place.name}': it already has this content.")

    return Ready(title=f"Checking {place.name}", done=f"Checked {place.name}", act=act)


async def _write_through(editor: EditorBuffers, changes: Sequence[Change]) -> list[Save]:
    """Let the editor write what it can, so that its buffers and its own review show the change. Then look at the disk.

    The editor has no condition such as "if it still is …". So the disk is compared before and after. Files that are
    not plain UTF-8 are left to us, and so are all of them if one is no longer what the edit was made for.
    """
    saves = [Save(each) for each in changes]
    if not all(await asyncio.gather(*(asyncio.to_thread(_is_before, each) for each in changes))):
        return saves  # the write fails and says why
    for save in saves:
        change = save.change
        text = _plain_text(change)
        if text is None:
            continue
        try:
            if not await editor.write(change.place.path, text):
                return saves
        except EditorSilent as silent:
            save.notes.append(f"{silent.what}. Tarmac wrote the file itself. The user was told.")
            answered = False
        except ToolDenied as denied:  # the editor's own question
            written = [each.change.place.name for each in saves if each.on_disk != each.change.before]
            so_far = f" Written before that: {', '.join(written)}." if written else ""
            raise ToolDenied(f"{denied.what}{so_far}") from None
        else:
            answered = True
        await asyncio.to_thread(_look_after, save, answered=answered)
    return saves


def _is_before(change: Change) -> bool:
    """Whether the file still has the content that the edit was made for. A missing folder of a new file is made."""
    try:
        if read_bytes(change.place.path) != change.before:
            return False
        if change.before is None:
            change.place.path.parent.mkdir(parents=True, exist_ok=True)
    except (TarmacError, OSError):
        return False
    return True


def _plain_text(change: Change) -> str | None:
    """The text that an editor can write as it is: UTF-8 without a mark, of a file that is not read-only. Else None."""
    path = change.place.path
    if change.after is None or change.like is not None or is_binary(change.after) or change.after.startswith(_MARK):
        return None
    if change.before is not None and (change.before.startswith(_MARK) or not path.stat().st_mode & 0o222):
        return None
    try:
        return change.after.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _look_after(save: Save, *, answered: bool) -> None:
    """What the editor made of the file."""
    try:
        found = read_bytes(save.change.place.path)
    except TarmacError:
        return
    if found == save.change.after or (found is not None and _same_text(found, save.change.after)):
        save.on_disk = found  # but for line endings: ours are written over them
    elif answered and found is not None and found != save.change.before:
        save.exact, save.on_disk = False, found
        save.notes.append("The editor changed the text when it saved the file. Read the file again before you edit it.")


def _same_text(found: bytes, wanted: bytes | None) -> bool:
    try:
        return wanted is not None and decode(found).text.rstrip("\n") == decode(wanted).text.rstrip("\n")
    except TarmacError:
        return False


def _write(saves: Sequence[Save], system: FileSystem) -> dict[Path, list[str]]:
    """Write all changes or none. After a failure, what was written is undone."""
    changes = [each.change for each in saves]
    made: list[Change] = []
    notes: dict[Path, list[str]] = {}
    modes = {each.like: mode for each in changes if each.like is not None and (mode := _mode(each.like, system))}
    try:
        for save in saves:
            each, found = save.change, save.on_disk
            if each.after is None:
                system.remove(each.place.path, expected=found)
            elif save.exact and found != each.after:
                saved = system.save(each.place.path, each.after, expected=found, new=found is None)
                if saved.other_names:
                    notes[each.place.path] = [f"{saved.other_names} other names (hard links) keep the old content."]
                if each.like in modes:
                    system.chmod(saved.path, modes[each.like])
            made.append(each)
    except TarmacError as error:
        left = [each.place.name for each in reversed(made) if not _undo(each, system)]
        also = f" These could not be restored: {', '.join(left)}." if left else " Nothing was changed."
        raise ToolFailed(f"{error.what}.{also}", hint=error.hint) from None
    return notes


def _mode(path: Path, system: FileSystem) -> int:
    """The mode of a file; 0 if there is none."""
    try:
        return stat.S_IMODE(system.stat(str(path)).st_mode)
    except FileNotFoundError:
        return 0


def _undo(change: Change, system: FileSystem) -> bool:
    try:
        if change.before is None:
            system.remove(change.place.path, expected=change.after)
        else:
            system.save(change.place.path, change.before, expected=change.after, new=change.after is None)
    except TarmacError:
        return False
    return True


def _told(change: Change, notes: Sequence[str], *, known: bool) -> str:
    """The result for one file, in the form of Roo-Code."""
    rows = [
        "<file_write_result>",
        f"<path>{change.place.name}</path>",
        f"<operation>{change.operation}</operation>",
        *(f"<notice>{note}</notice>" for note in ((*notes, KNOWN) if known and change.after is not None else notes)),
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
