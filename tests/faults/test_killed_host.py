"""Rows 1 and 5: kill −9 of the program. What was shown is known, what was left running is ended and named."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import TARMAC, read_until, running, tarmac
from tests.conftest import lacking
from tests.e2e.scripts import command, done, script, turn

from tarmac.terminals import Settings
from tarmac.terminals.process.processes import look
from tarmac.terminals.process.signals import end_survivors

KILLS = int(os.environ.get("TARMAC_KILLS", "4"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def _facts(task: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]


def _killed(play: str, project: Path, wanted: bytes) -> tuple[str, bytes]:
    """Run it until `wanted` was shown, then kill −9; the task and all that was shown."""
    with running("run", "x", "--script", play, "--cwd", str(project), "--auto", "all", "--json") as process:
        assert process.stdout
        seen = read_until(process.stdout.fileno(), wanted)
        process.send_signal(signal.SIGKILL)
        process.wait()
        seen += process.stdout.read()
    found = re.search(rb'"task": ?"(\w+)"', seen)
    assert found
    return found[1].decode(), seen


def test_what_ignores_a_hang_up_does_not_outlive_a_killed_host(project: Path, tmp_path: Path) -> None:
    """Row 1: nohup, setsid, a trap, and one without its environment."""
    line = (
        "(trap '' HUP; sleep 1001) & nohup sleep 1002 >/dev/null & setsid sleep 1003 & setsid env -i sleep 1004 & "
        "echo they-$((40 + 2)); sleep 1000"
    )
    play = script(tmp_path, turn("", command(line)), done())
    task, _ = _killed(play, project, b"they-42")
    outcome = tarmac("resume", task, "--script", _only_done(project), "--cwd", str(project), "--auto", "all", "--json")
    assert outcome.code == 0, outcome.err
    assert [pid for pid in _sleepers() if look(pid) is not None] == []  # by the watchdog, or by this start


async def test_what_a_dead_host_left_running_is_ended_and_named(tmp_path: Path) -> None:
    """Row 1: where nothing else ended it, the next start finds it by its cookie."""
    host = subprocess.Popen(["true"])  # noqa: ASYNC220
    host.wait()
    environ = {**os.environ, "TARMAC_TERMINAL": f"t1.{host.pid}.0a1b2c3d4e5f"}
    left = subprocess.Popen(["sleep", "1005"], env=environ, start_new_session=True)  # noqa: ASYNC220
    found = await end_survivors(host.pid, Settings(spool_directory=tmp_path))
    assert [(each.pid, each.command, each.ended) for each in found] == [(left.pid, "sleep 1005", True)]
    assert left.wait() == -signal.SIGTERM


def _only_done(folder: Path) -> str:
    return script(folder, *[done()] * 4)


def _sleepers() -> list[int]:
    said = subprocess.run(["pgrep", "-f", "^sleep 100[0-4]$"], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in said.split()]


def test_what_a_person_saw_before_the_kill_is_known_to_the_resumed_task(project: Path, tmp_path: Path) -> None:
    """Row 1: the output is on the disk before it is shown."""
    line = "for i in $(seq 100000); do echo line-$i; sleep 0.01; done"
    for attempt in range(KILLS):
        play = script(tmp_path, turn("", command(line)), done())
        task, seen = _killed(play, project, f"line-{1 + 7 * attempt}".encode())
        shown = re.findall(rb"line-(\d+)\\[rn]", seen)
        resumed = tarmac("resume", task, "--script", _only_done(project), "--cwd", str(project), "--auto", "all")
        assert resumed.code == 0, resumed.err
        (cut,) = (
            each for each in _facts(task) if each.get("kind") == "tool_finished" and each["outcome"] == "interrupted"
        )
        text = str(cut["content"])
        assert shown and f"line-{shown[-1].decode()}" in text, (attempt, shown[-3:], text)


def test_killed_before_the_words_were_recorded_a_resume_says_so(project: Path, tmp_path: Path) -> None:
    """Row 5: SIGKILL at the first, second … write to the disk that a thread waits for, all of them at the start."""
    if subprocess.run(["strace", "-V"], capture_output=True, check=False).returncode:
        lacking("strace is not installed")
    play = script(tmp_path, turn("", command("echo one")), done(), done(), done())
    for number in (6, 7, 5, 8, 4, 9):  # of one thread; which of them is in between depends on the index
        before = _tasks()
        inject = f"inject=fdatasync:signal=SIGKILL:when={number}"
        traced = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fdatasync", "-e", inject]
        argv = [*traced, *TARMAC, "run", "x", "--script", play, "--cwd", str(project), "--auto", "all"]
        subprocess.run(argv, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
        for task in _tasks() - before:
            outcome = tarmac("resume", task, "--script", play, "--cwd", str(project), "--auto", "all")
            if "before your message was recorded" in outcome.err:
                assert outcome.code == 2
                again = tarmac("resume", task, "x", "--script", play, "--cwd", str(project), "--auto", "all")
                assert (again.code, "It is done." in again.out) == (0, True), again
                return
            assert (outcome.code, "It is done." in outcome.out) == (0, True), (number, outcome)
    pytest.fail("it was never killed in between")


def _tasks() -> set[str]:
    return {json.loads(line)["id"] for line in tarmac("tasks", "--json").out.splitlines()}
