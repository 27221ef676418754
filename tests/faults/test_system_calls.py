"""Rows 11, 39 and 40: a disk that can't be read, system calls that are interrupted, a storm of signals."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PATIENCE, TARMAC, running, tarmac
from tests.e2e.scripts import done, script

STORM = 1000


def _traced(*options: str) -> list[str]:
    return ["strace", "-f", "-qq", "-o", os.devnull, *(f"-e{each}" for each in options)]


def test_a_log_that_the_disk_can_not_read_is_told_and_the_others_are_listed(
    tmp_path: Path, own_state: Path, require: Callable[[str], None]
) -> None:
    """Row 11: EIO for every read of one task's log."""
    require("strace")
    play = script(tmp_path, done("first"), done("second"))
    for words in ("one", "two"):
        assert tarmac("run", words, "--script", play, "--cwd", str(tmp_path), "--auto", "all").code == 0
    logs = sorted((own_state / "state" / "tasks").glob("*/log.jsonl"))
    (own_state / "state" / "tasks" / "index.db").unlink()
    argv = [*_traced("trace=pread64", "inject=pread64:error=EIO"), "-P", str(logs[0]), *TARMAC, "tasks", "--json"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE * 2)
    assert "Traceback" not in listed.stderr
    found = {each["id"]: each for each in map(json.loads, listed.stdout.splitlines())}
    assert set(found) == {each.parent.name for each in logs}
    assert "Input/output error" in json.dumps(found[logs[0].parent.name])
    assert "Input/output error" not in json.dumps(found[logs[1].parent.name])


@pytest.mark.parametrize(
    ("call", "only"),
    [("write", ()), ("read", ("-P", "/dev/ptmx", "-P", "/dev/pts/ptmx"))],  # the loader of programs takes no EINTR
)
def test_interrupted_system_calls_lose_nothing(
    require: Callable[[str], None], call: str, only: tuple[str, ...]
) -> None:
    """Row 39: every seventh write, or read of the terminal, fails with EINTR."""
    require("strace")
    traced = [*_traced(f"trace={call}", f"inject={call}:error=EINTR:when=3+7"), *only]
    # the shell itself is not under the fault: bash takes an interrupted read of its input for its end
    argv = [*[each for each in traced if each != "-f"], *TARMAC, "exec", "seq 20000"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE * 2)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "".join(f"{number}\n" for number in range(1, 20001))


def test_a_storm_of_signals_loses_no_exit(tmp_path: Path) -> None:
    """Row 40: a thousand SIGCHLD and SIGWINCH while commands run; each has its exit code."""
    lines = "".join(
        json.dumps({"command": f"(exit {number % 100}); exit {number % 100}"}) + "\n" for number in range(30)
    )
    (tmp_path / "lines").write_text(lines)
    with (tmp_path / "lines").open() as given, running("exec", "--jsonl", stdin=given.fileno()) as process:
        assert process.stdout
        for number in range(STORM):
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGWINCH if number % 2 else signal.SIGCHLD)
            time.sleep(0.001)  # a storm has a rate: a thousand a second
        said = process.stdout.read().decode()
        process.wait(PATIENCE)
    codes = [each["exit_code"] for each in map(json.loads, said.splitlines()) if "exit_code" in each]
    assert codes == [number % 100 for number in range(30)]
