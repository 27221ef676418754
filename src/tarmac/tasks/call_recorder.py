"""Records a call in the task's log, and shows what it prints while it runs.

CallJudged … → ToolStarted, on disk before the call acts → CommandOutput … → FileSeen …, ToolFinished

Every call of the model gets exactly one result. A call that failed, was denied or was not made gets its ToolFinished as
well. `settle` gives one to the calls that were cut off by the person, by a limit, or with the process. It says
everything that is known: of a file, its hash says whether it was written; of a command, there is its output so far.
While a call waits for a command, the person may send that to the background, stop it, or say something
(`RunningCommands`).
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tarmac.calls.call_judge import Judged, Permission
from tarmac.calls.pipeline import Call, CallResult
from tarmac.errors import BadRequest, StateUnavailable, TerminalNotFound
from tarmac.events import TerminalId
from tarmac.file_system import FileSystem
from tarmac.models.messages import Blob, Image, Part, Text, ToolUse
from tarmac.paths import shown
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.context import now
from tarmac.tasks.events import (
    CallId,
    CallJudged,
    CommandOutput,
    FileIntent,
    FileSeen,
    Noted,
    Outcome,
    QuestionId,
    TaskEvent,
    TaskSaved,
    TaskStarted,
    ToolFinished,
    ToolStarted,
)
from tarmac.tasks.questions import Questions, new_question
from tarmac.tasks.repetition import Repetition, fingerprint
from tarmac.tasks.signals import OutputStreamed, ProgressMade
from tarmac.tasks.state import TaskState, Unfinished, digest_of, fates
from tarmac.terminals import Terminal
from tarmac.terminals.execution import Execution
from tarmac.terminals.process import signals as processes
from tarmac.tools.execute_command import short
from tarmac.tools.report import labelled
from tarmac.tools.tool import Done, Go, Output, Ready
from tarmac.tools.tool import Live as Shown
from tarmac.vt.text import clean

ASK_AFTER: Final = 1.0  # seconds that a command runs before the person is asked about it
OFTEN: Final = 1.0  # seconds between two facts about one command's output
TAIL: Final = 16_000  # bytes of it that the model is told when it was cut off


class CallRecorder:
    """Records one call of a task."""

    def __init__(
        self, state: TaskState, questions: Questions, repetition: Repetition, commands: "RunningCommands", use: ToolUse
    ) -> None:
        self._state = state
        self._commands = commands
        self._questions = questions
        self._repetition = repetition
        self._use = use
        self._began = time.monotonic()
        self.durable = True  # its start is on disk before it acts

    def judged(self, call: Call, judged: Sequence[Judged]) -> None:
        """The audit log."""
        record_verdicts(self._state, call.id, judged)

    async def decided(self, call: Call, ready: Ready, permission: Permission) -> None:
        """Questions and answers are in the log themselves."""
        for note in permission.notes:
            self._state.add(Noted(at=now(), what="error", text=note))

    async def started(self, call: Call, ready: Ready, go: Go) -> None:
        """Durable before it acts, unless it changes nothing."""
        started = ToolStarted(
            at=now(),
            call=call.id,
            name=self._use.name,
            title=ready.title,
            intents=tuple(FileIntent(path=each.path, before=each.before, after=each.after) for each in ready.intents),
            command=go.command or ready.command,
            cwd=ready.cwd,
            terminal=ready.terminal,
        )
        if started.command is not None:
            self._commands.starting.add(started.call)
        if self.durable:
            await self._state.append(started)
        else:
            self._state.add(started)

    def finished(self, call: Call, result: CallResult) -> None:
        """Its result, and what the task knows of files from now on."""
        self._commands.over(call.id)
        if result.done is not None and result.ready is not None:
            self._done(result.ready, result.done, (*result.content, *self._commands.take_remarks(call.id)))
            return
        if result.outcome == "failed" or (result.outcome == "denied" and not result.allowed) or result.unanswered:
            self._remember(fingerprint(result.content, outcome=result.outcome))
        ready = result.ready if result.outcome != "failed" else None
        title = "" if ready is None else ready.done if result.outcome == "done" else ready.title
        self.finish(result.content, outcome=result.outcome, title=title)

    def cancelled(self, call: Call, ready: Ready) -> None:
        """`settle` closes the open calls of a stopped task."""
        self._commands.over(call.id)

    def _done(self, ready: Ready, done: Done, content: tuple[Part, ...]) -> None:
        for seen in done.seen:
            self._state.add(FileSeen(at=now(), path=seen.path, digest=seen.digest, how=seen.how))
        essence = (Text(done.essence),) if done.essence else done.content  # tags and durations are never the same
        self._remember(fingerprint(essence, exit_code=done.exit_code, outcome=done.outcome))
        result = ToolFinished(
            at=now(),
            call=CallId(self._use.id),
            name=self._use.name,
            outcome=done.outcome,
            content=content,
            title=ready.done if done.outcome == "done" else ready.title,
            exit_code=done.exit_code,
            details=json.dumps(done.details, ensure_ascii=False) if done.details else "",
            seconds=self._seconds(),
        )
        self._state.add(result)

    def finish(self, content: tuple[Part, ...], *, outcome: Outcome, title: str = "", made: bool = True) -> None:
        """Record the result of a call that did not act. `made`: it was tried."""
        result = ToolFinished(
            at=now(),
            call=CallId(self._use.id),
            name=self._use.name,
            outcome=outcome,
            content=content,
            title=title or _title(self._use),
            seconds=self._seconds() if made else 0.0,
        )
        self._state.add(result)

    def _remember(self, key: str) -> None:
        self._repetition.finished(*self._state.context.toolbox.meant(self._use.name, self._use.arguments), key)

    def _seconds(self) -> float:
        """How long it took, without waiting for a person."""
        waited = self._questions.waited(CallId(self._use.id))
        return max(0.0, round(time.monotonic() - self._began - waited, 4))


def record_verdicts(state: TaskState, call: CallId, judged: Sequence[Judged]) -> None:
    """Every verdict is in the log, with who decided: that is the audit log."""
    for each in judged:
        verdict = each.verdict
        state.add(
            CallJudged(
                at=now(),
                call=call,
                decision=each.decision,
                risk=verdict.risk,
                reason=verdict.reason,
                part=verdict.part,
                by=each.by,
            )
        )


def _title(use: ToolUse) -> str:
    """A title for a call that was never prepared: its tool, and the file or command it is about."""
    try:
        given = json.loads(use.arguments)
    except (ValueError, RecursionError):
        given = {}
    about = [given[key] for key in ("path", "command", "id") if isinstance(given, dict) and given.get(key)]
    return f"{use.name} {short(about[0])}" if about and isinstance(about[0], str) else use.name


class Live:
    """What one call prints while it runs."""

    def __init__(self, state: TaskState, call: CallId) -> None:
        self._state = state
        self._call = call
        self._output: CommandOutput | None = None
        self._told = 0.0

    def started(self, terminal: TerminalId, spool: Path) -> None:
        """A command prints into this spool."""
        self._tell(CommandOutput(at=now(), call=self._call, terminal=terminal, spool=spool, offset=0))

    async def recorded(self) -> None:
        """Return when everything so far is durable."""
        try:
            await self._state.context.log.commit()
        except StateUnavailable:  # the call learns of it when it records its result
            pass

    def show(self, shown: Shown) -> None:
        """Show the next piece of output."""
        if not isinstance(shown, Output):
            self._state.audience.show(ProgressMade(call=self._call, text=shown.text))
            return
        terminal = shown.terminal or TerminalId("")
        self._state.audience.show(OutputStreamed(call=self._call, terminal=terminal, data=shown.data))
        if shown.terminal is None:
            self._state.printed(self._call, shown.data, most=TAIL)
        if self._output and time.monotonic() - self._told > OFTEN:
            self._flush()
            self._tell(replace(self._output, at=now(), offset=shown.end))

    def _flush(self) -> None:
        """Flush the output, so that it is on disk before the fact that names it."""
        assert self._output
        try:
            current = self._state.context.registry.get(self._output.terminal).current
        except TerminalNotFound:
            return
        if current is not None:
            current.spool.flush()

    def _tell(self, output: CommandOutput) -> None:
        self._output, self._told = output, time.monotonic()
        self._state.add(output)


async def settle(
    state: TaskState, *, why: str, skip: bool, again: Set[CallId] = frozenset(), kept: Set[CallId] = frozenset()
) -> None:
    """Give every open call its result; `skip`: also those that were never started.

    Those of `again` have only asked a question: they count as never started. Those of `kept` are made again anyway.
    """
    for use, under_way in state.history.open_calls:
        found = state.under_way.get(CallId(use.id))
        if CallId(use.id) in again:
            found, under_way = None, False
        if found is not None:
            await _interrupted(state, use, found, why)
        elif under_way:
            told = f"[interrupted: {why} while this call was under way; whether it took effect is not known]"
            _finish(state, use, (Text(told),), outcome="interrupted", title=f"{use.name}: interrupted")
        elif skip and CallId(use.id) not in kept:
            told = f"[not run: {why} before this call was started]"
            _finish(state, use, (Text(told),), outcome="skipped", title=f"Did not run {use.name}")


def killed_host(past: Iterable[TaskEvent]) -> int | None:
    """The process that ran the task last, if it did not leave in order."""
    pid: int | None = None
    for event in past:
        match event:
            case TaskStarted(pid=started):
                pid = started
            case TaskSaved():
                pid = None
    return pid


async def end_survivors(state: TaskState, host: int | None) -> str:
    """End what the killed process `host` left running, and tell the person; a sentence for the model."""
    if host is None:
        return ""
    found = await processes.end_survivors(host, state.context.registry.settings)
    if not found:
        return ""
    named = ", ".join(f"`{each.command}` (process {each.pid})" for each in found)
    stays = ", ".join(str(each.pid) for each in found if not each.ended)
    but = f"; these could not be ended: {stays}" if stays else ""
    text = f"the killed run had left processes running. Ended now: {named}{but}"
    state.add(Noted(at=now(), what="notice", text=text))
    return f" [Processes that were still running have been ended now: {named}{but}.]"


async def take_over(state: TaskState) -> str:
    """Go on with the terminals that the task had in another process, and tell the person; sentences for the model."""
    found = await state.context.registry.take_over(state.context.task)
    if not found:
        return ""
    told = "; ".join(_what_became(each) for each in found)
    state.add(Noted(at=now(), what="notice", text=f"terminals of before go on: {told}"))
    return f" [Your terminals of before are still there: {told}. Their output can be read with read_terminal.]"


def _what_became(terminal: Terminal) -> str:
    where = f"{terminal.id} in {shown(terminal.cwd)}"
    last = terminal.executions[-1] if terminal.executions else None
    if last is None:
        return where
    if last.ending is None:
        return f"{where}, where `{last.command}` still runs"
    if last.ending.exit_code is None:
        return f"{where}, where `{last.command}` ended: {last.ending.reason}"
    return f"{where}, where `{last.command}` ended with exit code {last.ending.exit_code}"


async def _interrupted(state: TaskState, use: ToolUse, found: Unfinished, why: str) -> None:
    text, seen = await asyncio.to_thread(_known, found, why, state.context.files.system.afresh())
    if answer := state.answered.pop(found.started.call, ""):
        text = f"[interrupted: {why} after the person had answered]\n<user_message>\n{answer}\n</user_message>"
    _finish(state, use, (Text(text),), outcome="interrupted", title=f"{found.started.title}: interrupted")
    for path, digest in seen:
        state.add(FileSeen(at=now(), path=path, digest=digest, how="edited"))


def _finish(state: TaskState, use: ToolUse, content: tuple[Part, ...], *, outcome: Outcome, title: str) -> None:
    state.add(ToolFinished(at=now(), call=CallId(use.id), name=use.name, outcome=outcome, content=content, title=title))


def _known(found: Unfinished, why: str, system: FileSystem) -> tuple[str, list[tuple[Path, str | None]]]:
    """In a thread: what can be said of it, and the versions of files that are known now."""
    started = found.started
    lines = [f"[interrupted: {why} while this call was under way]"]
    seen: list[tuple[Path, str | None]] = []
    for intent, fate in fates(started, partial(_digest, system=system)):
        match fate:
            case "happened":
                lines.append(f"{intent.path}: it was changed as intended.")
                seen.append((intent.path, intent.after))
            case "did not happen":
                lines.append(f"{intent.path}: it was not changed.")
            case _:
                lines.append(f"{intent.path}: it is neither as before nor as intended. Read it before you go on.")
    if started.command is not None:
        lines.append(f"`{started.command}` had been started in {started.cwd} and did not come to its end here.")
        lines.append(_output(found))
    elif not started.intents:
        lines.append("Whether it took effect is not known.")
    return "\n".join(lines), seen


def _digest(path: Path, system: FileSystem) -> str | None:
    try:
        return digest_of(path, system)
    except OSError:
        return "unreadable"


def _output(found: Unfinished) -> str:
    """What a command had printed, as far as it reached the disk, or us."""
    try:
        data = found.output.spool.read_bytes() if found.output else found.tail
    except OSError:
        data = found.tail
    if not data:
        return "Nothing is known of its output."
    text = clean(data[-TAIL:]).rstrip()
    cut = f", the last {TAIL:,} bytes of {len(data):,}" if len(data) > TAIL else ""
    return labelled(text, what=f"Its output until then{cut}")


@dataclass(slots=True)
class _Waited:
    call: CallId
    command: Execution
    leave: Callable[[], object]  # ends the wait, not the command
    left: bool = False
    question: QuestionId | None = None
    withdraw: Callable[[], object] = bool


class RunningCommands:
    """The commands that the calls of a task wait for, and what the person does about them.

    Each is asked about as long as it runs (`command_output`): yes sends it to the background, no stops it, and words
    reach the model at once. Nothing waits for an answer.
    """

    def __init__(self, state: TaskState, questions: Questions) -> None:
        self._state = state
        self._questions = questions
        self._waited: list[_Waited] = []
        self._remarks: dict[CallId, tuple[Part, ...]] = {}
        self._stopping: set[asyncio.Task[object]] = set()
        self.starting: set[CallId] = set()  # calls whose command is not yet waited for
        self._left_early: set[CallId] = set()  # of these, the ones to leave as soon as they are waited for

    @contextmanager
    def waiting(self, call: CallId, command: Execution, leave: Callable[[], object]) -> Iterator[None]:
        """Held while a call waits for a command; `leave` ends the wait."""
        waited = _Waited(call, command, leave)
        self._waited.append(waited)
        timer = asyncio.get_running_loop().call_later(ASK_AFTER, self._ask, waited)
        self.starting.discard(call)
        if call in self._left_early:
            self._heard(waited, AnswerKind.YES)
        try:
            yield
        finally:
            timer.cancel()
            self._waited.remove(waited)
            waited.withdraw()

    async def to_background(self, by: str = "") -> bool:
        """Let the calls go on without their commands; False: none waits for one."""
        found = list(self._waited)
        for waited in found:
            answer = Answer(AnswerKind.YES, by=by)
            if waited.question is None:
                self._heard(waited, answer.kind)
                continue
            try:
                await self._questions.answer(waited.question, answer)
            except BadRequest:  # somebody was quicker
                pass
        self._left_early |= self.starting
        return bool(found or self.starting)

    def over(self, call: CallId) -> None:
        """The call has ended."""
        self.starting.discard(call)
        self._left_early.discard(call)

    def take_remarks(self, call: CallId) -> tuple[Part, ...]:
        """What the model is told with the result of a call; once."""
        return self._remarks.pop(call, ())

    def _ask(self, waited: _Waited) -> None:
        if not self._state.attended or waited.left:
            return
        asked = new_question("command_output", f"`{short(waited.command.command)}` is running", call=waited.call)
        waited.question = asked.question
        waited.withdraw = self._questions.offer(
            asked,
            check=_says_what,
            heard=lambda heard: self._heard(waited, heard.answer, heard.text, heard.images),
        )

    def _heard(self, waited: _Waited, answer: AnswerKind, text: str = "", images: Sequence[Blob] = ()) -> None:
        if answer is AnswerKind.NO:
            told = "The person stopped this command."
            stopping = asyncio.create_task(waited.command.interrupt())
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)
        else:
            told = "The person sent this command to the background."
            waited.left = True
            waited.leave()
        if text:
            told += f" The person says: {text}"
        self._remarks[waited.call] = (Text(told), *map(Image, images))


def _says_what(answer: Answer) -> None:
    if answer.kind not in (AnswerKind.YES, AnswerKind.NO, AnswerKind.MESSAGE):
        raise BadRequest(f"`{answer.kind}` is not an answer for a running command", hint="yes, no or words")
