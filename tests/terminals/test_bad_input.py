"""Calls that make no sense, and machines that have nothing left: a clear error, with a hint, and nothing leaks."""

import asyncio
import errno
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tarmac.errors import (
    BadRequest,
    DirectoryUnavailable,
    ShellFailed,
    ShellNotFound,
    TarmacError,
    TerminalBusy,
    TerminalClosed,
    TerminalNotFound,
)
from tarmac.terminals import Settings, TerminalRegistry, open_terminal, run_batch, run_once
from tarmac.terminals.process.child import USED_UP, used_up
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell

both = pytest.mark.parametrize("provider", ["pty", "exec"])


def reads_well(error: TarmacError) -> bool:
    """An error for a person: one line of what, a hint of what next, no trace of Python."""
    text = f"{error.what} {error.hint}"
    return (
        bool(error.what and error.hint) and "\n" not in error.what and "Errno" not in text and "Traceback" not in text
    )


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(holds: Callable[[], bool]) -> None:
    """Look again and again: nobody tells of what this waits for."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


# Directories and shells


@both
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda here: here / "missing", "does not exist"),
        (lambda here: here / "missing" / "deeper", "does not exist"),
        (lambda here: here / "file", "is a file"),
        (lambda here: here / "file" / "below", "is a file"),
        (lambda here: here / "dangling", "symlink"),
        (lambda here: here / "loop", "symlink"),
        (lambda here: here / ("x" * 300), "too long"),
        (lambda here: here / "nul\0", "cannot be the name"),
        (lambda here: Path("/dev/null/x"), "is a file"),
    ],
)
async def test_a_terminal_does_not_open_where_nobody_can_be(
    tmp_path: Path, provider: Provider, make: Callable[[Path], Path], what: str
) -> None:
    """T6: missing, a file, a loop, too long, impossible: said before anything is started."""
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    before = files()
    with pytest.raises(DirectoryUnavailable, match=what) as caught:
        async with open_terminal(cwd=make(tmp_path), provider=provider):
            pytest.fail("it opened")
    assert (reads_well(caught.value), files()) == (True, before)


@both
@pytest.mark.parametrize(
    ("shell", "error"),
    [
        ("no-such-shell", ShellNotFound),
        ("/nowhere/bash", ShellNotFound),
        ("tcsh-is-not-here", ShellNotFound),
        ("cat", ShellNotFound),
        ("/etc", ShellNotFound),
        ("bash\0", BadRequest),
        ("/", BadRequest),
    ],
)
async def test_a_shell_that_is_not_there_is_said_so(
    tmp_path: Path, provider: Provider, shell: str, error: type[TarmacError]
) -> None:
    """T14: with what could be used instead."""
    before = files()
    with pytest.raises(error) as caught:
        async with open_terminal(cwd=tmp_path, shell=shell, provider=provider):
            pytest.fail("it opened")
    assert (bool(caught.value.hint) or error is BadRequest, files()) == (True, before)


async def test_a_shell_that_is_no_program_is_said_so(tmp_path: Path) -> None:
    """T14: a file named bash that cannot be run, or is not a program at all."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").write_text("not a program")
    with pytest.raises(ShellNotFound):
        async with open_terminal(cwd=tmp_path, shell=str(tmp_path / "bin" / "bash")):
            pytest.fail("it opened")
    (tmp_path / "bin" / "bash").chmod(0o755)
    (tmp_path / "bin" / "bash").write_bytes(b"\x7fELF garbage")
    before = files()
    with pytest.raises(ShellFailed) as caught:
        async with open_terminal(cwd=tmp_path, shell=str(tmp_path / "bin" / "bash")):
            pytest.fail("it opened")
    assert (reads_well(caught.value), files()) == (True, before)


async def test_a_shell_that_leaves_at_once_is_said_so(tmp_path: Path) -> None:
    """T21: it was started and went: its status, and what to try."""
    (tmp_path / "bash").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "bash").chmod(0o755)
    before = files()
    with pytest.raises(ShellFailed, match="status 9") as caught:
        async with open_terminal(cwd=tmp_path, shell=str(tmp_path / "bash")):
            pytest.fail("it opened")
    assert (reads_well(caught.value), files()) == (True, before)


async def test_an_unknown_provider_is_refused(tmp_path: Path) -> None:
    """T1: there are two."""
    provider: Any = "ssh"
    with pytest.raises(BadRequest, match="provider"):
        async with open_terminal(cwd=tmp_path, provider=provider):
            pytest.fail("it opened")


# Commands and times


@both
@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("", "empty"),
        ("  \n\t", "empty"),
        ("echo a\0b", "NUL"),
        ("\0", "NUL|empty"),
        ("echo \ud800", "surrogate"),
        (b"echo bytes", "text"),
        (None, "text"),
        (["ls"], "text"),
    ],
)
async def test_a_command_that_cannot_be_run_is_refused(
    tmp_path: Path, provider: Provider, command: Any, what: str
) -> None:
    """T22: by `run` and by `start`; the terminal is none the worse."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        for call in (terminal.run, terminal.start):
            with pytest.raises(BadRequest, match=what):
                await call(command)
        after = await terminal.run("echo fine")
        assert (terminal.busy, len(terminal.history)) == (False, 1)
    assert after.output == "fine\n"


async def test_one_bad_command_of_a_batch_runs_none(tmp_path: Path) -> None:
    """T13, T22: all are looked at before the first is run; a temporary command likewise opens nothing."""
    with pytest.raises(BadRequest, match="empty"):
        await run_batch(["touch ran", ""], cwd=tmp_path)
    with pytest.raises(BadRequest, match="NUL"):
        await run_once("touch ran\0", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@both
@pytest.mark.parametrize("timeout", [0, -1, -0.5, float("nan"), float("-inf")])
async def test_a_time_that_cannot_be_waited_is_refused(tmp_path: Path, provider: Provider, timeout: float) -> None:
    """T18: 0 and less are mistakes, not "at once" and not "for ever"; the command is not started."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        with pytest.raises(BadRequest, match="more than 0") as caught:
            await terminal.run("touch ran", timeout=timeout)
        with pytest.raises(BadRequest, match="more than 0"):
            await terminal.run("touch ran", idle_timeout=timeout)
        assert caught.value.hint
        execution = await terminal.start("sleep 0.05")
        with pytest.raises(BadRequest, match="more than 0"):
            await execution.result(timeout)
        await execution.result(5)
    assert list(tmp_path.iterdir()) == []


@both
async def test_other_senseless_words_are_refused(tmp_path: Path, provider: Provider) -> None:
    """T18: an unknown `on_timeout` runs nothing; a size that cannot be changes nothing."""
    word: Any = "explode"
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        with pytest.raises(BadRequest, match="on_timeout"):
            await terminal.run("touch ran", on_timeout=word)
        for rows, columns in ((0, 80), (24, 0), (-1, -1), (65536, 80)):
            with pytest.raises(BadRequest):
                terminal.resize(rows=rows, columns=columns)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        {"run_timeout": 0},
        {"once_timeout": -1},
        {"idle_timeout": 0},
        {"shell_integration_timeout": 0},
        {"hold_timeout": -2},
        {"rows": 0},
        {"columns": -3},
        {"rows": 70000},
        {"output_line_limit": 0},
        {"output_memory": 0},
    ],
)
def test_settings_that_cannot_be_are_refused(words: dict[str, Any]) -> None:
    """T18, T27: when they are made, not when they hurt."""
    with pytest.raises(BadRequest, match=next(iter(words))):
        Settings(**words)


# Closed terminals


@both
async def test_a_closed_terminal_says_so(tmp_path: Path, provider: Provider) -> None:
    """T14: every verb, with a hint; closing twice is fine."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        execution = await terminal.start("sleep 100")
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: terminal.run("touch ran"),
        lambda: terminal.start("touch ran"),
    ]
    for call in calls:
        with pytest.raises(TerminalClosed, match="closed") as caught:
            await call()
        assert reads_well(caught.value)
    with pytest.raises(TarmacError):
        await execution.send("x")
    await execution.interrupt()
    await execution.kill()
    await terminal.aclose()
    assert (terminal.closed, (await execution.result(1)).reason) == (True, "terminal closed")
    assert list(tmp_path.iterdir()) == []


async def test_every_verb_of_a_closed_pty_terminal_is_refused(tmp_path: Path) -> None:
    """T14: also those that run nothing."""
    async with open_terminal(cwd=tmp_path) as terminal:
        pass
    with pytest.raises(TerminalClosed):
        terminal.resize(rows=10, columns=10)
    with pytest.raises(TerminalClosed):
        await terminal.environment()


@both
async def test_closing_while_a_run_waits_its_turn_ends_both(tmp_path: Path, provider: Provider) -> None:
    """T14, T15: the running one is told `terminal closed`, the waiting one is refused; nobody hangs."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        first = asyncio.create_task(terminal.run("echo ready; sleep 100"))
        await until(lambda: terminal.current is not None and terminal.current.output_bytes > 0)
        second = asyncio.create_task(terminal.run("touch ran"))
        await asyncio.sleep(0)
    done = await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), 5)
    assert getattr(done[0], "reason", done[0]) == "terminal closed"
    assert isinstance(done[1], TerminalClosed | TerminalBusy)
    assert list(tmp_path.iterdir()) == []


async def test_a_cancelled_run_ends_its_command(tmp_path: Path) -> None:
    """T17: the caller is gone, and with it the only handle on it; the terminal is free again."""
    async with open_terminal(cwd=tmp_path) as terminal:
        task = asyncio.create_task(terminal.run("echo ready; sleep 100; touch ran"))
        await until(lambda: terminal.current is not None and terminal.current.output_bytes > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        after = await terminal.run("echo free; jobs", timeout=5)
    assert (after.output, list(tmp_path.iterdir())) == ("free\n", [])


async def test_a_cancelled_opening_leaves_nothing(tmp_path: Path, own_state: Path) -> None:
    """T21: given up while the start-up files take their time."""
    (own_state / ".bashrc").write_text(f"touch {tmp_path}/begun; sleep 100\n")

    async def open_it() -> None:
        async with open_terminal(cwd=tmp_path):
            pytest.fail("it opened")

    before = files()
    task = asyncio.create_task(open_it())
    await until((tmp_path / "begun").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert files() == before


async def test_an_unknown_id_is_not_found_and_killing_it_is_no_error(tmp_path: Path) -> None:
    """T14: "Terminal … not found", with the ids there are."""
    async with TerminalRegistry() as registry:
        known = await registry.open(cwd=tmp_path)
        with pytest.raises(TerminalNotFound, match="Terminal t999 not found") as caught:
            await registry.get("t999").run("touch ran")
        await registry.kill("t999")
        await registry.kill(known.id)
        with pytest.raises(TerminalNotFound):
            await registry.get(known.id).run("touch ran")
    assert (known.id in caught.value.hint, list(tmp_path.iterdir())) == (True, [])


# Nothing left: descriptors, PTYs, processes

# In a process of its own: leave only so many descriptors free (the shell itself has enough), open, run, close, and
# see that each time either all went well or one clear error came; and that as many are open as before.
STARVE = """
import asyncio, json, os, resource, sys, warnings
from tarmac.errors import TarmacError
from tarmac.terminals import open_terminal

warnings.simplefilter("error")
provider, moment = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
filler = []

def files():
    return len(os.listdir("/proc/self/fd"))

def leave(extra):
    try:
        while True:
            filler.append(os.dup(0))
    except OSError:
        pass
    for _ in range(extra):
        os.close(filler.pop())

async def attempt(extra):
    try:
        if moment == "open":
            leave(extra)
        async with open_terminal(cwd="/", provider=provider) as terminal:
            if moment == "run":
                leave(extra)
            result = await terminal.run("echo out | cat; (exit 3)", timeout=10)
            return [result.output, result.exit_code, result.reason]
    except TarmacError as error:
        return [type(error).__name__, bool(error.hint), "Errno" in error.what]
    except BaseException as error:
        return ["UNCLEAR", type(error).__name__, str(error)]
    finally:
        while filler:
            os.close(filler.pop())

async def main():
    async with open_terminal(cwd="/", provider=provider) as terminal:
        await terminal.run("true")
    before = files()
    seen = []
    for extra in range(0, 20):
        outcome = await attempt(extra)
        seen.append([extra, outcome, files() - before])
    print(json.dumps(seen))

asyncio.run(main())
"""


@both
@pytest.mark.parametrize("moment", ["open", "run"])
def test_descriptors_used_up_are_a_clear_error_and_none_is_lost(
    tmp_path: Path, provider: Provider, moment: str, own_state: Path
) -> None:
    """T14: with any number of descriptors left, a terminal opens and works, or says why not; and all come back."""
    env = {**os.environ, "HOME": str(own_state), "TARMAC_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", STARVE, provider, moment],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    outcomes = json.loads(done.stdout)
    fine = ["out\n", 3, "done"]
    assert [each for each in outcomes if each[2] != 0] == []
    assert [each for each in outcomes if each[1] not in (fine, ["OutOfTerminals", True, False])] == []
    assert outcomes[-1][1] == fine
    if moment == "open":
        assert outcomes[0][1][0] == "OutOfTerminals"


@both
def test_a_low_limit_on_descriptors_is_enough_to_work(tmp_path: Path, provider: Provider, own_state: Path) -> None:
    """T14: with `ulimit -n 64` a shell lacks the descriptor (255) where bash likes to keep its terminal."""
    script = (
        "import asyncio, json, os, sys\n"
        "from tarmac.terminals import run_batch, run_once\n"
        "async def main():\n"
        "    once = await run_once('echo one; (exit 3)', provider=sys.argv[1])\n"
        "    batch = await run_batch(['echo two', 'seq 3 | tail -1; false'])\n"
        "    print(json.dumps([[each.output, each.exit_code, each.reason] for each in (once, *batch)]))\n"
        "asyncio.run(main())\n"
    )
    env = {**os.environ, "HOME": str(own_state), "TARMAC_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", sys.executable, "-c", script, provider],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [["one\n", 3, "done"], ["two\n", 0, "done"], ["3\n", 1, "done"]]


# In a mount namespace with a devpts of its own that has three PTYs.
FEW_PTYS = """
mount -t devpts -o newinstance,max=3,ptmxmode=0666 devpts {place} &&
mount --bind {place} /dev/pts && mount --bind {place}/ptmx /dev/ptmx && exec {python} -c "$1"
"""
MANY = """
import asyncio, json, os
from contextlib import AsyncExitStack
from tarmac.errors import TarmacError
from tarmac.terminals import open_terminal

async def main():
    async with AsyncExitStack() as stack:
        opened, before = [], len(os.listdir("/proc/self/fd"))
        try:
            for _ in range(5):
                before = len(os.listdir("/proc/self/fd"))
                opened.append(await stack.enter_async_context(open_terminal(cwd="/")))
        except TarmacError as error:
            left = len(os.listdir("/proc/self/fd")) - before
            outcome = [type(error).__name__, error.hint, left]
        alive = [(await each.run("echo on")).output for each in opened]
    async with open_terminal(cwd="/") as terminal:
        again = (await terminal.run("echo again")).output
    print(json.dumps([len(opened), outcome, alive, again]))

asyncio.run(main())
"""


def test_ptys_used_up_are_a_clear_error(tmp_path: Path, own_state: Path) -> None:
    """T14: the terminals that are open go on; once they are closed there is room again."""
    place = tmp_path / "pts"
    place.mkdir()
    script = FEW_PTYS.format(place=place, python=shlex.quote(sys.executable))
    env = {**os.environ, "HOME": str(own_state), "TARMAC_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        ["unshare", "--mount", *(["--map-root-user"] if os.getuid() else []), "sh", "-c", script, "sh", MANY],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        check=False,
    )
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        if os.environ.get("TARMAC_REQUIRE_ALL"):
            pytest.fail(f"no devpts of our own here: {done.stderr}")
        pytest.skip(f"no devpts of our own here: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")
    count, outcome, alive, again = json.loads(done.stdout)
    assert (count, alive, again) == (3, ["on\n"] * 3, "again\n")
    assert (outcome[0], "PTYs" in outcome[1], outcome[2]) == ("OutOfTerminals", True, 0)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_each_way_to_be_used_up_has_its_own_hint(number: int) -> None:
    """T14: whatever the kernel is out of. PTYs and descriptors are used up for real above."""
    error = used_up(OSError(number, os.strerror(number)), "cannot open a terminal")
    assert (number in USED_UP, reads_well(error)) == (True, True)


@both
async def test_a_disk_that_takes_nothing_costs_the_file_and_not_the_result(tmp_path: Path, provider: Provider) -> None:
    """T27: output that cannot be spooled is still in the result, with a note."""
    spools = tmp_path / "spools"
    spools.mkdir(mode=0o700)
    async with open_terminal(cwd=tmp_path, provider=provider, settings=Settings(spool_directory=spools)) as terminal:
        await terminal.run("echo first")
        for each in spools.iterdir():
            each.rename(tmp_path / "moved")
        result = await terminal.run("seq 20000; (exit 3)", timeout=10)
    assert (result.exit_code, result.output.splitlines()[0], result.output.splitlines()[-1]) == (3, "1", "20000")
    assert any("disk" in note for note in result.notes)


@both
async def test_a_state_directory_that_cannot_be_made_costs_no_result(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T27: a file is where it should be: refused before anything runs, or run with a note; never something between."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TARMAC_STATE_DIR", str(tmp_path / "file"))
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        for _ in range(2):
            try:
                result = await terminal.run("echo out; touch ran; (exit 3)", timeout=3)
            except DirectoryUnavailable as error:
                assert (reads_well(error), (tmp_path / "ran").exists()) == (True, False)
            else:
                assert (result.output, result.exit_code, result.reason) == ("out\n", 3, "done")
                assert (any("disk" in note for note in result.notes), result.output_path) == (True, None)
        (tmp_path / "file").unlink()
        after = await terminal.run("echo fine", timeout=3)
    assert (after.output, after.exit_code) == ("fine\n", 0)


async def test_a_time_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """T18: `timeout="5"` says what is wrong."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        for wrong in ("5", True, [5]):
            with pytest.raises(BadRequest, match=r"timeout is a number of seconds, not"):
                await terminal.run("true", timeout=wrong)  # type: ignore[arg-type]
