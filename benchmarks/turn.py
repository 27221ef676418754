"""One turn of a task: the model (scripted) answers with a tool call, it is judged, made and recorded.

CPU is that of this process: of all its threads, also those that wait for the disk, and not of the programs that it
starts (the parser, the shell, what runs in it). Then how often the disk is waited for, and how many parsers are
started; in a short task and in a long one, and beside it what rewriting the whole history would cost each time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path
from time import process_time

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from benchmarks.task_log import many
from tarmac.app import App, open_app
from tarmac.config import Config
from tarmac.policy.parse import parser
from tarmac.tasks.condense import cover, foldable, recent
from tarmac.tasks.limits import Limits
from tarmac.tasks.task import Task
from tarmac.tasks.views.model_history import ModelHistory

TURNS = 10  # in one measurement: how a run begins and ends is a small part of it
TURN = """[[turn]]
text = "I look."
[[turn.call]]
name = "{tool}"
arguments = {{ {arguments} }}
"""
READING = 'path = "module.py"'
# Another line each time: one that is known is not parsed again. Plain words need no parser at all (plain_words.py).
PLAIN, QUOTED = 'command = "touch made-{n}"', "command = \"touch 'made {n}'\""


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 3 if quick else 15
    lengths = (100, 1_000) if quick else (100, 10_000)
    with private_home() as home:
        yield from asyncio.run(_rows(home, rounds=rounds, lengths=lengths))
        yield from _condensing(lengths[1], rounds=rounds)
        for length in lengths:
            yield _rewrite(home / "history.json", length, rounds=rounds)


async def _rows(home: Path, *, rounds: int, lengths: tuple[int, int]) -> list[Row]:
    work = home / "work"
    work.mkdir()
    (work / "module.py").write_text("import os\n" * 30)
    rows = []
    async with open_app(Config(workspace=work, user_folder=home / "none")) as app:
        reading = _script(home / "reading.toml", "read_file", READING)
        short, long = [await _made(app, home, length) for length in lengths]
        async with _resumed(app, short, reading) as one, _resumed(app, long, reading) as other:
            costs = [(await _turn(one), await _turn(other)) for _ in range(rounds + 2)][2:]
        cpu = [each[0].cpu for each in costs]
        rows.append(Row(what="a turn that reads a file, CPU", ours=_middle(cpu), unit="ms", goal=Goal("≤", 5, "ours")))
        syncs = _middle([each[0].syncs for each in costs])
        rows.append(Row(what="the same, syncs", ours=syncs, goal=Goal("≤", 3, "ours")))
        what = f"a turn, CPU, after {lengths[1]:,} messages | after {lengths[0]}"
        rows.append(compared(what, [b.cpu for _, b in costs], cpu, unit="ms", goal=Goal("≤", 1.2)))
        for which, line in ("a command of plain words", PLAIN), ("a command with quotes", QUOTED):
            running = _script(home / "running.toml", "execute_command", line)
            async with _resumed(app, await _made(app, home, lengths[0]), running) as task:
                with _counted() as parsed:
                    turns = [await _turn(task) for _ in range(rounds + 2)][2:]
            cpu = [each.cpu for each in turns]
            goal = Goal("≤", 5, "ours")
            rows.append(Row(what=f"a turn that runs {which}, CPU", ours=_middle(cpu), unit="ms", goal=goal))
            syncs, starts = _middle([each.syncs for each in turns]), len(parsed) / (rounds + 2) / TURNS
            rows.append(Row(what="the same, syncs", ours=syncs, goal=Goal("≤", 3, "ours")))
            rows.append(Row(what="the same, parsers started", ours=starts, goal=Goal("≤", 1, "ours")))
    return rows


def _script(path: Path, tool: str, arguments: str) -> str:
    """A model that makes this call again and again: it skips as many turns as the conversation has."""
    before = TURN.format(tool=tool, arguments=arguments).replace("text", "times = 20000\ntext")
    calls = (TURN.format(tool=tool, arguments=arguments.format(n=n)) for n in range(400))
    path.write_text(before if tool == "read_file" else "".join(["[[turn]]\ntimes = 50\n", *calls]))
    return f"scripted/{path}"


@contextmanager
def _counted() -> Iterator[list[str]]:
    """Whatever is parsed meanwhile."""
    parsed: list[str] = []
    run = parser._run

    async def counting(argv: list[str], data: bytes, timeout: float) -> tuple[bytes, int]:
        parsed.append(data.decode())
        return await run(argv, data, timeout)

    parser._run = counting
    try:
        yield parsed
    finally:
        parser._run = run


async def _made(app: App, home: Path, length: int) -> str:
    """A task of so many messages."""
    async with app.store.create(workspace=home / "work") as log:
        await log.append(*many(length * 3 // 2))
    return log.folder.name


@asynccontextmanager
async def _resumed(app: App, id: str, model: str) -> AsyncIterator[Task]:
    limits = Limits(max_turns=TURNS, max_repetitions=0)
    async with app.resume_task(id, model=model, auto="all", attended=False, limits=limits) as task:
        yield task


class _Cost:
    """Of one turn."""

    def __init__(self, cpu: float, syncs: float) -> None:
        self.cpu, self.syncs = cpu, syncs


async def _turn(task: Task) -> _Cost:
    """Some turns in a row, until their limit stops them; what one of them took."""
    syncs, start = task.log.syncs, process_time()
    ended = await task.run_until_idle()
    assert ended.why == "limit", ended
    cpu = (process_time() - start) * 1e3 / TURNS
    return _Cost(cpu, round((task.log.syncs - syncs) / TURNS, 1))


def _condensing(length: int, *, rounds: int) -> Iterator[Row]:
    """What it takes before each request to decide whether to condense, and then, rarely, what."""
    history = ModelHistory()
    for event in many(length):
        history.add(event)
    costs, asked = [], []
    for _ in range(rounds):
        start = process_time()
        assert history.size
        asked.append((process_time() - start) * 1e3)
        start = process_time()
        end = recent(history.turns)
        foldable(history.turns[:end])
        cover(history.turns, end)
        costs.append((process_time() - start) * 1e3)
    what = f"to decide whether to condense {length:,} facts, CPU"
    yield Row(what=what, ours=_middle(asked), unit="ms", goal=Goal("≤", 5, "ours"))
    yield Row(what="and then what of them, CPU", ours=_middle(costs), unit="ms")


def _rewrite(path: Path, length: int, *, rounds: int) -> Row:
    """What Roo-Code's way costs, for comparison."""
    history = [asdict(event) for event in many(length)]
    costs = []
    for _ in range(rounds):
        start = process_time()
        path.write_text(json.dumps(history, default=str))
        costs.append((process_time() - start) * 1e3)
    return Row(what=f"to rewrite a history of {length:,} messages, CPU", ours=_middle(costs), unit="ms")


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
