"""Get a person's answer to a task, wherever they are asked: in the session, or line by line.

QuestionAsked ─QuestionDialog→ Answer → task.answer()
AwaitingInput(secret) ─typed unseen→ the program that asked, past the task, its log and the model

The key `t` of a question tries the command on a copy of the workspace, then keeps or discards what it changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from tarmac.cli.driven import Driven
from tarmac.errors import BadRequest, SecretNotAsked, TarmacError, TerminalNotFound
from tarmac.policy.trial import CONTAINS, LONGEST
from tarmac.server.joined_task import JoinedTask, wants_secret
from tarmac.server.trials import TrialReport, Trials, can_try
from tarmac.show.look import Look, bounded, diff_lines, harmless, one_line, wrapped
from tarmac.show.pictures import pictures_in
from tarmac.show.question import Choices, DialogAsker, QuestionDialog
from tarmac.tasks.events import QuestionAnswered, QuestionAsked, QuestionId
from tarmac.tasks.questions import said_in, who_answered
from tarmac.tasks.task import Task
from tarmac.terminals.events import AwaitingInput, TerminalEvent
from tarmac.terminals.execution import Execution
from tarmac.terminals.pool import Pool
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Terminal

MOST_FILES: Final = 40  # shown; the rest is counted
MOST_LINES: Final = 30  # of a diff, or of the output
_COLOURS: Final = {"added": "32", "changed": "36", "deleted": "31"}


class OwnTrials:
    """Trials for a task of this process, with the verbs of a joined one."""

    def __init__(self, task: Task) -> None:
        self._task, self._trials = task, Trials()

    async def try_command(self, question: QuestionId) -> TrialReport:
        return await self._trials.run(self._task, question)

    async def keep_trial(self, question: QuestionId, kept: Callable[[list[str]], object]) -> None:
        await self._trials.keep(self._task, question, by="cli", kept=kept)

    async def discard_trial(self, question: QuestionId) -> None:
        await self._trials.discard(question)


async def try_it(
    task: Task | JoinedTask, asker: DialogAsker, asked: QuestionAsked, sent: Callable[[bool], object]
) -> None:
    """Try it, show it, ask. Keeping answers the question; otherwise it stays. `sent`: an answer is on its way."""
    trials = task if isinstance(task, JoinedTask) else OwnTrials(task)
    about = wrapped(f"  {CONTAINS} At most {LONGEST:g} s.", asker.look.columns - 1, indent="  ")
    asker.print(asker.look.paint("2", "\n".join(about)))
    kept = False

    def told(failed: list[str]) -> None:
        but = ", without the following. `/undo` reverts what was kept." if failed else ". `/undo` reverts them."
        asker.print(f"  → kept: {_count(report)}{but}")
        for each in failed:
            asker.print(asker.look.paint("31", f"  not kept: {one_line(each)}"))

    try:
        report = await trials.try_command(asked.question)
        asker.print("\n".join(_lines(asker.look, report)))
        keys = (("k", "keep these changes"), ("d", "discard them, and decide about the command"))
        line = (await asker.ask(Choices(keys=keys)) or "").strip().lower()
        if line not in ("k", "keep"):
            asker.print("  → discarded: nothing was changed")
            return
        sent(True)
        await trials.keep_trial(asked.question, told)
        kept = True
    except (TarmacError, OSError) as error:
        asker.print(asker.look.paint("31", f"  {one_line(str(error))}"))
        return
    finally:
        sent(False)
        if not kept:
            await _discard(trials, asked.question)


async def _discard(trials: OwnTrials | JoinedTask, question: QuestionId) -> None:
    try:
        await trials.discard_trial(question)
    except TarmacError:  # the process that has it is gone, and the copy with it
        pass


def _lines(look: Look, report: TrialReport) -> list[str]:
    ended = report.exit_code is not None
    code = f"exit code {report.exit_code}" if ended else "it did not end in time and was stopped"
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


async def answer_question(
    task: Driven,
    asked: QuestionAsked,
    asker: DialogAsker,
    *,
    sent: Callable[[bool], object] = bool,
    allow_edits: Callable[[], object] | None = None,
    commands: Collection[str] = (),
) -> None:
    """Ask until the task takes an answer, or no longer wants one. `sent`: whether an answer is on its way.

    `commands` are the slash commands of the session, which are not answers.
    """
    tries: Callable[[], Awaitable[None]] | None = None
    if isinstance(task, Task | JoinedTask) and await asyncio.to_thread(can_try):
        tries = partial(try_it, task, asker, asked, sent)
    typing = partial(task.hold, asked.question)
    dialog = QuestionDialog(asked, asker, typing=typing, tries=tries, allow_edits=allow_edits, commands=commands)
    while is_open(task, asked):
        said = await dialog.answered()
        if said is None:
            continue
        sent(True)
        try:
            images = tuple(await asyncio.to_thread(pictures_in, said.text))
            await task.answer(asked.question, replace(said, images=images, by="cli"))
            return
        except BadRequest as error:
            asker.print(f"  {complaint(error)}")
        finally:
            sent(False)


def is_open(task: Driven, asked: QuestionAsked) -> bool:
    """Whether the task still wants an answer."""
    return asked.question in {each.question for each in task.questions}


class SecretWanted(Protocol):
    """A command that asks for a secret: in this process, or in that of a joined task."""

    def prompt(self) -> tuple[str, str] | None:
        """The name of the program, and its question. None: it no longer asks."""

    async def over(self) -> None:
        """Wait until it no longer asks."""

    async def send(self, secret: str) -> None: ...


@dataclass(frozen=True, slots=True)
class OwnSecret:
    """One that a command of this process asks for."""

    terminal: Terminal
    execution: Execution

    def prompt(self) -> tuple[str, str] | None:
        wants = self.execution.waiting
        return (wants.name, wants.prompt) if wants is not None and wants.wants == "secret" else None

    async def over(self) -> None:
        inputs, moved = self.execution.inputs, asyncio.Event()
        unsubscribe = self.terminal.subscribe(lambda _: moved.set())
        try:
            while self.execution.running and self.execution.inputs == inputs:
                moved.clear()
                await moved.wait()
        finally:
            unsubscribe()

    async def send(self, secret: str) -> None:
        await self.execution.send_secret(secret, timeout=2)


@dataclass(frozen=True, slots=True)
class JoinedSecret:
    """One that a command of a joined task asks for."""

    task: JoinedTask
    terminal: str

    def prompt(self) -> tuple[str, str] | None:
        row = self.task.terminals.get(self.terminal)
        return (row["awaits"]["name"], row["awaits"]["prompt"]) if row and wants_secret(row) else None

    async def over(self) -> None:
        while self.prompt() is not None and not self.task.gone:
            await self.task.terminals_moved()

    async def send(self, secret: str) -> None:
        await self.task.send_secret(self.terminal, secret)


async def pass_secret(wanted: SecretWanted, asker: DialogAsker) -> None:
    """Ask for a secret and hand it to the program, while that still wants it."""
    asks = wanted.prompt()
    if asks is None:
        return
    name = one_line(asks[0]) or "A command"
    head = asker.look.paint("1;35", f"? {name} asks for a secret. It goes to that program alone.")
    prompt = harmless(asks[1].strip()) or "secret:"
    choices = Choices(words="Enter sends it, Ctrl-D sends nothing", secret=True, head=f"{head}\n  {prompt}")
    typed = asyncio.create_task(asker.ask(choices))
    over = asyncio.create_task(wanted.over())
    try:
        await asyncio.wait({typed, over}, return_when=asyncio.FIRST_COMPLETED)
        if typed.done() and (secret := typed.result()) is not None:
            await wanted.send(secret)
        elif not typed.done():
            asker.print("  The program no longer asks: it ended, or another window answered.")
    except SecretNotAsked:
        asker.print("  The program no longer asks for it. Nothing was typed.")
    except TarmacError as error:
        asker.print(f"  {one_line(error.what)}")
    finally:
        for each in (typed, over):
            each.cancel()
        await asyncio.gather(typed, over, return_exceptions=True)


class SecretWatch:
    """Passes on each command of one task that begins to ask for a secret. Close it when the task is left."""

    def __init__(self, registry: Pool, task: Driven, wanted: Callable[[SecretWanted], object]) -> None:
        self._registry, self._task, self._wanted = registry, task, wanted
        self._asked: set[str] = set()  # terminals of a joined task whose commands ask
        self.close = registry.subscribe(self._heard)

    def again(self) -> None:
        """Pass on what still asks."""
        if isinstance(self._task, JoinedTask):
            self._asked.clear()
            self.rows_changed()
            return
        for terminal in self._registry.listing(task=self._task.id, busy=True):
            if terminal.current is not None and (found := OwnSecret(terminal, terminal.current)).prompt() is not None:
                self._wanted(found)

    def rows_changed(self) -> None:
        """A terminal of a joined task has changed: its command may ask for a secret now."""
        assert isinstance(self._task, JoinedTask)
        before = self._asked
        self._asked = {row["id"] for row in self._task.terminal_rows if wants_secret(row)}
        for terminal in self._asked - before:
            self._wanted(JoinedSecret(self._task, terminal))

    def _heard(self, event: TerminalEvent) -> None:
        if not isinstance(event, AwaitingInput) or event.wants != "secret":
            return
        try:
            terminal = self._registry.get(event.terminal)
        except TerminalNotFound:
            return
        if terminal.task == self._task.id and terminal.current is not None:
            self._wanted(OwnSecret(terminal, terminal.current))


def hides_input(registry: Pool, task: Driven) -> bool:
    """Whether a command of this task hides what is typed: a line may be meant for it, even if it does not read yet."""
    if isinstance(task, JoinedTask):
        return task.asks_for_secret
    for each in registry.listing(task=task.id, busy=True):
        session = each.session if isinstance(each, PtyTerminal) else None
        if session is not None and session.alive and session.pty.hides_input():
            return True
    return False


def other_answer(answered: QuestionAnswered) -> str:
    """Who else answered a question that is on the screen, and how."""
    return one_line(f"{who_answered(answered, told='cli')}{said_in(answered)}")


def complaint(error: TarmacError) -> str:
    """An error and its hint, on one line."""
    return one_line(error.what) + (f" ({one_line(error.hint)})" if error.hint else "")
