"""What is done in a person's place: its kinds, its limits, and who is told of it (P7)."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.engine import Seen, a_task, call, done, messages_of, results, stored, turn

from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.auto import Auto, level_named
from tarmac.tasks.events import (
    CallJudged,
    ModelSaid,
    QuestionAnswered,
    RequestFailed,
    TaskPaused,
    ToolFinished,
    UserSaid,
)
from tarmac.tasks.limits import Limits
from tarmac.tasks.signals import TextStreamed
from tarmac.tasks.views.metadata import metadata

pytestmark = pytest.mark.slow

LOOK = turn(call("list_files", path="."))
PAID: dict[str, Any] = {"price": {"input": 1000.0, "output": 2000.0}}  # dollars for a million tokens


def looks(count: int) -> list[dict[str, object]]:
    """So many turns, each of them different: no circle."""
    return [
        turn(call("list_files", path=".", recursive=n % 2 == 0), usage={"input": 1000, "output": 0})
        for n in range(count)
    ]


# Limits


async def test_at_the_limit_a_person_says_whether_it_goes_on(tmp_path: Path) -> None:
    """P7: `auto_approval_limit`; with a yes it counts anew."""
    limits = Limits(max_auto_requests=2)
    async with a_task(tmp_path / "work", *looks(4), done(), attended=True, limits=limits) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        first = await seen.question()
        assert (first.ask, first.details) == ("auto_approval_limit", '{"count": 2, "type": "requests"}')
        assert "2 requests without asking you" in first.text
        await task.answer(first.question, Answer(AnswerKind.YES))
        second = await seen.question(after=seen.all.index(first) + 1)
        assert len(seen.of(ModelSaid)) == 4
        await task.answer(second.question, Answer(AnswerKind.MESSAGE, text="But hurry."))
        assert (await run).why == "completed"
        await messages_of(task)
    assert [each.text for each in seen.all if isinstance(each, UserSaid)] == ["But hurry."]


@pytest.mark.parametrize("answer", ["no", "skip"])
async def test_a_no_ends_it_as_a_limit_and_it_can_go_on_later(tmp_path: Path, answer: str) -> None:
    """P7: resumable."""
    config: dict[str, object] = {"approval_timeout": 0.05} if answer == "skip" else {}
    limits = Limits(max_auto_requests=1)
    async with a_task(tmp_path / "work", *looks(1), done(), attended=True, limits=limits, config=config) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        if answer == "no":
            await task.answer(asked.question, Answer(AnswerKind.NO))
        ended = await run
        assert ended.why == "limit" and "1 request without asking you" in ended.text
        assert seen.of(TaskPaused)
        assert (await task.run_until_idle()).why == "completed"


async def test_without_a_person_the_limit_ends_it(tmp_path: Path) -> None:
    """P7: nothing hangs."""
    async with a_task(tmp_path / "work", *looks(3), done(), limits=Limits(max_auto_requests=2)) as task:
        ended = await task.run_until_idle()
    assert ended.why == "limit" and "nobody is here" in ended.text


async def test_cost_is_limited_the_same_way(tmp_path: Path) -> None:
    """P7: limits on cost."""
    limits = Limits(max_auto_cost=2.5)
    async with a_task(tmp_path / "work", *looks(5), done(), attended=True, limits=limits, **PAID) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        assert len(seen.of(ModelSaid)) == 3
        assert asked.details == '{"count": 2.5, "type": "cost"}' and "$3.0000" in asked.text
        await task.answer(asked.question, Answer(AnswerKind.YES))
        assert (await run).why == "completed"


async def test_the_limit_is_asked_about_again_after_a_restart(tmp_path: Path) -> None:
    """S4: an open question is asked again."""
    from tests.tasks.engine import an_app, write_script

    work = tmp_path / "work"
    work.mkdir()
    model = write_script(tmp_path / "s.toml", *looks(2), done())
    limits = Limits(max_auto_requests=1)
    async with asyncio.timeout(30), an_app(work) as app:
        async with app.create_task("Do it.", model=model, auto="read", limits=limits) as task:
            seen = Seen(task)
            run = asyncio.create_task(task.run_until_idle())
            await seen.question()
        await run
        async with app.resume_task(task.id, model=model, auto="read", limits=limits) as task:
            seen = Seen(task)
            run = asyncio.create_task(task.run_until_idle())
            asked = await seen.question()  # the run is a new one: after one more request
            assert asked.ask == "auto_approval_limit"
            await task.answer(asked.question, Answer(AnswerKind.YES))
            assert (await run).why == "completed"


# Kinds


@pytest.mark.parametrize(
    ("auto", "config", "by"),
    [
        ("ask", {"policy.auto_approve_modes": True}, "auto-approval"),
        ("safe", {}, "auto-approval"),
        ("ask", {}, "nobody to ask"),
        ("edit", {}, "nobody to ask"),
    ],
)
async def test_a_mode_switch_is_in_the_audit_log(
    tmp_path: Path, auto: Auto, config: dict[str, object], by: str
) -> None:
    """P7: who, what, why, when."""
    switch = turn(call("switch_mode", mode_slug="ask"))
    async with a_task(tmp_path / "work", switch, done(), auto=auto, config=config) as task:
        seen = Seen(task)
        await task.run_until_idle()
        assert task.metadata.mode == ("ask" if by == "auto-approval" else "code")
    (judged,) = [each for each in seen.all if isinstance(each, CallJudged)]
    assert (judged.by, judged.decision, judged.part) == (by, "allow" if by == "auto-approval" else "deny", "ask")


ASK = turn(
    call("ask_followup_question", question="Which?", follow_up=[{"text": "blue", "mode": "ask"}, {"text": "red"}])
)


async def test_a_question_nobody_answers_gets_the_first_suggestion_if_that_was_wanted(tmp_path: Path) -> None:
    """P7: follow-up questions, after a time."""
    config: dict[str, object] = {"policy.auto_approve_questions": True, "policy.question_timeout": 0.1}
    async with a_task(tmp_path / "work", ASK, done(), attended=True, config=config) as task:
        seen = Seen(task)
        began = time.monotonic()
        assert (await task.run_until_idle()).why == "completed"
        assert time.monotonic() - began >= 0.1
        assert task.metadata.mode == "code"  # its mode is not switched by nobody
    assert "\nblue\n" in results(seen)[0][2] and "nobody answered" in results(seen)[0][2]
    answered = next(each for each in seen.all if isinstance(each, QuestionAnswered))
    assert (answered.answer, answered.text, answered.by) == ("message", "blue", "auto-approval")
    assert [each.by for each in seen.all if isinstance(each, CallJudged)] == ["auto-approval"]
    finished = next(each for each in seen.all if isinstance(each, ToolFinished))
    assert finished.seconds < 0.1  # the wait is not the tool's time


@pytest.mark.parametrize("on", [True, False])
async def test_without_a_person_a_suggestion_is_taken_at_once_or_the_model_is_told(tmp_path: Path, on: bool) -> None:
    """P7: off by default."""
    config: dict[str, object] = {"policy.auto_approve_questions": on}
    async with a_task(tmp_path / "work", ASK, done(), config=config) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert results(seen)[0][1] == ("done" if on else "failed")


async def test_a_person_who_answers_in_time_is_heard(tmp_path: Path) -> None:
    """P7: the suggestion is only taken when nobody answers."""
    config: dict[str, object] = {"policy.auto_approve_questions": True, "policy.question_timeout": 20.0}
    async with a_task(tmp_path / "work", ASK, done(), attended=True, config=config) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await task.answer((await seen.question()).question, Answer(AnswerKind.MESSAGE, text="green"))
        await run
    assert "\ngreen\n" in results(seen)[0][2]


async def test_failed_requests_are_tried_again_without_asking_if_that_was_wanted(tmp_path: Path) -> None:
    """P7: retries; each is in the audit log."""
    fails = turn(error={"kind": "overloaded", "what": "too busy"})
    config: dict[str, object] = {"policy.auto_approve_retries": True}
    limits = Limits(max_retries=0)
    async with a_task(tmp_path / "work", fails, done(), limits=limits, config=config) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    (judged,) = [each for each in seen.all if isinstance(each, CallJudged)]
    assert (judged.by, judged.decision) == ("auto-approval", "allow") and "tried again" in judged.reason
    async with a_task(tmp_path / "work", fails, done(), limits=limits) as task:
        assert (await task.run_until_idle()).why == "failed"


# Time and cost


async def test_the_wait_for_a_person_is_not_the_tools_time(tmp_path: Path) -> None:
    """S16: `seconds` is the tool's own."""
    write = turn(call("write_to_file", path="a.txt", content="a\n"))
    async with a_task(tmp_path / "work", write, done(), attended=True, auto="ask") as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        await asyncio.sleep(0.5)  # a person thinks
        await task.answer(asked.question, Answer(AnswerKind.YES))
        await run
    finished = next(each for each in seen.all if isinstance(each, ToolFinished))
    assert finished.outcome == "done" and 0 < finished.seconds < 0.5


async def test_what_a_stopped_answer_cost_is_estimated_and_said_to_be(tmp_path: Path) -> None:
    """S16: so that the cost and its limit stay useful."""
    slow = turn(text="word " * 200, pace=0.01)
    async with a_task(tmp_path / "work", *looks(1), slow, done(), **PAID, limits=Limits(max_cost=1000.0)) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, TextStreamed))
        task.cancel()
        assert (await run).why == "interrupted"
        first, cut = [each for each in await stored(task) if isinstance(each, ModelSaid)]
        assert not first.estimated and cut.estimated and cut.stop == "cut"
        assert cut.cost is not None and cut.cost > 1.0  # what was in the window counts
        assert cut.usage.input >= 1000 and 0 < cut.usage.output < 300
        assert task.metadata.total_cost == pytest.approx(1.0 + cut.cost)
        assert (await task.run_until_idle()).why == "completed"  # the limit can still be kept
    assert metadata(await stored(task)).estimated == 1


async def test_a_request_that_is_stopped_before_anything_came_counts_as_nothing(tmp_path: Path) -> None:
    """S16."""
    async with a_task(tmp_path / "work", turn(text="never", delay=30), done(), **PAID) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: type(each).__name__ == "RequestStarted")
        task.cancel()
        await run
        assert (task.metadata.total_cost, task.metadata.failed) == (0.0, 1)


async def test_what_a_failed_request_took_is_counted(tmp_path: Path) -> None:
    """S16: it was paid for, too."""
    fails = turn(error={"kind": "overloaded", "what": "cut"}, usage={"input": 500, "output": 0}, text="Be")
    async with a_task(tmp_path / "work", fails, done(), **PAID) as task:
        seen = Seen(task)
        await task.run_until_idle()
        assert task.metadata.total_cost == pytest.approx(0.5)
    (failed,) = [each for each in seen.all if isinstance(each, RequestFailed)]
    assert failed.cost == pytest.approx(0.5)


@pytest.mark.parametrize(("old", "new"), [("read", "ask"), ("edit", "edits"), ("safe", "workspace"), ("plan", "plan")])
def test_older_names_of_levels_still_count(old: str, new: str) -> None:
    """P7: aliases."""
    assert level_named(old) == new
    assert level_named("sometimes") is None


async def test_at_the_level_plan_nothing_is_changed_and_nobody_is_asked(tmp_path: Path) -> None:
    """P7: `plan` reads only; what would change something is denied, also what the person allowed before."""
    wants = [
        turn(call("execute_command", command="ls")),
        turn(call("execute_command", command="touch made")),
        turn(call("execute_command", command="npm test")),
        turn(call("write_to_file", path="made", content="x\n")),
    ]
    config: dict[str, object] = {"policy.allow": ["npm test"], "policy.auto_approve_write": True}
    work = tmp_path / "work"
    async with a_task(work, *wants, done(), auto="plan", attended=True, config=config) as task:
        seen = Seen(task)
        await task.run_until_idle()
    judged = [each.decision for each in seen.all if isinstance(each, CallJudged)]
    assert judged == ["allow", "deny", "deny", "deny"]
    assert not (work / "made").exists()
