"""Trials of commands that are asked about: run on a copy of the workspace, shown, then kept or discarded.

Trials.run(task, question) → TrialReport, shown to the person → keep(question) → the answer "done" | discard(question)
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.errors import BadRequest, SandboxUnavailable
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.policy.trial import Kind, Trial, TrialChange, trial_program
from tarmac.show import details
from tarmac.tasks.events import QuestionAsked, QuestionId
from tarmac.tools.edit.unified_diff import unified_diff
from tarmac.tools.report import labelled
from tarmac.vt.text import clean

if TYPE_CHECKING:
    from tarmac.tasks.task import Task

MOST_CHANGES: Final = 100  # files of a trial that are shown
LONGEST_SHOWN: Final = 16_000  # characters of its output
TO_MODEL: Final = 16_000  # characters of the output
LARGEST_SHOWN: Final = 1 << 20  # bytes of a file whose diff is shown


@dataclass(frozen=True, slots=True)
class ChangeShown:
    """A file that a tried command would change, as a person sees it."""

    path: str  # in the workspace
    kind: Kind
    diff: str  # "": it is not text, or deleted


@dataclass(frozen=True, slots=True)
class TrialReport:
    """What a tried command did, as a person sees it."""

    changes: tuple[ChangeShown, ...]
    more: int  # changes that are not listed
    output: str
    exit_code: int | None  # None: it did not end in time

    @classmethod
    def of(cls, trial: Trial) -> "TrialReport":
        """(It reads files: not for the event loop.)"""
        shown = trial.changes[:MOST_CHANGES]
        changes = tuple(
            ChangeShown(str(each.path.relative_to(trial.workspace)), each.kind, diff_of(each)) for each in shown
        )
        return cls(changes, len(trial.changes) - len(shown), clean(trial.output)[-LONGEST_SHOWN:], trial.exit_code)


def can_try() -> bool:
    """Whether commands can be tried on this machine. `tarmac doctor` says why not."""
    try:
        trial_program()
    except (SandboxUnavailable, OSError):
        return False
    return True


async def try_question(task: "Task", asked: QuestionAsked) -> Trial:
    """Run the command of a question on a copy."""
    found = details.requests(asked.details)
    if asked.ask != "command" or len(found) != 1:
        raise BadRequest("only a single command can be tried")
    text = (details.text(found[0], "shown"), Path(details.text(found[0], "directory")))
    return await task.try_command(*text, details.text(found[0], "digest"))


async def keep(task: "Task", trial: Trial) -> tuple[Answer, list[str]]:
    """Make its changes: the answer to the question, and what could not be changed."""
    failed = await task.keep_trial(trial)
    return Answer(AnswerKind.DONE, text=told(trial, failed)), failed


def diff_of(change: TrialChange) -> str:
    """The change of a text; empty when it is none."""
    if change.new is None:
        return ""
    try:
        if change.new.is_symlink() or change.new.stat().st_size > LARGEST_SHOWN:
            return ""
        before = None if change.kind == "added" else change.path.read_bytes()[:LARGEST_SHOWN].decode()
        after = change.new.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if "\0" in after else str(unified_diff(before, after, str(change.path)))


def told(trial: Trial, failed: list[str]) -> str:
    """What the model learns in place of the command's result."""
    code = "did not end in time" if trial.exit_code is None else f"ended with exit code {trial.exit_code}"
    names = "\n".join(f"{each.kind}: {each.path.relative_to(trial.workspace)}" for each in trial.changes[:100])
    text = clean(trial.output)[-TO_MODEL:]
    lines = [
        f"The person ran this command on a copy of the workspace, without a network and with an empty /tmp. It {code}.",
        "They kept its changes, so do not run it again.",
        names or "It changed no files.",
        *(f"Not kept: {each}" for each in failed),
        labelled(text, what="Its output") if text.strip() else "It printed nothing.",
    ]
    return "\n".join(lines)


class Trials:
    """Those that wait for the person's word. `aclose` discards them."""

    def __init__(self) -> None:
        self._made: dict[QuestionId, Trial] = {}

    async def run(self, task: "Task", question: QuestionId) -> TrialReport:
        """Try the command of an open question; the trial before is discarded."""
        asked = next((each for each in task.questions if each.question == question), None)
        if asked is None:
            raise BadRequest(f"the question {question} is not open", hint="somebody may have answered it")
        trial = await try_question(task, asked)
        await self.discard(question)
        self._made[question] = trial
        return await asyncio.to_thread(TrialReport.of, trial)

    async def keep(
        self, task: "Task", question: QuestionId, *, by: str, kept: Callable[[list[str]], object] = len
    ) -> list[str]:
        """Make the changes of the trial, and answer the question so; what could not be changed.

        `kept` hears of that before the task goes on.
        """
        trial = self._made.get(question)
        if trial is None or question not in {each.question for each in task.questions}:
            raise BadRequest("there is no trial to keep", hint="try the command first")
        try:
            answer, failed = await keep(task, trial)
            kept(failed)
            await task.answer(question, Answer(answer.kind, text=answer.text, by=by))
        finally:
            await self.discard(question)
        return failed

    async def discard(self, question: QuestionId) -> None:
        """Throw the copy away."""
        if (trial := self._made.pop(question, None)) is not None:
            await asyncio.to_thread(trial.discard)

    async def aclose(self) -> None:
        for question in list(self._made):
            await self.discard(question)
