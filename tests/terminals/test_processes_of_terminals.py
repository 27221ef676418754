"""Nothing a command started outlives its killing, its terminal or its shell; others' children are not touched (T17)."""

import asyncio
import gc
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.terminals import open_terminal
from tarmac.terminals.process import birthmark, processes
from tarmac.terminals.shell.pty_terminal import PtyTerminal

pytestmark = [pytest.mark.shell, pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")]

TWICE = "python3 -c 'import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); {}'"
WRITE = 'open("pids", "a").write(str(os.getpid()) + chr(10)); os.execvp("sleep", ["sleep", "1000"])'
NOTE = "echo $$ >> pids; exec sleep 1000"
HIDES = {
    "a job": f"sh -c '{NOTE}' &",
    "nohup": f"nohup sh -c '{NOTE}' > /dev/null 2>&1 &",
    "setsid": f"setsid sh -c '{NOTE}' > /dev/null 2>&1 < /dev/null &",
    "forked twice": TWICE.format(WRITE),
    "without an environment": f"env -i setsid /bin/sh -c '{NOTE}' > /dev/null 2>&1 < /dev/null &",
    "forked twice, without anything": "env -i "
    + TWICE.format(f"os.closerange(0, 256); {WRITE}").replace("python3", sys.executable, 1),
    "signals ignored": "bash -c 'trap \"\" INT TERM HUP QUIT; echo $$ >> pids; while :; do sleep 1000; done' &",
    "stopped": "sh -c 'echo $$ >> pids; kill -STOP $$; sleep 1000' &",
    "disowned": f"sh -c '{NOTE}' & disown -a",
}
ALL = "\n".join(HIDES.values())
SHELLS = ("bash", "zsh", "fish")


def start_all(folder: Path, shell: str) -> str:
    """A command that starts them all: of the shell itself, or by a script where it has other words for some."""
    (folder / "all").write_text(ALL + "\n")
    return ALL if shell == "bash" else "bash ./all"


async def hidden(folder: Path) -> set[processes.Process]:
    """All of them, once they run."""
    async with asyncio.timeout(20):
        while True:
            try:
                pids = [int(line) for line in (folder / "pids").read_text().split()]
            except FileNotFoundError:
                pids = []
            if len(pids) == len(HIDES):
                return {found for pid in pids if (found := processes.look(pid))}
            await asyncio.sleep(0.01)


def living(them: set[processes.Process]) -> set[processes.Process]:
    return {each for each in them if processes.look(each.pid) == each}


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_kill_leaves_nothing_the_command_started(
    tmp_path: Path, shell: str, require: Callable[[str], None]
) -> None:
    """T17: wherever it hid; and spares what an earlier command left."""
    require(shell)
    async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
        await terminal.run("sh -c 'echo $$ > mine; exec sleep 1000' & sleep 0.1; cat mine")
        earlier = processes.look(int((tmp_path / "mine").read_text()))
        execution = await terminal.start(start_all(tmp_path, shell) + "\nsleep 1000")
        them = await hidden(tmp_path)
        await execution.kill()
        assert (len(them), living(them)) == (len(HIDES), set())
        assert (await execution.result()).reason == "killed"
        assert earlier is not None and living({earlier}) == {earlier}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("end", ["closed at its prompt", "closed while it runs", "exit", "kill -9", "exec true"])
async def test_nothing_outlives_its_terminal_or_its_shell(
    tmp_path: Path, end: str, shell: str, require: Callable[[str], None]
) -> None:
    """T17: also when the shell went first and took its place in the tree with it."""
    require(shell)
    async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
        command = start_all(tmp_path, shell)
        if end == "closed while it runs":
            await terminal.start(command + "\nsleep 1000")
        else:
            assert (await terminal.run(command)).reason == "done"
        them = await hidden(tmp_path)
        assert len(them) == len(HIDES)
        if not end.startswith("closed"):
            pid = "$fish_pid" if shell == "fish" else "$$"
            command = {"exit": "exit 3", "kill -9": f"kill -9 {pid}", "exec true": "exec true"}[end]
            assert (await terminal.run(command)).reason == "terminal closed"
            assert (await terminal.run("echo fresh")).output == "fresh\n"  # and by then they are gone
            assert living(them) == set()
    assert living(them) == set()


async def test_a_daemon_started_in_the_last_breath_of_a_shell_is_found(tmp_path: Path) -> None:
    """T17: nobody could have seen it while the shell lived."""
    async with open_terminal(cwd=tmp_path) as terminal:
        mark = birthmark.of(terminal.cookie)
        assert mark is not None
        for _ in range(5):
            command = f"env -i setsid /bin/sh -c '{NOTE}' > /dev/null 2>&1 < /dev/null & exit"
            assert (await terminal.run(command)).reason == "terminal closed"
    assert [pid for pid in _everybody() if processes.look(pid) and birthmark.bears(pid, mark)] == []


async def test_what_a_pipe_command_left_ends_with_its_terminal(tmp_path: Path) -> None:
    """T17: the exec provider, whose every command dies by itself."""
    async with open_terminal(cwd=tmp_path, provider="exec") as terminal:
        await terminal.run(ALL)
        them = await hidden(tmp_path)
    assert (len(them), living(them)) == (len(HIDES), set())


def _everybody() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


async def test_a_birthmark_limits_nothing_and_is_its_terminals_own(tmp_path: Path) -> None:
    """T17: two terminals have two; ours is not changed; locks are as free as ever."""
    ours = resource.getrlimit(10)
    async with open_terminal(cwd=tmp_path) as one, open_terminal(cwd=tmp_path) as other:
        marks = []
        for terminal in (one, other):
            assert isinstance(terminal, PtyTerminal) and terminal.session is not None
            mark = birthmark.of(terminal.cookie)
            assert mark is not None and birthmark.bears(terminal.session.pid, mark)
            assert not birthmark.bears(os.getpid(), mark)
            marks.append(mark)
        assert (await one.run("flock lock true && ulimit -x")).output == f"{marks[0]}\n"
    assert marks[0] != marks[1]
    assert resource.getrlimit(10) == ours


async def test_the_callers_own_children_are_never_touched(tmp_path: Path) -> None:
    """T17: neither reaped nor signalled, by running, killing, closing or sweeping; asyncio's and plain ones."""
    plain = await asyncio.to_thread(_popen, "read x; exit 5")
    theirs = await asyncio.create_subprocess_exec("sh", "-c", "read x; exit 6", stdin=subprocess.PIPE)
    ended = await asyncio.to_thread(_popen, "exit 7")  # a zombie until its owner asks
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("true")
        execution = await terminal.start("sleep 1000 & sleep 1000")
        await execution.kill()
        await terminal.run("setsid sleep 1000 & exit 1")
        await terminal.run("true")
        during = await asyncio.to_thread(_popen, "exit 8")
    async with open_terminal(cwd=tmp_path, provider="exec") as terminal:
        await terminal.run("setsid sleep 1000 &")
    assert (plain.poll(), theirs.returncode) == (None, None)
    for stdin in (plain.stdin, theirs.stdin, ended.stdin, during.stdin):
        assert stdin is not None
        stdin.close()
    assert (plain.wait(10), await theirs.wait(), ended.wait(10), during.wait(10)) == (5, 6, 7, 8)


def _popen(command: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE)


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_thousand_commands_leave_nothing_behind(
    tmp_path: Path, shell: str, require: Callable[[str], None]
) -> None:
    """T17: no zombie, no descriptor, no memory (within 5 %)."""
    require(shell)
    async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None

        async def commands(count: int) -> None:
            for number in range(count):
                await terminal.run("true" if number % 20 else "/bin/echo out; true | cat; sh -c 'exit 1' &", timeout=20)

        await commands(400)  # histories and caches are full, pools are warm
        pid = terminal.session.pid
        before = _weight(pid)
        await commands(1000)
        await terminal.run("wait")
        after = _weight(pid)
        assert [each for _, each in processes.below(pid) if each and not each.alive] == []
    assert (after["our fds"], after["its fds"]) == (before["our fds"], before["its fds"])
    assert after["our memory"] <= before["our memory"] * 1.05, (before, after)
    assert after["its memory"] <= before["its memory"] * 1.05 + (128 << 10), (before, after)


def _weight(shell: int) -> dict[str, int]:
    gc.collect()
    return {
        "our fds": len(list(Path("/proc/self/fd").iterdir())),
        "its fds": len(list(Path(f"/proc/{shell}/fd").iterdir())),
        "our memory": _resident(os.getpid()),
        "its memory": _resident(shell),
    }


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
