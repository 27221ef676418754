"""Checks of this machine: what would keep terminals from working. Run by `tarmac doctor`.

checks → examine() → findings, one after another, each check within its own time limit

A new check is an `async def` that takes a Case and yields Findings, and a line in a list of `tarmac.cli.doctor`. It
may fail, block or hang: then that is the finding.
"""

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
    """The result of looking at one thing."""

    name: str
    level: Level  # note: all is well. warning: something works less well than it could. problem: it does not work
    what: str
    advice: str = ""  # what to do about it
    facts: Mapping[str, object] = field(default_factory=dict)  # for programs that read the JSON


Findings = AsyncGenerator[Finding, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the checks are given."""

    environ: Mapping[str, str]
    settings: Settings = field(default_factory=Settings)
    shells: tuple[str, ...] = ("bash", "zsh", "fish")
    wanted: tuple[str, ...] = ()  # shells that the user asked for by name, so they must be installed


@dataclass(frozen=True, slots=True)
class Check:
    """A function that looks at one topic."""

    topic: str
    look: Callable[[Case], Findings]
    seconds: float


async def examine(checks: Sequence[Check], case: Case) -> AsyncGenerator[tuple[str, Finding], None]:
    """Run the checks. Yield every finding with its topic. A check that fails or takes too long is a finding too."""
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
                    what=f"this check did not finish within {check.seconds:g} s",
                    advice="the machine may be overloaded, or a disk or file server may not answer",
                )
                return
            except Exception as error:  # whatever it is, the other checks still have to run
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
            return "a package that Tarmac needs is missing: run `pip install tarmac` again"
        case OSError():
            return ""
    return "this is a bug in Tarmac: please report it"


async def aside(work: Callable[[], T]) -> T:
    """Run `work`, which may block, in a thread that nobody waits for. A dead file server never answers."""
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
        except RuntimeError:  # the loop is closed
            pass

    threading.Thread(target=body, daemon=True, name="tarmac-doctor").start()
    return await outcome
