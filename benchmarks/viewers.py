"""50 MB of output with three viewers of the terminal, beside the same output with none."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from benchmarks.workloads import MB, volume
from tarmac.terminals import open_terminal
from tarmac.terminals.output.follow import Gap
from tarmac.terminals.output.tape import Printed, Snapshot
from tarmac.terminals.terminal import Terminal

VIEWERS = 3


def measure(*, quick: bool) -> Iterator[Row]:
    megabytes = 5 if quick else 50
    with private_home() as home:
        yield from asyncio.run(_watched(volume(home, megabytes), rounds=3 if quick else 15, megabytes=megabytes))


async def _watched(file: Path, *, rounds: int, megabytes: int) -> list[Row]:
    size = file.stat().st_size / MB
    one: list[float] = []
    other: list[float] = []
    attached: list[float] = []
    seen = missed = 0
    async with open_terminal(shell="bash") as terminal:

        async def rate() -> float:
            start = perf_counter()
            result = await terminal.run(f"cat {file}", timeout=None)
            took = perf_counter() - start
            if result.output_path:
                result.output_path.unlink(missing_ok=True)
            return size / took

        for _ in range(rounds + 1):
            start = perf_counter()
            viewers = [_Viewer(terminal) for _ in range(VIEWERS)]
            await asyncio.gather(*(each.attached.wait() for each in viewers))
            attached.append((perf_counter() - start) * 1000)
            one.append(await rate())
            for each in viewers:
                await each.leave()
                seen, missed = seen + each.seen, missed + each.missed
            other.append(await rate())
    share = seen / (seen + missed)
    watched = compared(
        f"{megabytes} MB through pty with {VIEWERS} viewers",
        one[1:],
        other[1:],
        unit="MB/s",
        goal=Goal("≥", 0.95),
        note=f"each viewer got {share:.0%} of the bytes",
    )
    attaching = Row(what=f"{VIEWERS} viewers attach after {megabytes} MB", ours=median(attached[1:]), unit="ms")
    return [watched, attaching]


class _Viewer:
    def __init__(self, terminal: Terminal) -> None:
        self.seen = self.missed = 0
        self.attached = asyncio.Event()
        self._task = asyncio.create_task(self._watch(terminal))

    async def _watch(self, terminal: Terminal) -> None:
        async for piece in terminal.watch():
            match piece:
                case Snapshot():
                    self.attached.set()
                case Printed(data=data):
                    self.seen += len(data)
                case Gap(bytes=lost):
                    self.missed += lost

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
