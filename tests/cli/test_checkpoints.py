"""`tarmac tasks checkpoints|diff|restore`: what a task changed is shown, and taken back, from the shell."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.tasks.engine import a_task, call, done, stored, turn
from tests.tasks.test_checkpoints import files
from tests.tasks.test_checkpoints_snapshot import repository

from tarmac.cli.tasks import main
from tarmac.errors import BadRequest
from tarmac.tasks.log.reader import read_log
from tarmac.tasks.store import TaskStore
from tarmac.tasks.views.model_history import model_messages

pytestmark = pytest.mark.shell


def a_finished_task(work: Path) -> str:
    return asyncio.run(_finish(work))


async def _finish(work: Path) -> str:
    turns = (
        turn(call("write_to_file", path="a.txt", content="two\n")),
        turn(call("execute_command", command="echo made > made.txt; touch empty.txt")),
        done(),
    )
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        await stored(task)
        return task.id


def test_the_diff_and_the_points_are_shown_and_files_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S14: diff and restore of files alone, without an id of a point: to before the first change."""
    work = repository(tmp_path / "work")
    id = a_finished_task(work)
    assert main(["diff", id]) == 0
    shown = capsys.readouterr().out
    assert "M a.txt  +1 −1" in shown and "A made.txt  +1 −0" in shown and "-one" in shown and "+two" in shown
    assert "A empty.txt  +0 −0\n  an empty file\n" in shown
    assert main(["checkpoints", id, "--json"]) == 0
    points = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["said"] for each in points] == [True, False, False]
    with pytest.raises(BadRequest, match="nobody can confirm it here"):
        main(["restore", id])
    assert main(["restore", id, "--to", str(points[2]["to"]), "--yes"]) == 0
    assert files(work) == {"a.txt": "two\n"}
    assert main(["restore", id, "--yes", "--json"]) == 0
    assert files(work) == {"a.txt": "one\n"}
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(Path(each["path"]).name, each["fate"]) for each in last["files"]] == [
        ("a.txt", "restored"),
        ("empty.txt", "unchanged"),
        ("made.txt", "unchanged"),
    ]


def test_the_conversation_alone_and_what_makes_no_sense(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S14: the conversation is rewound, files stay; wrong words are told what is right."""
    work = repository(tmp_path / "work")
    id = a_finished_task(work)
    before = files(work)
    folder = TaskStore(Path(os.environ["TARMAC_STATE_DIR"]) / "tasks").path(id)
    facts = len(read_log(folder).events)
    with pytest.raises(BadRequest, match="exclude each other"):
        main(["restore", id, "--files", "--both", "--yes"])
    with pytest.raises(BadRequest, match="77 is not a checkpoint"):
        main(["restore", id, "--to", "77", "--yes"])
    assert main(["restore", id, "--conversation", "--yes"]) == 0
    assert capsys.readouterr().out == "the conversation was rewound\n"
    events = read_log(folder).events
    assert files(work) == before and len(events) > facts
    assert [each.role for each in model_messages(events)] == ["user"]


def test_files_of_others_are_left_and_the_status_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S14: a file that somebody else changed since is told and left; --force restores it."""
    work = repository(tmp_path / "work")
    id = a_finished_task(work)
    (work / "a.txt").write_text("by hand\n")
    assert main(["restore", id, "--yes"]) == 1
    assert "left: somebody else has changed it since" in capsys.readouterr().out
    assert files(work) == {"a.txt": "by hand\n"}
    assert main(["restore", id, "--yes", "--force"]) == 0
    assert files(work) == {"a.txt": "one\n"}
