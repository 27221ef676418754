"""Answers to questions that a command is expected to ask, each given once.

run(command, answers={"Overwrite (y/n)?": "y"}) → the kernel says it waits → its prompt matches → type the answer

Output alone never triggers an answer: a log line that looks like a question is not one. A question without an answer
ends the wait with `awaiting input`.
"""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tarmac.errors import BadRequest, ExecutionEnded, SecretNotAsked
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.result import Result
from tarmac.terminals.settings import OnTimeout

if TYPE_CHECKING:
    from tarmac.terminals.execution import Execution

SHORT, LONG = 0.015, 0.35  # how often the kernel is asked
NOBODY_ANSWERS = 0.4  # a question must stand so long before it counts as one that nobody expected


@dataclass(frozen=True, slots=True)
class Answer:
    """What to type when a prompt comes: one that contains a text, or in which a compiled pattern is found."""

    prompt: str | re.Pattern[str]
    text: str = field(repr=False)
    secret: bool = False  # type it only where the terminal does not show it
    enter: bool = True

    def fits(self, prompt: str) -> bool:
        return matches(self.prompt, prompt)

    @property
    def keys(self) -> bytes:
        return (self.text + "\n" * (self.enter and not self.text.endswith("\n"))).encode("utf-8", "surrogateescape")


Answers = Mapping[str, str] | Iterable[Answer]


def matches(pattern: str | re.Pattern[str], text: str) -> bool:
    """A text is contained; a compiled pattern is searched."""
    return pattern in text if isinstance(pattern, str) else pattern.search(text) is not None


def answers_of(given: Answers) -> list[Answer]:
    """The answers as they were given, or BadRequest."""
    answers = [Answer(*each) for each in given.items()] if isinstance(given, Mapping) else list(given)
    for each in answers:
        if not isinstance(each, Answer) or not isinstance(each.text, str):
            raise BadRequest("answers are texts by prompt, or a list of Answer", hint='answers={"Name:": "Ada"}')
    return answers


async def until_waiting(execution: "Execution", *, until: float | None) -> Waiting | None:
    """What it waits for, as soon as it does; None at its end, or at the time `until`."""
    pause, printed = SHORT, -1
    while execution.running:
        if (seen := execution.waiting) is not None:
            return seen
        if printed != execution.output_bytes:
            pause, printed = SHORT, execution.output_bytes
        left = pause if until is None else min(pause, until - time.monotonic())
        if left <= 0:
            break
        await execution.news(left)
        await execution.ended(SHORT)  # a flood of output must not make it a flood of questions to the kernel
        pause = min(pause * 1.5, LONG)
    return None


async def run_answering(
    execution: "Execution",
    answers: list[Answer],
    *,
    timeout: float | None,
    idle_timeout: float | None,
    on_timeout: OnTimeout,
) -> Result:
    """Its result, after all its questions were answered; `awaiting input` at the first that can't be."""
    end = None if timeout is None else time.monotonic() + timeout
    left = list(answers)
    while (seen := await until_waiting(execution, until=_sooner(execution, end, idle_timeout))) is not None:
        answer = next((each for each in left if each.fits(seen.prompt)), None)
        if answer is not None and answer.secret and seen.wants is Wants.LINE:
            execution.notes.append(f"the answer to “{seen.prompt.strip()}” is a secret, and the terminal would show it")
            answer = None
        if answer is not None:
            left.remove(answer)
            if answer.secret:  # a program that reads keys has the echo off too, and may repeat them
                execution.keep_secret(answer.text)
            await execution.send(answer.keys)
        elif await _stands(execution, seen, until=end):
            return await execution.result(SHORT, on_timeout=on_timeout)
    rest = None if end is None else max(end - time.monotonic(), SHORT)
    return await execution.result(rest, on_timeout=on_timeout, idle_timeout=idle_timeout)


def _sooner(execution: "Execution", end: float | None, idle: float | None) -> float | None:
    times = [] if end is None else [end]
    if idle is not None:
        times.append(max(execution.last_output, execution.started_at) + idle)
    return min(times, default=None)


async def _stands(execution: "Execution", seen: Waiting, *, until: float | None) -> bool:
    """Whether a question is still the same, unanswered, after a moment: a person may type, a program may go on."""
    inputs, printed = execution.inputs, execution.output_bytes
    patience = NOBODY_ANSWERS if until is None else min(NOBODY_ANSWERS, until - time.monotonic())
    await execution.ended(max(patience, SHORT))
    return (inputs, printed, seen) == (execution.inputs, execution.output_bytes, execution.waiting)


async def send_secret(
    execution: "Execution", text: str, *, prompt: str | re.Pattern[str] | None, timeout: float
) -> None:
    """See `Execution.send_secret`."""
    end = time.monotonic() + timeout
    seen: Waiting | None = None
    while execution.running and time.monotonic() < end:
        seen = await until_waiting(execution, until=end)
        if seen is not None and (seen.wants is Wants.SECRET or _is_asked_by_keys(seen, prompt)):
            execution.keep_secret(text)
            await execution.send(Answer("", text).keys)
            return
        await execution.ended(min(LONG, max(end - time.monotonic(), SHORT)))
    if not execution.running:
        raise ExecutionEnded("the command has ended: the secret was not sent", hint="start it again")
    waits = f"it waits for {seen.wants}: {seen.prompt.strip()!r}" if seen else "it waits for nothing"
    raise SecretNotAsked(
        f"no secret is asked for ({waits}); nothing was sent",
        hint="the terminal would have shown it: wait until it asks",
    )


def _is_asked_by_keys(seen: Waiting, prompt: str | re.Pattern[str] | None) -> bool:
    return prompt is not None and seen.wants in (Wants.KEYS, Wants.UNKNOWN) and matches(prompt, seen.prompt)
