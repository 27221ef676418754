"""A person types in zsh or fish: as in bash (test_person.py), in those shells' words."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.terminals.conftest import Speech, StartUp

from tarmac.errors import TerminalHeld
from tarmac.terminals import Settings, Terminal, open_terminal
from tarmac.terminals.events import CommandFinished, CommandStarted, TerminalEvent
from tarmac.terminals.shell import keyboard

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


PROMPTS = {
    "plain": "here> ",
    "of two lines": "above\nhere> ",
    "longer than a line": "long " * 25 + "here> ",
    "as long as a line": "l" * 114 + "here> ",
    "wide": "漢字 " * 30 + "here> ",
}


def prompt_line(shell: str, prompt: str) -> str:
    """A line of a start-up file that makes `prompt` the shell's prompt, with its first letters in colour."""
    head, tail = prompt[:2], prompt[2:]
    if shell == "fish":
        return (
            f"function fish_greeting; end; function fish_prompt; printf '\\033[32m%s\\033[m%s' '{head}' '{tail}'; end\n"
        )
    if shell == "bash":
        return f"PS1='\\[\\e[32m\\]{head}\\[\\e[m\\]{tail}'\n"
    return f"PROMPT='%F{{green}}{head}%f{tail}'\n"


async def until_free(terminal: Terminal) -> None:
    async with asyncio.timeout(10):
        while terminal.held:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.005)


async def shown(terminal: Terminal) -> str:
    """The letters on the screen."""
    return "".join("".join(await rows_of(terminal)).split())


async def rows_of(terminal: Terminal) -> tuple[str, ...]:
    """What is on the screen when the prompt is there. (fish shows none while nobody types.)"""
    async with asyncio.timeout(10):
        while not terminal.tape.recent().endswith(b"re> ") and terminal.shell.name != "fish":  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return (await terminal.look(limit=0.1)).lines


@pytest.mark.parametrize("kind", PROMPTS)
async def test_a_person_who_takes_over_sees_one_prompt(
    tmp_path: Path, speech: Speech, start_up: StartUp, kind: str
) -> None:
    """T2, T26: the shell shows its prompt once more for its line editor; viewers see one."""
    prompt = PROMPTS[kind]
    start_up.write(prompt_line(speech.shell, prompt))
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await rows_of(terminal)  # a command that is given before the prompt is drawn is shown without it
        await terminal.run("echo agent")
        await terminal.environment()  # an internal command leaves no second prompt either
        for line in ("echo person", "echo again"):
            await terminal.type(f"{line}\r")
            await until_free(terminal)
        screen = await shown(terminal)
    ours = "" if speech.shell == "fish" else prompt  # fish has no prompt without its line editor
    expected = f"{ours} echo agent agent {prompt} echo person person {prompt} echo again again {ours}"
    if speech.shell == "fish" and len(prompt) > 20:  # fish shortens it
        assert screen.count("here") == 2
    else:
        assert screen == "".join(expected.split())


async def test_output_before_the_prompt_stays_when_a_person_takes_over(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T26: output without a newline, on the line of the prompt, and longer than a line."""
    start_up.write(prompt_line(speech.shell, "here> "))
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for before in ("abc", "a" * 119, "b" * 120, "c" * 121):
            await terminal.run(f"printf {before}")
            await terminal.type("echo person\r")
            await until_free(terminal)
            screen = await shown(terminal)
            after = screen.rpartition(f"printf{before}{before}")[2]
            assert after.strip("%⏎") in ("here>echopersonpersonhere>", "here>echopersonperson")


async def test_what_a_job_printed_after_the_prompt_stays_when_a_person_takes_over(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T26: then the prompt is shown again, on a line of its own."""
    start_up.write(prompt_line(speech.shell, "here> "))
    job = "sh -c 'while ! test -e go; do sleep 0.01; done; echo from the job; echo; printf job'"
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run(f"{job} &")
        (tmp_path / "go").touch()
        async with asyncio.timeout(10):
            while not terminal.tape.read(0, terminal.tape.end).endswith(b"job\r\n\r\njob"):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        await terminal.type("echo person\r")
        await until_free(terminal)
        rows = await rows_of(terminal)
    assert [row for row in rows if row.endswith("from the job")]
    assert [row.strip() for row in rows if row == "job" or "echo person" in row] == ["job", "here> echo person"]


async def test_a_persons_first_key_after_a_command_is_not_held_back(
    tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T26: it waits for the prompt of that command, and for nothing else."""
    monkeypatch.setattr(keyboard, "LATE_PROMPT", 3600)
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run("echo agent")
        await terminal.type("echo person > theirs\r")
        await until_free(terminal)
        assert (tmp_path / "theirs").read_text() == "person\n"
