"""Bounds on the number of terminals, the order of those who wait, the warm pool, idle terminals."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from tests.terminals.conftest import children

from tarmac.errors import BadRequest, LeaseTimedOut, TerminalClosed
from tarmac.terminals import Settings, TerminalRegistry
from tarmac.terminals import events as ev
from tarmac.terminals.execution import Execution
from tarmac.terminals.pool.reuse import fingerprint, start_up_files
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Terminal

pytestmark = pytest.mark.shell


def shell_of(terminal: Terminal) -> int:
    assert isinstance(terminal, PtyTerminal) and terminal.session is not None
    return terminal.session.pid


async def started(terminal: Terminal, command: str = "read x") -> Execution:
    """A command that runs, and has printed that it does."""
    execution = await terminal.start(f"echo up; {command}")
    seen = ""
    async for chunk in execution:
        seen += str(chunk)
        if "up" in seen:
            break
    return execution


async def settled() -> None:
    """Everybody who can run has run."""
    for _ in range(5):
        await asyncio.sleep(0)


# Bounds


async def test_at_a_tasks_bound_its_callers_wait_in_order_and_others_do_not(tmp_path: Path) -> None:
    """T12: `max_per_task`."""
    async with TerminalRegistry(Settings(warm_pool=0, max_per_task=1)) as terminals:
        first = await terminals.get_or_create(cwd=tmp_path, task="A")
        order: list[str] = []

        async def wait(name: str) -> None:
            async with terminals.lease(cwd=tmp_path, task="A") as terminal:
                order.append(name)
                assert terminal is first
                await terminal.run("true")

        waiting = [asyncio.create_task(wait(name)) for name in ("one", "two", "three")]
        await settled()
        async with terminals.lease(cwd=tmp_path, task="B") as other:
            assert other is not first
        assert order == []
        await first.run("true")
        await asyncio.gather(*waiting)
        assert order == ["one", "two", "three"]
        assert len(terminals.listing(task="A")) == 1


async def test_at_the_bound_of_all_everybody_waits_in_order(tmp_path: Path) -> None:
    """T12: `max_terminals`; a released claim, a finished command, a closed and a crashed terminal serve the next."""
    async with TerminalRegistry(Settings(warm_pool=1, max_terminals=4)) as terminals:
        held = [await terminals.get_or_create(cwd=tmp_path, task=f"task {n}") for n in range(4)]
        order: list[str] = []

        async def wait(name: str) -> Terminal:
            terminal = await terminals.get_or_create(cwd=tmp_path, task=name)
            order.append(name)
            return terminal

        waiting = [asyncio.create_task(wait(f"late {n}")) for n in range(4)]
        await settled()
        assert order == []
        terminals.release(held[0])
        await asyncio.wait_for(waiting[0], 5)
        await held[1].run("true")
        await asyncio.wait_for(waiting[1], 5)
        await held[2].aclose()
        await asyncio.wait_for(waiting[2], 5)
        assert order == ["late 0", "late 1", "late 2"]
        os.kill(shell_of(held[3]), signal.SIGKILL)
        await settled()
        terminals.release(held[3])
        await asyncio.wait_for(waiting[3], 5)
        assert (order[3], len(terminals.listing()), held[0].closed) == ("late 3", 4, True)


async def test_waiting_ends_with_who_has_what(tmp_path: Path) -> None:
    """T12: `lease_timeout`."""
    async with TerminalRegistry(
        Settings(warm_pool=0, max_per_task=1, max_terminals=2, lease_timeout=0.05)
    ) as terminals:
        one = await terminals.get_or_create(cwd=tmp_path, task="A")
        await started(one)
        with pytest.raises(
            LeaseTimedOut, match=rf"0.05 s: task A has its 1 .* {one.id} is busy with `echo up; read x`"
        ):
            await terminals.get_or_create(cwd=tmp_path, task="A")
        two = await terminals.open(cwd=tmp_path)
        with pytest.raises(LeaseTimedOut, match=rf"2 terminals .*{two.id} is kept by its id"):
            await terminals.get_or_create(cwd=tmp_path, task="B")
        with pytest.raises(TimeoutError):
            await terminals.open(cwd=tmp_path)
        assert terminals.listing() == [one, two]


async def test_spare_terminals_make_room_least_recently_used_first(tmp_path: Path) -> None:
    """T12: those of no task first; never one that is in use or has a job running."""
    directories = [tmp_path / str(n) for n in range(8)]
    for each in directories:
        each.mkdir()
    async with TerminalRegistry(Settings(warm_pool=0, max_terminals=4)) as terminals:

        async def use(number: int, task: str, command: str = "true") -> Terminal:
            async with terminals.lease(cwd=directories[number], task=task) as terminal:
                await terminal.run(command)
                return terminal

        job = await use(0, "A", "sleep 300 &")
        bound = await use(1, "B")
        older, newer = await use(2, "C"), await use(3, "C")
        terminals.release_for_task("C")
        await use(4, "D")
        assert (older.closed, newer.closed) == (True, False)
        await use(5, "D")
        assert (newer.closed, bound.closed) == (True, False)
        await use(6, "D")
        assert (bound.closed, job.closed) == (True, False)


async def test_a_task_at_its_bound_gives_up_its_own_spare_terminal(tmp_path: Path) -> None:
    """T12: in other directories, five terminals that do nothing don't make it wait."""
    async with TerminalRegistry(Settings(warm_pool=0, max_per_task=2)) as terminals:
        used = []
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()
            async with terminals.lease(cwd=tmp_path / name, task="A") as terminal:
                used.append(terminal)
        assert [each.closed for each in used] == [True, False, False]


async def test_the_end_of_a_background_job_serves_who_waits(tmp_path: Path) -> None:
    """T12: without polling: the kernel tells."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with TerminalRegistry(Settings(warm_pool=0, max_per_task=1)) as terminals:
        async with terminals.lease(cwd=tmp_path / "a", task="A") as terminal:
            result = await terminal.run("sleep 300 & echo $!")
        job = int(result.output.split()[-1])
        waiting = asyncio.create_task(terminals.get_or_create(cwd=tmp_path / "b", task="A"))
        await settled()
        assert not waiting.done()
        os.kill(job, signal.SIGKILL)
        other = await asyncio.wait_for(waiting, 5)
        assert (other is terminal, terminal.closed) == (False, True)


async def test_a_cancelled_caller_loses_nothing(tmp_path: Path) -> None:
    """T11, T12: while it waits, while a terminal is opened for it, while one is reset for it."""
    async with TerminalRegistry(Settings(warm_pool=0, max_per_task=1)) as terminals:
        opening = asyncio.create_task(terminals.get_or_create(cwd=tmp_path, task="A"))
        await settled()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        first = await terminals.get_or_create(cwd=tmp_path, task="A")
        gone, stays = (asyncio.create_task(terminals.get_or_create(cwd=tmp_path, task="A")) for _ in range(2))
        await settled()
        gone.cancel()
        await first.run("true")
        assert await asyncio.wait_for(stays, 5) is first
        terminals.release_for_task("A")
        resetting = asyncio.create_task(terminals.get_or_create(cwd=tmp_path, task="B"))
        await settled()
        resetting.cancel()
        await asyncio.gather(gone, resetting, return_exceptions=True)
        second = await terminals.get_or_create(cwd=tmp_path, task="B")
        assert (await second.run("echo fine")).output == "fine\n"
        assert terminals.listing() == [second]


async def test_who_waits_is_told_when_the_registry_is_closed(tmp_path: Path) -> None:
    async with TerminalRegistry(Settings(warm_pool=0, max_per_task=1)) as terminals:
        await terminals.get_or_create(cwd=tmp_path, task="A")
        waiting = asyncio.create_task(terminals.get_or_create(cwd=tmp_path, task="A"))
        opening = asyncio.create_task(terminals.get_or_create(cwd=tmp_path, task="B"))
        await settled()
    for task in (waiting, opening):
        with pytest.raises(TerminalClosed, match="pool is closed"):
            await task


async def test_idle_terminals_are_closed_but_none_with_a_job(tmp_path: Path) -> None:
    """T12: `terminal_idle_timeout`; nor one that is kept by its id."""
    for name in "abc":
        (tmp_path / name).mkdir()
    async with TerminalRegistry(Settings(warm_pool=0, terminal_idle_timeout=0.1)) as terminals:
        closed = asyncio.Event()
        terminals.subscribe(lambda each: closed.set() if isinstance(each, ev.TerminalClosedEvent) else None)
        kept = await terminals.open(cwd=tmp_path / "a")
        async with terminals.lease(cwd=tmp_path / "b", task="A") as busy:
            await busy.run("sleep 300 &")
        async with terminals.lease(cwd=tmp_path / "c", task="A") as idle:
            await idle.run("true")
        await asyncio.wait_for(closed.wait(), 5)
        assert (idle.closed, terminals.listing()) == (True, [kept, busy])


@pytest.mark.parametrize("name", ["max_per_task", "max_terminals", "lease_timeout", "terminal_idle_timeout"])
def test_bounds_of_nothing_are_refused(name: str) -> None:
    with pytest.raises(BadRequest, match=name):
        Settings(**{name: 0})  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="warm_pool"):
        Settings(warm_pool=-1)


# The warm pool


async def test_a_warm_terminal_is_lent_without_starting_a_process(tmp_path: Path) -> None:
    """T12: its first move is no switch; nobody sees it before."""
    (tmp_path / "src").mkdir()
    seen: list[ev.TerminalEvent] = []
    async with TerminalRegistry() as terminals:
        terminals.subscribe(seen.append)
        await terminals.warm_up(cwd=tmp_path)
        assert (terminals.listing(), terminals.background(), terminals.active, seen) == ([], [], None, [])
        before = children()
        async with terminals.lease(cwd=tmp_path / "src", task="A") as terminal:
            result = await terminal.run("pwd; echo ${OLDPWD+set}")
            assert children() == before
        assert shell_of(terminal) in before
        assert (result.output.split()[0], terminal.moves, terminal.initial_cwd) == (
            (f"{tmp_path}/src", 0, tmp_path / "src")
        )
        assert terminals.why(terminal) == f"took {terminal.id} from the warm pool: there was nothing to reuse"
        assert [type(each) for each in seen[:2]] == [ev.TerminalOpened, ev.ShellIntegrationChanged]


async def test_the_pool_is_filled_after_the_first_lease(tmp_path: Path) -> None:
    """T12: `warm_pool`; not before, and not beyond the bound."""
    async with TerminalRegistry(Settings(warm_pool=2, max_terminals=2)) as terminals:
        before = children()
        async with terminals.lease(cwd=tmp_path, task="A"):
            assert len(children() - before) == 1
        end = time.monotonic() + 5
        while len(children() - before) < 2 and time.monotonic() < end:  # noqa: ASYNC110 (the pool tells nobody)
            await asyncio.sleep(0.02)
        await terminals.warm_up(cwd=tmp_path)
        assert len(children() - before) == 2


async def test_the_pool_is_filled_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    """T12."""
    async with TerminalRegistry(Settings(warm_pool=2)) as terminals:
        before = children()
        await asyncio.gather(*(terminals.warm_up(cwd=tmp_path) for _ in range(3)))
        assert len(children() - before) == 2


@pytest.mark.parametrize("change", ["start-up files", "environment", "PATH", "died"])
async def test_a_warm_terminal_made_with_something_else_is_thrown_away(
    tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """T12."""
    async with TerminalRegistry() as terminals:
        before = children()
        await terminals.warm_up(cwd=tmp_path)
        (warm,) = children() - before
        match change:
            case "start-up files":
                (own_state / ".bashrc").write_text("WHAT=new\n")
            case "environment":
                monkeypatch.setenv("WHAT", "new")
            case "PATH":
                terminals.contribute_path("tools", tmp_path)
            case "died":
                os.kill(warm, signal.SIGKILL)
        async with terminals.lease(cwd=tmp_path, task="A") as terminal:
            result = await terminal.run("echo $WHAT $PATH")
        assert shell_of(terminal) != warm
        assert not Path(f"/proc/{warm}").exists()
        if change in ("start-up files", "environment"):
            assert result.output.startswith("new ")


async def test_no_warm_terminal_where_integration_does_not_come_up(tmp_path: Path, own_state: Path) -> None:
    """T12, T21: tried once, until something changes."""
    (own_state / ".bashrc").write_text("sleep 100\n")
    async with TerminalRegistry(Settings(shell_integration_timeout=0.2)) as terminals:
        await terminals.warm_up(cwd=tmp_path)
        began = time.monotonic()
        await terminals.warm_up(cwd=tmp_path)
        assert (terminals.listing(), time.monotonic() - began < 0.1) == ([], True)
        (own_state / ".bashrc").write_text("")
        before = children()
        await terminals.warm_up(cwd=tmp_path)
        assert len(children() - before) == 1


async def test_a_warm_shell_that_cannot_be_made_gives_its_room_back(tmp_path: Path, own_state: Path) -> None:
    """T12: the caller that waits for this room gets it at once, not after `lease_timeout`."""
    (own_state / ".bashrc").write_text("sleep 100\n")
    async with TerminalRegistry(Settings(max_terminals=1, shell_integration_timeout=0.5)) as terminals:
        warming = asyncio.create_task(terminals.warm_up(cwd=tmp_path))
        await settled()
        waiting = asyncio.create_task(terminals.get_or_create(cwd=tmp_path, task="A", provider="exec"))
        await settled()
        assert (terminals.waiting, waiting.done()) == (1, False)
        await warming
        assert (await asyncio.wait_for(waiting, 10)).provider == "exec"


def test_a_fingerprint_tells_what_a_shell_was_made_with(tmp_path: Path) -> None:
    """T12: of each shell its own start-up files; mtime, size or inode of one is enough."""
    environ = {"HOME": str(tmp_path), "PATH": "/bin"}
    bash, settings = find_shell("bash"), Settings()
    first = fingerprint(bash, settings, environ)
    assert first == fingerprint(bash, Settings(), dict(environ))
    rc = tmp_path / ".bashrc"
    rc.write_text("a")
    made = fingerprint(bash, settings, environ)
    os.utime(rc, ns=(1, 1))
    touched = fingerprint(bash, settings, environ)
    other = tmp_path / "other"
    other.write_text("a")
    os.utime(other, ns=(1, 1))
    other.rename(rc)
    replaced = fingerprint(bash, settings, environ)
    assert len({each.start_up_files for each in (first, made, touched, replaced)}) == 4
    assert fingerprint(bash, Settings(rows=10), environ) != replaced
    assert fingerprint(bash, settings, environ | {"X": "1"}) != replaced
    assert fingerprint(bash, Settings(start_up_files=False), environ).start_up_files == ()
    (tmp_path / "fish" / "conf.d").mkdir(parents=True)
    (tmp_path / "fish" / "conf.d" / "x.fish").write_text("")
    fish = set(start_up_files("fish", environ | {"XDG_CONFIG_HOME": str(tmp_path)}))
    assert {f"{tmp_path}/fish/config.fish", f"{tmp_path}/fish/conf.d/x.fish"} <= fish
    assert f"{tmp_path}/z/.zshrc" in set(start_up_files("zsh", environ | {"ZDOTDIR": str(tmp_path / "z")}))
