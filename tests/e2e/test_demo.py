"""`tarmac demo`, in a pipe and before a person; and `make run`, which plays it."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.cli.conftest import on_a_screen, tarmac

pytestmark = pytest.mark.shell
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def own_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """So that one sees what is left."""
    place = tmp_path / "temp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def test_without_a_terminal_it_plays_to_its_end_and_says_what_is_scripted_and_who_approved(own_temp: Path) -> None:
    """A8: the whole of it: a failing test, an edit, passing tests, a prompt, one approval, a result."""
    outcome = tarmac("demo", "--yes")
    assert (outcome.code, outcome.err) == (0, "")
    assert "The model is a script" in outcome.out.splitlines()[0] and "\x1b" not in outcome.out
    wanted = [
        "✗ Ran `python3 -m unittest` · exit code 1",
        "✓ Edited durations.py",
        "✓ Ran `python3 -m unittest` · exit code 0",
        "? Run this command?",
        "    rm -r old-builds && mv -i NOTES-1.0.1.md NOTES.md",
        "  → allowed by tarmac demo --yes",
        "waits for input: mv: ",
        "✓ Sent `y` to t1",
        "✓ Done",
        "The tests of the project were run once more, and pass.",
    ]
    at = 0
    for each in wanted:
        at = outcome.out.find(each, at)
        assert at >= 0, f"{each!r} is missing, or not in its place:\n{outcome.out}"
    assert outcome.out.count("\n▌ ? ") == 1
    assert list(own_temp.iterdir()) == []
    assert tarmac("tasks").out.startswith("no tasks yet")


def test_with_nobody_to_ask_it_wants_to_be_told_so(own_temp: Path) -> None:
    outcome = tarmac("demo")
    assert (outcome.code, "--yes" in outcome.err, outcome.out) == (2, True, "")


def test_a_person_is_asked_once_and_their_yes_counts(own_temp: Path) -> None:
    with on_a_screen("demo", "--fast", "--keep") as screen:
        screen.until(b"or say why not")
        screen.type(b"y")
        shown = screen.rest()
        assert screen.process.returncode == 0
    assert b"WARNING" not in shown
    assert b"tarmac resume" not in shown  # there is no such task: `tarmac demo` keeps none
    assert b"plays it again" in shown
    project = next(own_temp.glob("tarmac-demo-*")) / "durations"
    assert not (project / "old-builds").exists() and not (project / "NOTES-1.0.1.md").exists()
    assert (project / "NOTES.md").read_text().startswith("# 1.0.1")


def test_a_no_is_a_no(own_temp: Path) -> None:
    with on_a_screen("demo", "--fast", "--keep") as screen:
        screen.until(b"or say why not")
        screen.type(b"n")
        screen.rest()
    project = next(own_temp.glob("tarmac-demo-*")) / "durations"
    assert (project / "old-builds").exists() and (project / "NOTES-1.0.1.md").exists()


def test_control_c_ends_it_without_calling_that_a_fault(own_temp: Path) -> None:
    with on_a_screen("demo", "--yes") as screen:
        screen.until(b"Running `python3 -m unittest`")
        screen.type(b"\x03")
        shown = screen.rest()
        assert screen.process.returncode == 130
    assert b"Something went wrong" not in shown
    assert list(own_temp.glob("tarmac-demo-*")) == []


def test_as_json_it_is_the_stream_of_a_task() -> None:
    said = [json.loads(line) for line in tarmac("demo", "--json").out.splitlines()]
    assert (said[0]["kind"], said[-1]["end"]) == ("task_created", "completed")
    answered, accepted = (each for each in said if each.get("kind") == "question_answered")
    assert answered["by"] == accepted["by"] == "auto: tarmac demo --yes"


def test_make_run_plays_it() -> None:
    """The two commands of a fresh machine: what `make run` does is in the Makefile, and is the demonstration."""
    rule = re.search(r"^run:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert rule and "tarmac demo --yes" in rule[1]
    made = subprocess.run(
        ["make", "-n", "run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )
    assert "tarmac demo" in made.stdout


def test_the_project_fails_its_test_before_and_is_in_the_package() -> None:
    import tarmac.cli.demo

    project = tarmac.cli.demo.HERE / "project"
    done = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"], cwd=project, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, "failures=1" in done.stderr) == (1, True)
