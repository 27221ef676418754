"""Files that are swapped after they were judged, and before they are used: what was asked about is what happens."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.conftest import lacking
from tests.tasks.engine import Seen, a_task, call, done, results, turn

from tarmac.policy import Execute, Policy
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.policy.plan import environment
from tarmac.terminals import run_plan
from tarmac.terminals.process.confinement import Means, means

SECRET = "the-secret-of-another-place"


def swap(folder: Path, outside: Path) -> None:
    """A folder becomes a link that leads out of the workspace."""
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(outside)


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("what", ["folder", "file"])
async def test_a_write_that_was_approved_does_not_follow_a_link_that_came_meanwhile(
    tmp_path: Path, what: str, exists: bool
) -> None:
    """P8: the person said yes to a file of the workspace, and the file outside stays as it was."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    victim = outside / "a.txt"
    if exists:
        (work / "sub/a.txt").write_text("old\n")
        victim.write_text(SECRET)
    writes = turn(call("write_to_file", path="sub/a.txt", content="new\n"))
    async with a_task(work, writes, done(), attended=True, auto="ask") as task:
        seen = Seen(task)
        running = asyncio.ensure_future(task.run_until_idle())
        asked = await seen.question()
        if what == "folder":
            swap(work / "sub", outside)
        else:
            (work / "sub/a.txt").unlink(missing_ok=True)
            (work / "sub/a.txt").symlink_to(victim)
        await task.answer(asked.question, Answer(AnswerKind.YES))
        await running
    assert (victim.read_text() if victim.exists() else None) == (SECRET if exists else None)
    assert results(seen)[0][1] == "failed", results(seen)


async def test_a_command_that_was_approved_does_not_run_where_a_link_leads_meanwhile(tmp_path: Path) -> None:
    """P6: a yes is for the folder that was shown."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    runs = turn(call("execute_command", command="touch made", cwd="sub"))
    async with a_task(work, runs, done(), attended=True, auto="ask") as task:
        seen = Seen(task)
        running = asyncio.ensure_future(task.run_until_idle())
        asked = await seen.question()
        swap(work / "sub", outside)
        await task.answer(asked.question, Answer(AnswerKind.YES))
        await running
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("leads", ["outside", ".git/hooks"])
@pytest.mark.parametrize("command", ["cp a.txt sub/b.txt", "rm -rf sub/keep", "cd sub && touch b.txt"])
async def test_a_command_that_was_approved_does_not_act_on_what_a_link_leads_to_meanwhile(
    tmp_path: Path, command: str, leads: str
) -> None:
    """P6: the person was told what it does, and since then the same words do something else."""
    work = tmp_path / "work"
    there = work / leads if leads.startswith(".") else tmp_path / leads
    for folder in (work / "sub/keep", there / "keep"):
        folder.mkdir(parents=True)
    (work / "a.txt").write_text("one\n")
    runs = turn(call("execute_command", command=command))
    async with a_task(work, runs, done(), attended=True, auto="ask") as task:
        seen = Seen(task)
        running = asyncio.ensure_future(task.run_until_idle())
        asked = await seen.question()
        swap(work / "sub", there)
        await task.answer(asked.question, Answer(AnswerKind.YES))
        await running
    _, outcome, told = results(seen)[0]
    assert [each.name for each in there.iterdir()] == ["keep"]
    assert (outcome, told.startswith("This would no longer do what was approved")) == ("denied", True), told


async def test_what_changed_elsewhere_does_not_take_a_yes_back(tmp_path: Path) -> None:
    """P6: files that the command does not name."""
    runs = turn(call("execute_command", command="mkdir sub && touch sub/made"))
    async with a_task(tmp_path, runs, done(), attended=True, auto="ask") as task:
        seen = Seen(task)
        running = asyncio.ensure_future(task.run_until_idle())
        asked = await seen.question()
        (tmp_path / "other").symlink_to("/etc")
        await task.answer(asked.question, Answer(AnswerKind.YES))
        await running
    assert (tmp_path / "sub/made").exists(), results(seen)


async def test_a_program_that_git_is_told_of_after_the_verdict_changes_and_reads_nothing(tmp_path: Path) -> None:
    """P9: the filter comes after judging; the kernel keeps it to reading, without the credentials."""
    if means() is Means.NONE:
        lacking("this machine has neither Landlock nor bubblewrap")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    (work / ".env").write_text(f"TOKEN={SECRET}\n")
    who = ["-c", "user.name=x", "-c", "user.email=x@x.example"]
    for words in (["init", "-q"], ["add", "a.txt"], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=work, check=True, timeout=20)  # noqa: ASYNC221
    verdict = await Policy().judge(Execute("git status", cwd=work), workspace=work)
    assert verdict.plan is not None, verdict.reason
    with (work / ".git/config").open("a") as config:
        config.write('[filter "x"]\n\tclean = "sh -c \'touch made; cat .env >&2; cat\'"\n')
    (work / ".gitattributes").write_text("* filter=x\n")
    (work / "a.txt").write_text("two\n")
    env = environment(dict(os.environ), workspace=work)
    result = await run_plan(verdict.plan, command="git status", environment=env)
    assert (SECRET in result.output, (work / "made").exists()) == (False, False)
    assert (await Policy().judge(Execute("git status", cwd=work), workspace=work)).decision == "ask"


async def test_a_hidden_file_that_came_since_is_not_searched_whatever_its_folder_says_of_its_age(
    tmp_path: Path,
) -> None:
    """P8: a folder can be given its old time back."""
    if means() is Means.NONE:
        lacking("this machine has neither Landlock nor bubblewrap")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("mine\n")
    policy, action = Policy(), Execute("grep -rn . .", cwd=work)
    before = work.stat()
    assert (await policy.judge(action, workspace=work)).plan is not None
    (work / ".env").write_text(f"TOKEN={SECRET}\n")
    os.utime(work, ns=(before.st_atime_ns, before.st_mtime_ns))
    verdict = await policy.judge(action, workspace=work)
    assert verdict.plan is not None, verdict.reason
    env = environment(dict(os.environ), workspace=work)
    result = await run_plan(verdict.plan, command=action.command, environment=env)
    assert ("mine" in result.output, SECRET in result.output) == (True, False)


@pytest.mark.parametrize("what", ["folder", "file"])
@pytest.mark.parametrize("command", ["cat sub/a.txt", "grep -rn . sub", "cat < sub/a.txt", "cd sub && cat a.txt"])
async def test_a_command_that_was_allowed_does_not_follow_a_link_that_came_meanwhile(
    tmp_path: Path, what: str, command: str
) -> None:
    """P8: judged by itself, then swapped, then run under rules that name what was there."""
    if means() is Means.NONE:
        lacking("this machine has neither Landlock nor bubblewrap")
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    (work / "sub/a.txt").write_text("mine\n")
    (outside / "a.txt").write_text(f"{SECRET}\n")
    verdict = await Policy().judge(Execute(command, cwd=work), workspace=work)
    assert verdict.plan is not None, verdict.reason
    if what == "folder":
        swap(work / "sub", outside)
    else:
        (work / "sub/a.txt").unlink()
        (work / "sub/a.txt").symlink_to(outside / "a.txt")
    env = environment(dict(os.environ), workspace=work)
    result = await run_plan(verdict.plan, command=command, environment=env)
    assert SECRET not in result.output
