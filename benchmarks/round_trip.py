"""The round trip of `:`, the cheapest command there is: what Tarmac adds to every command.

Most of the floor's time is waiting to be woken: 30 µs when host and shell share a quiet core, 80 to 140 when each
wake-up crosses to another. The kernel changes its mind from minute to minute, and the ratio with it; so we measure as
it comes, and also with both placed by us. On two cores the ratio is the steadiest.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

from benchmarks.floor import BarePty, bare_pty
from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared, interleave
from tarmac.terminals import open_terminal
from tarmac.terminals.shell.pty_terminal import PtyTerminal

TRIPS = 25  # in a round


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 5 if quick else 60
    cores = sorted(os.sched_getaffinity(0))
    with private_home():
        yield from asyncio.run(_round_trip("", rounds))
        yield from asyncio.run(_round_trip(", host and shell on one core", rounds, cores=(cores[0], cores[0])))
        if len(cores) > 1:
            yield from asyncio.run(_round_trip(", on two cores", rounds, cores=(cores[0], cores[1])))


async def _round_trip(where: str, rounds: int, cores: tuple[int, int] | None = None) -> list[Row]:
    with bare_pty("--norc", env={**os.environ, "PS1": ""}) as bare:
        async with open_terminal(shell="bash") as terminal:
            assert isinstance(terminal, PtyTerminal) and terminal.session is not None
            trips = _Trips(terminal, terminal.session.pid, bare)
            before = os.sched_getaffinity(0)
            try:
                if cores:
                    os.sched_setaffinity(0, {cores[0]})
                    for shell in (terminal.session.pid, bare.pid):
                        os.sched_setaffinity(shell, {cores[1]})
                one, other = await interleave(trips.ours, trips.floor, rounds=rounds)
            finally:
                os.sched_setaffinity(0, before)
    goal = None if cores and cores[0] == cores[1] else Goal("≤", 3)
    rows = [compared(f"round trip of `:`{where}", one, other, unit="µs", goal=goal)]
    if not cores:
        rows.append(compared("round trip of `:`, CPU of both", trips.our_cpu[1:], trips.floor_cpu[1:], unit="µs"))
    return rows


class _Trips:
    """A round of each: the median time of a trip; the CPU it took is noted on the side."""

    def __init__(self, terminal: PtyTerminal, shell: int, bare: BarePty) -> None:
        self._terminal, self._shell, self._bare = terminal, shell, bare
        self.our_cpu: list[float] = []
        self.floor_cpu: list[float] = []

    async def ours(self) -> float:
        times = []
        cpu = _cpu_clock(self._shell)
        for _ in range(TRIPS):
            start = perf_counter()
            result = await self._terminal.run(":")
            times.append(perf_counter() - start)
            assert result.exit_code == 0
        self.our_cpu.append(cpu() / TRIPS * 1e6)
        return median(times) * 1e6

    def floor(self) -> float:
        times = []
        cpu = _cpu_clock(self._bare.pid)
        for _ in range(TRIPS):
            start = perf_counter()
            self._bare.run(b":")
            times.append(perf_counter() - start)
        self.floor_cpu.append(cpu() / TRIPS * 1e6)
        return median(times) * 1e6


def _cpu_clock(shell: int) -> Callable[[], float]:
    """A stop-watch of the CPU seconds of this thread and a shell."""
    file = Path(f"/proc/{shell}/schedstat")

    def now() -> float:
        return thread_time() + int(file.read_text().split()[0]) / 1e9

    start = now()
    return lambda: now() - start
