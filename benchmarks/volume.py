"""50 MB of output: how fast it passes, what it costs the host in memory, and whether both ends and the spool are right.

The floor reads the same command's output in a blocking loop and throws it away. We keep head and tail, and write all
of it to disk.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks import fresh
from benchmarks.floor import bare_pty, read_pipe
from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared, interleave
from benchmarks.workloads import MB, volume
from tarmac.terminals import Result, open_terminal
from tarmac.terminals.terminal import Provider


def measure(*, quick: bool) -> Iterator[Row]:
    megabytes = 5 if quick else 50
    with private_home() as home:
        file = volume(home, megabytes)
        providers: tuple[tuple[Provider, float], ...] = (("pty", 0.7), ("exec", 0.5))
        for provider, share in providers:
            what = f"{megabytes} MB through {provider}"
            yield from asyncio.run(_pass(what, provider, file, rounds=3 if quick else 15, goal=Goal("≥", share)))
            grown = median(_growth(provider, file) for _ in range(1 if quick else 3))
            yield Row(what=f"{what}: host memory growth", ours=grown, unit="MB", goal=Goal("≤", 20, "ours"))


async def _pass(what: str, provider: Provider, file: Path, *, rounds: int, goal: Goal) -> tuple[Row, Row]:
    size = file.stat().st_size / MB
    wrong: set[str] = set()
    with bare_pty("--norc", env={**os.environ, "PS1": ""}) as bare:
        async with open_terminal(shell="bash", provider=provider) as terminal:

            async def ours() -> float:
                start = perf_counter()
                result = await terminal.run(f"cat {file}", timeout=None)
                took = perf_counter() - start
                wrong.update(_wrong(result, file, line_end=b"\r\n" if provider == "pty" else b"\n"))
                if result.output_path:
                    result.output_path.unlink(missing_ok=True)
                return size / took

            def floor() -> float:
                start = perf_counter()
                if provider == "pty":
                    bare.run(b"cat %s" % os.fsencode(file))
                else:
                    read_pipe(f"cat {file}", env=os.environ)
                return size / (perf_counter() - start)

            one, other = await interleave(ours, floor, rounds=rounds)
    amiss = Row(
        what=f"{what}: wrong among head, tail, spool",
        ours=len(wrong),
        goal=Goal("=", 0, "ours"),
        note=", ".join(sorted(wrong)),
    )
    return compared(what, one, other, unit="MB/s", goal=goal), amiss


def _wrong(result: Result, file: Path, *, line_end: bytes) -> Iterator[str]:
    """The parts of the result that are not what the command printed."""
    printed = file.read_bytes()
    lines = printed.decode().splitlines(keepends=True)
    if not result.output.startswith("".join(lines[:100])):
        yield "head"
    if not result.output.endswith("".join(lines[-50:])) or result.exit_code != 0:
        yield "tail"
    if not result.output_path or result.output_path.read_bytes() != printed.replace(b"\n", line_end):
        yield "spool"


# In a process of its own


def _growth(provider: str, file: Path) -> float:
    return fresh.run(__name__, provider, str(file))["growth"] / MB


async def _grow(provider: Provider, file: Path) -> dict[str, float]:
    async with open_terminal(shell="bash", provider=provider) as terminal:
        await terminal.run("seq 100")
        before = fresh.resident()
        await terminal.run(f"cat {file}", timeout=None)
        return {"growth": fresh.peak() - before}


if __name__ == "__main__":
    fresh.answer(asyncio.run(_grow("exec" if sys.argv[1] == "exec" else "pty", Path(sys.argv[2]))))
