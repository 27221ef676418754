"""Row 34, and the state folder: what is removed or moved under a running task is noticed, said, and never made anew."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PATIENCE, read_until, running
from tests.e2e.scripts import command, done, script, turn

WAIT = "echo ready-$((40 + 2)); while [ ! -e {go} ]; do sleep 0.05; done"


def _remove(folder: Path) -> None:
    """All of it at one moment: the task may just be adding a file to it."""
    aside = folder.rename(folder.with_name("aside"))
    shutil.rmtree(aside, ignore_errors=True)


GONE: dict[str, Callable[[Path], object]] = {
    "state": _remove,
    "state moved": lambda state: state.rename(state.with_name("elsewhere")),
    "tasks": lambda state: _remove(state / "tasks"),
    "log": lambda state: next((state / "tasks").glob("*/log.jsonl")).unlink(),
}


@pytest.mark.parametrize("what", GONE)
def test_nothing_is_acknowledged_after_the_state_is_gone(tmp_path: Path, own_state: Path, what: str) -> None:
    """S4: noticed with the next fact; the exit status is not 0."""
    project, go = tmp_path / "project", tmp_path / "go"
    project.mkdir()
    play = script(tmp_path, turn("", command(WAIT.format(go=go))), done())
    with running("run", "x", "--script", play, "--cwd", str(project), "--auto", "all", "--json") as process:
        assert process.stdout and process.stderr
        read_until(process.stdout.fileno(), b"ready-42")
        GONE[what](own_state / "state")
        go.touch()
        said, err = process.stdout.read().decode(), process.stderr.read().decode()
        assert process.wait(PATIENCE) == 1, said + err
    assert '"seq"' not in said.partition("\n")[2]
    assert "while the task was running" in said + err
    assert "Traceback" not in err


@pytest.mark.parametrize("moved", [True, False])
def test_a_workspace_that_is_gone_is_not_made_anew(tmp_path: Path, moved: bool) -> None:
    """Row 34: a file tool and a command fail with the reason; the program goes on to its end."""
    project, go = tmp_path / "project", tmp_path / "go"
    project.mkdir()
    play = script(
        tmp_path,
        turn("", command(WAIT.format(go=go))),
        turn("", ("write_to_file", {"path": "new/a.txt", "content": "a\n"})),
        turn("", command("echo here")),
        done(),
    )
    with running("run", "x", "--script", play, "--cwd", str(project), "--auto", "all", "--json") as process:
        assert process.stdout
        read_until(process.stdout.fileno(), b"ready-42")
        if moved:
            project.rename(tmp_path / "elsewhere")
        else:
            _remove(project)
        go.touch()
        said = process.stdout.read().decode()
        assert process.wait(PATIENCE) == 0
    finished = [each for line in said.splitlines()[1:] if (each := json.loads(line)).get("kind") == "tool_finished"]
    by_name = {each["name"]: str(each["content"]) for each in finished}
    assert "is gone: it was moved or deleted" in by_name["write_to_file"]
    assert not project.exists()


def test_a_run_whose_folder_is_gone_ends_at_a_signal(tmp_path: Path, own_state: Path) -> None:
    """S4: closing it does not wait for ever, either."""
    project = tmp_path / "project"
    project.mkdir()
    play = script(tmp_path, turn("", command("echo ready-$((40 + 2)); sleep 1000")), done())
    with running("run", "x", "--script", play, "--cwd", str(project), "--auto", "all", "--json") as process:
        assert process.stdout
        read_until(process.stdout.fileno(), b"ready-42")
        _remove(own_state / "state")
        _remove(project)
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(PATIENCE) != 0
