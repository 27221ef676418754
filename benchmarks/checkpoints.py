"""Checkpoints: a snapshot of an unchanged workspace, one after a change of one file, and edits in a long task.

The floor of the snapshots is a bare walk of the same tree in Python: each folder is listed, each file is looked at, and
nothing is made of it. A loaded machine doubles both times, so there is a row of processor time, too: ours is nearly all
git's, which looks at each file in several threads.
"""

import asyncio
import os
import resource
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
        yield from _snapshot(home / "a", work, "unchanged", rounds=rounds, goal=Goal("≤", 80, "ours"))
        work = _repository(home / "some", 100 if quick else 10_000)
        yield from _snapshot(home / "b", work, "one file changed", rounds=rounds, goal=Goal("≤", 40, "ours"))
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


def _snapshot(folder: Path, work: Path, what: str, *, rounds: int, goal: Goal) -> Iterator[Row]:
    snapshots = Snapshots(folder / "task" / "checkpoints", work)
    snapshots.take(limit=LIMIT)
    ours: list[tuple[float, float]] = []
    floor: list[tuple[float, float]] = []
    files = 0
    for number in range(rounds + 1):
        if what != "unchanged":
            (work / "d0" / "f0.py").write_text(f"# {number}\n")
        start = _clocks()
        snapshots.take(limit=LIMIT)
        middle = _clocks()
        files = _walk(str(work))
        end = _clocks()
        ours.append((middle[0] - start[0], middle[1] - start[1]))
        floor.append((end[0] - middle[0], end[1] - middle[1]))
    name = f"snapshot, {files:,} files, {what}"
    wall, cpu = ([each[at] for each in ours[1:]] for at in (0, 1))
    wall_floor, cpu_floor = ([each[at] for each in floor[1:]] for at in (0, 1))
    yield compared(f"{name} | a bare walk", wall, wall_floor, unit="ms", goal=goal)
    yield compared(f"{name}, CPU with git's | of a bare walk", cpu, cpu_floor, unit="ms", goal=goal)


def _clocks() -> tuple[float, float]:
    """The time, and the processor time of this process and of those that it has started; in milliseconds."""
    used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return perf_counter() * 1e3, sum(each.ru_utime + each.ru_stime for each in used) * 1e3


def _walk(top: str) -> int:
    """Look at every file below `top`, but for git's own; how many there are."""
    found, folders = 0, [top]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    entry.stat(follow_symlinks=False)
                    found += 1
                elif entry.name != ".git":
                    folders.append(entry.path)
    return found


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
