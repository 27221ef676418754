"""The dialogs in which clients that nobody here wrote ask a person what `tarmac mcp` asks them. Only in `make peers`.

The client runs in a window of tmux, with a model that plays a script; the test is the person: it reads the screen, and
presses keys.
"""

import json
import re
import secrets
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.agents import PATIENCE, Agent, claude, codex, leaving_nothing
from tests.mcp.peers import TARMAC
from tests.playing import Model, Turn, playing, say

pytestmark = [pytest.mark.peers, pytest.mark.shell]
LINES = "echo one\necho two\nrm -r important"


class Window:
    """A terminal of 110 columns, and who sits before it."""

    def __init__(self, *tmux: str) -> None:
        self._tmux = tmux

    def press(self, key: str) -> None:
        subprocess.run([*self._tmux, "send-keys", key], check=True)

    def see(self, text: str) -> str:
        """Look until it is there; all that is on the screen then."""
        end = time.monotonic() + PATIENCE / 2
        shown = ""
        while time.monotonic() < end:
            command = [*self._tmux, "capture-pane", "-p"]
            shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            if text in shown:
                return shown
            time.sleep(0.1)
        raise AssertionError(f"{text!r} did not come:\n{shown}")


@contextmanager
def window(work: Path, agent: Agent) -> Iterator[Window]:
    tmux = ["tmux", "-L", f"tarmac-{secrets.token_hex(4)}"]
    start = [*tmux, "-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "45", shlex.join(agent.argv)]
    subprocess.run(start, cwd=work, env=agent.environ, check=True)
    try:
        yield Window(*tmux)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def claude_code(folder: Path, model: Model) -> Agent:
    """As after its first start: greeted, logged in, the folder trusted."""
    agent = claude(folder, model, [*TARMAC, "mcp"])
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    keys = {"approved": ["none"], "rejected": []}
    greeted = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": keys}
    (folder / ".claude.json").write_text(json.dumps({**greeted, "projects": {str(folder / "work"): known}}))
    return Agent([agent.argv[0], *agent.argv[2:]], agent.environ)  # without -p


def codex_cli(folder: Path, model: Model) -> Agent:
    agent = codex(folder, model, [*TARMAC, "mcp"])
    trusted = f'projects."{folder / "work"}".trust_level="trusted"'
    return Agent([agent.argv[0], "-c", trusted, agent.argv[-1]], agent.environ)


CLIENTS = [
    pytest.param(
        claude_code,
        Turn(tool="mcp__tarmac__run_command"),
        [("▸", "Right"), ("◯ Allow once", "Enter"), ("✔ Decision", "Down"), ("❯ Accept", "Enter")],
        id="claude",
    ),
    pytest.param(
        codex_cli,
        Turn(tool="run_command", namespace="mcp__tarmac"),
        [("› 1. Allow once", "Enter"), ("Field 2/2", "Enter")],
        marks=pytest.mark.allpeers,
        id="codex",
    ),
]


@pytest.mark.parametrize("start, call, yes", CLIENTS)
def test_a_person_sees_the_danger_and_the_command_and_says_yes(
    tmp_path: Path,
    start: Callable[[Path, Model], Agent],
    call: Turn,
    yes: list[tuple[str, str]],
    require: Callable[[str], None],
) -> None:
    """A3: the stateless era in Claude Code, the older one in Codex. The yes runs the command, Esc does not."""
    require("tmux")
    script = [call.of(command="touch made"), call.of(command=LINES), say("All is done.")]
    with leaving_nothing(tmp_path) as work, playing(*script) as model, window(work, start(tmp_path, model)) as screen:
        shown = screen.see("touch made")
        assert "Run this command? Risk: medium. It makes or dates made, in the workspace" in shown
        for seen, key in yes:
            screen.see(seen)
            screen.press(key)
        shown = screen.see("Run these 3 lines? Risk: ")
        assert re.search(r"important.*\n.*echo one ⏎ echo two ⏎ rm -r important", shown), shown
        assert (work / "made").exists()
        screen.press("Escape")
        screen.see("All is done.")
    assert "was not done" in model.results[1]
