"""A task at rest is woken by a command that it left running."""

import asyncio
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, call, messages_of, results, turn

from tarmac.models.messages import Text
from tarmac.tasks.events import ModelSaid, Noted, RequestStarted
from tarmac.tasks.task import Task

pytestmark = pytest.mark.shell


async def _woken(task: Task) -> None:
    """Run it once, and wait until it is woken."""
    woken = asyncio.Event()
    forget = task.when_woken(woken.set)
    assert (await task.run_until_idle()).why == "idle"
    assert not woken.is_set()
    (Path(task.metadata.workspace or "") / "go").write_text("")
    await asyncio.wait_for(woken.wait(), 20)
    forget()


def _left_running(after: str) -> dict[str, object]:
    """A call that leaves a command running until the file `go` is there."""
    return turn(call("execute_command", command=f"until [ -e go ]; do sleep 0.05; done; {after}", timeout=0.3))


async def test_a_command_that_ends_wakes_a_resting_task_once(tmp_path: Path) -> None:
    """T16: a command left in the background starts one run of a resting task when it ends; no request until then."""
    turns = (_left_running("echo built; (exit 3)"), turn(text="I wait for it."), turn(text="It failed."))
    async with a_task(tmp_path / "work", *turns, attended=True, auto="all") as task:
        seen = Seen(task)
        await _woken(task)
        assert len(seen.of(RequestStarted)) == 2  # none while it rested
        assert "you are woken then" in results(seen)[0][2]
        assert (await task.run_until_idle()).text == "It failed."
        noted = [each.text for each in seen.of(Noted) if isinstance(each, Noted)]
        assert len(noted) == 1 and "has ended (exit code 3)" in noted[0]
        told = [part.text for each in await messages_of(task) for part in each.parts if isinstance(part, Text)]
        assert any("You are woken because of a command that you left running" in text for text in told)
        assert any("built" in text for text in told)  # its output is in the environment of the new turn


async def test_a_command_that_asks_wakes_a_resting_task_and_its_end_does_again(tmp_path: Path) -> None:
    """T19: a question of a command in the background wakes the task, once; so does its end."""
    turns = (
        _left_running("read -p 'Sure? ' x"),
        turn(text="I wait for it."),
        turn(text="It asks."),
        turn(text="It is done."),
    )
    async with a_task(tmp_path / "work", *turns, attended=True, auto="all") as task:
        seen = Seen(task)
        await _woken(task)
        again = asyncio.Event()
        task.when_woken(again.set)
        assert (await task.run_until_idle()).text == "It asks."
        [terminal] = task._state.context.registry.listing(task=task.id)
        assert terminal.current is not None
        await terminal.current.send("yes\n")
        await asyncio.wait_for(again.wait(), 20)
        assert (await task.run_until_idle()).text == "It is done."
        noted = [each.text for each in seen.of(Noted) if isinstance(each, Noted)]
        assert ["waits for input" in each for each in noted] == [True, False]


async def test_run_goes_on_by_itself_when_a_command_ends(tmp_path: Path) -> None:
    """T16: `Task.run`, which waits for the person's words, is woken too."""
    turns = (_left_running("true"), turn(text="I wait."), turn(text="Now it is done."))
    async with a_task(tmp_path / "work", *turns, attended=True, auto="all") as task:
        seen = Seen(task)
        running = asyncio.create_task(task.run())
        await seen.until(lambda each: isinstance(each, ModelSaid) and Text("I wait.") in each.parts)
        (tmp_path / "work" / "go").write_text("")
        await seen.until(lambda each: isinstance(each, ModelSaid) and Text("Now it is done.") in each.parts)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_task_is_not_woken_where_that_is_turned_off(tmp_path: Path) -> None:
    """T16: `tools.wake_on_exit = false` leaves a resting task alone."""
    turns = (_left_running("true"), turn(text="I wait."))
    config: dict[str, object] = {"tools.wake_on_exit": False}
    async with a_task(tmp_path / "work", *turns, attended=True, auto="all", config=config) as task:
        woken = asyncio.Event()
        task.when_woken(woken.set)
        assert (await task.run_until_idle()).why == "idle"
        (tmp_path / "work" / "go").write_text("")
        [terminal] = task._state.context.registry.listing(task=task.id)
        assert terminal.current is None or await terminal.current.ended(20)
        assert not woken.is_set()
