"""How long a verdict takes: fresh against one start of the parser, remembered, many through `tarmac check --jsonl`."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from tarmac.policy import Execute, Policy
from tarmac.policy.parse.parser import parser_path

EVERYDAY = [
    "ls -la src",
    "git status --short",
    "git log --oneline -10 | head",
    "grep -rn TODO src | wc -l",
    "cat README.md | head -40",
    "find . -name '*.py' -type f",
    "cd src && ls",
    "npm test",
    "git add -A && git commit -m 'a message'",
    "sed -n '10,20p' src/main.py",
    "python3 -m pytest -q tests",
    "rm -rf build",
]


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home() as home:
        yield from asyncio.run(_judging(home, rounds=3 if quick else 40))
        yield _lines(home, count=60 if quick else 1200)


async def _judging(home: Path, *, rounds: int) -> list[Row]:
    policy = Policy()
    program = parser_path() or "shfmt"
    fresh: list[float] = []
    floor: list[float] = []
    for number in range(rounds + 1):
        for line in EVERYDAY:
            policy = Policy()  # its cache is empty; the tables are read once for the process
            start = time.perf_counter()
            await policy.judge(Execute(line, cwd=home), workspace=home)
            took = time.perf_counter() - start
            start = time.perf_counter()
            subprocess.run(
                [program, "-ln", "bash", "--to-json"], input=line.encode(), stdout=subprocess.DEVNULL, check=True
            )
            if number:
                floor.append((time.perf_counter() - start) * 1e3)
                fresh.append(took * 1e3)
    cached: list[float] = []
    for line in EVERYDAY:
        await policy.judge(Execute(line, cwd=home), workspace=home)
        for _ in range(rounds * 5):
            start = time.perf_counter()
            await policy.judge(Execute(line, cwd=home), workspace=home)
            cached.append((time.perf_counter() - start) * 1e6)
    cached.sort()
    return [
        compared(
            "judge an everyday command, not cached | one start of shfmt", fresh, floor, unit="ms", goal=Goal("≤", 1.5)
        ),
        Row(what="judge it again, cached", ours=cached[len(cached) // 2], unit="µs", goal=Goal("≤", 50, of="ours")),
    ]


def _lines(home: Path, *, count: int) -> Row:
    """Commands a second through the command line, on one core."""
    text = "".join(
        json.dumps({"id": n, "command": f"{EVERYDAY[n % len(EVERYDAY)]} {n}", "cwd": str(home)}) + "\n"
        for n in range(count)
    )
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if cores:
        os.sched_setaffinity(0, {min(cores)})
    try:
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "tarmac", "check", "--jsonl"],
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        took = time.perf_counter() - start
    finally:
        if cores:
            os.sched_setaffinity(0, cores)
    return Row(
        what="`tarmac check --jsonl`, commands a second, one core", ours=count / took, goal=Goal("≥", 150, of="ours")
    )
