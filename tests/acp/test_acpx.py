"""acpx, an ACP client that nobody here wrote, drives `tarmac acp`. It is installed first: `make peers`."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acp.test_transcripts import SCRIPT, TRANSCRIPTS
from tests.acp.wire_tap import keep, tapped
from tests.installed import npm

pytestmark = [pytest.mark.peers, pytest.mark.shell]
ACPX = "acpx@0.19.1"
PATIENCE = 300.0
DONE = '[[turn]]\n[[turn.call]]\nname = "attempt_completion"\narguments = { result = "It is done." }\n'


def turn(command: str) -> str:
    return f"[[turn]]\n[[turn.call]]\nname = \"execute_command\"\narguments = {{ command = '''{command}''' }}\n"


class Acpx:
    """acpx with a home of its own, and our agent behind it."""

    def __init__(self, folder: Path) -> None:
        self.programs, environ = npm("acpx", ACPX)
        self.work = folder / "work"
        self.work.mkdir()
        self.script = folder / "script.toml"
        self.tap: list[str] = []
        self.environ = {
            **environ,
            "HOME": str(folder),
            "TARMAC_STATE_DIR": str(folder / "state"),
            "TARMAC_MODEL": f"scripted/{self.script}",
        }

    def start(self, *arguments: str, options: str = "", permission: str = "--approve-all") -> "subprocess.Popen[str]":
        agent = f"{shlex.join([*self.tap, sys.executable])} -m tarmac acp {options}"
        common = [permission, "--timeout", str(PATIENCE), "--ttl", "30", "--cwd", str(self.work), "--agent", agent]
        return subprocess.Popen(
            ["node", str(self.programs / "acpx"), *common, *arguments],
            env=self.environ,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, options: str = "", permission: str = "--approve-all", code: int = 0) -> str:
        return ended(self.start(*arguments, options=options, permission=permission), code)

    def wire(self, *arguments: str, options: str = "", permission: str = "--approve-all") -> list[dict[str, Any]]:
        """Both sides' messages."""
        code = 5 if permission == "--deny-all" else 0  # its word for that
        said = self.run(
            "--format", "json", "--json-strict", *arguments, options=options, permission=permission, code=code
        )
        return [json.loads(line) for line in said.splitlines()]


def ended(process: "subprocess.Popen[str]", code: int = 0) -> str:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, out + err
    return out


def methods(wire: list[dict[str, Any]]) -> list[str]:
    return [each["method"] for each in wire if "method" in each and each["method"] != "session/update"]


@pytest.fixture
def acpx(tmp_path: Path) -> Iterator[Acpx]:
    made = Acpx(tmp_path)
    yield made
    made.start("sessions", "close").communicate(timeout=PATIENCE)  # ends what it keeps in the background


def test_a_prompt_with_a_command_is_done_in_our_terminal(acpx: Acpx) -> None:
    """A2: asked, run, shown; the exit code is what it is."""
    acpx.script.write_text(turn("touch made; printf '%s\\n' out; (exit 3)") + DONE)
    said = acpx.run("exec", "make it")
    assert "out" in said and "It is done." in said and "[done] end_turn" in said
    assert (acpx.work / "made").exists()


def test_a_command_runs_in_its_terminal_when_told_to(acpx: Acpx) -> None:
    """A2: terminal/create, wait_for_exit, output, release, of a client nobody here wrote."""
    acpx.script.write_text(turn("""X='a  b'; echo "$X" > made; echo "$X"; (exit 3)""") + DONE)
    wire = acpx.wire("exec", "make it", options="--client-terminals")
    wanted = ["session/request_permission", "terminal/create", "terminal/wait_for_exit", "terminal/release"]
    assert [each for each in methods(wire) if each in wanted] == wanted
    results = [each["result"] for each in wire if isinstance(each.get("result"), dict)]
    assert {"exitCode": 3, "signal": None} in results and results[-1] == {"stopReason": "end_turn"}
    assert (acpx.work / "made").read_text() == "a  b\n"


@pytest.mark.parametrize("terminals", ["", "-terminals"])
def test_its_session_is_recorded(acpx: Acpx, tmp_path: Path, terminals: str) -> None:
    """A2: what test_transcripts.py replays is what acpx says today; RECORD=1 puts it into the repository."""
    acpx.script.write_text(SCRIPT)
    tape, recording = tmp_path / "tape.jsonl", TRANSCRIPTS / f"{ACPX.replace('@', '-')}{terminals}.jsonl"
    acpx.tap = tapped(tape, "editor", "agent", [])
    acpx.run("exec", "write it", options="--client-terminals" if terminals else "")
    if os.environ.get("RECORD"):
        keep(tape, recording, project=acpx.work)
    now, then = (
        [row for line in each.read_text().splitlines() if "editor" in (row := json.loads(line))]
        for each in (tape, recording)
    )
    assert [each["editor"].get("method") for each in now] == [each["editor"].get("method") for each in then]


def test_what_it_denies_is_not_done(acpx: Acpx) -> None:
    """A2, P6: and the turn goes on."""
    acpx.script.write_text(turn("touch made") + DONE)
    wire = acpx.wire("exec", "make it", permission="--deny-all")
    assert wire[-1]["result"] == {"stopReason": "end_turn"} and not (acpx.work / "made").exists()


def test_sessions_are_made_prompted_cancelled_listed_and_taken_up_again(acpx: Acpx) -> None:
    """A2: over several processes of its own, and two of ours."""
    first = '[[turn]]\ntext = "Hello. "\n[[turn.call]]\nname = "attempt_completion"\narguments = { result = "One." }\n'
    acpx.script.write_text(first + turn("touch begun; sleep 600") + DONE)
    acpx.run("sessions", "new")
    assert "Hello. One." in acpx.run("prompt", "first things")
    slow = acpx.start("prompt", "now wait")
    end = time.monotonic() + PATIENCE
    while not (acpx.work / "begun").exists() and time.monotonic() < end:
        time.sleep(0.05)
    acpx.run("cancel")
    assert "[done] cancelled" in ended(slow)
    assert "first things" in acpx.run("sessions", "list")
    assert "mode set: ask" in acpx.run("set-mode", "ask")
    assert "It is done." in acpx.run("prompt", "and now?")
    acpx.run("sessions", "close")
    assert not [each for each in Path("/proc").glob("[0-9]*/cmdline") if _is_ours(each, str(acpx.work))]


def _is_ours(file: Path, work: str) -> bool:
    try:
        return b"tarmac\0acp" in file.read_bytes() and os.readlink(file.parent / "cwd") == work
    except OSError:
        return False
