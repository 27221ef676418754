"""What `tarmac doctor` says of the terminal daemon."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.terminals.daemon.conftest import daemon_pid, wait_gone

from tarmac.terminals import Settings, attach_terminal, open_terminal
from tarmac.terminals.doctor import Case, Check, Finding, examine
from tarmac.terminals.doctor.terminal_checks import check_daemon

pytestmark = pytest.mark.shell
QUIET = Settings(start_up_files=False)
LOOK = """
import asyncio, json
from tarmac.terminals.doctor import Case
from tarmac.terminals.doctor.terminal_checks import check_daemon

async def look():
    case = Case(environ={'TARMAC_STATE_DIR': sys.argv[1]})
    print(json.dumps({each.name: each.level async for each in check_daemon(case)}))

asyncio.run(look())
"""


async def findings(environ: Mapping[str, str] = os.environ) -> dict[str, Finding]:
    check = Check("daemon", check_daemon, seconds=60)
    return {each.name: each async for _, each in examine([check], Case(environ=environ))}


async def test_no_daemon_is_well_and_none_is_started(daemon: Path) -> None:
    """F1."""
    found = await findings()
    assert {name: each.level for name, each in found.items()} == {"terminal daemon": "ok"}
    assert not daemon.exists()


async def test_the_terminals_it_keeps_are_counted(daemon: Path, tmp_path: Path) -> None:
    """F1: those in use, those that were left, and those that were lost when the daemon was killed."""
    async with open_terminal(cwd=tmp_path, shell="bash", settings=QUIET, outlive=True) as left:
        await left.run("true")
    async with open_terminal(cwd=tmp_path, shell="bash", settings=QUIET, outlive=True):
        found = await findings()
        assert {each.level for each in found.values()} == {"ok"}
        assert found["kept terminals"].facts == {"kept": 2, "used": 1, "lost": 0}
        assert found["kept terminals"].what == "keeps 2 terminals, 1 of them in use"
    pid = daemon_pid(daemon)
    assert found["terminal daemon"].facts == {"pid": pid} and pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_gone(pid)
    found = await findings()
    assert (found["terminal daemon"].level, found["terminal daemon"].facts) == ("note", {"lost": 2})
    terminal = await attach_terminal(left.id)  # starts a new daemon
    await terminal.aclose()
    assert (await findings())["kept terminals"].facts == {"kept": 0, "used": 0, "lost": 1}


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
async def test_a_folder_that_is_open_to_others_is_a_problem(own_state: Path, mode: int) -> None:
    """F1: with the command that closes it."""
    folder = own_state / "state" / "daemon"
    folder.mkdir(parents=True, mode=0o700)
    folder.chmod(mode)
    (found,) = (await findings()).values()
    assert (found.name, found.level, found.advice) == ("daemon's folder", "problem", f"chmod 700 {folder}")
    folder.chmod(0o700)
    assert {each.level for each in (await findings()).values()} == {"ok"}


async def test_a_file_in_the_place_of_the_folder_is_a_problem(own_state: Path) -> None:
    """F1."""
    (own_state / "state").mkdir()
    (own_state / "state" / "daemon").write_text("")
    (found,) = (await findings()).values()
    assert found.level == "problem" and "is not a folder" in found.what


async def test_a_folder_of_somebody_else_is_a_problem(tmp_path: Path) -> None:
    """F1."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder = tmp_path / "daemon"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    (found,) = (await findings({"TARMAC_STATE_DIR": str(tmp_path)})).values()
    assert (found.level, found.facts["owner"]) == ("problem", 12345)


async def test_from_inside_a_terminal_the_doctor_is_refused_and_says_why(daemon: Path, tmp_path: Path) -> None:
    """F1: this is as it should be."""
    script = tmp_path / "look.py"
    script.write_text(f"import sys; sys.path[:0] = {sys.path!r}\n{LOOK}")
    async with open_terminal(cwd=tmp_path, shell="bash", settings=QUIET, outlive=True) as terminal:
        result = await terminal.run(f"{sys.executable} -I {script} {daemon.parent}", timeout=60)
        await terminal.aclose()
    assert json.loads(result.output) == {"daemon's folder": "ok", "terminal daemon": "note"}
