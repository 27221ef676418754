"""What `tarmac doctor` finds in logs and index, and what it repairs."""

import os
from pathlib import Path

import pytest
from tests.tasks.samples import a_task

from tarmac.tasks.checkup import checks, look_at
from tarmac.tasks.log import open_log
from tarmac.tasks.store import TaskStore
from tarmac.terminals.doctor import Case, examine


async def found(*, repair: bool = False) -> dict[str, tuple[str, str]]:
    return {
        each.name: (each.level, each.what) async for _, each in examine(checks(repair=repair), Case(environ=os.environ))
    }


@pytest.fixture
def store() -> TaskStore:
    return TaskStore(Path(os.environ["TARMAC_STATE_DIR"]) / "tasks")


async def made(store: TaskStore) -> Path:
    async with store.create(workspace=Path("/w")) as log:
        await log.append(*list(a_task(3))[1:])
    return log.folder


async def test_no_tasks_and_whole_ones_are_well(store: TaskStore) -> None:
    assert await found() == {"logs": ("ok", "no tasks yet"), "index": ("ok", "none yet: made when needed")}
    await made(store)
    assert await found() == {
        "logs": ("ok", "1 task, 23 records, all of them whole"),
        "index": ("ok", "lists and search work"),
    }


async def test_a_torn_tail_is_a_note_and_is_cut_off_and_kept_on_repair(store: TaskStore) -> None:
    """S4."""
    folder = await made(store)
    log = folder / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"seq":24,"kind":"user_s')
    name = f"task {folder.name}"
    assert (await found())[name] == ("note", "its last write was cut off (24 bytes)")
    assert log.read_bytes() != whole
    assert "cut off now" in (await found(repair=True))[name][1]
    assert log.read_bytes() == whole
    assert [each.read_bytes() for each in folder.glob("torn-*")] == [b'{"seq":24,"kind":"user_s']
    assert (await found())["logs"][0] == "ok"


async def test_a_log_that_is_being_written_is_left_alone(store: TaskStore) -> None:
    """S3: one writer."""
    folder = await made(store)
    async with open_log(folder):
        with (folder / "log.jsonl").open("ab") as file:
            file.write(b"half")
        assert "a process works on it" in (await found(repair=True))[f"task {folder.name}"][1]
    assert (folder / "log.jsonl").read_bytes().endswith(b"half")


async def test_damage_in_the_middle_and_lost_texts_are_warnings_and_nothing_is_touched(store: TaskStore) -> None:
    folder = await made(store)
    log = folder / "log.jsonl"
    log.write_bytes(damaged := log.read_bytes().replace(b"Step 1", b"Step 7"))
    level, what = (await found(repair=True))[f"task {folder.name}"]
    assert (level, what, log.read_bytes()) == ("warning", "1 of its 23 records are damaged", damaged)


async def test_a_long_text_that_is_gone_is_counted(store: TaskStore) -> None:
    from tarmac.tasks.events import UserSaid

    async with store.create(workspace=Path("/w")) as log:
        await log.append(UserSaid(at=1.0, text="x" * 100_000))
    (blob,) = (log.folder / "blobs").iterdir()
    blob.unlink()
    assert look_at(log.folder).lost_texts == 1
    assert (await found())[f"task {log.folder.name}"][0] == "warning"


async def test_a_damaged_index_is_made_anew_and_deletions_are_finished(store: TaskStore) -> None:
    folder = await made(store)
    store.index.path.write_bytes(b"SQLite format 3\0" + b"junk" * 2000)
    (store.folder / ".deleted-abc-12").mkdir()
    assert {name: level for name, (level, _) in (await found()).items() if name != "logs"} == {
        "index": "warning",
        "deletions": "note",
    }
    repaired = await found(repair=True)
    assert repaired["index"][1].startswith("made anew from the logs: 1 task")
    assert not list(store.folder.glob(".deleted-*"))
    assert [each.task for each in await store.listing()] == [folder.name]
    assert (await found())["index"] == ("ok", "lists and search work")


async def test_a_log_of_a_newer_tarmac_is_a_problem_that_says_so(store: TaskStore) -> None:
    folder = await made(store)
    (folder / "log.jsonl").write_bytes((folder / "log.jsonl").read_bytes().split(b"\n", 1)[1])
    assert (await found())[f"task {folder.name}"][0] in ("warning", "problem")
