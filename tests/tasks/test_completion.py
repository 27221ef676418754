"""What is told when a task is done: the tools it used, and what still runs."""

from pathlib import Path

import pytest
from tests.tasks.engine import a_task, call, done, messages_of, stored, turn

from tarmac.models.messages import Text
from tarmac.tasks.events import Noted, TaskCompleted, ToolUsage

pytestmark = pytest.mark.shell


async def test_completion_leaves_commands_running_and_tells_of_them(tmp_path: Path) -> None:
    """T9: a task that completes leaves its running commands; the person and the model are told which."""
    turns = (turn(call("execute_command", command="echo begun; sleep 600", timeout=0.3)), done())
    async with a_task(tmp_path / "work", *turns, auto="all") as task:
        assert (await task.run_until_idle()).why == "completed"
        noted = [each.text for each in await stored(task) if isinstance(each, Noted)]
        assert len(noted) == 1 and noted[0].startswith("still running in the background: `echo begun; sleep 600` in t")
        said = [part.text for each in await messages_of(task) for part in each.parts if isinstance(part, Text)]
        assert any("still running in the background" in text for text in said)


async def test_completion_says_which_tools_were_used(tmp_path: Path) -> None:
    """S18: completed, with usage: how often each tool was called, and in vain."""
    turns = (
        turn(call("write_to_file", path="a.txt", content="1\n")),
        turn(call("read_file", path="missing.txt")),
        done(),
    )
    async with a_task(tmp_path / "work", *turns) as task:
        await task.run_until_idle()
        [completed] = [each for each in await stored(task) if isinstance(each, TaskCompleted)]
    assert {each.name: each for each in completed.tools}["write_to_file"] == ToolUsage(name="write_to_file", calls=1)
    assert {each.name for each in completed.tools} == {"write_to_file", "read_file", "attempt_completion"}
