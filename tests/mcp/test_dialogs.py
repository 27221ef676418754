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
from tests.agents import Agent, claude, codex, leaving_nothing
from tests.mcp.peers import TARMAC
from tests.playing import Model, Turn, playing, say

pytestmark = [pytest.mark.peers, pytest.mark.shell]
SOON = 150.0  # seconds for something to be seen, on a busy machine
KEY = 3.0  # seconds for what a key does
NEXT = "Run these 3 lines? Risk: "  # the second question
LINES = "echo one\necho two\nrm -r important"


class Window:
    """A terminal of 110 columns, and who sits before it."""

    def __init__(self, *tmux: str) -> None:
        self._tmux = tmux
        self.shown = ""

    def type(self, text: str) -> None:
        """A line, and send it."""
        subprocess.run([*self._tmux, "send-keys", "-l", text], check=True)
        self.see(text)
        subprocess.run([*self._tmux, "send-keys", "Enter"], check=True)

    def press(self, key: str, then: str, *, without: str = "\0") -> None:
        """Until it has done its work: a key that comes too soon is lost."""
        end = time.monotonic() + SOON
        while time.monotonic() < end:
            subprocess.run([*self._tmux, "send-keys", key], check=True)
            if self._seen(then, KEY, without):
                return
        raise AssertionError(f"{key} did not bring {then!r}:\n{self.shown}")

    def see(self, text: str, *, without: str = "\0") -> str:
        """Look until it is there, and the other is not; all that is on the screen then."""
        assert self._seen(text, SOON, without), f"{text!r} did not come:\n{self.shown}"
        return self.shown

    def _seen(self, text: str, seconds: float, without: str = "\0") -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            command = [*self._tmux, "capture-pane", "-p"]
            self.shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            if text in self.shown and without not in self.shown:
                return True
            time.sleep(0.1)
        return False


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
    return Agent([agent.argv[0], *agent.argv[3:]], agent.environ)  # without -p and its prompt


def ask_claude(screen: Window) -> None:
    """It waits for no server before its first turn: look until ours is there, then ask."""
    screen.see("❯")
    screen.type("/mcp")
    screen.see("Manage MCP servers", without="… tarmac")
    screen.press("Escape", "⏵⏵", without="Manage MCP servers")
    screen.type("do it")


def codex_cli(folder: Path, model: Model) -> Agent:
    agent = codex(folder, model, [*TARMAC, "mcp"])
    trusted = f'projects."{folder / "work"}".trust_level="trusted"'
    return Agent([agent.argv[0], "-c", trusted, agent.argv[-1]], agent.environ)


CLIENTS = [
    pytest.param(
        claude_code,
        Turn(tool="mcp__tarmac__run_command"),
        [("Right", "◯ Allow once"), ("Enter", "❯ Accept"), ("Enter", NEXT)],
        id="claude",
    ),
    pytest.param(
        codex_cli,
        Turn(tool="run_command", namespace="mcp__tarmac"),
        [("Enter", NEXT)],
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
        if start is claude_code:
            ask_claude(screen)
        screen.see("Decision")
        assert "Run this command? Risk: medium. It creates or updates made, in the workspace" in screen.shown
        assert "\n  touch made" in screen.shown
        for key, then in yes:
            screen.press(key, then)
        shown = screen.see(NEXT)
        assert re.search(r"important.*\n.*echo one ⏎ echo two ⏎ rm -r important", shown), shown
        assert (work / "made").exists()
        screen.press("Escape", "All is done.")
    assert "was not done" in model.results[1]
