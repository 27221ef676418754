"""fast-agent, an agent that nobody here wrote, hosted. It is installed first, into .peers: a minute, and a network."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import lacking
from tests.installed import FOLDER, PATIENCE

PYTHONS = ("python3.14", "python3.13")
pytestmark = pytest.mark.peers
NEEDS = "fast-agent-mcp>=0.10"


@pytest.fixture(scope="module")
def fast_agent() -> Path:
    """fast-agent in an environment of its own: it wants a newer Python than we do."""
    folder = FOLDER / "fast-agent"
    program, done = folder / "bin" / "fast-agent-acp", folder / ".installed"
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs of the tests set up one after the other
        if not done.exists() or done.read_text() != NEEDS:
            _install(folder)
            done.write_text(NEEDS)
    return program


def _install(folder: Path) -> None:
    python = next(filter(_starts, [*PYTHONS, *map(str, Path.home().glob(".pyenv/versions/3.1[34]*/bin/python"))]), None)
    if python is None:
        pytest.skip("fast-agent needs Python 3.13, which is not on this machine")
    for command in ([python, "-m", "venv", str(folder)], [str(folder / "bin" / "pip"), "install", "-q", NEEDS]):
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            lacking(f"{NEEDS} did not come from its registry in {PATIENCE:.0f} s")
            return
        if ran.returncode:
            lacking(f"{NEEDS} can't be had from its registry: {ran.stderr.strip()[-300:]}")


def _starts(python: str) -> bool:
    """A name alone says little: it may stand for a version that was never installed."""
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def host(
    folder: Path, agent: Path, command: str, *options: str, tool: str = "execute"
) -> subprocess.CompletedProcess[str]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    env = {**os.environ, "HOME": str(folder), "TARMAC_STATE_DIR": str(folder / "state")}
    prompt = f"***CALL_TOOL {tool} {json.dumps({'command': command})}"
    argv = [sys.executable, "-m", "tarmac", "host", *options, "--prompt", prompt, "--"]
    argv += [str(agent), "--model", "passthrough", "-x"]
    return subprocess.run(argv, cwd=work, env=env, capture_output=True, text=True, timeout=240, check=False)


def test_fast_agent_runs_its_commands_in_our_terminals(tmp_path: Path, fast_agent: Path) -> None:
    """A1: an agent that uses terminal/*; the exit code reaches it."""
    done = host(tmp_path, fast_agent, "touch made; echo hi; exit 3", "--auto", "all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("exit code 3") == 1  # it tells of the call as well: once is enough
    assert "[Exit code: 3]" in done.stdout
    assert (tmp_path / "work" / "made").exists()


def test_fast_agent_is_told_no(tmp_path: Path, fast_agent: Path) -> None:
    """A1: with nobody to ask, its permission request is rejected and nothing runs."""
    done = host(tmp_path, fast_agent, "touch made")
    assert (done.returncode, "declined" in done.stdout) == (0, True)
    assert not (tmp_path / "work" / "made").exists()


def test_fast_agent_uses_our_terminals_over_mcp(tmp_path: Path, fast_agent: Path) -> None:
    """A1: the server that its session was given is a pipe to this host: shown once, in the hosted task's log."""
    done = host(tmp_path, fast_agent, "X=1; touch made; (exit 3)", "--auto", "all", tool="tarmac__run_command")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("exit code 3") == 1
    assert '"terminal_id":"t1"' in done.stdout
    assert (tmp_path / "work" / "made").exists()
    assert len(list((tmp_path / "state" / "tasks").glob("*/log.jsonl"))) == 1


def test_fast_agent_over_mcp_is_told_no(tmp_path: Path, fast_agent: Path) -> None:
    done = host(tmp_path, fast_agent, "X=1; touch made", tool="tarmac__run_command")
    assert "not allowed, as nobody is here to be asked" in done.stdout
    assert not (tmp_path / "work" / "made").exists()


def test_without_mcp_fast_agent_has_no_such_tool(tmp_path: Path, fast_agent: Path) -> None:
    done = host(tmp_path, fast_agent, "ls", "--no-mcp", tool="tarmac__run_command")
    assert "is not available" in done.stdout
