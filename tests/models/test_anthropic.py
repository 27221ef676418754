"""What Claude is sent, and what is made of what it sends: through the SDK, as a server sees it."""

import base64
import hashlib
import json
from typing import Any

import pytest
from tests.models.asking import CLAUDE, READ, asked, talking
from tests.models.server import Reply, claude

from tarmac.models.anthropic import request
from tarmac.models.factory import open_model
from tarmac.models.messages import (
    Blob,
    Image,
    Message,
    Part,
    Reasoning,
    StopReason,
    Text,
    ToolResult,
    ToolUse,
    Usage,
)
from tarmac.models.model_catalog import price
from tarmac.models.provider import CallDelta, Completion, ModelInfo, ModelSettings, Prompt, ReasoningDelta
from tarmac.models.remote import EncodedImages

pytestmark = pytest.mark.slow

PNG = b"\x89PNG pretend"
PICTURE = Blob(hashlib.sha256(PNG).hexdigest(), len(PNG), "image/png")
FILM = Blob("f" * 64, 5, "video/mp4")


def user(*parts: Part) -> Message:
    return Message("user", parts)


def said(*parts: Part) -> Message:
    return Message("assistant", parts)


async def sent(prompt: Prompt, **settings: Any) -> dict[str, Any]:
    """The body of the request that a prompt becomes."""
    async with talking(CLAUDE, Reply(CLAUDE.says("ok")), **settings) as (model, server):
        await asked(model, prompt, load=lambda blob: PNG)
        return server.requests[0].body


async def answer(*blocks: dict[str, object], **more: Any) -> Completion:
    async with talking(CLAUDE, Reply(claude(*blocks, **more))) as (model, _):
        found = (await asked(model))[-1]
        assert isinstance(found, Completion)
        return found


async def test_several_calls_come_in_one_message() -> None:
    reply = Reply(
        claude(
            {"type": "text", "text": ["Two."]},
            {"type": "tool_use", "id": "a", "name": "read_file", "json": ['{"pa', 'th": "ü"}']},
            {"type": "tool_use", "id": "b", "name": "list_files", "json": []},
            stop="tool_use",
        )
    )
    async with talking(CLAUDE, reply) as (model, _):
        *deltas, last = await asked(model)
    assert isinstance(last, Completion)
    two = (ToolUse("a", "read_file", '{"path": "ü"}'), ToolUse("b", "list_files", "{}"))
    assert (last.parts, last.stop) == ((Text("Two."), *two), "tool_use")
    calls = [delta for delta in deltas if isinstance(delta, CallDelta)]
    assert [(call.index, call.id, call.name) for call in calls] == [(0, "a", "read_file")] * 3 + [
        (1, "b", "list_files")
    ] * 2
    assert ["".join(call.arguments for call in calls if call.index == i) for i in (0, 1)] == [t.arguments for t in two]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "end"),
        ("tool_use", "tool_use"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("stop_sequence", "stop_sequence"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("something_new", "other"),
    ],
)
async def test_every_stop_has_a_reason(theirs: str, ours: StopReason) -> None:
    assert (await answer({"type": "text", "text": ["so"]}, stop=theirs)).stop == ours


async def test_usage_counts_what_the_cache_read_and_wrote() -> None:
    counts = {"input_tokens": 3, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 80, "output_tokens": 1}
    found = await answer({"type": "text", "text": ["so"]}, usage=counts)
    assert found.usage == Usage(input=3, output=8, cache_reads=900, cache_writes=80)


async def test_thinking_goes_back_as_it_came() -> None:
    blocks: list[dict[str, object]] = [
        {"type": "thinking", "thinking": ["One, ", "two."], "signature": ["c2ln"]},
        {"type": "redacted_thinking", "data": "opaque=="},
        {"type": "thinking", "thinking": [], "signature": ["omitted"]},
        {"type": "tool_use", "id": "a", "name": "read_file", "json": ["{}"]},
    ]
    async with talking(CLAUDE, Reply(claude(*blocks, stop="tool_use")), Reply(CLAUDE.says("ok"))) as (model, server):
        chunks = await asked(model)
        assert [each.text for each in chunks if isinstance(each, ReasoningDelta)] == ["One, ", "two.", ""]
        last = chunks[-1]
        assert isinstance(last, Completion)
        assert [part.text for part in last.parts if isinstance(part, Reasoning)] == ["One, two.", "", ""]
        result = user(ToolResult("a", (Text("ok"),)))
        await asked(model, Prompt("", (user(Text("go")), said(*last.parts), result)))
        messages: Any = server.requests[1].body["messages"]
        assert messages[1]["content"] == [
            {"type": "thinking", "thinking": "One, two.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "opaque=="},
            {"type": "thinking", "thinking": "", "signature": "omitted"},
            {"type": "tool_use", "id": "a", "name": "read_file", "input": {}},
        ]


async def test_thoughts_of_others_are_not_sent() -> None:
    foreign = (
        Reasoning("hm"),
        Reasoning("hm", '{"openai/gpt-5": {"field": "reasoning"}}'),
        Reasoning("hm", "not json"),
    )
    body = await sent(Prompt("", (user(Text("go")), said(*foreign, Text("Yes.")), user(Text("and?")))))
    assert body["messages"][1]["content"] == [{"type": "text", "text": "Yes."}]


async def test_the_cache_is_marked_after_the_system_prompt_and_the_last_two_messages() -> None:
    messages = [user(Text("1")), said(Text("2")), user(Text("3")), said(Text("4")), user(Text("5"), Text("6"))]
    body = await sent(Prompt("Be brief.", tuple(messages), (READ, READ)))
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    marked = [[block.get("cache_control") for block in message["content"]] for message in body["messages"]]
    assert marked == [[None], [None], [mark], [None], [None, mark]]
    assert all("cache_control" not in tool for tool in body["tools"])
    assert "cache_control" in (await sent(Prompt("", (user(Text("1")),), (READ, READ))))["tools"][-1]


async def test_pictures_are_shown_where_they_stand() -> None:
    shown = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()},
    }
    result = ToolResult("a", (Text("a picture:"), Image(PICTURE), Image(FILM)))
    messages = (user(Image(PICTURE), Text("look")), said(ToolUse("a", "read_file", "{}")), user(result))
    body = await sent(Prompt("", messages))
    assert body["messages"][0]["content"][0] == shown
    inner = body["messages"][2]["content"][0]["content"]
    assert inner == [
        {"type": "text", "text": "a picture:"},
        shown,
        {"type": "text", "text": "[an image (video/mp4, 5 bytes) that can't be shown]"},
    ]
    body = await sent(Prompt("", messages), images=False)
    assert "that this model can't see" in json.dumps(body)
    assert '"image"' not in json.dumps(body)


async def test_pictures_that_would_be_refused_have_a_note_in_their_place() -> None:
    """S19: one that is too large, or one too many, would end the task for ever: it comes with every request."""
    large = Blob("a" * 64, 4 << 20, "image/png")
    many = [Blob(f"{number:064}", 1000, "image/png") for number in range(25)]
    body = await sent(Prompt("", (user(Image(large)), *(user(Image(each)) for each in many))))
    blocks = [block for message in body["messages"] for block in message["content"]]
    assert [block["type"] for block in blocks] == ["text"] * 6 + ["image"] * 20
    assert "too large to show" in blocks[0]["text"]
    assert "in favour of newer ones" in blocks[1]["text"]


async def test_what_the_model_wrote_wrongly_is_shown_to_it_as_that() -> None:
    wrong = ['{"path": ', '{"n": NaN}', '{"n": 1e999}', "[1]", '{"n": ' + "[" * 9_000]
    calls = [ToolUse(str(n), "read_file", arguments) for n, arguments in enumerate(wrong)]
    results = [ToolResult(call.id, (Text("no JSON"),), failed=True) for call in calls]
    body = await sent(Prompt("", (user(Text("go")), said(*calls), user(*results))))
    assert [block["input"] for block in body["messages"][1]["content"]] == [{"INVALID_JSON": each} for each in wrong]
    assert all(block["is_error"] is True for block in body["messages"][2]["content"])


async def test_only_anthropic_itself_is_sent_what_others_refuse() -> None:
    """S6: gateways that speak this language answer 400 to fields of a tool that they do not know."""
    prompt = Prompt("", (user(Text("go")),), (READ,))
    assert set((await sent(prompt))["tools"][0]) == {"name", "description", "input_schema", "cache_control"}
    info, nothing = ModelInfo(id="anthropic/claude-opus-5"), EncodedImages({})
    for own in ({}, {"anthropic": "https://api.anthropic.com/"}):
        body: Any = request(info, ModelSettings(base_urls=own), prompt, nothing)
        assert body["tools"][0]["eager_input_streaming"] is True


async def test_all_of_an_input_may_come_at_once() -> None:
    """S6: some servers of this language send no pieces of it."""
    found = await answer({"type": "tool_use", "id": "a", "name": "x", "input": {"path": "ü"}}, stop="tool_use")
    assert found.parts == (ToolUse("a", "x", '{"path": "ü"}'),)


async def test_a_call_that_was_cut_before_its_input_has_none() -> None:
    """S6: {} would be a call that could be made."""
    found = await answer({"type": "tool_use", "id": "a", "name": "x", "json": []}, stop="max_tokens")
    assert (found.parts, found.stop) == ((ToolUse("a", "x", ""),), "max_tokens")


async def test_a_signature_may_come_with_the_thought() -> None:
    found = await answer({"type": "thinking", "thinking": "Hm.", "signature": "sig"}, {"type": "text", "text": ["So."]})
    assert found.parts[0] == Reasoning("Hm.", json.dumps({"anthropic": {"signature": "sig"}}))


async def test_limits_and_tools_are_sent() -> None:
    body = await sent(Prompt("", (user(Text("go")),), (READ,)))
    assert (body["max_tokens"], body["stream"]) == (64_000, True)
    assert body["tools"][0]["input_schema"] == READ.parameters
    assert "thinking" not in body
    assert (await sent(Prompt("", (user(Text("go")),), max_tokens=77)))["max_tokens"] == 77
    body = await sent(Prompt("", (user(Text("go")),)), reasoning="high")
    assert body["thinking"]["type"] == "adaptive"
    assert body["output_config"] == {"effort": "high"}
    assert (await sent(Prompt("", (user(Text("go")),)), reasoning="off"))["thinking"] == {"type": "disabled"}


async def test_a_lone_surrogate_does_not_stop_a_request() -> None:
    body = await sent(Prompt("\udcff", (user(Text("a\udcffb")),)))
    assert body["messages"][0]["content"][0]["text"] == "a?b"


def test_a_price_is_known_or_it_is_none() -> None:
    usage = Usage(input=15_000, output=1_000, cache_reads=80_000, cache_writes=5_000)
    assert price("anthropic/claude-sonnet-4-5", usage) == pytest.approx(0.10275)  # by the published list, by hand
    assert price("anthropic/claude-nobody-9", usage) is None
    assert price("ollama/qwen3", usage) is None
    assert price("compatible/gpt-5", usage) is None
    assert price("scripted/demo", usage) is None
    assert open_model("ollama/qwen3").info.price is None
