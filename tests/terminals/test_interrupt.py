"""Ctrl-C at any moment: the command ends as interrupted, with its code; the shell lives and is in step."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest
from tests.terminals.conftest import Speech

from tarmac.errors import ExecutionEnded
from tarmac.terminals import Execution, Settings, Terminal, open_terminal

pytestmark = pytest.mark.shell

MOMENTS = {
    "sleep": "echo ready; sleep 100",
    "python": "python3 -c 'import time; print(\"ready\", flush=True); time.sleep(100)'",
    "a loop in the shell itself": "echo ready; while :; do :; done",
    "read": "echo ready; read x",
    "inside a function": "f() { echo ready; sleep 100; echo never; }; f; echo never",
    "prompt command cleared": "PROMPT_COMMAND=; echo ready; sleep 100",
    "prompt cleared": "PS1='$ '; echo ready; sleep 100",
    "both cleared": "PROMPT_COMMAND=; PS1='$ '; echo ready; sleep 100",
    "both cleared, in the shell itself": "PROMPT_COMMAND= PS1=; echo ready; while :; do :; done",
    "the second of a list": "echo ready; sleep 100; echo never; sleep 100",
    "a pipeline": "echo ready; sleep 100 | cat | sleep 100",
    "a loop of short programs": "echo ready; while :; do /bin/true; done",
    "a subshell": "(echo ready; sleep 100; echo never)",
    "under set -e": "set +e; echo ready; sleep 100",
    "standard error elsewhere": "echo ready; exec 2>/dev/null; sleep 100",
}


async def until(execution: Execution, text: str) -> str:
    """Follow its output until `text` was printed."""
    seen = ""
    async with asyncio.timeout(60):
        async for chunk in execution:
            seen += str(chunk)
            if text in seen:
                return seen
    raise AssertionError(f"it ended without printing {text!r}: {seen!r}")


async def until_true(fact: Callable[[], bool]) -> None:
    """Wait for a fact that nobody tells."""
    async with asyncio.timeout(60):
        while not fact():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def in_step(terminal: Terminal) -> bool:
    """Whether the next commands get their own output and codes."""
    first = await terminal.run("echo one; (exit 3)", timeout=60)
    second = await terminal.run("echo two", timeout=60)
    return (first.exit_code, second.exit_code, second.output) == (3, 0, "two\n")


@pytest.mark.parametrize("command", MOMENTS.values(), ids=MOMENTS.keys())
async def test_ctrl_c_alone_ends_the_command_and_the_shell_lives(tmp_path: Path, command: str) -> None:
    """T17, D46: interrupted at any moment, with its code, and still in step."""
    async with open_terminal(cwd=tmp_path, settings=Settings(interrupt_grace=30)) as terminal:
        execution = await terminal.start(command)
        await until(execution, "ready")
        await execution.interrupt()
        result = await execution.result(timeout=60)
        assert (result.exit_code, result.signal, result.reason) == (130, "SIGINT", "interrupted")
        assert result.notes == ()  # nothing harder was needed
        assert "never" not in result.output
        assert result.evidence in ("mark", "asked")
        assert await in_step(terminal)
        assert not (await terminal.run("echo same shell")).fresh_shell


async def test_an_interrupt_at_a_random_moment_never_puts_results_out_of_step(tmp_path: Path) -> None:
    """T17: also before the command has begun, and just as it ends."""
    async with open_terminal(cwd=tmp_path) as terminal:
        for turn in range(30):
            execution = await terminal.start(f"sleep 0.00{turn % 10}; echo {turn}")
            for _ in range(turn):
                await asyncio.sleep(0)
            await execution.interrupt()
            result = await execution.result(timeout=60)
            assert (result.exit_code, result.reason) in ((0, "done"), (130, "interrupted"))
            assert (await terminal.run(f"echo after {turn}")).output == f"after {turn}\n"


TRAP = 'trap "trap - INT; sleep 0.1 && echo bye; exit 3" INT'
LAST_WORDS = {
    "a program": f"sh -c '{TRAP}; echo ready; while :; do sleep 0.01; done'",
    "a subshell": f"({TRAP}; sh -c 'echo ready; exec sleep 100')",
    "a pipeline": f"sh -c '{TRAP}; echo ready; while :; do sleep 0.01; done' | sh -c 'trap \"\" INT; cat; exit 3'",
}


@pytest.mark.parametrize("command", LAST_WORDS.values(), ids=LAST_WORDS.keys())
async def test_a_program_that_was_just_started_gets_one_ctrl_c_and_can_say_its_last_words(
    tmp_path: Path, command: str
) -> None:
    """T17: a second one would end it in the middle of them."""
    async with open_terminal(cwd=tmp_path, settings=Settings(interrupt_grace=30)) as terminal:
        for _ in range(3):
            execution = await terminal.start(command)
            await until(execution, "ready")
            await execution.interrupt()
            result = await execution.result(timeout=60)
            assert (result.output.split(), result.exit_code) == (["ready", "bye"], 3)  # bash may add an empty line


OWN_WORDS = {
    "what notes a command's end": "__tarmac_ended=; __tarmac_done 0",
    "what comes before a prompt": "__tarmac_prompt",
    "what puts the hooks right": "PROMPT_COMMAND=true; __tarmac_hook",
}


@pytest.mark.parametrize("words", OWN_WORDS.values(), ids=OWN_WORDS.keys())
async def test_an_interrupt_in_the_middle_of_our_own_words_never_ends_the_shell(tmp_path: Path, words: str) -> None:
    """T14: bash ends when an interrupt meets it inside `x=(…)`; with one such word, every seventh does here."""
    async with open_terminal(cwd=tmp_path) as terminal:
        shell = (await terminal.run("echo $$")).output
        for turn in range(100):
            execution = await terminal.start(f"echo ready; while :; do {words}; done")
            await until(execution, "ready")
            for _ in range(turn):
                await asyncio.sleep(0)
            await execution.interrupt()
            await execution.result(timeout=60)
        assert (await terminal.run("echo $$", timeout=60)).output == shell
        assert await in_step(terminal)


BETWEEN_WORDS = {
    "bash": "f() { return 0; }; echo ready; while :; do f; [[ -z $nothing && 1 -gt 0 ]]; eval x=1; done",
    "zsh": "f() { return 0; }; echo ready; while :; do f; [[ -z $nothing && 1 -gt 0 ]]; eval x=1; done",
    "fish": "function f; return 0; end; echo ready; while true; f; test -z nothing -o 1 -gt 0; eval set x 1; end",
}


async def test_an_interrupt_between_two_words_is_never_told_as_a_status_of_its_own(
    tmp_path: Path, speech: Speech
) -> None:
    """T14, T15: zsh then leaves 0 to 3 in `$?`, one time in some fifty: the command was interrupted, not done."""
    ends = set()
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for turn in range(200):
            execution = await terminal.start(BETWEEN_WORDS[speech.shell])
            await until(execution, "ready")
            for _ in range(turn):
                await asyncio.sleep(0)
            await execution.interrupt()
            result = await execution.result(timeout=60)
            ends.add((result.exit_code, result.reason, result.output.strip()))
    assert ends == {(130, "interrupted", "ready")}


@pytest.mark.skipif(which("zsh") is None, reason="needs zsh; bash and fish skip no hooks")
async def test_a_prompt_whose_hooks_were_skipped_is_no_output(tmp_path: Path) -> None:
    """T14: after an interrupt at the end of a loop zsh shows its prompt and runs no hook. Here there is none to run."""
    async with open_terminal(cwd=tmp_path, shell="zsh") as terminal:
        await terminal.run("PS1='a prompt> '")
        execution = await terminal.start("precmd_functions=(); echo ready; while :; do sleep 0.01; done")
        await until(execution, "ready")
        await execution.interrupt()
        result = await execution.result(timeout=60)
        assert (result.exit_code, result.reason, result.output) == (130, "interrupted", "ready\n")
        shown = await terminal.run('print -rn -- "$PS1"; print -P " $PS1"', timeout=60)
        assert shown.output == "a prompt>  a prompt> \n"  # the mark in it is not shown, and holds nothing back
        assert await in_step(terminal)


async def test_an_interrupt_after_the_end_sends_nothing(tmp_path: Path) -> None:
    """T17: no spurious 130 for the next command, which sees the status of the last."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("(exit 7)")
        result = await execution.result(timeout=60)
        await execution.interrupt()
        await execution.kill()
        assert (await execution.result()) == result
        assert (await terminal.run("echo $?")).output == "7\n"
        with pytest.raises(ExecutionEnded):
            await execution.send("x")


async def test_a_command_that_ignores_ctrl_c_is_terminated_then_killed(tmp_path: Path) -> None:
    """T17: each rung of the ladder, and nothing of the tree is left."""
    settings = Settings(interrupt_grace=0.2, terminate_grace=0.2)
    async with open_terminal(cwd=tmp_path, settings=settings) as terminal:
        execution = await terminal.start(
            "bash -c \"trap '' INT TERM; echo ready; while :; do sleep 6161; done\"; echo never"
        )
        await until(execution, "ready")
        await execution.interrupt()
        result = await execution.result(timeout=60)
        assert result.reason == "interrupted"
        assert any("Ctrl-C" in note for note in result.notes)
        left = await terminal.run("pgrep -f 'sleep 616[1]' || echo none")
        assert "none" in left.output


async def test_a_shell_that_ignores_everything_itself_is_killed_and_replaced(tmp_path: Path) -> None:
    """T17: the last rung is the shell; the next command gets a fresh one and is told."""
    settings = Settings(interrupt_grace=0.1, terminate_grace=0.1)
    async with open_terminal(cwd=tmp_path, settings=settings) as terminal:
        execution = await terminal.start("trap '' INT; echo ready; while :; do :; done")
        await until(execution, "ready")
        await execution.interrupt()
        result = await execution.result(timeout=60)
        assert (result.reason, result.signal, result.evidence) == ("interrupted", "SIGKILL", "waitpid")
        assert (await terminal.run("echo back")).fresh_shell


async def test_kill_ends_everything_the_command_started_and_nothing_else(tmp_path: Path) -> None:
    """T17: also what moved to another session; an older background job stays."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("sleep 4242 & disown")
        execution = await terminal.start(
            "setsid sleep 5151 & (setsid nohup sleep 5151 >/dev/null 2>&1 &) ; echo ready; sleep 5151; echo never"
        )
        await until(execution, "ready")
        await execution.kill()
        result = await execution.result(timeout=60)
        assert (result.reason, "never" in result.output) == ("killed", False)
        assert (await terminal.run("pgrep -f 'sleep 515[1]' | wc -l")).output.strip() == "0"
        assert (await terminal.run("pgrep -f 'sleep 424[2]' | wc -l")).output.strip() == "1"


async def test_the_rest_of_a_killed_list_never_runs(tmp_path: Path, speech: Speech) -> None:
    """T17: bash went on after one kill in twenty that came as it started the program, on a busy machine."""
    endings = set()
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for _ in range(60):
            execution = await terminal.start("setsid sleep 5252 & \necho ready; sleep 5252; echo never")
            await until(execution, "ready")
            await execution.kill()
            result = await execution.result(timeout=60)
            endings.add((result.reason, "never" in result.output))
    assert endings == {("killed", False)}


async def test_a_timeout_leaves_interrupts_or_kills_as_asked(tmp_path: Path) -> None:
    """T18: the caller chooses for each call."""
    async with open_terminal(cwd=tmp_path) as terminal:
        left = await terminal.run("echo a; sleep 100", timeout=0.3)
        assert (left.reason, left.exit_code, left.output) == ("left running", None, "a\n")
        assert terminal.busy
        assert terminal.current is not None
        await terminal.current.interrupt()
        interrupted = await terminal.run("echo b; sleep 100", timeout=0.3, on_timeout="interrupt")
        assert (interrupted.reason, interrupted.exit_code) == ("timeout", 130)
        killed = await terminal.run("echo c; sleep 100", timeout=0.3, on_timeout="kill")
        assert (killed.reason, killed.output.startswith("c\n")) == ("timeout", True)
        assert await in_step(terminal)


async def test_no_output_for_long_ends_the_wait_as_idle_and_leaves_it_running(tmp_path: Path) -> None:
    """T18: `idle` ends the wait, not the command."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("echo a; sleep 100", timeout=20, idle_timeout=0.3)
        assert (result.reason, result.exit_code, result.output) == ("idle", None, "a\n")
        assert terminal.busy


async def test_a_cancelled_call_ends_its_command(tmp_path: Path) -> None:
    """T11: the caller is gone and with it the only handle; the terminal is free again."""
    async with open_terminal(cwd=tmp_path) as terminal:
        call = asyncio.create_task(terminal.run("sleep 100", timeout=None))
        await until_true(lambda: terminal.current is not None and terminal.current.began)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await in_step(terminal)


async def test_leave_wakes_whoever_waits_and_the_command_goes_on(tmp_path: Path) -> None:
    """T16: a caller can go on while the command keeps running."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("read x; echo got $x")
        waiter = asyncio.create_task(execution.result(timeout=20))
        await asyncio.sleep(0)
        execution.leave()
        assert (await waiter).reason == "left running"
        await execution.send("it\n")
        result = await execution.result(timeout=60)
        assert (result.output, result.exit_code) == ("it\ngot it\n", 0)


# Like `sh` in vfork: until its child lets it go, the program can't act on a signal, and it ends on Ctrl-C by a handler.
HELD_BY_ITS_CHILD = """
import ctypes, os, platform, signal, sys, time

def end(*_):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, end)
CLONE_VFORK, clone = 0x4000, {"x86_64": 56, "aarch64": 220}[platform.machine()]
if ctypes.PyDLL(None).syscall(clone, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0) == 0:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("ready", flush=True)
    time.sleep(float(sys.argv[1]))
    os._exit(0)
time.sleep(100)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="by the kernel's word on each process")
async def test_a_program_that_can_not_act_on_ctrl_c_yet_is_not_terminated(tmp_path: Path, speech: Speech) -> None:
    """T17, D46: on a busy machine `sh` waits long for a program to start. Then it ends with 130, and not with 143."""
    (tmp_path / "held.py").write_text(HELD_BY_ITS_CHILD)
    settings = Settings(interrupt_grace=0.1)
    async with open_terminal(cwd=tmp_path, shell=speech.shell, settings=settings) as terminal:
        execution = await terminal.start(f"{sys.executable} held.py 1.5")
        await until(execution, "ready")
        await execution.interrupt()
        result = await execution.result(timeout=60)
        assert (result.exit_code, result.reason, result.notes) == (130, "interrupted", ())
        assert (await terminal.run("echo after", timeout=60)).output == "after\n"


@pytest.mark.skipif(sys.platform != "linux", reason="by the kernel's word on each process")
async def test_a_program_that_can_never_act_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T17: no wait is without an end."""
    monkeypatch.setattr("tarmac.terminals.process.signals.STARVED", 0.5)
    (tmp_path / "held.py").write_text(HELD_BY_ITS_CHILD)
    async with open_terminal(cwd=tmp_path, settings=Settings(interrupt_grace=0.1)) as terminal:
        execution = await terminal.start(f"{sys.executable} held.py 1000")
        await until(execution, "ready")
        await execution.interrupt()
        result = await execution.result(timeout=60)
        assert (result.exit_code, result.reason) == (143, "interrupted")
        assert result.notes == ("it did not end on Ctrl-C: terminated",)
        assert await in_step(terminal)
