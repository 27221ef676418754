"""Agents that nobody here wrote as clients of `tarmac mcp`: what their model is told of a call, and of a no.

The model is a script (tests/playing.py); all else is as their makers ship it. Only in `make peers`.
"""

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.agents import PATIENCE, Agent, claude, codex, gemini, leaving_nothing, opencode
from tests.mcp.peers import TARMAC
from tests.playing import Model, Turn, playing, say

pytestmark = [pytest.mark.peers, pytest.mark.shell]
Start = Callable[[Path, Model, Sequence[str]], Agent]

# How each names a tool of a server to its model
CLIENTS = [
    pytest.param(opencode, Turn(tool="tarmac_run_command"), id="opencode"),
    pytest.param(claude, Turn(tool="mcp__tarmac__run_command"), id="claude"),
    pytest.param(codex, Turn(tool="run_command", namespace="mcp__tarmac"), marks=pytest.mark.allpeers, id="codex"),
    pytest.param(gemini, Turn(tool="mcp_tarmac_run_command"), marks=pytest.mark.allpeers, id="gemini"),
]
CANNOT_ASK = "needs a person's yes, and this client cannot ask"


@pytest.mark.parametrize("start, call", CLIENTS)
def test_a_real_client_runs_what_may_run_and_hears_why_the_rest_did_not(
    tmp_path: Path, start: Start, call: Turn
) -> None:
    """A3: a command that only reads (and fails), one that was allowed before, one that nobody can be asked about."""
    script = [call.of(command=each) for each in ("ls not-there", "mkdir made", "touch never")]
    with playing(*script, say("All is done.")) as model, leaving_nothing(tmp_path) as work:
        agent = start(tmp_path, model, [*TARMAC, "mcp", "--allow", "mkdir made"])
        ran = subprocess.run(
            agent.argv, cwd=work, env=agent.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert (ran.returncode, "All is done." in ran.stdout) == (0, True), ran.stdout + ran.stderr
    reading, allowed, denied = model.results
    assert ("not-there" in reading, exit_code(reading)) == (True, 2)
    assert exit_code(allowed) == 0
    assert CANNOT_ASK in denied
    assert f"tarmac grants allow --workspace {work} -- 'touch never'" in denied
    assert [each.name for each in work.iterdir()] == ["made"]


def exit_code(result: str) -> int:
    """Some clients give their model our text, some our data."""
    found = re.search(r'Exit code: (\d+)\.|"exit_code": ?(\d+)', result.replace("\\", ""))
    assert found, result
    return int(found[1] or found[2])
