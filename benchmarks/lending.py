"""Lending: a warm terminal and its first command; and many terminals at work at once.

`ours` of the first rows is a lease from the warm pool with `:` in it, the floor a plain round trip of `:` in an open
terminal of ours. The floor of the last rows is as many bare shells: the command is written to each, then each is read
to its sentinel, so that they too work at the same time.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from benchmarks.floor import BarePty, bare_pty
from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from tarmac.terminals import Settings, TerminalRegistry
from tarmac.terminals.terminal import Terminal

TRIPS = 5  # in a round


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home() as home:
        (home / "src").mkdir()
        yield from asyncio.run(_leases(home, rounds=5 if quick else 60))
        terminals, commands = (5, 4) if quick else (50, 20)
        for command in (":", "/bin/true"):
            yield asyncio.run(_crowd(command, terminals, commands, rounds=2 if quick else 8))


async def _leases(home: Path, *, rounds: int) -> list[Row]:
    started = 0
    rows = []
    for what, cwd in (("in the same directory", home), ("in another directory", home / "src")):
        ours, floor = [], []
        async with TerminalRegistry(Settings(warm_pool=TRIPS)) as terminals:
            plain = await terminals.open(cwd=home)
            for number in range(rounds + 1):
                await terminals.warm_up(cwd=home)
                before = _children()
                ours.append(await _lent(terminals, cwd, number))
                started += len(_children() - before)
                floor.append(await _plain(plain))
                for each in terminals.listing():
                    if each is not plain:
                        await terminals.kill(each.id)
        goal, note = Goal("≤", 3), "of a plain `:`"
        rows.append(compared(f"warm lease and `:`, {what}", ours[1:], floor[1:], unit="µs", goal=goal, note=note))
    rows.append(Row(what="warm leases: processes started", ours=started, goal=Goal("=", 0, of="ours")))
    return rows


async def _lent(terminals: TerminalRegistry, cwd: Path, number: int) -> float:
    """The median of as many leases as there are warm terminals."""
    times = []
    for trip in range(TRIPS):
        start = perf_counter()
        async with terminals.lease(cwd=cwd, task=f"task {number}.{trip}") as terminal:
            await terminal.run(":")
        times.append(perf_counter() - start)
        assert terminals.why(terminal).startswith("took ")
    return sorted(times)[TRIPS // 2] * 1e6


async def _plain(terminal: Terminal) -> float:
    times = []
    for _ in range(TRIPS):
        start = perf_counter()
        await terminal.run(":")
        times.append(perf_counter() - start)
    return sorted(times)[TRIPS // 2] * 1e6


def _children() -> set[str]:
    return {each for path in Path("/proc/self/task").glob("*/children") for each in path.read_text().split()}


async def _crowd(command: str, count: int, commands: int, *, rounds: int) -> Row:
    ours, floor = [], []
    settings = Settings(max_terminals=count + 1, warm_pool=0)
    async with TerminalRegistry(settings) as registry:
        terminals = [await registry.open() for _ in range(count)]
        with ExitStack() as stack:
            bare = [stack.enter_context(bare_pty("--norc", env={**os.environ, "PS1": ""})) for _ in range(count)]
            for _ in range(rounds + 1):
                start = perf_counter()
                await asyncio.gather(*(_work(each, command, commands) for each in terminals))
                ours.append((perf_counter() - start) * 1e3)
                start = perf_counter()
                _bare_work(bare, command.encode(), commands)
                floor.append((perf_counter() - start) * 1e3)
    what = f"{count} terminals × {commands} `{command}` at once"
    return compared(what, ours[1:], floor[1:], unit="ms", goal=Goal("≤", 2))


async def _work(terminal: Terminal, command: str, commands: int) -> None:
    for _ in range(commands):
        assert (await terminal.run(command)).exit_code == 0


def _bare_work(shells: list[BarePty], command: bytes, commands: int) -> None:
    for _ in range(commands):
        for each in shells:
            each.write(command)
        for each in shells:
            each.read()
