"""A task from its first word to its result: the model is scripted, all else is real."""

from pathlib import Path

from tests.tasks.engine import Seen, a_task, call, done, results, turn

from tarmac.tasks.events import FileSeen, ModelSaid, TaskCompleted, ToolStarted
from tarmac.tasks.signals import TextStreamed


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
    assert [each[:2] for each in results([], seen)] == [("write_to_file", "done"), ("attempt_completion", "done")]
