"""A program goes on with the terminals of another."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.terminals.conftest import Speech
from tests.terminals.daemon.conftest import daemon_pid, wait_gone

from tarmac.errors import BadRequest, SandboxUnavailable, TerminalBusy, TerminalNotFound
from tarmac.policy.sandbox import Bubblewrap
from tarmac.terminals import Settings, attach_terminal, end_terminal, list_terminals, open_terminal
from tarmac.terminals.daemon.kept_terminal import KeptTerminal
from tarmac.terminals.pool import Pool

pytestmark = pytest.mark.shell
QUIET = Settings(start_up_files=False)


async def test_leaving_the_block_leaves_the_shell_running(daemon: Path, tmp_path: Path, speech: Speech) -> None:
    """F1: directory, variables and the running command are there for the next program."""
    (tmp_path / "sub").mkdir()
    async with open_terminal(cwd=tmp_path, shell=speech.shell, outlive=True, settings=QUIET) as terminal:
        await terminal.run(speech.export.format(name="COLOUR", value="green") + "; cd sub")
        await terminal.start("echo began; cat >/dev/null; echo ended; sh -c 'exit 7'")
        id = terminal.id
    again = await attach_terminal(id)
    running = again.current
    assert running is not None
    await running.waiting_for(input=True, timeout=20)
    await running.send("\x04")
    result = await running.result(timeout=20)
    assert (result.output, result.exit_code, result.evidence, result.reason) == ("began\nended\n", 7, "mark", "done")
    after = await again.run("echo $COLOUR")
    assert (after.output, after.cwd) == ("green\n", tmp_path / "sub")
    await again.aclose()
    assert await list_terminals() == []


async def test_results_of_before_can_be_read_again(daemon: Path, tmp_path: Path) -> None:
    """F1: the last commands are among `executions`, with output, code and directory."""
    async with open_terminal(cwd=tmp_path, outlive=True, settings=QUIET) as terminal:
        await terminal.run("echo one; sh -c 'exit 3'")
        await terminal.run("echo two")
        id = terminal.id
    again = await attach_terminal(id)
    told = [(each.command, await each.result()) for each in again.executions]
    assert [(name, each.output, each.exit_code, each.cwd) for name, each in told] == [
        ("echo one; sh -c 'exit 3'", "one\n", 3, tmp_path),
        ("echo two", "two\n", 0, tmp_path),
    ]
    assert b"two" in again.tape.read(0, again.tape.end)
    await again.aclose()


async def test_a_shell_that_ended_meanwhile_tells_its_exit_code(daemon: Path) -> None:
    """F1: the daemon waited for it."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        id = terminal.id
        assert isinstance(terminal, KeptTerminal)
        assert terminal.session is not None
        shell = terminal.session.pid
        await terminal.start("read -r line; exit 4")
        await terminal.type("go\n")
    wait_gone(shell)
    (left,) = await list_terminals()
    assert (left.alive, left.status) == (False, 4)
    again = await attach_terminal(id)
    result = await again.executions[-1].result(timeout=20)
    assert (result.exit_code, result.reason, result.evidence) == (4, "terminal closed", "waitpid")
    fresh = await again.run("echo new")
    assert (fresh.output, fresh.fresh_shell) == ("new\n", True)
    await again.aclose()


async def test_a_terminal_has_one_program_at_a_time(daemon: Path) -> None:
    """F1."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        with pytest.raises(TerminalBusy, match="in use"):
            await attach_terminal(terminal.id)
        with pytest.raises(TerminalNotFound):
            await attach_terminal("t-000000")
        with pytest.raises(TerminalNotFound):
            await attach_terminal("../daemon")
        await terminal.aclose()


async def test_a_command_that_never_reached_the_shell_is_not_run(daemon: Path, tmp_path: Path) -> None:
    """F1: its program was killed between storing it and giving it to the shell."""
    host = f"""
import asyncio, os, signal
from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.process.pty import Pty

async def main():
    async with open_terminal(outlive=True, settings=Settings(start_up_files=False)) as terminal:
        print(terminal.id, flush=True)
        await terminal.run("echo before")
        Pty.write = lambda pty, data: os.kill(os.getpid(), signal.SIGKILL)
        await terminal.run("touch {tmp_path}/ran")

asyncio.run(main())
"""
    id = await asyncio.to_thread(_killed, host)
    terminal = await attach_terminal(id)
    result = await terminal.executions[-1].result(timeout=20)
    assert (result.command, result.reason, result.exit_code) == (f"touch {tmp_path}/ran", "not run", None)
    assert (await terminal.run("ls -A", cwd=tmp_path)).output == ""
    await terminal.aclose()


async def test_with_the_daemon_its_shells_end_and_results_say_so(daemon: Path, tmp_path: Path) -> None:
    """F1: by a reason of their own; also what ignores a hang-up ends. The next command has a fresh shell."""
    async with open_terminal(cwd=tmp_path, outlive=True, settings=QUIET) as terminal:
        job = int((await terminal.run("nohup sleep 100 >/dev/null 2>&1 & echo $!")).output.split()[-1])
        execution = await terminal.start("echo running; sleep 100")
        await execution.waiting_for(pattern="running", timeout=20)
        assert isinstance(terminal, KeptTerminal)
        assert terminal.session is not None
        shell, pid = terminal.session.pid, daemon_pid(daemon)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        result = await execution.result(timeout=20)
        assert (result.reason, result.exit_code, result.output) == ("daemon lost", None, "running\n")
        wait_gone(shell)
        wait_gone(job)
        after = await terminal.run("echo fresh")
        assert (after.output, after.fresh_shell) == ("fresh\n", True)
        await terminal.aclose()


async def test_what_ends_the_shells_of_a_killed_daemon_spares_the_next(daemon: Path, tmp_path: Path) -> None:
    """F1: the next shell of the same terminal, while the killed daemon's watchdog still looks for what it left."""
    async with open_terminal(cwd=tmp_path, outlive=True, settings=QUIET) as terminal:
        assert (await terminal.run("seq 3")).output == "1\n2\n3\n"
        pid = daemon_pid(daemon)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_gone, pid)
        after = await terminal.run("sleep 2; echo fresh", timeout=60)
        assert (after.output, after.exit_code, after.fresh_shell) == ("fresh\n", 0, True)
        await terminal.run("echo kept")
        id = terminal.id
    again = await attach_terminal(id)  # the output of all its shells is still there
    results = [await each.result(timeout=20) for each in again.executions]
    assert [each.output for each in results] == ["1\n2\n3\n", "fresh\n", "kept\n"]
    await again.aclose()


def _killed(program: str) -> str:
    """What a program printed that was killed."""
    found = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=60, check=False)
    assert found.returncode == -signal.SIGKILL
    return found.stdout.decode().strip()


async def test_a_terminal_in_a_sandbox_does_not_outlive_the_program(tmp_path: Path) -> None:
    """F1: this is refused. A new shell in the place of one that ended would be outside."""
    box = Bubblewrap(workspace=tmp_path)
    with pytest.raises(BadRequest, match="sandbox"):
        async with open_terminal(outlive=True, sandbox=box):
            pass
    async with Pool(Settings(sandbox=box, warm_pool=0)) as pool:
        with pytest.raises(BadRequest, match="sandbox"):
            await pool.open(cwd=tmp_path, outlive=True)


async def test_a_shell_outside_is_not_taken_for_one_in_a_sandbox(daemon: Path, tmp_path: Path) -> None:
    """F1."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        id = terminal.id
    with pytest.raises(SandboxUnavailable, match="outside"):
        await attach_terminal(id, settings=Settings(sandbox=Bubblewrap(workspace=tmp_path)))
    await end_terminal(id)


ASSOCIATES = """
import asyncio, sys
from tarmac.terminals import Pool, Settings

async def main():
    async with Pool(Settings(start_up_files=False)) as pool:
        terminal = await pool.open(cwd=sys.argv[1], outlive=True)
        pool.associate(terminal, "editor 1")
        pool.associate(terminal, "editor 2")
        await terminal.run("COLOUR=green; cd sub")
        print(terminal.id, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.usefixtures("daemon")
async def test_the_next_program_knows_the_sessions_of_a_terminal_after_a_kill(tmp_path: Path) -> None:
    """T34: a session that is no task has its terminals after a restart, and its directory."""
    (tmp_path / "sub").mkdir()
    words = [sys.executable, "-c", ASSOCIATES, str(tmp_path)]
    first = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    assert first.stdout is not None
    id = (await first.stdout.readline()).decode().strip()
    first.kill()
    await first.wait()
    async with Pool(QUIET) as pool:
        assert await pool.take_over("somebody else") == []
        (terminal,) = await pool.take_over("editor 2")
        assert (terminal.id, pool.terminals_of("editor 1"), pool.terminals_of("task")) == (id, [terminal], [])
        assert pool.cwd_of("editor 1") == tmp_path / "sub"
        assert (await terminal.run("echo $COLOUR", timeout=60)).output == "green\n"
        await pool.kill(id)


async def test_the_terminals_of_a_task_come_back_where_their_shells_are_gone(daemon: Path, tmp_path: Path) -> None:
    """T34: another program knows whose they are and where they stood; variables come back, and secrets do not.

    What cleans up after the daemon kills all that has the old cookie, so the new shell must not have it.
    """
    (tmp_path / "sub").mkdir()
    settings = Settings(start_up_files=False, outlive=True)
    async with Pool(settings) as pool:
        terminal = await pool.open(cwd=tmp_path, task="task-1")
        await terminal.run("export COLOUR=green API_TOKEN=hunter2; cd sub; echo pain''ted")
        await pool.open(cwd=tmp_path, task="task-2")
        pool.leave_task("task-1")
        pool.leave_task("task-2")
    pid = daemon_pid(daemon)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(wait_gone, pid)
    async with Pool(settings) as pool:
        (restored,) = await pool.take_over("task-1")
        assert restored.cookie != terminal.cookie
        assert pool.terminals_of("task-1") == [restored]
        assert pool.cwd_of("task-1") == tmp_path / "sub"
        assert b"painted" in restored.tape.read(0, restored.tape.end)
        assert (await restored.executions[0].result()).output == "painted\n"
        result = await restored.run("echo $COLOUR-$API_TOKEN", timeout=60)
        assert (result.output, result.cwd, result.fresh_shell) == ("green-\n", tmp_path / "sub", True), result
        for each in await list_terminals():
            await end_terminal(each.id) if each.id != restored.id else await pool.kill(each.id)
