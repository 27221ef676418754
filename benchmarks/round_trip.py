"""The round trip of `:`, the cheapest command there is: what Tarmac adds to every command."""

import asyncio
import os
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from benchmarks.floor import bare_pty
from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared, interleave
from tarmac.terminals import open_terminal

TRIPS = 25  # in a round


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home():
        yield asyncio.run(_round_trip(rounds=5 if quick else 60))


async def _round_trip(rounds: int) -> Row:
    with bare_pty("--norc", env={**os.environ, "PS1": ""}) as bare:
        async with open_terminal(shell="bash") as terminal:

            async def ours() -> float:
                times = []
                for _ in range(TRIPS):
                    start = perf_counter()
                    result = await terminal.run(":")
                    times.append(perf_counter() - start)
                    assert result.exit_code == 0
                return median(times) * 1e6

            def floor() -> float:
                times = []
                for _ in range(TRIPS):
                    start = perf_counter()
                    bare.run(b":")
                    times.append(perf_counter() - start)
                return median(times) * 1e6

            one, other = await interleave(ours, floor, rounds=rounds)
    return compared("round trip of `:`", one, other, unit="µs", goal=Goal("≤", 3))
