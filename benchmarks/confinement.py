"""What the kernel's rules cost a command that runs without a question: the same plan with and without them, in turn.

CPU time of our process and of the command together: on a shared machine the clock shows what others do.
"""

import asyncio
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row
from tarmac.policy import Execute, Policy
from tarmac.policy.plan import environment
from tarmac.policy.verdict import Plan
from tarmac.terminals import run_plan
from tarmac.terminals.process.confinement import Means, means


def measure(*, quick: bool) -> Iterator[Row]:
    if means() is not Means.LANDLOCK:
        yield Row(what="a confined command", ours=None, note="this machine has no Landlock")
        return
    with private_home() as home:
        yield from asyncio.run(_plans(home, rounds=5 if quick else 300))


async def _plans(home: Path, *, rounds: int) -> list[Row]:
    (home / "src").mkdir()
    for number in range(rounds + 1):
        (home / f"src/{number}.txt").write_text("some words\n")
    verdict = await Policy().judge(Execute("cat src/0.txt", cwd=home), workspace=home)
    plan = verdict.plan
    assert plan is not None and plan.confinement is not None
    free = replace(plan, confinement=None)
    env = environment({}, workspace=home)
    bare: list[float] = []
    again: list[float] = []
    new: list[float] = []
    for number in range(rounds + 1):
        other = replace(plan.confinement, reads=(*plan.confinement.reads, str(home / f"src/{number}.txt")))
        fresh = replace(plan, confinement=other)
        for times, each in ((bare, free), (again, plan), (new, fresh)):
            times.append(await _took(each, env))
    return [
        _row("a command with rules used before, more than without", again[1:], bare[1:], Goal("≤", 0.3, of="ours")),
        _row("a command with new rules, more than without", new[1:], bare[1:], Goal("≤", 0.6, of="ours")),
    ]


async def _took(plan: Plan, env: dict[str, str]) -> float:
    start = _cpu()
    result = await run_plan(plan, command="cat", environment=env)
    took = _cpu() - start
    assert result.exit_code == 0, result.output
    return took * 1e3


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _row(what: str, ours: list[float], floor: list[float], goal: Goal) -> Row:
    ratios = [one / other for one, other in zip(ours, floor, strict=True)]
    more = [one - other for one, other in zip(ours, floor, strict=True)]
    return Row(what=what, ours=median(more), unit="ms", floor=median(floor), ratio=median(ratios), goal=goal)
