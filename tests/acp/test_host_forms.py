"""Forms of a hosted agent (elicitation/create): asked field by field, declined, cancelled, never guessed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acp.hosting import Stage, hosting

from tarmac.acp.host.agent_client import fields_of
from tarmac.errors import BadRequest
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks import events as e

pytestmark = pytest.mark.shell


def form(**properties: Any) -> dict[str, Any]:
    required = [name for name, each in properties.items() if each.pop("required", True)]
    schema = {"type": "object", "properties": properties, "required": required}
    params = {"mode": "form", "message": "How?", "requestedSchema": schema}
    return {"call": "elicitation/create", "params": params, "as": "f"}


def answering(stage: Stage, *words: str) -> None:
    """These, one after the other; "yes" and "no" are keys."""
    left = list(words)

    def say(asked: e.QuestionAsked) -> None:
        word = left.pop(0)
        if asked.ask == "tool":
            kind = AnswerKind.YES if word == "yes" else AnswerKind.NO
            stage.start(stage.hosted.answer(asked.question, Answer(kind, by="test")))
        else:
            stage.start(stage.try_answer(asked, word, left))

    stage.answer = say


async def test_a_person_fills_a_form(tmp_path: Path) -> None:
    """A1: text, a number, a choice, several, a default, one left out; all of it is shown before it is sent."""
    async with hosting(tmp_path) as stage:
        answering(stage, "Ann", "none", "7", "2", "red, blue", "-", "-", "yes")
        found = await stage.play(
            form(
                name={"type": "string", "title": "Your name"},
                age={"type": "integer"},
                size={"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
                colours={"type": "array", "items": {"type": "string", "enum": ["red", "green", "blue"]}},
                sure={"type": "boolean", "default": True},
                note={"type": "string", "required": False},
            )
        )
    content = {"name": "Ann", "age": 7, "size": "l", "colours": ["red", "blue"], "sure": True}
    assert found["f"] == {"action": "accept", "content": content}
    assert "How?" in stage.asked[0].text and "Your name" in stage.asked[0].text
    assert stage.asked[2].choices == ("Small", "Large")


@pytest.mark.parametrize(("words", "action"), [(("/no",), "decline"), (("a", "b", "no"), "decline")])
async def test_a_person_may_decline_a_form(tmp_path: Path, words: tuple[str, ...], action: str) -> None:
    async with hosting(tmp_path) as stage:
        answering(stage, *words)
        found = await stage.play(form(a={"type": "string"}, b={"type": "string"}))
    assert found["f"] == {"action": action}


async def test_nobody_there_or_a_form_that_cannot_be_typed_is_declined(tmp_path: Path) -> None:
    async with hosting(tmp_path, attended=False) as stage:
        assert (await stage.play(form(a={"type": "string"})))["f"] == {"action": "decline"}
    async with hosting(tmp_path) as stage:
        assert (await stage.play(form(a={"type": "object"})))["f"] == {"action": "decline"}
        url = {"mode": "url", "message": "x", "url": "https://example.org", "elicitationId": "1"}
        found = await stage.play({"call": "elicitation/create", "params": url, "as": "u"})
        assert (found["u"], stage.asked) == ({"action": "decline"}, [])


async def test_stopping_the_turn_cancels_a_form(tmp_path: Path) -> None:
    async with hosting(tmp_path) as stage:

        def stop(_: e.QuestionAsked) -> None:
            asyncio.get_running_loop().call_soon(stage.hosted.cancel)

        stage.answer = stop
        await stage.turn(form(a={"type": "string"}), {"until": "session/cancel"}, {"stop": "cancelled"})
        (answer,) = [each["result"] for each in stage.heard() if "method" not in each]
    assert answer == {"action": "cancel"}


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
kinds = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", 3])
keys = st.sampled_from(["enum", "oneOf", "items", "default", "title", "description"])
properties = st.dictionaries(
    st.text(max_size=5),
    st.builds(lambda kind, more: {"type": kind, **more}, kinds, st.dictionaries(keys, json, max_size=4)),
    max_size=4,
)


@given(properties, json, st.text(max_size=8))
def test_whatever_a_form_holds_something_comes_of_it(properties: dict[str, Any], required: Any, typed: str) -> None:
    for field in fields_of({"properties": properties, "required": required}) or []:
        try:
            value = field.value(typed)
        except BadRequest:
            continue
        assert field.kind != "integer" or value is None or isinstance(value, int) or value == field.default
