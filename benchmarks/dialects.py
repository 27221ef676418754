"""zsh and fish beside bash, all three through Tarmac: the round trip of `:`, and opening to the first result.

The "floor" is our own bash here: what another shell costs a person who prefers it.
"""

import asyncio
import shutil
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from benchmarks.home import private_home
from benchmarks.rounds import Row, compared
from tarmac.terminals import Terminal, open_terminal

TRIPS = 25  # in a round


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home():
        for shell in ("zsh", "fish"):
            if shutil.which(shell) is None:
                yield Row(what=f"round trip of `:` in {shell}", ours=None, note="not installed")
                continue
            yield asyncio.run(_round_trip(shell, rounds=5 if quick else 40))
            yield asyncio.run(_opening(shell, rounds=3 if quick else 15))


async def _round_trip(shell: str, *, rounds: int) -> Row:
    async with open_terminal(shell=shell) as one, open_terminal(shell="bash") as other:
        ours, floor = [], []
        for _ in range(rounds + 1):
            ours.append(await _trips(one))
            floor.append(await _trips(other))
    return compared(f"round trip of `:` in {shell} | in bash", ours[1:], floor[1:], unit="µs")


async def _trips(terminal: Terminal) -> float:
    times = []
    for _ in range(TRIPS):
        start = perf_counter()
        await terminal.run(":")
        times.append(perf_counter() - start)
    return median(times) * 1e6


async def _opening(shell: str, *, rounds: int) -> Row:
    ours, floor = [], []
    for _ in range(rounds + 1):
        ours.append(await _open(shell))
        floor.append(await _open("bash"))
    return compared(f"opening to first result, {shell} | bash", ours[1:], floor[1:], unit="ms")


async def _open(shell: str) -> float:
    start = perf_counter()
    async with open_terminal(shell=shell) as terminal:
        await terminal.run(":")
        return (perf_counter() - start) * 1e3
