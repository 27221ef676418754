"""What a host leaves behind or keeps too long: a killed one's folders, unread input, listeners, late ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests.terminals.conftest import Speech

from tarmac.errors import InputClosed
from tarmac.terminals import Settings, TerminalRegistry, open_terminal
from tarmac.terminals import events as ev

pytestmark = pytest.mark.shell

HOST = """
    import asyncio, sys
    from tarmac.terminals import open_terminal

    async def main():
        async with open_terminal(shell=sys.argv[1]) as terminal:
            await terminal.run(":")
            print("up", flush=True)
            await asyncio.sleep(60)

    asyncio.run(main())
"""


def be_killed(shell: str) -> None:
    """A host with an open terminal, killed."""
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(HOST), shell], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None and host.stdout.readline() == b"up\n"
        host.send_signal(signal.SIGKILL)


def grow_old(folder: Path) -> list[Path]:
    """As if nobody had touched them for two hours."""
    found = sorted(folder.glob("tarmac-*"))
    for each in found:
        os.utime(each, (time.time() - 7200, time.time() - 7200))
    return found


async def test_the_folder_of_a_killed_host_is_removed_by_the_next_one_and_that_of_a_living_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speech: Speech
) -> None:
    """T17: it holds what the shell exported, and so perhaps secrets."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("TARMAC_STATE_DIR", str(tmp_path / "state"))
    be_killed(speech.shell)
    (left,) = grow_old(folder)
    async with open_terminal(shell=speech.shell) as alive:
        await alive.run(":")
        (living,) = set(grow_old(folder)) - {left}
        async with open_terminal(shell=speech.shell):
            pass
        assert (left.exists(), living.exists()) == (False, True)
        assert (await alive.run("echo fine")).output == "fine\n"
    assert not any(folder.glob("tarmac-*"))


@pytest.mark.parametrize("provider", ["pty", "exec"])
async def test_input_that_no_program_reads_has_a_bound_and_is_refused_as_a_whole(tmp_path: Path, provider: str) -> None:
    """T16: the host's memory does not grow with what a program leaves unread."""
    async with TerminalRegistry(Settings()) as terminals:
        terminal = await terminals.open(cwd=tmp_path, provider="exec" if provider == "exec" else "pty")
        execution = await terminal.start("sleep 60")
        with pytest.raises(InputClosed, match="too much at once: 9,000,000 bytes"):
            await execution.send("x" * 9_000_000)
        with pytest.raises(InputClosed, match="has not read"):
            for _ in range(100):
                await execution.send("line\n" * 10_000)
        await execution.kill()


async def test_who_listens_to_the_registry_can_stop_listening(tmp_path: Path) -> None:
    """T32: front ends come and go."""
    heard: list[ev.TerminalEvent] = []
    async with TerminalRegistry(Settings()) as terminals:
        stop = terminals.subscribe(heard.append)
        terminal = await terminals.open(cwd=tmp_path)
        await terminal.run("true")
        assert any(isinstance(each, ev.CommandFinished) for each in heard)
        stop()
        stop()
        heard.clear()
        await terminal.run("true")
    assert heard == []


async def test_an_end_that_was_told_does_not_wait_for_a_slow_prompt_hook(tmp_path: Path) -> None:
    """T15: the shell has told the end: that is the result, whatever its hook does."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        command = "PROMPT_COMMAND='sleep 60;'\"$PROMPT_COMMAND\"; sh -c 'exit 3'"
        result = await terminal.run(command, timeout=1.5)
        assert (result.reason, result.exit_code) == ("done", 3)
