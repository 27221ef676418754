"""The words of each shell that Tarmac drives, so that one test speaks to all of them."""

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import lacking

from tarmac.terminals.process.watchdog import SCRIPT as WATCHDOG


@dataclass(frozen=True)
class Speech:
    """How to say it in this shell."""

    shell: str
    start_up_file: str  # below the home
    last: str  # the status of the last command
    assign: str  # a variable {name} with a {value}
    export: str
    function: str  # a function {name} with a {body}
    interactive_loop: str  # it never ends, in the shell itself
    ask: str  # with {prompt}, into x

    def ends(self, code: int) -> str:
        """A command in a process of its own that ends with `code`."""
        return f"sh -c 'exit {code}'"


SPEECHES = [
    Speech("bash", ".bashrc", "$?", "{name}={value}", "export {name}={value}", "{name}() {{ {body}; }}",
           "while :; do :; done", "read -p '{prompt}' x"),
    Speech("zsh", ".zshrc", "$?", "{name}={value}", "export {name}={value}", "{name}() {{ {body}; }}",
           "while :; do :; done", "read 'x?{prompt}'"),
    Speech("fish", ".config/fish/config.fish", "$status", "set {name} {value}", "set -gx {name} {value}",
           "function {name}; {body}; end", "while true; end", "read -P '{prompt}' x"),
]  # fmt: skip


@pytest.fixture(params=SPEECHES, ids=lambda each: str(each.shell))
def speech(request: pytest.FixtureRequest) -> Speech:
    """Each shell in turn."""
    speech: Speech = request.param
    if shutil.which(speech.shell) is None:
        lacking(f"{speech.shell} is not installed")
    return speech


@dataclass
class StartUp:
    """The start-up file of the shell under test, in the test's own home."""

    speech: Speech
    home: Path

    def write(self, text: str, name: str | None = None) -> None:
        file = self.home / (name or self.speech.start_up_file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def start_up(speech: Speech, own_state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartUp]:
    for name in ("ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield StartUp(speech, own_state)


def children() -> set[int]:
    """The processes that this one has started; without the watchdog, which every terminal shares."""
    found = {int(each) for path in Path("/proc/self/task").glob("*/children") for each in path.read_text().split()}
    return {each for each in found if not _is_watchdog(each)}


def _is_watchdog(pid: int) -> bool:
    """The kernel shows no arguments until the end of an exec, and none of a zombie."""
    end = time.monotonic() + 5.0
    try:
        while not (arguments := Path(f"/proc/{pid}/cmdline").read_bytes()):
            if ") Z " in Path(f"/proc/{pid}/stat").read_text() or time.monotonic() > end:
                return False
            os.sched_yield()
    except OSError:
        return False
    return WATCHDOG.encode() in arguments
