"""The engine of a task: ask the model, make its calls, send it the results, and repeat until the run ends.

until_idle ─ begin ─┬→ words of the person → environment → request → answer ─calls→ results ─┐
                    └────────────────────────────────────────────────────────────────────────┘→ Ended

    a run     begins (and reports what an earlier process left open), goes on turn by turn, and is closed in order
    a turn    one request to the model, and what follows from its answer: calls, or a note that it used no tool
    an end    the result is accepted, it is the person's turn, a limit is reached, or it can't go on

A run is an asyncio task of its own. Cancelling it, at any await, stops it. Then every open call gets its result
(`call_recorder.py`), as after a crash. The caller of `until_idle` owns the run. If the caller is cancelled,
the run is stopped, and the cancellation waits until the run is left in order.

Beside it: requests.py (the model, retries), tool_calls.py (the calls of one answer), repetition.py, limits.py, rest.py
(a task that stands still), surroundings.py (the environment that the model is told).
"""

import asyncio
import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import Final

from tarmac import __version__
from tarmac.errors import BadRequest, StateUnavailable
from tarmac.models.messages import Text, ToolUse, Usage
from tarmac.models.model_catalog import price
from tarmac.models.provider import Prompt
from tarmac.policy.approval import AnswerKind
from tarmac.policy.judge import read_tables
from tarmac.tasks import events as e
from tarmac.tasks.call_recorder import end_survivors, killed_host, settle, take_over
from tarmac.tasks.condense import Condenser, CondenseWish
from tarmac.tasks.consent import Consent
from tarmac.tasks.context import Ended, now
from tarmac.tasks.limits import WorkTime
from tarmac.tasks.questions import Questions, words
from tarmac.tasks.requests import Requests, TaskPrompt
from tarmac.tasks.rest import Rest, Wake
from tarmac.tasks.state import TaskState
from tarmac.tasks.subtasks import Subtasks
from tarmac.tasks.surroundings import Surroundings
from tarmac.tasks.talk import Queue
from tarmac.tasks.tool_calls import Calls, Tally
from tarmac.tools.call_decoder import example

MOST_DENIALS: Final = 10  # answers in a row in which all was denied, where nobody is there to stop the model
MOST_PAUSES: Final = 20  # answers in a row that the provider paused, so that we ask it to continue
NO_TOOL: Final = (
    "[ERROR] You did not use a tool in your answer. Every answer uses one: when you have done what was asked, "
    "use attempt_completion; when you need something from the person, use ask_followup_question; else go on with the "
    "next step. (This message is from Tarmac, not from the person: do not answer it.)"
)
AS_TEXT: Final = (
    "[ERROR] You wrote a call as text, and text calls nothing. Make it with your interface for tool calls: the tool "
    "`{name}`, with arguments such as {arguments}. (This message is from Tarmac, not from the person.)"
)
REPEATS: Final = "[ERROR] Your answer repeated itself and was stopped. Go on with the next step, and use a tool."
EMPTY: Final = "[ERROR] Your answer was empty. Go on with the next step, and use a tool."
CUT: Final = (
    "[ERROR] Your answer reached its limit of length and was cut. Go on from there, more briefly, and use a tool."
)
RESUMED: Final = (
    "[This task was interrupted and is resumed now. Time has passed: files may have changed, and commands and "
    "terminals from before are gone, but for those that you are told of below.]"
)
STOPPED: Final = "[The person stopped you here, and now wants you to go on.]"


_CALL_AS_TEXT = re.compile(r"<tool_call>|<function=|```(?:json)?\s*\{\s*\"(?:name|tool|function)\"")


def looks_like_a_call(text: str, tools: Iterable[str]) -> bool:
    """PURE: whether a model wrote a call as text instead of making it."""
    return bool(_CALL_AS_TEXT.search(text)) or any(f"<{name}>" in text for name in tools)


class Engine:
    """The runs of one open task, one at a time."""

    def __init__(
        self,
        state: TaskState,
        questions: Questions,
        queue: Queue,
        past: Sequence[e.TaskEvent],
        subtasks: Subtasks | None = None,
    ) -> None:
        self._state = state
        self._questions = questions
        self._queue = queue
        self.rest = Rest(state, questions, past)
        self.wake = Wake(state)
        self.condenser = Condenser(state)
        self._requests = Requests(state, questions, self.condenser)
        self._subtasks = subtasks
        self.calls = Calls(state, questions, queue, subtasks, self._may_go, self.condenser)
        self._surroundings = Surroundings(state)
        self._consent = Consent(state, questions)
        self._prompt = TaskPrompt(state, self._consent)
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        # The run
        self.begun = False  # in this process
        self._resumes = bool(state.metadata.requests)
        self._killed = killed_host(past)
        self._work: asyncio.Task[Ended] | None = None
        self._at_work = False  # it has made its first step
        self._stop: Ended | None = None  # why it was stopped
        self._interrupted = False  # the last run ended with a stop
        self._said: Ended | None = None  # how the model ended this run
        self._tables: asyncio.Future[None] | None = None  # the policy's tables, read while the model thinks
        self._priced = ""  # the model whose price is known
        # Its turns
        self._mistakes = 0  # turns in a row in which nothing worked
        self._denials = 0  # turns in a row in which all was denied
        self._nudged = False  # the last answer was plain text, and the model was told to go on
        self._pauses = 0
        self._heeded = 0  # the last event with words of the person that the model has answered
        questions.left = state.unanswered

    @property
    def active(self) -> bool:
        return self._work is not None

    @property
    def has_words(self) -> bool:
        """Whether words came with the end of the last run, and nobody stopped it."""
        return bool(self._queue) and self._stop is not None and self._stop.why in ("idle", "completed")

    # The run

    async def until_idle(self) -> Ended:
        """Run until the task is done, or it is the person's turn."""
        if self.active:
            raise BadRequest(f"task {self._state.context.task} is running already")
        self._stop = None
        self.wake.stop()
        self._work = work = asyncio.create_task(self._run(), name=f"task {self._state.context.task}")
        self._state.begin_run(self._clock())
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            self._questions.leaving = True  # the front end leaves: its questions are asked again
            self.end(Ended("interrupted", "it was stopped"))
            await _until_done(work)
            raise
        finally:
            self._state.clock.done()
            self._work, self._at_work = None, False
        ended = work.result()
        if ended.why == "idle" and self._state.attended:
            self.wake.rest(self._surroundings.asking)
        return ended

    async def _run(self) -> Ended:
        self._at_work = True
        ended = Ended("interrupted")
        try:
            try:
                ended = self._stop or await self._begin() or await self._turns()
                while ended.why == "completed" and await self._wanted():  # words that came along with the result
                    ended = Ended("interrupted")
                    ended = await self._begin() or await self._turns()
                if self._stop:
                    await asyncio.sleep(0)  # a stop that came with the last step takes effect here
            except asyncio.CancelledError:
                _uncancel()
                await self._settle()
                if ended.why != "completed":
                    ended = self._said_already() or self._stop or ended
            self._interrupted = ended.why == "interrupted"
            self._stop = self._stop or ended  # from here on there is nothing to stop
            return await self._finish(self._stop if self._stop.why == "aborted" else ended)
        except StateUnavailable as error:
            return Ended("failed", error.what, error.hint)

    def _said_already(self) -> Ended | None:
        """How the model had ended the run when the stop came: its result or its answer was being written."""
        if self._said is None:
            return None
        done = not self._queue if self._said.why == "idle" else self._state.metadata.outcome == "completed"
        return self._said if done else None

    async def _begin(self) -> Ended | None:
        """Record that this process runs the task, and find out what became of calls that were cut off."""
        self._said = None
        state, log, rest = self._state, self._state.context.log, self.rest
        outcome = state.metadata.outcome
        if not await self._wanted():
            if outcome == "completed":
                return Ended("completed")
            if rest.wanted == "stay":
                return Ended("idle", "the person did not want it to go on")
        spoken = await rest.goes_on()
        paused = not self.unpaused.is_set()  # a person paused it, and has not unpaused it yet
        if not self.begun:
            started = e.TaskStarted(at=now(), pid=os.getpid(), version=__version__)
            await log.append(started, *([e.TaskPaused(at=now())] if paused else []))
        elif outcome or (state.metadata.status == "paused" and not paused):
            await log.append(e.TaskUnpaused(at=now()))
        left = await end_survivors(state, self._killed) + await take_over(state) if not self.begun else ""
        await state.checkpoints.settle()
        if state.history.open_calls:
            again, kept = self._asked_again(), self._unfinished()
            await settle(state, why="Tarmac was stopped", skip=spoken, again=again | kept, kept=kept)
            state.not_begun(kept)
        if not self.begun and self._resumes:
            state.add(e.ModelTold(at=now(), text=RESUMED + left, about="resumption"))
        elif self._interrupted and not (state.history.owed or self._queue):  # it was stopped in the middle of an answer
            state.add(e.ModelTold(at=now(), text=STOPPED, about="resumption"))
        self._interrupted = False
        self.begun = True
        self._questions.leaving = False
        return None

    async def _wanted(self) -> bool:
        """Whether a person wants the task to go on, or has said anything else."""
        await self._questions.settled()
        return bool(self.rest.spoken or self._queue or self.rest.wanted == "go")

    def _asked_again(self) -> set[e.CallId]:
        """Calls that have only asked so far. They are made again, and ask again."""
        started = {call: each.started for call, each in self._state.under_way.items()}
        again = {call for call in self._questions.left if (to := started.get(call)) and not (to.intents or to.command)}
        self._state.not_begun(again)
        self._questions.left.clear()
        return again

    def _unfinished(self) -> set[e.CallId]:
        """Calls whose subtask was cut off. The subtask is resumed."""
        return self._subtasks.unfinished if self._subtasks else set()

    async def _finish(self, ended: Ended) -> Ended:
        if ended.why == "limit":
            await self._state.context.log.append(e.TaskPaused(at=now(), why=ended.text))
        elif ended.why == "aborted":
            await self._aborted(ended.text)
        else:
            await self._state.context.log.commit()
        return ended

    # Its turns

    async def _turns(self) -> Ended:
        """Turn by turn, until it ends."""
        try:
            return await self._until_ended()
        finally:
            self._surroundings.close()

    async def _until_ended(self) -> Ended:
        state = self._state
        ended = await self._affordable()
        if ended:
            return ended
        self._tables = self._tables or asyncio.get_running_loop().run_in_executor(None, read_tables)
        await self._may_go()
        await state.context.log.commit()
        await self._consent.settle()
        if left := [use for use, _ in state.history.open_calls]:  # calls from before a restart that have not begun
            ended = await self._make(left, cut=False)
        elif not (state.history.owed or self._queue or self._pauses):
            ended = Ended("idle")
        while not ended:
            await self._may_go()
            ended = await self._turn(spoken=bool(self._queue.take()))
        return ended

    async def _turn(self, *, spoken: bool) -> Ended | None:
        """One answer, and what follows from it. `spoken`: words of the person are on their way to the log."""
        state = self._state
        if why := state.limit_reached():
            return Ended("limit", why)
        if ended := await self._affordable():  # the model may have been switched
            return ended
        if spoken := spoken or state.history.spoken_at > self._heeded:
            self.calls.spoken_to()
            self.wake.spoken()
        prompt = await self._prompt.approved()
        if not self._pauses and await self._condensed(prompt):
            prompt = await self._prompt.prepared()
        told: tuple[e.ModelTold, ...] = ()
        if not self._pauses:
            details = await self._surroundings.look(first=state.metadata.requests == 0, spoken=spoken)
            told = (e.ModelTold(at=now(), text=details, about="environment"),) if details else ()
        said = await self._requests.ask(prompt, told, recorded=self._surroundings.told)
        self._heeded = max(self._heeded, state.history.spoken_at)
        return said if isinstance(said, Ended) else await self._heed(said)

    async def _condensed(self, prompt: Prompt) -> bool:
        """Whether the conversation was condensed. Then rules are read again, and the whole environment is sent."""
        try:
            done = await self.condenser.before_request(prompt)
        except BadRequest as error:
            self._state.add(e.Noted(at=now(), what="notice", text=str(error)))
            return False
        if done:
            self._prompt.forget()
            self._surroundings.forget()
        return done

    async def condense(self, focus: str) -> None:
        """Condense the conversation now, or before the next request if the task runs."""
        wish = CondenseWish(focus, by_person=True)
        if self.active:
            self.condenser.wanted = wish
            return
        await self.condenser.condense(await self._prompt.prepared(), wish)
        self._prompt.forget()
        self._surroundings.forget()

    async def context_parts(self) -> dict[str, int]:
        """What fills the context window."""
        return self.condenser.parts(await self._prompt.prepared())

    async def _heed(self, said: e.ModelSaid) -> Ended | None:
        uses = [part for part in said.parts if isinstance(part, ToolUse)]
        text = "".join(part.text for part in said.parts if isinstance(part, Text)).strip()
        self._pauses = self._pauses + 1 if said.stop == "pause" and not uses else 0
        if said.stop == "refusal":
            await self._state.context.log.commit()
            await settle(self._state, why="you refused to answer", skip=True)
            self._state.add(e.Noted(at=now(), what="error", text="The model refused to answer."))
            return Ended("refused", text or "the model refused to answer")
        if 0 < self._pauses <= MOST_PAUSES:
            return None
        if self._requests.repeated:
            if not self._state.attended:
                return Ended("failed", "the model repeats itself: the same words over and over in one answer")
            return await self._mistaken(REPEATS, tell=True)
        if uses:
            return await self._make(uses, cut=said.stop in ("max_tokens", "cut"))
        if said.stop in ("max_tokens", "cut") and said.parts:
            return await self._mistaken(CUT, tell=True)
        if text and said.stop != "pause":
            return await self._answered(text)
        return await self._mistaken(NO_TOOL if text else EMPTY, tell=True)

    async def _answered(self, text: str) -> Ended | None:
        """Plain text is an answer. A model that clearly meant to go on is told so, once."""
        if not self._nudged and self._means_to_go_on(text):
            self._nudged = True
            return await self._mistaken(self._right_call(text) or NO_TOOL, tell=True)
        self._nudged, self._mistakes = False, 0
        if not self._state.attended or self._state.metadata.parent:
            return await self._completed(text)
        self._said = Ended("idle", text)
        await self._state.context.log.commit()
        return self._said

    def _right_call(self, text: str) -> str:
        """How to make the call that is written in `text`; "" if there is none."""
        tools = self._state.context.toolbox
        if not self._state.model.info.native_tools or not looks_like_a_call(text, tools.names):
            return ""
        named = [each for each in tools.names if re.search(rf"\b{re.escape(each)}\b", text)]
        (schema,) = tools.schemas([min(named, key=text.index)] if named else ["list_files"])
        return AS_TEXT.format(name=schema.name, arguments=json.dumps(example(schema.parameters), ensure_ascii=False))

    def _means_to_go_on(self, text: str) -> bool:
        """Whether the model has no native tools, has open items on its list, or wrote a call as text."""
        state = self._state
        open_items = any(todo.status != "done" for todo in state.todos)
        return not state.model.info.native_tools or open_items or looks_like_a_call(text, state.context.toolbox.names)

    async def _make(self, uses: list[ToolUse], *, cut: bool) -> Ended | None:
        if self._tables and not self._tables.done():
            await asyncio.shield(self._tables)
        self._nudged = False
        tally = await self.calls.run(uses, cut=cut)
        if (result := self._state.take_result()) is not None:
            return await self._completed(result)
        if tally.circle:
            return Ended("failed", tally.circle)
        return await self._counted(tally)

    async def _completed(self, result: str) -> Ended:
        state = self._state
        await state.context.log.commit()  # so that the usage includes all answers
        self._said = Ended("completed", result)
        meta = state.metadata
        self._tell_what_runs()
        tools = tuple(
            e.ToolUsage(name=name, calls=each.calls, failures=each.failures) for name, each in meta.tools.items()
        )
        await self.rest.presented(
            e.TaskCompleted(at=now(), result=result, usage=meta.usage, cost=meta.total_cost, tools=tools)
        )
        state.context.registry.release_for_task(state.context.task)
        return self._said

    def _tell_what_runs(self) -> None:
        """Tell the person and the model which commands still run when a task is done."""
        busy = self._state.context.registry.listing(busy=True, task=self._state.context.task)
        running = [f"`{each.current.command}` in {each.id}" for each in busy if each.current is not None]
        if running:
            text = f"still running in the background: {', '.join(running)}"
            self._state.add(e.Noted(at=now(), what="notice", text=text))
            self._state.add(e.ModelTold(at=now(), text=f"[When you presented the result, {text}]", about="other"))

    async def _counted(self, tally: Tally) -> Ended | None:
        if tally.mistakes and not tally.worked:
            return await self._mistaken(tally.mistakes[-1], tell=False)
        if tally.worked:
            self._mistakes = self._denials = 0
        elif tally.denied:
            self._denials += 1
        if self._denials >= MOST_DENIALS and not self._state.attended:
            return Ended("failed", f"{self._denials} answers of the model in a row wanted what nobody here can allow")
        return None

    async def _mistaken(self, told: str, *, tell: bool) -> Ended | None:
        """Nothing worked in this turn. After some such turns in a row, ask a person, or end the run."""
        state = self._state
        self._mistakes += 1
        if tell:
            state.add(e.ModelTold(at=now(), text=told, about="mistake"))
        most = state.context.settings.limits.max_mistakes
        if not most or self._mistakes < most:
            return None
        last = told.removeprefix("[ERROR] ").partition(". ")[0].rstrip(".")  # the rest is advice for the model
        why = f"The model made {self._mistakes} mistakes in a row. The last: {last}."
        if not state.attended:
            return Ended("failed", why)
        answered = await self._questions.ask(
            "mistake_limit_reached", f"{why}\nGo on?", timeout=state.context.settings.approval_timeout, follows=words
        )
        if answered.answer not in (AnswerKind.YES, AnswerKind.MESSAGE):
            return Ended("failed", why)
        self._mistakes = 0
        return None

    async def _affordable(self) -> Ended | None:
        """With a limit on cost, a model with an unknown price is not asked at all."""
        info = self._state.model.info
        if self._state.context.settings.limits.max_cost is None or self._priced == info.id:
            return None
        if await asyncio.to_thread(price, info, Usage(input=1000, output=1000)) is not None:
            self._priced = info.id
            return None
        return Ended(
            "limit",
            f"the price of {info.id} is not known, so a limit on cost can't be kept: nothing was asked of it "
            "(models.price_input and price_output in config.toml say what it costs)",
        )

    # Stopping and pausing

    def _clock(self) -> WorkTime:
        clock, seconds = WorkTime(), self._state.context.settings.limits.max_seconds
        if seconds is not None:
            over = Ended("limit", f"the limit of {seconds:g} s is reached")
            clock.ring(seconds, lambda: self.end(over))
        return clock

    async def _may_go(self) -> None:
        """Wait while the task is paused."""
        if not self.unpaused.is_set():
            with self._state.waits():
                await self.unpaused.wait()

    def end(self, ended: Ended) -> None:
        """Stop the run, once. An abort also counts while the run is being stopped."""
        if self._work is None:
            return
        if self._stop is None and self._at_work:  # before its first step, the run looks at `_stop` itself
            self._work.cancel()
        if self._stop is None or ended.why == "aborted":
            self._stop = ended

    async def ended(self) -> None:
        """Wait for the end of the run, if there is one."""
        if self._work is not None:
            await _until_done(self._work)

    async def abort(self, why: str) -> None:
        """End the task before it is done, whether it runs or not."""
        if self._work is None:
            await self._aborted(why)
        else:
            self.end(Ended("aborted", why))
            await asyncio.wait([self._work])

    def rewound(self) -> None:
        """The conversation goes on from an earlier point, with the person's next words."""
        self.rest.rewound()
        self._said, self._interrupted, self._nudged = None, False, False
        self._mistakes = self._denials = self._pauses = 0

    async def leave(self) -> None:
        """Stop the run because the process exits. Calls that only waited for an answer ask again later."""
        await self.wake.aclose()
        self._questions.leaving = True
        self.end(Ended("interrupted", "Tarmac was closed"))
        await self.ended()

    async def _settle(self) -> None:
        """After a stop, give every call a result. If the process exits, calls that only waited ask again later."""
        why = self._stop.text if self._stop else "it was stopped"
        await self._state.context.log.commit()
        again = self._questions.left | self._unfinished() if self._questions.leaving else set[e.CallId]()
        await settle(self._state, why=why, skip=not self._questions.leaving, again=again)
        await self._state.context.log.commit()

    async def _aborted(self, why: str) -> None:
        self._questions.withdraw()
        try:
            await self._state.context.log.append(e.TaskAborted(at=now(), why=why))
        finally:
            await self._state.context.registry.end_task(self._state.context.task)


def _uncancel() -> None:
    """The stop took effect: what is awaited from now on is not cancelled."""
    current = asyncio.current_task()
    while current and current.cancelling():
        current.uncancel()


async def _until_done(work: "asyncio.Task[Ended]") -> None:
    """Wait for its end, even if we are cancelled: it only closes what it had open, and that ends."""
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            continue
