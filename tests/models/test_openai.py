"""What an OpenAI-compatible server is sent, and what is made of what such servers send."""

import base64
import json
import time
from typing import Any

import pytest
from tests.models.asking import GPT, HELLO, READ, Dialect, asked, failed, talking
from tests.models.server import Reply, call, chunk, event, gpt, refusal
from tests.models.test_anthropic import PICTURE, PNG, said, user

from tarmac.models.completion_builder import CompletionBuilder
from tarmac.models.messages import Image, Reasoning, StopReason, Text, ToolResult, ToolUse, Usage
from tarmac.models.openai import ChatStream
from tarmac.models.provider import CallDelta, Completion, ModelError, Prompt, ReasoningDelta

pytestmark = pytest.mark.slow

OLLAMA = Dialect("ollama", "qwen3:8b", "/v1", GPT.says)
OPENROUTER = Dialect("openrouter", "x-ai/grok-4", "/v1", GPT.says)
MISTRAL = Dialect("mistral", "devstral-2512", "/v1", GPT.says)


async def sent(prompt: Prompt, dialect: Dialect = GPT, **settings: Any) -> dict[str, Any]:
    async with talking(dialect, Reply(GPT.says("ok")), **settings) as (model, server):
        await asked(model, prompt, load=lambda blob: PNG)
        return server.requests[0].body


async def answer(*deltas: dict[str, object], prompt: Prompt = HELLO, **more: Any) -> Completion:
    async with talking(GPT, Reply(gpt(*deltas, **more))) as (model, _):
        *pieces, last = await asked(model, prompt)
        assert isinstance(last, Completion)
        uses = [part for part in last.parts if isinstance(part, ToolUse)]
        calls = [piece for piece in pieces if isinstance(piece, CallDelta)]
        joined = [
            ToolUse(u.id, u.name, "".join(c.arguments for c in calls if c.index == i)) for i, u in enumerate(uses)
        ]
        assert joined == uses
        return last


async def test_several_calls_may_come_interleaved() -> None:
    found = await answer(
        {"content": "Two."},
        call(0, "", id="a", name="read_file"),
        call(1, "", id="b", name="list_files"),
        call(0, '{"pa'),
        call(1, "{"),
        call(0, 'th": "ü"}'),
        call(1, "}"),
        finish="tool_calls",
    )
    two = (ToolUse("a", "read_file", '{"path": "ü"}'), ToolUse("b", "list_files", "{}"))
    assert (found.parts, found.stop) == ((Text("Two."), *two), "tool_use")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("stop", "end"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("content_filter", "refusal"),
        ("load", "other"),
    ],
)
async def test_every_stop_has_a_reason(theirs: str, ours: StopReason) -> None:
    assert (await answer({"content": "so"}, finish=theirs)).stop == ours


async def test_a_refusal_is_said_and_told() -> None:
    found = await answer({"refusal": "I will not."})
    assert (found.parts, found.stop) == ((Text("I will not."),), "refusal")


async def test_stop_after_calls_means_calls() -> None:
    assert (await answer(call(0, "{}", id="a", name="read_file"), finish="stop")).stop == "tool_use"


async def test_calls_without_ids_get_some_and_repeated_ids_get_others() -> None:
    found = await answer(call(0, "{}", id="", name="one"), call(1, "{}", name="two"), finish="tool_calls")
    ids = [part.id for part in found.parts if isinstance(part, ToolUse)]
    assert len(set(ids)) == 2
    assert all(ids)
    before = (user(Text("go")), said(ToolUse("call_0", "one", "{}")), user(ToolResult("call_0", ())))
    found = await answer(call(0, "{}", id="call_0", name="one"), prompt=Prompt("", before), finish="tool_calls")
    assert isinstance(found.parts[0], ToolUse)
    assert found.parts[0].id not in ("", "call_0")


async def test_calls_that_share_an_index_are_told_apart() -> None:
    found = await answer(call(0, "{}", id="a", name="one"), call(0, "{}", id="b", name="two"), finish="tool_calls")
    assert found.parts == (ToolUse("a", "one", "{}"), ToolUse("b", "two", "{}"))
    found = await answer(call(0, '{"x": 1}', name="one"), call(0, "{", name="two"), call(0, "}"), finish="tool_calls")
    assert [(part.name, part.arguments) for part in found.parts if isinstance(part, ToolUse)] == [
        ("one", '{"x": 1}'),
        ("two", "{}"),
    ]
    found = await answer(call(0, "{", id="a", name="one"), call(0, "}", id="a", name="one"), finish="tool_calls")
    assert found.parts == (ToolUse("a", "one", "{}"),)


async def test_a_call_without_arguments_does_not_get_those_of_the_next() -> None:
    """S11: some servers send neither ids nor an index of their own, and nothing at all for no arguments."""
    two = [("one", "{}"), ("two", '{"x": 1}')]
    nothing: list[object] = [None, "", {}]
    for none in nothing:
        bare: dict[str, object] = {"tool_calls": [{"function": {"name": "one", "arguments": none}}]}
        for first in (call(0, none, name="one"), bare):
            found = await answer(first, call(0, '{"x": 1}', name="two"), finish="tool_calls")
            assert [(part.name, part.arguments) for part in found.parts if isinstance(part, ToolUse)] == two
    twice = await answer(call(0, {}, name="one"), call(0, {}, name="one"), finish="tool_calls")
    assert len(twice.parts) == 2


async def test_a_call_that_was_cut_before_its_arguments_has_none() -> None:
    """S6: {} would be a call that could be made."""
    found = await answer(call(0, "{}", id="a", name="one"), call(1, "", id="b", name="two"), finish="length")
    assert found.parts == (ToolUse("a", "one", "{}"), ToolUse("b", "two", ""))


async def test_what_is_said_may_be_a_list_with_thoughts_in_it() -> None:
    """S6: as Mistral's thinking models send it."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    found = await answer({"content": [thinking]}, {"content": [{"type": "text", "text": "So"}]}, {"content": "."})
    assert [(type(part), getattr(part, "text", "")) for part in found.parts] == [(Reasoning, "Hm."), (Text, "So.")]
    error = await failed(GPT, Reply(gpt({"content": "so"}, {"content": 7})))
    assert (error.kind, error.received) == ("malformed", (Text("so"),))


async def test_what_gemini_sealed_beside_a_call_goes_back_beside_it() -> None:
    """S6: without it Gemini refuses the conversation, or forgets what it thought."""
    seals = [{"google": {"thought_signature": f"sig{n}"}} for n in range(2)]
    deltas: list[dict[str, object]] = [
        {
            "tool_calls": [
                {"index": n, "id": f"c{n}", "extra_content": seal, "function": {"name": "x", "arguments": "{}"}}
            ]
        }
        for n, seal in enumerate(seals)
    ]
    gemini = Dialect("gemini", "gemini-3-pro", "/v1beta/openai", GPT.says)
    replies = [
        Reply(gpt({"content": "Two."}, *deltas, finish="tool_calls")),
        Reply(GPT.says("ok")),
        Reply(GPT.says("ok")),
    ]
    async with talking(gemini, *replies) as (model, server):
        last = (await asked(model))[-1]
        assert isinstance(last, Completion)
        assert [type(part) for part in last.parts] == [Text, Reasoning, ToolUse, Reasoning, ToolUse]
        results = user(*(ToolResult(f"c{n}", (Text("ok"),)) for n in range(2)))
        await asked(model, Prompt("", (user(Text("go")), said(*last.parts), results)))
        messages: Any = server.requests[1].body["messages"]
        assert [each["extra_content"] for each in messages[1]["tool_calls"]] == seals
        await asked(model, Prompt("", (user(Text("go")), said(*last.parts[:1], *last.parts[2:]), results)))
        messages = server.requests[2].body["messages"]
        assert ["extra_content" in each for each in messages[1]["tool_calls"]] == [False, True]
    other = await sent(Prompt("", (user(Text("go")), said(*last.parts), results)))
    assert "extra_content" not in json.dumps(other)


async def test_a_seal_does_not_take_the_place_of_details() -> None:
    details = [{"type": "reasoning.encrypted", "data": "zzz", "index": 0}]
    sealed = {"index": 0, "id": "a", "extra_content": {"x": 1}, "function": {"name": "x", "arguments": "{}"}}
    found = await answer({"reasoning_details": details}, {"tool_calls": [sealed]}, finish="tool_calls")
    assert [type(part) for part in found.parts] == [Reasoning, Reasoning, ToolUse]
    body = await sent(Prompt("", (user(Text("go")), said(*found.parts), user(ToolResult("a", ())))))
    assert body["messages"][1]["reasoning_details"] == details
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == {"x": 1}


async def test_thoughts_between_words_go_back_all_of_them() -> None:
    deltas: list[dict[str, object]] = [{"reasoning": "One."}, {"content": "a"}, {"reasoning": "Two."}, {"content": "b"}]
    async with talking(GPT, Reply(gpt(*deltas)), Reply(GPT.says("ok"))) as (model, server):
        last = (await asked(model))[-1]
        assert isinstance(last, Completion)
        await asked(model, Prompt("", (user(Text("go")), said(*last.parts), user(Text("and?")))))
        messages: Any = server.requests[1].body["messages"]
        assert messages[1]["reasoning"] == "One.Two."


async def test_arguments_that_are_no_json_are_sent_back_as_json_that_says_so() -> None:
    """S6: vLLM, Ollama and others read them again with each request, and would refuse the task for ever."""
    wrong = ['{"path": ', '{"n": NaN}', "[1]", "", '{"a": "x\ny"}', '{"a": "\\ud800"}', '{"a":1}', '"{}"']
    calls = [ToolUse(str(n), "read_file", arguments) for n, arguments in enumerate(wrong)]
    results = [ToolResult(each.id, (Text("no"),), failed=True) for each in calls]
    body = await sent(Prompt("", (user(Text("go")), said(*calls), user(*results))))
    arguments = [each["function"]["arguments"] for each in body["messages"][1]["tool_calls"]]
    assert [json.loads(each) for each in arguments[:3]] == [{"INVALID_JSON": each} for each in wrong[:3]]
    assert arguments[3:-1] == ["{}", '{"a": "x\\ny"}', '{"a": "?"}', '{"a":1}']
    assert arguments[-1] == "{}"


async def test_arguments_may_be_an_object() -> None:
    assert (await answer(call(0, {"x": 1}, id="a", name="one"))).parts == (ToolUse("a", "one", '{"x": 1}'),)
    assert (await answer(call(0, id="a", name="one"))).parts == (ToolUse("a", "one", "{}"),)


async def test_usage_counts_what_the_cache_read_and_wrote() -> None:
    counts = {"prompt_tokens": 1000, "completion_tokens": 8, "total_tokens": 1008}
    details = {"cached_tokens": 900, "cache_write_tokens": 80}
    found = await answer({"content": "so"}, usage={**counts, "prompt_tokens_details": details})
    assert found.usage == Usage(input=20, output=8, cache_reads=900, cache_writes=80)
    found = await answer({"content": "so"}, usage={**counts, "prompt_cache_hit_tokens": 64})
    assert found.usage == Usage(input=936, output=8, cache_reads=64)
    assert (await answer({"content": "so"})).usage == Usage()


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thoughts_go_back_under_the_name_they_came_by(name: str) -> None:
    deltas: list[dict[str, object]] = [{name: "One, "}, {name: "two."}, {"content": "Yes."}]
    async with talking(GPT, Reply(gpt(*deltas)), Reply(GPT.says("ok"))) as (model, server):
        chunks = await asked(model)
        assert chunks[:2] == [ReasoningDelta("One, "), ReasoningDelta("two.")]
        last = chunks[-1]
        assert isinstance(last, Completion)
        await asked(model, Prompt("", (user(Text("go")), said(*last.parts), user(Text("and?")))))
        messages: Any = server.requests[1].body["messages"]
        assert messages[1] == {"role": "assistant", "content": "Yes.", name: "One, two."}


async def test_details_of_thoughts_go_back_whole() -> None:
    pieces = [
        {"type": "reasoning.text", "text": "One, ", "index": 0, "format": "x"},
        {"type": "reasoning.text", "text": "two.", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "zzz", "index": 1, "id": "r1"},
    ]
    deltas: list[dict[str, object]] = [
        {"reasoning": piece.get("text"), "reasoning_details": [piece]} for piece in pieces
    ]
    async with talking(OPENROUTER, Reply(gpt(*deltas, {"content": "Yes."})), Reply(GPT.says("ok"))) as (model, server):
        last = (await asked(model))[-1]
        assert isinstance(last, Completion)
        assert [part.text for part in last.parts if isinstance(part, Reasoning)] == ["One, two."]
        await asked(model, Prompt("", (user(Text("go")), said(*last.parts), user(Text("and?")))))
        messages: Any = server.requests[1].body["messages"]
        assert messages[1]["reasoning_details"] == [
            {"type": "reasoning.text", "text": "One, two.", "index": 0, "format": "x", "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "zzz", "index": 1, "id": "r1"},
        ]


async def test_thoughts_of_others_are_not_sent() -> None:
    thought = Reasoning("hm", json.dumps({"anthropic": {"signature": "x"}}))
    body = await sent(Prompt("", (user(Text("go")), said(thought, Text("Yes.")), user(Text("and?")))))
    assert body["messages"][1] == {"role": "assistant", "content": "Yes."}


async def test_results_follow_their_calls_and_pictures_follow_the_results() -> None:
    calls = said(ToolUse("a", "read_file", '{"path":1}'), ToolUse("b", "read_file", "{}"))
    results = user(
        Text("and hurry"),
        ToolResult("b", (Image(PICTURE),)),
        ToolResult("a", (Text("no JSON"), Text("at all")), failed=True),
    )
    body = await sent(Prompt("Be brief.", (user(Text("go")), calls, results), (READ,)))
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": '{"path":1}'}},
                {"id": "b", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "no JSON\n\nat all"},
        {"role": "tool", "tool_call_id": "b", "content": "[images: see below]"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[images in the result of b]"},
                {"type": "image_url", "image_url": {"url": url}},
                {"type": "text", "text": "and hurry"},
            ],
        },
    ]
    assert body["tools"][0]["function"]["parameters"] == READ.parameters


async def test_each_server_gets_what_it_takes() -> None:
    prompt = Prompt("", (user(Text("go")), said(ToolUse("call_1", "x", "{}")), user(ToolResult("call_1", ()))), (), 77)
    body = await sent(prompt, reasoning="low")
    assert (body["max_completion_tokens"], body["reasoning_effort"]) == (77, "low")
    assert body["stream_options"] == {"include_usage": True}
    body = await sent(prompt, OLLAMA)
    assert (body["max_tokens"], body["model"]) == (77, "qwen3:8b")
    assert "max_tokens" not in await sent(HELLO, OLLAMA)
    body = await sent(prompt, MISTRAL)
    assert "stream_options" not in body
    assert body["messages"][2]["content"] == "[done]"  # an empty one is refused by some
    assert len(body["messages"][1]["tool_calls"][0]["id"]) == 9
    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"]


async def test_a_server_that_refuses_to_count_is_not_asked_to_again() -> None:
    """S6: some gateways refuse `stream_options`; who asked tries again, where a person sees it."""
    refused = refusal(400, {"message": "stream_options: Extra inputs are not permitted"})
    async with talking(OLLAMA, refused, Reply(GPT.says("ok"))) as (model, server):
        with pytest.raises(ModelError, match="does not support") as caught:
            await asked(model)
        assert caught.value.retryable
        assert (await asked(model))[-1] == Completion((Text("ok"),), "end")
        assert ["stream_options" in each.body for each in server.requests] == [True, False]


async def test_a_stream_may_end_without_done_and_have_empty_chunks() -> None:
    pieces = [b": a comment\n\n", chunk({"content": "so"}), event({"choices": []}), chunk({}, "stop")]
    async with talking(GPT, Reply(pieces)) as (model, _):
        assert (await asked(model))[-1] == Completion((Text("so"),), "end")


def test_a_long_answer_costs_no_more_for_each_piece_than_a_short_one() -> None:
    """S6: a file of half a megabyte, in pieces of a word, and as many thoughts."""
    from openai.types.chat import ChatCompletionChunk

    def read(count: int, delta: dict[str, object]) -> tuple[CompletionBuilder, float]:
        draft = CompletionBuilder(set())
        reading = ChatStream(draft, "m")
        piece = ChatCompletionChunk.construct(choices=[{"index": 0, "delta": delta, "finish_reason": None}])
        began = time.process_time()
        for _ in range(count):
            list(reading.read(piece))
        return draft, time.process_time() - began

    draft, took = read(80_000, {"tool_calls": [{"index": 0, "function": {"name": "x", "arguments": "abc def "}}]})
    assert len(draft.parts) == 1 and draft.size == 640_000
    assert took < 4  # it was 8 s and more
    draft, took = read(20_000, {"reasoning_details": [{"type": "reasoning.text", "text": "abc def ", "index": 0}]})
    (thought,) = draft.parts
    assert isinstance(thought, Reasoning) and len(json.loads(thought.opaque)["m"]["details"][0]["text"]) == 160_000
    assert took < 3  # it was 7 s


async def test_chunks_of_a_wrong_shape_are_nonsense() -> None:
    for wrong in ({"choices": 3}, {"choices": [{"delta": {"tool_calls": [7]}}]}):
        error = await failed(GPT, Reply([chunk({"content": "so"}), event(wrong)]))
        assert (error.kind, error.received) == ("malformed", (Text("so"),))


async def test_the_context_window_is_looked_up_where_we_do_not_know_it() -> None:
    kimi = Dialect("moonshot", "kimi-k2.5", "/v1", GPT.says)
    async with talking(kimi, Reply(GPT.says("so"))) as (model, _):
        assert model.info.context_window is None
        await asked(model)
        assert model.info.context_window == 262_144
