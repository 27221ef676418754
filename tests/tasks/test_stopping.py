"""Stopped at any moment, a task ends in order and at once, leaves nothing running, and can be taken up again."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, an_app, call, check_order, done, messages_of, results, turn, write_script

from tarmac.app import App
from tarmac.errors import BadRequest
from tarmac.models.messages import Text
from tarmac.tasks.context import Ended
from tarmac.tasks.events import (
    CommandOutput,
    ModelSaid,
    RequestStarted,
    TaskAborted,
    TaskEvent,
    TaskPaused,
    TaskStarted,
    ToolFinished,
    ToolStarted,
)
from tarmac.tasks.limits import Limits
from tarmac.tasks.signals import OutputStreamed, Signal, TextStreamed
from tarmac.tasks.task import Task

pytestmark = pytest.mark.slow

AT_ONCE = 1.0  # seconds
SERVER = "touch here; sleep 300"
STEP = 1 if os.environ.get("TARMAC_THOROUGH") else 5  # of the moments at which it is stopped
TURNS = (
    turn(call("list_files", path="."), call("read_file", path="a.txt"), text="Let me look.", pace=0.001),
    turn(call("write_to_file", path="b.txt", content="b\n"), call("execute_command", command="cat a.txt b.txt")),
    turn(call("apply_diff", path="a.txt", diff="<<<<<<< SEARCH\na\n=======\nA\n>>>>>>> REPLACE"), text="And this."),
    *[done()] * 9,
)
SHELL = (
    turn(call("execute_command", command="echo one; sleep 0.05; echo two > two.txt"), text="Run."),
    turn(call("execute_command", command="echo again; cat two.txt")),
    *[done()] * 9,
)


def _script(tmp_path: Path, turns: tuple[dict[str, object], ...]) -> tuple[Path, str]:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    (work / "a.txt").write_text("a\n")
    (work / "b.txt").unlink(missing_ok=True)
    return work, write_script(tmp_path / "script.toml", *turns)


async def _run_and_stop(app: App, model: str, stop_after: int, *, by_ticks: bool) -> tuple[Ended, int, str]:
    """Run a task and stop it after so many things (or steps of the event loop); how it ended, how many there were."""
    async with app.create_task("Do it.", model=model, auto="all", attended=False) as task:
        count, stopped = 0, 0.0
        things: list[TaskEvent | Signal] = []

        def stop() -> None:
            nonlocal stopped
            stopped = stopped or time.monotonic()
            task.cancel()

        def hear(_: int | None, thing: TaskEvent | Signal) -> None:
            nonlocal count
            count += 1
            things.append(thing)
            if count == stop_after and not by_ticks:
                stop()

        def tick(left: int) -> None:
            if not task.running and left < stop_after:
                return
            if left:
                asyncio.get_running_loop().call_soon(tick, left - 1)
            else:
                stop()

        task.subscribe(hear)
        if by_ticks:
            asyncio.get_running_loop().call_soon(tick, stop_after)
        ended = await task.run_until_idle()
        if stopped:
            assert time.monotonic() - stopped < AT_ONCE
        await messages_of(task)
        check_order(things)
        assert not task.questions
        return ended, count, task.id


async def _resumes(app: App, id: str, model: str) -> None:
    """Every call has its result by now, and the task can be brought to its end."""
    async with app.resume_task(id, model=model, auto="all", attended=False) as task:
        ended = await task.run_until_idle()
        assert ended.why == "completed", ended
        await messages_of(task)


async def _everywhere(tmp_path: Path, turns: tuple[dict[str, object], ...], *, by_ticks: bool, step: int = 1) -> None:
    work, model = _script(tmp_path, turns)
    async with asyncio.timeout(60), an_app(work) as app:
        ended, most, _ = await _run_and_stop(app, model, 100_000, by_ticks=False)
        assert ended.why == "completed"
        for number in range(1, (400 if by_ticks else most + 1), step):
            _script(tmp_path, turns)
            ended, _, id = await _run_and_stop(app, model, number, by_ticks=by_ticks)
            assert ended.why in ("interrupted", "completed")
            await _resumes(app, id, model)


async def test_stopped_after_any_thing_that_happens_it_ends_in_order_and_resumes(tmp_path: Path) -> None:
    """S4: cancelled after each of its events and signals."""
    await _everywhere(tmp_path, TURNS, by_ticks=False, step=STEP)


async def test_stopped_at_any_step_of_the_event_loop_it_ends_in_order_and_resumes(tmp_path: Path) -> None:
    """S4: cancelled between events, too."""
    await _everywhere(tmp_path, TURNS, by_ticks=True, step=STEP * 11)


@pytest.mark.shell
async def test_stopped_at_any_moment_of_a_command_it_leaves_no_process(tmp_path: Path) -> None:
    """S4: nothing is left running (the test's own check), and the log resumes."""
    await _everywhere(tmp_path, SHELL, by_ticks=False, step=STEP)


async def _started(work: Path, seen: Seen, run: "asyncio.Task[Ended]", task: Task) -> None:
    await seen.until(lambda each: isinstance(each, OutputStreamed))
    began = time.monotonic()
    task.cancel()
    assert (await run).why == "interrupted"
    assert time.monotonic() - began < AT_ONCE


@pytest.mark.shell
@pytest.mark.parametrize(
    "line",
    [
        'bash -c "echo begun; sleep 60; sleep 60"',
        "bash -c \"trap '' INT TERM; echo begun; sleep 60; sleep 60\"",
        "echo begun; sleep 60",  # a list, of which the shell itself forgets the rest
        "trap '' INT TERM HUP; echo begun; while :; do sleep 1; done",  # the shell itself ignores all
    ],
)
async def test_a_command_is_stopped_and_its_output_told(tmp_path: Path, line: str) -> None:
    """S6: within a second, also one that ignores signals; the other calls of the message are told as not run."""
    calls = turn(call("execute_command", command=line), call("write_to_file", path="b.txt", content="b"))
    async with a_task(tmp_path / "work", calls, done(), auto="all") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await _started(tmp_path, seen, run, task)
        await messages_of(task)
        first, second = results(seen)
        assert (first[1], second[1]) == ("interrupted", "skipped")
        assert "begun" in first[2] and "the person stopped it" in first[2] and "untrusted" in first[2]
        assert not (tmp_path / "work/b.txt").exists()
        assert (await task.run_until_idle()).why == "completed"  # the model goes on from there


async def test_an_answer_that_is_stopped_keeps_what_had_come(tmp_path: Path) -> None:
    """S6: the text stays in the history; its cost is unknown."""
    long = turn(call("list_files", path="."), text="one two three four five six", pace=0.05)
    async with a_task(tmp_path / "work", long, done()) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, TextStreamed) and "two" in each.text)
        task.cancel()
        assert (await run).why == "interrupted"
        (said,) = [each for each in seen.all if isinstance(each, ModelSaid)]
        assert (said.stop, said.cost) == ("cut", None)
        await messages_of(task)
        await task.say("Go on.")
        assert (await task.run_until_idle()).why == "completed"


async def test_an_answer_that_is_stopped_when_all_of_it_has_come_is_kept(tmp_path: Path) -> None:
    """S6: also while its price is looked up."""
    for steps in range(0, 30, 2):
        async with a_task(tmp_path / "work", turn(text="It is blue."), done(), attended=True) as task:
            seen = Seen(task)

            def stop(left: int, task: Task = task) -> None:
                asyncio.get_running_loop().call_soon(stop, left - 1) if left else task.cancel()

            run = asyncio.create_task(task.run_until_idle())
            await seen.until(lambda each: isinstance(each, TextStreamed) and each.text.endswith("blue."))
            stop(steps)
            assert (await run).why in ("interrupted", "idle")
            (said,) = [each for each in seen.all if isinstance(each, ModelSaid)]
            assert said.parts == (Text("It is blue."),)


async def test_whoever_awaits_a_run_stops_it_by_being_cancelled(tmp_path: Path) -> None:
    """S6: a front end that goes away leaves a task in order."""
    async with a_task(tmp_path / "work", turn(text="x", delay=30), done()) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, RequestStarted))
        run.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert time.monotonic() - began < AT_ONCE
        assert not task.running
        await messages_of(task)


@pytest.mark.shell
async def test_an_aborted_task_ends_its_commands_and_hears_nothing_more(tmp_path: Path) -> None:
    """S5: saying anything in an aborted task is an error. T9: its terminals are closed."""
    server = turn(call("execute_command", command=SERVER, timeout=0.2))
    async with a_task(tmp_path / "work", server, turn(text="x", delay=30), auto="all") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, ToolFinished))
        assert [each.busy for each in task._state.context.registry.listing(task=task.id)] == [True]
        await task.abort("enough")
        assert await run == Ended("aborted", "enough")
        assert task._state.context.registry.listing(task=task.id) == []
        assert [each.why for each in seen.all if isinstance(each, TaskAborted)] == ["enough"]
        assert task.metadata.status == "aborted"
        with pytest.raises(BadRequest, match="aborted"):
            await task.say("Hello?")


@pytest.mark.shell
async def test_a_task_that_completes_leaves_its_commands_in_the_background(tmp_path: Path) -> None:
    """T9: they belong to nobody then."""
    server = turn(call("execute_command", command=SERVER, timeout=0.2))
    async with a_task(tmp_path / "work", server, done(), auto="all") as task:
        assert (await task.run_until_idle()).why == "completed"
        (left,) = task._state.context.registry.background(busy=True)
        assert left.last_command == SERVER


@pytest.mark.shell
async def test_time_over_stops_a_command_and_the_task_can_go_on(tmp_path: Path) -> None:
    """S16: wall time; it ends in order and is resumable."""
    calls = turn(call("execute_command", command="echo begun; sleep 60"))
    async with a_task(tmp_path / "work", calls, done(), auto="all", limits=Limits(max_seconds=1.0)) as task:
        seen = Seen(task)
        began = time.monotonic()
        ended = await task.run_until_idle()
        assert (ended.why, ended.text) == ("limit", "the limit of 1 s is reached")
        assert time.monotonic() - began < 1.0 + AT_ONCE
        assert results(seen)[0][1] == "interrupted"
        assert [each.why for each in seen.all if isinstance(each, TaskPaused)] == [ended.text]
        assert task.metadata.status == "paused"
        assert (await task.run_until_idle()).why == "completed"


async def test_a_paused_task_stands_still_and_goes_on(tmp_path: Path) -> None:
    """S1: running ⇄ paused."""
    async with a_task(tmp_path / "work", turn(call("list_files", path=".")), done()) as task:
        seen = Seen(task)
        await task.pause("a moment")
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, TaskStarted))
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert not [each for each in seen.all if isinstance(each, RequestStarted)]
        assert task.metadata.status == "paused"
        await task.unpause()
        assert (await run).why == "completed"


async def test_a_pause_takes_effect_between_two_calls_of_one_answer(tmp_path: Path) -> None:
    """S18: the call that runs ends, and the next one does not begin; nothing is left out when it goes on."""
    work = tmp_path / "work"
    first = call("write_to_file", path="a.txt", content="a\n")
    second = call("write_to_file", path="b.txt", content="b\n")
    async with a_task(work, turn(first, second), done(), auto="edit") as task:
        seen = Seen(task)

        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, ToolStarted))
        await task.pause()
        await seen.until(lambda each: isinstance(each, ToolFinished))
        await asyncio.wait([run], timeout=0.3)
        assert ((work / "a.txt").exists(), (work / "b.txt").exists()) == (True, False)
        assert task.metadata.status == "paused"
        await task.unpause()
        assert (await run).why == "completed"
        assert (work / "b.txt").read_text() == "b\n"


async def test_a_paused_task_can_be_stopped(tmp_path: Path) -> None:
    async with a_task(tmp_path / "work", done()) as task:
        await task.pause()
        run = asyncio.create_task(task.run_until_idle())
        await asyncio.sleep(0)
        task.cancel()
        assert (await run).why == "interrupted"


async def test_an_edit_under_way_is_finished_and_known(tmp_path: Path) -> None:
    """S4: a file that is being written when the task is stopped is written to its end, and told as it is."""
    work = tmp_path / "work"
    async with a_task(work, turn(call("write_to_file", path="a.txt", content="a\n" * 1000)), done()) as task:
        seen = Seen(task)

        def stop(_: int | None, thing: TaskEvent | Signal) -> None:
            if isinstance(thing, ToolStarted):
                asyncio.get_running_loop().call_soon(task.cancel)

        task.subscribe(stop)
        assert (await task.run_until_idle()).why == "interrupted"
        (finished,) = [each for each in seen.all if isinstance(each, ToolFinished)]
        happened = (work / "a.txt").exists()
        assert (finished.outcome == "done") == happened
        await messages_of(task)
        assert not [each for each in seen.all if isinstance(each, CommandOutput)]
