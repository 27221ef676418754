"""What the model is told of the workspace with each turn (S8)."""

from pathlib import Path

from tests.tasks.engine import Seen, a_task, call, done, turn

from tarmac.tasks.desk import Editor, Problem
from tarmac.tasks.events import ModelTold


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
    assert "# New files\n    src/new.py\n# Files that are gone\n    old.txt\n" in second
    assert "Files in the workspace" not in second and "    made.log" not in second
    assert len(later) == 2 and not any("New files" in each or "gone" in each or "own.txt" in each for each in later)


async def test_a_door_says_what_the_person_has_before_them(tmp_path: Path) -> None:
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
    assert f"# The user looks at: src/a.py\n# Open files\n    src/a.py\n    {work}/b.py\n" in first
    assert "# Problems the editor reports\n    src/a.py:3: error: no such name\n" in first
    assert "secret" not in first
