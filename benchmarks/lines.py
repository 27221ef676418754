"""Output that is hard to make readable, against reading the same bytes and throwing them away."""

import asyncio
import os
from collections.abc import Iterator
from time import perf_counter

from benchmarks.floor import bare_pty
from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared, interleave
from benchmarks.workloads import Workload, many_lines, one_line, progress
from tarmac.terminals import open_terminal


def measure(*, quick: bool) -> Iterator[Row]:
    share = 0.1 if quick else 1
    with private_home() as home:
        for workload in (many_lines(share), progress(home, share), one_line(home, share)):
            yield asyncio.run(_reading(workload, rounds=3 if quick else 31))


async def _reading(workload: Workload, *, rounds: int) -> Row:
    with bare_pty("--norc", env={**os.environ, "PS1": ""}) as bare:
        async with open_terminal(shell="bash") as terminal:

            async def ours() -> float:
                start = perf_counter()
                result = await terminal.run(workload.command, timeout=None)
                took = perf_counter() - start
                assert result.exit_code == 0 and result.output
                return took * 1e3

            def floor() -> float:
                start = perf_counter()
                bare.run(workload.command.encode())
                return (perf_counter() - start) * 1e3

            one, other = await interleave(ours, floor, rounds=rounds)
    return compared(workload.what, one, other, unit="ms", goal=Goal("≤", 1.5))
