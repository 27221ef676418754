"""One writer, any number of readers, and a disk that fills up or a process that dies at the wrong moment."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from time import perf_counter

import pytest
from tests.tasks.samples import a_task, one_of_each

from tarmac.errors import BadRequest, StateUnavailable, TaskInUse, TaskNotFound
from tarmac.events import TaskId
from tarmac.tasks.events import RecordLost, TaskEvent, UserSaid
from tarmac.tasks.log import create_log, open_log
from tarmac.tasks.log.reader import BLOBS, FOLLOWERS, LOG, WakePipe, follow, read_log
from tarmac.tasks.log.writer import writer_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
TASK = TaskId("t")


def said(text: str) -> UserSaid:
    return UserSaid(at=1.0, text=text)


async def made(folder: Path, *events: TaskEvent) -> Path:
    async with create_log(folder, TASK) as log:
        if events:
            await log.append(*events)
    return folder


async def test_what_was_appended_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    """S3, S4."""
    events = one_of_each()
    await made(tmp_path / "t", *events[:5])
    async with open_log(tmp_path / "t") as log:
        assert (log.past, log.seq, log.damage, log.torn) == (events[:5], 5, (), None)
        assert await log.append(*events[5:]) == len(events)
    reading = read_log(tmp_path / "t")
    assert (reading.events, reading.damage, reading.torn) == (events, (), None)
    assert reading.header is not None and (reading.header.task, reading.header.format) == ("t", 1)


async def test_appends_at_the_same_time_share_a_sync_and_keep_their_order(tmp_path: Path) -> None:
    """S3: a group commit really groups."""
    async with create_log(tmp_path / "t", TASK) as log:
        numbers = await asyncio.gather(*(log.append(said(str(each))) for each in range(200)))
        assert numbers == list(range(1, 201))
        assert log.syncs == 2  # the first is a group of its own; all others come while it is on its way to the disk


async def test_what_is_added_goes_with_the_next_group_or_soon(tmp_path: Path) -> None:
    async with create_log(tmp_path / "t", TASK) as log:
        log.add(said("one"))
        assert await log.append(said("two")) == 2
        assert log.syncs == 1
        told: asyncio.Queue[int] = asyncio.Queue()
        log.subscribe(lambda seq, _: told.put_nowait(seq))
        log.add(said("three"))
        async with asyncio.timeout(5):
            assert await told.get() == 3
        log.add(said("four"))
        await log.commit()
        log.add(said("five"))  # and with closing
    assert [each.text for each in read_log(tmp_path / "t").events if isinstance(each, UserSaid)] == [
        "one",
        "two",
        "three",
        "four",
        "five",
    ]


async def test_listeners_are_told_in_order_and_before_append_returns(tmp_path: Path) -> None:
    """Part of S18: the log's own events; those of a running task come with the loop."""
    told: list[tuple[int, TaskEvent]] = []
    async with create_log(tmp_path / "t", TASK) as log:
        unsubscribe = log.subscribe(lambda seq, event: told.append((seq, event)))
        await asyncio.gather(*(log.append(said(str(each))) for each in range(20)))
        assert told == [(each + 1, said(str(each))) for each in range(20)]
        unsubscribe()
        await log.append(said("unheard"))
        assert len(told) == 20


async def test_a_listener_that_fails_harms_neither_the_log_nor_others(tmp_path: Path) -> None:
    trouble: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: trouble.append(context["exception"]))

    def fail(seq: int, event: TaskEvent) -> None:
        raise ZeroDivisionError

    told: list[int] = []
    async with create_log(tmp_path / "t", TASK) as log:
        log.subscribe(fail)
        log.subscribe(lambda seq, _: told.append(seq))
        assert await log.append(said("a"), said("b")) == 2
    assert (told, [type(each) for each in trouble]) == ([1, 2], [ZeroDivisionError] * 2)


async def test_one_who_is_cancelled_while_waiting_does_not_take_the_fact_back(tmp_path: Path) -> None:
    async with create_log(tmp_path / "t", TASK) as log:
        waiting = asyncio.create_task(log.append(said("cancelled")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await log.append(said("after")) == 2
    assert read_log(tmp_path / "t").events == [said("cancelled"), said("after")]


async def test_a_closed_log_takes_nothing_and_may_be_closed_again(tmp_path: Path) -> None:
    async with create_log(tmp_path / "t", TASK) as log:
        await log.aclose()
        with pytest.raises(StateUnavailable, match="closed"):
            await log.append(said("late"))
        with pytest.raises(StateUnavailable, match="closed"):
            log.add(said("late"))


async def test_calls_that_make_no_sense_are_errors(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t")
    with pytest.raises(BadRequest, match="there already"):
        await made(folder)
    with pytest.raises(TaskNotFound):
        async with open_log(tmp_path / "none"):
            pass
    with pytest.raises(TaskNotFound):
        read_log(tmp_path / "none")
    async with open_log(folder) as log:
        with pytest.raises(BadRequest):
            await log.append()


# A torn or damaged file


async def test_a_torn_tail_is_cut_off_told_and_kept(tmp_path: Path) -> None:
    """S4."""
    folder = await made(tmp_path / "t", said("one"), said("two"))
    path = folder / LOG
    whole = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"seq":3,"kind":"user_said","at":1.0,"te')
    async with open_log(folder) as log:
        assert log.torn is not None
        assert (log.torn.offset, log.torn.size, log.torn.first) == (whole, 40, 3)
        assert await log.append(said("three")) == 3
    assert read_log(folder).events == [said("one"), said("two"), said("three")]
    (kept,) = folder.glob("torn-*")
    assert kept.read_bytes() == b'{"seq":3,"kind":"user_said","at":1.0,"te'


async def test_a_log_without_even_a_whole_header_begins_anew(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t")
    with (folder / LOG).open("r+b") as file:
        file.truncate(10)
    async with open_log(folder) as log:
        assert (log.past, log.torn is not None) == ([], True)
        await log.append(said("one"))
    reading = read_log(folder)
    assert (reading.events, reading.header is not None and reading.header.task) == ([said("one")], "t")


async def test_a_damaged_record_in_the_middle_is_told_and_the_task_goes_on(tmp_path: Path) -> None:
    """S4: with its place; nothing is skipped in silence, and nothing needs a person with an editor."""
    folder = await made(tmp_path / "t", said("one"), said("two"), said("three"))
    path = folder / LOG
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"two"', b'"tWo"'))
    async with open_log(folder) as log:
        (damage,) = log.damage
        assert (damage.first, damage.lost, damage.why) == (2, 1, "the checksum is wrong")
        assert data[damage.offset : damage.offset + damage.size].startswith(b'{"seq":2,')
        assert log.past == [said("one"), RecordLost(at=0.0, seq=2, why="the checksum is wrong"), said("three")]
        assert await log.append(said("four")) == 4
    assert path.read_bytes().startswith(data.replace(b'"two"', b'"tWo"')), "a damaged place is left as it is"


async def test_a_damaged_blob_is_told_in_its_text_and_written_anew_when_it_comes_again(tmp_path: Path) -> None:
    large = said("start " + "x" * 50_000)
    folder = await made(tmp_path / "t", large)
    (blob,) = (folder / BLOBS).iterdir()
    blob.write_bytes(b"something else")
    (event,) = read_log(folder).events
    assert isinstance(event, UserSaid) and "is lost" in event.text
    async with open_log(folder) as log:
        await log.append(large)
    assert read_log(folder).events == [large, large]


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t", said("x" * 50_000))
    (blob,) = (folder / BLOBS).iterdir()
    assert [oct(each.stat().st_mode & 0o777) for each in (folder, folder / LOG, folder / BLOBS, blob)] == [
        "0o700",
        "0o600",
        "0o700",
        "0o600",
    ]


# A full disk


async def test_a_full_disk_is_an_error_that_says_so_and_it_goes_on_when_there_is_room(tiny_disk: Path) -> None:
    """S3: nothing torn, nothing acknowledged is lost, what was only added keeps its place."""
    folder = tiny_disk / "t"
    events: list[TaskEvent] = [said("first")]
    async with create_log(folder, TASK) as log:
        await log.append(*events)
        filler = tiny_disk / "filler"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        log.add(said("added"))
        for size in (5_000, 100_000):  # in the log; in a blob
            with pytest.raises(StateUnavailable, match="the disk is full") as caught:
                await log.append(said("y" * size))
            assert "make room" in caught.value.hint
            assert read_log(folder).events == events
            assert read_log(folder).torn is None
        filler.unlink()
        events += [said("added"), said("z" * 10_000)]
        assert await log.append(events[-1]) == 3
    reading = read_log(folder)
    assert (reading.events, reading.damage, reading.torn) == (events, (), None)


async def test_no_task_is_begun_on_a_full_disk_and_nothing_is_left_of_it(tiny_disk: Path) -> None:
    with pytest.raises(OSError), (tiny_disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    with pytest.raises(StateUnavailable, match="the disk is full"):
        await made(tiny_disk / "t")
    assert [each.name for each in tiny_disk.iterdir()] == ["filler"]


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from tarmac.errors import StateUnavailable
from tarmac.events import TaskId
from tarmac.tasks.events import UserSaid
from tarmac.tasks.log import create_log, open_log

async def main(folder):
    async with create_log(folder, TaskId("t")) as log:
        await log.append(UserSaid(at=1.0, text="kept"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.size + 50, resource.RLIM_INFINITY))
        for text in ("refused", "refused again"):
            try:
                await log.append(UserSaid(at=1.0, text=text))
            except StateUnavailable as error:
                print(error.what.rpartition(": ")[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        try:
            await log.append(UserSaid(at=1.0, text="still refused"))
        except StateUnavailable:
            print("broken until it is opened again")
    async with open_log(folder) as log:
        print(log.torn, await log.append(UserSaid(at=1.0, text="goes on")))

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_after_another_error_of_the_disk_nothing_is_taken_until_it_was_read_again(tmp_path: Path) -> None:
    """S3: whoever was told nothing of an error may rely on what is there; here the system forbids a longer file."""
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", LIMITED, str(tmp_path / "t")], capture_output=True, text=True, timeout=30
    )
    told = ["File too large", "File too large", "broken until it is opened again", "None 2"]
    assert (ran.stdout.splitlines(), ran.stderr) == (told, "")
    assert read_log(tmp_path / "t").events == [said("kept"), said("goes on")]


# Other processes


HELD = """
import asyncio, os, signal, sys
from pathlib import Path
from tarmac.tasks.log import open_log

async def main():
    async with open_log(Path(sys.argv[1])):
        read, write = os.pipe()
        if os.fork() == 0:  # as a process is between fork and exec: with all that its parent has open
            os.close(write), os.close(1)
            os.read(read, 1)  # until the parent is gone, and a moment more
            import time; time.sleep(0.3)
            os._exit(0)
        print("ready", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_log_whose_writer_was_killed_can_be_opened_though_its_last_child_still_has_it(tmp_path: Path) -> None:
    """S4: kill −9 in the middle of starting a process."""
    async with create_log(tmp_path / "t", TaskId("t")) as log:
        await log.append(UserSaid(at=1.0, text="x"))
    held = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HELD, str(tmp_path / "t"), stdout=asyncio.subprocess.PIPE
    )
    assert held.stdout
    assert (await held.stdout.readline()) == b"ready\n"
    assert await asyncio.wait_for(held.wait(), 10) == -signal.SIGKILL
    async with asyncio.timeout(10), open_log(tmp_path / "t") as log:
        assert log.seq == 1


async def test_a_second_writer_is_refused_and_told_who_is_the_first(tmp_path: Path) -> None:
    """S4: also another process, which may follow meanwhile."""
    folder = tmp_path / "t"
    async with create_log(folder, TASK) as log:
        with pytest.raises(TaskInUse, match="this process") as caught:
            async with open_log(folder):
                pass
        assert caught.value.pid == os.getpid() == writer_of(folder)
        await log.append(said("seen"))
        script = (
            "import asyncio, sys; from pathlib import Path; from tarmac.tasks.log import open_log;"
            "from tarmac.tasks.log.reader import read_log; from tarmac.errors import TaskInUse\n"
            "async def main():\n"
            "    try:\n"
            "        async with open_log(Path(sys.argv[1])): pass\n"
            "    except TaskInUse as error: print(error.pid, len(read_log(Path(sys.argv[1])).events))\n"
            "asyncio.run(main())"
        )
        ran = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=30
        )
        assert (ran.stdout.split(), ran.stderr) == ([str(os.getpid()), "1"], "")
    async with open_log(folder) as log:
        assert log.seq == 1
    assert writer_of(folder) is None


@asynccontextmanager
async def writers() -> AsyncIterator["asyncio.subprocess.Process"]:
    """The program that forks writers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.tasks.writers",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        assert process.stdin
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 10)


async def line_of(process: "asyncio.subprocess.Process") -> list[str]:
    assert process.stdout
    async with asyncio.timeout(20):
        return (await process.stdout.readline()).decode().split()


async def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """S4: 200 times at random moments; three callers, texts with and without blobs, each log killed 25 times."""
    dice = random.Random(20261115)
    async with writers() as process:
        for number in range(8):
            folder = tmp_path / str(number)
            acknowledged: dict[int, tuple[str, int]] = {}
            for _ in range(25):
                await _killed(process, folder, acknowledged, dice)
                if not (folder / LOG).exists():  # before there was a log: it may be begun again
                    assert acknowledged == {}
                    shutil.rmtree(folder, ignore_errors=True)
            reading = read_log(folder)
            assert reading.damage == ()
            assert len(acknowledged) > 25
            for seq, (text, size) in acknowledged.items():
                event = reading.events[seq - 1]
                assert isinstance(event, UserSaid)
                assert (event.text.rstrip("x")[:40], len(event.text)) == (text, size)
            async with open_log(folder) as log:
                assert await log.append(said("still there")) == len(reading.events) + 1


async def _killed(
    process: "asyncio.subprocess.Process", folder: Path, acknowledged: dict[int, tuple[str, int]], dice: random.Random
) -> None:
    """Let a writer write for a moment, kill it, and note what it was told is durable."""
    assert process.stdin
    process.stdin.write(f"{folder}\n".encode())
    _, pid = await line_of(process)
    for _ in range(dice.randrange(0, 6)):
        seq, text, size = await line_of(process)
        acknowledged[int(seq)] = (text, int(size))
    await asyncio.sleep(dice.random() * 0.004)  # the moment is what is tested: there is no event to wait for
    os.kill(int(pid), signal.SIGKILL)
    while (line := await line_of(process)) != ["gone"]:
        acknowledged[int(line[0])] = (line[1], int(line[2]))


async def test_a_follower_in_this_process_sees_everything_in_order_and_without_polling(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t", said("0"))
    found: list[tuple[int, TaskEvent]] = []

    async def watch() -> None:
        async with aclosing(follow(folder, after=1, patience=1000)) as events:  # patience: as good as none
            async for seq, event in events:
                found.append((seq, event))
                if len(found) == 300:
                    return

    async with open_log(folder) as log, asyncio.timeout(20):
        watching = asyncio.create_task(watch())
        for start in range(1, 301, 3):
            await asyncio.gather(*(log.append(said(str(start + each))) for each in range(3)))
        await watching
    assert found == [(each + 1, said(str(each))) for each in range(1, 301)]
    assert list((folder / FOLLOWERS).iterdir()) == []


async def test_a_follower_of_another_process_is_woken_by_it(tmp_path: Path) -> None:
    """S4: one writes, another looks on; what it sees is what the writer was told is durable, and more to come."""
    folder = await made(tmp_path / "t", said("0"))
    async with writers() as process, aclosing(follow(folder, patience=1000)) as events:
        assert process.stdin
        assert await anext(events) == (1, said("0"))
        process.stdin.write(f"{folder}\n".encode())
        _, pid = await line_of(process)
        seen: dict[int, TaskEvent] = {}
        async with asyncio.timeout(20):
            while len(seen) < 60:
                seq, event = await anext(events)
                seen[seq] = event
        os.kill(int(pid), signal.SIGKILL)
        while await line_of(process) != ["gone"]:
            pass
    assert list(seen) == list(range(2, 62))
    assert list(seen.values()) == read_log(folder).events[1:61]


async def test_a_dead_followers_pipe_is_removed_by_the_writer(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t")
    (folder / FOLLOWERS).mkdir()
    os.mkfifo(folder / FOLLOWERS / "dead")
    async with open_log(folder) as log:
        await log.append(said("one"))
    assert list((folder / FOLLOWERS).iterdir()) == []


async def test_where_no_pipe_can_be_made_a_follower_looks_now_and_then(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t")
    (folder / FOLLOWERS).write_text("in the way")
    bell = WakePipe(folder)
    bell.open()
    assert bell.polls
    async with open_log(folder) as log, aclosing(follow(folder, patience=0.01)) as events, asyncio.timeout(10):
        coming = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await log.append(said("one"))
        assert await coming == (1, said("one"))


async def test_a_log_that_is_cut_under_its_follower_is_an_error(tmp_path: Path) -> None:
    folder = await made(tmp_path / "t", said("one"), said("two"))
    async with aclosing(follow(folder, patience=1000)) as events, asyncio.timeout(10):
        assert [await anext(events), await anext(events)] == [(1, said("one")), (2, said("two"))]
        with (folder / LOG).open("r+b") as file:
            file.truncate(150)
        with pytest.raises(StateUnavailable, match="cut while it was followed"):
            await anext(events)


# Speed; the curve is in benchmarks/task_log.py


async def test_a_task_of_100_000_events_opens_fast(tmp_path: Path) -> None:
    """S4: the goal is a second; a shared machine needs more at times, so this only catches what is quadratic."""
    events = list(a_task(14_286))[:100_000]
    folder = await made(tmp_path / "t", *events)
    start = perf_counter()
    async with open_log(folder) as log:
        assert len(log.past) == 100_000
    assert perf_counter() - start < 10
    assert log.past == events
