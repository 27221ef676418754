"""`tarmac doctor` on real shells, with homes whose start-up files hang, leave, ask and print."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import alive, on_a_screen, running, tarmac

from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.doctor import Case, Check, Finding, Findings, aside, examine
from tarmac.terminals.doctor.system_checks import FILES_EACH, SPARE_FILES
from tarmac.terminals.doctor.terminal_checks import EARLY, Tried, check_shell, judge

pytestmark = pytest.mark.slow

shell = pytest.mark.shell
LIMIT = "20"  # seconds that a shell gets here, however busy the machine
SHORT = "3"  # one that never comes up


def findings(*arguments: str, limit: str = LIMIT, **environ: str) -> tuple[int, dict[str, Any]]:
    """What the doctor finds, by name (without versions), and its exit status."""
    outcome = tarmac("doctor", "--json", "--timeout", limit, *arguments, **environ)
    assert outcome.err == ""
    said = json.loads(outcome.out)
    by_name = {
        each["name"].split(" ")[0] if each["topic"] == "shells" else each["name"]: each for each in said["findings"]
    }
    assert said["ok"] == all(each["level"] in ("ok", "note") for each in said["findings"]) == (outcome.code == 0)
    return outcome.code, by_name


def home_with(folder: Path, text: str) -> str:
    (folder / ".bashrc").write_text(text)
    return str(folder)


# Shells and their start-up files


@shell
def test_a_machine_in_order_is_told_so_shell_by_shell(require: Any) -> None:
    """T21: each shell that is here comes up, with its version and how long it took."""
    for each in ("bash", "zsh", "fish"):
        require(each)
    _, found = findings()
    levels = {each: found[each]["level"] for each in ("bash", "zsh", "fish")}
    assert levels == {"bash": "ok", "zsh": "ok", "fish": "ok"}, found
    assert "starts in" in found["bash"]["what"] and found["bash"]["name"].startswith("bash 5")
    facts = found["zsh"]["facts"]
    assert 0 < facts["opened"] < facts["first"] and facts["round_trip"] > 0
    assert found["waiting for input"]["level"] == found["daemons"]["level"] == found["locale"]["level"] == "ok"


@shell
def test_start_up_files_that_hang_do_not_hang_the_doctor(tmp_path: Path) -> None:
    """T21: within the limit it says what is wrong and what to do, and nothing is left running."""
    began = time.monotonic()
    code, found = findings(
        "--shell", "bash", limit=SHORT, HOME=home_with(tmp_path, f"echo $$ >{tmp_path}/pid\nsleep 4711\n")
    )
    assert (code, found["bash"]["level"]) == (1, "problem")
    assert "no prompt" in found["bash"]["what"] and "start_up_files" in found["bash"]["advice"]
    assert found["bash"]["facts"]["without_start_up_files"]["opened"] < float(SHORT)
    assert not alive(int((tmp_path / "pid").read_text()))
    assert time.monotonic() - began < 25


@shell
def test_a_start_up_file_that_nobody_can_read_to_its_end_is_no_trap(tmp_path: Path) -> None:
    """T21: a pipe in the place of .bashrc blocks the shell in opening it."""
    os.mkfifo(tmp_path / ".bashrc")
    code, found = findings("--shell", "bash", limit=SHORT, HOME=str(tmp_path))
    assert (code, found["bash"]["level"]) == (1, "problem")


@shell
def test_start_up_files_that_end_the_shell_are_named(tmp_path: Path) -> None:
    """T21: terminals then go without them; that is a warning, with the status."""
    code, found = findings("--shell", "bash", HOME=home_with(tmp_path, "exit 3\n"))
    assert (code, found["bash"]["level"]) == (1, "warning")
    assert "status 3" in found["bash"]["what"] and "~/.bashrc" in found["bash"]["advice"]


@shell
def test_start_up_files_that_ask_are_not_answered(tmp_path: Path) -> None:
    """T21: nothing is typed into the question, and it is shown."""
    text = f"read -p 'Update now? [y/n] ' answer\necho \"$answer\" >{tmp_path}/answered\n"
    code, found = findings("--shell", "bash", HOME=home_with(tmp_path, text))
    assert (code, found["bash"]["level"], (tmp_path / "answered").exists()) == (1, "problem", False)
    assert "Update now? [y/n]" in found["bash"]["what"]


@shell
@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_advice_for_files_that_ask_is_good_advice(kind: str, tmp_path: Path, require: Any) -> None:
    """T21: with that line in front of what asks, the shell comes up."""
    require(kind)
    file = tmp_path / {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}[kind]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{EARLY[kind]}\nread answer\n")
    _, found = findings("--shell", kind, HOME=str(tmp_path))
    assert found[kind]["level"] == "ok", found[kind]


@shell
def test_what_start_up_files_print_is_shown_and_is_no_fault(tmp_path: Path) -> None:
    """T21: it belongs to no command."""
    _, found = findings(
        "--shell", "bash", HOME=home_with(tmp_path, "PS1='two\\nlines '\nprintf '\\e[31mwelcome\\e[m\\nback\\n'\n")
    )
    assert (found["bash"]["level"], found["bash"]["facts"]["printed"]) == ("ok", "welcome\nback")
    assert "start-up files print `welcome` and 1 more line" in found["bash"]["what"]


@shell
def test_a_shell_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    code, found = findings("--shell", str(tmp_path / "zsh"))
    assert (code, found["zsh"]["level"]) == (1, "problem")


async def test_a_shell_that_nobody_asked_for_need_not_be_there(tmp_path: Path) -> None:
    missing = await check_shell(str(tmp_path / "fish"), Case(environ=os.environ))
    default = await check_shell(str(tmp_path / "bash"), Case(environ=os.environ))
    assert (missing.level, default.level) == ("note", "problem")


async def test_a_shell_that_is_too_old_is_not_tried(tmp_path: Path) -> None:
    old = tmp_path / "bash"
    old.write_text(f"#!/bin/sh\n[ $# = 1 ] || touch {tmp_path}/tried\necho 'GNU bash, version 3.2.57(1)-release'\n")
    old.chmod(0o755)
    found = await check_shell(str(old), Case(environ=os.environ))
    assert (found.name, found.level, (tmp_path / "tried").exists()) == ("bash 3.2.57", "problem", False)
    assert "4.4" in found.advice


def test_slow_start_up_files_are_told_from_a_slow_machine() -> None:
    """T21: half of the limit is a warning, with the time it takes without them."""
    slow, bare = Tried(opened=3.2, first=3.3, round_trip=0.001), Tried(opened=0.05, first=0.06)
    level, what, advice = judge("zsh", slow, bare, patience=5)
    assert (level, "3.2 s" in what, "50 ms without" in what, ".zshrc" in advice) == ("warning", True, True, True)
    assert judge("zsh", Tried(opened=2.4, first=2.5), None, patience=5)[0] == "ok"


def test_a_shell_that_never_comes_up_is_worse_when_it_is_the_default() -> None:
    failed = Tried(failed="it left at once")
    assert [judge(kind, failed, failed, patience=5)[0] for kind in ("bash", "fish")] == ["problem", "warning"]


# Limits and files


@shell
def test_too_few_open_files_are_a_warning() -> None:
    """T12: `max_terminals` would not fit."""
    command = f"ulimit -n 200; exec {sys.executable} -m tarmac doctor --json --shell bash"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    found = {each["name"]: each for each in json.loads(done.stdout)["findings"]}["open files"]
    assert (done.returncode, found["level"], "ulimit -n" in found["advice"]) == (1, "warning", True)


@shell
async def test_a_terminal_takes_no_more_files_than_the_doctor_reckons(tmp_path: Path) -> None:
    """T12: or the room it tells of would be none."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for each in ("bash", "zsh", "fish"):
        async with open_terminal(cwd=tmp_path, shell=each) as terminal:
            await terminal.run("echo x")
            used = len(list(Path("/proc/self/fd").iterdir())) - before
        assert used <= FILES_EACH + SPARE_FILES // 8, each
        before = len(list(Path("/proc/self/fd").iterdir()))


@shell
def test_a_place_for_output_that_is_none_is_a_problem(tmp_path: Path) -> None:
    """T27: a file stands where the folder should be."""
    (tmp_path / "state").write_text("")
    code, found = findings("--shell", "bash", TARMAC_STATE_DIR=str(tmp_path / "state"))
    assert (code, found["kept output"]["level"]) == (1, "problem")
    assert found["kept output"]["advice"]


@shell
def test_a_disk_without_room_is_a_warning(tiny_disk: Path) -> None:
    """T27: one command may keep 64 MiB."""
    code, found = findings("--shell", "bash", TARMAC_STATE_DIR=str(tiny_disk))
    assert (code, found["kept output"]["level"]) == (1, "warning")


# Checks that go wrong


async def looks(*checks: Check) -> list[tuple[str, str, str]]:
    case = Case(environ=os.environ, settings=Settings())
    return [(topic, each.name, each.level) async for topic, each in examine(checks, case)]


async def test_a_check_that_hangs_is_a_finding_and_the_others_are_made(tmp_path: Path) -> None:
    """Every check has an end: one that waits, one that blocks in the kernel, some that fail."""
    os.mkfifo(tmp_path / "pipe")

    async def waits(case: Case) -> Findings:
        yield Finding(name="before", level="ok", what="")
        await asyncio.Event().wait()

    async def blocks(case: Case) -> Findings:
        await aside((tmp_path / "pipe").read_bytes)  # until somebody writes
        yield Finding(name="never", level="ok", what="")

    async def fails(case: Case) -> Findings:
        (tmp_path / "nothing here").read_bytes()
        yield Finding(name="never", level="ok", what="")

    async def lacks(case: Case) -> Findings:
        import no_such_module  # type: ignore[import-not-found]

        yield Finding(name=no_such_module, level="ok", what="")

    async def works(case: Case) -> Findings:
        yield Finding(name="fine", level="ok", what=await aside(lambda: "as it should be"))

    found = await looks(
        Check("a", waits, 0.1),
        Check("b", blocks, 0.1),
        Check("c", fails, 5),
        Check("d", lacks, 5),
        Check("e", works, 5),
    )
    with open(tmp_path / "pipe", "wb", buffering=0):  # noqa: ASYNC230, PTH123
        pass  # let the thread go
    assert found == [
        ("a", "before", "ok"),
        ("a", "a", "problem"),
        ("b", "b", "problem"),
        ("c", "c", "problem"),
        ("d", "d", "problem"),
        ("e", "fine", "ok"),
    ]


# The page


@shell
def test_the_page_is_plain_in_a_pipe_and_in_columns() -> None:
    outcome = tarmac("doctor", "--shell", "bash")
    lines = [line for line in outcome.out.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    assert "\x1b" not in outcome.out and outcome.err == ""
    assert len(lines) >= 10 and all(line[10] == " " and line[11] != " " for line in lines), outcome.out
    assert max(map(len, outcome.out.splitlines())) < 110


@shell
@pytest.mark.parametrize("columns", [70, 200])
def test_the_page_fits_the_screen_and_is_in_colour_there(columns: int) -> None:
    with on_a_screen("doctor", "--shell", "bash", columns=columns) as screen:
        shown = screen.rest().decode()
    assert "\x1b[32mok" in shown
    plain = shown.replace("\x1b[m", "")
    for code in ("1", "32", "2", "33", "1;31", "1;32"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert max(map(len, plain.splitlines())) < columns


@shell
def test_a_signal_ends_it_and_what_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "up")
    home_with(tmp_path, f"echo $$ >{tmp_path}/up\nsleep 4712\n")
    os.environ["HOME"] = str(tmp_path)  # of the test alone: see own_state
    with running("doctor", "--shell", "bash") as process:
        shell_pid = int((tmp_path / "up").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert not alive(shell_pid)


@shell
def test_when_nobody_reads_any_more_it_ends_quietly() -> None:
    """`tarmac doctor | head -1`: the terminal that is open then is closed."""
    with running("doctor", "--shell", "bash") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b"Tarmac")
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(20), said) == (141, b"")


def test_its_help_and_its_arguments() -> None:
    page = tarmac("doctor", "--help")
    assert (page.code, "exit status" in page.out, page.out == tarmac("help", "doctor").out) == (0, True, True)
    wrong = [tarmac("doctor", *words) for words in (["--jsno"], ["now"], ["--timeout", "x"], ["--timeout", "0"])]
    assert [each.code for each in wrong] == [2, 2, 2, 2]
    assert "--json" in wrong[0].err
