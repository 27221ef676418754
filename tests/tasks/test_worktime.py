"""A limit on time is for the task, not for the person who is asked (S16); and nobody answers over their typing."""

import asyncio
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, call, done, results, turn

from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.events import QuestionAnswered, TaskPaused
from tarmac.tasks.limits import Limits, WorkTime
from tarmac.tasks.task import Task

pytestmark = pytest.mark.slow

ASK = turn(call("ask_followup_question", question="Which?", follow_up=[{"text": "red"}, {"text": "blue"}]))
SHORT = 2.0


async def _stands(task: Task) -> None:
    """Wait until the clock of the task's work stands still."""
    async with asyncio.timeout(20):
        seen = -1.0
        while seen != (seen := task._state.clock.seconds):  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.1)


async def test_a_coffee_break_of_the_person_does_not_end_the_task(tmp_path: Path) -> None:
    """S16: what it waits for an answer does not count."""
    async with a_task(tmp_path / "work", ASK, done(), attended=True, limits=Limits(max_seconds=60)) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        await _stands(task)
        assert task.questions == (asked,)
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="green"))
        assert (await run).why == "completed"
    assert seen.of(TaskPaused) == []


async def test_a_pause_of_the_person_does_not_count_either(tmp_path: Path) -> None:
    """S16, S1."""
    look = turn(call("list_files", path="."))
    async with a_task(tmp_path / "work", look, done(), limits=Limits(max_seconds=60)) as task:
        await task.pause("a moment")
        run = asyncio.create_task(task.run_until_idle())
        await _stands(task)
        assert not run.done()
        await task.unpause()
        assert (await run).why == "completed"


async def test_after_the_answer_the_time_goes_on_from_where_it_stood(tmp_path: Path) -> None:
    """S16: the limit still holds."""
    slow = turn(text="never", delay=60)
    async with a_task(tmp_path / "work", ASK, slow, attended=True, limits=Limits(max_seconds=5)) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        await asyncio.wait([run], timeout=SHORT)
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="green"))
        ended = await run
        assert (ended.why, ended.text) == ("limit", "the limit of 5 s is reached")


async def test_several_that_wait_at_once_stop_the_clock_once() -> None:
    """S16."""
    clock, rang = WorkTime(), asyncio.Event()
    clock.ring(0.05, rang.set)
    with clock.stopped():
        with clock.stopped():
            stood = clock.seconds
        await asyncio.sleep(0.1)
        assert clock.seconds == stood and not rang.is_set()
    await asyncio.wait_for(rang.wait(), 5)
    assert clock.seconds >= 0.05
    clock.done()


async def test_the_first_suggestion_is_not_taken_once_somebody_begins_to_type(tmp_path: Path) -> None:
    """P7: what is answered in a person's place is not answered over their hands."""
    config: dict[str, object] = {"policy.auto_approve_questions": True, "policy.question_timeout": SHORT}
    async with a_task(tmp_path / "work", ASK, ASK, done(), attended=True, config=config) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        task.hold(asked.question)
        task.hold(asked.question)  # with every key
        await asyncio.wait([run], timeout=2 * SHORT)
        assert task.questions == (asked,)
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="green"))
        assert (await run).why == "completed"  # the second is answered by itself
    assert [(each.text, each.by) for each in seen.all if isinstance(each, QuestionAnswered)][:2] == [
        ("green", ""),
        ("red", "auto-approval"),
    ]
    assert "green" in results(seen)[0][2]


async def test_who_begins_and_goes_away_is_waited_for_as_long_as_for_any_answer(tmp_path: Path) -> None:
    """P7: approval_timeout; then it is skipped, and not answered in their place."""
    config: dict[str, object] = {
        "policy.auto_approve_questions": True,
        "policy.question_timeout": SHORT,
        "approval_timeout": SHORT,
    }
    async with a_task(tmp_path / "work", ASK, done(), attended=True, config=config) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        task.hold((await seen.question()).question)
        assert (await run).why == "completed"
    (answered, *_) = [each for each in seen.all if isinstance(each, QuestionAnswered)]
    assert (answered.answer, answered.by) == ("skip", "approval_timeout")
