"""Terminals that outlive the program: what the daemon adds to a command, and how soon the next program has them."""

import asyncio
from collections.abc import Iterator
from statistics import median, quantiles
from time import perf_counter, thread_time

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from tarmac.terminals import Terminal, attach_terminal, open_terminal

TRIPS = 25  # in a round
BEFORE = 60  # commands that ran before another program attaches


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home():
        yield from asyncio.run(_round_trip(rounds=3 if quick else 60))
        yield asyncio.run(_attach(times=3 if quick else 60))


async def _round_trip(rounds: int) -> list[Row]:
    kept: list[tuple[float, float]] = []
    plain: list[tuple[float, float]] = []
    async with open_terminal(cwd="/") as ordinary, open_terminal(cwd="/", outlive=True) as outliving:
        every: list[float] = []
        for _ in range(rounds + 1):
            kept.append(await _trips(outliving, []))
            plain.append(await _trips(ordinary, every))
        await outliving.aclose()
    clock, cpu = ([each[at] for each in kept[1:]] for at in (0, 1))
    floor, floor_cpu = ([each[at] for each in plain[1:]] for at in (0, 1))
    what = "round trip of `:` in a terminal of the daemon; floor: an ordinary one"
    worst, middle = quantiles(every[TRIPS:], n=100)[98] * 1e6, median(every[TRIPS:]) * 1e6
    tail = Row(
        what="99th of 100 round trips of `:` in an ordinary terminal; floor: median",
        ours=worst,
        unit="µs",
        floor=middle,
        ratio=worst / middle,
        goal=Goal("≤", 4),
    )
    return [
        compared(what, clock, floor, unit="µs", goal=Goal("≤", 1.05)),
        compared("the same, CPU of the program", cpu, floor_cpu, unit="µs"),
        tail,
    ]


async def _trips(terminal: Terminal, every: list[float]) -> tuple[float, float]:
    """The median time of a trip, and the CPU of one, in µs."""
    times = []
    cpu = thread_time()
    for _ in range(TRIPS):
        began = perf_counter()
        await terminal.run(":")
        times.append(perf_counter() - began)
    every += times
    return median(times) * 1e6, (thread_time() - cpu) / TRIPS * 1e6


async def _attach(times: int) -> Row:
    """After commands whose results the next program can read again."""
    ours, floor = [], []
    async with open_terminal(cwd="/", outlive=True) as terminal:
        for _ in range(BEFORE):
            await terminal.run("seq 50")
        id = terminal.id
    for _ in range(times):
        began = perf_counter()
        terminal = await attach_terminal(id)
        ours.append((perf_counter() - began) * 1e3)
        await terminal.leave()
        began = perf_counter()
        async with open_terminal(cwd="/"):
            floor.append((perf_counter() - began) * 1e3)
    await (await attach_terminal(id)).aclose()
    what = f"attach to a terminal with {BEFORE} commands; floor: open a new one"
    return compared(what, ours, floor, unit="ms", goal=Goal("≤", 20, "ours"))
