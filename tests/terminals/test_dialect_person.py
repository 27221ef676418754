"""A person types in zsh or fish: as in bash (test_person.py), in those shells' words."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.terminals.conftest import Speech

from tarmac.errors import TerminalHeld
from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.events import CommandFinished, CommandStarted, TerminalEvent

pytestmark = pytest.mark.shell


async def test_what_a_person_runs_is_seen_as_a_command(tmp_path: Path, speech: Speech) -> None:
    """T2, T32: start, end, code and directory come through the hooks; the agent's command runs after it."""
    (tmp_path / "a b").mkdir()
    seen: list[TerminalEvent] = []
    line = "cd 'a b'; sh -c 'exit 4'"
    async with open_terminal(cwd=tmp_path, shell=speech.shell, listener=seen.append) as terminal:
        await terminal.type(line + "\r")
        result = await terminal.run(f"echo {speech.last}; pwd")
        assert result.output == f"4\n{tmp_path / 'a b'}\n"
        assert (terminal.history[0].command, terminal.history[0].by_person) == (line, True)
    started = next(each for each in seen if isinstance(each, CommandStarted))
    finished = next(each for each in seen if isinstance(each, CommandFinished))
    assert (started.command, started.by_person, started.cwd) == (line, True, tmp_path)
    assert (finished.exit_code, finished.by_person, finished.cwd) == (4, True, tmp_path / "a b")


async def test_a_half_typed_line_holds_the_terminal_and_stays_whole(tmp_path: Path, speech: Speech) -> None:
    """T2, D58: a run waits, then gives up with a typed error; their line is never joined with ours."""
    settings = Settings(hold_timeout=0.3)
    async with open_terminal(cwd=tmp_path, shell=speech.shell, settings=settings) as terminal:
        await terminal.type("echo person > theirs")
        with pytest.raises(TerminalHeld):
            await terminal.run("echo agent")
        assert terminal.held
        await terminal.type("\r")
        async with asyncio.timeout(10):
            while terminal.held:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.005)
        assert (await terminal.run("cat theirs")).output == "person\n"


async def test_an_empty_line_or_ctrl_c_gives_the_terminal_back(tmp_path: Path, speech: Speech) -> None:
    """T2: the next prompt ends the hold, also when nothing was run."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for keys in ("\r", "abc\x03", "  \r", "abc\x15\r"):
            await terminal.type(keys)
            assert (await terminal.run("echo agent")).output == "agent\n"


async def test_a_person_has_line_editing_and_their_own_history(tmp_path: Path, speech: Speech) -> None:
    """T20, D11: Ctrl-A works for them; up-arrow brings their last line, never an agent's."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.type("cho one > a\x01e\r")
        await terminal.run("echo agent")
        await terminal.type("\x1b[A\x7fb\r")
        await terminal.run("echo agent")
        assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("one\n", "one\n")


LINES = {
    "bash": ["set -o vi", "set +o emacs", "bind 'RETURN: beep'", "PROMPT_COMMAND=", "stty -echo"],
    "zsh": [
        "bindkey -v",
        "unsetopt zle",
        "bindkey '^M' undefined-key",
        "accept-line() { : }; zle -N accept-line",
        "setopt xtrace",
        "stty -echo",
    ],
    "fish": [
        "fish_vi_key_bindings",
        "bind \\r ''",
        "stty -echo",
    ],
}


async def test_whatever_a_person_does_to_their_editor_the_agent_gets_the_terminal_back(
    tmp_path: Path, speech: Speech
) -> None:
    """T2, T20: vi mode, Enter remapped, accept-line replaced, echo off."""

    async def after(line: str) -> str:
        async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
            await terminal.type(f"{line}\r")
            result = await terminal.run("echo one", timeout=15)
            return f"{line}: {result.output.splitlines()[-1:]} {result.exit_code} {result.fresh_shell}"

    lines = LINES[speech.shell]
    assert [await after(line) for line in lines] == [f"{line}: ['one'] 0 False" for line in lines]


async def test_a_person_who_leaves_the_shell_gets_a_fresh_one_for_the_agent(tmp_path: Path, speech: Speech) -> None:
    """T11: Ctrl-D ends their shell, not the terminal."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.type("\x04")
        async with asyncio.timeout(10):
            while (session := getattr(terminal, "session", None)) is not None and session.alive:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        result = await terminal.run("echo agent")
        assert (result.output, result.fresh_shell) == ("agent\n", True)


async def test_no_line_lands_in_the_users_history_file(
    tmp_path: Path, own_state: Path, require: Callable[[str], None]
) -> None:
    """Neither the agent's nor our own."""
    require("zsh")
    history = own_state / ".zsh_history"
    history.write_text(": 1:0;echo old\n")
    (own_state / ".zshrc").write_text(
        "HISTFILE=~/.zsh_history HISTSIZE=1000 SAVEHIST=1000; setopt inc_append_history\n"
    )
    async with open_terminal(cwd=tmp_path, shell="zsh") as terminal:
        await terminal.run("echo agent")
        await terminal.type("\x1b[A > recalled\r")  # their history is there
        await terminal.run("echo agent; fc -l 2>/dev/null")
    assert (tmp_path / "recalled").read_text() == "old\n"
    assert history.read_text() == ": 1:0;echo old\n"
