"""What a task asks when it stands still: is the result accepted, shall it go on (S4, S5)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, Turn, a_task, an_app, call, done, messages_of, results, stored, turn, write_script

from tarmac.errors import BadRequest
from tarmac.models.messages import Text
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.auto import Auto
from tarmac.tasks.context import Ended
from tarmac.tasks.events import (
    CallId,
    ModelTold,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    TaskCompleted,
    TaskEvent,
    TaskStarted,
    TaskUnpaused,
    ToolStarted,
    UserSaid,
)
from tarmac.tasks.questions import new_question, said_in, who_answered
from tarmac.tasks.signals import OutputStreamed
from tarmac.tasks.state import _asking
from tarmac.tasks.task import Task
from tarmac.tasks.views import metadata, timeline
from tarmac.tasks.views.timeline import Item


def standing(task: Task) -> QuestionAsked:
    (asked,) = task.questions
    return asked


async def words_of(task: Task) -> list[str]:
    """All that the model would be told on the person's side."""
    messages = await messages_of(task)
    return [part.text for each in messages if each.role == "user" for part in each.parts if isinstance(part, Text)]


@asynccontextmanager
async def resumed(tmp_path: Path, *turns: Turn, first: tuple[Turn, ...] = (), **more: object) -> AsyncIterator[Task]:
    """A task of before: `first` was played until it stood still; now it plays `turns`."""
    work = tmp_path / "work"
    work.mkdir()
    model = write_script(tmp_path / "script.toml", *first)
    async with asyncio.timeout(30), an_app(work) as app, app.create_task("Do it.", model=model) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, QuestionAsked))
    await run
    write_script(tmp_path / "script.toml", *turns)
    async with asyncio.timeout(30), an_app(work) as app, app.resume_task(task.id, model=model, **more) as again:  # type: ignore[arg-type]
        yield again


FOLLOWUP = turn(call("ask_followup_question", question="Which?", follow_up=[{"text": "a"}, {"text": "b"}]))


# The result


async def test_a_result_is_asked_about_and_nothing_waits_for_the_answer(tmp_path: Path) -> None:
    """S5: `completion_result`, durable together with the completion; accepted by a yes."""
    async with a_task(tmp_path / "work", done("All green."), attended=True) as task:
        assert (await task.run_until_idle()).text == "All green."
        asked = standing(task)
        assert (asked.ask, asked.text) == ("completion_result", "All green.")
        await task.answer(asked.question, Answer(AnswerKind.YES, by="test"))
        assert task.questions == ()
        assert (await task.run_until_idle()).why == "completed"  # it stays so
        with pytest.raises(BadRequest, match="answered first"):
            await task.answer(asked.question, Answer(AnswerKind.NO))
        events = await stored(task)
    kinds = [type(each) for each in events if isinstance(each, TaskCompleted | QuestionAsked | QuestionAnswered)]
    assert kinds == [TaskCompleted, QuestionAsked, QuestionAnswered]
    assert metadata(events).outcome == "completed"
    shown = [(each.type, each.kind, each.answered) for each in timeline(events)][-2:]
    assert shown == [("say", "completion_result", False), ("ask", "completion_result", True)]


async def test_without_a_person_a_result_is_accepted_and_nothing_is_asked(tmp_path: Path) -> None:
    """S5: unattended, nothing waits."""
    async with a_task(tmp_path / "work", done(), attended=False) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        assert task.questions == ()
    assert not seen.of(QuestionAsked) and seen.of(TaskCompleted)


@pytest.mark.parametrize("how", ["say", "message", "no", "no with words"])
async def test_what_is_missing_is_told_to_the_model_and_it_goes_on(tmp_path: Path, how: str) -> None:
    """S5: to say something is to answer."""
    async with a_task(tmp_path / "work", done("First."), done("Second."), attended=True) as task:
        await task.run_until_idle()
        first = standing(task)
        if how == "say":
            assert await task.say("And the docs?") is None
        else:
            kind = AnswerKind.MESSAGE if how == "message" else AnswerKind.NO
            await task.answer(first.question, Answer(kind, text="" if how == "no" else "And the docs?"))
        assert (await task.run_until_idle()).text == "Second."
        assert standing(task).question != first.question
        told = "\n".join(await words_of(task))
        assert ("And the docs?" in told) == (how != "no")
        assert ("does not accept this result" in told) == how.startswith("no")
        events = await stored(task)
    assert [type(each) for each in events].count(TaskUnpaused) == 1
    assert metadata(events).outcome == "completed"


async def test_an_answer_and_its_words_are_one_write(tmp_path: Path) -> None:
    """S3: no crash comes between an answer and what it tells the model."""
    async with a_task(tmp_path / "work", done(), attended=True) as task:
        await task.run_until_idle()
        seen = Seen(task)
        await task.say("More.")
        assert [type(each) for each in seen.all] == [UserSaid, QuestionAnswered]


async def test_an_answer_as_soon_as_it_is_asked_is_not_lost(tmp_path: Path) -> None:
    """S5: while the run that asked is still coming to its end."""
    async with a_task(tmp_path / "work", done("First."), done("Second."), attended=True) as task:
        answers: list[asyncio.Task[None]] = []

        def hear(_: int | None, thing: object) -> None:
            if isinstance(thing, QuestionAsked) and not answers:
                answer = Answer(AnswerKind.MESSAGE, text="Not yet.")
                answers.append(asyncio.create_task(task.answer(thing.question, answer)))

        task.subscribe(hear)
        ended = await task.run_until_idle()
        if ended.text == "First.":
            ended = await task.run_until_idle()
        assert ended.text == "Second."
        assert "Not yet." in await words_of(task)


async def test_in_a_persons_company_a_run_ends_when_they_accept(tmp_path: Path) -> None:
    """S6: `run` waits where it is the person's turn."""
    async with a_task(tmp_path / "work", done("First."), done("Second."), attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run())
        first = await seen.question()
        await task.answer(first.question, Answer(AnswerKind.MESSAGE, text="More."))
        second = await seen.question(after=seen.all.index(first) + 1)
        assert not run.done()
        await task.answer(second.question, Answer(AnswerKind.YES))
        assert (await run).why == "completed"


# Opened again


async def test_a_task_that_was_not_done_asks_whether_it_shall_go_on(tmp_path: Path) -> None:
    """S4: `resume_task`; to run it is a yes."""
    async with resumed(tmp_path, turn(text="-"), done("Now."), first=(FOLLOWUP,)) as task:
        asked = standing(task)
        assert (asked.ask, asked.text) == ("resume_task", "Do it.")
        assert task.metadata.status == "waiting"  # what it was: its question has no answer
        run = asyncio.create_task(task.run_until_idle())
        seen = Seen(task)
        again = await seen.question()  # what was open is asked again
        answers = [each for each in await stored(task) if isinstance(each, QuestionAnswered)]
        assert [(each.question, each.answer, each.by) for each in answers] == [(asked.question, "yes", "run")]
        assert (again.ask, again.text, again.choices) == ("followup", "Which?", ("a", "b"))
        await task.answer(again.question, Answer(AnswerKind.MESSAGE, text="b"))
        assert (await run).text == "Now."
        assert "<user_message>\nb\n</user_message>" in results(seen)[0][2]


async def test_a_no_to_going_on_leaves_it_standing_until_somebody_speaks(tmp_path: Path) -> None:
    """S4: it does not run against a no."""
    async with resumed(tmp_path, turn(text="-"), done("Then."), first=(FOLLOWUP,)) as task:
        await task.answer(standing(task).question, Answer(AnswerKind.NO, by="test"))
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "idle"
        assert not seen.of(TaskStarted)
        await task.say("Do go on.")
        assert (await task.run_until_idle()).text == "Then."
        assert "Do go on." in await words_of(task)


async def test_in_a_persons_company_it_stands_until_they_answer(tmp_path: Path) -> None:
    """S4: `run` is no answer, a yes is."""
    async with resumed(tmp_path, turn(text="-"), done("Now."), first=(FOLLOWUP,)) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run())
        asked = standing(task)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not seen.of(TaskStarted) and not run.done()
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="Forget that question."))
        accepted = await seen.until(lambda each: isinstance(each, QuestionAsked) and each.ask == "completion_result")
        assert isinstance(accepted, QuestionAsked)
        await task.answer(accepted.question, Answer(AnswerKind.YES))
        assert (await run).text == "Now." or (await run).why == "completed"
    assert results(seen)[0][:2] == ("ask_followup_question", "skipped")  # new words take its place


@pytest.mark.parametrize("how", ["yes", "no", "say"])
async def test_a_completed_task_opens_as_completed_and_goes_on_only_when_told(tmp_path: Path, how: str) -> None:
    """S4: `resume_completed_task`."""
    async with resumed(tmp_path, turn(text="-"), done("Again."), first=(done("Once."),)) as task:
        asked = standing(task)
        assert asked.ask == "resume_completed_task"
        assert (task.metadata.outcome, task.metadata.status) == ("completed", "saved")
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"  # to run it is no answer
        assert not seen.all and standing(task) == asked
        if how == "say":
            await task.say("More.")
        else:
            await task.answer(asked.question, Answer(AnswerKind(how)))
        ended = await task.run_until_idle()
        assert ended.text == ("" if how == "no" else "Again.")
        told = "\n".join(await words_of(task))
        assert ("wants this completed task to go on" in told) == (how == "yes")
        assert ("More." in told) == (how == "say")


async def test_without_a_person_what_is_opened_goes_on_when_it_is_run(tmp_path: Path) -> None:
    """S4: whoever runs it has said so; nothing hangs."""
    async with resumed(tmp_path, turn(text="-"), done("Now."), first=(FOLLOWUP,), attended=False) as task:
        assert task.questions == ()
        assert (await task.run_until_idle()).text == "Now."


async def test_however_often_it_is_opened_it_is_asked_once_in_what_a_person_sees(tmp_path: Path) -> None:
    """S5: a question that nobody answered is not repeated."""
    async with resumed(tmp_path, done(), first=(done(),)) as task:
        first = await stored(task)
    async with an_app(tmp_path / "work") as app:
        for _ in range(3):
            async with app.resume_task(task.id, model=f"scripted/{tmp_path}/script.toml") as task:
                assert standing(task).ask == "resume_completed_task"
        async with app.resume_task(task.id, model=f"scripted/{tmp_path}/script.toml") as task:
            events = await stored(task)
    assert len(events) == len(first) + 4
    assert [each.kind for each in timeline(events)].count("resume_completed_task") == 1
    assert metadata(events).at == metadata(first).at  # and it is no newer


# Answers in the middle of trouble


async def test_a_front_end_that_goes_away_while_its_answer_is_written_does_not_take_it_back(tmp_path: Path) -> None:
    """S5: the first answer counts, once."""
    async with a_task(tmp_path / "work", FOLLOWUP, done(), attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        client = asyncio.create_task(task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="a")))
        await asyncio.sleep(0)  # it has begun
        client.cancel()
        await asyncio.gather(client, return_exceptions=True)
        with pytest.raises(BadRequest, match="answered first"):
            await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="b"))
        assert (await run).why == "completed"
    answers = [each for each in seen.all if isinstance(each, QuestionAnswered)]
    assert [each.text for each in answers] == ["a"]
    assert "\na\n" in results(seen)[0][2]


async def test_a_mode_switch_that_was_asked_about_is_asked_again(tmp_path: Path) -> None:
    """S4: a call that has only asked has done nothing; it is made again."""
    switch = turn(call("switch_mode", mode_slug="ask", reason="only a question"))
    async with resumed(tmp_path, turn(text="-"), done(), first=(switch,)) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        assert asked.ask == "tool"
        await task.answer(asked.question, Answer(AnswerKind.YES))
        assert (await run).why == "completed"
        assert task.metadata.mode == "ask"
    assert not [each for each in seen.all if isinstance(each, ModelTold) and "interrupted: " in each.text]
    assert [each[1] for each in results(seen)] == ["done", "done"]


@pytest.mark.parametrize(
    ("by", "told", "answer", "sentence"),
    [
        ("web", "cli", Answer(AnswerKind.YES), "the page answered first: yes"),
        ("web", "web", Answer(AnswerKind.NO), "another page answered first: no"),
        ("cli", "cli", Answer(AnswerKind.NO, text="not\nnow"), 'another terminal answered first: no, "not now"'),
        ("acp", "cli", Answer(AnswerKind.MESSAGE, text="port 80"), 'the editor answered first: "port 80"'),
        ("cli", "acp", Answer(AnswerKind.MESSAGE, text="x" * 90), f'a terminal answered first: "{"x" * 80}…"'),
        ("", "", Answer(AnswerKind.MESSAGE), "somebody else answered first"),
        ("web", "cli", Answer(AnswerKind.PER_FILE), "the page answered first, file by file"),
        ("web", "cli", Answer(AnswerKind.YES, edited="ls"), "the page answered first: yes, but another command"),
        ("web", "cli", Answer(AnswerKind.DONE), "the page answered first: it tried the command and kept the changes"),
    ],
)
def test_who_answers_late_reads_who_was_first_and_with_what(by: str, told: str, answer: Answer, sentence: str) -> None:
    """S5, F8."""
    first = QuestionAnswered.of(QuestionId("q1"), replace(answer, by=by), at=0.0)
    assert f"{who_answered(first, told=told)} first{said_in(first)}" == sentence


# A command that runs


def _waits(**more: object) -> Turn:
    """A call whose command runs until the file `go` is there."""
    return turn(call("execute_command", command="echo begun; until [ -e go ]; do sleep 0.05; done; echo over", **more))


async def _running(task: Task, seen: Seen) -> tuple[asyncio.Task[Ended], QuestionAsked]:
    """Run it until its command asks."""
    run = asyncio.create_task(task.run_until_idle())
    asked = await seen.until(lambda each: isinstance(each, QuestionAsked) and each.ask == "command_output")
    assert isinstance(asked, QuestionAsked)
    return run, asked


def _ask_item(events: list[TaskEvent]) -> Item:
    (found,) = [each for each in timeline(events) if (each.type, each.kind) == ("ask", "command_output")]
    return found


@pytest.mark.shell
async def test_a_running_command_goes_on_in_the_background_after_a_yes(tmp_path: Path) -> None:
    """S5: the ask `command_output` is open while a command runs; the task is running, not waiting."""
    async with a_task(tmp_path / "work", _waits(), turn(text="Meanwhile."), attended=True, auto="all") as task:
        seen = Seen(task)
        run, asked = await _running(task, seen)
        assert asked.text == "`echo begun; until [ -e go ]; do sleep 0.05; done; echo over` is running"
        assert task.questions == (asked,)
        assert task.metadata.status == "running" and task.running
        await task.answer(asked.question, Answer(AnswerKind.YES, by="test"))
        assert (await run).text == "Meanwhile."
        told = results(seen)[0][2]
        assert "still running" in told and "The person sent this command to the background" in told
        item = _ask_item(await stored(task))
        assert item.answered and item.answer and item.answer.answer is AnswerKind.YES
        (tmp_path / "work" / "go").touch()


@pytest.mark.shell
async def test_words_about_a_running_command_reach_the_model_and_the_command_goes_on(tmp_path: Path) -> None:
    """S5: an answer in words does not wait for the end of the command."""
    async with a_task(tmp_path / "work", _waits(), turn(text="All right."), attended=True, auto="all") as task:
        seen = Seen(task)
        run, asked = await _running(task, seen)
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="Look at b.txt meanwhile.", by="test"))
        assert (await run).text == "All right."
        told = results(seen)[0][2]
        assert "still running" in told and "The person says: Look at b.txt meanwhile." in told
        (tmp_path / "work" / "go").touch()


@pytest.mark.shell
async def test_a_running_command_is_stopped_by_a_no_and_the_task_goes_on(tmp_path: Path) -> None:
    """S5: the command alone ends; the model is told who stopped it, and goes on."""
    async with a_task(tmp_path / "work", _waits(), turn(text="Why?"), attended=True, auto="all") as task:
        seen = Seen(task)
        run, asked = await _running(task, seen)
        await task.answer(asked.question, Answer(AnswerKind.NO, by="test"))
        assert (await run).text == "Why?"
        told = results(seen)[0][2]
        assert "The person stopped this command" in told and "over" not in told and "begun" in told


@pytest.mark.shell
async def test_a_command_that_ends_is_no_longer_asked_about(tmp_path: Path) -> None:
    """S5: it is withdrawn with the end of the command, and a late answer is refused."""
    async with a_task(tmp_path / "work", _waits(), turn(text="Over."), attended=True, auto="all") as task:
        seen = Seen(task)
        run, asked = await _running(task, seen)
        (tmp_path / "work" / "go").touch()
        assert (await run).text == "Over."
        assert task.questions == ()
        item = _ask_item(await stored(task))
        assert item.answer and item.answer.answer is AnswerKind.SKIP
        with pytest.raises(BadRequest, match="is not open"):
            await task.answer(asked.question, Answer(AnswerKind.YES))
    assert "still running" not in results(seen)[0][2] and "over" in results(seen)[0][2]


@pytest.mark.shell
async def test_a_short_command_and_one_without_a_person_are_not_asked_about(tmp_path: Path) -> None:
    """S5: no question that nobody could answer in time, or at all."""
    quick = turn(call("execute_command", command="echo quick > a"))
    slow = turn(call("execute_command", command="sleep 1.6 > a"))
    async with a_task(tmp_path / "one", quick, turn(text="Done."), attended=True, auto="all") as task:
        seen = Seen(task)
        await task.run_until_idle()
        assert not seen.of(QuestionAsked)
    async with a_task(tmp_path / "two", slow, turn(text="Done."), auto="all") as task:
        seen = Seen(task)
        await task.run_until_idle()
    assert not seen.of(QuestionAsked)


@pytest.mark.shell
async def test_a_command_without_a_shell_is_sent_to_the_background_too(tmp_path: Path) -> None:
    """S5, U7: what runs without a question, from its plan; before the question is there, too."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    follows = turn(call("execute_command", command="tail -f a.txt", timeout=60))
    async with a_task(work, follows, turn(text="Meanwhile."), attended=True, auto="ask") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, OutputStreamed))
        assert await task.to_background()
        assert (await run).text == "Meanwhile."
        assert "still running" in results(seen)[0][2]
        assert not await task.to_background()


@pytest.mark.shell
async def test_a_command_that_only_starts_is_sent_to_the_background_once_it_runs(tmp_path: Path) -> None:
    """S5, U7: Ctrl-B before its shell is open."""
    starts = turn(call("execute_command", command="touch made; sleep 1000", timeout=60))
    async with a_task(tmp_path, starts, turn(text="Meanwhile."), attended=True, auto="all") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, ToolStarted))
        assert not task._state.context.registry.listing(busy=True)
        assert await task.to_background()
        assert (await run).text == "Meanwhile."
        assert "The person sent this command to the background." in results(seen)[0][2]
        assert [each.busy for each in task._state.context.registry.listing()] == [True]
        assert not await task.to_background()


@pytest.mark.shell
async def test_a_wait_for_a_terminal_is_ended_and_its_command_goes_on(tmp_path: Path) -> None:
    """S5, U7: Ctrl-B while the model waits for a command that it had left, again and again."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    left = turn(call("execute_command", command="tail -f a.txt", timeout=0.5))
    waits = [turn(call("wait_for_terminal", timeout=60 + n)) for n in range(2)]
    async with a_task(work, left, *waits, turn(text="Meanwhile."), attended=True, auto="ask") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        for n in range(2):
            await seen.until(lambda _, n=n: len(results(seen)) == n + 1 and bool(task.questions), seconds=20)  # type: ignore[misc]
            assert [each.ask for each in task.questions] == ["command_output"]
            assert await task.to_background()
        assert (await run).text == "Meanwhile."
        assert [each.busy for each in task._state.context.registry.listing()] == [True]
        assert not await task.to_background()
    for name, outcome, told in results(seen)[1:]:
        assert (name, outcome) == ("wait_for_terminal", "done")
        assert "The person sent this command to the background." in told and "`tail -f a.txt`" in told


def test_a_command_that_was_asked_about_had_begun() -> None:
    """S4, S5: after a crash its call is interrupted, not taken for one that only asked."""
    asked = new_question("command_output", "`make` is running", call=CallId("c1"))
    events = [ToolStarted(at=1.0, call=CallId("c1"), name="execute_command", title="Running `make`"), asked]
    assert _asking(events) == set()
    assert metadata(events).status == "created"


@pytest.mark.parametrize(
    ("config", "auto", "missing"),
    [
        ({}, "ask", {"ask_followup_question", "switch_mode", "new_task"}),
        ({}, "workspace", {"ask_followup_question", "new_task"}),
        ({"policy.auto_approve_questions": True}, "all", set()),
    ],
)
async def test_what_nobody_can_answer_is_not_offered(
    tmp_path: Path, config: dict[str, object], auto: Auto, missing: set[str]
) -> None:
    """S7: an unattended prompt has no tool whose every call would be denied, and names none."""
    needs_a_person = {"ask_followup_question", "switch_mode", "new_task"}
    for mode in ("code", "architect", "debug", "ask", "orchestrator"):
        async with a_task(tmp_path / "work", done(), auto=auto, mode=mode, config=config) as task:
            assert (await task.run()).why == "completed"
            prompt = await task._engine._prompt.prepared()
            assert needs_a_person - {each.name for each in prompt.tools} == missing
            assert not any(each in prompt.system for each in missing)
            assert "Nobody is there to be asked." in prompt.system
        async with a_task(tmp_path / "work", done(), auto=auto, mode=mode, config=config, attended=True) as task:
            prompt = await task._engine._prompt.prepared()
            assert needs_a_person <= {each.name for each in prompt.tools}
            assert "Nobody is there" not in prompt.system


async def test_a_question_that_was_not_offered_is_refused_with_a_way_on(tmp_path: Path) -> None:
    """S13: a model that asks although nobody is there is told so."""
    asks = turn(call("ask_followup_question", question="Which?"))
    async with a_task(tmp_path / "work", asks, done()) as task:
        seen = Seen(task)
        assert (await task.run()).why == "completed"
        assert "Nobody is here to answer. Decide by what is most likely meant" in str(results(seen))
