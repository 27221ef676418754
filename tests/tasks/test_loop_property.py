"""Whatever a model says, and whenever it is stopped: every call has exactly one result, and the log can be taken up."""

import asyncio
import itertools
import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.tasks.engine import (
    Seen,
    Turn,
    an_app,
    call,
    check_order,
    check_pairs,
    done,
    messages_of,
    stored,
    turn,
    write_script,
)

from tarmac.errors import BadRequest
from tarmac.models.messages import ToolUse
from tarmac.policy.approval import Always, Answer, AnswerKind, GrantScope
from tarmac.tasks.auto import LEVELS, Auto
from tarmac.tasks.events import MessageId, ModelSaid, TaskEvent, ToolFinished, ToolStarted
from tarmac.tasks.limits import Limits
from tarmac.tasks.task import Task
from tarmac.tasks.views.model_history import model_messages

pytestmark = pytest.mark.slow

QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # to make an example smaller takes minutes here
EXAMPLES = 400 if os.environ.get("TARMAC_THOROUGH") else 25

names = st.sampled_from(["a.txt", "b/c.txt", ".git/config", ".env", "../out.txt", "", "a.txt/x"])
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
calls = st.one_of(
    st.builds(lambda path, content: call("write_to_file", path=path, content=content), names, words),
    st.builds(lambda path: call("read_file", path=path), names),
    st.builds(lambda path: call("list_files", path=path), names),
    st.builds(lambda a, b: call("search_and_replace", path="a.txt", search=a, replace=b), words, words),
    st.builds(lambda text: call("update_todo_list", todos=f"[ ] {text}"), words),
    st.just(call("ask_followup_question", question="Well?", follow_up=[])),
    st.just(call("switch_mode", mode_slug="ask", reason="")),
    st.just(call("execute_command", command="cat a.txt")),
    st.just(call("execute_command", command="rm -rf /")),
    st.builds(lambda name, arguments: {"name": name or "x", "arguments": arguments}, words, words),
    st.builds(lambda cut: {"name": "read_file", "arguments": json.dumps({"path": "a.txt"})[:cut]}, st.integers(0, 16)),
    st.builds(lambda id: {**call("list_files", path="."), "id": id}, st.sampled_from(["same", "call_0"])),
    st.just(call("attempt_completion", result="I think so.")),
)
stops = st.sampled_from(["end", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause", "cut", "other"])
turns = st.builds(lambda made, text, stop: turn(*made, text=text, stop=stop), st.lists(calls, max_size=4), words, stops)


@settings(
    max_examples=400 if os.environ.get("TARMAC_THOROUGH") else 25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(turns, min_size=1, max_size=5), st.sampled_from(LEVELS), st.none() | st.integers(1, 40))
def test_every_call_has_exactly_one_result(said: list[Turn], auto: Auto, stop_after: int | None) -> None:
    """S11: any script, any level, stopped anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(Path(folder), said, auto, stop_after))


async def _play(folder: Path, said: list[Turn], auto: Auto, stop_after: int | None) -> None:
    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    model = write_script(folder / "script.toml", *said, *[done()] * 30)
    limits = Limits(max_turns=12)
    async with asyncio.timeout(30), an_app(work) as app:
        async with app.create_task("Do it.", model=model, auto=auto, attended=False, limits=limits) as task:
            _stop(task, stop_after)
            ended = await task.run_until_idle()
            assert ended.why != "idle"
            _check(await stored(task))
        async with app.resume_task(task.id, model=model, auto=auto, attended=False, limits=limits) as task:
            await task.say("Go on.")
            await task.run_until_idle()
            await messages_of(task)
            _check(await stored(task))


def _stop(task: Task, after: int | None) -> None:
    left = after

    def hear(*_: object) -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left == 0:
                task.cancel()

    task.subscribe(hear)


def _check(events: list[TaskEvent]) -> None:
    check_pairs(model_messages(events))
    made = [
        part.id for each in events if isinstance(each, ModelSaid) for part in each.parts if isinstance(part, ToolUse)
    ]
    finished = Counter(each.call for each in events if isinstance(each, ToolFinished))
    assert len(made) == len(set(made))
    assert set(finished) <= set(made)
    assert all(count == 1 for count in finished.values())
    assert set(finished) == set(made)
    open_calls: set[str] = set()
    for each in events:
        if isinstance(each, ToolStarted):
            assert each.call not in open_calls
            open_calls.add(each.call)
        elif isinstance(each, ToolFinished):
            open_calls.discard(each.call)
    assert not open_calls


verbs = st.sampled_from(
    [
        "yes",
        "no",
        "message",
        "skip",
        "edit",
        "always",
        "object",
        "say",
        "withdraw",
        "cancel",
        "pause",
        "mode",
        "nothing",
    ]
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)
@given(st.lists(turns, min_size=1, max_size=4), st.sampled_from(LEVELS), st.lists(verbs, min_size=1, max_size=12))
def test_whatever_a_person_does_meanwhile(said: list[Turn], auto: Auto, does: list[str]) -> None:
    """S5: answers that make sense or not, words, stops and pauses, in any order and at any time."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play_with_a_person(Path(folder), said, auto, does))


async def _play_with_a_person(folder: Path, said: list[Turn], auto: Auto, does: list[str]) -> None:
    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    model = write_script(folder / "script.toml", *said, *[done()] * 30)
    async with asyncio.timeout(30), an_app(work) as app:
        limits = Limits(max_turns=12)
        async with app.create_task("Do it.", model=model, auto=auto, attended=True, limits=limits) as task:
            seen = Seen(task)
            person = asyncio.create_task(_person(task, does))
            try:
                for _ in range(4):
                    if (await task.run_until_idle()).why in ("completed", "idle"):  # idle: after a refusal
                        break
            finally:
                person.cancel()
                await asyncio.gather(person, return_exceptions=True)
            _check(await stored(task))
            check_order(seen.all)
            assert not [each for each in task.questions if each.ask != "completion_result"]


async def _person(task: Task, does: list[str]) -> None:
    """Does one thing after the other, again and again."""
    queued: list[MessageId] = []
    later = [each for each in does if each not in ("say", "cancel")]  # who never stops talking is never done
    for verb in itertools.chain(does, itertools.cycle([*later, "yes"])):
        await asyncio.sleep(0.002)
        try:
            await _do(task, verb, queued)
        except BadRequest:
            pass  # it said why


async def _do(task: Task, verb: str, queued: list[MessageId]) -> None:
    question = task.questions[0].question if task.questions else None
    match verb:
        case "yes" | "no" | "skip" if question:
            await task.answer(question, Answer(AnswerKind(verb)))
        case "message" if question:
            await task.answer(question, Answer(AnswerKind.MESSAGE, text="Hm."))
        case "edit" if question:
            await task.answer(question, Answer(AnswerKind.YES, edited="cat a.txt a.txt"))
        case "always" if question:
            await task.answer(question, Answer(AnswerKind.YES, always=Always(GrantScope.TASK)))
        case "object" if question:
            await task.answer(question, Answer(AnswerKind.PER_FILE))
        case "say":
            if message := await task.say("And this."):
                queued.append(message)
        case "withdraw" if queued:
            await task.withdraw(queued.pop())
        case "cancel":
            task.cancel()
        case "pause":
            await task.pause()
            await task.unpause()
        case "mode":
            await task.switch_mode("code")
