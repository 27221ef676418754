"""What OpenAI's Responses are sent, and what is made of what they send."""

import base64
import json
from typing import Any

import pytest
from tests.models.asking import KEY, READ, RESPONSES, asked, failed, talking
from tests.models.server import Reply, event, responses
from tests.models.test_anthropic import PICTURE, PNG, said, user

from tarmac.models.factory import open_model
from tarmac.models.messages import Image, Reasoning, StopReason, Text, ToolResult, ToolUse, Usage
from tarmac.models.openai import ChatCompletions
from tarmac.models.openai_responses import Responses
from tarmac.models.provider import CallDelta, Completion, ErrorKind, ModelSettings, Prompt, ReasoningDelta, TextDelta

pytestmark = pytest.mark.slow

WORDS: dict[str, object] = {"type": "message", "text": ["Yes."]}
SEALED: dict[str, object] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": ["One.", "Two."],
    "encrypted_content": "zzz",
    "status": "completed",
}


async def sent(prompt: Prompt, **settings: Any) -> dict[str, Any]:
    async with talking(RESPONSES, Reply(RESPONSES.says("ok")), **settings) as (model, server):
        await asked(model, prompt, load=lambda blob: PNG)
        assert server.requests[0].path == "/v1/responses"
        return server.requests[0].body


async def answer(*items: dict[str, object], **more: Any) -> Completion:
    async with talking(RESPONSES, Reply(responses(*items, **more))) as (model, _):
        found = (await asked(model))[-1]
        assert isinstance(found, Completion)
        return found


def test_only_openai_itself_is_asked_so() -> None:
    keys = {"openai": KEY}
    assert isinstance(open_model("openai/gpt-6-sol", ModelSettings(keys=keys)), Responses)
    elsewhere = ModelSettings(keys=keys, base_urls={"openai": "https://proxy.example/v1"})
    assert isinstance(open_model("openai/gpt-6-sol", elsewhere), ChatCompletions)
    assert isinstance(
        open_model("openrouter/openai/gpt-6-sol", ModelSettings(keys={"openrouter": KEY})), ChatCompletions
    )


async def test_several_calls_come_in_one_message() -> None:
    items: list[dict[str, object]] = [
        {"type": "message", "text": ["Two", "."]},
        {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": ['{"pa', 'th": "ü"}']},
        {"type": "function_call", "call_id": "b", "name": "list_files", "arguments": []},
        {"type": "function_call", "call_id": "c", "name": "whole", "arguments": "{}"},
    ]
    async with talking(RESPONSES, Reply(responses(*items))) as (model, _):
        *deltas, last = await asked(model)
    assert isinstance(last, Completion)
    calls = (ToolUse("a", "read_file", '{"path": "ü"}'), ToolUse("b", "list_files", "{}"), ToolUse("c", "whole", "{}"))
    assert (last.parts, last.stop) == ((Text("Two."), *calls), "tool_use")
    assert deltas[:2] == [TextDelta("Two"), TextDelta(".")]
    pieces = [delta for delta in deltas if isinstance(delta, CallDelta)]
    assert ["".join(p.arguments for p in pieces if p.index == i) for i in range(3)] == [c.arguments for c in calls]


@pytest.mark.parametrize(
    ("more", "ours"),
    [
        ({}, "end"),
        ({"end": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_tokens"),
        ({"end": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refusal"),
        ({"end": "incomplete", "incomplete_details": {"reason": "steered"}}, "other"),
    ],
)
async def test_every_stop_has_a_reason(more: dict[str, Any], ours: StopReason) -> None:
    assert (await answer(WORDS, **more)).stop == ours


async def test_a_refusal_is_said_and_told() -> None:
    found = await answer({"type": "message", "refusal": ["I will ", "not."]})
    assert (found.parts, found.stop) == ((Text("I will not."),), "refusal")


async def test_usage_counts_what_the_cache_read_and_wrote() -> None:
    details = {"cached_tokens": 900, "cache_write_tokens": 80}
    found = await answer(WORDS, usage={"input_tokens": 1000, "output_tokens": 8, "input_tokens_details": details})
    assert found.usage == Usage(input=20, output=8, cache_reads=900, cache_writes=80)


async def test_sealed_thoughts_go_back_as_they_came() -> None:
    use: dict[str, object] = {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": ["{}"]}
    open_: dict[str, object] = {"type": "reasoning", "id": "rs_2", "summary": []}
    async with talking(RESPONSES, Reply(responses(SEALED, use, open_)), Reply(RESPONSES.says("ok"))) as (model, server):
        chunks = await asked(model)
        assert "".join(each.text for each in chunks if isinstance(each, ReasoningDelta)) == "One.\n\nTwo."
        last = chunks[-1]
        assert isinstance(last, Completion)
        await asked(model, Prompt("", (user(Text("go")), said(*last.parts), user(ToolResult("a", (Text("ok"),))))))
        items: Any = server.requests[1].body["input"]
        summary = [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]
        assert items == [
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "zzz"},
            {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "ok"},
        ]


async def test_thoughts_of_others_are_not_sent() -> None:
    thought = Reasoning("hm", json.dumps({"anthropic": {"signature": "x"}}))
    body = await sent(Prompt("", (user(Text("go")), said(thought, Text("Yes.")), user(Text("and?")))))
    assert body["input"][1] == {"role": "assistant", "content": "Yes."}


async def test_pictures_are_shown_where_they_stand() -> None:
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    shown = {"type": "input_image", "image_url": url, "detail": "auto"}
    result = ToolResult("a", (Text("see:"), Image(PICTURE)))
    body = await sent(Prompt("", (user(Image(PICTURE)), said(ToolUse("a", "read_file", "{")), user(result))))
    assert body["input"][0]["content"] == [shown]
    assert body["input"][1]["arguments"] == '{"INVALID_JSON": "{"}'
    assert body["input"][2]["output"] == [{"type": "input_text", "text": "see:"}, shown]


async def test_limits_tools_and_effort_are_sent_and_nothing_is_stored() -> None:
    body = await sent(Prompt("Be brief.", (user(Text("go")),), (READ,), 77), reasoning="high")
    assert (body["instructions"], body["max_output_tokens"], body["store"]) == ("Be brief.", 77, False)
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["tools"][0]["parameters"] == READ.parameters
    body = await sent(Prompt("", (user(Text("go")),)))
    assert not {"reasoning", "max_output_tokens", "tools", "instructions"} & set(body)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("rate_limit_exceeded", "rate_limit", True),
        ("server_error", "server", True),
        ("context_length_exceeded", "too_long", False),
        ("image_too_large", "bad_request", False),
        ("insufficient_quota", "rate_limit", False),
    ],
)
async def test_a_failure_within_is_told_by_kind(code: str, kind: ErrorKind, retryable: bool) -> None:
    told = responses(WORDS, end="failed", error={"code": code, "message": "oh dear"})
    bare = [*responses(WORDS)[:-1], event({"type": "error", "code": code, "message": "oh dear"}, "error")]
    for events in (told, bare):
        error = await failed(RESPONSES, Reply(events))
        assert (error.kind, error.retryable, error.received) == (kind, retryable, (Text("Yes."),))
        assert "oh dear" in error.what
