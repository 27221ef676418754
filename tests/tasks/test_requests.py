"""Asking the model: retries that one can see, limits that hold, and words of a person meanwhile."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.models.server import Reply, gpt, serving
from tests.tasks.engine import Seen, a_task, call, done, messages_of, results, turn, write_script

from tarmac.app import open_app
from tarmac.config import Config
from tarmac.errors import BadRequest
from tarmac.models.messages import Text
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.events import (
    MessageDelivered,
    MessageId,
    MessageQueued,
    MessageWithdrawn,
    ModelSaid,
    ModelSwitched,
    ModelTold,
    RequestFailed,
    RequestId,
    RequestStarted,
    TaskCompleted,
    UserSaid,
)
from tarmac.tasks.limits import Limits
from tarmac.tasks.signals import RetryCounted, TextStreamed

pytestmark = pytest.mark.slow

BUSY = {"kind": "overloaded", "what": "too busy", "status": 529}
PRICE = {"input": 3.0, "output": 15.0}


async def test_a_request_that_fails_is_tried_again_with_a_countdown(tmp_path: Path) -> None:
    """S6: visible, from one second up."""
    async with a_task(tmp_path / "work", turn(error=BUSY), done()) as task:
        seen = Seen(task)
        began = time.monotonic()
        assert (await task.run_until_idle()).why == "completed"
        took = time.monotonic() - began
    assert 1.0 <= took < 3
    (failed,) = [each for each in seen.all if isinstance(each, RequestFailed)]
    assert (failed.what, failed.status) == ("too busy", 529)
    assert failed.retry_in is not None and 1.0 <= failed.retry_in <= 1.25
    assert [each.attempt for each in seen.all if isinstance(each, RequestStarted)] == [1, 2]
    counted = [each.seconds for each in seen.all if isinstance(each, RetryCounted)]
    assert counted[0] == 2.0 and counted[-1] == 1.0


async def test_what_the_provider_asks_for_is_waited_and_can_be_stopped(tmp_path: Path) -> None:
    """S6: Retry-After is honoured; a countdown ends with the task."""
    limited = {"kind": "rate_limit", "what": "slow down", "status": 429, "retry_after": 77}
    async with a_task(tmp_path / "work", turn(error=limited), done()) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        counted = await seen.until(lambda each: isinstance(each, RetryCounted))
        assert isinstance(counted, RetryCounted) and 77 <= counted.seconds <= 78
        task.cancel()
        began = time.monotonic()
        assert (await run).why == "interrupted"
        assert time.monotonic() - began < 1
        await messages_of(task)


@pytest.mark.parametrize("kind", ["auth", "bad_request", "not_found", "too_long"])
async def test_what_can_not_help_is_not_tried_again(tmp_path: Path, kind: str) -> None:
    """S6: no retry of other errors."""
    async with a_task(tmp_path / "work", turn(error={"kind": kind, "what": "no"}), done()) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert (ended.why, ended.text) == ("failed", "no")
    assert len([each for each in seen.all if isinstance(each, RequestStarted)]) == 1


async def test_after_some_failures_a_person_is_asked(tmp_path: Path) -> None:
    """S6: api_req_failed; a yes tries again, with the count anew."""
    broken = {"kind": "bad_request", "what": "no such thing"}
    async with a_task(tmp_path / "work", turn(error=broken), turn(error=broken), done(), attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        for n in range(2):
            asked = await seen.question(after=len(seen.all) if n else 0)
            assert (asked.ask, asked.text) == ("api_req_failed", "no such thing\nAsk again?")
            await task.answer(asked.question, Answer(AnswerKind.YES))
        assert (await run).why == "completed"


async def test_a_person_may_give_a_request_up(tmp_path: Path) -> None:
    async with a_task(tmp_path / "work", turn(error={"kind": "auth", "what": "no key"}), attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await task.answer((await seen.question()).question, Answer(AnswerKind.NO))
        assert (await run).why == "failed"


async def test_limits_on_turns_and_requests_end_in_order_and_are_counted_anew(tmp_path: Path) -> None:
    """S16: resumable."""
    looks = [turn(call("list_files", path="."), call("read_file", path=f"{n}.txt")) for n in range(9)]
    async with a_task(tmp_path / "work", *looks, limits=Limits(max_turns=2, max_repetitions=0)) as task:
        seen = Seen(task)
        for n in (2, 4):
            ended = await task.run_until_idle()
            assert (ended.why, ended.text) == ("limit", "the limit of 2 turns is reached")
            assert len([each for each in seen.all if isinstance(each, ModelSaid)]) == n
        await messages_of(task)


async def test_a_limit_on_requests_counts_those_that_fail(tmp_path: Path) -> None:
    """P7: limits on the number of requests."""
    async with a_task(tmp_path / "work", turn(error=BUSY), turn(error=BUSY), limits=Limits(max_requests=1)) as task:
        assert (await task.run_until_idle()).text == "the limit of 1 request is reached"


async def test_a_limit_on_cost_ends_the_task_after_it_is_spent(tmp_path: Path) -> None:
    """S16: cost by request and task."""
    usage = {"input": 10_000, "output": 10_000}
    looks = [turn(call("list_files", path="."), usage=usage) for _ in range(5)]
    limits = Limits(max_cost=0.3, max_repetitions=0)
    async with a_task(tmp_path / "work", *looks, limits=limits, price=PRICE) as task:
        ended = await task.run_until_idle()
        assert (ended.why, ended.text) == ("limit", "the limit of $0.3 is reached: $0.3600 were spent")
        assert task.metadata.total_cost == pytest.approx(0.36)


async def test_with_a_limit_on_cost_a_model_without_a_price_is_not_asked(tmp_path: Path) -> None:
    """S16: the task stops before it starts, and says so."""
    async with a_task(tmp_path / "work", done(), limits=Limits(max_cost=1.0)) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert ended.why == "limit" and "is not known" in ended.text
    assert not [each for each in seen.all if isinstance(each, RequestStarted)]


async def test_a_model_without_a_price_is_not_asked_after_a_switch_either(tmp_path: Path) -> None:
    """S16: the limit holds for whichever model is asked."""
    free = write_script(tmp_path / "other.toml", done(), name="other")
    first = turn(call("list_files", path="."), usage={"input": 10, "output": 10})
    async with a_task(tmp_path / "work", first, done(), limits=Limits(max_cost=1.0, max_turns=1), price=PRICE) as task:
        assert (await task.run_until_idle()).text == "the limit of 1 turn is reached"
        await task.switch_model(free)
        ended = await task.run_until_idle()
        assert ended.why == "limit" and "scripted/other is not known" in ended.text


async def test_words_said_meanwhile_are_queued_and_delivered_after_the_calls(tmp_path: Path) -> None:
    """S5: shown as queued, delivered in order, unless they are taken back."""
    async with a_task(
        tmp_path / "work", turn(call("list_files", path="."), text="x", delay=0.2), done(), attended=True
    ) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, RequestStarted))
        first, second, third = [await task.say(text) for text in ("One.", "Two.", "Three.")]
        assert first and second and third
        assert [each.text for each in task.queue] == ["One.", "Two.", "Three."]
        await task.withdraw(second)
        assert (await run).why == "completed"
        assert task.queue == ()
        with pytest.raises(BadRequest, match="not queued"):
            await task.withdraw(first)
        messages = await messages_of(task)
    kinds = [type(each) for each in seen.all if isinstance(each, MessageQueued | MessageDelivered | MessageWithdrawn)]
    assert kinds == [MessageQueued] * 3 + [MessageWithdrawn] + [MessageDelivered] * 2
    words = [part.text for part in messages[2].parts if isinstance(part, Text)]
    assert words[:2] == ["One.", "Three."]


async def test_words_said_during_an_answer_in_plain_text_are_answered_next(tmp_path: Path) -> None:
    """S5: nobody has to say anything more."""
    turns = turn(text="It is blue. " * 20, pace=0.005), turn(text="Green.")
    async with a_task(tmp_path / "work", *turns, attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, TextStreamed))
        assert await task.say("And the other?")
        assert ((await run).text, task.queue) == ("Green.", ())


async def test_words_said_before_the_result_keep_the_task_from_being_done(tmp_path: Path) -> None:
    """S5: what the person said while the model presented its result is its answer."""
    async with a_task(
        tmp_path / "work", turn(call("attempt_completion", result="Done."), delay=0.2), done("Really.")
    ) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, RequestStarted))
        await task.say("Also b.")
        assert (await run).text == "Really."
        assert len(results(seen)) == 2


async def test_words_said_as_the_task_completes_are_not_lost(tmp_path: Path) -> None:
    """S5: delivered in order, whenever they come."""
    async with a_task(tmp_path / "work", done("First."), done("Second.")) as task:

        def hear(_: int | None, thing: object) -> None:
            if isinstance(thing, TaskCompleted) and thing.result == "First.":
                said.append(asyncio.ensure_future(task.say("One more thing.")))

        said: list[asyncio.Future[MessageId | None]] = []
        task.subscribe(hear)
        ended = await task.run_until_idle()
        if await said[0] is None or ended.text == "First.":  # it came after the end: then it is for the next run
            ended = await task.run_until_idle()
        assert ended.text == "Second."
        assert task.queue == ()


@pytest.mark.parametrize("how", ["said", "answered"])
async def test_what_was_queued_is_delivered_before_what_is_said_later(tmp_path: Path, how: str) -> None:
    """S5: in order, also when the run ended before it was delivered, or a question was answered meanwhile."""
    broken = {"kind": "bad_request", "what": "no"}
    turns = [turn(text="x", delay=0.3, error=broken), done()]
    async with a_task(tmp_path / "work", *turns, attended=True) as task:
        seen = Seen(task)
        run = asyncio.create_task(task.run_until_idle())
        await seen.until(lambda each: isinstance(each, RequestStarted))
        assert await task.say("One.") and await task.say("Two.")
        question = await seen.question()
        if how == "answered":
            await task.answer(question.question, Answer(AnswerKind.MESSAGE, text="Three."))
            assert (await run).why == "completed"
        else:
            task.cancel()
            assert (await run).why == "interrupted"
            assert [each.text for each in task.queue] == ["One.", "Two."]
            assert await task.say("Three.") is None
            assert not task.queue
            assert (await task.run_until_idle()).why == "completed"
        messages = await messages_of(task)
    words = [part.text for part in messages[0].parts if isinstance(part, Text)]
    assert [each for each in words if each in ("One.", "Two.", "Three.")] == ["One.", "Two.", "Three."]


async def test_an_answer_that_nobody_counted_is_estimated(tmp_path: Path) -> None:
    """S16: a server that tells no usage costs something nevertheless, and fills the window."""
    answer = {"name": "attempt_completion", "arguments": '{"result": "It is done, all of it."}'}
    pieces = gpt({"tool_calls": [{"index": 0, "id": "a", "function": answer}]}, finish="tool_calls")
    work = tmp_path / "work"
    work.mkdir()
    async with serving(Reply(pieces)) as server:
        settings = Config(
            workspace=work,
            user_folder=tmp_path / "user",
            base_urls={"compatible": f"{server.url}/v1"},
            values={"models.price_input": 3.0, "models.price_output": 15.0},
        )
        async with (
            open_app(settings) as app,
            app.create_task("Do it.", model="compatible/x", attended=False, limits=Limits(max_cost=1)) as task,
        ):
            seen = Seen(task)
            assert (await task.run_until_idle()).why == "completed"
            await asyncio.sleep(0)
    (said,) = [each for each in seen.all if isinstance(each, ModelSaid)]
    assert said.estimated and said.usage.input > 500 and said.usage.output > 5
    assert said.cost is not None and said.cost > 0.001


async def test_a_completed_task_runs_again_only_after_new_words(tmp_path: Path) -> None:
    """S4: resume_completed_task."""
    async with a_task(tmp_path / "work", done("First."), done("Second.")) as task:
        assert (await task.run_until_idle()).text == "First."
        assert (await task.run_until_idle()).why == "completed"
        assert task.metadata.requests == 1
        assert await task.say("Once more.") is None
        assert (await task.run_until_idle()).text == "Second."


async def test_run_waits_for_words_when_it_is_the_persons_turn(tmp_path: Path) -> None:
    async with a_task(tmp_path / "work", done(), done()) as task:
        said = ModelSaid(at=0, request=RequestId("r"), parts=(Text("Hi."),), stop="end", usage=task.metadata.usage)
        await task.log.append(said)  # as after an answer that needs none
        run = asyncio.create_task(task.run())
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert not run.done()
        await task.say("Now.")
        assert (await run).why == "completed"


async def test_the_environment_comes_with_each_turn_after_the_persons_words(tmp_path: Path) -> None:
    """S8: directory, files at the first turn, time, mode; S21: files that somebody else changed."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    change = turn(call("execute_command", command="echo b > a.txt; echo x > .hidden"))
    async with a_task(work, turn(call("read_file", path="a.txt")), change, done(), auto="all") as task:
        seen = Seen(task)
        await task.run_until_idle()
        first = (await messages_of(task))[0]
    assert [type(part) for part in first.parts] == [Text, Text]
    told = [each.text for each in seen.all if isinstance(each, ModelTold) and each.about == "environment"]
    assert len(told) == 3
    assert "a.txt" in told[0] and str(work) in told[0]
    assert "a.txt" not in told[1] and "a.txt" in told[2]


async def test_the_model_can_be_switched_between_turns(tmp_path: Path) -> None:
    """S16: each request says which model it went to."""
    other = write_script(tmp_path / "other.toml", done("From the other."), name="other")
    async with a_task(tmp_path / "work", turn(error={"kind": "auth", "what": "no"}), name="one") as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "failed"
        await task.switch_model(other)
        await task.switch_mode("ask")
        assert (await task.run_until_idle()).text == "From the other."
    asked = [each.model for each in seen.all if isinstance(each, RequestStarted)]
    assert asked == ["scripted/one", "scripted/other"]
    assert [each.model for each in seen.all if isinstance(each, ModelSwitched)] == [other]


async def test_pictures_are_said_with_words(tmp_path: Path) -> None:
    """S19: text and images."""
    async with a_task(tmp_path / "work", done(), done()) as task:
        seen = Seen(task)
        await task.run_until_idle()
        await task.say("Like this:", [(b"\x89PNG", "image/png")])
        await task.run_until_idle()
        (said,) = [each for each in seen.all if isinstance(each, UserSaid)]
        assert [(each.media_type, task.log.blobs.read(each.sha256)) for each in said.images] == [
            ("image/png", b"\x89PNG")
        ]
