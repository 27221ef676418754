"""Tasks that have parts of their work done by other tasks."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.engine import Seen, a_task, an_app, call, check_pairs, done, results, stored, turn, write_script

from tarmac.policy.approval import Answer, AnswerKind
from tarmac.show.summary import spent
from tarmac.tasks import events as e
from tarmac.tasks.limits import Limits, Used
from tarmac.tasks.log.reader import LOG, read_log
from tarmac.tasks.signals import ProgressMade
from tarmac.tasks.store import TaskStore
from tarmac.tasks.subtasks import make_worktree, plan_merge, share, unfinished, write_all
from tarmac.tasks.task import Task
from tarmac.tasks.views.metadata import metadata
from tarmac.tasks.views.model_history import model_messages


def git(where: Path, *words: str) -> str:
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *who, "-C", str(where), *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a commit."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q")
    (work / "a.txt").write_text("".join(f"line {n}\n" for n in range(20)))
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    return work


def child(words: str, **more: object) -> dict[str, object]:
    return call("new_task", message=words, **more)


def _paused(log: list[e.TaskEvent]) -> bool:
    return metadata(log).status == "paused"


def logs_of(task: Task) -> dict[str, list[e.TaskEvent]]:
    """The logs of its children that were opened, by their first words."""
    found: dict[str, list[e.TaskEvent]] = {}
    for started in (each for each in read_log(task.log.folder).events if isinstance(each, e.SubtaskStarted)):
        folder = task.log.folder.parent / started.child
        found |= {started.text: read_log(folder).events} if (folder / LOG).exists() else {}
    return found


async def test_a_subtask_has_its_own_log_mode_and_number_and_its_result_comes_back(tmp_path: Path) -> None:
    """S15, S18: the parent records it, waits, gets the result, goes on."""
    turns = [
        turn(child("part one", mode="ask")),
        turn(text="The answer is 42.", task="part one"),
        done("It is 42."),
    ]
    async with a_task(tmp_path / "work", *turns, auto="all", mode="orchestrator") as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
        log = logs_of(task)["part one"]
        events = await stored(task)
    assert (ended.why, ended.text) == ("completed", "It is 42.")
    meta, parent = metadata(log), metadata(events)
    assert (meta.mode, meta.parent, meta.root, meta.outcome) == ("ask", task.id, task.id, "completed")
    assert meta.number != parent.number and parent.children == (meta.task,) and parent.waiting_for is None
    assert [type(each) for each in seen.of(e.SubtaskStarted, e.SubtaskFinished)] == [
        e.SubtaskStarted,
        e.SubtaskFinished,
    ]
    assert results(seen)[0] == ("new_task", "done", f"Subtask {meta.task} completed:\n\nThe answer is 42.")
    check_pairs(model_messages(events))


async def test_subtasks_are_nested_three_deep_and_no_deeper(tmp_path: Path) -> None:
    """S15, S16: what all of them cost and asked counts for the first, also after it is opened again."""
    used: dict[str, Any] = {"usage": {"input": 1000}}
    deep = [turn(child(f"level {n + 1}"), task=f"level {n}", **used) for n in range(1, 4)]
    ends = [turn(text=f"level {n} done", task=f"level {n}", **used) for n in (1, 2, 3)]
    ordered = [each for pair in zip(deep, ends, strict=True) for each in pair]
    turns = [turn(child("level 1"), **used), done("Deep."), *ordered]
    async with a_task(tmp_path / "work", *turns, auto="all", price={"input": 1.0, "output": 1.0}) as task:
        ended = await task.run_until_idle()
        folder = task.log.folder.parent
        whole = metadata(await stored(task))
    assert ended.text == "Deep."
    assert [whole.total_cost, whole.whole_cost] == pytest.approx([0.001, 0.007])
    assert (whole.requests, whole.requests_below) == (2, 6)
    assert spent(whole) == "2 requests · 1.0k in, 0 out · $0.0010 · $0.0060 in subtasks"
    logs = [read_log(each) for each in folder.iterdir() if (each / "log.jsonl").exists()]
    assert len(logs) == 4
    refused = [
        each for log in logs for each in log.events if isinstance(each, e.ToolFinished) and each.outcome == "failed"
    ]
    assert len(refused) == 1 and "at most 3 deep" in str(refused[0].content)


async def test_four_subtasks_work_at_once_and_the_fifth_waits_for_one_of_them(tmp_path: Path) -> None:
    """S15: each of the first four asks something, so all four are open until the person answers one."""
    names = [f"part {n}" for n in range(1, 6)]
    asks = [turn(call("ask_followup_question", question=f"{name}?", follow_up=["Yes."]), task=name) for name in names]
    ends = [turn(text=f"{name} done", task=name) for name in names]
    parts = [each for pair in zip(asks, ends, strict=True) for each in pair]
    first = turn(*(child(name, mode="ask") for name in names))
    async with a_task(tmp_path / "work", first, *parts, done("All."), attended=True, auto="all") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda _: len(task.questions) == 4 and len(seen.of(e.SubtaskStarted)) == 5)
        waits = next(name for name in names if not any(f"{name}?" in each.text for each in task.questions))
        (fifth,) = [each.child for each in seen.of(e.SubtaskStarted) if each.text == waits]  # type: ignore[attr-defined]
        assert not (task.log.folder.parent / fifth).exists()
        answered = task.questions[0]
        await task.answer(answered.question, Answer(AnswerKind.MESSAGE, text="Yes."))
        await seen.until(lambda _: any(f"{waits}?" in each.text for each in task.questions))
        assert len(task.questions) <= 4
        for each in task.questions:
            await task.answer(each.question, Answer(AnswerKind.MESSAGE, text="Yes."))
        assert (await run).text == "All."
    assert sorted(each[2].rpartition("\n")[2] for each in results(seen)[:5]) == [f"{name} done" for name in names]


async def test_a_subtask_in_a_worktree_is_asked_about_the_parents_workspace(repository: Path) -> None:
    """S15, P7: its worktree is its workspace. A path outside of it is asked about, the parent's files too."""
    outside = repository / "a.txt"
    before = outside.read_text()
    turns = [
        turn(child("part one"), child("part two")),
        turn(call("write_to_file", path=str(outside), content="taken\n"), task="part one"),
        turn(call("write_to_file", path="one.txt", content="1\n"), task="part one"),
        turn(text="One.", task="part one"),
        turn(text="Two.", task="part two"),
        done(),
    ]
    config: dict[str, object] = {"policy.auto_approve_subtasks": True}
    async with a_task(repository, *turns, attended=True, auto="edit", config=config) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        assert asked.text.startswith("Subtask ") and str(outside) in asked.text + asked.details
        assert outside.read_text() == before
        await task.answer(asked.question, Answer(AnswerKind.NO))
        await run
        asks = [each.ask for each in seen.of(e.QuestionAsked) if isinstance(each, e.QuestionAsked)]
        assert asks == [asked.ask, "completion_result"]  # nothing was asked about the file in its own worktree
    assert outside.read_text() == before
    assert (repository / "one.txt").read_text() == "1\n"


async def test_several_that_write_have_a_worktree_each_and_are_merged(repository: Path) -> None:
    """S15, S2: at the same time, each in a workspace of its own; uncommitted files go with them."""
    (repository / "new.txt").write_text("not committed\n")
    before = git(repository, "status", "--porcelain")
    turns = [
        turn(child("part one"), child("part two")),
        turn(call("read_file", path="new.txt"), call("write_to_file", path="one.txt", content="1\n"), task="part one"),
        turn(
            call("search_and_replace", path="a.txt", search="line 1\n", replace="line one\n"),
            task="part one",
        ),
        turn(text="One.", task="part one"),
        turn(call("search_and_replace", path="a.txt", search="line 18\n", replace="line last\n"), task="part two"),
        turn(text="Two.", task="part two"),
        done(),
    ]
    async with a_task(repository, *turns, auto="all") as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
        logs = logs_of(task)
        after = (repository / "a.txt").read_text(), (repository / "one.txt").exists()
        await task.rewind(task.checkpoints.find(None), conversation=False)
        assert (repository / "a.txt").read_text() == "".join(f"line {n}\n" for n in range(20))
        assert not (repository / "one.txt").exists()
        await task.rewind(task.checkpoints.history.points[-1].seq, conversation=False)
        assert after == ((repository / "a.txt").read_text(), (repository / "one.txt").exists())
    assert ended.why == "completed"
    text = (repository / "a.txt").read_text()
    assert (repository / "one.txt").read_text() == "1\n"
    assert "line one\n" in text and "line last\n" in text
    places = {metadata(log).workspace for log in logs.values()}
    assert len(places) == 2 and repository not in places
    assert not any(place.exists() for place in places if place)
    told = {each[2].partition("Merged into the workspace: ")[2] for each in results(seen)[:2]}
    assert told == {"a.txt, one.txt.", "a.txt."}
    assert git(repository, "worktree", "list").count("\n") == 1
    assert before in git(repository, "status", "--porcelain")


async def test_a_worktree_runs_no_program_that_the_repository_names(repository: Path, tmp_path: Path) -> None:
    """S15: filters and diff programs of a hostile repository are not run, and contents come back as they are."""
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho x >> {ran}\ncat\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=a=b.c diff=d\n")
    for key in ("filter.a=b.c.clean", "filter.a=b.c.smudge", "diff.d.textconv", "diff.d.command", "diff.external"):
        git(repository, "config", key, str(program))
    git(repository, "config", "filter.a=b.c.required", "true")
    (repository / "a.txt").write_text("not committed\n")
    tree = await make_worktree(repository, "child")
    assert tree is not None and (tree.workspace / "a.txt").read_text() == "not committed\n"
    (tree.workspace / "a.txt").write_text("theirs\n")
    (tree.workspace / "b.txt").write_text("new\n")
    (repository / "a.txt").write_text("ours\n")
    merge = await plan_merge(repository, tree.workspace, tree.base)
    assert merge.merged == ("b.txt",) and "+theirs" in merge.conflicts[0]
    assert not ran.exists()


async def test_executable_bits_and_repositories_within_a_worktree(repository: Path) -> None:
    """S15: a change of a mode comes back, too. A repository that the subtask made does not, and is not lost."""
    (repository / "run.sh").write_text("#!/bin/sh\n")
    (repository / "run.sh").chmod(0o640)
    (repository / "old.sh").write_text("#!/bin/sh\n")
    (repository / "old.sh").chmod(0o755)
    tree = await make_worktree(repository, "x")
    assert tree is not None
    (tree.workspace / "run.sh").chmod(0o755)
    (tree.workspace / "old.sh").chmod(0o644)
    merge = await plan_merge(repository, tree.workspace, tree.base)
    assert (merge.merged, merge.failed) == (("old.sh", "run.sh"), False)
    write_all(merge.writes)
    modes = {name: (repository / name).stat().st_mode & 0o777 for name in ("run.sh", "old.sh")}
    assert modes == {"run.sh": 0o750, "old.sh": 0o644}
    within = tree.workspace / "within"
    within.mkdir()
    git(within, "init", "-q")
    git(within, "commit", "-q", "--allow-empty", "-m", "first")
    (tree.workspace / "b.txt").write_text("more\n")
    merge = await plan_merge(repository, tree.workspace, tree.base)
    assert "b.txt" in merge.merged and merge.left == ("within",) and merge.failed


async def test_a_conflict_is_shown_and_nothing_is_written_over(repository: Path) -> None:
    """S15: the parent merges it."""

    def change(words: str, text: str) -> dict[str, object]:
        return turn(call("write_to_file", path="a.txt", content=text), task=words)

    turns = [
        turn(child("part one"), child("part two")),
        change("part one", "one\n"),
        turn(text="One.", task="part one"),
        change("part two", "two\n"),
        turn(text="Two.", task="part two"),
        done(),
    ]
    async with a_task(repository, *turns, auto="all") as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    texts = [each[2] for each in results(seen)[:2]]
    won = (repository / "a.txt").read_text()
    assert won in ("one\n", "two\n")
    lost = "two" if won == "one\n" else "one"
    conflict = next(each for each in texts if "Merge its changes yourself" in each)
    assert f"+{lost}\n" in conflict and "git show " in conflict
    (note,) = [each.text for each in seen.of(e.Noted) if isinstance(each, e.Noted)]
    assert note.endswith(": Files are left as they are here, because they were changed meanwhile: a.txt")


async def test_without_a_repository_those_that_write_work_one_after_the_other(tmp_path: Path) -> None:
    """S15."""
    turns = [
        turn(child("part one"), child("part two")),
        turn(call("write_to_file", path="one.txt", content="1\n"), task="part one"),
        turn(text="One.", task="part one"),
        turn(call("write_to_file", path="two.txt", content="2\n"), task="part two"),
        turn(text="Two.", task="part two"),
        done(),
    ]
    async with a_task(tmp_path / "work", *turns, auto="all") as task:
        assert (await task.run_until_idle()).why == "completed"
        spans = [
            (min(each.at for each in log), max(each.at for each in log if not isinstance(each, e.TaskSaved)))
            for log in logs_of(task).values()
        ]
    first, second = sorted(spans)
    assert first[1] <= second[0]
    assert (tmp_path / "work" / "one.txt").exists() and (tmp_path / "work" / "two.txt").exists()


async def test_a_subtasks_questions_are_asked_in_the_parents_name(tmp_path: Path) -> None:
    """S5, S15: they are in the parent's list, its listeners hear them, and its front end answers them."""
    turns = [
        turn(child("part one")),
        turn(call("write_to_file", path="x.txt", content="x\n"), task="part one"),
        turn(text="Written.", task="part one"),
        done(),
    ]
    async with a_task(tmp_path / "work", *turns, attended=True, auto="ask") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        start = await seen.question()
        assert start.text == "Start a subtask in Code mode: part one"
        await task.answer(start.question, Answer(AnswerKind.YES))
        asked = await seen.question(after=seen.all.index(start) + 1)
        assert asked.text.startswith('Subtask "part one": ') and asked in task.questions
        await task.answer(asked.question, Answer(AnswerKind.YES))
        ended = await run
        assert [each for each in task.questions if each.ask == "completion_result"]
    assert ended.why == "completed"
    assert (tmp_path / "work" / "x.txt").read_text() == "x\n"
    assert not any(each.ask == "completion_result" and each.text == "Written." for each in seen.of(e.QuestionAsked))  # type: ignore[attr-defined]


async def test_a_subtasks_question_is_named_whatever_words_it_begins_with(tmp_path: Path) -> None:
    """S15: whose question it is does not depend on its text."""
    question = call("ask_followup_question", question="Subtask 7: may I go on?", follow_up=["Yes."])
    turns = [turn(child("part one")), turn(question, task="part one"), turn(text="Done.", task="part one"), done()]
    config: dict[str, object] = {"policy.auto_approve_subtasks": True}
    async with a_task(tmp_path / "work", *turns, attended=True, auto="ask", config=config) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        assert asked.text == 'Subtask "part one": Subtask 7: may I go on?' and asked in task.questions
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="Yes."))
        await run


@pytest.mark.shell
async def test_a_running_command_of_a_subtask_holds_no_other_question_up(repository: Path) -> None:
    """S5, S15: while the command of one is asked about, the other one's approval is asked and answered."""
    turns = [
        turn(child("part one"), child("part two")),
        turn(call("execute_command", command="tail -f a.txt", timeout=60), task="part one"),
        turn(text="One.", task="part one"),
        turn(call("write_to_file", path="b.txt", content="b\n"), task="part two"),
        turn(text="Two.", task="part two"),
        done(),
    ]
    config: dict[str, object] = {"policy.auto_approve_subtasks": True}
    async with a_task(repository, *turns, attended=True, auto="ask", config=config) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda _: {each.ask for each in task.questions} == {"command_output", "tool"})
        running, approval = sorted(task.questions, key=lambda each: each.ask)
        await task.answer(approval.question, Answer(AnswerKind.NO))
        assert running in task.questions
        assert await task.to_background()
        assert (await run).why == "completed"
    assert "sent this command to the background" in str([each for log in logs_of(task).values() for each in log])


async def test_the_subtasks_of_a_paused_task_stand_still_too(tmp_path: Path) -> None:
    """S2, S15, S18: one gets its answer and one is to start; neither asks the model, and no time is counted."""
    turns = [
        turn(child("part one"), child("part two")),
        turn(call("ask_followup_question", question="Which?", follow_up=["Red."]), task="part one"),
        turn(text="One.", task="part one"),
        turn(text="Two.", task="part two"),
        done("All."),
    ]
    limits = Limits(max_seconds=1.0)
    async with a_task(tmp_path / "work", *turns, attended=True, auto="all", limits=limits) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        await task.pause("lunch")
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="Red."))
        await asyncio.wait([run], timeout=1.5)
        assert not run.done()
        assert [sum(isinstance(each, e.RequestStarted) for each in log) for log in logs_of(task).values()] == [1]
        assert {metadata(log).status for log in logs_of(task).values()} == {"paused"}
        await task.unpause()
        assert (await run).text == "All."
    assert [each[2].rpartition("\n")[2] for each in results(seen)[:2]] == ["One.", "Two."]


async def test_a_subtask_that_starts_while_its_parent_is_paused_waits(repository: Path) -> None:
    """S2, S15: the person approves it meanwhile."""
    turns = [turn(child("part one")), turn(text="One.", task="part one"), done("All.")]
    async with a_task(repository, *turns, attended=True, auto="edit") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        await task.pause("lunch")
        await task.answer(asked.question, Answer(AnswerKind.YES))
        await seen.until(lambda each: isinstance(each, e.SubtaskStarted))
        await asyncio.to_thread(_until, lambda: any(map(_paused, logs_of(task).values())))
        await task.unpause()
        assert (await run).text == "All."
    (log,) = logs_of(task).values()
    pause, unpause, request = (
        next(number for number, each in enumerate(log) if isinstance(each, kind))
        for kind in (e.TaskPaused, e.TaskUnpaused, e.RequestStarted)
    )
    assert pause < unpause < request


async def test_without_leave_there_is_no_subtask(tmp_path: Path) -> None:
    """P7, S15."""
    async with a_task(tmp_path / "work", turn(child("part one")), done(), auto="edit") as task:
        seen = Seen(task)
        await task.run_until_idle()
        assert logs_of(task) == {}
    assert results(seen)[0][1] == "denied"


async def test_what_a_subtask_uses_counts_for_the_parent(tmp_path: Path) -> None:
    """S15, S16: its budget is a part of the parent's."""
    usage = {"input": 1000, "output": 1000}
    turns = [
        turn(child("part one"), usage=usage),
        turn(call("list_files", path="."), usage=usage, task="part one"),
        turn(text="One.", usage=usage, task="part one"),
        done(),
    ]
    limits = Limits(max_cost=0.004)
    price = {"input": 1.0, "output": 1.0}
    async with a_task(tmp_path / "work", *turns, auto="all", limits=limits, price=price) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
        (log,) = logs_of(task).values()
    assert ended.why == "limit"
    assert "limit of $0.002 is reached" in results(seen)[0][2]
    assert metadata(log).cost == pytest.approx(0.002)


async def test_a_stopped_subtask_is_told_as_that_and_the_task_goes_on(tmp_path: Path) -> None:
    """S4, S15, S16: what it had used by then counts for the parent."""
    turns = [
        turn(child("part one")),
        turn(call("list_files", path="."), usage={"input": 1000}, task="part one"),
        turn(text="slow", delay=20.0, task="part one"),
        done(),
    ]
    price = {"input": 1.0, "output": 1.0}
    async with a_task(tmp_path / "work", *turns, auto="all", price=price) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, ProgressMade))
        task.cancel()
        assert (await run).why == "interrupted"
        finished = [each for each in await stored(task) if isinstance(each, e.SubtaskFinished)]
        (log,) = logs_of(task).values()
        used = metadata(log)
        assert used.requests and used.total_cost
        assert [(each.outcome, each.cost) for each in finished] == [("aborted", used.total_cost)]
        assert finished[0].requests == used.requests + used.failed
        assert (await task.run_until_idle()).why == "completed"


async def test_the_question_of_a_stopped_subtask_is_withdrawn(tmp_path: Path) -> None:
    """S5, S18: front ends that show it hear that nobody waits for the answer."""
    asks = turn(call("ask_followup_question", question="Which?", follow_up=["Red."]), task="part one")
    async with a_task(tmp_path / "work", turn(child("part one")), asks, attended=True, auto="all") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        task.cancel()
        assert (await run).why == "interrupted"
        answers = [each for each in seen.all if isinstance(each, e.QuestionAnswered)]
        assert [(each.question, each.answer) for each in answers] == [(asked.question, AnswerKind.SKIP)]
        assert task.questions == ()


async def test_a_stopped_subtask_leaves_no_worktree(repository: Path) -> None:
    """S15: what it had not brought back is gone with it."""
    turns = [
        turn(child("part one"), child("part two")),
        turn(text="slow", delay=20.0, task="part one"),
        turn(text="slow", delay=20.0, task="part two"),
        done(),
    ]
    async with a_task(repository, *turns, auto="all") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda _: len(seen.of(e.SubtaskStarted)) == 2)
        places = [each.workspace for each in seen.of(e.SubtaskStarted) if isinstance(each, e.SubtaskStarted)]
        assert all(place and place.exists() for place in places)
        task.cancel()
        assert (await run).why == "interrupted"
        assert not any(place and place.exists() for place in places)
        assert git(repository, "worktree", "list").count("\n") == 1


def _until(reached: Callable[[], bool]) -> None:
    ends = time.monotonic() + 25
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.02)


RUNNER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.tasks.engine import an_app
from tarmac.tasks.signals import TextStreamed

async def main():
    async with (
        an_app(Path({work!r})) as app,
        app.create_task("Do it.", model={model!r}, attended=False, auto="all") as task,
    ):
        print(task.id, flush=True)
        await task.run_until_idle()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while the child works", "when the child has ended"])
async def test_kill_9_in_the_middle_and_both_go_on(tmp_path: Path, when: str) -> None:
    """S4, S15: both are logs; the child is taken up, not started again."""
    work = tmp_path / "work"
    work.mkdir()
    slow: dict[str, Any] = {"delay": 30.0} if when == "while the child works" else {}
    script = [
        turn(child("part one")),
        turn(call("write_to_file", path="x.txt", content="x\n"), task="part one"),
        turn(text="Written.", task="part one", **slow),
        turn(call("list_files", path="."), delay=0.0 if slow else 30.0),
        done("All."),
    ]
    model = write_script(tmp_path / "script.toml", *script)
    root = str(Path(__file__).parent.parent.parent)
    code = RUNNER.format(root=root, work=str(work), model=model)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    assert process.stdout
    with process:
        id = process.stdout.readline().strip()
        async with asyncio.timeout(30), an_app(work) as app:
            folder = app.store.folder
            wanted = e.ToolFinished if slow else e.SubtaskFinished

            def reached() -> bool:
                try:
                    parent = read_log(folder / id).events
                    started = [each for each in parent if isinstance(each, e.SubtaskStarted)]
                    log = read_log(folder / started[0].child).events if slow and started else parent
                except Exception:  # not written yet
                    return False
                return any(isinstance(each, wanted) for each in log) and isinstance(log[-1], e.RequestStarted)

            await asyncio.to_thread(_until, reached)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            quick = write_script(tmp_path / "script.toml", *({**each, "delay": 0.0} for each in script))
            assert quick == model
            async with app.resume_task(id, model=model, attended=False, auto="all") as task:
                ended = await task.run_until_idle()
                children = [each for each in await stored(task) if isinstance(each, e.SubtaskStarted)]
                check_pairs(model_messages(await stored(task)))
    assert (ended.why, ended.text) == ("completed", "All.")
    assert len({each.child for each in children}) == 1
    assert (work / "x.txt").exists()


def test_what_had_not_come_back_is_known_from_the_log() -> None:
    one = e.SubtaskStarted(at=1.0, child="c1", text="one", mode="code", call="1")  # type: ignore[arg-type]
    two = e.SubtaskStarted(at=1.0, child="c2", text="two", mode="code", call="2")  # type: ignore[arg-type]
    back = e.SubtaskFinished(at=2.0, child="c1", outcome="completed", result="done")  # type: ignore[arg-type]
    assert unfinished([one, two, back]) == {"2": two}


@given(st.floats(0, 100), st.floats(0, 100), st.integers(1, 8))
def test_the_shares_are_never_more_than_what_is_left(most: float, spent: float, parts: int) -> None:
    """S15."""
    found = share(Limits(max_cost=most, max_requests=10), Used(cost=spent, requests=3), parts)
    assert found.max_cost is not None and found.max_requests is not None
    assert found.max_cost * parts <= max(0.0, most - spent) + 1e-9 and found.max_requests * parts <= 7


@pytest.mark.shell
async def test_the_list_shows_the_tree_and_the_prompt_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S7, S15: `tarmac tasks` and `tarmac tasks prompt ID`."""
    from tarmac.cli.tasks import _list, _prompt

    turns = [turn(child("part one", mode="ask")), turn(text="One.", task="part one"), done()]
    async with a_task(tmp_path / "work", *turns, auto="all", text="The whole.") as task:
        await task.run_until_idle()
        store = TaskStore(task.log.folder.parent)
        assert await _list(store, {}) == 0
        lines = capsys.readouterr().out.splitlines()
        assert await _prompt(store, task.id, {}) == 0
    whole, part = lines[1:3]
    assert whole.endswith("The whole.") and part.endswith("└ part one")
    shown = capsys.readouterr().out
    assert shown.startswith("=== system\n\nYou are Tarmac") and "\n=== tool new_task\n" in shown
    assert "The whole." in shown
    assert "Subtask " in shown and "One." in shown
