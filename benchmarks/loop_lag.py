"""How long one callback keeps the event loop, and with it every other terminal, waiting.

CPU time of the thread, as the wall clock would count what other programs do. A hypervisor that takes the core away
still counts, so the longest of each run is taken, and of the runs the median; the worst of all is in the note.
"""

import asyncio
from asyncio.events import Handle
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import thread_time

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row
from benchmarks.workloads import Workload, many_lines, one_line, progress, volume
from tarmac.terminals import open_terminal


def measure(*, quick: bool) -> Iterator[Row]:
    share = 0.1 if quick else 1
    with private_home() as home:
        big = volume(home, 5 if quick else 50)
        workloads = (many_lines(share), progress(home, share), one_line(home, share))
        for workload in (*workloads, Workload(big.name.replace("MB", " MB"), f"cat {big}")):
            for watched in (False, True):
                yield asyncio.run(_longest(workload, watched=watched, runs=3 if quick else 9))


async def _longest(workload: Workload, *, watched: bool, runs: int) -> Row:
    found: list[tuple[float, str]] = []
    async with open_terminal(shell="bash") as terminal:
        for _ in range(runs):
            with timed_callbacks() as longest:
                execution = await terminal.start(workload.command)
                if watched:
                    async for _ in execution:
                        pass
                result = await execution.result()
            found.append(longest[0])
            if result.output_path:
                result.output_path.unlink(missing_ok=True)
    worst, where = max(found)
    return Row(
        what=f"longest callback, {workload.what}{', watched live' if watched else ''}",
        ours=median(took for took, _ in found) * 1e3,
        unit="ms",
        goal=Goal("≤", 20, "ours"),
        note=f"worst {worst * 1e3:.1f}, {where}",
    )


@contextmanager
def timed_callbacks() -> Iterator[list[tuple[float, str]]]:
    """While open, every callback of any event loop is timed; the one item is the longest so far and its name."""
    longest = [(0.0, "")]
    run = Handle._run

    def timed(handle: Handle) -> None:
        callback = getattr(handle, "_callback", None)  # gone once it has run
        start = thread_time()
        run(handle)
        took = thread_time() - start
        if took > longest[0][0]:
            longest[0] = (took, _name(callback))

    Handle._run = timed  # type: ignore[method-assign, assignment]
    try:
        yield longest
    finally:
        Handle._run = run  # type: ignore[method-assign]


def _name(callback: object) -> str:
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        name = getattr(task.get_coro(), "__qualname__", "a task")
        return "the caller's own task" if name == _longest.__name__ else name
    return getattr(callback, "__qualname__", type(callback).__name__)
