"""What is typed into a command: prepared answers, and secrets, which are kept out of all that is stored or shown.

run(command, answers={"Overwrite (y/n)?": "y"}) → the kernel says it waits → its prompt matches → type the answer
Secrets.typed() ─ keys, while the echo is off → a whole line is a secret → mask() ─ output without it

Output alone never triggers an answer: a log line that looks like a question is not one. A question without an answer
ends the wait with `awaiting input`. Each answer is given once.

A program that repeats a password, or an echo that came back too early, would put it into the result, the spool and
every viewer. So it is masked. The secret is held in memory until its command ends, and nowhere else.
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


SHORTEST = 4  # a shorter one ("y") would be masked everywhere, and is no secret for long
MASK = b"********"
_RUBOUT = b"\x7f\x08"
_KILL = b"\x15"


class Secrets:
    """Those of one command."""

    __slots__ = ("_held", "_line", "_secrets")

    def __init__(self) -> None:
        self._secrets: list[bytes] = []
        self._line = bytearray()
        self._held = b""  # output that may be the beginning of a secret

    def __repr__(self) -> str:
        return f"<Secrets: {len(self._secrets)}>"

    def typed(self, keys: bytes) -> None:
        """Keys that the terminal did not show, in any pieces; a line's end makes a secret of them."""
        for key in keys:
            if key in b"\r\n\x04":
                self.keep(bytes(self._line))
                self._line.clear()
            elif key in _RUBOUT:
                del self._line[-1:]
            elif key in _KILL:
                self._line.clear()
            else:
                self._line.append(key)

    def keep(self, secret: bytes) -> None:
        """Mask this one from now on."""
        if len(secret) >= SHORTEST and secret not in self._secrets:
            self._secrets.append(secret)
            self._secrets.sort(key=len, reverse=True)  # one may contain another

    def mask(self, data: bytes) -> bytes:
        """Output without secrets. An end that may be the beginning of one is held back until more comes."""
        data = self._held + data
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        keep = max((_overlap(data, secret) for secret in self._secrets), default=0)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def rest(self) -> bytes:
        """What was held back, now that nothing more comes."""
        held, self._held = self._held, b""
        return held if len(held) < SHORTEST else MASK  # most of a secret is too much


def _overlap(data: bytes, secret: bytes) -> int:
    """How many bytes at the end of `data` begin `secret`."""
    for size in range(min(len(data), len(secret) - 1), 0, -1):
        if data.endswith(secret[:size]):
            return size
    return 0
