"""Undo in a task: what tools and commands changed is brought back, and nothing else (S14)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, an_app, call, done, messages_of, stored, turn, write_script
from tests.tasks.test_checkpoints_snapshot import fingerprint, git, repository
from tests.tasks.test_killing import a_nursery

from tarmac.errors import BadRequest
from tarmac.models.messages import Text
from tarmac.tasks.checkpoints import Checkpoints, Fate
from tarmac.tasks.events import (
    CheckpointCreated,
    CheckpointRestored,
    CommandOutput,
    FilesChanged,
    HistoryRewound,
    ModelTold,
    Noted,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from tarmac.tasks.log.reader import read_log
from tarmac.tasks.snapshot import LARGEST
from tarmac.tasks.task import Task
from tarmac.tasks.views.timeline import timeline

pytestmark = pytest.mark.shell


def files(folder: Path) -> dict[str, str]:
    """What is in the workspace, without git's own."""
    return {
        str(each.relative_to(folder)): each.read_text()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and ".git" not in each.parts
    }


async def undo(task: Task, **how: bool) -> list[Path]:
    to = task.checkpoints.history.last_turn
    assert to is not None
    restored = await task.rewind(to, conversation=False, **how)
    assert restored is not None
    return restored.of(Fate.RESTORED)


async def test_edits_and_commands_are_taken_back_and_the_users_repository_is_left_alone(tmp_path: Path) -> None:
    """S14: before each change a checkpoint, announced; restoring touches only what the task changed."""
    work = repository(tmp_path / "work", **{"a.txt": "one\n", "b.txt": "b\n"})
    (work / "mine.txt").write_text("not committed\n")
    theirs, before = fingerprint(work / ".git"), files(work)
    turns = (
        turn(call("write_to_file", path="a.txt", content="two\n")),
        turn(call("execute_command", command="rm b.txt mine.txt; echo made > made.txt; chmod +x a.txt")),
        done(),
    )
    async with a_task(work, *turns, auto="all") as task:
        assert (await task.run_until_idle()).why == "completed"
        (work / "theirs.txt").write_text("somebody else's\n")
        events = await stored(task)
        made = [each for each in events if isinstance(each, CheckpointCreated)]
        assert [(bool(each.files), bool(each.trees)) for each in made] == [(True, False), (False, True)]
        for each in made:  # on the disk before the call acts
            at = events.index(each)
            assert any(isinstance(after, ToolStarted) and after.call == each.call for after in events[at : at + 2])
        shown = [item.text for item in timeline(events) if item.kind == "checkpoint_created"]
        assert len(shown) == 2 and "a.txt" in shown[0]
        restored = await undo(task)
        assert {each.name for each in restored} == {"a.txt", "b.txt", "mine.txt", "made.txt"}
        assert files(work) == before | {"theirs.txt": "somebody else's\n"}
        assert not os.access(work / "a.txt", os.X_OK)
        told = [each.text for each in await stored(task) if isinstance(each, ModelTold)]
        assert "took back your changes" in told[-1]
    assert fingerprint(work / ".git") == theirs


async def test_restoring_is_itself_undone(tmp_path: Path) -> None:
    """S14: a restoration makes a checkpoint first, and can be taken back."""
    work = tmp_path / "work"
    turns = (turn(call("write_to_file", path="a.txt", content="new\n")), done())
    async with a_task(work, *turns) as task:
        await task.run_until_idle()
        await undo(task)
        assert files(work) == {}
        events = await stored(task)
        [last] = [
            n for n, each in enumerate(events, 1) if isinstance(each, CheckpointCreated) and "Restoring" in each.why
        ]
        await task.rewind(last, conversation=False)
        assert files(work) == {"a.txt": "new\n"}
        await undo(task)
        assert files(work) == {}
        assert task.checkpoints.history.last_turn is None


async def test_one_turn_after_the_other_is_undone(tmp_path: Path) -> None:
    """S14: `/undo` again goes one message further back."""
    work = tmp_path / "work"
    turns = [
        turn(call("write_to_file", path="a.txt", content="1\n")),
        turn(call("write_to_file", path="a.txt", content="2\n")),
        done(),
        turn(call("execute_command", command="echo 3 > a.txt; echo x > b.txt")),
        done(),
    ]
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        await task.say("More.")
        await task.run_until_idle()
        assert files(work) == {"a.txt": "3\n", "b.txt": "x\n"}
        await undo(task)
        assert files(work) == {"a.txt": "2\n"}
        await undo(task)
        assert files(work) == {}
        assert task.checkpoints.history.last_turn is None


async def test_what_somebody_else_changed_since_is_left_and_told(tmp_path: Path) -> None:
    """S14: a file with another content than the task left stays, unless it is forced; then it can be undone, too."""
    work = repository(tmp_path / "work", **{"a.txt": "one\n", "b.txt": "b\n"})
    turns = (turn(call("execute_command", command="echo two > a.txt; echo c > b.txt")), done())
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        (work / "a.txt").write_text("by hand\n")
        first = task.checkpoints.find(None)
        restored = await task.rewind(first, conversation=False)
        assert restored is not None
        assert {each.edit.path.name: each.fate for each in restored.files} == {
            "a.txt": Fate.CHANGED_SINCE,
            "b.txt": Fate.RESTORED,
        }
        assert files(work) == {"a.txt": "by hand\n", "b.txt": "b\n"}
        await task.rewind(first, conversation=False, force=True)
        assert files(work) == {"a.txt": "one\n", "b.txt": "b\n"}
        await task.rewind(task.checkpoints.history.points[-1].seq, conversation=False)
        assert files(work)["a.txt"] == "by hand\n"


async def test_a_large_file_that_a_command_changed_is_not_called_somebody_elses(tmp_path: Path) -> None:
    """S14: over the cap: a committed file comes back, a new one is removed, another is said not to be kept."""
    work = repository(tmp_path / "work", old="x" * (LARGEST + 1), same="s" * (LARGEST + 1))
    (work / "mine").write_text("m" * (LARGEST + 1))
    turns = (
        turn(call("execute_command", command="for each in old same mine new; do echo y >> $each; done")),
        turn(call("execute_command", command="cat old old > new; echo z >> old")),
        done(),
    )
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        with (work / "same").open("a") as file:
            file.write("by hand\n")
        restored = await task.rewind(task.checkpoints.find(None), conversation=False)
        assert restored is not None
        assert {each.edit.path.name: each.fate for each in restored.files} == {
            "old": Fate.RESTORED,
            "same": Fate.CHANGED_SINCE,
            "mine": Fate.NOT_KEPT,
            "new": Fate.RESTORED,
        }
        assert (work / "old").read_text() == "x" * (LARGEST + 1) and not (work / "new").exists()
        assert (work / "same").read_text().endswith("y\nby hand\n")


async def test_a_file_that_is_too_large_to_be_read_is_not_called_somebody_elses(tmp_path: Path) -> None:
    """S14: nobody can say whether it changed, so it stays, and the reason is told; the others come back."""
    work = repository(tmp_path / "work", **{"a.txt": "one\n", "b.txt": "b\n"})
    turns = (turn(call("execute_command", command="truncate -s 65M a.txt; echo c > b.txt")), done())
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        first = task.checkpoints.find(None)
        for force in (False, True):
            restored = await task.rewind(first, conversation=False, force=force)
            assert restored is not None
            found = {each.edit.path.name: each for each in restored.files}
            assert (found["a.txt"].fate, "at most" in found["a.txt"].why) == (Fate.FAILED, True)
            assert (work / "b.txt").read_text() == "b\n"


async def test_the_conversation_is_rewound_without_losing_a_fact(tmp_path: Path) -> None:
    """S14: rewinding hides events from the views; the log keeps them."""
    work = tmp_path / "work"
    turns = [
        turn(call("write_to_file", path="a.txt", content="1\n")),
        done("First."),
        turn(call("write_to_file", path="a.txt", content="2\n")),
        done("Second."),
        turn(text="A third answer."),
    ]
    async with a_task(work, *turns, attended=True) as task:
        await task.run_until_idle()
        await task.say("Again.")
        await task.run_until_idle()
        before = await stored(task)
        [to] = [n for n, each in enumerate(before, 1) if isinstance(each, UserSaid) and each.text == "Again."]
        await task.rewind(to)
        after = await stored(task)
        assert after[: len(before)] == before and any(isinstance(each, HistoryRewound) for each in after)
        assert files(work) == {"a.txt": "1\n"}
        said = [part.text for each in await messages_of(task) for part in each.parts if isinstance(part, Text)]
        assert not any("Again." in text for text in said)
        assert not any(item.text == "Again." for item in timeline(after))
        assert (task.questions, task.metadata.outcome) == ((), None)
        await task.say("Another way.")
        assert (await task.run_until_idle()).text == "A third answer."
        await messages_of(task)


async def test_a_rewind_into_a_turn_leaves_no_call_without_a_result(tmp_path: Path) -> None:
    """S14: going back to a checkpoint takes the answer that made the call with it."""
    work = tmp_path / "work"
    both = turn(call("write_to_file", path="a.txt", content="1\n"), call("write_to_file", path="b.txt", content="2\n"))
    async with a_task(work, both, done()) as task:
        await task.run_until_idle()
        second = [each.seq for each in task.checkpoints.history.points if "b.txt" in each.text]
        await task.rewind(second[0])
        assert files(work) == {"a.txt": "1\n"}
        assert [each.role for each in await messages_of(task)] == ["user"]


async def test_a_point_that_does_not_exist(tmp_path: Path) -> None:
    async with a_task(tmp_path / "work", done()) as task:
        await task.run_until_idle()
        with pytest.raises(BadRequest, match="has changed no files"):
            task.checkpoints.find(None)
        with pytest.raises(BadRequest, match="999 is not a checkpoint"):
            await task.rewind(999)


async def test_what_a_command_left_running_changes_counts(tmp_path: Path) -> None:
    """S14: changes of a command in the background are the task's, too."""
    work = repository(tmp_path / "work")
    (work / "gate").touch()
    slow = "while [ -e gate ]; do sleep 0.02; done; echo late > late.txt"
    turns = (
        turn(call("execute_command", command=slow, timeout=0.2)),
        turn(
            call("execute_command", command="rm gate; while [ ! -e late.txt ]; do sleep 0.02; done; echo ok > ok.txt")
        ),
        done(),
    )
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        assert set(files(work)) == {"a.txt", "late.txt", "ok.txt"}
        await undo(task)
        assert set(files(work)) == {"a.txt", "gate"}


async def test_without_git_tools_are_undone_and_commands_are_said_not_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S14: git absent: before-images work, and the person is told once what can't be undone."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    monkeypatch.setattr("tarmac.tasks.git_process.shutil.which", lambda _: None)
    turns = (
        turn(call("write_to_file", path="a.txt", content="two\n")),
        turn(call("execute_command", command="echo x > x.txt")),
        turn(call("execute_command", command="echo y > y.txt")),
        done(),
    )
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        noted = [each.text for each in await stored(task) if isinstance(each, Noted)]
        assert [text for text in noted if "git is not installed" in text] == [
            "what commands change can't be undone now: git is not installed"
        ]
        partial = [each.partial for each in await stored(task) if isinstance(each, CheckpointCreated)]
        assert [bool(each) for each in partial] == [False, True, True]
        await undo(task)
        assert files(work) == {"a.txt": "one\n", "x.txt": "x\n", "y.txt": "y\n"}


async def test_links_modes_and_folders_come_back(tmp_path: Path) -> None:
    """S14: symlinks, executable bits, a folder that became a file; a link that leads out is not followed."""
    work = repository(tmp_path / "work", **{"a.txt": "one\n"})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("not ours\n")
    (work / "link").symlink_to("a.txt")
    (work / "dir").mkdir()
    (work / "dir" / "x.txt").write_text("x\n")
    (work / "run sh").write_text("#!/bin/sh\n")
    (work / "run sh").chmod(0o755)
    command = (
        f"rm link; echo plain > link; rm -r dir; ln -s {outside} dir; chmod -x 'run sh'; rm a.txt; mkdir a.txt; "
        "echo in > a.txt/in"
    )
    async with a_task(work, turn(call("execute_command", command=command)), done(), auto="all") as task:
        await task.run_until_idle()
        assert (work / "dir").is_symlink(), [each for each in await stored(task) if isinstance(each, ToolFinished)]
        restored = await task.rewind(task.checkpoints.find(None), conversation=False)
        assert restored is not None
        assert (work / "link").is_symlink() and (work / "link").readlink() == Path("a.txt")
        assert not (work / "dir").is_symlink() and (work / "dir" / "x.txt").read_text() == "x\n"
        assert os.access(work / "run sh", os.X_OK)
        assert (outside / "x.txt").read_text() == "not ours\n"
        assert (work / "a.txt").read_text() == "one\n"
        assert {each.fate for each in restored.files} == {Fate.RESTORED}


async def test_every_bit_of_a_mode_comes_back(tmp_path: Path) -> None:
    """S14: modes beside the executable bit: changed alone, with the content, of a file that was removed, by a tool."""
    work = repository(tmp_path / "work", secret="s\n", open="o\n", gone="g\n", edited="e\n")
    modes = {"secret": 0o600, "open": 0o666, "gone": 0o640, "edited": 0o755}
    for name, mode in modes.items():
        (work / name).chmod(mode)
    command = "chmod 644 secret; echo more >> open; chmod 444 open; rm gone; chmod 711 edited"
    turns = (
        turn(call("execute_command", command=command)),
        turn(call("write_to_file", path="secret", content="t\n")),
        done(),
    )
    async with a_task(work, *turns, auto="all") as task:
        await task.run_until_idle()
        assert {each.name: each.stat().st_mode & 0o777 for each in work.iterdir() if each.is_file()} == {
            "secret": 0o644,
            "open": 0o444,
            "edited": 0o711,
        }
        restored = await task.rewind(task.checkpoints.find(None), conversation=False)
        assert restored is not None and {each.fate for each in restored.files} == {Fate.RESTORED}
        assert {each.name: each.stat().st_mode & 0o777 for each in work.iterdir() if each.is_file()} == modes
        assert files(work) == {"secret": "s\n", "open": "o\n", "gone": "g\n", "edited": "e\n"}


async def test_kill_9_between_the_checkpoint_and_the_end(tmp_path: Path, own_state: Path) -> None:
    """S14: what a command changed before the host was killed is known when the task is opened again."""
    work = repository(tmp_path / "work")
    command = "echo two > a.txt; echo started; sleep 60; echo never > never.txt"
    model = write_script(tmp_path / "script.toml", turn(call("execute_command", command=command)), done(), done())
    async with asyncio.timeout(30), a_nursery(tmp_path) as nursery:
        child = await nursery.start(work, model)
        while (line := await nursery.heard())[0] != "task":
            pass
        folder = own_state / "state/tasks" / line[1]
        while not any(isinstance(each, CommandOutput) for each in read_log(folder).events):
            await nursery.heard()
        os.kill(child, signal.SIGKILL)
        await nursery.rest()
    async with an_app(work) as app, app.resume_task(line[1], model=model, attended=False) as task:
        await task.checkpoints.settle()
        changed = [each for each in await stored(task) if isinstance(each, FilesChanged)]
        assert [edit.path.name for each in changed for edit in each.files] == ["a.txt"]
        await undo(task)
    assert files(work) == {"a.txt": "one\n"}


async def test_kill_9_between_the_checkpoint_and_an_edit(tmp_path: Path) -> None:
    """S14: a checkpoint whose edit never came is settled by the disk: nothing changed, or as intended."""
    work = tmp_path / "work"
    async with a_task(work, turn(call("write_to_file", path="a.txt", content="1\n")), done()) as task:
        await task.run_until_idle()
        events = await stored(task)
        cut = next(n for n, each in enumerate(events) if isinstance(each, FilesChanged))
        for there, expected in ((False, []), (True, ["a.txt"])):
            if not there:
                (work / "a.txt").unlink()
            else:
                (work / "a.txt").write_text("1\n")
            again = Checkpoints(task.log, work, events[:cut])
            before = len(await stored(task))
            await again.settle()
            [settled] = [each for each in (await stored(task))[before:] if isinstance(each, FilesChanged)]
            assert [each.path.name for each in settled.files] == expected


async def test_a_stopped_command_is_undone(tmp_path: Path) -> None:
    """S14: a command that the person stops has changed things, too."""
    work = repository(tmp_path / "work")
    command = "echo two > a.txt; echo started; sleep 60"
    async with a_task(work, turn(call("execute_command", command=command)), auto="all") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: b"started" in getattr(each, "data", b""))
        task.cancel()
        await run
        assert any(isinstance(each, ToolFinished) for each in await stored(task))
        await undo(task)
        assert files(work) == {"a.txt": "one\n"}
        assert any(isinstance(each, CheckpointRestored) for each in await stored(task))


async def test_commands_that_only_read_make_no_checkpoint(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    async with a_task(work, turn(call("execute_command", command="cat a.txt")), done()) as task:
        await task.run_until_idle()
        assert not [each for each in await stored(task) if isinstance(each, CheckpointCreated)]


async def test_a_commit_of_the_agent_is_not_undone_but_its_files_are(tmp_path: Path) -> None:
    """S14: the user's repository is never written to, also not in order to take a commit back."""
    work = repository(tmp_path / "work")
    command = "echo two > a.txt; git -c user.name=a -c user.email=a@b commit -qam agent"
    async with a_task(work, turn(call("execute_command", command=command)), done(), auto="all") as task:
        await task.run_until_idle()
        theirs = fingerprint(work / ".git")
        await undo(task)
        assert files(work) == {"a.txt": "one\n"}
    assert fingerprint(work / ".git") == theirs
    assert git(work, "status", "--porcelain") == " M a.txt\n"
