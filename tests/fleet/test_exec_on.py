"""`tarmac exec --on PLACE`: the exit status of a command there is its own, and that of a place that fails another."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.fleet.conftest import Sshd

pytestmark = pytest.mark.shell

TARMAC = [sys.executable, "-m", "tarmac"]


def tarmac(*words: str, given: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
    if given is None:
        return subprocess.run(
            [*TARMAC, *words], check=False, capture_output=True, timeout=120, stdin=subprocess.DEVNULL
        )
    return subprocess.run([*TARMAC, *words], check=False, capture_output=True, timeout=120, input=given)


def test_the_exit_status_is_that_of_the_command_there(tmp_path: Path) -> None:
    """F2."""
    done = tarmac("exec", "--on", "unix:", "--cwd", str(tmp_path), "pwd; (exit 7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, f"{tmp_path}\n".encode(), b"")


@pytest.mark.fleet
def test_standard_input_reaches_the_command_there() -> None:
    """F2."""
    data = os.urandom(300_000)
    done = tarmac("exec", "--on", "unix:", "sha256sum; wc -c", given=data)
    assert (done.returncode, done.stdout.split()[-1]) == (0, b"0")
    assert len(done.stdout.split()[0]) == 64


@pytest.mark.fleet
def test_json_tells_the_evidence_of_a_command_there() -> None:
    """F2."""
    done = tarmac("exec", "--on", "unix:", "--json", "echo hi; false")
    told = json.loads(done.stdout)
    assert (done.returncode, told["output"], told["exit_code"], told["evidence"]) == (1, "hi\n", 1, "mark")


@pytest.mark.fleet
def test_many_commands_in_one_terminal_there() -> None:
    """F2."""
    lines = b'{"command": "cd /; X=4"}\n{"command": "echo $X $PWD"}\n'
    done = tarmac("exec", "--on", "unix:", "--jsonl", given=lines)
    assert [json.loads(line)["output"] for line in done.stdout.splitlines()] == ["", "4 /\n"]


def test_a_place_that_fails_has_its_own_exit_status(tmp_path: Path) -> None:
    """F5."""
    done = tarmac("exec", "--on", f"unix:{tmp_path}/missing", "exit 1")
    assert (done.returncode, b"there is no socket" in done.stderr, b"hint:" in done.stderr) == (123, True, True)


@pytest.mark.fleet
def test_a_place_has_a_name_in_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F2."""
    monkeypatch.setenv("TARMAC_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text('[places]\nbuild = "unix:"\n')
    done = tarmac("exec", "--on", "build", "echo there")
    wrong = tarmac("exec", "--on", "biuld", "echo there")
    assert (done.returncode, done.stdout) == (0, b"there\n")
    assert (wrong.returncode, b"did you mean `build`?" in wrong.stderr) == (2, True)


@pytest.mark.fleet
def test_an_interrupt_ends_the_command_there(tmp_path: Path) -> None:
    """F2."""
    command = f"echo begun; sleep 100; touch {tmp_path}/went_on"
    with subprocess.Popen(
        [*TARMAC, "exec", "--on", "unix:", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGINT)
        program.stdout.read()
        assert program.wait(60) == 130
    assert not (tmp_path / "went_on").exists()


@pytest.mark.fleet
def test_what_was_streamed_is_not_said_to_be_missing() -> None:
    """T27. All of it was printed, so that it is not kept is no news."""
    script = "head -c 80000000 /dev/zero | tr '\\0' 'a' | fold -w 99"
    with subprocess.Popen(
        [*TARMAC, "exec", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout is not None and program.stderr is not None
        count = 0
        while piece := program.stdout.read(1 << 20):
            count += len(piece)
        assert (program.wait(60), b"are kept on disk" in program.stderr.read()) == (0, False)
    assert count > 0


def test_what_a_killed_exec_leaves_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T27."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with subprocess.Popen(
        [*TARMAC, "exec", "echo begun; sleep 100"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.kill()
    left = [each for each in tmp_path.iterdir() if each.name.startswith("tarmac-")]
    old = time.time() - 86400
    for each in left:
        os.utime(each, (old, old))
    assert tarmac("exec", "true").returncode == 0
    assert [each for each in left if each.exists()] == []
    assert left, "nothing was left, so this proves nothing"


@pytest.mark.fleet
def test_a_command_over_ssh_and_a_wrong_key(sshd: Sshd) -> None:
    """F2, F5."""
    wrong = tarmac("exec", "--on", "ssh://badkey", "true")
    done = tarmac("exec", "--on", sshd.address, "echo $WHERE; (exit 4)")
    assert (done.returncode, done.stdout) == (4, b"sshd\n")
    assert (wrong.returncode, b"Permission denied" in wrong.stderr) == (123, True)


@pytest.mark.fleet
def test_a_stopped_host_does_not_hold_an_interrupt(tmp_path: Path, own_sockets: Path) -> None:
    """F5."""
    pid_file = tmp_path / "pid"
    command = f"ps -o ppid= -p $$ > {pid_file}; echo begun; sleep 100"
    with subprocess.Popen(
        [*TARMAC, "exec", "--on", "unix:", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        host = int(pid_file.read_text())
        try:
            os.kill(host, signal.SIGSTOP)
            began = time.monotonic()
            program.send_signal(signal.SIGINT)
            assert program.wait(30) == 130
            assert time.monotonic() - began < 20  # two seconds on a quiet machine
        finally:
            os.kill(host, signal.SIGCONT)
            os.kill(host, signal.SIGTERM)
