"""From nothing to the first result: open a terminal and run `:`; closing it is not counted.

The floor starts the same bash in the same way (Popen, its own session, TIOCSCTTY), reads the same start-up files and
waits for the same `:`.
"""

import asyncio
import os
from collections.abc import Iterator
from time import perf_counter

from benchmarks.floor import bare_pty
from benchmarks.home import BASHRC, private_home
from benchmarks.rounds import Goal, Row, compared, interleave
from tarmac.terminals import open_terminal


def measure(*, quick: bool) -> Iterator[Row]:
    for what, bashrc in (("an empty home", ""), ("a .bashrc of 100 lines", BASHRC)):
        with private_home(bashrc):
            one, other = asyncio.run(interleave(_ours, _floor, rounds=5 if quick else 60))
        yield compared(f"opening to first result, {what}", one, other, unit="ms", goal=Goal("≤", 3))


async def _ours() -> float:
    start = perf_counter()
    async with open_terminal(shell="bash") as terminal:
        result = await terminal.run(":")
        took = perf_counter() - start
        assert result.exit_code == 0
    return took * 1e3


def _floor() -> float:
    start = perf_counter()
    with bare_pty(env=os.environ) as bare:
        bare.run(b":")
        return (perf_counter() - start) * 1e3
