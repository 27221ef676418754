"""The SDKs against a real server: answers, and everything that can go wrong with one."""

import asyncio
import contextlib
import json
import logging
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from unittest.mock import ANY

import pytest
from tests.models.asking import ALL, HELLO, KEY, Dialect, asked, failed, nothing, opened, talking
from tests.models.server import SSE, Reply, event, refusal

from tarmac.errors import BadRequest
from tarmac.models.factory import open_model
from tarmac.models.failures import retry_after
from tarmac.models.messages import Message, Text
from tarmac.models.provider import Completion, ErrorKind, Model, ModelError, ModelSettings, TextDelta

pytestmark = pytest.mark.slow


def begun(dialect: Dialect) -> list[bytes]:
    """The beginning of an answer, until it has said "Hel"."""
    events = dialect.says("Hel", "lo")
    return events[: next(i for i, each in enumerate(events) if b'"Hel"' in each) + 1]


@pytest.fixture(autouse=True)
def no_complaints(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing goes wrong behind our back: asyncio would log it."""
    yield
    assert [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR] == []


every = pytest.mark.parametrize("dialect", ALL, ids=str)


@every
async def test_text_comes_in_pieces_and_then_whole(dialect: Dialect) -> None:
    async with talking(dialect, Reply(dialect.says("Hel", "lo")), Reply(dialect.says("again"))) as (model, server):
        *deltas, answer = await asked(model)
        assert deltas == [TextDelta("Hel"), TextDelta("lo")]
        assert isinstance(answer, Completion)
        assert (answer.parts, answer.stop) == ((Text("Hello"),), "end")
        assert (await asked(model))[0] == TextDelta("again")
        assert [request.body["model"] for request in server.requests] == [dialect.model] * 2
        assert KEY in (server.requests[0].headers.get("x-api-key") or server.requests[0].headers["authorization"])


@every
async def test_bytes_may_be_cut_anywhere(dialect: Dialect) -> None:
    whole = b"".join(dialect.says("Grü", "ße 🎉"))
    async with talking(dialect, Reply([whole[i : i + 1] for i in range(len(whole))])) as (model, _):
        answer = (await asked(model))[-1]
        assert isinstance(answer, Completion)
        assert answer.parts == (Text("Grüße 🎉"),)


REFUSALS: list[tuple[int, dict[str, str], ErrorKind, bool]] = [
    (400, {"message": "no such field"}, "bad_request", False),
    (400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}, "too_long", False),
    (400, {"message": "This model's maximum context length is 8192 tokens"}, "too_long", False),
    (400, {"message": "exceeds the available context size", "type": "exceed"}, "too_long", False),
    (401, {"message": "invalid x-api-key"}, "auth", False),
    (402, {"message": "Insufficient Balance"}, "bad_request", False),
    (403, {"message": "may not"}, "auth", False),
    (404, {"message": "model: nope"}, "not_found", False),
    (408, {"message": "late"}, "server", True),
    (413, {"message": "request too large"}, "too_long", False),
    (422, {"message": "what?"}, "bad_request", False),
    (429, {"message": "slow down"}, "rate_limit", True),
    (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, "rate_limit", False),
    (500, {"message": "oh"}, "server", True),
    (503, {"message": "loading the model"}, "overloaded", True),
    (529, {"type": "overloaded_error", "message": "Overloaded"}, "overloaded", True),
]


@every
async def test_a_refusal_is_told_by_kind(dialect: Dialect) -> None:
    async with talking(dialect, *(refusal(status, said) for status, said, _, _ in REFUSALS)) as (model, _):
        for status, said, kind, retryable in REFUSALS:
            with pytest.raises(ModelError) as caught:
                await asked(model)
            error = caught.value
            assert (error.kind, error.status, error.retryable, error.received) == (kind, status, retryable, ())
            assert said["message"] in error.what
            assert str(status) in error.what


@every
async def test_nobody_tries_twice_but_who_asked(dialect: Dialect) -> None:
    async with talking(dialect, refusal(500, {"message": "oh"}), refusal(529, {"message": "oh"})) as (model, server):
        for count in (1, 2):
            with pytest.raises(ModelError):
                await asked(model)
            assert len(server.requests) == count


@every
async def test_the_wait_a_provider_asks_for_is_told(dialect: Dialect) -> None:
    slow = {"message": "slow down"}
    assert (await failed(dialect, refusal(429, slow, retry_after="7"))).retry_after == 7.0
    assert (await failed(dialect, refusal(429, slow, retry_after_ms="1500"))).retry_after == 1.5
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    found = (await failed(dialect, refusal(429, slow, retry_after=date))).retry_after
    assert found is not None
    assert 50 < found <= 60
    assert (await failed(dialect, refusal(429, slow))).retry_after is None
    final = await failed(dialect, refusal(500, slow, x_should_retry="false"))
    assert not final.retryable


def test_strange_waits_are_read_or_left() -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    assert retry_after({"Retry-After": "Mon, 16 Nov 2026 00:00:09 GMT"}, now=now) == 9.0
    assert retry_after({"retry-after": "Sun, 15 Nov 2026 00:00:00 GMT"}, now=now) == 0.0
    assert retry_after({"retry-after": "-3"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "inf"}) is None
    assert retry_after({}, "Please try again in 1.2s. Thanks") == 1.2
    assert retry_after({}, "Please try again in 300ms.") == 0.3
    assert retry_after({}, '"retryDelay": "34s"') == 34.0
    assert retry_after({}, "Please try again in 7m12.5s.") == 432.5
    assert retry_after({}, "Please try again in 1h2m3s") == 3723.0
    assert retry_after({}, "Please try again in 2m.") == 120.0
    assert retry_after({}, "Please try again in a moment") is None


@every
async def test_an_answer_that_is_cut_says_what_had_come(dialect: Dialect) -> None:
    events = dialect.says("Hel", "lo")
    until = next(i for i, each in enumerate(events) if b'"lo"' in each) + 1
    for reply in (Reply(events[:until], cut=True), Reply(events[:until])):  # broken, and ended as if all were well
        error = await failed(dialect, reply)
        assert (error.kind, error.retryable, error.received) == ("cut", True, (Text("Hello"),))
    assert (await failed(dialect, Reply([], cut=True))).kind in ("cut", "connection")
    assert (await failed(dialect, Reply([]))).kind == "cut"


@every
async def test_silence_ends_by_itself(dialect: Dialect) -> None:
    error = await failed(dialect, Reply(begun(dialect), hold=True), read_timeout=0.2)
    assert (error.kind, error.retryable, error.received) == ("connection", True, (Text("Hel"),))
    error = await failed(dialect, Reply([], hold=True), read_timeout=0.2)
    assert (error.kind, error.received) == ("connection", ())
    paced = [piece for each in dialect.says("Hel", "lo") for piece in (0.01, each)]  # slow, but never silent for long
    async with talking(dialect, Reply(paced), read_timeout=0.5) as (model, _):
        assert len(await asked(model)) == 3


@every
async def test_signs_of_life_alone_end_by_themselves(dialect: Dialect) -> None:
    """S6: comments and pings keep a connection, and are no answer."""
    pings: list[bytes | float] = [b": still here\n\n", event({"type": "ping"}, "ping"), 0.01] * 200
    if dialect.name or dialect.provider != "anthropic":
        pings = [b": still here\n\n", 0.01] * 200
    began = time.monotonic()
    error = await failed(dialect, Reply([*begun(dialect), *pings], hold=True), read_timeout=0.05)
    assert (error.kind, error.retryable, error.received) == ("connection", True, (Text("Hel"),))
    assert time.monotonic() - began < 2


@every
async def test_an_answer_without_end_is_ended(dialect: Dialect) -> None:
    """S6: as small models do that go round in their own words."""
    again = begun(dialect)[-1].replace(b'"Hel"', b'"' + b"Hel" * 100_000 + b'"')
    async with talking(dialect, Reply([*begun(dialect), *[again] * 20], hold=True)) as (model, _):
        last = (await asked(model))[-1]
        assert isinstance(last, Completion)
        assert (last.stop, 4_000_000 < len(Message("assistant", last.parts).text) < 5_000_000) == ("max_tokens", True)


@every
@pytest.mark.parametrize("nonsense", ["{nope", "[]", "7"])
async def test_nonsense_is_told_as_nonsense(dialect: Dialect, nonsense: str) -> None:
    error = await failed(dialect, Reply([*begun(dialect), event(nonsense, "content_block_delta")]))
    assert (error.kind, error.retryable, error.received) == ("malformed", True, (Text("Hel"),))


@every
async def test_a_page_in_place_of_a_stream_is_told(dialect: Dialect) -> None:
    page = b"<html><head><title>Log in</title></head><body>Welcome</body></html>"
    error = await failed(dialect, Reply([page], content_type="text/html"))
    assert (error.kind, error.retryable) == ("malformed", False)
    assert "text/html" in error.what
    assert "base URL" in error.hint
    error = await failed(dialect, Reply([page], status=502, content_type="text/html"))
    assert (error.kind, error.status) == ("server", 502)
    assert "<" not in error.what


@every
async def test_what_is_said_in_place_of_a_stream_is_told(dialect: Dialect) -> None:
    said = json.dumps({"error": {"message": "the model is being loaded"}}).encode()
    error = await failed(dialect, Reply([said], content_type="application/json"))
    assert (error.kind, error.retryable) == ("malformed", False)
    assert "the model is being loaded" in error.what
    async with talking(dialect, Reply(dialect.says("ok"), content_type="Text/Event-Stream")) as (model, _):
        assert (await asked(model))[-1] == Completion((Text("ok"),), "end", ANY)


@every
async def test_an_error_inside_a_stream_is_told_by_kind(dialect: Dialect) -> None:
    late = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")
    error = await failed(dialect, Reply([*begun(dialect), late]))
    assert (error.kind, error.status, error.received) == ("overloaded", None, (Text("Hel"),))
    assert "Overloaded" in error.what


@every
async def test_nobody_there_is_told_at_once(dialect: Dialect) -> None:
    model = opened(dialect, "http://127.0.0.1:1")
    with pytest.raises(ModelError) as caught:
        await asked(model)
    await model.aclose()
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == ("connection", None, True)
    assert "127.0.0.1:1" in caught.value.what
    assert "Connection refused" in caught.value.what


@every
async def test_a_server_that_says_nothing_at_all_is_left(dialect: Dialect) -> None:
    async with mute(accepts=True) as url:
        error = await unanswered(opened(dialect, url, read_timeout=0.2))
    assert (error.kind, error.retryable) == ("connection", True)


async def test_a_place_that_does_not_even_accept_is_left() -> None:
    async with mute(accepts=False) as url:
        error = await unanswered(opened(ALL[0], url, connect_timeout=0.2))
    assert (error.kind, error.retryable) == ("connection", True)


async def unanswered(model: Model) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await asyncio.wait_for(asked(model), 10)
    await model.aclose()
    return caught.value


@asynccontextmanager
async def mute(*, accepts: bool) -> AsyncIterator[str]:
    """A port where nobody answers; its queue is full where it does not accept."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(8 if accepts else 0)
        for _ in range(0 if accepts else 3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@every
async def test_closing_the_stream_closes_the_connection(dialect: Dialect) -> None:
    async with talking(dialect, Reply(begun(dialect), hold=True)) as (model, server):
        async with aclosing(model.stream(HELLO, load=nothing)) as stream:
            assert await anext(stream) == TextDelta("Hel")
        await asyncio.wait_for(server.gone.wait(), 1)


@every
async def test_cancelling_who_waits_closes_the_connection(dialect: Dialect) -> None:
    for pieces in ([], begun(dialect)):  # before the first byte, and in the middle
        async with talking(dialect, Reply(pieces, hold=True)) as (model, server):
            waiting = asyncio.create_task(asked(model))
            await asyncio.wait_for(server.sent.wait(), 10)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(waiting, 1)
            await asyncio.wait_for(server.gone.wait(), 1)


@every
async def test_closing_a_model_ends_what_streams_and_may_be_done_twice(dialect: Dialect) -> None:
    async with talking(dialect, Reply(begun(dialect), hold=True)) as (model, server):
        stream = model.stream(HELLO, load=nothing)
        assert await anext(stream) == TextDelta("Hel")
        await model.aclose()
        await model.aclose()
        await asyncio.wait_for(server.gone.wait(), 1)
        with pytest.raises(ModelError) as caught:
            await asyncio.wait_for(anext(stream), 1)
        assert (caught.value.kind, caught.value.received) == ("cut", (Text("Hel"),))


@every
async def test_two_requests_run_beside_each_other(dialect: Dialect) -> None:
    replies = [Reply([0.05, *dialect.says("one")]), Reply([0.05, *dialect.says("one")])]
    async with talking(dialect, *replies) as (model, server):
        first, second = await asyncio.gather(asked(model), asked(model))
        assert first == second
        assert len(server.requests) == 2


@every
async def test_a_key_is_in_no_error_and_no_log(dialect: Dialect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    leak = f"Incorrect API key provided: {KEY}. Bearer {KEY}"
    replies = [
        *(refusal(status, {"message": leak, "code": leak}) for status in (400, 401, 403, 404, 429, 500, 529)),
        Reply([leak.encode()], 500, content_type="text/html"),
        Reply([leak.encode()], content_type="text/html"),
        Reply([event(leak, "content_block_delta")]),
        Reply([event({"type": "error", "error": {"message": leak}}, "error")]),
        Reply([event({"type": leak, "choices": leak}, "message_start")]),
        Reply([], 302, {"location": "http://127.0.0.1:1"}),
        Reply([b"x"], 200, {"content-encoding": "gzip"}, SSE),
        Reply(dialect.says("Hel")[:3], cut=True),
    ]
    async with talking(dialect, *replies) as (model, _):
        for _ in replies:
            with pytest.raises(ModelError) as caught:
                await asked(model)
            error = caught.value
            shown = [str(error), repr(error), *traceback.format_exception(error), repr(vars(error)), repr(error.args)]
            assert error.__cause__ is None
            assert error.__context__ is None
            assert KEY not in "\n".join(shown)
        assert KEY not in repr(model)
        assert KEY not in repr(model.info)
    assert KEY not in caplog.text
    assert KEY not in repr(ModelSettings(keys={"openai": KEY}))


@every
async def test_a_redirect_does_not_take_the_key_elsewhere(dialect: Dialect) -> None:
    async with talking(dialect, Reply(dialect.says("mine now"))) as (_, other):
        error = await failed(dialect, Reply([], 307, {"location": f"{other.url}/v1"}))
        assert (error.kind, error.status, error.retryable) == ("not_found", 307, False)
        assert other.requests == []


async def test_a_password_in_a_base_url_is_not_told() -> None:
    settings = ModelSettings(base_urls={"ollama": "http://me:geheim@127.0.0.1:1/v1"})
    model = open_model("ollama/x", settings)
    with pytest.raises(ModelError) as caught:
        await asked(model)
    await model.aclose()
    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(settings)
    assert "127.0.0.1:1" in str(caught.value)


def test_a_model_that_can_not_be_opened_says_why() -> None:
    with pytest.raises(ModelError, match="unknown provider 'nobody'") as caught:
        open_model("nobody/x")
    assert "anthropic" in caught.value.hint
    for spec, variable in (("anthropic/claude-opus-5", "ANTHROPIC_API_KEY"), ("openrouter/a/b", "OPENROUTER_API_KEY")):
        with pytest.raises(ModelError) as caught:
            open_model(spec)
        assert (caught.value.kind, caught.value.hint) == ("auth", f"set {variable}")
    with pytest.raises(ModelError, match="the address of compatible/x is not set"):
        open_model("compatible/x")
    with pytest.raises(BadRequest, match="does not name a model"):
        open_model("ollama")
    assert open_model("ollama/qwen3:8b").info.id == "ollama/qwen3:8b"  # needs no key


def test_opening_a_model_imports_no_sdk() -> None:
    code = """
import sys
import tarmac.models.provider, tarmac.models.scripted, tarmac.models.model_catalog, tarmac.models.factory
from tarmac.models.factory import open_model
from tarmac.models.provider import ModelSettings
settings = ModelSettings(keys={"anthropic": "k", "openai": "k"})
models = [open_model(spec, settings) for spec in ("anthropic/claude-opus-5", "openai/gpt-5", "ollama/x")]
assert models[0].info.context_window == 1_000_000
heavy = {"anthropic", "openai", "genai_prices", "httpx2", "pydantic"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_warming_imports_the_sdk_in_a_thread() -> None:
    code = """
import sys, threading
from tarmac.models.factory import warm
warm("openai/gpt-5")
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join(20)
assert "openai" in sys.modules and "genai_prices" in sys.modules and "anthropic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
