"""Bytes that the kernel hands over late, as on a busy machine, are output all the same; an end waits for them."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.terminals.conftest import Speech

from tarmac.terminals import open_terminal
from tarmac.terminals.process.pty import Pty
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.shell.session import Session

pytestmark = pytest.mark.shell


async def until(holds: Callable[[], bool], *, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        await asyncio.sleep(0.01)


def is_at_prompt(session: Session) -> bool:
    return session.at_prompt() or session.waits()


async def test_output_that_the_kernel_hands_over_late_is_not_lost(
    tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T15: the shell is at its prompt; what it printed is in a buffer that FIONREAD does not count."""
    monkeypatch.setattr(Pty, "has_unread_output", lambda self: False)
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        await terminal.run("true")
        execution = await terminal.start("sh -c 'sleep 0.1; echo one; echo two; exit 18'")
        await until(lambda: execution.began)
        terminal.session.pty.pause()  # the reader comes late
        session = terminal.session
        await until(lambda: is_at_prompt(session))
        await asyncio.sleep(0.5)  # long enough for the terminal to look after its command, and to ask
        terminal.session.pty.resume()
        result = await execution.result(10)
        after = await terminal.run("echo after")
    assert (result.output, result.exit_code, result.evidence) == ("one\ntwo\n", 18, "mark")
    assert (after.output, after.exit_code) == ("after\n", 0)


async def test_what_a_shell_printed_before_it_died_is_read_before_its_end(tmp_path: Path, speech: Speech) -> None:
    """T15: `waitpid` may know of the end before the last bytes can be read."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        session = terminal.session
        execution = await terminal.start("exec sh -c 'echo one; sleep 0.1; exit 3'")
        await until(lambda: execution.began)
        session.pty.pause()
        read, os_read = session.pty.master, os.read
        held = True

        def late(fd: int, size: int) -> bytes:
            if held and fd == read:
                raise BlockingIOError
            return os_read(fd, size)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "read", late)
            await until(lambda: Path(f"/proc/{session.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
            await asyncio.sleep(0.05)
            held = False
            session.pty.resume()
            result = await execution.result(10)
    assert (result.output, result.exit_code, result.reason) == ("one\n", 3, "terminal closed")


async def test_a_shell_killed_at_its_prompt_leaves_no_prompt_in_the_output(tmp_path: Path) -> None:
    """T15: its last mark is read when it is dead already: the command had ended before."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        await terminal.run("PS1='prompt> '")
        for command in ("echo one", "echo one; (exit 0)"):
            await terminal.run("true")
            session = terminal.session
            execution = await terminal.start(command)
            session.pty.pause()
            await until(partial(is_at_prompt, session))
            os.kill(session.pid, signal.SIGKILL)
            await asyncio.sleep(0.05)
            session.pty.resume()
            result = await execution.result(10)
            assert (result.output, result.exit_code, result.reason) == ("one\n", 0, "done")
            await terminal.run("PS1='prompt> '")
