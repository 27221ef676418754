"""Taken up again: after a restart, a crash in the middle of a command, a full disk."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, an_app, call, done, messages_of, results, stored, turn, write_script
from tests.tasks.test_killing import a_nursery

from tarmac.errors import BadRequest, DirectoryUnavailable, TaskInUse, TaskNotFound
from tarmac.models.messages import Text
from tarmac.tasks.events import CommandOutput, MessageQueued, ModelTold, Noted, TaskSaved, TaskStarted, ToolStarted
from tarmac.tasks.log.reader import read_log


async def test_a_task_is_saved_and_goes_on_in_another_process(tmp_path: Path) -> None:
    """S4: a resumed task is told so, and goes on where it was."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    slow = turn(text="Wait.", delay=30)
    model = write_script(tmp_path / "script.toml", turn(call("read_file", path="a.txt")), slow)
    async with an_app(work) as app, app.create_task("Do it.", model=model, auto="read") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, ModelTold) and len(results(seen)) == 1)
        await task.say("And then b.")
        id = task.id
    assert (await run).why == "interrupted"
    other = write_script(tmp_path / "script.toml", turn(text="first"), done("All of it."))
    async with an_app(work) as app, app.resume_task(id[:6], model=other, auto="read") as task:
        assert [each.text for each in task.queue] == ["And then b."]
        ended = await task.run_until_idle()
        assert (ended.why, ended.text) == ("completed", "All of it.")
        events = await stored(task)
        messages = await messages_of(task)
    assert [type(each) for each in events].count(TaskStarted) == 2
    assert any(isinstance(each, TaskSaved) for each in events)
    said = [part.text for part in messages[-3].parts + messages[-2].parts if isinstance(part, Text)]
    assert "And then b." in "\n".join(said)
    assert any(isinstance(each, ModelTold) and each.about == "resumption" for each in events)
    async with an_app(work) as app, app.resume_task(id, model=other) as task:
        assert (await task.run_until_idle()).why == "completed"  # nothing is asked of the model
        assert len(await stored(task)) == len(events) + 2  # TaskSaved, of before, and `resume_completed_task`


@pytest.mark.shell
async def test_a_command_that_ran_when_the_process_was_killed_is_told_with_its_output(
    tmp_path: Path, own_state: Path
) -> None:
    """S4: that it was running, and its output up to then; not repeated."""
    work = tmp_path / "work"
    work.mkdir()
    command = "touch ran-$$; for n in 1 2 3 4 5 6 7 8 9; do echo line $n; sleep 0.3; done; sleep 60"
    turns = turn(call("execute_command", command=command), call("write_to_file", path="b.txt", content="b\n"))
    model = write_script(tmp_path / "script.toml", turns, done())
    async with asyncio.timeout(30), a_nursery(tmp_path) as nursery:
        child = await nursery.start(work, model)
        while (line := await nursery.heard())[0] != "task":
            pass
        folder = own_state / "state/tasks" / line[1]
        while not [each for each in read_log(folder).events if isinstance(each, CommandOutput) and each.offset]:
            await nursery.heard()
        os.kill(child, signal.SIGKILL)
        await nursery.rest()
    async with an_app(work) as app, app.resume_task(line[1], model=model, auto="all", attended=False) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        await messages_of(task)
    interrupted, written, _ = results(seen)
    assert interrupted[1] == "interrupted" and "line 1" in interrupted[2] and "untrusted" in interrupted[2]
    assert "Tarmac was stopped while this call was under way" in interrupted[2]
    assert written[1] == "done"  # it had not begun: it is judged and made now
    assert (work / "b.txt").read_text() == "b\n"
    assert len(list(work.glob("ran-*"))) == 1


async def test_new_words_take_the_place_of_calls_that_were_not_begun(tmp_path: Path) -> None:
    """S4: what the person says now counts more than what the model wanted then."""
    work = tmp_path / "work"
    work.mkdir()
    model = write_script(tmp_path / "s.toml", turn(call("write_to_file", path="a.txt", content="a\n")), done())
    async with an_app(work) as app, app.create_task("Do it.", model=model, auto="ask") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.question()
        id = task.id
    await run
    async with an_app(work) as app, app.resume_task(id, model=model, auto="all") as task:
        seen = Seen(task)
        await task.say("Never mind.")
        assert (await task.run_until_idle()).why == "completed"
        await messages_of(task)
    assert results(seen)[0][:2] == ("write_to_file", "skipped")
    assert not (work / "a.txt").exists()


async def test_one_process_works_on_a_task_and_what_is_gone_is_told(tmp_path: Path) -> None:
    """S3: one writer."""
    work = tmp_path / "work"
    work.mkdir()
    model = write_script(tmp_path / "s.toml", done())
    async with an_app(work) as app:
        async with app.create_task("Do it.", model=model) as task:
            with pytest.raises(TaskInUse, match="this process"):
                async with app.resume_task(task.id, model=model):
                    pass
        with pytest.raises(TaskNotFound):
            async with app.resume_task("zzz", model=model):
                pass
        work.rmdir()
        with pytest.raises(DirectoryUnavailable):
            async with app.resume_task(task.id, model=model):
                pass


async def test_a_full_disk_is_told_and_the_task_goes_on_when_there_is_room(
    tiny_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: an error that says so, nothing torn."""
    monkeypatch.setenv("TARMAC_STATE_DIR", str(tiny_disk / "state"))
    work = tmp_path / "work"
    work.mkdir()
    for n in range(9):  # nothing is looked at twice: a model that goes in circles is stopped
        (work / f"{n}").mkdir()
        (work / f"{n}/long.txt").write_text("x" * 150 + "\n")
    looks = [turn(call("read_file", path=f"{n}/long.txt"), call("list_files", path=f"{n}")) for n in range(9)]
    model = write_script(tmp_path / "s.toml", *looks, *[done()] * 50)
    async with an_app(work) as app, app.create_task("Do it.", model=model, auto="read", attended=False) as task:
        seen = Seen(task)
        stuffing = tiny_disk / "stuffing"

        def stuff(_: int | None, thing: object) -> None:
            if isinstance(thing, ToolStarted) and not stuffing.exists():
                fill(stuffing)

        leave = task.subscribe(stuff)
        ended = await task.run_until_idle()
        leave()
        assert ended.why == "failed" and "the disk is full" in ended.text
        events = read_log(task.log.folder).events
        stuffing.unlink()
        assert (await task.run_until_idle()).why == "completed"
        assert (await stored(task))[: len(events)] == events
        await messages_of(task)
    assert seen.all


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


@pytest.mark.shell
async def test_no_command_sees_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T23: provider keys are in no command's environment."""
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "COMPATIBLE_API_KEY", "TARMAC_X"):
        monkeypatch.setenv(name, "sk-very-secret")
    run = turn(call("execute_command", command="touch x; env | grep -c sk-very-secret"))
    plan = turn(call("execute_command", command="printenv"))
    async with a_task(tmp_path / "work", run, plan, done(), auto="all") as task:
        seen = Seen(task)
        await task.run_until_idle()
    assert "sk-very-secret" not in str(results(seen))
    assert "\n0\n" in results(seen)[0][2]


@pytest.mark.shell
async def test_what_a_background_command_prints_reaches_the_model_with_the_next_turn(tmp_path: Path) -> None:
    """S8: new output and endings, once."""
    server = "touch x; for n in 1 2 3; do echo beat $n; sleep 0.15; done"
    turns = [
        turn(call("execute_command", command=server, timeout=0.05)),
        turn(call("wait_for_terminal", id="t1", timeout=5)),
        turn(call("list_files", path=".")),
    ]
    async with a_task(tmp_path / "work", *turns, done(), auto="all") as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        told = [each.text for each in seen.all if isinstance(each, ModelTold) and each.about == "environment"]
    everything = "\n".join([*told, *(text for _, _, text in results(seen))])
    assert [everything.count(f"beat {n}\n") for n in (1, 2, 3)] == [1, 1, 1]
    assert not [each for each in seen.all if isinstance(each, MessageQueued)]


async def test_a_mode_that_does_not_exist_makes_no_task(tmp_path: Path) -> None:
    """S9: the nearest name is told."""
    model = write_script(tmp_path / "s.toml", done())
    async with an_app(tmp_path) as app:
        with pytest.raises(BadRequest, match="there is no mode `cod`"):
            async with app.create_task("Do it.", model=model, mode="cod"):
                pass
        with pytest.raises(BadRequest, match="no model is chosen"):
            async with app.create_task("Do it."):
                pass
        assert await app.store.listing() == []


@pytest.mark.shell
async def test_a_shell_without_integration_is_told_once(tmp_path: Path) -> None:
    """T21: the person sees one warning, and the commands run all the same."""
    runs = [turn(call("execute_command", command=f"touch {n}; echo ran {n}")) for n in range(3)]
    config: dict[str, object] = {"terminals.shell_integration_disabled": True}
    async with a_task(tmp_path / "work", *runs, done(), auto="all", config=config) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert all("ran" in text for _, _, text in results(seen)[:3])
    warned = [each for each in seen.all if isinstance(each, Noted) and each.what == "shell_integration_warning"]
    assert len(warned) == 1
