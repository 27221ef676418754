"""Many tasks: lists and search that always say what the logs say."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.errors import BadRequest, TaskInUse, TaskNotFound
from tarmac.events import TaskId
from tarmac.models.messages import Text, Usage
from tarmac.tasks.events import CallId, ModelSaid, RequestId, TaskCompleted, ToolFinished, UserSaid
from tarmac.tasks.log.reader import LOG
from tarmac.tasks.store import TaskStore


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    return TaskStore(tmp_path / "state" / "tasks")


async def a_task(store: TaskStore, text: str, *, at: float = 1.0, answer: str = "", cost: float = 0.0) -> TaskId:
    async with store.create(workspace=Path("/project")) as log:
        await log.append(UserSaid(at=at, text=text))
        if answer:
            parts = (Text(answer),)
            usage = Usage(input=10, output=5)
            said = ModelSaid(at=at, request=RequestId("r"), parts=parts, stop="end", usage=usage, cost=cost)
            await log.append(said)
    return TaskId(log.folder.name)


async def test_tasks_are_listed_with_what_their_logs_say(store: TaskStore) -> None:
    """S3."""
    assert await store.listing() == []
    assert await store.search("anything") == []
    old = await a_task(store, "the old one", at=4e9, answer="fine", cost=2.0)
    new = await a_task(store, "the new one", at=5e9, answer="good", cost=1.0)
    assert [(each.task, each.metadata.name, each.metadata.number) for each in await store.listing()] == [
        (new, "the new one", 2),
        (old, "the old one", 1),
    ]
    assert [each.task for each in await store.listing(sort="cost", limit=1)] == [old]
    assert await store.listing(workspace=Path("/elsewhere")) == []
    (listed,) = await store.listing(sort="oldest", limit=1)
    assert (listed.task, listed.metadata.usage) == (old, Usage(input=10, output=5))
    assert listed.size == (store.folder / old / LOG).stat().st_size


async def test_a_task_begun_at_the_same_time_as_others_has_a_number_of_its_own(store: TaskStore) -> None:
    await asyncio.gather(*(a_task(store, str(each)) for each in range(6)))
    assert sorted(each.metadata.number for each in await store.listing()) == [1, 2, 3, 4, 5, 6]


async def test_search_finds_parts_of_words_in_any_script_and_says_where(store: TaskStore) -> None:
    """S3: full-text search over all tasks."""
    one = await a_task(store, "请修复 fetchUserProfile 的测试", answer="I renamed `user_profile`.")
    two = await a_task(store, "100% of the tests? a_b", answer='say "hi" now')

    async def hits(text: str) -> set[tuple[TaskId, int, str]]:
        return {(each.task, each.seq, each.who) for each in await store.search(text)}

    assert await hits("UserProf") == {(one, 2, "user")}
    assert await hits("user_profile") == {(one, 3, "model")}
    assert await hits("修复") == await hits("修") == {(one, 2, "user")}
    assert await hits("the TESTS") == {(two, 2, "user")}
    assert await hits('"the tests"') == {(two, 2, "user")}
    assert await hits('"tests the"') == set()
    assert await hits("%") == {(two, 2, "user")}
    assert await hits("_b") == {(two, 2, "user")}
    assert await hits('say AND OR NOT ( * "') == await hits("  ") == set()
    (found,) = await store.search("renamed")
    assert "renamed" in found.excerpt


async def test_what_a_tool_said_is_found_by_its_beginning(store: TaskStore) -> None:
    async with store.create(workspace=Path("/p")) as log:
        content = (Text("ImportError: no module named frobnicate" + " " * 5000 + "far away"),)
        await log.append(ToolFinished(at=1.0, call=CallId("c"), name="x", outcome="done", content=content))
    assert [each.who for each in await store.search("frobnicate")] == ["tool"]
    assert await store.search("far away") == []


async def test_the_index_follows_a_log_that_another_writes(store: TaskStore) -> None:
    """S3: a list looks at the logs; what is new costs what is new, and is not counted twice."""
    task = await a_task(store, "begin")
    async with store.open(task) as log:
        for number in range(3):
            await log.append(UserSaid(at=9.0, text=f"remark {number}"))
            (listed,) = await TaskStore(store.folder).listing()
            assert listed.metadata.seq == 3 + number
            assert len(await store.search("remark")) == number + 1
        await log.append(TaskCompleted(at=10.0, result="all remarks done", usage=Usage()))
    assert len(await store.search("remark")) == 4
    (listed,) = await store.listing()
    assert listed.metadata.status == "completed"


def gone(path: Path) -> None:
    path.unlink()


def overwritten(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def scribbled_on(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in range(4096, len(data), 97):
        data[place] ^= 0x5A
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE words")
        db.execute("PRAGMA user_version = 99")
    db.close()


def without_a_table(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE tasks")
    db.close()


@pytest.mark.parametrize("harm", [gone, overwritten, scribbled_on, emptied, of_another_version, without_a_table])
async def test_an_index_that_is_missing_or_damaged_is_made_anew_from_the_logs(
    store: TaskStore, harm: Callable[[Path], None]
) -> None:
    """S3."""
    one = await a_task(store, "find the needle", answer="here", at=2e9)
    two = await a_task(store, "another haystack", at=3e9)
    before = await store.listing()
    harm(store.index.path)
    assert await store.listing() == before
    assert [each.task for each in await store.search("needle")] == [one]
    assert [each.task for each in await store.search("haystack")] == [two]
    assert store.index.check() is None
    assert (await store.rebuild()) == before
    assert (await store.listing())[0].metadata.number == 2
    await a_task(store, "third")
    assert max(each.metadata.number for each in await store.listing()) == 3


async def test_a_task_whose_log_can_not_be_read_is_listed_with_the_reason(store: TaskStore) -> None:
    """No list hides a task that exists."""
    good, bad = await a_task(store, "good"), await a_task(store, "bad")
    store.index.destroy()
    path = store.folder / bad / LOG
    path.unlink()
    path.mkdir()  # nobody can read a folder as a log, not even root
    found = {each.task: each.trouble for each in await store.listing()}
    assert found[good] == ""
    assert "can't be read" in found[bad]
    path.rmdir()


async def test_a_log_that_was_replaced_by_another_is_read_anew(store: TaskStore) -> None:
    one, two = await a_task(store, "short"), await a_task(store, "a much longer text than that", answer="yes")
    await store.listing()
    (store.folder / one / LOG).write_bytes((store.folder / two / LOG).read_bytes())
    assert {each.metadata.name for each in await store.listing()} == {"a much longer text than that"}
    assert await store.search("short") == []


async def test_a_task_is_found_by_the_beginning_of_its_id(store: TaskStore) -> None:
    task = await a_task(store, "one")
    assert store.path(task) == store.path(task[:9]) == store.folder / task
    with pytest.raises(TaskNotFound, match="there is no task `zz`"):
        store.path("zz")
    for odd in ("", "../x", ".deleted"):
        with pytest.raises(BadRequest):
            store.path(odd)
    assert len((await store.read(task)).events) == 2


async def test_a_deleted_task_is_gone_from_disk_list_and_search(store: TaskStore) -> None:
    """Part of S2: delete; the layer that shows, pauses and resumes tasks is not there yet."""
    task = await a_task(store, "forget me")
    async with store.open(task):
        with pytest.raises(TaskInUse):
            await store.delete(task)
    await store.delete(task)
    assert (await store.listing(), await store.search("forget"), list(store.folder.glob("*-*"))) == ([], [], [])
    with pytest.raises(TaskNotFound):
        await store.delete(task)


async def test_odd_names_and_texts_do_not_harm_the_index(store: TaskStore) -> None:
    task = await a_task(store, "a\udcff\0b needle")
    async with store.create(workspace=Path("/a\udcffb")) as log:
        odd = log.folder.name
    assert {each.task for each in await store.listing()} == {task, odd}
    assert [each.task for each in await store.search("needle")] == [task]
    assert [each.task for each in await store.listing(workspace=Path("/a\udcffb"))] == [odd]
