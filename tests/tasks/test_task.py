"""A task from its first word to its result: the model is scripted, all else is real."""

from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, call, done, results, turn

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
