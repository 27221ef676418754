"""A task at rest asks one question: is its result accepted, or shall it go on?

the model presents its result   completion_result        yes: it stays completed        no, words: it goes on
opened again, it was completed  resume_completed_task    yes, words: it goes on         no: it stays so
opened again, anything else     resume_task              yes, words: it goes on         no: it stands still

Nobody waits for the answer, so nothing hangs. A run ends with the question, and the next run begins with the answer. A
message counts as an answer. Running a task that asks `resume_task` is a yes. The other questions stay open until they
are answered. Without a person, a result is accepted, and an opened task goes on when it is run.

Commands may still run while it is the person's turn. `Wake` starts a run when one of them ends or asks for input.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal
from weakref import WeakSet

from tarmac.errors import BadRequest, StateUnavailable, TerminalClosed
from tarmac.events import TerminalId
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.context import now
from tarmac.tasks.events import (
    MessageDelivered,
    ModelSaid,
    ModelTold,
    Noted,
    QuestionAnswered,
    TaskCompleted,
    TaskEvent,
    UserSaid,
)
from tarmac.tasks.questions import Questions, new_question, words
from tarmac.tasks.state import TaskState
from tarmac.terminals.execution import Execution
from tarmac.tools.execute_command import short, stands
from tarmac.tools.terminal_status import ended

NOT_ACCEPTED: Final = "[The person does not accept this result. Find out what is missing, and go on.]"
AGAIN: Final = "[The person wants this completed task to go on. Find out what is left to do, or ask them.]"
WOKEN: Final = (
    "[The person said nothing. You are woken because of a command that you left running: {news}. Go on with what "
    "depends on it. If nothing does, say so in one sentence.]"
)
MOST_WAKES: Final = 20  # since the person's last words
AN_HOUR: Final = 3600.0


class Rest:
    """What a person wants from a task at rest."""

    def __init__(self, state: TaskState, questions: Questions, past: Iterable[TaskEvent] = ()) -> None:
        self._state = state
        self._questions = questions
        self.wanted: Literal["", "go", "stay"] = ""
        self.spoken = _spoken(past)  # they said something that the model has not answered
        self.answered = asyncio.Event()

    def said(self) -> None:
        """The person said something without being asked."""
        self.spoken = True
        self.answered.set()

    def woken(self) -> None:
        """A command that it left running has ended or asks for input."""
        self.wanted = "go"
        self.answered.set()

    def rewound(self) -> None:
        """Forget what the person said since then."""
        self.spoken, self.wanted = False, ""

    async def presented(self, completed: TaskCompleted) -> None:
        """The model is done: record it, and ask the person if there is one."""
        if not self._state.attended or self._state.metadata.parent:  # a subtask's result is its parent's to accept
            await self._state.context.log.append(completed)
            return
        await self._ask("completion_result", completed.result, completed)

    async def opened(self) -> None:
        """An earlier task was opened. On a full disk no question is recorded."""
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


class Wake:
    """Wakes a task at rest when a command that it left running ends or asks for input, once for each.

    No request is made until then. Without a listener nothing is watched.
    """

    def __init__(self, state: TaskState) -> None:
        self._state = state
        self.listeners: list[Callable[[], object]] = []
        self._watch: asyncio.Task[None] | None = None
        self._asked: WeakSet[Execution] = WeakSet()  # the model knows that they asked
        self._times = 0

    def spoken(self) -> None:
        """The person said something."""
        self._times = 0

    def rest(self, asking: Collection[str]) -> None:
        """The task rests from now on. `asking`: the terminals of which the model knows that they ask."""
        wanted = self._state.context.settings.tools.wake_on_exit and self.listeners
        if not wanted or self._watch or self._times >= MOST_WAKES:
            return
        left = dict(self._left())
        self._asked.update(each for each, terminal in left.items() if terminal in asking and each.waiting)
        if left:
            self._watch = asyncio.create_task(self._until_news(left), name=f"watch of {self._state.context.task}")

    def stop(self) -> None:
        """The task works again."""
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None

    async def aclose(self) -> None:
        """Stop watching. May be called twice."""
        watch = self._watch
        self.stop()
        if watch is not None:
            await asyncio.wait([watch])

    def _left(self) -> Iterable[tuple[Execution, TerminalId]]:
        """The commands of the task that run, and those whose end the model was not told."""
        registry, task = self._state.context.registry, self._state.context.task
        for terminal in (*registry.listing(task=task), *(each for each in registry.gone if each.task == task)):
            running = [terminal.current] if terminal.current is not None else []
            yield from ((each, terminal.id) for each in (*terminal.unread, *running) if not each.by_person)

    async def _until_news(self, left: dict[Execution, TerminalId]) -> None:
        watched = {each: asyncio.ensure_future(self._news(each)) for each in left}
        try:
            await asyncio.wait(watched.values(), return_when=asyncio.FIRST_COMPLETED)
            news = [f"{job.result()}, in terminal {left[each]}" for each, job in watched.items() if job.done()]
        finally:
            for job in watched.values():
                job.cancel()
            await asyncio.gather(*watched.values(), return_exceptions=True)
        self._watch = None
        self._times += 1
        text = "; ".join(news)
        self._state.add(Noted(at=now(), what="notice", text=f"{text}. The task goes on"))
        self._state.add(ModelTold(at=now(), text=WOKEN.format(news=text), about="other"))
        for listener in self.listeners:
            listener()

    async def _news(self, execution: Execution) -> str:
        """Wait until a command has news, and return them."""
        command = f"`{short(execution.command)}`"
        while execution.running:
            try:
                if execution in self._asked:
                    await execution.ended(AN_HOUR)
                    continue
                happened = await execution.waiting_for(input=True, secrets=False, timeout=AN_HOUR)
            except TerminalClosed:
                await execution.ended(AN_HOUR)
                continue
            if happened.waiting is not None and await stands(execution, happened.waiting):
                self._asked.add(execution)
                return f"{command} waits for input"
        return f"{command} has ended ({ended(execution)})"


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
