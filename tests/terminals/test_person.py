"""A person types in the same terminal: it is theirs from their first byte until the next prompt."""

import asyncio
from pathlib import Path

import pytest

from tarmac.errors import TerminalHeld
from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.events import CommandFinished, CommandStarted, TerminalEvent
from tarmac.terminals.shell.pty_terminal import PtyTerminal

pytestmark = pytest.mark.shell


class Watch:
    """The events of a terminal; `until` waits for one that fits."""

    def __init__(self) -> None:
        self.seen: list[TerminalEvent] = []
        self._new = asyncio.Event()

    def __call__(self, event: TerminalEvent) -> None:
        self.seen.append(event)
        self._new.set()

    async def until(self, kind: type[TerminalEvent], count: int = 1) -> list[TerminalEvent]:
        async with asyncio.timeout(10):
            while len(found := [each for each in self.seen if isinstance(each, kind)]) < count:
                self._new.clear()
                await self._new.wait()
        return found


async def test_what_a_person_runs_is_seen_as_a_command(tmp_path: Path) -> None:
    """T2, T32: start, end, code and directory of what they type come through the hooks."""
    (tmp_path / "a b").mkdir()
    watch = Watch()
    async with open_terminal(cwd=tmp_path, listener=watch) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.type("cd 'a b'; (exit 4)\r")
        started = (await watch.until(CommandStarted))[0]
        finished = (await watch.until(CommandFinished))[0]
        assert isinstance(started, CommandStarted)
        assert isinstance(finished, CommandFinished)
        assert (started.command, started.by_person, started.cwd) == ("cd 'a b'; (exit 4)", True, tmp_path)
        assert (finished.exit_code, finished.by_person, finished.cwd) == (4, True, tmp_path / "a b")
        result = await terminal.run("echo $?; pwd")
        assert result.output == f"4\n{tmp_path / 'a b'}\n"
        assert [past.by_person for past in terminal.history] == [True, False]


async def test_a_run_waits_for_the_person_and_is_never_joined_to_their_half_typed_line(tmp_path: Path) -> None:
    """T2, D58: the half-typed line is kept, the command runs after it."""
    watch = Watch()
    async with open_terminal(cwd=tmp_path, listener=watch) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.type("echo half")
        assert terminal.held
        run = asyncio.create_task(terminal.run("echo agent", timeout=20))
        for _ in range(50):
            await asyncio.sleep(0.005)
            assert not run.done()
        await terminal.type("-typed > person.txt\r")
        result = await run
        assert (result.output, result.exit_code) == ("agent\n", 0)
        assert (tmp_path / "person.txt").read_text() == "half-typed\n"
        assert not terminal.held


async def test_a_run_fails_with_a_typed_error_when_the_person_takes_too_long(tmp_path: Path) -> None:
    """T2: TerminalHeld says who has it; their line is still theirs afterwards."""
    watch = Watch()
    async with open_terminal(cwd=tmp_path, settings=Settings(hold_timeout=0.5), listener=watch) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.type("echo mine >")
        with pytest.raises(TerminalHeld, match="person is typing"):
            await terminal.run("echo agent")
        await terminal.type(" x\r")
        await watch.until(CommandFinished)
        assert (await terminal.run("cat x", timeout=20)).output == "mine\n"


async def test_an_empty_line_or_ctrl_c_of_a_person_gives_the_terminal_back(tmp_path: Path) -> None:
    """T2: the next prompt ends the hold, also when nothing was run."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal)
        for keys in ("\r", "abc\x03", "  \r", "abc\x15\r"):
            await terminal.type(keys)
            assert (await terminal.run("echo agent")).output == "agent\n"


async def test_a_person_has_line_editing_and_an_agent_leaves_no_history(tmp_path: Path) -> None:
    """T20, D11: arrows and Ctrl-A work for them; up-arrow brings their last line, never an agent's."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.type("cho one > a\x01e\r")
        await terminal.run("echo agent")
        await terminal.type("\x1b[A\x7fb\r")
        await terminal.run("history -a hist; set -o history; set +o history; HISTFILE=x; history -w all")
        assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("one\n", "one\n")
        assert (tmp_path / "all").read_text() == "echo one > a\necho one > b\n"


async def test_an_agent_never_runs_in_the_persons_shell_options(tmp_path: Path) -> None:
    """T20: line editing is off again after their line, so that remapped keys can't hurt."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.type("bind 'RETURN: beep'\n")
        assert (await terminal.run("echo ok; [[ -o emacs ]]")).output == "ok\n"
        assert (await terminal.run("[[ -o emacs || -o vi ]]")).exit_code == 1


@pytest.mark.parametrize(
    "line", ["PROMPT_COMMAND=", "set -o vi", "set +o emacs", "bind 'set editing-mode vi'", "PS1=x"]
)
async def test_whatever_a_person_does_to_their_editor_the_agent_gets_the_terminal_back(
    tmp_path: Path, line: str
) -> None:
    """T2, T20: the next prompt ends the hold, and they can type again."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.type(f"{line}\r")
        first = await terminal.run("echo one; (exit 3)", timeout=20)
        await terminal.type("echo person > theirs\r")
        second = await terminal.run("cat theirs", timeout=20)
        assert (first.output, first.exit_code, second.output) == ("one\n", 3, "person\n")


async def test_a_trace_a_person_turned_on_shows_none_of_our_words(tmp_path: Path) -> None:
    """T20: `set -x` of theirs stays on for the agent's commands, and for those alone."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.type("set -x\r")
        result = await terminal.run("echo hi", timeout=20)
        assert (result.output, result.exit_code) == ("++ echo hi\nhi\n", 0)


async def test_a_person_answers_the_agents_command(tmp_path: Path) -> None:
    """T19: what they type while it runs goes to it."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal)
        execution = await terminal.start("read -p 'Name: ' x; echo hello $x")
        async for chunk in execution:
            if "Name" in str(chunk):
                break
        await terminal.type("Ada\r")
        result = await execution.result(timeout=10)
        assert (result.output, result.exit_code) == ("Name: Ada\nhello Ada\n", 0)
        assert (await terminal.run("echo agent")).output == "agent\n"


async def test_a_person_who_leaves_the_shell_gets_a_fresh_one_for_the_agent(tmp_path: Path) -> None:
    """T11: Ctrl-D ends their shell, not the terminal."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal)
        await terminal.type("\x04")
        async with asyncio.timeout(10):
            while terminal.session is not None and terminal.session.alive:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        result = await terminal.run("echo agent")
        assert (result.output, result.fresh_shell) == ("agent\n", True)


async def test_a_person_who_types_before_the_prompt_is_there_loses_nothing(tmp_path: Path) -> None:
    """T2: the end mark is ahead of a slow hook's prompt; their keys wait for that prompt."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("PROMPT_COMMAND='sleep 0.02'")
        for number in range(5):
            await terminal.run("echo ours; (exit 3)")
            await terminal.type(f"echo person {number} > theirs\r")
            assert (await terminal.run("cat theirs", timeout=20)).output == f"person {number}\n"
