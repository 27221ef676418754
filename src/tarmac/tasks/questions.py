"""Questions to a person: part of the log, open until one answer comes, through any door of this process (S5, P6).

ask(QuestionAsked) ─ durable ─ waits ─ answer(QuestionAnswered) ─ durable ─ goes on

One question is open at a time, in the order of the calls that ask: a person at a terminal answers one after the other.
After a restart none is open: an answer on the disk is history, never authority, and what still wants one asks anew.
"""

import asyncio
import secrets
from collections.abc import Callable

from tarmac.dataclass import dataclass
from tarmac.errors import BadRequest
from tarmac.tasks.desk import now
from tarmac.tasks.events import Ask, CallId, QuestionAnswered, QuestionAsked, QuestionId
from tarmac.tasks.log import TaskLog

Check = Callable[[QuestionAnswered], None]


@dataclass(slots=True)
class _Open:
    asked: QuestionAsked
    check: Check | None
    answered: "asyncio.Future[QuestionAnswered]"


class Questions:
    """Those of one task."""

    def __init__(self, log: TaskLog) -> None:
        self._log = log
        self._open: dict[QuestionId, _Open] = {}
        self._turn = asyncio.Lock()
        self.leaving = False  # the process goes away: what is open stays open in the log

    @property
    def open(self) -> tuple[QuestionAsked, ...]:
        """Those that wait for an answer."""
        return tuple(each.asked for each in self._open.values())

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
    ) -> QuestionAnswered:
        """Wait for a person; after `timeout` seconds the answer is `skip`.

        `check` raises BadRequest for an answer that makes no sense, which leaves the question open. `void` says, once
        it is its turn, that nobody needs an answer any more: then it is not asked.
        """
        question = QuestionId(f"q{secrets.token_hex(4)}")
        asked = QuestionAsked(
            at=now(), question=question, ask=ask, text=text, call=call, choices=choices, details=details
        )
        async with self._turn:
            if void():
                return QuestionAnswered(at=now(), question=question, answer="skip")
            waiting = _Open(asked, check, asyncio.get_running_loop().create_future())
            self._open[question] = waiting
            try:
                await self._log.append(asked)
                async with asyncio.timeout(timeout):
                    return await waiting.answered
            except TimeoutError:
                if question not in self._open:  # an answer is on its way to the disk
                    return await waiting.answered
                return self._close(question, by="approval_timeout")
            except asyncio.CancelledError:
                if question in self._open and not self.leaving:
                    self._close(question, by="stopped")
                raise
            finally:
                self._open.pop(question, None)

    def _close(self, question: QuestionId, *, by: str) -> QuestionAnswered:
        """Nobody answered it, and nobody will."""
        skipped = QuestionAnswered(at=now(), question=question, answer="skip", by=by)
        self._log.add(skipped)
        return skipped

    async def answer(self, answered: QuestionAnswered) -> None:
        """A person answers; the first answer counts. BadRequest for one that makes no sense, or comes too late."""
        waiting = self._open.get(answered.question)
        if waiting is None:
            raise BadRequest(f"the question {answered.question} is not open", hint="somebody may have answered it")
        if waiting.check:
            waiting.check(answered)
        del self._open[answered.question]
        try:
            await self._log.append(answered)
        except BaseException:
            if not waiting.answered.done():
                self._open[answered.question] = waiting
            raise
        if not waiting.answered.done():
            waiting.answered.set_result(answered)
