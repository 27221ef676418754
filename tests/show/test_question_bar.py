"""A question has a bar before each line, and nothing else can have one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.events import TerminalId
from tarmac.models.messages import NO_USAGE, Text
from tarmac.show.look import BAR, Look, harmless, one_line
from tarmac.show.question import question_lines
from tarmac.show.renderer import TaskRenderer
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.events import CallId, QuestionAsked, QuestionId, RequestId

FORGED = (
    f"{BAR} ? Run this command?\n{BAR}     ls\n{BAR}   low risk\n\n"
    f"- {BAR} y yes\n\n    {BAR} ? Run\n\n`{BAR} ?` **{BAR}** ▐ ▎\n\n"
    "> ? Run this command?\n>     ls\n>\n> > low risk\n"
)


def asked(text: str, ask: str = "followup", details: str = "") -> QuestionAsked:
    return QuestionAsked(at=0.0, question=QuestionId("q1"), ask=ask, text=text, details=details)  # type: ignore[arg-type]


@given(st.text(st.sampled_from(f"{BAR}▐▏ab \n\t\x1b│┃")))
def test_no_text_keeps_a_bar(text: str) -> None:
    assert not set("▉▊▋▌▍▎▏▐▕") & set(harmless(text) + one_line(text))


@given(st.text(st.sampled_from(f"{BAR}? abcdefgh\n")), st.integers(24, 100))
def test_every_line_of_a_question_has_one_bar_and_it_is_the_first_character(text: str, columns: int) -> None:
    lines = [row for line in question_lines(asked(text), Look(columns=columns)) for row in line.split("\n")]
    assert lines
    assert all(line.startswith(f"{BAR} ") and line.count(BAR) == 1 for line in lines)


@pytest.mark.parametrize("live", [False, True])
def test_whatever_is_said_and_printed_can_not_look_like_a_question(live: bool) -> None:
    """P6: the words of a model, its result, the output of commands, notices; while they grow and after."""
    look = Look(live=live, colour=live, columns=60)
    parts = (Text(FORGED),)
    said: list[e.TaskEvent | s.Signal] = [
        s.ReasoningStreamed(request=RequestId("r"), text=FORGED),
        s.TextStreamed(request=RequestId("r"), text=FORGED),
        e.ModelSaid(at=0.0, request=RequestId("r"), parts=parts, usage=NO_USAGE, cost=0.0, stop="end"),
        e.UserSaid(at=0.0, text=FORGED),
        e.Noted(at=0.0, what="notice", text=FORGED),
        e.ToolStarted(at=0.0, call=CallId("c"), name="execute_command", title=FORGED),
        s.OutputStreamed(call=CallId("c"), terminal=TerminalId("t1"), data=FORGED.encode()),
        e.ToolFinished(at=0.0, call=CallId("c"), name="execute_command", outcome="done", content=parts),
        e.TaskCompleted(at=0.0, result=FORGED, usage=NO_USAGE),
    ]
    renderer = TaskRenderer(look)
    shown = "".join(renderer.signal(each) if isinstance(each, s.Signal) else renderer.event(each) for each in said)
    assert "Run this command" in shown
    assert BAR not in shown


@pytest.mark.parametrize(
    ("of", "head"),
    [
        ({"folder": True}, "Look into this folder?"),
        ({"folder": False}, "Read this file?"),
        ({}, "Read this file?"),
    ],
)
def test_the_headline_comes_from_values_and_not_from_the_words_of_an_explanation(
    of: dict[str, bool], head: str
) -> None:
    """U5: an explanation may quote a path, and the path may be called anything."""
    request = {"kind": "ReadFile", "shown": "x", "explanation": "reads the folder x", "file": {"path": "x", **of}}
    first = question_lines(asked("x", "tool", json.dumps({"requests": [request]})), Look())
    assert next(iter(first)) == f"{BAR} ? {head}"
