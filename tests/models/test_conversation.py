"""Whatever a conversation looks like, what is sent is one that a provider takes."""

import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.models import anthropic, openai
from tarmac.models.messages import Blob, Image, Message, Reasoning, Text, ToolResult, ToolUse
from tarmac.models.provider import ModelInfo, ModelSettings, Prompt
from tarmac.models.remote import EncodedImages, normalized, plain_id, short_id

pytestmark = pytest.mark.slow

texts = st.text(st.characters(exclude_categories=()), max_size=8)
ids = st.sampled_from(["a", "b", "toolu_1", "call:7/é", "x" * 60, ""])
texted = st.builds(Text, texts)
pictures = st.just(Image(Blob("ab" * 32, 3, "image/png")))
objects = st.dictionaries(texts, st.integers() | texts, max_size=2)
arguments = objects.map(json.dumps) | st.sampled_from(["", "{", "[]", '{"a": '])
calls = st.builds(ToolUse, ids, st.sampled_from(["read_file", "x", "functions.x", "", "ü" * 200]), arguments)
results = st.builds(ToolResult, ids, st.lists(texted | pictures, max_size=2).map(tuple), st.booleans())
parts = texted | pictures | st.builds(Reasoning, texts, texts) | calls | results
messages = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.lists(parts, max_size=5).map(tuple)), max_size=8
)
SHOWN = EncodedImages({"ab" * 32: "aaaa"})
INFO = ModelInfo(id="openai/x", images=True)


def sendable(found: object) -> str:
    return json.dumps(found, ensure_ascii=False).encode("utf8", "replace").decode()


@given(messages, st.sampled_from([plain_id, short_id]))
def test_roles_alternate_and_every_call_has_its_result_directly_after_it(found: list[Message], fit: Any) -> None:
    """S6: the history that is sent is one that no provider refuses."""
    sent = normalized(found, fit)
    assert [message.role for message in sent] == ["user", "assistant"] * (len(sent) // 2) + ["user"]
    seen: set[str] = set()
    waiting: list[str] = []
    for message in sent:
        assert message.parts
        if message.role == "assistant":
            waiting = [part.id for part in message.parts if isinstance(part, ToolUse)]
            assert not seen & set(waiting)
            assert len(set(waiting)) == len(waiting)
            assert all(fit(each) == each for each in waiting)
            names = [part.name for part in message.parts if isinstance(part, ToolUse)]
            assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
            assert any(not isinstance(part, Reasoning) for part in message.parts)
            seen |= set(waiting)
        else:
            answered = [part.call for part in message.parts if isinstance(part, ToolResult)]
            assert answered == waiting
            assert all(isinstance(part, ToolResult) for part in message.parts[: len(waiting)])


@given(messages)
def test_nothing_that_was_called_or_said_is_lost(found: list[Message]) -> None:
    sent = normalized(found)
    before = [part.arguments for m in found if m.role == "assistant" for part in m.parts if isinstance(part, ToolUse)]
    assert [part.arguments for m in sent for part in m.parts if isinstance(part, ToolUse)] == before
    words = [part.text for m in found for part in m.parts if isinstance(part, Text) and part.text.strip()]
    told = [part.text for m in sent for part in m.parts if isinstance(part, Text)]
    assert not Counter(words) - Counter(told)


@given(messages)
def test_a_tidy_conversation_stays_as_it_is(found: list[Message]) -> None:
    sent = normalized(found)
    assert normalized(sent) == sent


@given(messages)
def test_both_dialects_keep_ids_and_arguments(found: list[Message]) -> None:
    prompt = Prompt("", tuple(found))
    ours = [part for m in normalized(found) for part in m.parts if isinstance(part, ToolUse)]
    body: Any = openai.request(INFO, ModelSettings(), prompt, SHOWN)
    theirs = [call for m in body["messages"] for call in m.get("tool_calls", [])]
    assert [(c["id"], c["function"]["name"]) for c in theirs] == [(c.id, c.name) for c in ours]
    for call, part in zip(theirs, ours, strict=True):
        assert isinstance(json.loads(call["function"]["arguments"], parse_constant=float.fromhex), dict)
        try:
            whole = json.loads(part.arguments)
        except ValueError:
            whole = None
        if isinstance(whole, dict) and sendable(whole) == json.dumps(whole, ensure_ascii=False):
            assert call["function"]["arguments"] == part.arguments
    json.dumps(body, ensure_ascii=False).encode()
    roles = [m["role"] for m in body["messages"]]
    for at, message in enumerate(body["messages"]):
        wanted = [call["id"] for call in message.get("tool_calls", [])]
        after = body["messages"][at + 1 : at + 1 + len(wanted)]
        assert [m.get("tool_call_id") for m in after] == wanted
    assert roles.count("tool") == len(theirs)
    body = anthropic.request(INFO, ModelSettings(), prompt, SHOWN)
    blocks = [block for m in body["messages"] for block in m["content"]]
    used = [block for block in blocks if block["type"] == "tool_use"]
    assert [(c["id"], c["name"]) for c in used] == [(c.id, c.name) for c in ours]
    for block, part in zip(used, ours, strict=True):
        try:
            whole = json.loads(part.arguments or "{}")
        except ValueError:
            whole = None
        if isinstance(whole, dict):
            assert block["input"] == json.loads(sendable(whole))
        else:
            assert block["input"] == {"INVALID_JSON": part.arguments}
    json.dumps(body, ensure_ascii=False).encode()
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
