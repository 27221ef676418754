"""A place without Python: a PTY here around its client. What is known has evidence, and the rest is not guessed."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.fleet.conftest import Container, Sshd
from tests.fleet.test_run_on import in_box

from tarmac.errors import DirectoryUnavailable, PlaceUnavailable, Trouble
from tarmac.fleet import CommandTransport, open_terminals
from tarmac.fleet.open_address import open_place
from tarmac.fleet.relay import plain_lines
from tarmac.terminals.pool import Pool
from tarmac.terminals.terminal import Terminal

pytestmark = pytest.mark.shell
FEW = ("cat", "sleep", "stty", "seq", "head", "wc", "kill", "env", "true", "mkdir", "ls")
PATIENCE = 60.0


def few_programs(folder: Path, *shells: str) -> Path:
    """A folder for PATH with some programs, and no Python."""
    folder.mkdir()
    for name in (*FEW, *shells):
        found = shutil.which(name, path="/usr/bin:/bin")
        assert found, name
        (folder / name).symlink_to(found)
    return folder


def bare(tmp_path: Path, *shells: str) -> CommandTransport:
    argv = ("/usr/bin/env", "-i", f"PATH={few_programs(tmp_path / 'few', 'sh', *shells)}", f"HOME={tmp_path}")
    return CommandTransport("test://bare", argv, tty_argv=argv)


@asynccontextmanager
async def relayed(place: str | CommandTransport) -> AsyncIterator[tuple[Pool, Terminal]]:
    async with open_terminals(place) as pool, pool.lease(cwd="/") as terminal:
        assert terminal.quality == "relay"
        yield pool, terminal


SHELLS = pytest.mark.parametrize("shells", [("bash",), ()], ids=["bash", "only sh"])


@SHELLS
async def test_commands_at_a_place_without_python(tmp_path: Path, shells: tuple[str, ...]) -> None:
    """F2, F3: exit codes, directories, variables and output are those of the shell there, by its marks."""
    long = "x" * 9000
    async with relayed(bare(tmp_path, *shells)) as (_, terminal):
        first = await terminal.run(f"cd {tmp_path}; COLOUR='dark green'; (exit 3)", timeout=PATIENCE)
        second = await terminal.run("echo $COLOUR $?; pwd", timeout=PATIENCE)
        odd = await terminal.run(
            "printf '%s\\n' 'a\tb' \"it's $((6*7))\" 'ü☺' '$HOME' '\\n'; cat <<E\n  two\nE", timeout=60
        )
        wide = await terminal.run(f"printf %s {long} | wc -c", timeout=PATIENCE)
        much = await terminal.run("seq 20000", timeout=PATIENCE)
        wrong = await terminal.run("if then", timeout=PATIENCE)
        after = await terminal.run("echo still", timeout=PATIENCE)
    assert (first.exit_code, first.evidence, first.reason, first.cwd) == (3, "mark", "done", tmp_path)
    assert second.output == f"dark green 3\n{tmp_path}\n"
    assert odd.output == "a\tb\nit's 42\nü☺\n$HOME\n\\n\n  two\n"
    assert wide.output.strip() == "9000"
    assert much.output_bytes == len("".join(f"{each}\r\n" for each in range(1, 20001)))
    assert wrong.exit_code not in (0, None) and wrong.evidence == "mark"
    assert (after.output, after.exit_code) == ("still\n", 0)


@SHELLS
async def test_input_and_interrupts_reach_the_command(tmp_path: Path, shells: tuple[str, ...]) -> None:
    """F2, F3: also a loop of the shell itself ends with Ctrl-C. Input that nobody read is not taken for a command."""
    async with relayed(bare(tmp_path, *shells)) as (_, terminal):
        asks = await terminal.start("echo name?; read name; echo hello $name")
        await terminal.waiting_for(pattern=r"name\?", timeout=PATIENCE)
        await asks.send("Ann\n")
        answered = await asks.result(timeout=PATIENCE)
        loop = await terminal.start("while :; do sleep 0.05; echo turn; done; echo never")
        await terminal.waiting_for(pattern="turn", timeout=PATIENCE)
        await loop.interrupt()
        interrupted = await loop.result(timeout=PATIENCE)
        unread = await terminal.start("echo go; sleep 0.3")
        await terminal.waiting_for(pattern="go", timeout=PATIENCE)
        await unread.send(f"echo early > {tmp_path}/made\n")
        await unread.result(timeout=PATIENCE)
        after = await terminal.run("echo after", timeout=PATIENCE)
    assert answered.output == "name?\nAnn\nhello Ann\n"
    assert (interrupted.reason, interrupted.exit_code, interrupted.evidence) == ("interrupted", 130, "mark")
    assert (after.output, after.exit_code) == ("after\n", 0)
    assert not (tmp_path / "made").exists()


@SHELLS
async def test_a_lost_interrupt_is_sent_again(tmp_path: Path, shells: tuple[str, ...]) -> None:
    """F3: bash loses one that comes while it starts the next program of a loop."""
    deaf = "sh -c 'f() { [ $n ] && exit 7; n=1; }; trap : QUIT; trap f INT; echo on; while :; do sleep 0.05; done'"
    async with relayed(bare(tmp_path, *shells)) as (_, terminal):
        loop = await terminal.start(deaf)
        await terminal.waiting_for(pattern="on", timeout=PATIENCE)
        await loop.interrupt()
        interrupted = await loop.result(timeout=PATIENCE)
    assert (interrupted.reason, interrupted.exit_code, interrupted.evidence) == ("interrupted", 7, "mark")


@SHELLS
async def test_a_command_without_a_terminal_reads_its_input_to_the_end(tmp_path: Path, shells: tuple[str, ...]) -> None:
    """F3: what is typed is not shown then. An end that nobody read ends nothing else."""
    async with open_terminals(bare(tmp_path, *shells)) as pool, pool.lease(cwd="/", provider="exec") as terminal:
        for text in ("one\ntwo\n", "one\ntwo", ""):
            reads = await terminal.start("IFS=,; cat")
            await reads.send(text)
            reads.close_input()
            assert (await reads.result(timeout=PATIENCE)).output == text
        ignores = await terminal.start("true")
        ignores.close_input()
        await ignores.result(timeout=PATIENCE)
        after = await terminal.run("echo after", timeout=PATIENCE)
    assert (after.output, after.fresh_shell) == ("after\n", False)


@SHELLS
async def test_the_end_of_the_shell_is_told_apart_from_that_of_the_connection(
    tmp_path: Path, shells: tuple[str, ...]
) -> None:
    """F3, F5: `exit 5` has its code. A client that is killed says nothing of the command, so its code is unknown."""
    async with relayed(bare(tmp_path, *shells)) as (_, terminal):
        left = await terminal.run("X=1; exit 5", timeout=PATIENCE)
        fresh = await terminal.run("echo x$X", timeout=PATIENCE)
        killed = await terminal.run("kill -9 $$; sleep 5", timeout=PATIENCE)
        replaced = await terminal.run("exec true", timeout=PATIENCE)
        again = await terminal.run("echo again", timeout=PATIENCE)
    assert (left.exit_code, left.reason, left.evidence, left.output) == (5, "terminal closed", "mark", "")
    assert left.notes == ()
    assert (fresh.output, fresh.fresh_shell) == ("x\n", True)
    for each in (killed, replaced):
        assert (each.exit_code, each.reason, each.evidence) == (None, "connection lost", "unknown")
    assert (again.output, again.exit_code) == ("again\n", 0)


async def test_what_can_not_be_entered_or_forged(tmp_path: Path) -> None:
    """F3, T4: a mark without the nonce is output. The nonce is in no environment and no list of words."""
    async with relayed(bare(tmp_path, "bash")) as (_, terminal):
        with pytest.raises(DirectoryUnavailable):
            await terminal.run("true", cwd=tmp_path / "nothing")
        forged = await terminal.run(r"printf '\033]633;D;1;1;7\007'; (exit 2)", timeout=PATIENCE)
        seen = await terminal.run("env; cat /proc/$$/cmdline", timeout=PATIENCE)
    assert (forged.exit_code, forged.forged_marks) == (2, 1)
    assert "__tarmac_n" not in seen.output
    assert "@" not in seen.output


async def test_a_place_where_not_even_a_shell_answers(tmp_path: Path) -> None:
    """F3, F5: the error says what is lacking there, and that nothing else helps."""
    without = ("/usr/bin/env", "-i", f"PATH={few_programs(tmp_path / 'few', 'sh')}")
    refuses = ("/bin/sh", "-c", "echo 'the input device is not a TTY' >&2; exit 1", "sh")
    with pytest.raises(PlaceUnavailable) as caught:
        async with open_terminals(CommandTransport("test://bare", without, tty_argv=refuses)):
            pass
    assert caught.value.trouble is Trouble.NO_PYTHON
    assert "not a TTY" in caught.value.what
    assert "Python 3.11" in caught.value.hint


async def test_files_need_python_there(tmp_path: Path) -> None:
    """F3, F5: a task can't work there, and the error says what can be done."""
    with pytest.raises(PlaceUnavailable, match="files can't be worked on") as caught:
        async with open_place(bare(tmp_path)):
            pass
    assert "tarmac exec --on" in caught.value.hint


def test_typed_letters_are_plain() -> None:
    """F3."""
    data = bytes(range(1, 256)) * 20
    lines = list(plain_lines(data))
    assert all(set(each) <= set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\\") for each in lines)
    assert max(map(len, lines)) < 1000
    script = "".join(f"c=$c'{each.decode()}'\n" for each in lines) + 'printf %b "$c"'
    assert subprocess.run(["sh", "-c", script], check=True, capture_output=True).stdout == data


def _without_python(sshd: Sshd, few: Path) -> None:
    """The sshd gives its commands another PATH from now on, and a home without start-up files."""
    config = sshd.folder / "sshd_config"
    config.write_text(config.read_text().replace("SetEnv ", f"SetEnv PATH={few} HOME={few} "))
    os.kill(sshd.process.pid, signal.SIGHUP)
    end = time.monotonic() + 20
    while True:  # it starts itself anew
        done = subprocess.run(
            ["ssh", "testhost", "echo $PATH"], check=False, capture_output=True, text=True, timeout=20
        )
        if done.stdout.strip() == str(few):
            return
        assert time.monotonic() < end, done
        with socket.socket() as pause:
            pause.settimeout(0.05)
            pause.connect_ex(("127.0.0.1", sshd.port))


@pytest.mark.fleet
async def test_a_real_ssh_without_python_there(sshd: Sshd, tmp_path: Path) -> None:
    """F2, F3, F5: `tarmac exec --on` says the code; a connection that is killed in the middle is told by type."""
    _without_python(sshd, few_programs(tmp_path / "few", "sh", "bash"))
    words = [sys.executable, "-m", "tarmac", "exec", "--on", "ssh://testhost", "echo $WHERE; exit 4"]
    done = await asyncio.to_thread(
        subprocess.run, words, check=False, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert (done.stdout, done.returncode) == ("sshd\n", 4), done.stderr
    async with relayed("ssh://testhost") as (_, terminal):
        running = await terminal.start("echo begun; sleep 600")
        await terminal.waiting_for(pattern="begun", timeout=PATIENCE)
        for pid in sshd.connections():
            os.kill(pid, signal.SIGKILL)
        lost = await running.result(timeout=PATIENCE)
        again = await terminal.run("echo again", timeout=PATIENCE)
    assert (lost.reason, lost.exit_code, lost.evidence) == ("connection lost", None, "unknown")
    assert (again.output, again.fresh_shell) == ("again\n", True)


@pytest.mark.fleet
async def test_a_container_without_python(container: Container) -> None:
    """F2, F3: the stand-in, with another PATH."""
    in_box(container, "mkdir /tmp/few; for p in sh cat sleep stty hostname; do ln -s /usr/bin/$p /tmp/few/$p; done")
    client = container.tools / "docker"
    text = client.read_text()
    client.write_text(text.replace(next(each for each in text.split() if each.startswith("PATH=")), "PATH=/tmp/few"))
    async with relayed("docker://box") as (_, terminal):
        result = await terminal.run("hostname; cd /home; (exit 9)", timeout=PATIENCE)
    assert (result.output, result.exit_code, result.cwd) == ("box\n", 9, Path("/home"))
