"""The key `t` of a question: try the command on a copy of the workspace, then keep or discard what it changed."""

from collections.abc import Callable
from typing import Final

from tarmac.errors import TarmacError
from tarmac.policy.trial import CONTAINS, LONGEST
from tarmac.server.joined_task import JoinedTask
from tarmac.server.trials import TrialReport, Trials
from tarmac.show.dialog import Choices, DialogAsker
from tarmac.show.diffs import bounded, diff_lines
from tarmac.show.harmless import one_line
from tarmac.show.look import Look
from tarmac.tasks.events import QuestionAsked, QuestionId
from tarmac.tasks.task import Task

MOST_FILES: Final = 40  # shown; the rest is counted
MOST_LINES: Final = 30  # of a diff, or of the output
_COLOURS: Final = {"added": "32", "changed": "36", "deleted": "31"}


class OwnTrials:
    """Trials for a task of this process, with the verbs of a joined one."""

    def __init__(self, task: Task) -> None:
        self._task, self._trials = task, Trials()

    async def try_command(self, question: QuestionId) -> TrialReport:
        return await self._trials.run(self._task, question)

    async def keep_trial(self, question: QuestionId) -> list[str]:
        return await self._trials.keep(self._task, question, by="cli")

    async def discard_trial(self, question: QuestionId) -> None:
        await self._trials.discard(question)


async def try_it(
    task: Task | JoinedTask, asker: DialogAsker, asked: QuestionAsked, sent: Callable[[bool], object]
) -> None:
    """Try it, show it, ask. Keeping answers the question; otherwise it stays. `sent`: an answer is on its way."""
    trials = task if isinstance(task, JoinedTask) else OwnTrials(task)
    asker.print(asker.look.paint("2", f"  {CONTAINS} At most {LONGEST:g} s."))
    kept = False
    try:
        report = await trials.try_command(asked.question)
        asker.print("\n".join(_lines(asker.look, report)))
        keys = (("k", "keep these changes"), ("d", "discard them, and decide about the command"))
        line = (await asker.ask(Choices(keys=keys)) or "").strip().lower()
        if line not in ("k", "keep"):
            asker.print("  → discarded: nothing was changed")
            return
        asker.print(f"  → kept: {_count(report)}. `/undo` takes them back.")  # before the task goes on
        sent(True)
        failed = await trials.keep_trial(asked.question)
        kept = True
    except (TarmacError, OSError) as error:
        asker.print(asker.look.paint("31", f"  {one_line(str(error))}"))
        return
    finally:
        sent(False)
        if not kept:
            await _discard(trials, asked.question)
    for each in failed:
        asker.print(asker.look.paint("31", f"  not kept: {one_line(each)}"))


async def _discard(trials: OwnTrials | JoinedTask, question: QuestionId) -> None:
    try:
        await trials.discard_trial(question)
    except TarmacError:  # the process that has it is gone, and the copy with it
        pass


def _lines(look: Look, report: TrialReport) -> list[str]:
    ended = report.exit_code is not None
    code = f"exit code {report.exit_code}" if ended else "it did not end in time, and was ended"
    lines = [look.paint("1", f"  On the copy: {code}; {_count(report)}")]
    output = report.output.rstrip()
    lines += [
        f"  {look.paint('2', '│')} {one_line(line)}" for line in bounded(output.split("\n"), MOST_LINES) if output
    ]
    for each in report.changes[:MOST_FILES]:
        lines.append(f"  {look.paint(_COLOURS[each.kind], each.kind)}  {one_line(each.path)}")
        if each.diff:
            lines += diff_lines(each.diff, look, most=MOST_LINES)
    if (more := len(report.changes) + report.more - MOST_FILES) > 0:
        lines.append(f"  … and {more:,} files more")
    return lines


def _count(report: TrialReport) -> str:
    kinds = [each.kind for each in report.changes]
    counted = [f"{kinds.count(kind)} {kind}" for kind in ("added", "changed", "deleted") if kind in kinds]
    counted += [f"{report.more:,} more"] if report.more else []
    return f"files: {', '.join(counted)}" if counted else "no file would change"
