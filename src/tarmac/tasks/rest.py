"""A task that stands still asks one question: is its result accepted, shall it go on? (S4, S5)

the model presents its result   completion_result        yes: it stays completed        no, words: it goes on
opened again, it was completed  resume_completed_task    yes, words: it goes on         no: it stays so
opened again, anything else     resume_task              yes, words: it goes on         no: it stands still

Nobody waits for the answer, so nothing hangs: a run ends with the question, and the next begins with what was answered.
To say something is to answer. To run a task that asks `resume_task` is a yes; the others stay open until they are
answered. Without a person to ask, a result is accepted, and what is opened goes on when it is run.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, Literal

from tarmac.errors import BadRequest, StateUnavailable
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.events import (
    MessageDelivered,
    ModelSaid,
    ModelTold,
    QuestionAnswered,
    TaskCompleted,
    TaskEvent,
    UserSaid,
)
from tarmac.tasks.questions import Questions, new_question, words
from tarmac.tasks.state import TaskState

NOT_ACCEPTED: Final = "[The person does not accept this result. Find out what is missing, and go on.]"
AGAIN: Final = "[The person wants this completed task to go on. Find out what is left to do, or ask them.]"


class Rest:
    """What a person wants of a task that stands still."""

    def __init__(self, state: TaskState, questions: Questions, past: Iterable[TaskEvent] = ()) -> None:
        self._state = state
        self._questions = questions
        self.wanted: Literal["", "go", "stay"] = ""
        self.spoken = _spoken(past)  # they said something that the model has not answered
        self.answered = asyncio.Event()

    def said(self) -> None:
        """They spoke without being asked."""
        self.spoken = True
        self.answered.set()

    def rewound(self) -> None:
        """What they said since is not said."""
        self.spoken, self.wanted = False, ""

    async def presented(self, completed: TaskCompleted) -> None:
        """The model is done: recorded, and asked about where somebody is there."""
        if not self._state.attended or self._state.metadata.parent:  # a subtask's result is its parent's to accept
            await self._state.context.log.append(completed)
            return
        await self._ask("completion_result", completed.result, completed)

    async def opened(self) -> None:
        """A task of before was opened. On a full disk it says nothing."""
        meta = self._state.metadata
        if not self._state.attended or not (meta.title or meta.requests):
            return
        try:
            if meta.outcome == "completed":
                await self._ask("resume_completed_task", meta.name)
            else:
                await self._ask("resume_task", meta.name)
        except StateUnavailable:
            pass

    async def goes_on(self) -> bool:
        """It is run, which is a yes to `resume_task`; whether there are new words. So what was wanted is done."""
        if asked := self._questions.standing:
            kind = AnswerKind.YES if asked.ask == "resume_task" and not self.spoken else AnswerKind.MESSAGE
            try:
                await self._questions.answer(asked.question, Answer(kind, by="run"))
            except BadRequest:  # somebody was quicker
                pass
        spoken, self.wanted, self.spoken = self.spoken, "", False
        return spoken

    async def _ask(
        self,
        ask: Literal["completion_result", "resume_task", "resume_completed_task"],
        text: str,
        *before: TaskEvent,
    ) -> None:
        question = new_question(ask, text)
        self.wanted = ""
        self.answered.clear()

        def follows(answered: QuestionAnswered) -> tuple[TaskEvent, ...]:
            said = words(answered)
            if said or answered.by == "run":
                return said
            told = {
                ("completion_result", AnswerKind.NO): NOT_ACCEPTED,
                ("resume_completed_task", AnswerKind.YES): AGAIN,
            }
            text = told.get((ask, answered.answer), "")
            if answered.text and text:
                text = f"{text} They say: {answered.text}"
            return (ModelTold(at=answered.at, text=text, about="other"),) if text else ()

        def heard(answered: QuestionAnswered) -> None:
            go = AnswerKind.NO if ask == "completion_result" else AnswerKind.YES
            self.wanted = "go" if answered.answer in (go, AnswerKind.MESSAGE) else "stay"
            self.spoken |= bool(words(answered))
            self.answered.set()

        await self._questions.stand(question, *before, follows=follows, heard=heard)


def _spoken(past: Iterable[TaskEvent]) -> bool:
    """Whether a person said something after the model's last word."""
    spoken = False
    for event in past:
        match event:
            case UserSaid() | MessageDelivered():
                spoken = True
            case ModelSaid():
                spoken = False
    return spoken
