"""A log that is removed, replaced or changed under its writer: noticed before anything more is acknowledged."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.errors import StateUnavailable
from tarmac.events import TaskId
from tarmac.tasks.events import UserSaid
from tarmac.tasks.log import create_log
from tarmac.tasks.log.reader import LOG, read_log


def said(text: str) -> UserSaid:
    return UserSaid(at=1.0, text=text)


def _replace(folder: Path) -> None:
    copy = folder / "copy"
    shutil.copy2(folder / LOG, copy)
    copy.rename(folder / LOG)


def _cut(folder: Path) -> None:
    (folder / LOG).write_bytes(b"")


def _add(folder: Path) -> None:
    with (folder / LOG).open("ab") as file:
        file.write(b"a stranger's line\n")


FAULTS: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / LOG).unlink(), "was removed"),
    (shutil.rmtree, "was removed"),
    (lambda folder: shutil.rmtree(folder.parent), "was removed"),
    (lambda folder: folder.rename(folder.with_name("elsewhere")), "was removed"),
    (_replace, "was replaced"),
    (_cut, "was changed by another program"),
    (_add, "was changed by another program"),
]


@pytest.mark.parametrize(("fault", "why"), FAULTS)
async def test_nothing_is_acknowledged_into_a_file_that_is_not_the_log(
    tmp_path: Path, fault: Callable[[Path], object], why: str
) -> None:
    """S4: the next append fails and says why; so do all others, and closing it with what was only added."""
    folder = tmp_path / "tasks" / "t"
    folder.parent.mkdir()
    heard: list[int] = []
    with pytest.raises(StateUnavailable, match=why):
        async with create_log(folder, TaskId("t")) as log:
            log.subscribe(lambda seq, _: heard.append(seq))
            await log.append(said("one"))
            log.add(said("two"))
            fault(folder)
            for _ in range(2):
                with pytest.raises(StateUnavailable, match=why):
                    await log.append(said("three"))
    assert heard == [1]


async def test_a_log_that_is_put_back_is_opened_again_as_it_was(tmp_path: Path) -> None:
    """S4: nothing of what failed is in it."""
    folder = tmp_path / "t"
    with pytest.raises(StateUnavailable):
        async with create_log(folder, TaskId("t")) as log:
            await log.append(said("one"))
            folder.rename(tmp_path / "elsewhere")
            await log.append(said("two"))
    assert [each.text for each in read_log(tmp_path / "elsewhere").events if isinstance(each, UserSaid)] == ["one"]


async def test_content_beside_a_log_that_is_gone_is_an_error_for_a_person(tmp_path: Path) -> None:
    """S4: a picture, or a long prompt."""
    folder = tmp_path / "t"
    async with create_log(folder, TaskId("t")) as log:
        shutil.rmtree(folder)
        with pytest.raises(StateUnavailable, match="can't be written"):
            log.blobs.keep(b"a picture")
