"""A task from its first word to its result: the model is scripted, all else is real."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, an_app, call, done, results, turn, write_script

from tarmac.tasks.events import FileSeen, ModelSaid, TaskCompleted, ToolFinished, ToolStarted
from tarmac.tasks.signals import OutputStreamed, TextStreamed


async def test_a_task_writes_a_file_and_completes(tmp_path: Path) -> None:
    """S6: prompt, stream, tools, results, completion."""
    work = tmp_path / "work"
    async with a_task(
        work,
        turn(call("write_to_file", path="a.txt", content="one\n"), text="I write it."),
        done("Written."),
    ) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert (ended.why, ended.text) == ("completed", "Written.")
    assert (work / "a.txt").read_text() == "one\n"
    kinds = [
        type(each)
        for each in seen.all
        if isinstance(each, TextStreamed | ModelSaid | ToolStarted | FileSeen | TaskCompleted)
    ]
    assert kinds == [TextStreamed, ModelSaid, ToolStarted, FileSeen, ModelSaid, ToolStarted, TaskCompleted]
    assert [each[:2] for each in results(seen)] == [("write_to_file", "done"), ("attempt_completion", "done")]


@pytest.mark.shell
async def test_a_command_that_only_reads_runs_by_its_plan_and_others_in_a_terminal(tmp_path: Path) -> None:
    """S10: live output beside the log; the result has exit code, directory and terminal."""
    work = tmp_path / "work"
    async with a_task(
        work,
        turn(call("write_to_file", path="a.txt", content="one\n")),
        turn(call("execute_command", command="cat a.txt")),
        turn(call("execute_command", command="printf two; exit 3 | false")),
        done(),
        auto="all",
    ) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    _, plan, shell, _ = results(seen)
    assert "without a shell" in plan[2] and "one\n" in plan[2]
    assert "terminal 't" in shell[2] and "two" in shell[2]
    shown = b"".join(each.data for each in seen.all if isinstance(each, OutputStreamed))
    assert shown.replace(b"\r", b"") == b"one\ntwo"
    assert [each.exit_code for each in seen.all if isinstance(each, ToolFinished)] == [None, 0, 1, None]


@pytest.mark.shell
async def test_many_tasks_at_once_do_not_mix(tmp_path: Path) -> None:
    """S2: each in its own terminals, with its own history."""
    names = [f"task{n}" for n in range(8)]
    scripts = [
        write_script(
            tmp_path / f"{name}.toml",
            turn(call("write_to_file", path=f"{name}.txt", content=f"{name}\n")),
            turn(call("execute_command", command=f"MINE={name}; cat {name}.txt; touch {name}.done")),
            turn(call("execute_command", command=f"echo it is $MINE; touch {name}.again")),
            done(name),
        )
        for name in names
    ]
    work = tmp_path / "work"
    work.mkdir()
    async with asyncio.timeout(60), an_app(work) as app, AsyncExitStack() as stack:
        opened = [app.create_task("Do it.", model=model, auto="all", attended=False) for model in scripts]
        tasks = [await stack.enter_async_context(each) for each in opened]
        seen = [Seen(task) for task in tasks]
        assert set(app.tasks) == {task.id for task in tasks}
        ended = await asyncio.gather(*(task.run_until_idle() for task in tasks))
        assert [each.text for each in ended] == names
        for name, each in zip(names, seen, strict=True):
            first, second, third, _ = results(each)
            assert (first[1], second[1], third[1]) == ("done", "done", "done")
            assert f"{name}\n" in second[2]
            assert f"it is {name}\n" in third[2]  # the same terminal, and nobody else's
    assert app.tasks == {}
    assert len(list(work.iterdir())) == 3 * len(names)
