"""Checkpoints: a snapshot of an unchanged workspace, one after a change of one file, and edits in a long task.

The floor of the snapshots is `git status` in the same repository. A loaded machine doubles both.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from benchmarks.task_log import many
from tarmac.calls.pipeline import Call
from tarmac.events import CallId, TaskId
from tarmac.policy import WriteFile
from tarmac.tasks.checkpoints import Checkpoints
from tarmac.tasks.log import TaskLog, create_log
from tarmac.tasks.snapshot import Snapshots
from tarmac.tools.tool import Done, Go, Ready, Want

LIMIT = 120.0


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 3 if quick else 15
    with private_home() as home:
        work = _repository(home / "many", 300 if quick else 30_000)
        yield _snapshot(home / "a", work, "unchanged", rounds=rounds, goal=Goal("≤", 80, "ours"))
        work = _repository(home / "some", 100 if quick else 10_000)
        yield _snapshot(home / "b", work, "one file changed", rounds=rounds, goal=Goal("≤", 40, "ours"))
        yield asyncio.run(_edits(home / "c", 500 if quick else 10_000, rounds=rounds * 3))


def _repository(work: Path, count: int) -> Path:
    for number in range(count):
        folder = work / f"d{number // 100}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
        (folder / f"f{number}.py").write_text(f"print({number})\n" * 10)
    env = os.environ | {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (("init", "-q"), ("-c", "core.bigFileThreshold=1", "add", "-A"), ("commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=work, env=env, check=True)
    return work


def _snapshot(folder: Path, work: Path, what: str, *, rounds: int, goal: Goal) -> Row:
    snapshots = Snapshots(folder / "task" / "checkpoints", work)
    snapshots.take(limit=LIMIT)
    ours: list[float] = []
    floor: list[float] = []
    for number in range(rounds + 1):
        if what != "unchanged":
            (work / "d0" / "f0.py").write_text(f"# {number}\n")
        start = perf_counter()
        snapshots.take(limit=LIMIT)
        ours.append((perf_counter() - start) * 1e3)
        start = perf_counter()
        subprocess.run(["git", "status", "--porcelain"], cwd=work, check=True, capture_output=True)
        floor.append((perf_counter() - start) * 1e3)
    files = sum(1 for each in work.glob("d*/*"))
    return compared(f"snapshot, {files:,} files, {what} | git status", ours[1:], floor[1:], unit="ms", goal=goal)


async def _edits(folder: Path, length: int, *, rounds: int) -> Row:
    """An edit with its checkpoint in a task of `length` messages; the floor is one of 100."""
    async with _task(folder / "long", length) as long, _task(folder / "short", 100) as short:
        ours: list[float] = []
        floor: list[float] = []
        for number in range(rounds + 1):
            ours.append(await _edit(*long, number))
            floor.append(await _edit(*short, number))
    return compared(
        f"an edit with its checkpoint after {length:,} messages | after 100",
        ours[1:],
        floor[1:],
        unit="ms",
        goal=Goal("≤", 1.3),
    )


@asynccontextmanager
async def _task(folder: Path, length: int) -> AsyncIterator[tuple[TaskLog, Checkpoints, Path]]:
    folder.mkdir(parents=True)
    async with create_log(folder / "task", TaskId("t")) as log:
        past = many(length)
        await log.append(*past)
        yield log, Checkpoints(log, folder, past), folder / "a.txt"


async def _edit(log: TaskLog, checkpoints: Checkpoints, path: Path, number: int) -> float:
    content = f"{number}\n".encode()

    async def act(_: Go) -> Done:
        path.write_bytes(content)
        return Done(content=())

    ready = Ready(title="Writing", done="Wrote", act=act, wants=(Want(action=WriteFile(path), content=content),))
    call = Call(id=CallId(f"c{number}"), name="write_to_file", prepare=lambda: _never(ready))
    start = perf_counter()
    async with checkpoints.around(call, ready, Go()):
        await act(Go())
    await log.commit()
    return (perf_counter() - start) * 1e3


async def _never(ready: Ready) -> Ready:
    return ready
