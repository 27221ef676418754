"""What the model is told of the workspace with each turn (S8)."""

import asyncio
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, an_app, call, done, results, turn, write_script

from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.context import Editor
from tarmac.tasks.events import ModelTold, QuestionAsked
from tarmac.tasks.limits import Limits
from tarmac.tools.output import Problem


def told(seen: Seen) -> list[str]:
    return [each.text for each in seen.all if isinstance(each, ModelTold) and each.about == "environment"]


async def test_after_the_first_turn_only_what_came_and_went_is_told(tmp_path: Path) -> None:
    """S8: all files once; then new ones and those that are gone, without what the task wrote itself."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "old.txt").write_text("x")
    (work / ".gitignore").write_text("*.log\n")
    turns = [
        turn(call("execute_command", command="rm old.txt; mkdir -p src; touch src/new.py made.log")),
        turn(call("write_to_file", path="own.txt", content="mine\n")),
        turn(call("list_files", path=".")),
        done(),
    ]
    async with a_task(work, *turns, auto="all", attended=False) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    first, second, *later = told(seen)
    assert "# Files in the workspace\n    .gitignore\n    old.txt\n" in first
    assert "# New files\n    src/new.py\n# Deleted files\n    old.txt\n" in second
    assert "Files in the workspace" not in second and "    made.log" not in second
    assert later == []  # nothing changed


async def test_a_front_end_says_what_the_person_has_before_them(tmp_path: Path) -> None:
    """S8, P8: open files, the current one and problems, but for what is hidden from agents."""
    work = tmp_path / "work"
    work.mkdir()
    (work / ".tarmacignore").write_text("secret/\n")
    editor = Editor(
        open_files=("src/a.py", "secret/key", str(work / "b.py")),
        current_file="src/a.py",
        problems=(Problem("src/a.py", 3, "error: no such name"), Problem("secret/key", 1, "error: odd")),
    )
    async with a_task(work, turn(call("list_files", path=".")), done(), auto="all", attended=False) as task:
        seen = Seen(task)
        task.editor = editor
        assert (await task.run_until_idle()).why == "completed"
    first, _ = told(seen)
    assert f"# File in front of the user: src/a.py\n# Open files\n    src/a.py\n    {work}/b.py\n" in first
    assert "# Problems in the editor\n    src/a.py:3: error: no such name\n" in first
    assert "secret" not in first


@pytest.mark.shell
@pytest.mark.parametrize("how", ["no", "stopped"])
async def test_what_was_looked_at_and_not_told_is_told_in_the_next_run(tmp_path: Path, how: str) -> None:
    """S8, T24: news of terminals and files reach the model once, also when the task stands still before they do."""
    work = tmp_path / "work"
    slow = "for n in 1 2 3; do sleep 0.2; echo beat $n; done; touch made.txt; (exit 7)"
    turns = [
        turn(call("execute_command", command=slow, timeout=0.1)),
        turn(call("list_files", path="."), delay=1),
        done(),
    ]
    async with a_task(work, *turns, auto="all", attended=True, limits=Limits(max_auto_requests=2)) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.until(lambda each: isinstance(each, QuestionAsked) and each.ask == "auto_approval_limit")
        assert isinstance(asked, QuestionAsked)
        before = len(told(seen))
        if how == "no":
            await task.answer(asked.question, Answer(AnswerKind.NO))
        else:
            task.cancel()
        assert (await run).why == ("limit" if how == "no" else "interrupted")
        assert len(told(seen)) == before
        assert (await task.run_until_idle()).why == "completed"
        everything = "\n".join([*told(seen), *(text for _, _, text in results(seen))])
    assert [everything.count(f"beat {n}\n") for n in (1, 2, 3)] == [1, 1, 1]
    assert everything.count("Ended: exit code 7") == 1
    assert everything.count("# New files\n    made.txt") == 1


async def test_a_first_turn_that_was_not_made_takes_no_files_with_it(tmp_path: Path) -> None:
    """S8: the files of the workspace come with the first turn that reaches the model."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "old.txt").write_text("x")
    async with a_task(work, done(), attended=True, limits=Limits(max_auto_requests=0)) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        first = await seen.question()
        await task.answer(first.question, Answer(AnswerKind.NO))
        assert (await run).why == "limit"
        (work / "new.txt").write_text("x")
        run = asyncio.create_task(task.run_until_idle())
        second = await seen.question(after=seen.all.index(first) + 1)
        await task.answer(second.question, Answer(AnswerKind.YES))
        assert (await run).why == "completed"
    (only,) = told(seen)
    assert "# Files in the workspace\n    new.txt\n    old.txt\n" in only


async def test_a_switched_level_is_told_with_the_next_turn_and_the_system_prompt_stays(tmp_path: Path) -> None:
    """S7, S8, P5: the model does not go on as if the old level held, and the provider's cache is kept."""
    work = tmp_path / "work"
    work.mkdir()
    model = write_script(tmp_path / "script.toml", turn(text="Hello."), turn(text="Well."))
    async with asyncio.timeout(30), an_app(work) as app, app.create_task("Hi.", model=model, attended=True) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "idle"
        before = (await task._engine._prompt.prepared()).system
        app.switch_level(task, "plan")
        await task.say("And now?")
        assert (await task.run_until_idle()).why == "idle"
        assert (await task._engine._prompt.prepared()).system == before
    first, second = told(seen)
    assert "# Approval level: ask\n" in first
    assert "# Approval level: plan\n" in second and "What would change something is denied." in second
