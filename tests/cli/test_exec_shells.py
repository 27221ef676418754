"""`tarmac exec --shell`: the same verb for every shell (A5)."""

import json
import shutil

import pytest
from tests.cli.conftest import tarmac
from tests.conftest import lacking

pytestmark = pytest.mark.shell

SAYS = {
    "bash": "echo ${BASH_VERSION%%.*}; exit 3",
    "zsh": "echo ${ZSH_VERSION%%.*}; exit 3",
    "fish": "echo $version; exit 3",
}


@pytest.mark.parametrize("shell", SAYS)
@pytest.mark.parametrize("provider", ["pty", "exec"])
def test_exec_runs_in_the_shell_that_is_asked_for(shell: str, provider: str) -> None:
    """A5, T20: its output and its exit code are the command's."""
    if shutil.which(shell) is None:
        lacking(f"{shell} is not installed")
    done = tarmac("exec", "--shell", shell, "--provider", provider, "--", SAYS[shell])
    assert (done.code, done.out[:1].isdigit(), done.err) == (3, True, "")


@pytest.mark.parametrize("shell", SAYS)
def test_a_stream_of_commands_shares_one_shell(shell: str) -> None:
    """A5, T8: `--jsonl`, one result a line."""
    if shutil.which(shell) is None:
        lacking(f"{shell} is not installed")
    assign = "set x 5" if shell == "fish" else "x=5"
    lines = "".join(json.dumps({"command": each}) + "\n" for each in (assign, "cd /", "echo $x; pwd", "false"))
    done = tarmac("exec", "--shell", shell, "--jsonl", stdin=lines)
    results = [json.loads(line) for line in done.out.splitlines()]
    assert [(each["output"], each["exit_code"]) for each in results] == [("", 0), ("", 0), ("5\n/\n", 0), ("", 1)]
