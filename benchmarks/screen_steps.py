"""A step of a full-screen program: from the keys until its screen is known to have settled.

Afterwards the screen is watched for 350 ms more. A change in that time is a false settle.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from statistics import median, quantiles
from time import perf_counter

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row
from tarmac.terminals import open_terminal
from tarmac.vt.keys import keys

WATCHED = 0.35
STEPS = {
    "vim": ("vim -n --clean text", ["j", "A", "x", "Escape", "k", "o", "y", "z", "Escape", "G"]),
    "less": ("less text", ["Down", "Space", "Down", "G", "g", "Down", "PageDown", "Up", "Up", "Space"]),
    "nano": ("nano -I text", ["Down", "x", "y", "Enter", "Up", "End", "z", "C-k", "Home", "w"]),
    "whiptail": (
        "whiptail --menu F 12 40 3 a A b B c C",
        ["Down", "Down", "Up", "Tab", "Tab", "Tab", "Down", "Up"],
    ),
    "mc": ("mc -u -X", ["Down", "Down", "Up", "Tab", "Down", "End", "Home", "Tab"]),
    "python": ("python3 -q", ["1", "+", "1", "Enter", "Up", "Left", "2", "Enter"]),
}


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 1 if quick else 6
    took: list[float] = []
    wrong = 0
    with private_home() as home:
        (home / "text").write_text("".join(f"line {n}\n" for n in range(1, 1000)))
        for program, (command, steps) in STEPS.items():
            if which(program) is None and program != "python":
                continue
            for _ in range(rounds):
                seconds, changed = asyncio.run(_steps(home, command, steps))
                took += seconds
                wrong += changed
    note = f"{len(took)} steps in {', '.join(STEPS)}"
    milliseconds = [1000 * each for each in took]
    yield Row(
        what="screen: keys to look, median", ours=median(milliseconds), unit="ms", goal=Goal("≤", 30, "ours"), note=note
    )
    p99 = quantiles(milliseconds, n=100)[98]
    yield Row(what="screen: keys to look, 99 of 100", ours=p99, unit="ms", goal=Goal("≤", 250, "ours"))
    share = 1000 * wrong / len(took)
    yield Row(
        what="screen: false settles of 1,000", ours=share, goal=Goal("≤", 1, "ours"), note=f"{wrong} of {len(took)}"
    )


async def _steps(home: Path, command: str, steps: list[str]) -> tuple[list[float], int]:
    took: list[float] = []
    wrong = 0
    async with open_terminal(shell="bash", cwd=home) as terminal:
        execution = await terminal.start(f"TERM=xterm-256color HOME={home} {command}")
        await execution.screen()
        await asyncio.sleep(WATCHED)
        for step in steps:
            data = keys(step, application_cursor=await terminal.screen.application_cursor())
            start = perf_counter()
            await execution.send(data)
            seen = await execution.screen()
            took.append(perf_counter() - start)
            await asyncio.sleep(WATCHED)
            now = terminal.screen.current().picture()
            wrong += (now.lines, now.cursor, now.highlighted) != (seen.lines, seen.cursor, seen.highlighted)
        await execution.kill()
    return took, wrong
