"""Are the logs of all tasks whole, and does the index fit them? Asked by `tarmac doctor`, which can repair.

What can be repaired: a torn tail is cut off and kept, the index is made anew, half-done deletions are finished. A
record that the disk did not keep can't be: the log stays as it is, and says so wherever it is shown.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import TarmacError, TaskInUse
from tarmac.events import TaskId
from tarmac.paths import state_dir
from tarmac.tasks.log import open_log
from tarmac.tasks.log.disk import Blobs
from tarmac.tasks.log.reader import BLOBS, opened, read_all
from tarmac.tasks.log.records import Damage, Scanner
from tarmac.tasks.store import TaskStore
from tarmac.terminals.doctor import Case, Check, Finding, Findings, Level

MOST = 20  # tasks named one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was found in one task's folder."""

    task: TaskId
    records: int = 0
    damage: tuple[Damage, ...] = ()
    torn: Damage | None = None
    lost_texts: int = 0  # contents beside the log that are gone or damaged
    trouble: str = ""  # it can't be read at all

    @property
    def well(self) -> bool:
        return not (self.damage or self.torn or self.lost_texts or self.trouble)


def look_at(folder: Path) -> Health:
    """Read all of one task; changes nothing. (It waits for the disk.)"""
    lost: set[str] = set()
    blobs = Blobs(folder / BLOBS)

    def fetch(name: str) -> bytes | None:
        data = blobs.read(name)
        if data is None:
            lost.add(name)
        return data

    try:
        with opened(folder) as fd:
            reading = read_all(fd, Scanner(fetch=fetch))
    except TarmacError as error:
        return Health(task=TaskId(folder.name), trouble=error.what)
    return Health(
        task=TaskId(folder.name),
        records=len(reading.events),
        damage=reading.damage,
        torn=reading.torn,
        lost_texts=len(lost),
    )


def checks(*, repair: bool = False) -> tuple[Check, ...]:
    """For the doctor's list."""

    async def logs(case: Case) -> Findings:
        async for finding in _logs(_store(case.environ), repair=repair):
            yield finding

    async def index(case: Case) -> Findings:
        async for finding in _index(_store(case.environ), repair=repair):
            yield finding

    return (Check("tasks", logs, seconds=120), Check("tasks", index, seconds=120))


def _store(environ: Mapping[str, str]) -> TaskStore:
    return TaskStore(state_dir(environ) / "tasks")


async def _logs(store: TaskStore, *, repair: bool) -> Findings:
    tasks = await asyncio.to_thread(store.tasks)
    found = [await asyncio.to_thread(look_at, store.folder / each) for each in tasks]
    ill = [each for each in found if not each.well]
    records = sum(each.records for each in found)
    if not found:
        yield Finding(name="logs", level="ok", what="no tasks yet")
    elif not ill:
        what = f"{len(found)} task{'s' * (len(found) > 1)}, {records:,} records, all of them whole"
        yield Finding(name="logs", level="ok", what=what, facts={"tasks": len(found), "records": records})
    for health in ill[:MOST]:
        yield await _told(store, health, repair=repair)
    if len(ill) > MOST:
        yield Finding(name="logs", level="warning", what=f"{len(ill) - MOST} more tasks have damaged logs")


async def _told(store: TaskStore, health: Health, *, repair: bool) -> Finding:
    name = f"task {health.task}"
    facts = {"task": health.task, "records": health.records, "lost_records": sum(each.lost for each in health.damage)}
    if health.trouble:
        return Finding(
            name=name, level="problem", what=health.trouble, advice="its folder is left as it is", facts=facts
        )
    said: list[str] = []
    level: Level = "note"
    advice = ""
    if lost := facts["lost_records"]:
        said.append(f"{lost} of its {health.records} records are damaged")
    elif health.damage:
        said.append("there is junk between its records")
    if health.lost_texts:
        said.append(f"{health.lost_texts} of its long texts are gone")
    if said:
        level, advice = "warning", "the rest is there and it can be resumed; a copy from a backup would have them"
    if health.torn:
        said.append(f"its last write was cut off ({health.torn.size} bytes)")
        if repair:
            said.append(await _cut(store, health.task))
        else:
            advice = advice or "nothing that was promised is lost; `tarmac doctor --repair` cleans up"
    return Finding(name=name, level=level, what="; ".join(said), advice=advice, facts=facts)


async def _cut(store: TaskStore, task: TaskId) -> str:
    try:
        async with open_log(store.folder / task):
            return "cut off now, and kept beside the log"
    except TaskInUse:
        return "a process works on it, so it is left alone"


async def _index(store: TaskStore, *, repair: bool) -> Findings:
    left = await asyncio.to_thread(lambda: sorted(store.folder.glob(".deleted-*")))
    there = await asyncio.to_thread(store.index.path.exists)
    wrong = await asyncio.to_thread(store.index.check) if there else None
    if repair and (wrong or left):
        count = len(await store.rebuild())
        what = f"made anew from the logs: {count} task{'s' * (count != 1)}"
        yield Finding(name="index", level="ok", what=what + (f" (it was damaged: {wrong})" if wrong else ""))
        if left:
            yield Finding(name="deletions", level="ok", what=f"{len(left)} that had not been finished are finished")
        return
    if wrong:
        yield Finding(
            name="index",
            level="warning",
            what=f"damaged: {wrong}",
            advice="`tarmac doctor --repair` makes it anew from the logs; nothing is lost",
        )
    else:
        yield Finding(name="index", level="ok", what="lists and search work" if there else "none yet: made when needed")
    if left:
        yield Finding(
            name="deletions",
            level="note",
            what=f"{len(left)} had not been finished when Tarmac was stopped",
            advice="`tarmac doctor --repair` finishes them",
        )
