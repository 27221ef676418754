"""What a terminal is and does, requirement by requirement, on a real bash."""

import asyncio
import re
import time
from pathlib import Path

import pytest

from tarmac.errors import DirectoryUnavailable, InputClosed, TerminalBusy, TerminalNotFound
from tarmac.terminals import Gap, PathContribution, Settings, TerminalRegistry, open_terminal, run_batch, run_once
from tarmac.terminals import events as ev
from tarmac.terminals.exec import ExecTerminal
from tarmac.terminals.process import processes
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell
PROVIDERS: tuple[Provider, ...] = ("pty", "exec")


async def test_both_providers_are_used_alike(tmp_path: Path) -> None:
    """T1: the same verbs; `pty` keeps the directory a command moved to, `exec` its initial one."""
    (tmp_path / "src").mkdir()
    seen = {}
    for provider in PROVIDERS:
        async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
            result = await terminal.run("cd src && echo there; exit_with() { return 5; }; exit_with")
            seen[provider] = (result.output, result.exit_code, result.cwd, result.evidence, terminal.provider)
    assert seen == {
        "pty": ("there\n", 5, tmp_path / "src", "mark", "pty"),
        "exec": ("there\n", 5, tmp_path, "waitpid", "exec"),
    }


async def test_a_new_terminal_is_idle_and_a_running_one_busy(tmp_path: Path) -> None:
    """T2: its state, from the start to the end of a command."""
    async with open_terminal(cwd=tmp_path, name="build") as terminal:
        assert (terminal.name, terminal.provider, terminal.origin, terminal.task, terminal.sandbox) == (
            ("build", "pty", "agent", None, None)
        )
        assert (terminal.busy, terminal.running, terminal.current, terminal.last_command) == (False, False, None, None)
        execution = await terminal.start("read x")
        assert (terminal.busy, terminal.running, terminal.current) == (True, True, execution)
        with pytest.raises(TerminalBusy, match="read x"):
            await terminal.start("echo too soon")
        await execution.send("\n")
        await execution.result(timeout=10)
        assert (terminal.busy, terminal.last_command, terminal.initial_cwd) == (False, "read x", tmp_path)
        assert terminal.used_at <= time.monotonic()


async def test_finished_commands_wait_to_be_read(tmp_path: Path) -> None:
    """T2: a queue of finished executions not yet read."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("echo unread")
        assert await execution.ended(10)
        assert terminal.unread == [execution]
        assert (await execution.result()).output == "unread\n"
        assert terminal.unread == []


async def test_moving_leaves_no_trace(tmp_path: Path) -> None:
    """T6: the terminal moves before the command, which sees neither output, code nor $? of it."""
    names = ["a b", "c;d", "$e", "-f", "g\nh", "i'j\"k", "l\\m", "n\to", "ü", "p\x07q\x1br"]
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("(exit 7)")
        for name in names:
            target = tmp_path / name
            target.mkdir()
            result = await terminal.run("echo $? >code; pwd >where; (exit 7)", cwd=target)
            assert (result.output, result.exit_code, result.cwd) == ("", 7, target)
            assert ((target / "code").read_text(), (target / "where").read_text()) == ("7\n", f"{target}\n")


async def test_a_directory_that_is_gone_is_a_clear_error_and_nothing_runs(tmp_path: Path) -> None:
    """T6: gone before the call, or between our look and the shell's."""
    gone = tmp_path / "gone"
    async with open_terminal(cwd=tmp_path) as terminal:
        with pytest.raises(DirectoryUnavailable, match="does not exist"):
            await terminal.run("touch ran", cwd=gone)
        assert not (tmp_path / "ran").exists()
        assert (await terminal.run("pwd")).output == f"{tmp_path}\n"


async def test_a_temporary_command_leaves_nothing(tmp_path: Path, own_state: Path) -> None:
    """T13: output and code, then its terminal, its processes and its files are gone."""
    result = await run_once("sleep 300 & echo hi; (exit 3)", cwd=tmp_path)
    assert (result.exit_code, re.sub(r"\[1\] \d+\n", "", result.output)) == (3, "hi\n")
    assert list((own_state / "state" / "output").iterdir()) == []


async def test_a_batch_shares_one_shell_and_stops_at_the_first_error_if_asked(tmp_path: Path) -> None:
    """T13: `cd` and variables carry over; one result each."""
    (tmp_path / "d").mkdir()
    commands = ["cd d; X=1", "echo $X; pwd; false", "echo after"]
    stopped = await run_batch(commands, cwd=tmp_path)
    on = await run_batch(commands, cwd=tmp_path, stop_on_error=False)
    assert [each.output for each in stopped] == ["", f"1\n{tmp_path / 'd'}\n"]
    assert [each.exit_code for each in on] == [0, 1, 0]


async def test_persistent_terminals_are_used_by_id(tmp_path: Path) -> None:
    """T14: open, run in, list, read, send, interrupt, kill."""
    async with TerminalRegistry(Settings()) as terminals:
        terminal = await terminals.open(name="server", cwd=tmp_path)
        assert (await terminals.get(terminal.id).run("cd /; X=5")).exit_code == 0
        assert (await terminals.get(terminal.id).run("echo $X; kill -TERM $BASHPID & wait $!")).signal == "SIGTERM"
        execution = await terminals.get(terminal.id).start("echo up; read x; echo got $x; sleep 300")
        async for chunk in execution:
            if "up" in str(chunk):
                break
        await execution.send("it\n")
        async for chunk in execution:
            if "got it" in str(chunk):
                break
        so_far = (await terminals.read(terminal.id))[-1]
        assert (so_far.reason, "got it" in so_far.output) == ("left running", True)
        assert terminals.listing(busy=True) == [terminal]
        await execution.interrupt()
        assert (await execution.result(timeout=10)).reason == "interrupted"
        await terminals.kill(terminal.id)
        await terminals.kill("t999999")
        assert terminals.listing() == []
        with pytest.raises(TerminalNotFound, match=f"Terminal {terminal.id} not found"):
            await terminals.get(terminal.id).run("echo")


async def test_many_listeners_each_see_everything_at_their_own_pace(tmp_path: Path) -> None:
    """T16: nothing before the start mark or from the end mark on is output; a slow one sees a gap, and stops nobody."""
    settings = Settings(spool_limit=1 << 20, display_interval=0.01)
    async with open_terminal(cwd=tmp_path, settings=settings) as terminal:
        execution = await terminal.start("seq 1 400000")

        async def listen(*, slowly: bool) -> tuple[str, int]:
            text, missed = "", 0
            async for chunk in execution:
                if isinstance(chunk, Gap):
                    missed += chunk.bytes
                else:
                    text += chunk
                if slowly:
                    await execution.ended(5)
            return text, missed

        slow, *quick = await asyncio.gather(listen(slowly=True), listen(slowly=False), listen(slowly=False))
        result = await execution.result(timeout=20)
        assert result.exit_code == 0
        assert slow[1] > 0
        assert slow[0].endswith("\n399999\n400000\n")
        assert all(text.endswith("\n400000\n") for text, _ in quick)
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("seq 1 20000")
        whole = "".join([str(chunk) async for chunk in execution])
        assert whole == "".join(f"{n}\n" for n in range(1, 20001))


async def test_integration_that_does_not_come_up_falls_back_to_exec_once(tmp_path: Path, own_state: Path) -> None:
    """T21: one event, the command runs exactly once, later ones don't wait again."""
    (own_state / ".bashrc").write_text("sleep 100\n")
    seen: list[ev.TerminalEvent] = []
    settings = Settings(shell_integration_timeout=0.3)
    async with open_terminal(cwd=tmp_path, settings=settings, listener=seen.append) as terminal:
        first = await terminal.run("echo x >>ran; echo one")
        second = await terminal.run("echo x >>ran; echo two; false")
        assert (terminal.quality, terminal.provider, terminal.busy) == ("none", "exec", False)
        assert [past.exit_code for past in terminal.history] == [0, 1]
    assert (first.output, first.exit_code, second.output, second.exit_code) == ("one\n", 0, "two\n", 1)
    assert "no shell integration" in first.notes[0]
    assert (tmp_path / "ran").read_text() == "x\nx\n"
    assert sum(isinstance(each, ev.NoShellIntegration) for each in seen) == 1


async def test_start_up_files_that_exit_are_left_out_and_it_is_said(tmp_path: Path, own_state: Path) -> None:
    """T21: a shell that leaves at once is started once more, without them."""
    (own_state / ".bashrc").write_text("exit 3\n")
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("echo hi")
    assert (result.output, result.evidence) == ("hi\n", "mark")
    assert "start-up files" in result.notes[0]


@pytest.mark.parametrize("line", ["exec </dev/null", "trap 'exit 4' DEBUG", "kill -9 $$"])
async def test_start_up_files_that_end_the_shell_at_its_first_prompt_are_left_out(
    tmp_path: Path, own_state: Path, line: str
) -> None:
    """T21: whatever they do, the command runs exactly once, or an error says why not."""
    (own_state / ".bashrc").write_text(f"{line}\n")
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("echo x >>ran; echo hi", timeout=10, on_timeout="kill")
        assert (result.output, result.exit_code) == ("hi\n", 0)
    assert (tmp_path / "ran").read_text() == "x\n"


async def test_what_those_start_up_files_left_running_is_ended_and_the_next_shell_is_not(
    tmp_path: Path, own_state: Path
) -> None:
    """T21: it bears the mark of the same terminal."""
    (own_state / ".bashrc").write_text("trap '' HUP TERM; sleep 1000 & echo $! >left; exec </dev/null\n")
    async with open_terminal(cwd=tmp_path) as terminal:
        left = processes.look(int((tmp_path / "left").read_text()))
        result = await terminal.run("echo hi", timeout=10, on_timeout="kill")
        assert (left, result.output, result.exit_code) == (None, "hi\n", 0)


async def test_the_users_start_up_files_keep_working(tmp_path: Path, own_state: Path) -> None:
    """T20: aliases, functions, PS1, PROMPT_COMMAND and options of theirs."""
    (own_state / ".bashrc").write_text(
        "alias greet='echo hello'\nPS1='mine> '\nPROMPT_COMMAND='COUNT=$((COUNT+1))'\nshopt -s extglob nullglob\n"
        "set -o vi\nexport EDITOR=ed\n[ 1 = 2 ]\n"
    )
    async with open_terminal(cwd=tmp_path) as terminal:
        results = [await terminal.run(each) for each in ("greet", "echo $((COUNT > 1))", "echo *.none", "echo $EDITOR")]
        assert [each.output for each in results] == ["hello\n", "1\n", "\n", "ed\n"]
        assert (terminal.quality, terminal.shell_version[:2]) == ("rich", "5.")


async def test_commands_run_in_an_environment_that_neither_pages_nor_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T23: pagers off, prompts off, a UTF-8 locale, none of our secrets."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("TARMAC_TOKEN", "secret")
    monkeypatch.setenv("LC_ALL", "C")
    for provider in PROVIDERS:
        async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
            text = (await terminal.run("env")).output
            lines = set(text.splitlines())
            assert {"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "VTE_VERSION=0", "LC_CTYPE=C.UTF-8"} <= lines
            assert "secret" not in text
            assert "LC_ALL" not in text
            assert (await terminal.run("printf '%s' ü | wc -m")).output.strip() == "1"


async def test_the_seeds_switches_add_their_variables() -> None:
    """T23: zsh_oh_my, zsh_p10k, zsh_clear_eol_mark; and settings of the caller's own."""
    settings = Settings(zsh_oh_my=True, zsh_p10k=True, environment={"MINE": "1", "HOME": ""})
    result = await run_once("env", cwd="/", settings=settings)
    lines = set(result.output.splitlines())
    assert {"ITERM_SHELL_INTEGRATION_INSTALLED=Yes", "POWERLEVEL9K_TERM_SHELL_INTEGRATION=true", "MINE=1"} <= lines
    assert "PROMPT_EOL_MARK=" in lines


async def test_the_whole_output_is_kept_when_the_result_cannot_show_it(tmp_path: Path) -> None:
    """T27: bounded in memory, whole on disk, readable by line and searchable afterwards, also after the terminal."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("seq 1 100000")
        result = await execution.result(timeout=20)
        short = await terminal.run("echo short")
    assert (result.truncated, len(result.output.splitlines()) <= 501) == (True, True)
    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("99999\n100000\n")
    assert "99,500 lines" in result.output
    assert result.output_path is not None
    assert result.output_path.read_bytes() == b"".join(b"%d\r\n" % n for n in range(1, 100001))
    assert execution.spool.lines(50_000, 50_001).lines == (b"50000", b"50001")
    assert [match.line_number for match in execution.spool.search("^7777$")] == [7777]
    assert (short.output_path is not None, short.output_path and short.output_path.exists()) == (True, False)


async def test_state_can_be_asked(tmp_path: Path) -> None:
    """T31: directory, changed environment with secrets masked, shell and version, history, recent output."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("export COLOUR=green API_TOKEN=abc; unset DEBIAN_FRONTEND")
        await terminal.run("cd /; false")
        changed = await terminal.environment()
        assert changed == {"COLOUR": "green", "API_TOKEN": "********", "DEBIAN_FRONTEND": None}
        assert (terminal.cwd, terminal.shell.name, terminal.last_command) == (Path("/"), "bash", "cd /; false")
        assert [(past.command, past.exit_code, past.cwd) for past in terminal.history] == [
            ("export COLOUR=green API_TOKEN=abc; unset DEBIAN_FRONTEND", 0, tmp_path),
            ("cd /; false", 1, tmp_path),
        ]
        await terminal.run("echo recent words")
        assert "recent words" in terminal.recent_output()
        assert len(terminal.recent_output(max_chars=5)) <= 5
        assert "__tarmac" not in terminal.recent_output()


async def test_events_tell_the_story(tmp_path: Path) -> None:
    """T32: opened, started, data, directory, finished, idle, closed, in order."""
    seen: list[ev.TerminalEvent] = []
    async with open_terminal(cwd=tmp_path, listener=seen.append) as terminal:
        await terminal.run("cd /; echo hi; false")
        await terminal.run("true")  # which waits for the prompt after the first
        kinds = [type(each) for each in seen]
    assert kinds[:3] == [ev.TerminalOpened, ev.ShellIntegrationChanged, ev.CommandStarted]
    finished = next(each for each in seen if isinstance(each, ev.CommandFinished))
    assert (finished.exit_code, finished.cwd, finished.by_person) == (1, Path("/"), False)
    assert b"hi\r\n" in b"".join(each.data for each in seen if isinstance(each, ev.DataWritten))
    assert any(isinstance(each, ev.DirectoryChanged) and each.cwd == Path("/") for each in seen)
    assert any(isinstance(each, ev.BecameIdle) for each in seen)
    assert isinstance(seen[-1], ev.TerminalClosedEvent)


async def test_a_listener_hears_only_the_kinds_that_it_wants(tmp_path: Path) -> None:
    """T32: of a terminal, and of all terminals of a pool, in order with the others, until it leaves."""
    some: list[ev.TerminalEvent] = []
    everything: list[ev.TerminalEvent] = []
    of_pool: list[ev.TerminalEvent] = []
    async with TerminalRegistry() as terminals:
        terminals.subscribe(of_pool.append, ev.CommandFinished, ev.TerminalClosedEvent)
        terminal = await terminals.open(cwd=tmp_path)
        leave = terminal.subscribe(some.append, ev.CommandStarted, ev.CommandFinished)
        leave_everything = terminal.subscribe(everything.append)
        await terminal.run("echo hi")
        leave()
        leave_everything()
        await terminal.run(":")
    assert [type(each) for each in some] == [ev.CommandStarted, ev.CommandFinished]
    assert [each for each in everything if isinstance(each, ev.CommandStarted | ev.CommandFinished)] == some
    assert b"hi\r\n" in b"".join(each.data for each in everything if isinstance(each, ev.DataWritten))
    assert [type(each) for each in of_pool] == [ev.CommandFinished, ev.CommandFinished, ev.TerminalClosedEvent]


async def test_contributed_directories_come_first_in_path(tmp_path: Path) -> None:
    """T33: by name, with a description; the same name again replaces it."""
    async with TerminalRegistry() as terminals:
        terminals.contribute_path("tools", tmp_path / "old", description="old tools")
        terminals.contribute_path("tools", tmp_path / "new", description="new tools")
        terminal = await terminals.open(cwd=tmp_path)
        path = (await terminal.run("echo $PATH")).output
        contributed = PathContribution(name="tools", directory=tmp_path / "new", description="new tools")
        assert terminals.path_contributions == (contributed,)
        assert path.startswith(f"{tmp_path / 'new'}:")
        assert str(tmp_path / "old") not in path


async def test_exec_closes_input_in_run_and_keeps_it_open_in_start(tmp_path: Path) -> None:
    """T1: nobody can answer a `run`, so it reads end of file at once; a `start` can be answered."""
    async with open_terminal(cwd=tmp_path, provider="exec") as terminal:
        assert isinstance(terminal, ExecTerminal)
        assert (await terminal.run("cat; echo end", timeout=10)).output == "end\n"
        execution = await terminal.start("sleep 0.1; wc -c")
        await execution.send(b"x" * 300_000)
        execution.close_input()
        assert (await execution.result(timeout=10)).output.strip() == "300000"
        with pytest.raises(InputClosed):
            await terminal.type("x")


async def test_a_command_that_waits_for_input_says_so_when_its_time_is_up(tmp_path: Path) -> None:
    """T15, T19: by the kernel's word, with whether a secret is asked for."""
    async with open_terminal(cwd=tmp_path) as terminal:
        for command, wants in {"read -p 'Name: ' x": "line", "read -s x": "secret", "sleep 100": None}.items():
            result = await terminal.run(command, timeout=0.4, on_timeout="interrupt")
            expected = ("awaiting input", wants) if wants else ("timeout", None)
            assert (result.reason, result.awaiting, result.exit_code) == (*expected, 130)


async def test_an_interrupt_after_a_signal_still_says_130(tmp_path: Path) -> None:
    """T14: bash keeps a $? above 128 on an interrupt; the result does not."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("sh -c 'kill -TERM $$'")
        execution = await terminal.start("echo ready; read x")
        async for chunk in execution:
            if "ready" in str(chunk):
                break
        await execution.interrupt()
        result = await execution.result(timeout=10)
        assert (result.exit_code, result.reason) == (130, "interrupted")


async def test_unread_input_is_never_run_as_a_command(tmp_path: Path) -> None:
    """Lines sent to a command that ends without reading them are dropped, not executed by the shell."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("read x; sleep 0.2; echo $x")
        await execution.send("one\ntouch stray1\ntouch stray2\n")
        assert (await execution.result(timeout=10)).exit_code == 0
        await terminal.run("true")
        assert list(tmp_path.iterdir()) == []


async def test_concurrent_runs_take_turns(tmp_path: Path) -> None:
    """T11: no command interleaves with another."""
    async with open_terminal(cwd=tmp_path) as terminal:
        assert isinstance(terminal, PtyTerminal)
        results = await asyncio.gather(*(terminal.run(f"echo a{n}; sleep 0.01; echo b{n}") for n in range(10)))
        assert [each.output for each in results] == [f"a{n}\nb{n}\n" for n in range(10)]


async def test_what_prompt_hooks_print_belongs_to_no_command(tmp_path: Path) -> None:
    """T16, T20: also when the hook runs a program, which is in front before we have read the end mark."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("PROMPT_COMMAND='/bin/echo noise; sleep 0.05; /bin/echo more'")
        results = [await terminal.run(each) for each in ("echo 1", "false", "ls -d /", "(exit 3)", "cd /; echo 2")]
        assert [(each.output, each.exit_code) for each in results] == [
            ("1\n", 0),
            ("", 1),
            ("/\n", 0),
            ("", 3),
            ("2\n", 0),
        ]


async def test_a_killed_program_says_so(tmp_path: Path) -> None:
    """T14, T18: plain words end with SIGKILL's code; a list is cut off, and then the shell says 130."""
    async with open_terminal(cwd=tmp_path) as terminal:
        plain = await terminal.run("sleep 100", timeout=0.3, on_timeout="kill")
        listed = await terminal.run("sleep 100; echo never", timeout=0.3, on_timeout="kill")
        assert (plain.exit_code, plain.signal, plain.reason) == (137, "SIGKILL", "timeout")
        assert (listed.exit_code, "never" in listed.output, listed.reason) == (130, False, "timeout")


async def test_a_directory_called_deleted_is_not(tmp_path: Path) -> None:
    """T7: the kernel marks deleted directories by such a suffix; a name may have it too."""
    odd = tmp_path / "x (deleted)"
    odd.mkdir()
    async with open_terminal(cwd=odd) as terminal:
        first, second = await terminal.run("pwd"), await terminal.run("pwd")
        assert (first.output, second.output, second.notes) == (f"{odd}\n", f"{odd}\n", ())
