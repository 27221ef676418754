"""A task's log: what appending one fact costs as the task grows, beside rewriting the whole history as one JSON file.

Both wait for the disk (fdatasync), so part of each number is the disk's; the CPU rows leave that out.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import perf_counter, process_time

import msgspec

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from tarmac.events import TaskId
from tarmac.models.messages import Text, ToolUse, Usage
from tarmac.tasks.events import CallId, ModelSaid, RequestId, TaskEvent, ToolFinished, ToolStarted
from tarmac.tasks.log import Listener, TaskLog, create_log, open_log
from tarmac.tasks.log.reader import uncollected
from tarmac.tasks.views import Metadata, ModelHistory, Timeline


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 5 if quick else 41
    with private_home() as home:
        for length in (10, 1_000) if quick else (10, 1_000, 10_000):
            yield asyncio.run(_append(home / f"append-{length}", length, rounds=rounds))
        yield from asyncio.run(_all(_flat(home / "flat", 1_000 if quick else 10_000, rounds=rounds * 5)))
        yield from asyncio.run(_all(_open(home / "open", 5_000 if quick else 100_000)))


async def _all(rows: AsyncIterator[Row]) -> list[Row]:
    return [row async for row in rows]


def facts(number: int) -> list[TaskEvent]:
    """One turn: three facts, about 1 KB."""
    call, at = CallId(f"c{number}"), float(number)
    said = (Text(f"Step {number}: I look at the file."), ToolUse(call, "read_file", '{"path": "src/module.py"}'))
    content = (Text("File: src/module.py\n" + " 1 | import os\n" * 30),)
    return [
        ModelSaid(at=at, request=RequestId(f"r{number}"), parts=said, stop="tool_use", usage=Usage(input=9), cost=0.1),
        ToolStarted(at=at, call=call, name="read_file", title="Reading src/module.py"),
        ToolFinished(at=at, call=call, name="read_file", outcome="done", content=content, title="Read a file"),
    ]


def many(count: int) -> list[TaskEvent]:
    return [event for number in range(count // 3 + 1) for event in facts(number)][:count]


async def _append(folder: Path, length: int, *, rounds: int) -> Row:
    """One fact after `length` others; the floor is the same fact by rewriting all of them."""
    ours: list[float] = []
    rewrite: list[float] = []
    history = [_plain(event) for event in many(length)]
    other = folder.with_suffix(".json")
    async with create_log(folder, TaskId("t")) as log:
        await log.append(*many(length))
        for number in range(rounds + 1):
            event = facts(number)[2]
            start = perf_counter()
            await log.append(event)
            ours.append((perf_counter() - start) * 1e3)
            start = perf_counter()
            _rewrite(other, [*history, _plain(event)])
            rewrite.append((perf_counter() - start) * 1e3)
    return compared(f"append a fact to {length:,} | rewrite all", ours[1:], rewrite[1:], unit="ms", goal=Goal("≤", 1.5))


async def _flat(folder: Path, length: int, *, rounds: int) -> AsyncIterator[Row]:
    """A turn, with all three views kept up to date, in a long task and in a short one."""
    one, other = folder.with_name("long"), folder.with_name("short")
    async with create_log(one, TaskId("t")) as long, create_log(other, TaskId("t")) as short:
        for log, size in ((long, length), (short, 10)):
            log.subscribe(_views())
            await log.append(*many(size))

        async def turn(log: TaskLog, number: int) -> tuple[float, float]:
            start, cpu = perf_counter(), process_time()
            await log.append(*facts(number))
            return (perf_counter() - start) * 1e6, (process_time() - cpu) * 1e6

        costs = [(await turn(long, number), await turn(short, number)) for number in range(rounds)]
    for which, what in enumerate(("a turn (3 facts, 3 views)", "the same, CPU")):
        yield compared(
            f"{what}, after {length:,} | after 10",
            [each[which] for each, _ in costs],
            [each[which] for _, each in costs],
            unit="µs",
            goal=Goal("≤", 1.2),
        )


def _views() -> Listener:
    history, line, meta = ModelHistory(), Timeline(), Metadata()

    def add(_: int, event: TaskEvent) -> None:
        history.add(event)
        line.add(event)
        meta.add(event)

    return add


async def _open(folder: Path, length: int) -> AsyncIterator[Row]:
    async with create_log(folder, TaskId("t")) as log:
        await log.append(*many(length))
    size = log.size
    start, cpu = perf_counter(), process_time()
    async with open_log(folder) as log:
        read = (perf_counter() - start, process_time() - cpu)
        add = _views()
        with uncollected():
            for seq, event in enumerate(log.past, 1):
                add(seq, event)
    both = (perf_counter() - start, process_time() - cpu)
    note = f"{size / 1e6:.0f} MB"
    yield Row(what=f"open a task of {length:,} facts: time", ours=read[0] * 1e3, unit="ms", note=note)
    yield Row(what="the same, CPU", ours=read[1] * 1e3, unit="ms", goal=Goal("≤", 1000, "ours"))
    yield Row(what="the same, and fold all three views: CPU", ours=both[1] * 1e3, unit="ms")


def _plain(event: TaskEvent) -> dict[str, object]:
    found = msgspec.to_builtins(event)
    assert isinstance(found, dict)
    return found


def _rewrite(path: Path, history: list[dict[str, object]]) -> None:
    """As tools do that keep one JSON file: a new file, on the disk, takes the old one's name."""
    new = path.with_suffix(".new")
    with new.open("w") as file:
        json.dump(history, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
