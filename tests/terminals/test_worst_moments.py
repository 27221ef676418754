"""Cancelled, closed, or out of room at the worst moment: nothing hangs, nothing is left, the blame is right."""

import asyncio
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.terminals.conftest import Speech

from tarmac.errors import StateUnavailable, TerminalClosed
from tarmac.terminals import Answer, Settings, TerminalRegistry, open_terminal
from tarmac.terminals import events as ev
from tarmac.terminals.shell.pty_terminal import PtyTerminal

pytestmark = pytest.mark.shell


async def test_a_run_that_is_cancelled_while_it_moves_ends_its_command(tmp_path: Path, speech: Speech) -> None:
    """T6: its caller was the only one with a handle on it; the next one finds the terminal free."""
    there = tmp_path / "there"
    there.mkdir()
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for pauses in range(12):
            run = asyncio.create_task(terminal.run("sleep 60", cwd=there if pauses % 2 else tmp_path))
            for _ in range(pauses):
                await asyncio.sleep(0)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            result = await terminal.run("pwd", cwd="/usr", timeout=10)
            assert (result.output, result.exit_code) == ("/usr\n", 0)


async def test_a_prompt_hook_that_hangs_does_not_hold_up_a_call_that_moves(tmp_path: Path, speech: Speech) -> None:
    """T6, T18: the caller's time limit counts for a command that has to go elsewhere first, too."""
    hooks = {
        "bash": "PROMPT_COMMAND='sleep 60'",
        "zsh": "precmd() { sleep 60 }",
        "fish": "function fish_prompt; sleep 60; end",
    }
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run(hooks[speech.shell], timeout=0.5)
        began = time.monotonic()
        if terminal.current is None:
            result = await terminal.run("pwd", cwd="/usr", timeout=0.2)
            assert result.running or result.reason == "not run" or result.output == "/usr\n"
        assert time.monotonic() - began < 6


async def test_a_listener_that_fails_is_reported_and_stops_no_terminal(tmp_path: Path, speech: Speech) -> None:
    """T32: one viewer's fault is neither the command's nor another viewer's."""
    reported: list[str] = []
    heard: list[ev.TerminalEvent] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))

    def fails(event: ev.TerminalEvent) -> None:
        raise RuntimeError("a viewer's fault")

    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        terminal.subscribe(fails)
        terminal.subscribe(heard.append)
        for _ in range(2):
            assert (await terminal.run("echo hello", timeout=10)).output == "hello\n"
    assert any("CommandStarted" in each for each in reported)
    assert sum(isinstance(each, ev.CommandFinished) for each in heard) == 2


async def test_a_listener_of_a_registry_that_fails_loses_no_terminal(tmp_path: Path) -> None:
    """T11, T32."""
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    def fails(event: ev.TerminalEvent) -> None:
        raise RuntimeError("a viewer's fault")

    async with TerminalRegistry(Settings(max_terminals=1, warm_pool=0, lease_timeout=5)) as terminals:
        terminals.subscribe(fails)
        for task in ("A", "A", "B"):
            terminal = await terminals.get_or_create(cwd=tmp_path, task=task)
            assert (await terminal.run("echo hello")).output == "hello\n"
            terminals.release_for_task(task)


READS_KEYS = """
import os, sys, termios, tty
before = termios.tcgetattr(0)
tty.setcbreak(0)
print("PIN: ", end="", flush=True)
typed = b""
while (key := os.read(0, 1)) not in b"\\r\\n":
    typed += key
termios.tcsetattr(0, termios.TCSANOW, before)
print("\\nyou typed", typed.decode())
"""


async def test_a_secret_answer_is_masked_where_keys_are_read_too(tmp_path: Path, own_state: Path) -> None:
    """T19: a program that reads its secret key by key and repeats it."""
    (tmp_path / "keys.py").write_text(READS_KEYS)
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("python3 keys.py", answers=[Answer("PIN:", "correct horse", secret=True)])
        assert result.output.endswith("you typed ********\n")
        assert "correct horse" not in terminal.recent_output()


@contextmanager
def no_file_can_grow() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_refuses_the_command_and_the_terminal_goes_on(tmp_path: Path, speech: Speech) -> None:
    """T11: what can't be handed to the shell is not run, not half of it either; the next one is."""
    command = "echo one; echo two >> 'file'"
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        with no_file_can_grow(), pytest.raises(StateUnavailable, match="too large") as raised:
            await terminal.run(command, cwd="/")
        assert raised.value.hint
        assert not terminal.busy and not list(tmp_path.iterdir())
        result = await terminal.run(command, cwd=tmp_path, timeout=10)
        assert (result.output, (tmp_path / "file").read_text()) == ("one\n", "two\n")


async def test_a_full_disk_at_the_opening_is_not_blamed_on_ptys(tmp_path: Path, speech: Speech) -> None:
    """T12: OutOfTerminals would send people after the wrong limit."""
    with no_file_can_grow(), pytest.raises(StateUnavailable, match="too large"):
        async with open_terminal(cwd=tmp_path, shell=speech.shell):
            pass


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 — each step of the loop is looked at
            await asyncio.sleep(0)


@pytest.mark.parametrize("when", ["the old shell ends", "the new one starts"])
async def test_a_terminal_that_is_closed_while_it_is_reset_leaves_no_shell(
    tmp_path: Path, speech: Speech, when: str
) -> None:
    """T17: the fresh shell that was on its way goes too, and is not started once more without start-up files."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert isinstance(terminal, PtyTerminal)
        old = terminal.session
        reset = asyncio.create_task(terminal.reset(tmp_path))
        if when == "the old shell ends":
            await until(lambda: terminal.session is None)
        else:
            await until(lambda: terminal.session not in (None, old))
        await terminal.aclose()
        with pytest.raises(TerminalClosed):
            await reset
        left = terminal.session
        assert left is None or not left.alive


async def test_a_terminal_that_is_closed_while_a_command_moves_is_not_the_directorys_fault(
    tmp_path: Path, speech: Speech
) -> None:
    """T11: its execution ends with the reason; nobody is told that the directory was bad."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        run = asyncio.create_task(terminal.run("sleep 60", cwd="/usr"))
        await until(lambda: terminal.busy)
        await terminal.aclose()
        assert (await run).reason == "terminal closed"


async def test_whoever_closes_a_terminal_that_is_being_closed_waits_for_its_end_too(tmp_path: Path) -> None:
    """T17: also after the first one who closed it was cancelled in the middle."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal)
        session = terminal.session
        await terminal.start("sh -c 'trap \"\" TERM HUP INT; sleep 60'")
        first = asyncio.create_task(terminal.aclose())
        await until(lambda: terminal.closed)
        first.cancel()
        await terminal.aclose()
        assert session is not None and not session.alive


async def test_a_subscription_made_while_the_environment_is_asked_for_is_kept(tmp_path: Path, speech: Speech) -> None:
    """T31, T32: our own question to the shell is told to nobody, and disturbs nobody who listens."""
    heard: list[ev.TerminalEvent] = []
    gone: list[ev.TerminalEvent] = []
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run("echo before")
        unsubscribe = terminal.subscribe(gone.append)
        asked = asyncio.create_task(terminal.environment())
        while terminal.current is None:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0)
        terminal.subscribe(heard.append)
        unsubscribe()
        await asked
        assert (terminal.last_command, [past.command for past in terminal.history]) == ("echo before", ["echo before"])
        told = [each for each in (*gone, *heard) if isinstance(each, ev.CommandStarted | ev.CommandFinished)]
        heard.clear()
        await terminal.run("echo after")
    assert told == []
    assert [each.command for each in heard if isinstance(each, ev.CommandFinished)] == ["echo after"]


async def test_a_caller_who_gives_up_while_leftovers_are_ended_costs_nobody_else_the_terminal(tmp_path: Path) -> None:
    """T17: the next command has a fresh shell, and closing works; found by the fuzzer."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        await terminal.run("(trap '' HUP TERM INT; exec sleep 86400) & exit 3")
        waiting = asyncio.ensure_future(terminal.run("echo lost"))
        await asyncio.sleep(0)  # it waits for what the shell left behind, which takes its grace
        waiting.cancel()
        await asyncio.wait([waiting])
        assert (await terminal.run("echo here", timeout=20)).output == "here\n"


@pytest.mark.parametrize("moves", [False, True])
async def test_a_caller_who_gives_up_does_not_take_along_that_the_shell_is_a_fresh_one(
    tmp_path: Path, speech: Speech, moves: bool
) -> None:
    """T17: nobody got that result, so the next one says it; found by the fuzzer."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run("exit 3")
        gives_up = asyncio.ensure_future(terminal.run("sleep 60", cwd="/usr" if moves else None))
        await until(lambda: terminal.current is not None)
        gives_up.cancel()
        await asyncio.wait([gives_up])
        first = await terminal.run("echo here", timeout=20)
        second = await terminal.run("echo here", timeout=20)
    assert (first.output, first.fresh_shell, second.fresh_shell) == ("here\n", True, False)
    assert any("in a fresh one" in each for each in first.notes)
