"""Terminals at other places: what the way there adds to a command, to the first one, and to the memory of the host.

For ssh, name a machine that takes your key: TARMAC_BENCH_SSH=ssh://localhost. The floor is then a bare `ssh host :`
over a shared connection.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from tarmac.fleet import CommandTransport, RemoteMachine, open_terminals
from tarmac.terminals import Settings, Terminal, open_terminal

TRIPS = 25  # in a round


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home():
        yield from asyncio.run(_round_trip(rounds=3 if quick else 40))
        yield asyncio.run(_carry(times=2 if quick else 15))
        yield from asyncio.run(_many(count=12 if quick else 1000, busy=6 if quick else 500))
        if address := os.environ.get("TARMAC_BENCH_SSH"):
            yield asyncio.run(_over_ssh(address, rounds=3 if quick else 20))


async def _trip(terminal: Terminal) -> float:
    times = []
    for _ in range(TRIPS):
        began = perf_counter()
        await terminal.run(":")
        times.append(perf_counter() - began)
    return median(times) * 1e6


async def _round_trip(rounds: int) -> list[Row]:
    async with open_terminal(cwd="/") as here, open_terminals("unix:") as terminals, terminals.lease(cwd="/") as there:
        await _trip(here), await _trip(there)
        pairs = [(await _trip(there), await _trip(here)) for _ in range(rounds)]
    added = median(one - other for one, other in pairs)
    far, near = zip(*pairs, strict=True)
    return [
        compared("round trip of `:` over a unix socket; floor: in this process", far, near, unit="µs"),
        Row(what="what the unix socket adds", ours=added, unit="µs", goal=Goal("≤", 150, "ours")),
    ]


async def _carry(times: int) -> Row:
    """All of it: connect, send the files, start the host, open a shell, run a command."""
    took, floor = [], []
    for _ in range(times):
        with TemporaryDirectory() as home:
            argv = ("env", "-i", f"HOME={home}", f"PATH={os.environ['PATH']}")
            began = perf_counter()
            place = CommandTransport("bench://here", argv)
            async with open_terminals(place) as terminals, terminals.lease(cwd="/") as terminal:
                await terminal.run(":")
                took.append((perf_counter() - began) * 1e3)
            floor.append(_bare([*argv, "python3", "-S", "-c", "import asyncio"]) / 1e3)
    what = "carry and first command; floor: start Python there, and import asyncio"
    return compared(what, took, floor, unit="ms", goal=Goal("≤", 400, "ours"))


async def _many(count: int, busy: int) -> list[Row]:
    """The memory of the host for each terminal, and a command beside many that print."""
    settings = Settings(max_terminals=count + 8, max_per_task=count + 8, warm_pool=0)
    async with open_terminals("unix:", settings=settings) as terminals:
        assert isinstance(terminals.machine, RemoteMachine)
        pid = terminals.machine.connection.welcome["pid"]
        first = await terminals.open(cwd="/")
        await first.run(":")
        before = own_memory(pid)
        others = []
        for _ in range(0, count, 20):
            others += await asyncio.gather(*(terminals.open(cwd="/") for _ in range(min(20, count))))
        each = (own_memory(pid) - before) / len(others)
        running = [await one.start("while :; do echo busy; sleep 0.5; done") for one in others[:busy]]
        times = []
        for _ in range(200):
            began = perf_counter()
            await first.run(":")
            times.append((perf_counter() - began) * 1e3)
        await asyncio.gather(*(one.kill() for one in running))
    worst = quantiles(times, n=100)[98]
    memory, beside = f"memory of the host for each of {len(others)} terminals", f"p99 of `:` beside {len(running)} busy"
    return [
        Row(what=memory, ours=each, unit="KB", goal=Goal("≤", 30, "ours")),
        Row(what=beside, ours=worst, unit="ms", goal=Goal("≤", 50, "ours")),
    ]


def own_memory(pid: object) -> float:
    """KB that are the process's own."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


async def _over_ssh(address: str, rounds: int) -> Row:
    host = address.removeprefix("ssh://").partition("?")[0]
    with TemporaryDirectory(prefix="b", dir="/tmp") as folder:
        shared = ["ssh", "-o", "BatchMode=yes", "-o", "ControlMaster=auto", "-o", f"ControlPath={folder}/%C"]
        _bare([*shared, "-o", "ControlPersist=60", host, ":"])
        async with open_terminals(address) as terminals, terminals.lease(cwd="/") as there:
            await _trip(there)
            pairs = [(await _trip(there), _bare([*shared, host, ":"])) for _ in range(rounds)]
        _bare([*shared, "-O", "exit", host])
    far, bare = zip(*pairs, strict=True)
    return compared("round trip of `:` over ssh; floor: `ssh host :`", far, bare, unit="µs", goal=Goal("≤", 1))


def _bare(argv: list[str]) -> float:
    """Microseconds that a program takes."""
    began = perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    return (perf_counter() - began) * 1e6
