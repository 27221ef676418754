"""`tarmac` in a real terminal: tmux draws the screen, tests look at it."""

import os
import secrets
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import TARMAC

PATIENCE = 40.0
READY = "(shift-tab)"  # the status line: the session can be typed into


class Tmux:
    """One terminal with one program in it."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    def run(self, *words: str, text: str | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.stdout

    def keys(self, *names: str) -> None:
        """Press keys by name: `Enter`, `C-c`, `BTab`."""
        self.run("send-keys", "-t", "t", *names)

    def type(self, text: str) -> None:
        """Type text, key by key."""
        self.run("send-keys", "-t", "t", "-l", text)

    def paste(self, text: str) -> None:
        """Paste text, as a terminal does."""
        self.run("load-buffer", "-", text=text)
        self.run("paste-buffer", "-p", "-t", "t")

    def resize(self, columns: int, rows: int) -> None:
        self.run("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def screen(self, *, history: bool = False) -> str:
        """What is on the screen; with `history` also what scrolled away."""
        return self.run("capture-pane", "-p", "-t", "t", *(("-S", "-") if history else ()))

    def until(self, *wanted: str, gone: str = "", history: bool = False) -> str:
        """Wait until all of `wanted` are on the screen, and `gone` is not; return the screen."""
        end = time.monotonic() + PATIENCE
        while True:
            seen = self.screen(history=history)
            if all(each in seen for each in wanted) and not (gone and gone in seen):
                return seen
            assert time.monotonic() < end, f"{wanted} did not come (or {gone!r} stayed); the screen:\n{seen}"
            time.sleep(0.05)

    def question(self, *wanted: str) -> str:
        """Wait for a question that takes keys; return the screen."""
        return self.until("? help", *wanted)

    def exit_status(self) -> int:
        """Wait for the program to end."""
        seen = self.until("EXIT=", history=True)
        return int(seen.rpartition("EXIT=")[2].split()[0])

    def leave(self) -> int:
        """Leave the session by Ctrl-D; return the exit status."""
        self.keys("C-d")
        return self.exit_status()


@contextmanager
def tarmac_in_tmux(
    *arguments: str, cwd: Path, columns: int = 90, rows: int = 30, shell: bool = False, before: str = "", **environ: str
) -> Iterator[Tmux]:
    """`tarmac …` in a terminal of its own; everything in it ends with the block. `shell`: below an interactive bash."""
    tmux = Tmux(f"tarmac-test-{secrets.token_hex(4)}")
    own = {name: os.environ[name] for name in ("HOME", "TARMAC_STATE_DIR", "PATH") if name in os.environ} | environ
    if prefix := os.environ.get("PYTHONPYCACHEPREFIX"):
        own["PYTHONPYCACHEPREFIX"] = prefix
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in own.items())
    line = f"env -u NO_COLOR -u EDITOR -u VISUAL {setting} {shlex.join([*TARMAC, *arguments])}"
    ended = "printf 'EXIT=%s\\n' $?"
    body = "exec bash --norc --noprofile -i" if shell else f"{before}{line}; {ended}; exec cat"
    size = ("-x", str(columns), "-y", str(rows))
    tmux.run("-f", "/dev/null", "new-session", "-d", *size, "-s", "t", "-c", str(cwd), body)
    tmux.run("set-option", "-g", "history-limit", "50000")
    if shell:
        tmux.type(f" {line}; {ended}\n")
    try:
        yield tmux
    finally:
        tmux.run("kill-server")
