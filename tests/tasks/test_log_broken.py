"""Told to break the log: cancelled in the middle, impossible numbers, holes, strangers in its place."""

import asyncio
import os
import sqlite3
import sys
import traceback
from pathlib import Path

import pytest

from tarmac.errors import StateUnavailable
from tarmac.events import TaskId
from tarmac.tasks.checkup import look_at
from tarmac.tasks.events import RecordLost, TaskEvent, UserSaid
from tarmac.tasks.log import create_log, open_log
from tarmac.tasks.log.disk import Blobs
from tarmac.tasks.log.reader import BLOBS, LOG, read_log
from tarmac.tasks.log.records import encode, frame
from tarmac.tasks.store import Index, TaskStore

pytestmark = pytest.mark.slow

TASK = TaskId("t")


def said(text: str) -> UserSaid:
    return UserSaid(at=1.0, text=text)


async def made(folder: Path, *events: TaskEvent) -> Path:
    async with create_log(folder, TASK) as log:
        await log.append(*events)
    return folder


async def opens(folder: Path) -> int:
    async with open_log(folder) as log:
        return log.seq


# Cancelled


async def test_one_who_is_cancelled_while_a_log_is_recovered_waits_for_its_thread(tmp_path: Path) -> None:
    """S4: the thread went on with the number of a file that was closed, and would have cut whatever got that number."""
    folder = await made(tmp_path / "t", *(said("x" * 2000) for _ in range(3000)))
    for _ in range(10):
        with (folder / LOG).open("ab") as file:
            file.write(b"torn")
        opening = asyncio.create_task(opens(folder))
        while not at_work() and not opening.done():  # noqa: ASYNC110 (where a thread is, no event tells)
            await asyncio.sleep(0)
        if opening.cancel():
            with pytest.raises(asyncio.CancelledError):
                await opening
        assert not at_work()
        assert await opens(folder) == 3000


def at_work() -> bool:
    """Whether a thread recovers a log."""
    stacks = (traceback.extract_stack(frame) for frame in sys._current_frames().values())
    return any(each.name == "recover" for stack in stacks for each in stack)


async def test_one_who_is_cancelled_while_a_log_is_made_does_not_keep_it_locked(tmp_path: Path) -> None:
    folder = tmp_path / "t"

    async def creates() -> None:
        async with create_log(folder, TASK):
            pass

    for number in range(20):
        folder = tmp_path / str(number)
        creating = asyncio.create_task(creates())
        for _ in range(number % 4):
            await asyncio.sleep(0)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
        if (folder / LOG).exists():
            async with asyncio.timeout(5):
                assert await opens(folder) == 0


# What stands in the file


async def test_a_record_with_an_impossible_number_is_junk_not_a_gap_of_as_many(tmp_path: Path) -> None:
    """S4: a whole line of another log, or one made by hand; each missing record was an object in memory."""
    folder = await made(tmp_path / "t", said("one"))
    with (folder / LOG).open("ab") as file:
        file.write(frame(10**17, encode(said("far"))[0]))
        file.write(frame(2, encode(said("two"))[0]))
    reading = read_log(folder)
    assert reading.events == [said("one"), said("two")]
    assert [(each.first, each.lost, each.why) for each in reading.damage] == [
        (2, 0, "record 100000000000000000 can't be here")
    ]
    with (folder / LOG).open("ab") as file:
        file.write(frame(5, encode(said("five"))[0]))
    lost = [RecordLost(at=0.0, seq=seq, why="nothing is there") for seq in (3, 4)]
    assert read_log(folder).events == [said("one"), said("two"), *lost, said("five")]


async def test_a_file_that_has_no_record_at_all_is_left_as_it_is(tmp_path: Path) -> None:
    """S4: of another version, encrypted, or something else: it was emptied, and begun anew."""
    folder = await made(tmp_path / "t", said("one"))
    stranger = (folder / LOG).read_bytes().replace(b"\n", b"\r\n") * 50
    (folder / LOG).write_bytes(stranger)
    with pytest.raises(StateUnavailable, match="no line of it is a record") as caught:
        await opens(folder)
    assert "left as it is" in caught.value.hint
    assert (folder / LOG).read_bytes() == stranger
    assert not list(folder.glob("torn-*"))


async def test_a_log_of_a_newer_format_is_not_opened_and_left_as_it_is(tmp_path: Path) -> None:
    """S4: with the hint, which was lost on the way."""
    folder = await made(tmp_path / "t", said("one"))
    newer = frame(0, b'{"kind":"header","format":2,"task":"t","at":1.0}') + b"whatever it has\n" * 1000
    (folder / LOG).write_bytes(newer)
    with pytest.raises(StateUnavailable, match="this log has format 2") as caught:
        await opens(folder)
    assert caught.value.hint == "use a newer Tarmac"
    assert (folder / LOG).read_bytes() == newer


async def test_a_page_of_nulls_at_the_end_is_cut_off_and_kept(tmp_path: Path) -> None:
    """S4: what a power cut leaves of a file that grew, on many file systems."""
    folder = await made(tmp_path / "t", said("one"), said("two"))
    whole = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(whole + bytes(4096))
    async with open_log(folder) as log:
        assert (log.past, log.torn and log.torn.size) == ([said("one"), said("two")], 4096)
        assert await log.append(said("three")) == 3
    (kept,) = folder.glob("torn-*")
    assert kept.read_bytes() == bytes(4096)
    half = whole[:-30] + bytes(30 + 4096)  # a page of the last line, too
    (folder / LOG).write_bytes(half)
    assert read_log(folder).events == [said("one")]


async def test_a_hole_of_gigabytes_is_an_error_that_says_where_not_the_end_of_memory(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t", said("one"))
    whole = (folder / LOG).stat().st_size
    with (folder / LOG).open("r+b") as file:
        file.truncate(8 << 30)
    with pytest.raises(StateUnavailable, match="are not records") as caught:
        await opens(folder)
    assert f"truncate -s {whole} " in caught.value.hint
    assert "are not records" in look_at(folder).trouble
    os.truncate(folder / LOG, whole)
    assert await opens(folder) == 1


async def test_a_pipe_in_the_place_of_a_log_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t", said("one"))
    (folder / LOG).unlink()
    os.mkfifo(folder / LOG)
    async with asyncio.timeout(5):
        for look in (lambda: asyncio.to_thread(read_log, folder), lambda: opens(folder)):
            with pytest.raises(StateUnavailable):
                await look()


async def test_any_text_comes_back_as_it_was(tmp_path: Path) -> None:
    """S3: lone surrogates, NULs, newlines of all kinds, marks of our own records; short, and long enough for a blob."""
    odd = '\udcff\ud800 \0 \r\n\u2028 ,"crc":"00000000"}\n{"seq":2,"kind":"user_said" {"$text": "x"} \U0010ffff'
    events = [said(odd), said(odd * 2000), said("plain")]
    folder = await made(tmp_path / "t", *events)
    assert read_log(folder).events == events


# Blobs


async def test_the_folder_of_blobs_is_on_the_disk_before_a_record_names_what_is_in_it(tmp_path: Path) -> None:
    """S3: its own name is synced, too, once."""
    blobs = Blobs(tmp_path / BLOBS)
    assert blobs.keep_all({}) == 0
    one, two = blobs.keep(b"one"), blobs.keep(b"two")
    assert (blobs.read(one.sha256), blobs.read(two.sha256)) == (b"one", b"two")
    (tmp_path / BLOBS / two.sha256).unlink()
    assert blobs.read(two.sha256) is None
    fresh = Blobs(tmp_path / "other" / BLOBS)
    (tmp_path / "other").mkdir()
    name = one.sha256
    assert (fresh.keep_all({name: b"one"}), fresh.keep_all({name: b"one"})) == (3, 1)


# The index


@pytest.fixture
async def store(tmp_path: Path) -> TaskStore:
    store = TaskStore(tmp_path / "tasks")
    async with store.create(workspace=tmp_path) as log:
        await log.append(said("hello there"))
    return store


async def test_tasks_are_listed_though_their_index_can_not_be_used(store: TaskStore) -> None:
    """S3: no index can hide a task that exists: one in the way, or one that another process holds."""
    (before,) = await store.listing()
    store.index.destroy()
    store.index.path.mkdir()
    assert await store.listing() == [before]
    with pytest.raises(StateUnavailable):
        await store.search("hello")
    with pytest.raises(StateUnavailable, match="index"):
        await store.rebuild()
    store.index.path.rmdir()
    assert await store.listing() == [before]
    assert [each.excerpt for each in await store.search("hello")] == ["hello there"]


async def test_tasks_are_listed_on_a_full_disk(tiny_disk: Path) -> None:
    store = TaskStore(tiny_disk / "tasks")
    async with store.create(workspace=tiny_disk) as log:
        await log.append(said("hello there"))
    (before,) = await store.listing()
    store.index.destroy()
    with pytest.raises(OSError), (tiny_disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    assert await store.listing() == [before]
    (tiny_disk / "filler").unlink()
    assert await store.listing() == [before]


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE tasks (something TEXT)")
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert Index(path).places() == {}
    assert Index(path).next_number() == 1
