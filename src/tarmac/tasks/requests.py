"""Ask the model: its prompt, its answer, and when to ask again.

RequestStarted ─stream→ signals … → ModelSaid
               └ModelError→ RequestFailed ─countdown→ again, at most [3] times → a person is asked, or it is given up

When a person stops a request, the part that came is kept as a cut answer. Its usage is an estimate, and marked so.
"""

import asyncio
import json
import math
import random
import secrets
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

from tarmac.models.messages import NO_USAGE, Blob, Part, Text, ToolUse, Usage
from tarmac.models.model_catalog import price
from tarmac.models.provider import CallDelta, Completion, ModelError, Prompt, ReasoningDelta, TextDelta, ToolSchema
from tarmac.policy.approval import AnswerKind, Authority
from tarmac.prompts.instructions import read_instructions
from tarmac.prompts.system import PromptContext, system_prompt, unsuited_edit_tools
from tarmac.tasks.auto import Kinds
from tarmac.tasks.condense import Condenser
from tarmac.tasks.consent import Consent
from tarmac.tasks.context import Ended, judged, now
from tarmac.tasks.events import CallId, ModelSaid, RequestFailed, RequestId, RequestStarted, TaskEvent
from tarmac.tasks.questions import Questions, words
from tarmac.tasks.repetition import LONGEST_LOOP, repeats
from tarmac.tasks.signals import CallStreamed, ReasoningStreamed, RetryCounted, TextStreamed
from tarmac.tasks.state import TaskState
from tarmac.tasks.talk import commands
from tarmac.tasks.views.model_history import kept_prompt, messages_size, prompt_size

LETTERS: Final = 4  # characters of a token


@dataclass(slots=True)
class Came:
    """What a model has sent so far, in case it is stopped."""

    said: list[str] = field(default_factory=list)
    other: int = 0  # characters of reasoning and calls
    _looked: int = 0  # pieces of `said` at the last look

    def grew(self, by: int) -> bool:
        """Whether `by` characters of text came since this was last true."""
        if sum(map(len, self.said[self._looked :])) < by:
            return False
        self._looked = len(self.said)
        return True

    def end(self, length: int) -> str:
        """The last characters of its text."""
        return "".join(self.said)[-length:]

    def __bool__(self) -> bool:
        return bool(self.said or self.other)


def estimate(prompt: Prompt, came: Came, *, before: int, caching: bool) -> Usage:
    """Estimate the usage of a stopped request; nothing if nothing came.

    It is the window `before`, as the provider counted it, and what was added. Only the last message is measured, so a
    long conversation costs no more to stop than a short one.
    """
    if not came:
        return NO_USAGE
    output = (sum(map(len, came.said)) + came.other) // LETTERS + 1
    if not before:
        return Usage(input=round(prompt_size(prompt)), output=output)
    added = round(messages_size(prompt.messages[-1:]))
    return Usage(input=added if caching else before + added, cache_reads=before if caching else 0, output=output)


FIRST_DELAY: Final = 1.0  # seconds
STILL_TOO_LONG: Final = (
    "nothing more can be left out of this conversation: start a new task, or choose a model with a larger window"
)
JITTER: Final = 0.25  # of the delay, so that tasks that were refused together do not retry together
OFTEN: Final = 2_000  # characters between two checks for text that repeats itself
KEPT_LOOP: Final = 4_000  # characters of an answer that repeats itself
LONGEST_DELAY: Final = 600.0  # seconds; we do not wait for a provider that wants more


class Requests:
    """The requests of one task."""

    def __init__(self, state: TaskState, questions: Questions, condenser: Condenser) -> None:
        self._state = state
        self._questions = questions
        self._condenser = condenser
        self._kept: tuple[str, tuple[ToolSchema, ...], Blob] | None = None  # what is already in the log's blobs
        self.repeated = False  # the last answer was stopped because it repeated itself
        self._priced = ""  # the model whose price was looked up: the next lookup is quick

    async def ask(
        self, prompt: Prompt, first: tuple[TaskEvent, ...], *, recorded: Callable[[], None]
    ) -> ModelSaid | Ended:
        """Return the model's next answer, recorded, or why there is none. `first` is recorded before the request."""
        failures = 0
        state = self._state
        while True:
            if why := state.limit_reached():
                return Ended("limit", why)
            if ended := await self._trusted():
                return ended
            started = await self._start(prompt, first, attempt=failures + 1, recorded=recorded)
            first = ()
            self._condenser.sent(prompt)
            messages = tuple(state.history.messages)
            try:
                said = await self._answer(started, replace(prompt, messages=messages, cache_key=state.context.task))
                self._condenser.counted(NO_USAGE if said.estimated else said.usage)
                return said
            except ModelError as error:
                failures += 1
                failure = error
            if failure.kind == "too_long" and await self._shortened(started.request, failure, prompt):
                failures = 0
                continue
            if failure.kind == "too_long":
                failure.hint = failure.hint or STILL_TOO_LONG
            if ended := await self._failed(started.request, failure, failures):
                return ended
            if state.context.settings.approved.retries and failure.retryable:
                continue
            if not failure.retryable or failures > state.context.settings.limits.max_retries:
                failures = 0  # a person said: go on

    async def _trusted(self) -> Ended | None:
        """At the limit of automatic approvals, ask the person whether to go on."""
        state = self._state
        reached = state.context.settings.limits.untrusted(state.used)
        if reached is None:
            return None
        why = f"{reached.what}: the limit is {f'${reached.count:g}' if reached.type == 'cost' else reached.count}"
        if not state.attended:
            return Ended("limit", f"{why}, and nobody is here who could extend it")
        answered = await self._questions.ask(
            "auto_approval_limit",
            f"{why}. Go on?",
            details=json.dumps({"count": reached.count, "type": reached.type}),
            timeout=state.context.settings.approval_timeout,
            follows=words,
        )
        if answered.answer not in (AnswerKind.YES, AnswerKind.MESSAGE):
            return Ended("limit", f"{why}, and the person did not want it to go on")
        state.used.count_anew()
        return None

    async def _start(
        self, prompt: Prompt, first: tuple[TaskEvent, ...], *, attempt: int, recorded: Callable[[], None]
    ) -> RequestStarted:
        info = self._state.model.info
        started = RequestStarted(
            at=now(),
            request=RequestId(f"r{secrets.token_hex(4)}"),
            model=info.id,
            attempt=attempt,
            prompt=await self._keep(prompt),
            context_window=info.context_window,
        )
        try:
            await self._state.append(*first, started)
        except asyncio.CancelledError:  # the start is recorded nevertheless, so the end is, too
            recorded()
            self._state.add(RequestFailed(at=now(), request=started.request, what="it was stopped"))
            raise
        recorded()
        return started

    async def _keep(self, prompt: Prompt) -> Blob:
        """Store what does not change from turn to turn only once."""
        if self._kept is None or self._kept[0] is not prompt.system or self._kept[1] is not prompt.tools:
            data = kept_prompt(prompt, native_tools=self._state.model.info.native_tools)
            blob = await asyncio.to_thread(self._state.context.log.blobs.keep, data, "application/json")
            self._kept = (prompt.system, prompt.tools, blob)
        return self._kept[2]

    # One answer

    async def _answer(self, started: RequestStarted, prompt: Prompt) -> ModelSaid:
        """Stream it, show it, record it."""
        request, began = started.request, time.monotonic()
        came, self.repeated = Came(), False
        try:
            answer = await self._stream(request, prompt, came)
            usage, guess = answer.usage, False
            if usage == NO_USAGE and came and not self._state.model.info.scripted:  # some servers count nothing
                usage, guess = estimate(prompt, came, before=self._state.context_tokens, caching=False), True
            cost = await self._price(usage)
        except asyncio.CancelledError:
            self._stopped(request, prompt, came, began)
            raise
        event = ModelSaid(
            at=now(),
            request=request,
            parts=self._unique(answer.parts),
            stop=answer.stop,
            usage=usage,
            cost=cost,
            seconds=round(time.monotonic() - began, 3),
            estimated=guess,
        )
        self._state.add(event)  # on the disk before anything acts on it: with the first call's start, or soon
        return event

    async def _stream(self, request: RequestId, prompt: Prompt, came: Came) -> Completion:
        show = self._state.audience.show
        async with aclosing(self._state.model.stream(prompt, load=self._load)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextDelta(text=text):
                        came.said.append(text)
                        show(TextStreamed(request=request, text=text))
                        if came.grew(OFTEN) and repeats(came.end(LONGEST_LOOP)):
                            self.repeated = True
                            return Completion((Text("".join(came.said)[:KEPT_LOOP]),), "cut")
                    case ReasoningDelta(text=text):
                        came.other += len(text)
                        show(ReasoningStreamed(request=request, text=text))
                    case CallDelta(id=call, name=name, arguments=arguments):
                        came.other += len(arguments) or len(name)
                        show(CallStreamed(request=request, call=CallId(call), name=name, arguments=arguments))
                    case Completion():
                        return chunk
        raise ModelError("the answer was cut off", kind="cut")

    def _load(self, blob: Blob) -> bytes:
        data = self._state.context.log.blobs.read(blob.sha256)
        if data is None:
            raise ModelError(f"the picture {blob.sha256[:12]} is lost: its file is gone or damaged", kind="bad_request")
        return data

    def _stopped(self, request: RequestId, prompt: Prompt, came: Came, began: float) -> None:
        """Keep what has come of an answer that we cut off."""
        text = "".join(came.said)
        usage = estimate(prompt, came, before=self._state.context_tokens, caching=self._state.model.info.caching)
        cost = price(self._state.model.info, usage) if came else 0.0
        if text.strip():
            said = ModelSaid(
                at=now(),
                request=request,
                parts=(Text(text),),
                stop="cut",
                usage=usage,
                cost=cost,
                seconds=round(time.monotonic() - began, 3),
                estimated=True,
            )
            self._state.add(said)
        else:
            what = "it was stopped"
            failed = RequestFailed(at=now(), request=request, what=what, usage=usage, cost=cost, estimated=bool(came))
            self._state.add(failed)

    def _unique(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Give calls ids that are unique in the task: some servers count from 0 in each answer."""
        found: list[Part] = []
        taken = set[str](self._state.calls)
        for part in parts:
            if isinstance(part, ToolUse):
                if not part.id or part.id in taken:
                    part = ToolUse(f"call_{secrets.token_hex(8)}", part.name, part.arguments)
                taken.add(part.id)
            found.append(part)
        return tuple(found)

    async def _price(self, usage: Usage) -> float | None:
        info = self._state.model.info
        if info.id == self._priced:
            return price(info, usage)
        cost = await asyncio.to_thread(price, info, usage)
        self._priced = info.id
        return cost

    # No answer

    async def _failed(self, request: RequestId, error: ModelError, failures: int) -> Ended | None:
        """Record the failure, and wait before the next attempt. If there is none, return the end."""
        state = self._state
        limit = state.context.settings.limits.max_retries
        trusted = state.context.settings.approved.retries and failures > limit
        most = None if trusted else limit
        wait = None
        if error.retryable:
            wait = retry_delay(failures, most=most, wanted=error.retry_after, chance=random.random())
        cost = await self._price(error.usage) if error.usage != NO_USAGE else 0.0
        failed = RequestFailed(
            at=now(),
            request=request,
            what=error.what,
            status=error.status,
            hint=error.hint,
            retry_in=wait,
            usage=error.usage,
            cost=cost,
        )
        await state.append(failed)
        if trusted and wait is not None:
            state.add(judged("", "allow", "requests are tried again without asking", part=request, by=Authority.LEVEL))
        if why := state.limit_reached():
            return Ended("limit", why)
        if wait is not None:
            await self._count_down(request, wait)
            return None
        if not state.attended:
            return Ended("failed", error.what, error.hint)
        answered = await self._questions.ask(
            "api_req_failed", f"{error}\nAsk again?", timeout=state.context.settings.approval_timeout, follows=words
        )
        return (
            None if answered.answer in (AnswerKind.YES, AnswerKind.MESSAGE) else Ended("failed", error.what, error.hint)
        )

    async def _shortened(self, request: RequestId, error: ModelError, prompt: Prompt) -> bool:
        """Shorten a request that the provider refused as too long. False if nothing more can be left out."""
        if not await self._condenser.refused(prompt):
            return False
        failed = RequestFailed(at=now(), request=request, what=error.what, status=error.status, retry_in=0.0)
        await self._state.append(failed)
        return True

    async def _count_down(self, request: RequestId, seconds: float) -> None:
        """Wait, with a visible countdown. Stopping the task ends the wait."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._state.audience.show(RetryCounted(request=request, seconds=float(math.ceil(left))))
            await asyncio.sleep(left - math.ceil(left) + 1)  # to the next whole second


def retry_delay(
    failures: int, *, most: int | None = 3, wanted: float | None = None, chance: float = 0.0
) -> float | None:
    """Seconds to wait after so many failures in a row. None after more than `most` (if set): ask a person, or give up.

    `wanted` is the provider's Retry-After, which counts if it is longer. `chance` is from 0 to 1.
    """
    if (most is not None and failures > most) or (wanted is not None and wanted > LONGEST_DELAY):
        return None
    own = min(FIRST_DELAY * 2.0 ** min(failures - 1, 10), LONGEST_DELAY)
    return max(own, wanted or 0.0) + own * JITTER * chance


def _needs_a_person(approved: Kinds) -> set[str]:
    """The tools whose every call only a person could answer or approve."""
    by_itself = {
        "ask_followup_question": approved.questions,
        "switch_mode": approved.modes,
        "new_task": approved.subtasks,
    }
    return {name for name, is_approved in by_itself.items() if not is_approved}


class TaskPrompt:
    """The prompt of one open task, without its messages."""

    def __init__(self, state: TaskState, consent: Consent) -> None:
        self._state = state
        self._consent = consent
        self._made: tuple[object, Prompt] | None = None

    async def prepared(self) -> Prompt:
        """System prompt and tools: the same from turn to turn, so that a provider can cache them."""
        key = self._key()
        if self._made is None or self._made[0] != key:
            self._made = (key, await asyncio.to_thread(self._write))
        return self._made[1]

    async def approved(self) -> Prompt:
        """The same for a request: a person is asked first whether the workspace may replace parts of it."""
        if self._made is None or self._made[0] != self._key():
            await self._consent.settle()
        return await self.prepared()

    def _key(self) -> object:
        state = self._state
        kinds = None if state.attended else state.context.settings.approved
        return (state.mode, state.model.info.id, state.model.info.images, state.history.folded, state.attended, kinds)

    def forget(self) -> None:
        """Read rules and instructions again before the next request."""
        self._made = None

    def _write(self) -> Prompt:
        state, settings = self._state, self._state.context.settings
        unsuited = unsuited_edit_tools(state.model.info.id)
        described = [each for each in state.context.toolbox if each.described]
        allowed = [each.name for each in described if state.mode.allows(each.name, each.group) is None]
        names = [each for each in allowed if each not in unsuited]
        if not commands(state.context.project, settings.user_folder):
            names = [each for each in names if each != "run_slash_command"]
        if not state.history.folded:
            names = [each for each in names if each not in ("read_output", "condense")]
        if not state.attended:
            names = [each for each in names if each not in _needs_a_person(settings.approved)]
        tools = state.context.toolbox.schemas(names)
        context = PromptContext(
            mode=state.mode,
            modes=state.context.modes,
            tools=tools,
            workspace=state.context.workspace,
            system=settings.system,
            instructions=read_instructions(state.context.project, settings.user_folder, state.mode.slug),
            global_instructions=settings.instructions,
            language=settings.language,
            replacement=self._consent.replacement(),
            several_calls=state.model.info.native_tools,
            images=state.model.info.images,
            servers=state.context.servers.names,
            attended=state.attended,
            command_timeout=settings.tools.command_timeout,
        )
        return Prompt(system=system_prompt(context), messages=(), tools=tools)
