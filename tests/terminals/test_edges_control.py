"""Signals, modes, jobs, sizes and clocks of a real terminal (research/terminals.md D, 42–44, 46, 50–53, 57, 62)."""

import asyncio
import os
import re
import time
from pathlib import Path

import pytest

import tarmac.terminals
from tarmac.errors import ExecutionEnded, TerminalBusy
from tarmac.terminals import Execution, Settings, open_terminal
from tarmac.terminals.process import processes, signals
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell

both = pytest.mark.parametrize("provider", ["pty", "exec"])
SOON = 1.0


PATIENCE = 30.0  # seconds: Python alone takes five to start on a machine with a load of 40


async def until(execution: Execution, marker: str) -> str:
    """Follow its live output until `marker` was printed."""
    seen = ""
    async with asyncio.timeout(PATIENCE):
        async for chunk in execution:
            seen += str(chunk)
            if marker in seen:
                return seen
    raise AssertionError(f"it ended without {marker!r}: {seen!r}")


def zombies() -> set[int]:
    """Dead children of this process that nobody has reaped."""
    found: set[int] = set()
    for each in Path("/proc/self/task").glob("*/children"):
        found.update(pid for pid in map(int, each.read_text().split()) if processes.state(pid) == "Z")
    return found


async def gone(pid: int) -> bool:
    """Whether a process ends within two seconds."""
    end = time.monotonic() + 2
    while processes.look(pid) is not None:
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.01)
    return True


# --- D42, Input for what has ended ---


@both
async def test_input_for_a_finished_command_is_refused_with_its_end(tmp_path: Path, provider: Provider) -> None:
    """T14, D42: a typed error that tells how it ended; nothing reaches the shell or the next command."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        execution = await terminal.start("(exit 3)")
        await execution.result(5)
        with pytest.raises(ExecutionEnded, match="exit code 3") as caught:
            await execution.send("touch typed\n")
        other = await terminal.start("echo ready; sleep 0.05; ls")
        with pytest.raises(ExecutionEnded):
            await execution.send("touch typed\n")
        result = await other.result(5)
    assert (result.output, bool(caught.value.hint)) == ("ready\n", True)


@both
async def test_interrupt_and_kill_after_the_end_touch_nobody(tmp_path: Path, provider: Provider) -> None:
    """T17, D42: not even the command that runs now."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        first = await terminal.start("true")
        await first.result(5)
        second = await terminal.start("echo ready; sleep 0.2; echo through")
        await until(second, "ready")
        await first.interrupt()
        await first.kill()
        first.close_input()
        result = await second.result(5)
    assert (result.output, result.exit_code, result.reason) == ("ready\nthrough\n", 0, "done")


async def test_lines_a_command_did_not_read_are_not_run_by_the_shell(tmp_path: Path) -> None:
    """T14, D42: typed while it ran, left unread at its end: never a command, never the next one's input."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("echo ready; sleep 0.2")
        await until(execution, "ready")
        await execution.send("touch typed\necho typed\n")
        await execution.result(5)
        after = await terminal.run("ls; read -t 0.05 x; echo [$x]")
    assert after.output == "[]\n"


# --- D43, D44, The terminal's modes ---


@pytest.mark.parametrize(
    "command",
    [
        "stty -echo",
        "stty raw",
        "stty raw -echo",
        "stty -onlcr -opost",
        "stty -isig",
        "stty intr x eof y",
        "stty 0 2>/dev/null; true",
        "stty -icrnl",
        "stty ixon",
        "stty cols 10 rows 5; stty cols 120 rows 40",
    ],
)
async def test_modes_left_behind_are_undone_before_the_next_command(tmp_path: Path, command: str) -> None:
    """Whatever `stty` did, the next command starts on a sane terminal, and comes through clean."""
    async with open_terminal(cwd=tmp_path) as terminal:
        before = await terminal.run("stty -g")
        left = await terminal.run(command, timeout=4, on_timeout="kill")
        clean = await terminal.run("echo one; echo two; (exit 3)", timeout=4, on_timeout="kill")
        after = await terminal.run("stty -g", timeout=4, on_timeout="kill")
    assert (left.exit_code, left.reason) == (0, "done")
    assert (clean.output, clean.exit_code, clean.reason) == ("one\ntwo\n", 3, "done")
    assert (after.output, after.fresh_shell) == (before.output, False)


async def test_a_terminal_that_gives_no_input_is_mended_or_its_shell_replaced(tmp_path: Path) -> None:
    """With `min 0` a read returns at once with nothing, which is the end of input to a shell: it may be gone
    before anybody could help it. Either way that is said, and the next command is clean."""
    async with open_terminal(cwd=tmp_path) as terminal:
        left = await terminal.run("stty -icanon min 0 time 0", timeout=4, on_timeout="kill")
        clean = await terminal.run("echo one; echo two; (exit 3)", timeout=4, on_timeout="kill")
    assert (left.exit_code, left.reason) in ((0, "done"), (0, "terminal closed"))
    assert (clean.output, clean.exit_code, clean.reason) == ("one\ntwo\n", 3, "done")
    assert clean.fresh_shell == bool(clean.notes)


async def test_a_program_that_dies_in_raw_mode_leaves_a_sane_terminal(tmp_path: Path) -> None:
    """An editor killed in the middle; it can still be interrupted, and the next command is clean."""
    script = "import os, tty; tty.setraw(0); os.write(1, b'ready'); os.kill(os.getpid(), 9)"
    async with open_terminal(cwd=tmp_path) as terminal:
        died = await terminal.run(f'python3 -c "{script}"')
        after = await terminal.run("echo a; echo b")
    assert (died.exit_code, died.signal, after.output) == (137, "SIGKILL", "a\nb\n")


async def test_ctrl_s_freezes_nothing(tmp_path: Path) -> None:
    """Flow control is off: Ctrl-S is a character like another."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("echo ready; read -r x; printf '%q\\n' \"$x\"")
        await until(execution, "ready")
        await execution.send("\x13\n")
        result = await execution.result(5)
    assert (result.output.splitlines()[-1], result.exit_code, result.reason) == (r"$'\023'", 0, "done")


async def test_a_terminal_that_was_frozen_on_purpose_is_thawed(tmp_path: Path) -> None:
    """With `stty ixon` Ctrl-S does stop the output; an interrupt still ends the command, the next is clean."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("stty ixon; echo ready; read x; echo more")
        await until(execution, "ready")
        await execution.send("\x13\n")
        frozen = await execution.result(0.3, on_timeout="interrupt")
        after = await terminal.run("echo thawed", timeout=4, on_timeout="kill")
    assert frozen.reason in ("done", "timeout", "interrupted", "awaiting input")
    assert (after.output, after.exit_code, after.reason) == ("thawed\n", 0, "done")


# --- D46, Interrupt ---


@both
async def test_an_interrupt_ends_the_command_and_not_the_shell(tmp_path: Path, provider: Provider) -> None:
    """T17, D46: 130 by SIGINT, soon, and the terminal keeps its state."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        await terminal.run("kept=yes")
        execution = await terminal.start("echo ready; sleep 100; echo never")
        await until(execution, "ready")
        before = time.monotonic()
        await execution.interrupt()
        took = time.monotonic() - before
        result = await execution.result(5)
        after = await terminal.run("echo ${kept-nothing}")
    assert (result.exit_code, result.signal, result.reason) == (130, "SIGINT", "interrupted")
    assert ("never" in result.output, took < 0.2, after.fresh_shell) == (False, True, False)
    assert after.output == ("yes\n" if provider == "pty" else "nothing\n")


# --- D50, Stopped ---


async def test_a_shell_that_stops_itself_is_continued(tmp_path: Path) -> None:
    """Nobody could type `fg` at it; the host continues it, and the command goes on."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("echo before; kill -STOP $$; echo after; (exit 3)", timeout=5, on_timeout="kill")
        again = await terminal.run("kill -TSTP $$; echo on", timeout=5, on_timeout="kill")
    assert (result.output, result.exit_code, result.reason) == ("before\nafter\n", 3, "done")
    assert (again.output.splitlines()[-1], again.exit_code, again.fresh_shell) == ("on", 0, False)


async def test_an_end_that_is_yet_to_be_read_is_not_asked_for(tmp_path: Path) -> None:
    """T15, T16: on a busy machine the kernel knows of the prompt before the host has read the marks; asked then, the
    shell's answer would take the place of the output."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        session = terminal.session
        execution = await terminal.start("read x; echo after; (exit 3)")
        await execution.waiting_for(input=True)
        session.pty.pause()
        await execution.send("on\n")
        while not session.at_prompt() or session.pty.has_unread_input():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.005)
        terminal.monitor.look(True)
        session.pty.resume()
        result = await execution.result(5)
    assert (result.output.splitlines()[-1:], result.exit_code, result.evidence) == (["after"], 3, "mark")


async def test_a_shell_stopped_between_commands_is_continued(tmp_path: Path) -> None:
    """Stopped by a background job of its own, while nothing runs."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        pid = terminal.session.pid
        await terminal.run("true")
        os.kill(pid, 19)
        while processes.state(pid) != "T":  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.005)
        result = await terminal.run("echo awake", timeout=5, on_timeout="kill")
    assert (result.output, result.exit_code, result.fresh_shell) == ("awake\n", 0, False)


async def test_a_stopped_command_is_told_and_can_go_on(tmp_path: Path) -> None:
    """T15, D50: reason `stopped`; `fg` brings it back, and its end is `fg`'s."""
    async with open_terminal(cwd=tmp_path) as terminal:
        stopped = await terminal.run("sh -c 'echo one; kill -STOP $$; echo two; exit 5'")
        jobs = await terminal.run("jobs -s | wc -l")
        back = await terminal.run("fg")
        after = await terminal.run("jobs | wc -l")
    assert (stopped.output.splitlines()[0], stopped.exit_code, stopped.signal) == ("one", 147, "SIGSTOP")
    assert (stopped.reason, stopped.evidence, jobs.output) == ("stopped", "mark", "1\n")
    assert (back.output.splitlines()[-1], back.exit_code, back.reason, after.output) == ("two", 5, "done", "0\n")


async def test_ctrl_z_stops_the_command_and_kill_cleans_it_up(tmp_path: Path) -> None:
    """T15, D50: the key itself, sent as input."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("sh -c 'echo $$; exec sleep 100'")
        pid = int((await until(execution, "\n")).split()[0])
        await execution.send("\x1a")
        stopped = await execution.result(5)
        state = processes.state(pid)
        killed = await terminal.run("kill %1")
        ended = await gone(pid)
        after = await terminal.run("echo clean")
    assert (stopped.reason, stopped.exit_code, stopped.signal, state) == ("stopped", 148, "SIGTSTP", "T")
    assert (killed.exit_code, ended, after.output.splitlines()[-1]) == (0, True, "clean")


# --- D51, Signals ---


@both
@pytest.mark.parametrize(
    ("signal", "code"), [("SEGV", 139), ("KILL", 137), ("TERM", 143), ("ABRT", 134), ("PIPE", 141), ("INT", 130)]
)
async def test_a_child_that_a_signal_ended_is_told_by_its_name(
    tmp_path: Path, provider: Provider, signal: str, code: int
) -> None:
    """T14, D51: code and signal; the shell lives, and says in the output what it says to a person."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(f"ulimit -c 0; sh -c 'kill -{signal} $$'")
        after = await terminal.run("echo alive")
    assert (result.exit_code, result.signal, result.reason) == (code, f"SIG{signal}", "done")
    assert (after.output, after.fresh_shell) == ("alive\n", False)


@both
async def test_an_exit_code_above_128_that_names_no_signal_names_none(tmp_path: Path, provider: Provider) -> None:
    """T14, D51: 255 is what ssh, git and many more say for "failed"."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        results = [await terminal.run(f"(exit {code})") for code in (128, 200, 255)]
    assert [(each.exit_code, each.signal) for each in results] == [(128, None), (200, None), (255, None)]


# --- D52, What is left ---


@both
async def test_200_commands_leave_neither_zombies_nor_descriptors(tmp_path: Path, provider: Provider) -> None:
    """T17, D52: D says 1,000; a leak of one each shows as well in 200."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        await terminal.run("/bin/true | cat")
        files = len(list(Path("/proc/self/fd").iterdir()))
        codes = {(await terminal.run(f"/bin/echo {n} | cat")).exit_code for n in range(200)}
        assert (codes, len(list(Path("/proc/self/fd").iterdir())) - files, zombies()) == ({0}, 0, set())
        if isinstance(terminal, PtyTerminal) and terminal.session is not None:
            below = [each for _, each in processes.below(terminal.session.pid)]
            assert below == []


async def test_a_timeout_ends_the_commands_tree_and_nothing_else(tmp_path: Path) -> None:
    """T17, D52: jobs of earlier commands stay; grandchildren in other sessions go."""
    async with open_terminal(cwd=tmp_path) as terminal:
        job = int((await terminal.run("sleep 100 & echo $!")).output.split()[-1])
        result = await terminal.run(
            "setsid sleep 100 & a=$!; (trap '' TERM INT HUP; echo $BASHPID; sleep 100)", timeout=0.3, on_timeout="kill"
        )
        inner = int(re.findall(r"^(\d+)$", result.output, re.MULTILINE)[-1])
        after = await terminal.run("jobs -r | wc -l; echo alive")
        alive = processes.look(job) is not None
        assert (result.reason, alive, await gone(inner)) == ("timeout", True, True)
        assert (after.output, after.fresh_shell) == ("1\nalive\n", False)
    assert await gone(job)


async def test_a_command_left_running_makes_the_terminal_busy(tmp_path: Path) -> None:
    """T18, D52: the wait ends, the command does not; nothing else is run into it; its end is the true one."""
    async with open_terminal(cwd=tmp_path) as terminal:
        left = await terminal.run("sleep 0.4; echo end; (exit 3)", timeout=0.1)
        with pytest.raises(TerminalBusy):
            await terminal.run("echo other")
        assert terminal.current is not None
        result = await terminal.current.result(5)
        after = await terminal.run("echo other")
    assert (left.reason, left.exit_code, left.running, left.evidence) == ("left running", None, True, "unknown")
    assert (result.output, result.exit_code, after.output) == ("end\n", 3, "other\n")


async def test_silence_ends_the_wait_as_idle(tmp_path: Path) -> None:
    """T18: output restarts that clock; the total limit goes on."""
    async with open_terminal(cwd=tmp_path, settings=Settings(idle_timeout=0.3)) as terminal:
        busy = await terminal.run("for i in 1 2 3 4; do echo $i; sleep 0.1; done")
        idle = await terminal.run("echo once; sleep 100")
        assert terminal.current is not None
        await terminal.current.kill()
    assert (busy.reason, idle.reason, idle.output, idle.running) == ("done", "idle", "once\n", True)


# --- D53, Background jobs ---


@pytest.mark.parametrize(
    "command",
    [
        "nohup sleep 100 >/dev/null 2>&1 & echo $! >pid",
        "nohup sleep 100 & echo $! >pid",
        "sleep 100 & echo $! >pid",
        "(sleep 100 & echo $! >pid)",
        "sleep 100 & echo $! >pid; disown -a",
        "(setsid sh -c 'echo $$ >pid; exec sleep 100' &) ; until [[ -s pid ]]; do :; done",
    ],
)
@both
async def test_a_background_job_holds_up_nobody_and_ends_with_the_terminal(
    tmp_path: Path, provider: Provider, command: str
) -> None:
    """T17, D53: the call returns at once though the job holds the same descriptors; closing ends it, also a daemon."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(command, timeout=4, on_timeout="kill")
        pid = int((tmp_path / "pid").read_text())
        alive = processes.look(pid) is not None
        after = await terminal.run("echo on")
    assert (result.exit_code, result.reason, result.duration < SOON, alive) == (0, "done", True, True)
    left = processes.sweep(session=-1, cookie=f"TARMAC_TERMINAL={terminal.cookie}".encode())
    assert (await gone(pid), left) == (True, set())
    assert after.output == "on\n" or command.startswith("nohup sleep 100 &")  # it may still be telling of its file


@both
@pytest.mark.parametrize(
    "command",
    [
        "echo ready; sleep 100",
        "trap '' INT TERM HUP; echo ready; sleep 100; sleep 100; sleep 100",
        "trap '' INT TERM HUP; echo ready; while :; do sleep 100; done",
        "trap 'sleep 100' EXIT HUP TERM; echo ready; sleep 100",
        "(trap '' TERM; echo ready; while :; do setsid sleep 100; done); sleep 100",
        "(setsid sh -c 'while :; do sleep 100; done' &); echo ready; sleep 100",
        "echo ready; while :; do :; done",
        "echo ready; while :; do (sleep 100 &); sleep 0.01; done",
    ],
)
async def test_closing_a_terminal_ends_all_that_runs_and_says_so(
    tmp_path: Path, provider: Provider, command: str
) -> None:
    """T17, D53: the running command's result is `terminal closed`, without an invented code of 0; nothing is left,
    also not the next of a list, a loop that goes on, a trap, or who ignores every signal."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        execution = await terminal.start(command)
        await until(execution, "ready")
        before = time.monotonic()
    took = time.monotonic() - before
    result = await execution.result(1)
    left = processes.sweep(session=-1, cookie=f"TARMAC_TERMINAL={terminal.cookie}".encode())
    signals.signal_all(left, 9)
    assert (result.reason, result.exit_code != 0, left, took < 3) == ("terminal closed", True, set(), True)


# --- D57, Size ---


async def test_a_resize_during_output_loses_nothing(tmp_path: Path) -> None:
    """Every line is there, in order; programs see the new size."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("stty size; for ((i = 0; i < 3000; i++)); do echo line $i; done; stty size")
        sizes = [(24, 80), (50, 200), (10, 20), (33, 99)]
        for rows, columns in sizes:
            terminal.resize(rows=rows, columns=columns)
            await asyncio.sleep(0)
        result = await execution.result(10)
        assert result.output_path is not None
        lines = result.output_path.read_text().split()
        after = await terminal.run("stty size; tput cols")
    assert [int(each) for each in lines if each.isdigit()][2:-2] == list(range(3000))
    assert (lines[-2:], after.output) == (["33", "99"], "33 99\n99\n")


async def test_columns_follows_a_resize(tmp_path: Path) -> None:
    """`$COLUMNS` and `$LINES` are right at the start, and in the command after a resize."""
    async with open_terminal(cwd=tmp_path, settings=Settings(rows=30, columns=100)) as terminal:
        first = await terminal.run("stty size; echo $LINES $COLUMNS")
        terminal.resize(rows=55, columns=144)
        second = await terminal.run("echo $LINES $COLUMNS; stty size")
        inner = await terminal.run("bash -c 'echo ${COLUMNS-unset}'; tput cols")
    assert (first.output, second.output) == ("30 100\n30 100\n", "55 144\n55 144\n")
    assert inner.output == "unset\n144\n"


async def test_a_program_is_told_of_a_resize_while_it_waits(tmp_path: Path) -> None:
    """SIGWINCH reaches the foreground, the half-typed answer is not lost."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start(
            "python3 -c \"import signal; signal.signal(signal.SIGWINCH, lambda *_: print('resized', flush=True)); "
            "print('ready', flush=True); print('got', input())\""
        )
        await until(execution, "ready")
        # A signal just before Python's read would be handled only after it.
        assert (await execution.waiting_for(input=True, timeout=PATIENCE)).what == "input"
        await execution.send("ans")
        terminal.resize(rows=20, columns=60)
        await until(execution, "resized")
        await execution.send("wer\n")
        result = await execution.result(PATIENCE)
    assert (result.output.splitlines()[-1], result.exit_code) == ("got answer", 0)


# --- D62, The clock ---


def test_only_the_monotonic_clock_measures_waits() -> None:
    """T18, D62: a jump of the wall clock moves no deadline: `time.time` is only for the date of a past command
    and the age of a file."""
    found = {
        (source.name, line.strip())
        for source in Path(tarmac.terminals.__file__).parent.glob("*.py")
        for line in source.read_text().splitlines()
        if re.search(r"\btime\.time\(|datetime|from time import .*\btime\b", line) and not line.strip().startswith("#")
    }
    dates = ("began", "older_than", "Switch(at=", "at: float  # time.time()")
    assert {(name, line) for name, line in found if not any(each in line for each in dates)} == set()
