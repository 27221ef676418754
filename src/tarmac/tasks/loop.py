"""The turns of a task: ask the model, make its calls, tell it what came of them, until there is an end (S6).

words of the person → environment → request → answer ─calls→ results ─→ …
                                             └no calls→ told so, counted as a mistake

It ends when the result is accepted, when it is the person's turn, at a limit, or when it can't go on. It is stopped by
cancelling it, at any await: what is open then is closed by `aftermath.py`, as after a crash.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from tarmac.models.catalog import price
from tarmac.models.messages import Text, ToolUse, Usage
from tarmac.models.provider import Prompt
from tarmac.policy.approval import AnswerKind
from tarmac.policy.tables import read_tables
from tarmac.prompts.instructions import read_instructions, read_replacement
from tarmac.prompts.system import PromptContext, system_prompt, unsuited_edit_tools
from tarmac.tasks.aftermath import settle
from tarmac.tasks.desk import Desk, Ended, now
from tarmac.tasks.events import ModelSaid, ModelTold, Noted, TaskCompleted
from tarmac.tasks.questions import Questions, words
from tarmac.tasks.queue import Queue
from tarmac.tasks.requests import Requests
from tarmac.tasks.resting import Rest
from tarmac.tasks.surroundings import Surroundings
from tarmac.tasks.talking import commands
from tarmac.tasks.tool_calls import Calls, Tally

MOST_PAUSES: Final = 20  # answers in a row that a provider broke off to be asked on
NO_TOOL: Final = (
    "[ERROR] You did not use a tool in your answer. Every answer uses one: when you have done what was asked, "
    "use attempt_completion; when you need something from the person, use ask_followup_question; else go on with the "
    "next step. (This message is from Tarmac, not from the person: do not answer it.)"
)
EMPTY: Final = "[ERROR] Your answer was empty. Go on with the next step, and use a tool."
CUT: Final = (
    "[ERROR] Your answer reached its limit of length and was cut. Go on from there, more briefly, and use a tool."
)


class Loop:
    """The turns of one open task."""

    def __init__(
        self, desk: Desk, questions: Questions, queue: Queue, rest: Rest, may_go: Callable[[], Awaitable[object]]
    ) -> None:
        self._desk = desk
        self._questions = questions
        self._queue = queue
        self._rest = rest
        self._may_go = may_go  # returns when the task is not paused
        self.requests = Requests(desk, questions)
        self._calls = Calls(desk, questions, queue)
        self._surroundings = Surroundings(desk)
        self._prompt: tuple[object, Prompt] | None = None
        self._tables: asyncio.Future[None] | None = None  # the policy's, read while the model thinks
        self._priced = ""  # the model whose price is known
        self.presented: str | None = None  # the result of this run
        self._mistakes = 0  # turns in a row in which nothing worked
        self._pauses = 0

    async def run(self) -> Ended:
        """Turn by turn, until it ends."""
        try:
            return await self._turns()
        finally:
            self._surroundings.close()

    async def _turns(self) -> Ended:
        desk, self.presented = self._desk, None
        ended = await self._affordable()
        if ended:
            return ended
        self._tables = self._tables or asyncio.get_running_loop().run_in_executor(None, read_tables)
        await self._may_go()
        await desk.log.commit()
        if left := [use for use, _ in desk.history.open_calls]:  # asked for before a restart, and not begun
            ended = await self._make(left, cut=False)
        elif not (desk.history.owed or self._queue or self._pauses):
            ended = Ended("idle")
        while not ended:
            await self._may_go()
            self._queue.take()
            ended = await self._turn()
        return ended

    async def _affordable(self) -> Ended | None:
        """With a limit on cost, a model whose price nobody knows is not asked at all."""
        info = self._desk.model.info
        if self._desk.settings.limits.max_cost is None or self._priced == info.id:
            return None
        if await asyncio.to_thread(price, info, Usage(input=1000, output=1000)) is not None:
            self._priced = info.id
            return None
        return Ended(
            "limit",
            f"the price of {info.id} is not known, so a limit on cost can't be kept: nothing was asked of it "
            "(models.price_input and price_output in config.toml say what it costs)",
        )

    async def _turn(self) -> Ended | None:
        """One answer, and what follows from it."""
        desk = self._desk
        if why := desk.out_of():
            return Ended("limit", why)
        if ended := await self._affordable():  # the model may have been switched
            return ended
        prompt = await self._prepared()
        told: tuple[ModelTold, ...] = ()
        if not self._pauses:
            details = await self._surroundings.look(first=desk.metadata.requests == 0)
            told = (ModelTold(at=now(), text=details, about="environment"),) if details else ()
        said = await self.requests.ask(prompt, told, recorded=self._surroundings.told)
        return said if isinstance(said, Ended) else await self._heed(said)

    async def _heed(self, said: ModelSaid) -> Ended | None:
        uses = [part for part in said.parts if isinstance(part, ToolUse)]
        text = "".join(part.text for part in said.parts if isinstance(part, Text)).strip()
        self._pauses = self._pauses + 1 if said.stop == "pause" and not uses else 0
        if said.stop == "refusal":
            await self._desk.log.commit()
            await settle(self._desk, why="you refused to answer", skip=True)
            self._desk.add(Noted(at=now(), what="error", text="The model refused to answer."))
            return Ended("refused", text or "the model refused to answer")
        if 0 < self._pauses <= MOST_PAUSES:
            return None
        if uses:
            return await self._make(uses, cut=said.stop in ("max_tokens", "cut"))
        told = CUT if said.stop in ("max_tokens", "cut") and said.parts else NO_TOOL if text else EMPTY
        return await self._mistaken(told, tell=True)

    async def _make(self, uses: list[ToolUse], *, cut: bool) -> Ended | None:
        await self._may_go()
        if self._tables and not self._tables.done():
            await asyncio.shield(self._tables)
        tally = await self._calls.run(uses, cut=cut)
        if self._desk.completed is not None:
            return await self._completed(self._desk.completed)
        return await self._counted(tally)

    async def _completed(self, result: str) -> Ended:
        desk = self._desk
        await desk.log.commit()  # the usage is that of all answers
        self._desk.completed, self.presented = None, result
        meta = desk.metadata
        await self._rest.presented(TaskCompleted(at=now(), result=result, usage=meta.usage, cost=meta.total_cost))
        desk.registry.release_for_task(desk.task)
        return Ended("completed", result)

    # What went wrong, and how often in a row

    async def _counted(self, tally: Tally) -> Ended | None:
        if tally.mistakes and not tally.worked:
            return await self._mistaken(tally.mistakes[-1], tell=False)
        if tally.worked:
            self._mistakes = 0
        return None

    async def _mistaken(self, told: str, *, tell: bool) -> Ended | None:
        """Nothing worked in this turn; after some such turns in a row a person must help, or it ends."""
        desk = self._desk
        self._mistakes += 1
        if tell:
            desk.add(ModelTold(at=now(), text=told, about="mistake"))
        most = desk.settings.limits.max_mistakes
        if not most or self._mistakes < most:
            return None
        why = f"The model made {self._mistakes} mistakes in a row. The last: {told}"
        if not desk.attended:
            return Ended("failed", why)
        answered = await self._questions.ask(
            "mistake_limit_reached", f"{why}\nGo on?", timeout=desk.settings.approval_timeout, follows=words
        )
        if answered.answer not in (AnswerKind.YES, AnswerKind.MESSAGE):
            return Ended("failed", why)
        self._mistakes = 0
        return None

    # The prompt

    async def _prepared(self) -> Prompt:
        """System prompt and tools: the same from turn to turn, so that a provider can remember them."""
        desk = self._desk
        key = (desk.mode, desk.model.info.id, desk.model.info.images)
        if self._prompt is None or self._prompt[0] != key:
            self._prompt = (key, await asyncio.to_thread(self._write_prompt))
        return self._prompt[1]

    def _write_prompt(self) -> Prompt:
        desk, settings = self._desk, self._desk.settings
        unsuited = unsuited_edit_tools(desk.model.info.id)
        allowed = [each.name for each in desk.toolbox if desk.mode.allows(each.name, each.group) is None]
        names = [each for each in allowed if each not in unsuited]
        if not commands(desk.workspace, settings.user_folder):
            names = [each for each in names if each != "run_slash_command"]
        tools = desk.toolbox.schemas(names)
        context = PromptContext(
            mode=desk.mode,
            modes=desk.modes,
            tools=tools,
            workspace=desk.workspace,
            system=settings.system,
            instructions=read_instructions(desk.workspace, settings.user_folder, desk.mode.slug),
            global_instructions=settings.instructions,
            language=settings.language,
            replacement=read_replacement(desk.workspace, settings.user_folder, desk.mode.slug)[0],
            several_calls=desk.model.info.native_tools,
            images=desk.model.info.images,
            attended=desk.attended,
            level=settings.auto,
            command_timeout=settings.tools.command_timeout,
        )
        return Prompt(system=system_prompt(context), messages=(), tools=tools)
