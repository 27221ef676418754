"""How a command ended, where that is easily told wrong: taken back, stopped, out of memory, frozen, its host killed."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import lacking
from tests.terminals.conftest import Speech

from tarmac.terminals import open_terminal
from tarmac.terminals.process import processes
from tarmac.terminals.settings import OnTimeout
from tarmac.terminals.shell import monitor, pty_terminal
from tarmac.terminals.shell.pty_terminal import PtyTerminal

pytestmark = pytest.mark.shell

HOOKS = {
    "bash": "f() { PROMPT_COMMAND='sleep 60'; }; f",
    "zsh": "precmd() { sleep 60 }",
    "fish": "function hook --on-event fish_prompt; sleep 60; end",
}


@pytest.mark.parametrize("before", [0, 2], ids=["first", "later"])
@pytest.mark.parametrize("on_timeout", ["leave", "interrupt", "kill"])
async def test_a_command_that_never_began_was_not_run(
    tmp_path: Path, speech: Speech, on_timeout: OnTimeout, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T15, T18: a prompt hook hangs. The command before it has its result, the one after it is taken back, and the
    next one works: what the hook runs is ended.
    """
    monkeypatch.setattr(pty_terminal, "COMES_BACK", (0.2, 0.5))
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        for _ in range(before):
            assert (await terminal.run("echo fine", timeout=10)).output == "fine\n"
        kept = speech.assign.format(name="kept", value="here")
        hooked = await terminal.run(f"{kept}; {HOOKS[speech.shell]}; {speech.ends(3)}", timeout=20)
        assert (hooked.reason, hooked.exit_code, hooked.evidence) == ("done", 3, "mark")
        await _until_hook_runs(terminal)
        result = await terminal.run("touch ran; echo ran", timeout=0.5, on_timeout=on_timeout)
        assert (result.reason, result.output, result.exit_code) == ("not run", "", None)
        assert "`sleep`" in result.notes[0] and "not run" in result.notes[0]
        result = await terminal.run(f"echo $kept; {speech.ends(4)}", timeout=20)
        assert (result.reason, result.output, result.exit_code) == ("done", "here\n", 4)
        assert not result.fresh_shell
        assert "a prompt hook hung in `sleep`, which was ended" in result.notes
        assert not (tmp_path / "ran").exists()


async def test_a_command_behind_a_hook_that_hangs_runs_in_the_end(
    tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T18: even a call without a time limit does not wait for ever."""
    monkeypatch.setattr(monitor, "HOOK_LIMIT", 2)
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.run(HOOKS[speech.shell], timeout=20)
        await _until_hook_runs(terminal)
        result = await terminal.run(f"echo ran; {speech.ends(4)}")
        assert (result.reason, result.output, result.exit_code) == ("done", "ran\n", 4)
        assert "a prompt hook hung in `sleep`, which was ended" in result.notes


async def test_a_shell_that_a_hook_keeps_for_good_is_replaced(
    tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T18: what ignores signals does not keep the terminal."""
    monkeypatch.setattr(pty_terminal, "COMES_BACK", (0.2, 0.5))
    (tmp_path / "stays").write_text("#!/bin/sh\ntrap '' INT TERM\nwhile :; do sleep 60; done\n")
    (tmp_path / "stays").chmod(0o755)
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.run(HOOKS[speech.shell].replace("sleep 60", str(tmp_path / "stays")), timeout=20)
        await _until_hook_runs(terminal)
        assert (await terminal.run("echo ran", timeout=0.5)).reason == "not run"
        result = await terminal.run(f"echo ran; {speech.ends(4)}", timeout=20)
        assert (result.reason, result.output, result.exit_code, result.fresh_shell) == ("done", "ran\n", 4, True)
        assert any("a prompt hook hung in `stays`" in each for each in result.notes)


async def test_the_result_before_a_hook_that_hangs_says_so(tmp_path: Path, speech: Speech) -> None:
    """T15: its end is told, and so is what the shell does now."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        execution = await terminal.start(f"{HOOKS[speech.shell]}; {speech.ends(3)}")
        terminal.session.pty.pause()  # a busy host: it reads the end when the hook is in front
        await _until_hook_runs(terminal)
        terminal.session.pty.resume()
        result = await execution.result(20)
        assert (result.reason, result.exit_code, result.evidence) == ("done", 3, "mark")
        if speech.shell != "fish":  # which keeps itself in front while its hooks run
            assert result.notes == ("the shell told its end and is not back at its prompt: a prompt hook runs `sleep`",)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_a_subshell_tells_no_end(tmp_path: Path, shell: str) -> None:
    """T15: our own words in a subshell are no end of the command that runs it."""
    if shutil.which(shell) is None:
        lacking(f"{shell} is not installed")
    async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
        result = await terminal.run("(__tarmac_done 7; sleep 1.5; echo more; exit 5)", timeout=20)
        assert (result.reason, result.output, result.exit_code, result.notes) == ("done", "more\n", 5, ())


async def _until_hook_runs(terminal: PtyTerminal) -> None:
    assert terminal.session is not None
    end = time.monotonic() + 10
    while not any(
        processes.name(each.pid) in ("sleep", "stays") for each in processes.descendants(terminal.session.pid)
    ):
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_a_folder_of_ours_that_was_deleted_is_made_again(
    tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T15: `rm -rf $TMPDIR/tarmac-*`; the next command runs in the same shell."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run(speech.assign.format(name="kept", value="here"))
        for _ in range(2):
            await terminal.run(f"rm -rf {tmp_path}/tmp/tarmac-*; echo 'gone'")
            result = await terminal.run("echo \"$kept\"; sh -c 'exit 3'", timeout=10)
            assert (result.output, result.exit_code, result.fresh_shell) == ("here\n", 3, False)
        await asyncio.sleep(0.2)
        assert terminal.current is None


async def test_a_folder_that_somebody_else_made_in_its_place_is_not_used(tmp_path: Path, speech: Speech) -> None:
    """Nothing is written where others may put links."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        folder = terminal.session.files._folder
        assert folder is not None
        shutil.rmtree(folder)
        folder.mkdir()
        folder.chmod(0o777)
        try:
            with pytest.raises(OSError, match="cannot write what the shell is to read"):
                await terminal.run("echo 'a' 'b'", timeout=10)
            assert list(folder.iterdir()) == []
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def test_a_stopped_program_that_is_interrupted_is_not_done(tmp_path: Path, speech: Speech) -> None:
    """T15, T17: it stands still and can't act on the interrupt; it is ended, and nobody says that it succeeded."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        for pauses in range(8):
            execution = await terminal.start(f"sh -c 'kill -STOP $$' {pauses}")
            for _ in range(pauses):
                await asyncio.sleep(0.002)
            await execution.interrupt()
            result = await execution.result(10)
            assert (result.reason, result.exit_code) != ("done", 0)
            if result.reason == "interrupted":
                running = [processes.command_line(each.pid) for each in processes.descendants(terminal.session.pid)]
                assert str(pauses) not in [words[-1] for words in running if words]


async def test_a_program_that_exits_with_0_on_ctrl_c_was_interrupted(tmp_path: Path, speech: Speech) -> None:
    """T17: its exit code is its own; that it ended is our doing."""
    code = "import signal,sys,time; signal.signal(2, lambda *_: sys.exit()); print('ready', flush=True); time.sleep(60)"
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        execution = await terminal.start(f'{sys.executable} -c "{code}"')
        await execution.waiting_for(pattern="ready", timeout=20)
        await execution.interrupt()
        result = await execution.result(10)
    assert (result.reason, result.exit_code) == ("interrupted", 0)


async def test_what_ended_before_the_interrupt_was_sent_is_done(tmp_path: Path, speech: Speech) -> None:
    """T17: an interrupt that finds nothing to interrupt changes nothing."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        session = terminal.session
        execution = await terminal.start("true")
        while not session.waits():
            time.sleep(0.001)  # noqa: ASYNC251 (its end is not to be read yet)
        await execution.interrupt()
        result = await execution.result(10)
    assert (result.reason, result.exit_code) == ("done", 0)


async def test_a_timeout_that_interrupts_ends_what_the_command_left_behind(tmp_path: Path, speech: Speech) -> None:
    """T17, T18: a daemon of a command that ran out of its time does not stay until the terminal is closed."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        await terminal.run("sleep 86411 &")
        result = await terminal.run(
            "setsid nohup sleep 86412 >/dev/null 2>&1 & sleep 86413", timeout=0.5, on_timeout="interrupt"
        )
        left = [processes.command_line(each.pid) for each in processes.descendants(terminal.session.pid)]
        still = await terminal.run("echo still")
    sleeps = [words for words in left if words[:1] == ["sleep"]]
    assert (result.reason, sleeps, still.output) == ("timeout", [["sleep", "86411"]], "still\n")


def own_memory_cgroup() -> Path | None:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path(f"/sys/fs/cgroup/memory{path}")
    return None


async def test_an_out_of_memory_kill_is_named(tmp_path: Path) -> None:
    """T15: by the kernel's own count; a SIGKILL of anybody else is none."""
    parent = own_memory_cgroup()
    if parent is None or not os.access(parent, os.W_OK):
        lacking("no memory cgroup that may be divided")
        return
    group = parent / f"tarmac-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text("48M")
    except OSError:
        lacking("no memory cgroup that may be divided")
    try:
        async with open_terminal(cwd=tmp_path) as terminal:
            assert isinstance(terminal, PtyTerminal) and terminal.session is not None
            (group / "cgroup.procs").write_text(str(terminal.session.pid))
            terminal.session.learn_companions()  # its cgroup is another one now
            killed = await terminal.run(f"{sys.executable} -c 'x = bytearray(1 << 30)'", timeout=30)
            other = await terminal.run("sh -c 'kill -9 $$'")
    finally:
        group.rmdir()
    assert (killed.exit_code, killed.notes) == (137, ("out of memory: the kernel killed it",))
    assert (other.exit_code, other.notes) == (137, ())


FROZEN_HOST = """
import asyncio, sys
from tarmac.terminals import open_terminal

async def main():
    async with open_terminal(shell=sys.argv[1]) as terminal:
        execution = await terminal.start("sleep 0.3; echo x")
        print("started", flush=True)
        result = await execution.result(1.0)
        print(result.reason, result.exit_code, repr(result.output), flush=True)

asyncio.run(main())
"""


def test_a_host_that_was_frozen_past_the_timeout_reads_before_it_gives_up(tmp_path: Path, speech: Speech) -> None:
    """T18: SIGSTOP of the host stands for a suspended machine and for the cgroup freezer."""
    with subprocess.Popen(
        [sys.executable, "-c", FROZEN_HOST, speech.shell], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "started\n"
        host.send_signal(signal.SIGSTOP)
        time.sleep(2.6)
        host.send_signal(signal.SIGCONT)
        assert host.stdout.readline() == "done 0 'x\\n'\n"
        assert host.wait(30) == 0


KILLED_HOST = """
import asyncio, sys
from tarmac.terminals import open_terminal

async def main():
    async with open_terminal(shell=sys.argv[1]) as terminal:
        await terminal.run("sh -c 'trap \\"\\" HUP; setsid nohup sleep 86421 >/dev/null 2>&1 & exec sleep 86422' &")
        async with open_terminal(shell=sys.argv[1]) as other:
            await other.run("nohup sleep 86423 >/dev/null 2>&1 &")
        await terminal.start("sleep 86424")
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def sleeping(*seconds: str) -> list[str]:
    found = []
    for place in Path("/proc").iterdir():
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found += [each for each in seconds if words[:2] == [b"sleep", each.encode()]]
    return sorted(found)


def test_nothing_outlives_a_host_that_is_killed(tmp_path: Path, speech: Speech) -> None:
    """T17: neither `nohup` nor `setsid` nor a HUP trap keeps a process alive when its host was killed with SIGKILL."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_HOST, speech.shell], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        while sleeping("86421", "86422", "86424") != ["86421", "86422", "86424"]:
            time.sleep(0.05)
        host.kill()
        host.wait()
    end = time.monotonic() + 30
    while left := sleeping("86421", "86422", "86423", "86424"):
        assert time.monotonic() < end, left
        time.sleep(0.05)


async def test_memory_does_not_grow_with_the_commands_of_a_terminal(tmp_path: Path) -> None:
    """T27: by the objects that are kept, after the bounded histories are full."""
    import gc

    from tarmac.terminals.output.spool import Spool
    from tarmac.terminals.terminal import MOST_HISTORY

    async with open_terminal(cwd=tmp_path) as terminal:
        for _ in range(MOST_HISTORY):
            await terminal.run("echo x")
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(300):
            await terminal.run("echo x")
        gc.collect()
        kept = gc.get_objects()
    assert len(kept) - before < 100
    assert sum(isinstance(each, Spool) for each in kept) <= 60


async def test_what_zsh_remembers_is_nothing_of_ours(tmp_path: Path, own_state: Path) -> None:
    """T23: `history` and `fc -l`, with a person's history and without one."""
    if shutil.which("zsh") is None:
        lacking("zsh is not installed")
    async with open_terminal(cwd=tmp_path, shell="zsh") as terminal:
        empty = [
            (await terminal.run(each)).output for each in ("history", "fc -l", "history; fc -l 1", "h() { fc -l }; h")
        ]
    (own_state / ".history").write_text("person one\nperson two\n")
    (own_state / ".zshrc").write_text(f"HISTFILE={own_state}/.history HISTSIZE=50 SAVEHIST=50\n")
    async with open_terminal(cwd=tmp_path, shell="zsh") as terminal:
        full = [(await terminal.run(each)).output for each in ("history", "fc -l")]
    assert "tarmac" not in "".join(empty)
    assert full == ["    1  person one\n    2  person two\n"] * 2


async def test_a_shell_whose_variables_are_all_read_only_does_not_tell_a_wrong_code(tmp_path: Path) -> None:
    """T15: our own words can't note the status there; then nobody says what it was."""
    commands = {"bash": "readonly $(compgen -v) 2>/dev/null", "zsh": "typeset -r ${(k)parameters} 2>/dev/null"}
    for shell, command in commands.items():
        if shutil.which(shell) is None:
            continue
        async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
            result = await terminal.run(command, timeout=10)
            after = await terminal.run("echo after", timeout=20)
        assert (result.exit_code, result.reason) in ((None, "done"), (0, "done"))
        assert (after.output, after.exit_code) == ("after\n", 0)


async def test_a_last_argument_that_must_be_a_number_breaks_none_of_our_words(tmp_path: Path) -> None:
    """T15: `declare -i _` makes bash discard whatever ends with another word. The next commands are right and clean."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        for command in ("declare -i _", "true 5; declare -i _; (exit 3)", "typeset -i _; echo 'a b'"):
            await terminal.run(command, timeout=60)
            failed = await terminal.run("echo 'one two' /; (exit 3)", timeout=60)
            after = await terminal.run("ls -d /", timeout=60)
            assert (failed.output, failed.exit_code, failed.reason) == ("one two /\n", 3, "done"), command
            assert (after.output, after.exit_code, after.fresh_shell) == ("/\n", 0, False), command


QUIET = {
    "false || exit 1": ("", 1),
    "false; exit": ("", 1),
    "if true; then exit 4; fi": ("", 4),
    "case a in a) exit 5;; esac": ("", 5),
    "echo one\n  exit 6\necho two": ("one\n", 6),
    "set -e; test -e nowhere || { echo missing; exit 7; }": ("missing\n", 7),
    "f() { exit 8; }; f": ("", 8),
    "echo exit; set -e; false": ("exit\n", 1),
    "trap 'echo bye' EXIT; exit 9": ("exit\nbye\n", 9),  # it would run inside our function
    "exit abc": ("bash: exit: abc: numeric argument required\n", 2),
}


@pytest.mark.parametrize("command", QUIET)
async def test_the_word_that_bash_prints_when_it_ends_is_no_output(tmp_path: Path, command: str) -> None:
    """T15: of a command that says `exit`; what the command itself prints stays."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        result = await terminal.run(command)
    assert ((result.output, result.exit_code), result.reason) == (QUIET[command], "terminal closed")


async def test_exit_is_bashs_own_again_after_a_command_that_says_it(tmp_path: Path) -> None:
    """T15: and one that does not end the shell goes as ever."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        inside = await terminal.run("(exit 3); echo $?; true || exit 4")
        kind = await terminal.run("type -t exit")
        wrong = await terminal.run("exit 1 2; echo after")
        await terminal.run("exit() { echo mine; }")
        own = await terminal.run("exit 5")
    assert (inside.output, inside.exit_code, kind.output) == ("3\n", 0, "builtin\n")
    assert (wrong.output, wrong.exit_code) == ("exit\nbash: exit: too many arguments\n", 1)
    assert (own.output, own.exit_code) == ("mine\n", 0)
