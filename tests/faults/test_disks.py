"""Rows 6, 8, 9 and 10: logs cut anywhere, a full workspace, a state folder that becomes read-only."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, call, done, results, turn

from tarmac.errors import StateUnavailable
from tarmac.events import TaskId
from tarmac.tasks.events import UserSaid
from tarmac.tasks.log import create_log, open_log
from tarmac.tasks.log.reader import LOG, read_log
from tarmac.tasks.store import TaskStore

CUTS = int(os.environ.get("TARMAC_CUTS", "200"))


async def test_a_log_that_a_power_cut_left_at_any_byte_opens_with_a_prefix_of_it(tmp_path: Path) -> None:
    """Row 6: 200 random places; what is there comes back in order, and it can be gone on with."""
    chance = random.Random("tarmac")
    folder = tmp_path / "t"
    async with create_log(folder, TaskId("t")) as log:
        for number in range(50):
            await log.append(UserSaid(at=1.0, text=f"{number}" * chance.randrange(1, 50)))
    whole, events = (folder / LOG).read_bytes(), read_log(folder).events
    for _ in range(CUTS):
        (folder / LOG).write_bytes(whole[: chance.randrange(len(whole) + 1)])
        async with open_log(folder) as log:
            assert log.past == events[: len(log.past)]
            await log.append(UserSaid(at=2.0, text="goes on"))
        assert read_log(folder).events[-1] == UserSaid(at=2.0, text="goes on")


async def test_an_index_that_a_power_cut_left_at_any_byte_is_made_anew(tmp_path: Path) -> None:
    """Row 6: it is made of the logs; no list fails because of it."""
    chance = random.Random("tarmac")
    store = TaskStore(tmp_path / "tasks")
    async with store.create(workspace=tmp_path) as log:
        await log.append(UserSaid(at=1.0, text="words to be found"))
    place = store.index.path
    whole = place.read_bytes()
    for _ in range(20):
        place.write_bytes(whole[: chance.randrange(len(whole))])
        for beside in place.parent.glob("index.db-*"):
            beside.unlink()
        assert [each.metadata.title for each in await TaskStore(tmp_path / "tasks").listing()] == ["words to be found"]


async def test_a_full_workspace_fails_the_tool_and_keeps_the_file(tiny_disk: Path, own_state: Path) -> None:
    """Rows 8 and 9: the error names the file; the old content stays; there is no storm of retries."""
    (tiny_disk / "a.txt").write_text("old\n")
    (tiny_disk / "filler").write_bytes(b"x" * (200 << 10))
    too_much = call("write_to_file", path="a.txt", content="new\n" * 50_000)
    async with a_task(tiny_disk, turn(too_much), done(), auto="all") as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    written = [each for each in results(seen) if each[0] == "write_to_file"]
    assert (ended.why, len(written), written[0][1]) == ("completed", 1, "failed")
    assert "a.txt" in written[0][2] and "the disk is full" in written[0][2]
    assert (tiny_disk / "a.txt").read_text() == "old\n"


async def test_a_state_folder_that_became_read_only_is_told(tiny_disk: Path, tmp_path: Path) -> None:
    """Row 10: nothing is opened or begun, and why is said; lists go on; with the disk writable again, so does all."""
    store = TaskStore(tiny_disk / "tasks")
    async with store.create(workspace=tmp_path) as log:
        await log.append(UserSaid(at=1.0, text="one"))
        task = TaskId(log.folder.name)
    _remount(tiny_disk, "ro")
    try:
        with pytest.raises(StateUnavailable, match="Read-only file system"):
            async with store.open(task):
                pass
        with pytest.raises(StateUnavailable):
            async with store.create(workspace=tmp_path):
                pass
        assert [each.metadata.title for each in await store.listing()] == ["one"]
    finally:
        _remount(tiny_disk, "rw")
    async with store.open(task) as log:
        await log.append(UserSaid(at=1.0, text="two"))
    assert len((await store.read(task)).events) == 3


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[Path]:
    """A real ext4 that becomes read-only at its first error, whoever has files open on it."""
    image, disk = tmp_path / "image", tmp_path / "failing"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(8 << 20)
    steps = (["mkfs.ext4", "-q", "-F", str(image)], ["mount", "-o", "loop,errors=remount-ro", str(image), str(disk)])
    if os.geteuid() != 0 or any(subprocess.run(each, check=False, capture_output=True).returncode for each in steps):
        pytest.skip("no right to mount an ext4, or no loop device")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _fail(disk: Path) -> None:
    """The kernel finds an error of the file system."""
    source = subprocess.run(
        ["findmnt", "-n", "-o", "SOURCE", str(disk)], check=True, capture_output=True, text=True
    ).stdout.strip()
    (Path("/sys/fs/ext4") / Path(source).name / "trigger_fs_error").write_text("1")


async def test_a_state_folder_that_becomes_read_only_under_a_task_is_told(failing_disk: Path, tmp_path: Path) -> None:
    """Row 10: the log is open; nothing is acknowledged any more, why is said, and lists go on."""
    store = TaskStore(failing_disk / "tasks")
    with pytest.raises(StateUnavailable, match="Read-only file system"):
        async with store.create(workspace=tmp_path) as log:
            await log.append(UserSaid(at=1.0, text="one"))
            _fail(failing_disk)
            await log.append(UserSaid(at=2.0, text="two"))
    (listed,) = await store.listing()
    assert listed.metadata.title == "one"
    facts = (await store.read(TaskId(log.folder.name))).events
    assert [each.text for each in facts if isinstance(each, UserSaid)] == ["one"]


def _remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)
