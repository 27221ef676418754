"""What happens to a lease while its terminal is being prepared: releases, cancellations, deaths, a person."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.terminals.conftest import children

from tarmac.events import TerminalId
from tarmac.terminals import Settings, TerminalRegistry
from tarmac.terminals import events as ev
from tarmac.terminals.exec import ExecTerminal
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import NewTerminal, Terminal

pytestmark = pytest.mark.shell
PLAIN = Settings(warm_pool=0)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    yield tmp_path / "project"


def shell_of(terminal: Terminal) -> int:
    assert isinstance(terminal, PtyTerminal) and terminal.session is not None
    return terminal.session.pid


async def settled() -> None:
    """Every task that can run has run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def left_by(terminals: TerminalRegistry, task: str, cwd: Path) -> Terminal:
    """A terminal that `task` has used and released."""
    async with terminals.lease(cwd=cwd, task=task) as terminal:
        await terminal.run("X=5")
    terminals.release_for_task(task)
    return terminal


async def test_a_task_that_ends_while_its_terminal_is_reset_does_not_free_that_terminal(project: Path) -> None:
    """T11: the caller still gets it, so nobody else does."""
    async with TerminalRegistry(PLAIN) as terminals:
        first = await left_by(terminals, "A", project)
        resetting = asyncio.create_task(terminals.get_or_create(cwd=project, task="B"))
        await settled()
        assert not resetting.done()
        terminals.release_for_task("B")
        other = await terminals.get_or_create(cwd=project, task="C")
        assert (await resetting, other is first) == (first, False)


async def test_a_release_by_somebody_else_waits_for_the_terminal_to_be_ready(project: Path) -> None:
    """T11: whoever finds it in a listing can't free it before its caller has it."""
    async with TerminalRegistry(PLAIN) as terminals:
        first = await left_by(terminals, "A", project)
        resetting = asyncio.create_task(terminals.get_or_create(cwd=project, task="B"))
        await settled()
        terminals.release(first)
        other = await terminals.get_or_create(cwd=project, task="B")
        assert (await resetting, other is first) == (first, False)


async def test_a_cancelled_caller_does_not_bind_a_terminal_to_a_task_that_is_over(project: Path) -> None:
    """T9, T11: released while it was prepared, it stays released."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as first:
            await first.run("X=5")
        switching = asyncio.create_task(terminals.get_or_create(cwd=project / "src", task="A"))
        await asyncio.sleep(0)  # its shell is being asked for its environment
        assert not switching.done()
        terminals.release_for_task("A")
        switching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await switching
        assert (first.task, terminals.background()) == (None, [first])


@pytest.mark.parametrize("keys", ["echo half", "sleep 300\n"])
async def test_a_person_who_is_quicker_keeps_the_terminal(project: Path, keys: str) -> None:
    """T2: a terminal in which a person began to type while it was prepared is neither lent nor closed."""
    async with TerminalRegistry(Settings(warm_pool=0, max_per_task=1, reuse_related_only=True)) as terminals:
        async with terminals.lease(cwd=project) as free:
            pass
        async with terminals.lease(cwd=project.parent / "elsewhere", task="A") as spare:
            pass
        asking = asyncio.create_task(terminals.get_or_create(cwd=project, task="A"))
        await settled()  # `spare` is being closed to make room
        assert not asking.done()
        ran = asyncio.Event()
        free.subscribe(lambda each: ran.set() if isinstance(each, ev.CommandStarted) else None)
        await free.type(keys)
        if keys.endswith("\n"):
            await asyncio.wait_for(ran.wait(), 5)
        got = await asyncio.wait_for(asking, 10)
        assert (got is free, free.closed, free.task, spare.closed) == (False, False, None, True)


async def test_a_warm_terminal_that_dies_while_room_is_made_is_not_lent(project: Path) -> None:
    """T12."""
    async with TerminalRegistry(Settings(max_per_task=1)) as terminals:
        async with terminals.lease(cwd=project, task="A") as spare:
            before = children()
            await terminals.warm_up(cwd=project)
            (warm,) = children() - before
        asking = asyncio.create_task(terminals.get_or_create(cwd=project.parent / "elsewhere", task="A"))
        await settled()
        assert not asking.done()
        os.kill(warm, signal.SIGKILL)
        os.waitid(os.P_PID, warm, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 (it is dead before the loop goes on)
        got = await asyncio.wait_for(asking, 10)
        assert (spare.closed, (await got.run("true")).fresh_shell) == (True, False)


@pytest.mark.parametrize("verb", ["kill", "end_task"])
async def test_a_close_goes_on_when_its_caller_is_cancelled(project: Path, verb: str) -> None:
    """T11: leaving the block waits for it."""
    async with TerminalRegistry(PLAIN) as terminals:
        async with terminals.lease(cwd=project, task="A") as terminal:
            await terminal.start("echo up; trap '' HUP TERM; while :; do sleep 1; done")
            assert terminal.current is not None
            await terminal.current.waiting_for(pattern="up", timeout=10)
        shell = shell_of(terminal)
        closing = asyncio.create_task(terminals.kill(terminal.id) if verb == "kill" else terminals.end_task("A"))
        await settled()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert Path(f"/proc/{shell}").exists()
    assert not Path(f"/proc/{shell}").exists()


async def test_the_limit_holds_when_terminals_were_adopted_beyond_it(project: Path) -> None:
    """T12: nothing is closed twice, and whoever wants one more waits."""
    async with TerminalRegistry(
        Settings(warm_pool=0, max_per_task=1, max_terminals=2, lease_timeout=0.05)
    ) as terminals:
        async with terminals.lease(cwd=project, task="A") as spare:
            pass
        adopted = [
            ExecTerminal(find_shell(), NewTerminal(cwd=project, settings=PLAIN), id=TerminalId(f"x{number}"))
            for number in range(2)
        ]
        for each in adopted:
            terminals.adopt(each, "is somebody's")
        with pytest.raises(TimeoutError, match="2 terminals"):
            await terminals.get_or_create(cwd=project.parent / "elsewhere", task="A")
        assert (spare.closed, len(terminals.listing())) == (False, 3)
        await adopted[0].aclose()
        got = await terminals.get_or_create(cwd=project.parent / "elsewhere", task="A")
        assert (spare.closed, terminals.listing()) == (True, [adopted[1], got])


async def test_the_end_of_a_job_in_an_exec_terminal_serves_the_next_caller(project: Path) -> None:
    """T12: its process went to init, and the kernel tells of its end as of any other."""
    async with TerminalRegistry(Settings(warm_pool=0, max_per_task=1)) as terminals:
        async with terminals.lease(cwd=project, task="A", provider="exec") as terminal:
            result = await terminal.run("sleep 300 >/dev/null 2>&1 & echo $!")
        job = int(result.output)
        waiting = asyncio.create_task(terminals.get_or_create(cwd=project / "src", task="A", provider="exec"))
        await settled()
        assert not waiting.done()
        os.kill(job, signal.SIGKILL)
        assert await asyncio.wait_for(waiting, 5) is not terminal
        assert terminal.closed
