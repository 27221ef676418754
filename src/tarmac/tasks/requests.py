"""Ask the model, and ask again when it did not answer: visibly, and only where that can help (S6).

RequestStarted ─stream→ signals … → ModelSaid
               └ModelError→ RequestFailed ─countdown→ again, at most [3] times → a person is asked, or it is given up

What had come when a person stopped it is kept, as an answer that was cut. What it took is a guess then, and marked so.
"""

import asyncio
import json
import math
import random
import secrets
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from tarmac.models.catalog import price
from tarmac.models.messages import NO_USAGE, Blob, Part, Text, ToolUse, Usage
from tarmac.models.provider import CallDelta, Completion, ModelError, Prompt, ReasoningDelta, TextDelta, ToolSchema
from tarmac.policy.approval import AnswerKind, Authority
from tarmac.tasks.counting import Came, estimate
from tarmac.tasks.desk import Desk, Ended, judged, now
from tarmac.tasks.events import CallId, ModelSaid, RequestFailed, RequestId, RequestStarted, TaskEvent
from tarmac.tasks.questions import Questions, words
from tarmac.tasks.retrying import delay
from tarmac.tasks.signals import CallStreamed, ReasoningStreamed, RetryCounted, TextStreamed


class Requests:
    """Those of one task."""

    def __init__(self, desk: Desk, questions: Questions) -> None:
        self._desk = desk
        self._questions = questions
        self._taken: set[str] = set()  # ids of calls: some servers count from 0 in each answer
        self._kept: tuple[str, tuple[ToolSchema, ...], Blob] | None = None  # what the log's blobs have already
        self._priced = ""  # the model whose price was asked for once: from then on it is quick

    def know(self, call: str) -> None:
        """An id that is in the log."""
        self._taken.add(call)

    async def ask(
        self, prompt: Prompt, first: tuple[TaskEvent, ...], *, recorded: Callable[[], None]
    ) -> ModelSaid | Ended:
        """The model's next answer, recorded; or why there is none. `first` is recorded before it is asked."""
        failures = 0
        desk = self._desk
        while True:
            if why := desk.out_of():
                return Ended("limit", why)
            if ended := await self._trusted():
                return ended
            started = await self._start(prompt, first, attempt=failures + 1, recorded=recorded)
            first = ()
            try:
                return await self._answer(started, replace(prompt, messages=tuple(desk.history.messages)))
            except ModelError as error:
                failures += 1
                failure = error
            if ended := await self._failed(started.request, failure, failures):
                return ended
            if desk.settings.approved.retries and failure.retryable:
                continue
            if not failure.retryable or failures > desk.settings.limits.max_retries:
                failures = 0  # a person said: go on

    async def _trusted(self) -> Ended | None:
        """At the limit of what is done in a person's place, they say whether it goes on (P7)."""
        desk = self._desk
        reached = desk.settings.limits.untrusted(desk.used)
        if reached is None:
            return None
        why = f"{reached.what}: the limit is {f'${reached.count:g}' if reached.type == 'cost' else reached.count}"
        if not desk.attended:
            return Ended("limit", f"{why}, and nobody is here to say that it shall go on")
        answered = await self._questions.ask(
            "auto_approval_limit",
            f"{why}. Go on?",
            details=json.dumps({"count": reached.count, "type": reached.type}),
            timeout=desk.settings.approval_timeout,
            follows=words,
        )
        if answered.answer not in (AnswerKind.YES, AnswerKind.MESSAGE):
            return Ended("limit", f"{why}, and the person did not want it to go on")
        desk.used.count_anew()
        return None

    async def _start(
        self, prompt: Prompt, first: tuple[TaskEvent, ...], *, attempt: int, recorded: Callable[[], None]
    ) -> RequestStarted:
        info = self._desk.model.info
        started = RequestStarted(
            at=now(),
            request=RequestId(f"r{secrets.token_hex(4)}"),
            model=info.id,
            attempt=attempt,
            prompt=await self._keep(prompt),
            context_window=info.context_window,
        )
        self._desk.used.requests += 1
        try:
            await self._desk.log.append(*first, started)
        except asyncio.CancelledError:  # it is recorded nevertheless, so its end is, too
            recorded()
            self._desk.add(RequestFailed(at=now(), request=started.request, what="it was stopped"))
            raise
        recorded()
        return started

    async def _keep(self, prompt: Prompt) -> Blob:
        """What does not change from turn to turn is kept once."""
        if self._kept is None or self._kept[0] is not prompt.system or self._kept[1] is not prompt.tools:
            text = "\n\n".join([prompt.system, *(f"{each.name}: {each.parameters}" for each in prompt.tools)])
            data = text.encode("utf-8", "surrogatepass")
            blob = await asyncio.to_thread(self._desk.log.blobs.keep, data, "text/plain")
            self._kept = (prompt.system, prompt.tools, blob)
        return self._kept[2]

    # One answer

    async def _answer(self, started: RequestStarted, prompt: Prompt) -> ModelSaid:
        """Stream it, show it, record it."""
        request, began = started.request, time.monotonic()
        came = Came()
        try:
            answer = await self._stream(request, prompt, came)
        except asyncio.CancelledError:
            self._stopped(request, prompt, came, began)
            raise
        usage, guess = answer.usage, False
        if usage == NO_USAGE and came and not self._desk.model.info.scripted:  # some servers count nothing
            usage, guess = estimate(prompt, came, before=self._desk.context, caching=False), True
        cost = await self._price(usage)
        self._desk.used.turns += 1
        self._spend(cost)
        self._desk.context = usage.context
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
        self._desk.add(event)  # on the disk before anything acts on it: with the first call's start, or soon
        return event

    def _spend(self, cost: float | None) -> None:
        desk = self._desk
        desk.used.cost += cost or 0.0
        desk.used.unpriced += cost is None
        desk.cost = None if cost is None or desk.cost is None else desk.cost + cost

    async def _stream(self, request: RequestId, prompt: Prompt, came: Came) -> Completion:
        show = self._desk.audience.show
        async with aclosing(self._desk.model.stream(prompt, load=self._load)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextDelta(text=text):
                        came.said.append(text)
                        show(TextStreamed(request=request, text=text))
                    case ReasoningDelta(text=text):
                        came.other += len(text)
                        show(ReasoningStreamed(request=request, text=text))
                    case CallDelta(id=call, name=name, arguments=arguments):
                        came.other += len(arguments) or len(name)
                        show(CallStreamed(request=request, call=CallId(call), name=name, arguments=arguments))
                    case Completion():
                        return chunk
        raise ModelError("the answer ended without its end", kind="cut")

    def _load(self, blob: Blob) -> bytes:
        data = self._desk.log.blobs.read(blob.sha256)
        if data is None:
            raise ModelError(f"the picture {blob.sha256[:12]} is lost: its file is gone or damaged", kind="bad_request")
        return data

    def _stopped(self, request: RequestId, prompt: Prompt, came: Came, began: float) -> None:
        """It was cut off from our side: what had come stays."""
        text = "".join(came.said)
        usage = estimate(prompt, came, before=self._desk.context, caching=self._desk.model.info.caching)
        cost = price(self._desk.model.info, usage) if came else 0.0
        self._spend(cost)
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
            self._desk.context = usage.context
            self._desk.add(said)
        else:
            what = "it was stopped"
            failed = RequestFailed(at=now(), request=request, what=what, usage=usage, cost=cost, estimated=bool(came))
            self._desk.add(failed)

    def _unique(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Calls by ids that no other call of the task has."""
        found: list[Part] = []
        for part in parts:
            if isinstance(part, ToolUse):
                if not part.id or part.id in self._taken:
                    part = ToolUse(f"call_{secrets.token_hex(8)}", part.name, part.arguments)
                self._taken.add(part.id)
            found.append(part)
        return tuple(found)

    async def _price(self, usage: Usage) -> float | None:
        info = self._desk.model.info
        if info.id == self._priced:
            return price(info, usage)
        cost = await asyncio.to_thread(price, info, usage)
        self._priced = info.id
        return cost

    # No answer

    async def _failed(self, request: RequestId, error: ModelError, failures: int) -> Ended | None:
        """Record it, and wait for the right moment to try again; or the end of it."""
        desk = self._desk
        limit = desk.settings.limits.max_retries
        trusted = desk.settings.approved.retries and failures > limit
        most = None if trusted else limit
        wait = delay(failures, most=most, wanted=error.retry_after, chance=random.random()) if error.retryable else None
        cost = await self._price(error.usage) if error.usage != NO_USAGE else 0.0
        self._spend(cost)
        failed = RequestFailed(
            at=now(),
            request=request,
            what=str(error),
            status=error.status,
            retry_in=wait,
            usage=error.usage,
            cost=cost,
        )
        await desk.log.append(failed)
        if trusted and wait is not None:
            desk.add(judged("", "allow", "requests are tried again without asking", part=request, by=Authority.LEVEL))
        if why := desk.out_of():
            return Ended("limit", why)
        if wait is not None:
            await self._count_down(request, wait)
            return None
        if not desk.attended:
            return Ended("failed", str(error))
        answered = await self._questions.ask(
            "api_req_failed", f"{error}\nAsk again?", timeout=desk.settings.approval_timeout, follows=words
        )
        return None if answered.answer in (AnswerKind.YES, AnswerKind.MESSAGE) else Ended("failed", str(error))

    async def _count_down(self, request: RequestId, seconds: float) -> None:
        """Visible, and cut short by whoever stops the task."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._desk.audience.show(RetryCounted(request=request, seconds=float(math.ceil(left))))
            await asyncio.sleep(left - math.ceil(left) + 1)  # to the next whole second
