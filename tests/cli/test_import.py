"""`tarmac import roo`, and back: on folders in Roo-Code's own format (tests/tasks/roo)."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac
from tests.e2e.scripts import done, script, turn

pytestmark = pytest.mark.slow

ROO = Path(__file__).parent.parent / "tasks" / "roo"
NATIVE = "0199a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"


def test_all_tasks_of_a_folder_are_taken_in_listed_searched_and_shown() -> None:
    """S3."""
    outcome = tarmac("import", "roo", str(ROO))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == "3 taken in, 0 here already, 0 failed"
    listed = {each["id"]: each for each in map(json.loads, tarmac("tasks", "--json").out.splitlines())}
    native = listed[NATIVE]
    assert (native["title"], native["cost"], native["workspace"]) == (
        "Make add() right — see the picture",
        0.0563,
        "/home-of/ada/calc",
    )
    assert listed["1739000000123"]["workspace"] == "/home-of/ada/old"
    assert tarmac("tasks", "search", "main.c").out.startswith("0199a1b2-ffff")
    assert "✓ Edited src/calc.py" in tarmac("tasks", "show", NATIVE).out


def test_taking_in_again_changes_nothing() -> None:
    tarmac("import", "roo", str(ROO / NATIVE))
    again = tarmac("import", "roo", str(ROO / NATIVE))
    assert (again.code, again.out) == (0, f"= {NATIVE}  was here already\n")


def test_there_and_back_again_the_files_are_the_same(tmp_path: Path) -> None:
    """S3."""
    tarmac("import", "roo", str(ROO / NATIVE))
    back = tarmac("tasks", "export", NATIVE, "--format", "roo", "--to", str(tmp_path))
    assert (back.code, back.out) == (0, f"{tmp_path / NATIVE}\n")
    for file in (ROO / NATIVE).iterdir():
        assert json.loads((tmp_path / NATIVE / file.name).read_text()) == json.loads(file.read_text())
    again = tarmac("tasks", "export", NATIVE, "--format", "roo", "--to", str(tmp_path))
    assert (again.code, "--force" in again.err) == (2, True)


@pytest.mark.shell
def test_a_task_of_roo_code_is_gone_on_with_here_and_taken_back(tmp_path: Path) -> None:
    """S3, S4: with all that was said before, and what was said since behind it."""
    tarmac("import", "roo", str(ROO / NATIVE), "--workspace", str(tmp_path))
    play = script(tmp_path, *(turn("said before") for _ in range(4)), done("It subtracts, too."))
    outcome = tarmac("resume", NATIVE, "and subtract", "--script", play)
    assert (outcome.code, "It subtracts, too." in outcome.out) == (0, True), outcome.err
    tarmac("tasks", "export", NATIVE, "--format", "roo", "--to", str(tmp_path))
    before, after = (
        json.loads((place / NATIVE / "api_conversation_history.json").read_text()) for place in (ROO, tmp_path)
    )
    assert after[: len(before)] == before and "and subtract" in json.dumps(after[len(before)])
    assert json.loads((tmp_path / NATIVE / "history_item.json").read_text())["status"] == "completed"


def test_salvage_of_garbage_fails_and_takes_nothing_in(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "api_conversation_history.json").write_bytes(bytes(range(256)))
    outcome = tarmac("import", "roo", str(tmp_path), "--salvage")
    assert outcome.code == 1 and "could be saved" in outcome.err
    assert tarmac("tasks", "--json").out == ""


def test_a_damaged_task_is_told_the_others_are_taken_in_and_salvage_takes_what_is_whole(tmp_path: Path) -> None:
    """S3: nothing is lost, nothing is touched."""
    shutil.copytree(ROO, tmp_path / "tasks")
    file = tmp_path / "tasks" / NATIVE / "api_conversation_history.json"
    file.write_bytes(file.read_bytes()[:-700])
    outcome = tarmac("import", "roo", str(tmp_path))
    assert (outcome.code, outcome.out.splitlines()[-1]) == (1, "2 taken in, 0 here already, 1 failed")
    assert f"{file} is damaged: " in outcome.err and "--salvage" in outcome.err
    saved = tarmac("import", "roo", str(tmp_path), "--salvage")
    assert (saved.code, saved.out.splitlines()[-1]) == (0, "1 taken in, 2 here already, 0 failed")
    assert "api_conversation_history.json is damaged" in saved.out
    assert "! in Roo-Code's files: api_conversation_history.json is damaged" in tarmac("tasks", "show", NATIVE).out


def test_a_task_that_could_not_be_written_leaves_nothing_behind(tiny_disk: Path, tmp_path: Path) -> None:
    shutil.copytree(ROO / NATIVE, tmp_path / "task1")
    big = json.loads((tmp_path / "task1" / "ui_messages.json").read_text())
    big[0]["text"] = "x" * 400_000
    (tmp_path / "task1" / "ui_messages.json").write_text(json.dumps(big))
    outcome = tarmac("import", "roo", str(tmp_path / "task1"), TARMAC_STATE_DIR=str(tiny_disk / "state"))
    assert outcome.code == 125 and "the disk is full" in outcome.err
    assert not (tiny_disk / "state" / "tasks" / "task1").exists()


def test_what_makes_no_sense_is_told() -> None:
    for words, hint in (([], "import roo DIR"), (["cline", "x"], "import roo"), (["roo"], "one folder")):
        outcome = tarmac("import", *words)
        assert (outcome.code, hint in outcome.err) == (2, True)
    nothing = tarmac("import", "roo", os.environ["HOME"])
    assert (nothing.code, "no task of Roo-Code" in nothing.err) == (2, True)
