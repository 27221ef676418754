"""The key `t` of a question: try the command on a copy of the workspace, then keep or discard what it changed."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.errors import SandboxUnavailable, TarmacError
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.policy.trial import CONTAINS, LONGEST, Trial, TrialChange, trial_program
from tarmac.show import details
from tarmac.show.diffs import bounded, diff_lines
from tarmac.show.harmless import one_line
from tarmac.show.ui import Choices
from tarmac.tasks.events import QuestionAsked
from tarmac.tasks.task import Task
from tarmac.tools.boundary import labelled
from tarmac.tools.edit.unified_diff import unified_diff
from tarmac.vt.text import clean

if TYPE_CHECKING:
    from tarmac.cli.interactive import Interactive

MOST_FILES: Final = 40  # shown; the rest is counted
MOST_LINES: Final = 30  # of a diff, or of the output
TO_MODEL: Final = 16_000  # characters of the output
LARGEST_SHOWN: Final = 1 << 20  # bytes of a file whose diff is shown
_COLOURS: Final = {"added": "32", "changed": "36", "deleted": "31"}


def can_try() -> bool:
    """Whether commands can be tried on this machine. `tarmac doctor` says why not."""
    try:
        trial_program()
    except (SandboxUnavailable, OSError):
        return False
    return True


async def try_it(session: "Interactive", asked: QuestionAsked) -> Answer | None:
    """Try it, show it, ask. None: the question stays as it was."""
    task = session.task
    request = details.requests(asked.details)[0]
    if not isinstance(task, Task):
        return None
    session.ui.print(session.look.paint("2", f"  {CONTAINS} At most {LONGEST:g} s."))
    try:
        trial = await task.try_command(
            details.text(request, "shown"), Path(details.text(request, "directory")), details.text(request, "digest")
        )
    except (TarmacError, OSError) as error:
        session.ui.print(session.look.paint("31", f"  {one_line(str(error))}"))
        return None
    try:
        session.ui.print("\n".join(_lines(session, trial)))
        keys = (("k", "keep these changes"), ("d", "discard them, and decide about the command"))
        line = (await session.ui.ask(Choices(keys=keys)) or "").strip().lower()
        if line not in ("k", "keep"):
            session.ui.print("  → discarded: nothing was changed")
            return None
        failed = await task.keep_trial(trial)
    finally:
        await asyncio.to_thread(trial.discard)
    for each in failed:
        session.ui.print(session.look.paint("31", f"  not kept: {one_line(each)}"))
    session.ui.print(f"  → kept: {_count(trial)}. `/undo` takes them back.")
    return Answer(AnswerKind.DONE, text=_told(trial, failed))


def _lines(session: "Interactive", trial: Trial) -> list[str]:
    look = session.look
    code = "it did not end in time, and was ended" if trial.exit_code is None else f"exit code {trial.exit_code}"
    lines = [look.paint("1", f"  On the copy: {code}; {_count(trial)}")]
    output = clean(trial.output).rstrip()
    lines += [
        f"  {look.paint('2', '│')} {one_line(line)}" for line in bounded(output.split("\n"), MOST_LINES) if output
    ]
    for each in trial.changes[:MOST_FILES]:
        name = one_line(str(each.path.relative_to(trial.workspace)))
        lines.append(f"  {look.paint(_COLOURS[each.kind], each.kind)}  {name}")
        if each.kind != "deleted" and (diff := _diff(each)):
            lines += diff_lines(diff, look, most=MOST_LINES)
    if len(trial.changes) > MOST_FILES:
        lines.append(f"  … and {len(trial.changes) - MOST_FILES:,} files more")
    return lines


def _diff(change: TrialChange) -> str:
    """The change of a text; empty when it is none."""
    assert change.new is not None
    try:
        if change.new.is_symlink() or change.new.stat().st_size > LARGEST_SHOWN:
            return ""
        before = None if change.kind == "added" else change.path.read_bytes()[:LARGEST_SHOWN].decode()
        after = change.new.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if "\0" in after else str(unified_diff(before, after, str(change.path)))


def _count(trial: Trial) -> str:
    kinds = [each.kind for each in trial.changes]
    counted = [f"{kinds.count(kind)} {kind}" for kind in ("added", "changed", "deleted") if kind in kinds]
    return f"files: {', '.join(counted)}" if counted else "no file would change"


def _told(trial: Trial, failed: list[str]) -> str:
    """What the model learns in place of the command's result."""
    code = "did not end in time" if trial.exit_code is None else f"ended with exit code {trial.exit_code}"
    names = "\n".join(f"{each.kind}: {each.path.relative_to(trial.workspace)}" for each in trial.changes[:100])
    text = clean(trial.output)[-TO_MODEL:]
    lines = [
        f"The person ran this command on a copy of the workspace, without a network. It {code}.",
        "They kept its changes, so do not run it again.",
        names or "It changed no files.",
        *(f"Not kept: {each}" for each in failed),
        labelled(text, what="Its output") if text.strip() else "It printed nothing.",
    ]
    return "\n".join(lines)
