"""Asks the person of a task whether a call may be made: the question and its answer are facts of the log."""

import json
import time
from collections.abc import Callable, Sequence

from tarmac.calls.permission import Answered, NotAsked, Question
from tarmac.models.messages import Image
from tarmac.policy import Action, Verdict
from tarmac.policy.approval import Answer, AnswerKind, Authority, Resolution, no_person_text
from tarmac.tasks.context import now
from tarmac.tasks.events import CallId, CallJudged
from tarmac.tasks.questions import Questions
from tarmac.tasks.state import TaskState


class TaskAsker:
    """Asks about one call of a task."""

    def __init__(
        self, state: TaskState, questions: Questions, call: CallId, *, void: Callable[[], object] = str
    ) -> None:
        """`void`: whether nobody needs an answer any more."""
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
        """Wait for an answer. One that makes no sense is refused at the door it came through."""
        given, at = Answer(AnswerKind.SKIP), time.monotonic()

        def check(answer: Answer) -> None:
            nonlocal given, at
            question.resolve(answer, now=time.monotonic())
            given, at = answer, time.monotonic()

        answered = await self._questions.ask(
            "command" if question.command else "tool",
            question.title,
            call=self._call,
            details=json.dumps({"title": question.title, "requests": [each.as_data() for each in question.requests]}),
            timeout=self._state.context.settings.approval_timeout,
            check=check,
            void=lambda: bool(self._void()),
        )
        if answered.answer is AnswerKind.SKIP:
            return Answered(answer=Answer(AnswerKind.SKIP, by=answered.by), at=time.monotonic())
        return Answered(answer=given, at=at, images=tuple(map(Image, answered.images)))
