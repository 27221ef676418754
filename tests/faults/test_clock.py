"""Row 26: the wall clock jumps while a task runs. It is set for that program alone, as its Python sees it."""

import json
from pathlib import Path

from tests.cli.conftest import tarmac
from tests.e2e.scripts import command, done, script, turn

# Each call of time.time() is an hour later or two hours earlier than the one before, more or less.
JUMPS = """
import itertools, time
_real, _jumps = time.time, itertools.cycle((0, 3600, 7200, -3600))
time.time = lambda: _real() + next(_jumps)
"""


def test_a_clock_that_jumps_changes_no_limit_and_no_order(tmp_path: Path) -> None:
    """S4: a command has its time, a task its limit; facts are in the order of their numbers, and a resume goes on."""
    (tmp_path / "jumps").mkdir()
    (tmp_path / "jumps/sitecustomize.py").write_text(JUMPS)
    project = tmp_path / "project"
    project.mkdir()
    play = script(tmp_path, turn("", command("sleep 1; echo slept-$((40 + 2))")), turn("", command("echo two")), done())
    words = ("run", "x", "--script", play, "--cwd", str(project), "--auto", "all", "--json")
    ran = tarmac(*words, PYTHONPATH=str(tmp_path / "jumps"))
    assert ran.code == 0, ran.err
    facts = [json.loads(line) for line in ran.out.splitlines()]
    assert "slept-42" in ran.out
    task = next(each["task"] for each in facts if "task" in each)
    shown = [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]
    numbers = [each["seq"] for each in shown if "seq" in each]
    assert numbers == sorted(set(numbers)) and len(numbers) > 5
    times = [each["at"] for each in shown if "at" in each]
    assert times != sorted(times), "the clock did not jump, so that this proves nothing"
