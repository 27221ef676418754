"""The calls of one answer: each is read, judged, approved, recorded, made, and recorded again.

ToolUse ─decode→ Tool ─mode? circle?→ prepare → Ready ─permit→ Leave ─ToolStarted, durable→ act → ToolFinished

Calls that only read run beside each other, all others alone and in order. Whatever happens to one (wrong arguments, a
denial, a failure), it gets a result, and those before it keep theirs; after a denial those behind it are not made.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from tarmac.errors import BadArguments, StateUnavailable, TarmacError, ToolDenied, ToolFailed
from tarmac.models.messages import Part, Text, ToolUse
from tarmac.policy import ReadFile, WriteFile
from tarmac.policy.approval import AnswerKind, Authority, Resolution
from tarmac.tasks.approvals import Approvals
from tarmac.tasks.callrecord import CallRecord
from tarmac.tasks.desk import Desk, now
from tarmac.tasks.events import CallId, CallJudged, Outcome
from tarmac.tasks.live import Live
from tarmac.tasks.questions import Questions
from tarmac.tasks.queue import Queue
from tarmac.tasks.repetition import Repetition, fingerprint
from tarmac.tasks.talking import Talking
from tarmac.tools.task_tools import AttemptCompletion
from tarmac.tools.tool import Bench, Done, Go, Ready

ENDING: Final = 3.0  # seconds that what is stopped has to end its processes; most take a few hundredths
FINISHING: Final = 0.7  # seconds that a file being written has to come to its end when the task is stopped
CUT: Final = (
    "This call was not run: your answer reached its limit of length before the call was whole. "
    "Make it in smaller steps: write a long file in several parts."
)
ONE: Final = (
    "one call is made in each message, and this was not the first; look at the result of that one, and make this call "
    "if it is still right"
)
MOST_CALLS: Final = 100  # of one answer: who makes more has lost the thread
TOO_MANY: Final = f"no more than {MOST_CALLS} calls are made in one message"
REPEATED: Final = (
    "This call was not run: it is the same as the last ones, whose result did not change. "
    "Look at that result, and try another way."
)
NOT_YET: Final = (
    "This result was not presented: another call of the same message failed. Look at its result, deal with it, and "
    "present the result when all is known to have succeeded."
)


@dataclass(slots=True)
class Tally:
    """How the calls of one answer went."""

    worked: int = 0
    failed: int = 0
    mistakes: list[str] = field(default_factory=list)
    stopped: str = ""  # why the calls behind are not made


class Calls:
    """Makes the calls of one task."""

    def __init__(self, desk: Desk, questions: Questions, queue: Queue) -> None:
        self._desk = desk
        self._questions = questions
        self._queue = queue
        self._approvals = Approvals(desk, questions)
        self._repetition = Repetition(desk.settings.limits.max_repetitions)
        self._record = CallRecord(desk, questions, self._repetition)

    async def run(self, uses: Sequence[ToolUse], *, cut: bool = False) -> Tally:
        """All of them. `cut`: the answer was broken off, so the last one may not be whole."""
        tally = Tally()
        ordered = sorted(uses, key=self._ends)  # the result is presented when all else is done
        native = self._desk.model.info.native_tools
        made = MOST_CALLS if native else 1  # calls in words: one a message (S11)
        for group in self._groups(ordered[:made]):
            if len(group) == 1:
                await self._one(group[0], tally, cut=cut and group[0] is uses[-1])
                continue
            try:
                async with asyncio.TaskGroup() as together:
                    for use in group:
                        together.create_task(self._one(use, tally, cut=cut and use is uses[-1]))
            except BaseExceptionGroup as several:
                raise several.exceptions[0] from None
        for use in ordered[made:]:
            why = tally.stopped or (TOO_MANY if native else ONE)
            self._record.finish(use, (Text(f"[not run: {why}]"),), outcome="skipped")
        return tally

    def _ends(self, use: ToolUse) -> bool:
        return self._desk.toolbox.canonical(use.name) == AttemptCompletion.name

    def _groups(self, uses: Sequence[ToolUse]) -> Iterator[list[ToolUse]]:
        """Neighbours that only read together, all others by themselves."""
        together: list[ToolUse] = []
        for use in uses:
            tool = self._desk.toolbox.tools.get(self._desk.toolbox.canonical(use.name))
            if tool is not None and tool.parallel:
                together.append(use)
                continue
            if together:
                yield together
                together = []
            yield [use]
        if together:
            yield together

    async def _one(self, use: ToolUse, tally: Tally, *, cut: bool) -> None:
        """One call, to its result."""
        if tally.stopped:
            self._record.finish(use, (Text(f"[not run: {tally.stopped}]"),), outcome="skipped")
            return
        began = time.monotonic()
        try:
            await self._attempt(use, tally, cut=cut, began=began)
        except ToolDenied as error:
            self._denied(use, (Text(str(error)),), tally, began)
        except (BadArguments, ToolFailed) as error:
            tally.mistakes.append(str(error))
            self._failed(use, str(error), began, tally)
        except StateUnavailable:  # the log itself: nothing more can be recorded
            raise
        except TarmacError as error:
            self._failed(use, str(error), began, tally)
        except Exception as error:  # a tool's fault must not take the task with it; it is told, with what it was
            self._failed(use, f"The tool failed: {type(error).__name__}: {error}", began, tally)

    def _failed(self, use: ToolUse, text: str, began: float, tally: Tally) -> None:
        tally.failed += 1
        self._record.fail(use, text, began)

    async def _attempt(self, use: ToolUse, tally: Tally, *, cut: bool, began: float) -> None:
        desk = self._desk
        try:
            if cut and not use.arguments.strip():
                raise ToolFailed(CUT)
            offered = (each.name for each in desk.toolbox if desk.mode.allows(each.name, each.group) is None)
            tool = desk.toolbox.decode(use.name, use.arguments, offered)
        except BadArguments:
            if cut:
                raise ToolFailed(CUT) from None
            raise
        if why := desk.mode.allows(use.name, tool.group):
            raise self._refused(use, why)
        if tally.failed and self._ends(use):
            raise ToolFailed(NOT_YET)
        if self._repetition.stuck(*desk.toolbox.meant(use.name, use.arguments)) and not await self._go_round(
            use, tally, began
        ):
            return
        ready = await tool.prepare(self._bench(use))
        for name in _names(desk, ready):
            if tool.group in ("read", "edit") and (why := desk.mode.allows(use.name, tool.group, name)):
                raise self._refused(use, why)
        leave = await self._approvals.permit(use, ready, void=lambda: bool(tally.stopped))
        if tally.stopped:  # by one beside it, while it waited
            self._record.finish(
                use, (Text(f"[not run: {tally.stopped}]"),), outcome="skipped", began=began, title=ready.title
            )
        elif leave.go is None:
            content = (Text(leave.told), *leave.remarks)
            outcome: Outcome = "skipped" if leave.resolution is Resolution.UNANSWERED else "denied"
            self._denied(use, content, tally, began, outcome=outcome, title=ready.title)
        else:
            await self._record.start(use, tool, ready, leave.go)
            if why := self._approvals.spend(leave, ready):
                tally.failed += 1
                self._record.finish(use, (Text(why),), outcome="denied", began=began, title=ready.title)
                return
            if leave.go.command is not None:
                ready = replace(ready, done=f"Ran `{leave.go.command}`")
            done = await self._act(use, ready, leave.go, began)
            self._record.done(use, ready, done, leave.remarks, began)
            tally.worked += done.outcome == "done"
            tally.failed += done.outcome == "failed"

    # What it may not do

    def _denied(
        self,
        use: ToolUse,
        told: tuple[Part, ...],
        tally: Tally,
        began: float,
        *,
        outcome: Outcome = "denied",
        title: str = "",
    ) -> None:
        """It was not wanted: the calls behind it are not made either (S13)."""
        tally.stopped = "an earlier call of this message was denied"
        if not self._desk.attended:  # nobody else would stop a model that wants what it can't have
            tally.mistakes.append("\n".join(each.text for each in told if isinstance(each, Text)))
        meant = self._desk.toolbox.meant(use.name, use.arguments)
        self._repetition.finished(*meant, fingerprint(told, outcome=outcome))
        self._record.finish(use, told, outcome=outcome, began=began, title=title)

    def _refused(self, use: ToolUse, why: str) -> ToolFailed:
        judged = CallJudged(
            at=now(), call=CallId(use.id), decision="deny", risk="low", reason=why, part=use.name, by=Authority.MODE
        )
        self._desk.add(judged)
        return ToolFailed(why)

    async def _go_round(self, use: ToolUse, tally: Tally, began: float) -> bool:
        """The same call once more: a person decides whether that makes sense (S12)."""
        told = REPEATED
        if self._desk.attended:
            answered = await self._questions.ask(
                "mistake_limit_reached",
                f"The model repeats itself: {use.name} with the same arguments and the same result. Run it once more?",
                call=CallId(use.id),
                timeout=self._desk.settings.approval_timeout,
            )
            if answered.answer is AnswerKind.YES:
                self._repetition.forget()
                return True
            if answered.text:
                told = f"{REPEATED} The person says: {answered.text}"
        tally.mistakes.append(REPEATED)
        self._record.finish(use, (Text(told),), outcome="skipped", began=began)
        return False

    # Acting

    async def _act(self, use: ToolUse, ready: Ready, go: Go, began: float) -> Done:
        """Let it act. When the task is stopped, files are written to their end: that takes a moment, and is known."""
        acting = asyncio.ensure_future(ready.act(go))
        try:
            return await asyncio.shield(acting)
        except asyncio.CancelledError:
            if ready.intents:
                await asyncio.wait([acting], timeout=FINISHING)
            if acting.done() and not acting.cancelled() and acting.exception() is None:
                self._record.done(use, ready, acting.result(), (), began)
            else:
                acting.cancel()
                await asyncio.wait([acting], timeout=ENDING)
            raise

    def _bench(self, use: ToolUse) -> Bench:
        desk = self._desk
        live = Live(desk, CallId(use.id))
        return Bench(
            workspace=desk.workspace,
            cwd=desk.workspace,
            task=desk.task,
            files=desk.files,
            registry=desk.registry,
            talk=Talking(desk, self._questions, self._queue, CallId(use.id)),
            store=desk.log.blobs.keep,
            seen=desk.seen,
            show=live.show,
            started=live.started,
            settings=desk.settings.tools,
            unsaved=desk.unsaved,
            secrets=desk.waits if desk.attended and desk.types_secrets else None,
            elsewhere=partial(desk.elsewhere, CallId(use.id)) if desk.elsewhere else None,
        )


def _names(desk: Desk, ready: Ready) -> Iterator[str]:
    """Each file the call is about, as it was said and as it leads, seen from the workspace."""
    for want in ready.wants:
        if not isinstance(want.action, ReadFile | WriteFile):
            continue
        led = desk.files.look(want.action.path, cwd=desk.workspace, workspace=desk.workspace).path
        for path in dict.fromkeys((want.action.path, led)):
            inside = path.is_absolute() and path.is_relative_to(desk.workspace)
            yield (path.relative_to(desk.workspace) if inside else path).as_posix()
