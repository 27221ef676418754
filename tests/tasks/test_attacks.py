"""What somebody would try who wants to break a task: wrong words, wrong moments, things that fail to close."""

import asyncio
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, an_app, call, done, messages_of, results, stored, turn, write_script
from tests.tasks.test_resuming import fill

from tarmac.errors import BadRequest, StateUnavailable
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.events import (
    RESTING,
    ModelSaid,
    ModelTold,
    QuestionAnswered,
    QuestionAsked,
    TaskAborted,
    TaskCompleted,
    TaskSaved,
    ToolFinished,
    UserSaid,
)
from tarmac.tasks.limits import Limits
from tarmac.tasks.log.reader import read_log
from tarmac.tasks.task import Task

pytestmark = pytest.mark.slow

FOLLOWUP = turn(call("ask_followup_question", question="Which?", follow_up=[{"text": "a"}, {"text": "b"}]))


async def test_an_answer_of_no_known_kind_is_refused_and_not_recorded(tmp_path: Path) -> None:
    """S5: what could not be read again is never written."""
    async with a_task(tmp_path / "work", FOLLOWUP, done(), attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        with pytest.raises(BadRequest, match="maybe"):
            await task.answer(asked.question, Answer("maybe"))  # type: ignore[arg-type]
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="a"))
        await run
        events = await stored(task)
    assert [each.answer for each in events if isinstance(each, QuestionAnswered)] == ["message"]


@pytest.mark.parametrize("text", ["half a pair: \ud800", "\x00\x1b[2J", "x" * 300_000, "\u2028\u202e"])
async def test_whatever_characters_a_person_uses_the_log_can_be_read_again(tmp_path: Path, text: str) -> None:
    """S3: nothing torn, nothing lost."""
    async with a_task(tmp_path / "work", FOLLOWUP, done(), done(), attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text=text))
        assert (await run).why == "completed"
        await task.say(text)
        assert (await task.run_until_idle()).why == "completed"
        await messages_of(task)
        folder = task.log.folder
    reading = read_log(folder)
    assert not reading.damage and not reading.torn
    same = text.encode("utf-8", "replace")
    said = [each for each in reading.events if isinstance(each, UserSaid)][-1]
    assert said.text.encode("utf-8", "replace") == same


async def test_an_aborted_task_has_no_open_question_and_takes_no_answer(tmp_path: Path) -> None:
    """S5: saying anything in an aborted task is an error."""
    async with a_task(tmp_path / "work", done(), attended=True) as task:
        await task.run_until_idle()
        (asked,) = task.questions
        await task.abort("enough")
        assert task.questions == ()
        with pytest.raises(BadRequest):
            await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="More."))
        with pytest.raises(BadRequest, match="aborted"):
            await task.say("More.")
        events = await stored(task)
    assert not [each for each in events if isinstance(each, UserSaid) and each.text == "More."]
    assert [each.by for each in events if isinstance(each, QuestionAnswered)] == ["stopped"]
    assert [each for each in events if isinstance(each, TaskAborted)]


async def test_stopped_while_its_result_is_written_it_is_completed_and_asks(tmp_path: Path) -> None:
    """S5: what is recorded is what is said; the question can be answered."""
    async with a_task(tmp_path / "work", done("First."), done("Second."), attended=True) as task:

        def stop(_: int | None, thing: object) -> None:
            if isinstance(thing, ToolFinished):
                asyncio.get_running_loop().call_soon(soon)

        def soon(tries: int = 0) -> None:
            """At the first moment at which the result is on its way to the disk."""
            if task.log.pending or tries > 200:
                task.cancel()
            else:
                asyncio.get_running_loop().call_soon(soon, tries + 1)

        leave = task.subscribe(stop)
        ended = await task.run_until_idle()
        leave()
        events = await stored(task)
        if any(isinstance(each, TaskCompleted) for each in events):
            assert ended.why == "completed"
            (asked,) = task.questions
            await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="And more."))
            assert (await task.run_until_idle()).text == "Second."
        await messages_of(task)


async def test_stopped_when_the_whole_answer_is_on_the_screen_it_is_not_interrupted(tmp_path: Path) -> None:
    """S1: the answer has only to be written to the disk; the model is not told that it was stopped."""
    async with a_task(tmp_path / "work", turn(text="It is blue."), turn(text="Green."), attended=True) as task:
        leave = task.subscribe(lambda _, thing: task.cancel() if isinstance(thing, ModelSaid) else None)
        ended = await task.run_until_idle()
        leave()
        assert (ended.why, ended.text) == ("idle", "It is blue.")
        await task.say("And the other?")
        assert (await task.run_until_idle()).text == "Green."
        assert not [each for each in await stored(task) if isinstance(each, ModelTold) and each.about == "resumption"]


async def test_what_a_person_answered_before_a_crash_reaches_the_model(tmp_path: Path) -> None:
    """S4: an answer that was recorded is not lost because the call had no time to end."""
    work = tmp_path / "work"
    work.mkdir()
    model = write_script(tmp_path / "s.toml", FOLLOWUP, done())
    async with asyncio.timeout(30), an_app(work) as app, app.create_task("Do it.", model=model) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        asked = await seen.question()
        folder = task.log.folder
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="the blue one"))
        await run
    # as a crash directly after the answer would leave it
    lines = (folder / "log.jsonl").read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"question_answered"' in line and b"the blue one" in line)
    (folder / "log.jsonl").write_bytes(b"".join(lines[: at + 1]))
    async with asyncio.timeout(30), an_app(work) as app, app.resume_task(task.id, model=model) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        messages = await messages_of(task)
    name, outcome, text = results(seen)[0]
    assert (name, outcome) == ("ask_followup_question", "interrupted") and "the blue one" in text
    assert messages


async def test_a_run_that_its_front_end_left_asks_again_in_the_next(tmp_path: Path) -> None:
    """S4: in the same process, too; and the question of before takes no answer."""
    async with a_task(tmp_path / "work", FOLLOWUP, done(), attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        first = await seen.question()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        assert not results(seen)
        run = asyncio.create_task(task.run_until_idle())
        second = await seen.question(after=seen.all.index(first) + 1)
        assert (second.ask, second.text) == ("followup", "Which?")
        with pytest.raises(BadRequest, match="not open"):
            await task.answer(first.question, Answer(AnswerKind.MESSAGE, text="a"))
        await task.answer(second.question, Answer(AnswerKind.MESSAGE, text="b"))
        assert (await run).why == "completed"
        await messages_of(task)
    assert [each[1] for each in results(seen)] == ["done", "done"]


class Closing:
    """Somebody to ask, who is only ever closed."""

    def __init__(self, closed: list[str], name: str) -> None:
        self.closed, self.name = closed, name

    async def aclose(self) -> None:
        self.closed.append(self.name)
        if self.name == "broken":
            raise RuntimeError("broken")


async def test_what_fails_to_close_keeps_nothing_else_from_closing(tmp_path: Path) -> None:
    """S18: cleaning up on every way out."""
    work = tmp_path / "work"
    work.mkdir()
    model = write_script(tmp_path / "s.toml", done())
    closed: list[str] = []
    with pytest.raises(RuntimeError, match="broken"):
        async with an_app(work) as app, app.create_task("One.", model=model, attended=False) as one:
            await one.run_until_idle()
            one._retired += [Closing(closed, "broken"), Closing(closed, "fine")]  # type: ignore[list-item]
    assert closed == ["broken", "fine"]
    async with an_app(work) as app, app.resume_task(one.id, model=model, attended=False) as task:
        assert (await task.run_until_idle()).why == "completed"  # its log was left in order
        assert [each for each in await stored(task) if isinstance(each, TaskSaved)]


@pytest.mark.shell
async def test_parallel_calls_of_one_message_at_the_end_of_the_time(tmp_path: Path) -> None:
    """S16: a limit in the middle of several calls: each of them has its result, and it goes on."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    several = turn(
        call("read_file", path="a.txt"),
        call("execute_command", command="sleep 60; true"),
        call("write_to_file", path="b.txt", content="b\n"),
    )
    async with a_task(work, several, done(), auto="all", limits=Limits(max_seconds=0.8)) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
        assert ended.why == "limit" and "0.8 s" in ended.text
        assert [each[1] for each in results(seen)] == ["done", "interrupted", "skipped"]
        await messages_of(task)
        assert (await task.run_until_idle()).why == "completed"
    assert not (work / "b.txt").exists()


@pytest.mark.parametrize("answer", ["skip", "object"])
async def test_an_answer_that_says_nothing_of_a_result_leaves_it_as_it_is(tmp_path: Path, answer: str) -> None:
    """S5: only a no, or words, take a completed task up again."""
    async with a_task(tmp_path / "work", done("First."), done("Second."), attended=True) as task:
        await task.run_until_idle()
        (asked,) = task.questions
        await task.answer(asked.question, Answer(AnswerKind(answer)))
        assert (await task.run_until_idle()).why == "completed"
        assert task.metadata.requests == 1


async def test_on_a_full_disk_an_answer_is_an_error_and_can_be_given_again(
    tiny_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: an error that says so, nothing torn; it goes on when there is room."""
    monkeypatch.setenv("TARMAC_STATE_DIR", str(tiny_disk / "state"))
    stuffing = tiny_disk / "stuffing"
    long = "x" * 20_000
    async with a_task(tmp_path / "work", done("First."), done("Second."), attended=True) as task:
        await task.run_until_idle()
        (asked,) = task.questions
        fill(stuffing)
        for _ in range(2):
            with pytest.raises(StateUnavailable, match="full"):
                await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text=long))
            assert task.questions == (asked,)
        with pytest.raises(StateUnavailable, match="full"):
            await task.say(long)
        assert (await task.run_until_idle()).text == ""  # nothing was said: it is completed, as it was
        stuffing.unlink()
        await task.answer(asked.question, Answer(AnswerKind.MESSAGE, text="short"))
        assert (await task.run_until_idle()).text == "Second."
        await messages_of(task)
        reading = read_log(task.log.folder)
    assert not reading.damage and not reading.torn
    assert [each.text for each in reading.events if isinstance(each, UserSaid)] == ["Do it.", "short"]


async def _person(task: Task) -> None:
    """Says yes to what is asked, and something different to each question of the model."""
    said = 0
    while True:
        for asked in task.questions:
            if asked.ask in RESTING:
                continue
            said += 1
            words = f"word {said} of {task.id}" if asked.ask == "followup" else ""
            try:
                await task.answer(asked.question, Answer(AnswerKind.MESSAGE if words else AnswerKind.YES, text=words))
            except BadRequest:  # it is closed already
                pass
        await asyncio.sleep(0.001)


async def _played(task: Task) -> str:
    """How it ends in the company of somebody who is not content with the first result."""
    person = asyncio.create_task(_person(task))
    try:
        ended = await task.run_until_idle()
        if ended.text == "First.":
            await task.say("not yet")
            ended = await task.run_until_idle()
        return ended.why
    finally:
        person.cancel()
        await asyncio.gather(person, return_exceptions=True)


async def test_cut_off_after_any_fact_a_task_with_a_person_goes_on_and_loses_no_word(tmp_path: Path) -> None:
    """S4: with approvals, a question, a switch of mode, a limit of trust, a result that was not accepted."""
    work = tmp_path / "work"
    work.mkdir()
    turns = [
        turn(call("write_to_file", path="a.txt", content="a\n")),
        FOLLOWUP,
        turn(call("switch_mode", mode_slug="debug"), call("list_files", path=".")),
        done("First."),
        done("Second."),
    ]
    model = write_script(tmp_path / "s.toml", *turns, *[done("Third.")] * 9)
    limits = Limits(max_auto_requests=2)
    async with asyncio.timeout(60), an_app(work) as app:
        async with app.create_task("Do it.", model=model, auto="ask", limits=limits) as task:
            assert await _played(task) == "completed"
        lines = (task.log.folder / "log.jsonl").read_bytes().splitlines(keepends=True)
        asks = [each.ask for each in read_log(task.log.folder).events if isinstance(each, QuestionAsked)]
        assert set(asks) == {"tool", "followup", "auto_approval_limit", "completion_result"}
        for count in range(3, len(lines) + 1):
            (task.log.folder / "log.jsonl").write_bytes(b"".join(lines[:count]))
            before = read_log(task.log.folder).events
            async with app.resume_task(task.id, model=model, auto="ask", limits=limits) as again:
                if again.metadata.outcome == "completed":
                    await again.say("go on")
                assert await _played(again) == "completed", count
                messages = await messages_of(again)
            told = str(messages)
            for event in before:
                if isinstance(event, UserSaid) or (isinstance(event, QuestionAnswered) and event.text):
                    assert event.text in told, (count, event)
            assert not read_log(task.log.folder).damage


@pytest.mark.parametrize("first", [True, False])
async def test_a_result_does_not_count_beside_a_call_that_failed(tmp_path: Path, first: bool) -> None:
    """S10: a task is not done by an answer whose other calls failed, in whatever order they stand."""
    fails, ends = call("read_file", path="no.txt"), call("attempt_completion", result="All good.")
    both = turn(*([ends, fails] if first else [fails, ends]))
    async with a_task(tmp_path / "work", both, done("Now."), auto="read") as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).text == "Now."
        await messages_of(task)
    told = {name: (outcome, text) for name, outcome, text in results(seen)[:2]}
    assert told["attempt_completion"][0] == "failed" and "failed" in told["attempt_completion"][1]


async def test_a_result_beside_calls_that_work_is_presented_after_them(tmp_path: Path) -> None:
    """S10: what stands behind it is done before."""
    work = tmp_path / "work"
    both = turn(call("attempt_completion", result="Done."), call("write_to_file", path="a.txt", content="a\n"))
    async with a_task(work, both, auto="edit") as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).text == "Done."
    assert [name for name, _, _ in results(seen)] == ["write_to_file", "attempt_completion"]
    assert (work / "a.txt").read_text() == "a\n"
