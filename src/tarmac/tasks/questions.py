"""Questions to a person: part of the log, open until one answer comes, through any front end of this process.

ask(QuestionAsked) ─ durable ─ waits ─ answer(QuestionAnswered) ─ durable ─ goes on
stand(QuestionAsked) ─ durable ─ nobody waits ─ answer(…) ─ durable, with what follows from it     (`rest.py`)
offer(QuestionAsked) ─ nobody waits ─ answer(…), or it is withdrawn                        (`call_recorder.py`)

Of those that are waited for, one is open at a time, in the order of the calls that ask: a person at a terminal answers
one after the other. A running command holds none of them up.
After a restart none is open: an answer on the disk is history, never authority, and what still wants one asks anew.
`TaskAsker` asks about a call.
"""

import asyncio
import json
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Final

from tarmac.calls.call_judge import Answered, NotAsked, Question
from tarmac.errors import BadRequest
from tarmac.models.messages import Blob, Image
from tarmac.policy import Action, Verdict
from tarmac.policy.approval import Answer, AnswerKind, Authority, Resolution, no_person_text
from tarmac.tasks.context import now
from tarmac.tasks.events import (
    RESTING,
    Ask,
    CallId,
    CallJudged,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    TaskEvent,
    UserSaid,
)
from tarmac.tasks.log import TaskLog
from tarmac.tasks.state import TaskState

MOST_REMEMBERED: Final = 100
FRONT_ENDS: Final = {"cli": "a terminal", "web": "the page", "acp": "the editor"}  # who says `by` in an answer
LONGEST_QUOTE: Final = 80  # characters of an answer that another front end is told
SKIPPED: Final = Answer(AnswerKind.SKIP, by="approval_timeout")  # nobody answered in time
STOPPED: Final = Answer(AnswerKind.SKIP, by="stopped")
OVER: Final = Answer(AnswerKind.SKIP, by="ended")  # what it was about has ended
Check = Callable[[Answer], None]
Follows = Callable[[QuestionAnswered], tuple[TaskEvent, ...]]  # the facts that are recorded together with an answer
Heard = Callable[[QuestionAnswered], None]


def nothing(_: QuestionAnswered) -> tuple[TaskEvent, ...]:
    """Only the answer itself."""
    return ()


def words(answered: QuestionAnswered) -> tuple[TaskEvent, ...]:
    """What the person said with their answer is told to the model: no crash comes between the two."""
    said = answered.answer is not AnswerKind.NO and (answered.text or answered.images)
    return (UserSaid(at=answered.at, text=answered.text, images=answered.images),) if said else ()


def who_answered(answered: QuestionAnswered, *, told: str) -> str:
    """PURE: "the page answered". `told` is the front end that is told; another one of its kind is "another"."""
    who = FRONT_ENDS.get(answered.by, answered.by or "somebody else")
    return f"{f'another {who.split()[-1]}' if answered.by == told and told in FRONT_ENDS else who} answered"


def said_in(answered: QuestionAnswered) -> str:
    """PURE: what an answer was, to go on a sentence with: `: yes`, `: "use port 80"`, `, file by file`."""
    match answered.answer:
        case AnswerKind.MESSAGE | AnswerKind.NO if text := " ".join(answered.text.split()):
            quoted = text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"
            return f': {"no, " * (answered.answer is AnswerKind.NO)}"{quoted}"'
        case AnswerKind.MESSAGE:
            return " with a picture" if answered.images else ""
        case AnswerKind.PER_FILE:
            return ", file by file"
        case AnswerKind.DONE:
            return ": it tried the command and kept the changes"
    if answered.edited is not None:
        return ": yes, but another command"
    return f": {answered.answer.value}"


@dataclass(slots=True)
class _OpenQuestion:
    asked: QuestionAsked
    check: Check | None
    follows: Follows
    answered: "asyncio.Future[QuestionAnswered]"
    heard: Heard | None = None  # of one that nobody waits for
    recording: "asyncio.Future[None] | None" = None  # an answer is on its way to the disk
    given_up: bool = False  # who asked has stopped waiting
    begun: "asyncio.Future[None] | None" = None  # of one that is answered by itself: somebody begins to answer it


class Questions:
    """Those of one task."""

    def __init__(self, log: TaskLog, waits: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._log = log
        self._waits = waits  # held while a person is waited for
        self._open: dict[QuestionId, _OpenQuestion] = {}
        self._turn = asyncio.Lock()
        self.leaving = False  # the process goes away: what is open stays open in the log
        self._writing: set[asyncio.Future[None]] = set()  # answers on their way to the disk
        self.left: set[CallId] = set()  # calls whose question stayed open so
        self._waited: defaultdict[CallId, float] = defaultdict(float)  # seconds that calls waited for a person
        self._first: dict[QuestionId, QuestionAnswered] = {}  # what was answered here, the newest last
        self.before_words: Callable[[], object] = tuple  # delivers what was said earlier, and is still queued

    @property
    def open(self) -> tuple[QuestionAsked, ...]:
        """Those that wait for an answer."""
        return tuple(each.asked for each in self._open.values())

    @property
    def standing(self) -> QuestionAsked | None:
        """The one that is asked while the task stands still."""
        return next((each.asked for each in self._open.values() if each.asked.ask in RESTING), None)

    async def settled(self) -> None:
        """Return when every answer that was given is heard."""
        while self._writing:
            await asyncio.wait(self._writing)

    def waited(self, call: CallId) -> float:
        """Seconds that a call has waited for a person; asked once."""
        return self._waited.pop(call, 0.0)

    async def stand(self, question: QuestionAsked, *before: TaskEvent, follows: Follows, heard: Heard) -> None:
        """Ask without waiting: durable, together with the facts before it. `heard` is told of the answer."""
        future = asyncio.get_running_loop().create_future()
        self._open[question.question] = _OpenQuestion(question, None, follows, future, heard)
        try:
            await self._log.append(*before, question)
        except asyncio.CancelledError:  # it is recorded nevertheless, and may be answered
            raise
        except BaseException:
            self._open.pop(question.question, None)
            raise

    def withdraw(self) -> None:
        """What is asked while the task stands still is asked no more."""
        for waiting in [each for each in self._open.values() if each.asked.ask in RESTING]:
            del self._open[waiting.asked.question]
            self._close(waiting, STOPPED)

    def offer(self, question: QuestionAsked, *, check: Check | None = None, heard: Heard) -> Callable[[], None]:
        """Ask beside what goes on, which waits for nothing. What this returns withdraws it, once it is over."""
        waiting = _OpenQuestion(question, check, nothing, asyncio.get_running_loop().create_future(), heard)
        self._open[question.question] = waiting
        self._log.add(question)

        def withdraw() -> None:
            waiting.given_up = True
            if self._open.pop(question.question, None):
                self._close(waiting, OVER)

        return withdraw

    async def ask(
        self,
        ask: Ask,
        text: str,
        *,
        call: CallId | None = None,
        choices: tuple[str, ...] = (),
        details: str = "",
        timeout: float | None = None,
        check: Check | None = None,
        void: Callable[[], bool] = bool,
        follows: Follows = nothing,
        otherwise: Answer = SKIPPED,
        once_begun: float | None = None,
    ) -> QuestionAnswered:
        """Wait for a person; after `timeout` seconds the answer is `otherwise`.

        An answer in their place is not given once they have begun to type (`hold`): then it is skipped after
        `once_begun` seconds more.

        `check` raises BadRequest for an answer that makes no sense, which leaves the question open. `void` says, once
        it is its turn, that nobody needs an answer any more: then it is not asked.
        """
        asked = new_question(ask, text, call=call, choices=choices, details=details)
        question, began = asked.question, time.monotonic()
        try:
            async with self._turn:
                if void():
                    return QuestionAnswered.of(question, Answer(AnswerKind.SKIP), at=now())
                loop = asyncio.get_running_loop()
                waiting = _OpenQuestion(asked, check, follows, loop.create_future())
                waiting.begun = loop.create_future() if otherwise.kind is not AnswerKind.SKIP else None
                self._open[question] = waiting
                try:
                    await self._log.append(asked)
                    with self._waits():
                        if await _begun(waiting, timeout):
                            otherwise = SKIPPED
                            await asyncio.wait([waiting.answered], timeout=once_begun)
                        if waiting.recording:  # just in time, if the disk takes it
                            await asyncio.wait([waiting.recording])
                    return waiting.answered.result() if waiting.answered.done() else self._close(waiting, otherwise)
                except asyncio.CancelledError:
                    if question in self._open and self.leaving and call:
                        self.left.add(call)
                    elif question in self._open and not self.leaving:
                        self._close(waiting, STOPPED)
                    raise
                finally:
                    waiting.given_up = True
                    self._open.pop(question, None)
        finally:
            if call:
                self._waited[call] += time.monotonic() - began

    def hold(self, question: QuestionId) -> None:
        """A person begins to answer: nothing is answered in their place."""
        waiting = self._open.get(question)
        if waiting and waiting.begun and not waiting.begun.done():
            waiting.begun.set_result(None)

    def _close(self, waiting: _OpenQuestion, answer: Answer) -> QuestionAnswered:
        """No person answered it, and none will."""
        answered = QuestionAnswered.of(waiting.asked.question, answer, at=now())
        for event in (*waiting.follows(answered), answered):
            self._log.add(event)
        return answered

    async def answer(self, question: QuestionId, answer: Answer, images: tuple[Blob, ...] = ()) -> None:
        """A person answers; the first answer counts. BadRequest for one that makes no sense, or comes too late.

        `images` are the answer's pictures, as the log keeps them.
        """
        if not isinstance(answer.kind, AnswerKind):  # the log could not be read with it
            raise BadRequest(f"`{answer.kind}` is not an answer", hint=", ".join(AnswerKind))
        waiting = self._open.get(question)
        if waiting is None:
            raise self._too_late(question, answer)
        if waiting.check:
            waiting.check(answer)
        del self._open[question]
        answered = QuestionAnswered.of(question, answer, at=now(), images=images)
        self._first[question] = answered
        while len(self._first) > MOST_REMEMBERED:
            del self._first[next(iter(self._first))]
        waiting.recording = asyncio.ensure_future(self._record(waiting, answered))
        self._writing.add(waiting.recording)
        waiting.recording.add_done_callback(self._written)
        await asyncio.shield(waiting.recording)  # a front end that goes away does not take its answer back

    def _too_late(self, question: QuestionId, late: Answer) -> BadRequest:
        first = self._first.get(question)
        if first is None:
            return BadRequest(f"the question {question} is not open", hint="somebody may have answered it")
        return BadRequest(f"{who_answered(first, told=late.by)} first{said_in(first)}", hint="the first answer counts")

    def _written(self, recording: "asyncio.Future[None]") -> None:
        self._writing.discard(recording)
        if not recording.cancelled():
            recording.exception()  # told to who answered, if they are still there

    async def _record(self, waiting: _OpenQuestion, answered: QuestionAnswered) -> None:
        try:
            follows = waiting.follows(answered)
            if any(isinstance(each, UserSaid) for each in follows):
                self.before_words()
            await self._log.append(*follows, answered)  # half of it written: the words count more
        except BaseException:
            self._first.pop(answered.question, None)
            if not waiting.given_up:
                self._open[answered.question] = waiting
            raise
        finally:
            waiting.recording = None
        if waiting.heard:
            waiting.heard(answered)
        elif not waiting.answered.done():
            waiting.answered.set_result(answered)


async def _begun(waiting: _OpenQuestion, timeout: float | None) -> bool:
    """Wait for the answer, or for its beginning; whether it is no more than that."""
    either = [each for each in (waiting.answered, waiting.begun) if each is not None]
    await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    return waiting.begun is not None and waiting.begun.done() and not waiting.answered.done()


def new_question(
    ask: Ask, text: str, *, call: CallId | None = None, choices: tuple[str, ...] = (), details: str = ""
) -> QuestionAsked:
    """One with an id of its own."""
    question = QuestionId(f"q{secrets.token_hex(4)}")
    return QuestionAsked(at=now(), question=question, ask=ask, text=text, call=call, choices=choices, details=details)


@dataclass(frozen=True, slots=True)
class ActingAgent:
    """A hosted agent, and whether it does what is asked about by itself. Else Tarmac does it."""

    name: str
    itself: bool


class TaskAsker:
    """Asks about one call of a task."""

    def __init__(
        self,
        state: TaskState,
        questions: Questions,
        call: CallId,
        *,
        void: Callable[[], object] = str,
        agent: ActingAgent | None = None,
    ) -> None:
        """`void`: whether nobody needs an answer any more. `agent`: the hosted agent that wants it."""
        self._agent = agent
        self._state = state
        self._questions = questions
        self._call = call
        self._void = void

    def unavailable(self, actions: Sequence[Action], verdicts: Sequence[Verdict]) -> NotAsked | None:
        """Nobody is there: the verdicts become denials in the log."""
        if self._state.attended:
            return None
        for verdict in verdicts:
            self._state.add(
                CallJudged(
                    at=now(),
                    call=self._call,
                    decision="deny",
                    risk=verdict.risk,
                    reason=verdict.reason,
                    part=verdict.part,
                    by=Authority.NOBODY,
                )
            )
        return NotAsked(resolution=Resolution.NOBODY, told=no_person_text(verdicts), by=Authority.NOBODY)

    async def ask(self, question: Question) -> Answered | NotAsked:
        """Wait for an answer. One that makes no sense is refused where it came from."""
        given, at = Answer(AnswerKind.SKIP), time.monotonic()

        def check(answer: Answer) -> None:
            nonlocal given, at
            question.resolve(answer, now=time.monotonic())
            given, at = answer, time.monotonic()

        answered = await self._questions.ask(
            "command" if question.command else "tool",
            question.title,
            call=self._call,
            details=json.dumps(
                {
                    "title": question.title,
                    "requests": [each.as_data() for each in question.requests],
                    **({"agent": asdict(self._agent)} if self._agent else {}),
                }
            ),
            timeout=self._state.context.settings.approval_timeout,
            check=check,
            void=lambda: bool(self._void()),
        )
        if answered.answer is AnswerKind.SKIP:
            return Answered(answer=Answer(AnswerKind.SKIP, by=answered.by), at=time.monotonic())
        return Answered(answer=given, at=at, images=tuple(map(Image, answered.images)))
