"""Terminals lent to tasks, on real shells: every rung, claims, hand-over, release, listings."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.errors import BadRequest, DirectoryUnavailable, TerminalClosed, TerminalNotFound
from tarmac.terminals import Settings, TerminalRegistry
from tarmac.terminals import events as ev
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Terminal

pytestmark = pytest.mark.shell
PLAIN = Settings(warm_pool=0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src" / "deep").mkdir(parents=True)
    (tmp_path / "project2").mkdir()
    return tmp_path / "project"


def shell_of(terminal: Terminal) -> int:
    assert isinstance(terminal, PtyTerminal) and terminal.session is not None
    return terminal.session.pid


async def until_printed(terminal: Terminal, text: str) -> None:
    """The command that runs there has printed `text`."""
    assert terminal.current is not None
    seen = ""
    async for chunk in terminal.current:
        seen += str(chunk)
        if text in seen:
            return
    raise AssertionError(f"it ended without {text!r}: {seen!r}")


# The ladder


async def test_rung_1_the_tasks_own_terminal_where_it_is(project: Path) -> None:
    """T3: with all that was set in it; no move."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("X=5; f() { echo f$X; }")
        async with terminals.lease(cwd=project, task="A") as second:
            result = await second.run("f")
        assert (second, result.output, second.moves, second.task) == (first, "f5\n", 0, "A")
        assert terminals.why(second) == f"reused {first.id}: bound to this task, already in {project}"


async def test_rung_2_the_tasks_own_terminal_moves(project: Path) -> None:
    """T3, T6: to a child and back to a parent, without a trace in output or code."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("X=5; (exit 7)")
        async with terminals.lease(cwd=project / "src" / "deep", task="A") as second:
            result = await second.run('echo "$? $X $PWD"')
        assert (second, second.moves) == (first, 1)
        assert (result.output, result.exit_code, result.cwd) == (
            f"7 5 {project}/src/deep\n",
            0,
            project / "src" / "deep",
        )
        async with terminals.lease(cwd=project, task="A") as third:
            await third.run("true")
        assert (third, third.moves, third.cwd) == (first, 2, project)
        said = f"reused {first.id}: bound to this task, moved from {project}/src/deep to {project}, 2nd move of 5"
        assert terminals.why(third) == said


async def test_rung_3_a_terminal_of_nobody_where_it_is(project: Path) -> None:
    """T3: without a task it stays unbound; a task that takes it binds it."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project) as first:
            assert first.task is None
        async with terminals.lease(cwd=project) as again:
            assert again is first
        async with terminals.lease(cwd=project, task="A") as second:
            assert (second, second.task, second.moves) == (first, "A", 0)
        assert terminals.why(second) == f"reused {first.id}: bound to no task, already in {project}"


async def test_rung_4_a_terminal_of_nobody_moves(project: Path) -> None:
    """T3."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project) as first:
            pass
        async with terminals.lease(cwd=project / "src", task="A") as second:
            await second.run("true")
            assert (second, second.task, second.moves, second.cwd) == (first, "A", 1, project / "src")


async def test_rung_5_a_new_terminal(project: Path) -> None:
    """T3, T4: for another directory, when it was moved too often, when the directory only looks related."""
    async with TerminalRegistry(Settings(warm_pool=0, max_directory_changes=1)) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("true")
        async with terminals.lease(cwd=project.parent / "project2", task="A") as second:
            assert second is not first
        assert terminals.why(second) == f"opened {second.id}: nothing fits ({first.id} is in {project})"
        async with terminals.lease(cwd=project / "src", task="A") as third:
            await third.run("true")
        assert (third, third.moves) == (first, 1)
        async with terminals.lease(cwd=project, task="A") as fourth:
            assert fourth not in (first, second)
        assert f"{first.id} was moved 1 of 1 times" in terminals.why(fourth)


async def test_unrelated_directories_when_that_is_allowed(project: Path) -> None:
    """T4: `reuse_related_only` off."""
    async with TerminalRegistry(Settings(warm_pool=0, reuse_related_only=False)) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            pass
        async with terminals.lease(cwd="/", task="A") as second:
            assert (second, (await second.run("pwd")).output) == (first, "/\n")


async def test_another_live_tasks_terminal_is_never_taken(project: Path) -> None:
    """T3: though idle and in the right place; until that task is released."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            pass
        async with terminals.lease(cwd=project, task="B") as second:
            assert second is not first
        async with terminals.lease(cwd=project) as third:
            assert third not in (first, second)
        assert terminals.release_for_task("A") == [first]
        async with terminals.lease(cwd=project, task="C") as fourth:
            assert fourth in (first, third)


async def test_providers_and_shells_are_not_mixed(project: Path) -> None:
    """T1, T3: an `exec` terminal is reused where it was opened, and never moves."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as live:
            pass
        async with terminals.lease(cwd=project, task="A", provider="exec") as piped:
            assert (await piped.run("echo $0 $PWD")).exit_code == 0
            assert (piped.provider, piped is live) == ("exec", False)
        async with terminals.lease(cwd=project, task="A", provider="exec") as again:
            assert again is piped
        async with terminals.lease(cwd=project / "src", task="A", provider="exec") as other:
            assert (other is piped, (await other.run("pwd")).output) == (False, f"{project}/src\n")
        with pytest.raises(BadRequest, match="provider"):
            await terminals.get_or_create(cwd=project, provider="ssh")  # type: ignore[arg-type]
        with pytest.raises(BadRequest, match="task"):
            await terminals.get_or_create(cwd=project, task="")


async def test_a_persons_terminal_and_one_a_person_types_in_are_never_lent(project: Path) -> None:
    """T2: their own, also after a release; an agent's while their line is not done."""
    async with TerminalRegistry(PLAIN) as terminals:
        own = await terminals.open(cwd=project, origin="person")
        terminals.release(own)
        async with terminals.lease(cwd=project, task="A") as first:
            assert first is not own
        await first.type("echo half")
        assert first.held
        async with terminals.lease(cwd=project, task="A") as second:
            assert second not in (own, first)
        assert f"{first.id} is held by a person" in terminals.why(second)


async def test_one_opened_by_id_is_kept_until_released(project: Path) -> None:
    """T14: whoever has its id relies on where it is and what was set in it."""
    async with TerminalRegistry(PLAIN) as terminals:
        kept = await terminals.open(cwd=project, task="A")
        async with terminals.lease(cwd=project, task="A") as first:
            assert first is not kept
        assert f"{kept.id} is kept by its id" in terminals.why(first)
        await terminals.kill(first.id)
        terminals.release(kept)
        async with terminals.lease(cwd=project, task="A") as second:
            assert second is kept


async def test_a_busy_terminal_is_not_lent(project: Path) -> None:
    """T2, T3: also when the block that started the command is over."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.start("read x")
        async with terminals.lease(cwd=project, task="A") as second:
            assert second is not first
        assert f"{first.id} is busy with `read x`" in terminals.why(second)
        assert first.current is not None
        await first.current.send("\n")
        await terminals.read(first.id)
        assert first.current is not None or not first.busy
        while first.current is not None:
            await first.current.ended(5)
        await terminals.kill(second.id)
        async with terminals.lease(cwd=project, task="A") as third:
            assert third is first


# Directories


async def test_a_directory_that_is_not_there_is_a_clear_error(project: Path) -> None:
    """T6: nothing is claimed, opened or run."""
    async with TerminalRegistry(PLAIN) as terminals:
        with pytest.raises(DirectoryUnavailable, match="does not exist"):
            await terminals.get_or_create(cwd=project / "gone", task="A")
        assert terminals.listing() == []


async def test_a_directory_that_goes_away_after_lending_keeps_the_command_from_running(project: Path) -> None:
    """T6: whether the terminal is there already or still has to go; a later command elsewhere is fine."""
    async with TerminalRegistry(PLAIN) as terminals:
        gone = project / "src" / "deep"
        async with terminals.lease(cwd=gone, task="A") as terminal:
            gone.rmdir()
            for _ in range(2):
                with pytest.raises(DirectoryUnavailable, match="does not exist"):
                    await terminal.run("touch ran")
            assert (await terminal.run("pwd", cwd=project)).output == f"{project}\n"
            gone.mkdir()
        async with terminals.lease(cwd=gone, task="A") as again:
            assert (again, again.cwd) == (terminal, project)
            gone.rmdir()
            with pytest.raises(DirectoryUnavailable, match="does not exist"):
                await again.run("touch ran")
            assert again.moves == 0
        assert list(project.rglob("ran")) == []


async def test_the_environment_is_noted_before_each_switch(project: Path) -> None:
    """T8: what commands had changed by then, secrets masked; `$?` and `$_` are what they were."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as terminal:
            await terminal.run("export MODE=fast API_TOKEN=abc; unset PAGER")
            await terminal.run("test 1 = 2")
        async with terminals.lease(cwd=project / "src", task="A") as terminal:
            result = await terminal.run('echo "$? $_"')
        assert result.output == "1 2\n"
        (switch,) = terminals.switches(terminal.id)
        assert (switch.before, switch.after) == (project, project / "src")
        assert switch.environment == {"API_TOKEN": "********", "MODE": "fast", "PAGER": None}


async def test_a_switch_does_not_need_the_shell_to_tell_its_environment(project: Path, own_state: Path) -> None:
    """T8: where nothing can be written, it is not known; the terminal and what was set in it stay."""
    blocked = own_state / "no folder"
    async with TerminalRegistry(Settings(warm_pool=0, spool_directory=blocked)) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("X=5")
        blocked.write_text("")
        async with terminals.lease(cwd=project / "src", task="A") as second:
            assert (second, (await second.run("echo $X")).output) == (first, "5\n")
        assert terminals.switches(first.id)[0].environment is None


# Passing from one task to another


async def test_a_terminal_that_passes_to_another_task_is_as_new(project: Path) -> None:
    """T8: environment, functions, aliases, options, traps and jobs' numbers equal those at its start."""
    state = "export -p | grep -v TARMAC_TERMINAL; declare -F; alias; shopt; set -o; trap; ulimit -c; umask; jobs; dirs"
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            at_start = await first.run(state)
            await first.run("export X=1; f() { :; }; alias ll=ls; set -u; shopt -s nullglob; trap : USR1; umask 077")
            await first.run("pushd / >/dev/null; popd >/dev/null; exec 7>/dev/null; unset PATH; readonly R=1")
            old = shell_of(first)
        terminals.release_for_task("A")
        async with terminals.lease(cwd=project, task="B") as second:
            result = await second.run(state)
        assert (second, shell_of(second) == old) == (first, False)
        assert (result.output, result.notes, result.fresh_shell) == (at_start.output, (), False)
        said = (
            f"reused {first.id}: bound to no task, already in {project}, with a fresh shell as another task had used it"
        )
        assert terminals.why(second) == said


async def test_a_task_gets_its_own_former_terminal_back_as_it_was(project: Path) -> None:
    """T8: released and taken again by the same task; nobody else was in it."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("X=5")
        terminals.release_for_task("A")
        async with terminals.lease(cwd=project, task="A") as second:
            assert (second, (await second.run("echo $X")).output) == (first, "5\n")


async def test_what_a_task_leaves_is_not_found_by_callers_without_one(project: Path) -> None:
    """T8: also when it goes on in its block after it was released, or somebody ran a command by id in between."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            terminals.release_for_task("A")
            await first.run("X=5")
        await terminals.get(first.id).run("Y=6")
        async with terminals.lease(cwd=project) as second:
            assert (second, (await second.run("echo $X$Y")).output) == (first, "\n")


async def test_what_runs_in_the_background_keeps_a_terminal_from_being_reset(project: Path) -> None:
    """T8, T9: a server that a task left stays; the other task gets another terminal."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("sleep 300 & echo $!")
        terminals.release_for_task("A")
        async with terminals.lease(cwd=project, task="B") as second:
            assert second is not first
        assert f"{first.id} has a job running" in terminals.why(second)
        async with terminals.lease(cwd=project, task="A") as third:
            assert (third, (await third.run("kill %1; wait; jobs")).exit_code) == (first, 0)


async def test_what_start_up_files_left_running_is_no_job(project: Path, own_state: Path) -> None:
    """T8, T12: a prompt's daemon, say; it would keep every terminal from being passed on or closed."""
    (own_state / ".bashrc").write_text("sleep 300 &\n")
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("true")
            assert not first.has_jobs
        terminals.release_for_task("A")
        async with terminals.lease(cwd=project, task="B") as second:
            assert second is first
            await second.run("sleep 300 &")
            assert second.has_jobs


# Claims


async def test_two_calls_never_return_the_same_terminal(project: Path) -> None:
    """T11: the claim of get_or_create lasts until its first command has ended, or release()."""
    async with TerminalRegistry(PLAIN) as terminals:
        first = await terminals.get_or_create(cwd=project, task="A")
        second = await terminals.get_or_create(cwd=project, task="A")
        assert second is not first
        await first.run("true")
        third = await terminals.get_or_create(cwd=project, task="A")
        assert third is first
        terminals.release(second)
        assert await terminals.get_or_create(cwd=project, task="A") is second


async def test_a_lease_lasts_for_its_block_whatever_runs_in_it(project: Path) -> None:
    """T11."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("true")
            async with terminals.lease(cwd=project, task="A") as second:
                assert second is not first
        assert await terminals.get_or_create(cwd=project, task="A") is first


async def test_a_claim_ended_early_is_not_ended_again(project: Path) -> None:
    """T11: leaving the block does not take the terminal from whoever has it now."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            terminals.release(first)
            assert await terminals.get_or_create(cwd=project, task="A") is first
        assert await terminals.get_or_create(cwd=project, task="A") is not first


async def test_many_callers_at_once_get_a_terminal_each(project: Path) -> None:
    """T11: no terminal twice, no command interleaved."""
    async with TerminalRegistry(Settings(warm_pool=2, max_per_task=20)) as terminals:
        holders: dict[str, int] = {}

        async def work(number: int) -> str:
            async with terminals.lease(cwd=project, task=f"task {number % 3}") as terminal:
                assert terminal.id not in holders
                holders[terminal.id] = number
                result = await terminal.run(f"echo a{number}; echo b{number}")
                del holders[terminal.id]
                return result.output

        outputs = await asyncio.gather(*(work(n) for n in range(12)))
        assert outputs == [f"a{n}\nb{n}\n" for n in range(12)]


# Ends


async def test_a_closed_terminal_leaves_by_itself(project: Path) -> None:
    """T11: its running command ends with a reason."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            execution = await first.start("sleep 300")
            await first.aclose()
            assert (await execution.result(timeout=5)).reason == "terminal closed"
        assert terminals.listing() == []
        with pytest.raises(TerminalNotFound):
            terminals.get(first.id)


async def test_a_terminal_whose_shell_is_killed_leaves_by_itself(project: Path) -> None:
    """T11: idle, or under a command, which ends with a reason."""
    async with TerminalRegistry(PLAIN) as terminals:
        closed = asyncio.Event()
        terminals.subscribe(lambda each: closed.set() if isinstance(each, ev.TerminalClosedEvent) else None)
        async with terminals.lease(cwd=project, task="A") as idle:
            pass
        os.kill(shell_of(idle), signal.SIGKILL)
        await asyncio.wait_for(closed.wait(), 5)
        assert (terminals.listing(), idle.closed) == ([], True)
        closed.clear()
        running = await terminals.get_or_create(cwd=project, task="A")
        execution = await running.start("echo up; sleep 300")
        await until_printed(running, "up")
        os.kill(shell_of(running), signal.SIGKILL)
        result = await execution.result(timeout=5)
        await asyncio.wait_for(closed.wait(), 5)
        assert (result.reason, result.signal, terminals.listing()) == ("terminal closed", "SIGKILL", [])


async def test_in_a_lease_a_dead_shell_is_replaced(project: Path) -> None:
    """T11: whoever has it goes on with a fresh one, and is told; it stays when it lives at the end."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as terminal:
            assert (await terminal.run("exit 3")).reason == "terminal closed"
            assert (await terminal.run("echo on")).fresh_shell
        assert terminals.listing() == [terminal]
        async with terminals.lease(cwd=project, task="A") as terminal:
            await terminal.run("exit 3")
        assert terminals.listing() == []


async def test_released_terminals_are_in_the_background(project: Path) -> None:
    """T9, T10: commands go on; listings by busy and by task."""
    async with TerminalRegistry(PLAIN) as terminals:
        idle = await terminals.get_or_create(cwd=project, task="A")
        busy = await terminals.get_or_create(cwd=project, task="A")
        other = await terminals.get_or_create(cwd=project, task="B")
        await busy.start("echo up; read x; echo got $x")
        assert terminals.listing(task="A") == [idle, busy]
        assert (terminals.listing(busy=True), terminals.listing(busy=False, task="A")) == ([busy], [idle])
        assert terminals.background() == []
        assert terminals.release_for_task("A") == [idle, busy]
        assert (terminals.listing(task="A"), terminals.background()) == ([], [idle, busy])
        assert (terminals.background(busy=True), terminals.background(busy=False)) == ([busy], [idle])
        assert terminals.listing() == [idle, busy, other]
        assert (busy.last_command, busy.cwd) == ("echo up; read x; echo got $x", project)
        assert busy.current is not None
        await busy.current.send("it\n")
        assert (await busy.current.result(timeout=5)).output.endswith("got it\n")
        await terminals.get_or_create(cwd=project, task="C")
        assert terminals.background() in ([idle], [busy])


async def test_the_active_terminal_is_the_one_last_focused_else_last_used(project: Path) -> None:
    """T31: and its last 40 writes, as text."""
    async with TerminalRegistry(PLAIN) as terminals:
        assert terminals.active is None
        one = await terminals.open(cwd=project)
        two = await terminals.open(cwd=project)
        assert terminals.active is two
        terminals.focus(one.id)
        assert terminals.active is one
        for number in range(45):
            await one.run(f"echo line {number}")
        recent = one.recent_output()
        assert "line 44\n" in recent
        assert "line 2\n" not in recent


async def test_an_aborted_task_ends_what_it_started(project: Path) -> None:
    """T9: also what it had left in the background; nobody else's."""
    async with TerminalRegistry(PLAIN) as terminals:
        left = await terminals.get_or_create(cwd=project, task="A")
        await left.start("sleep 300")
        terminals.release_for_task("A")
        running = await terminals.get_or_create(cwd=project, task="A")
        await running.run("nohup setsid sleep 300 & echo $!")
        other = await terminals.get_or_create(cwd=project, task="B")
        await other.start("read x")
        shells = [shell_of(left), shell_of(running)]
        await terminals.end_task("A")
        assert (left.closed, running.closed, terminals.listing()) == (True, True, [other])
        assert [Path(f"/proc/{each}").exists() for each in shells] == [False, False]
        assert (await terminals.read(left.id))[0].reason == "terminal closed"


async def test_unread_output_stays_readable_after_the_terminal_is_closed(project: Path) -> None:
    """T9: by id, once."""
    async with TerminalRegistry(PLAIN) as terminals:
        terminal = await terminals.get_or_create(cwd=project, task="A")
        execution = await terminal.start("echo important; (exit 4)")
        assert await execution.ended(5)
        terminals.release_for_task("A")
        await terminals.kill(terminal.id)
        with pytest.raises(TerminalNotFound):
            terminals.get(terminal.id)
        results = await terminals.read(terminal.id)
        assert [(each.output, each.exit_code) for each in results] == [("important\n", 4)]
        with pytest.raises(TerminalNotFound):
            await terminals.read(terminal.id)


async def test_reading_marks_as_read_and_gives_whole_lines_while_running(project: Path) -> None:
    """T10: each piece once."""
    async with TerminalRegistry(PLAIN) as terminals:
        terminal = await terminals.get_or_create(cwd=project, task="A")
        await terminal.start("printf 'one\\ntwo\\nthr'; read x; printf 'ee\\nfour'")
        await until_printed(terminal, "thr")
        assert await terminals.unread_output(terminal.id) == "one\ntwo\n"
        assert await terminals.unread_output(terminal.id) == ""
        execution = terminal.current
        assert execution is not None
        await execution.send("\n")
        assert await execution.ended(5)
        assert await terminals.unread_output(terminal.id) == "thr\nee\nfour"
        assert (await terminals.unread_output(terminal.id), terminal.unread) == ("", [])
        await terminal.run("echo this was read")
        assert await terminals.unread_output(terminal.id) == ""


async def test_what_a_call_has_returned_is_read(project: Path) -> None:
    """T10: a command that was left running shows only what came since; also when its terminal is closed by then."""
    async with TerminalRegistry(PLAIN) as terminals:
        terminal = await terminals.get_or_create(cwd=project, task="A")
        result = await terminal.run("echo first; read x; echo second; read y", timeout=0.3)
        assert (result.reason, result.output) == ("awaiting input", "first\n")
        assert terminal.current is not None
        await terminal.current.send("\n")
        await until_printed(terminal, "second")
        assert await terminals.unread_output(terminal.id) == "\nsecond\n"
        await terminals.kill(terminal.id)
        assert "first" in (await terminals.read(terminal.id))[0].output


async def test_the_active_terminal_is_the_last_focused_else_the_last_used(project: Path) -> None:
    """T31."""
    async with TerminalRegistry(PLAIN) as terminals:
        assert terminals.active is None
        one = await terminals.get_or_create(cwd=project, task="A")
        two = await terminals.get_or_create(cwd=project, task="A")
        await one.run("true")
        assert terminals.active is one
        await two.run("true")
        assert terminals.active is two
        terminals.focus(one.id)
        await two.run("true")
        assert terminals.active is one
        await terminals.kill(one.id)
        assert terminals.active is two


async def test_a_closed_registry_lends_nothing(project: Path) -> None:
    async with TerminalRegistry(PLAIN) as terminals:
        await terminals.get_or_create(cwd=project)
    with pytest.raises(TerminalClosed, match="pool is closed"):
        await terminals.get_or_create(cwd=project)
    with pytest.raises(TerminalClosed, match="pool is closed"):
        await terminals.open(cwd=project)
    await terminals.aclose()


async def test_a_task_whose_shell_cannot_be_integrated_uses_exec_and_waits_no_more(
    project: Path, own_state: Path
) -> None:
    """T21: one event for the task, one wait; each command once; another task tries again."""
    (own_state / ".bashrc").write_text("echo >>~/starts; sleep 100\n")
    told: list[str] = []
    settings = Settings(warm_pool=0, shell_integration_timeout=2)
    async with TerminalRegistry(settings) as terminals:
        terminals.subscribe(
            lambda each: told.append(each.terminal) if isinstance(each, ev.NoShellIntegration) else None
        )
        async with terminals.lease(cwd=project, task="A") as first:
            result = await first.run("echo x >>ran")
            assert (first.provider, "no shell integration" in result.notes[0]) == ("exec", True)
        async with terminals.lease(cwd=project, task="A") as second:
            await second.run("echo x >>ran")
        async with terminals.lease(cwd=project / "src", task="A") as third:
            result = await third.run("echo x >>../ran")
        assert (own_state / "starts").read_text() == "\n"  # one shell was tried, and waited for
        assert (second, third.provider, "no shell integration" in result.notes[0]) == (first, "exec", True)
        assert (told, (project / "ran").read_text()) == ([first.id], "x\nx\nx\n")
        (own_state / ".bashrc").write_text("")
        async with terminals.lease(cwd=project, task="B") as fourth:
            assert fourth.provider == "pty"


@pytest.mark.parametrize(
    ("shell", "set_it", "show_it"),
    [
        ("bash", "export MODE=fast; (exit 7)", 'echo "$? $MODE $PWD"'),
        ("zsh", "export MODE=fast; (exit 7)", 'echo "$? $MODE $PWD"'),
        ("fish", "set -gx MODE fast; sh -c 'exit 7'", 'echo "$status $MODE $PWD"'),
    ],
)
async def test_every_shell_is_lent_moved_warmed_and_reset(
    project: Path, require: Callable[[str], None], shell: str, set_it: str, show_it: str
) -> None:
    """T3, T6, T8, T12: a switch keeps what was set, and `$?`; a hand-over keeps nothing; shells are not mixed."""
    require(shell)
    async with TerminalRegistry() as terminals:
        await terminals.kill((await terminals.open(shell=shell)).id)  # fish writes files of its own the first time
        await terminals.warm_up(cwd=project, shell=shell)
        async with terminals.lease(cwd=project, task="A", shell=shell) as first:
            await first.run(set_it)
        assert (first.shell.name, "warm pool" in terminals.why(first)) == (shell, True)
        async with terminals.lease(cwd=project / "src", task="A", shell=shell) as second:
            result = await second.run(show_it)
        assert (second, second.moves, result.output) == (first, 1, f"7 fast {project}/src\n")
        assert terminals.switches(second.id)[0].environment == {"MODE": "fast"}
        terminals.release_for_task("A")
        other = "bash" if shell != "bash" else "zsh"
        if shutil.which(other):
            async with terminals.lease(cwd=project / "src", task="B", shell=other) as third:
                assert third is not first
        async with terminals.lease(cwd=project / "src", task="B", shell=shell) as fourth:
            result = await fourth.run(show_it)
        assert (fourth, result.output, result.notes) == (first, f"0  {project}/src\n", ())
