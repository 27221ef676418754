"""What a check is, and what it finds; and how all are made, bounded in time."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from tarmac.errors import TarmacError
from tarmac.terminals.settings import Settings

Level = Literal["ok", "note", "warning", "problem"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    level: Level  # note: worth knowing, nothing is amiss. warning: something works less well. problem: it does not work
    what: str
    advice: str = ""  # what to do about it
    facts: Mapping[str, object] = field(default_factory=dict)  # the same for programs


Findings = AsyncGenerator[Finding, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the checks are given."""

    environ: Mapping[str, str]
    settings: Settings = field(default_factory=Settings)
    shells: tuple[str, ...] = ("bash", "zsh", "fish")
    wanted: tuple[str, ...] = ()  # shells that were asked for by name: they must be there


@dataclass(frozen=True, slots=True)
class Check:
    """A topic, and who looks at it."""

    topic: str
    look: Callable[[Case], Findings]
    seconds: float


async def examine(checks: Sequence[Check], case: Case) -> AsyncGenerator[tuple[str, Finding], None]:
    """Every finding with its topic, as it comes. A check that fails or takes too long is a finding itself."""
    for check in checks:
        end = asyncio.get_running_loop().time() + check.seconds
        async with aclosing(_bounded(check, case, end)) as findings:
            async for finding in findings:
                yield check.topic, finding


async def _bounded(check: Check, case: Case, end: float) -> Findings:
    async with aclosing(check.look(case)) as findings:
        while True:
            try:
                async with asyncio.timeout_at(end):
                    finding = await anext(findings)
            except StopAsyncIteration:
                return
            except TimeoutError:
                yield Finding(
                    name=check.topic,
                    level="problem",
                    what=f"this could not be looked at within {check.seconds:g} s",
                    advice="is the machine overloaded, or a disk or a file server gone?",
                )
                return
            except Exception as error:  # whatever it is: the other checks are still to be made
                yield Finding(name=check.topic, level="problem", what=_what(error), advice=_advice(error))
                return
            yield finding


def _what(error: Exception) -> str:
    if isinstance(error, TarmacError):
        return error.what
    return str(error) if isinstance(error, OSError | ImportError) else f"{type(error).__name__}: {error}"


def _advice(error: Exception) -> str:
    match error:
        case TarmacError():
            return error.hint
        case ImportError():
            return "Tarmac is not installed with all it needs: pip install tarmac, once more"
        case OSError():
            return ""
    return "this is a fault of Tarmac's own: please report it"


async def aside(work: Callable[[], T]) -> T:
    """The outcome of `work`, which may block: in a thread that nobody waits for (a dead file server never answers)."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)  # type: ignore[arg-type]

    def body() -> None:
        try:
            result = work()
        except BaseException as error:
            answer: tuple[T | None, BaseException | None] = (None, error)
        else:
            answer = (result, None)
        try:
            loop.call_soon_threadsafe(settle, *answer)
        except RuntimeError:  # the loop is closed: nobody is interested any more
            pass

    threading.Thread(target=body, daemon=True, name="tarmac-checkup").start()
    return await outcome
