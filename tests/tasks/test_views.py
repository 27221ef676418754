"""Two histories and the metadata, out of one log."""

import copy
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.samples import any_event, conversation, one_of_each

from tarmac.events import TaskId
from tarmac.models.messages import Message, Text, ToolResult, ToolUse, Usage
from tarmac.policy.approval import AnswerKind
from tarmac.tasks import events as e
from tarmac.tasks.events import CallId, MessageId, QuestionId, RequestId
from tarmac.tasks.log.records import from_plain, to_plain
from tarmac.tasks.signals import ProgressMade
from tarmac.tasks.views import Metadata, ModelHistory, Timeline, metadata, model_messages, timeline
from tarmac.tasks.views.model_history import INTERRUPTED, LOST, NOT_RUN

pytestmark = pytest.mark.slow

histories = st.lists(conversation, max_size=14)
FIRST = e.UserSaid(at=1.0, text="make the tests pass")


def said(*parts: Text | ToolUse, at: float = 2.0, cost: float | None = 0.5) -> e.ModelSaid:
    stop = "tool_use" if any(isinstance(part, ToolUse) for part in parts) else "end"
    usage = Usage(input=100, output=10)
    return e.ModelSaid(at=at, request=RequestId("r"), parts=parts, stop=stop, usage=usage, cost=cost)  # type: ignore[arg-type]


def finished(call: str, text: str = "done", outcome: e.Outcome = "done") -> e.ToolFinished:
    return e.ToolFinished(at=3.0, call=CallId(call), name="read_file", outcome=outcome, content=(Text(text),))


def started(call: str) -> e.ToolStarted:
    return e.ToolStarted(at=2.5, call=CallId(call), name="read_file", title="Reading")


def user(*parts: Text | ToolResult) -> Message:
    return Message("user", parts)


def model(*parts: Text | ToolUse) -> Message:
    return Message("assistant", parts)


ONE, TWO = ToolUse("1", "read_file", "{}"), ToolUse("2", "read_file", '{"path": "a"}')


def result(call: str, text: str = "done", *, failed: bool = False) -> ToolResult:
    return ToolResult(call, (Text(text),), failed=failed)


# What the model gets


@given(histories)
def test_whatever_happened_the_model_gets_a_conversation_that_providers_take(events: list[e.TaskEvent]) -> None:
    """S3, S4: roles alternate; each call has one result, in the message after it; nothing is empty."""
    messages = model_messages(events)
    assert all(one.role != two.role for one, two in pairwise(messages))
    assert all(message.parts for message in messages)
    for number, message in enumerate(messages):
        calls = [part.id for part in message.parts if isinstance(part, ToolUse)]
        following = messages[number + 1].parts if number + 1 < len(messages) else ()
        if message.role == "assistant" and calls:
            assert [part.call for part in following if isinstance(part, ToolResult)][: len(calls)] == calls
        before = [part.id for part in messages[number - 1].parts if isinstance(part, ToolUse)] if number else []
        for part in message.parts:
            assert not isinstance(part, ToolResult) or part.call in before


@given(st.lists(st.one_of(conversation, any_event), max_size=14))
def test_folding_one_by_one_is_folding_any_prefix(events: list[e.TaskEvent]) -> None:
    """S3: what was shown at any time is what a restart at that time would show."""
    history, line, meta = ModelHistory(), Timeline(), Metadata()
    for count, event in enumerate(events, 1):
        history.add(event)
        line.add(event)
        meta.add(event)
        assert history.messages == model_messages(events[:count])
        assert line.items == timeline(events[:count])
        assert meta == metadata(events[:count])


@given(histories, st.integers(0, 14))
def test_rewinding_is_as_if_the_rest_had_never_been_said(events: list[e.TaskEvent], to: int) -> None:
    """Part of S14: the conversation; checkpoints of files are not there yet.

    Of one rewind: a second does not bring back what the first took away.
    """
    events = [each for each in events if not isinstance(each, e.MessageQueued | e.HistoryRewound)]
    assert model_messages([*events, e.HistoryRewound(at=9.0, to=to)]) == model_messages(events[:to])


def test_results_come_first_in_the_order_of_the_calls() -> None:
    events = [FIRST, said(Text("I look."), ONE, TWO), finished("2", "b"), e.UserSaid(at=3.0, text="!"), finished("1")]
    assert model_messages(events) == [
        user(Text("make the tests pass")),
        model(Text("I look."), ONE, TWO),
        user(result("1"), result("2", "b"), Text("!")),
    ]


def test_a_call_that_never_came_back_is_told_as_such() -> None:
    """S4: interrupted when it had been started, else not run."""
    events = [FIRST, said(ONE, TWO), started("1"), e.UserSaid(at=9.0, text="go on")]
    assert model_messages(events)[2] == user(
        result("1", INTERRUPTED, failed=True), result("2", NOT_RUN, failed=True), Text("go on")
    )


def test_a_denial_is_a_failed_result() -> None:
    """Part of S13: the model reads that it was denied."""
    events = [FIRST, said(ONE), finished("1", "The user denied this operation.", "denied")]
    assert model_messages(events)[-1] == user(result("1", "The user denied this operation.", failed=True))


def test_a_result_without_its_call_is_told_in_words() -> None:
    lost = e.RecordLost(at=0.0, seq=2, why="test")
    assert model_messages([FIRST, lost, lost, finished("1", "data")]) == [
        user(Text("make the tests pass"), Text(LOST), Text("[the result of an earlier call]"), Text("data"))
    ]


def test_a_queued_message_is_told_when_it_is_delivered() -> None:
    """S5."""
    queued = e.MessageQueued(at=2.5, message=MessageId("m"), text="hurry")
    events: list[e.TaskEvent] = [FIRST, said(ONE), queued, finished("1")]
    assert model_messages(events)[-1] == user(result("1"))
    assert model_messages([*events, e.MessageDelivered(at=4.0, message=MessageId("m"))])[-1] == user(
        result("1"), Text("hurry")
    )
    items = timeline(events)
    assert (items[-2].kind, items[-2].state) == ("user_feedback", "queued")


def test_condensing_keeps_the_first_message_the_recent_ones_and_calls_with_their_results() -> None:
    """Part of S17: what a condensed history looks like; nothing condenses one yet."""
    events: list[e.TaskEvent] = [FIRST, said(ONE), finished("1"), said(Text("half-way"), TWO), finished("2"), said(ONE)]
    events += [finished("1", "new"), e.HistoryCondensed(at=5.0, first=2, last=4, summary="It looked.")]
    assert model_messages(events) == [
        user(Text("make the tests pass"), Text("It looked.")),
        model(ONE),
        user(result("1", "new")),
    ]
    again = [*events, said(Text("end")), e.HistoryCondensed(at=6.0, first=2, last=8, summary="It looked twice.")]
    assert model_messages(again) == [
        user(Text("make the tests pass"), Text("It looked twice.")),
        model(Text("end")),
    ]
    assert model_messages([*again, e.HistoryRewound(at=7.0, to=5)]) == model_messages(events[:5])


# What a person sees


def test_a_person_sees_each_step_and_how_it_ended() -> None:
    """S5, A7."""
    question, request = QuestionId("q"), RequestId("r")
    line = Timeline()
    ask = e.QuestionAsked(at=3.0, question=question, ask="tool", text="Read a?", call=CallId("1"))
    for event in (FIRST, e.RequestStarted(at=1.5, request=request, model="m"), said(Text("I look."), ONE), ask):
        line.add(event)
    (answered,) = line.add(e.QuestionAnswered(at=4.0, question=question, answer=AnswerKind.YES, text="fine"))
    assert (answered.type, answered.kind, answered.answered, answered.answer and answered.answer.text) == (
        "ask",
        "tool",
        True,
        "fine",
    )
    line.add(started("1"))
    (done,) = line.add(finished("1"))
    assert (done.id, done.state) == (6, "done")
    assert [(each.type, each.kind, each.text, each.state) for each in line.items] == [
        ("say", "text", "make the tests pass", ""),
        ("say", "api_req_started", "m", "done"),
        ("say", "api_response", "I look.", ""),
        ("ask", "tool", "Read a?", ""),
        ("say", "tool", "done", "done"),
    ]


def test_what_ran_when_the_process_died_is_shown_as_interrupted() -> None:
    """S4."""
    line = Timeline()
    for event in (FIRST, said(ONE), started("1")):
        line.add(event)
    (changed,) = line.add(e.TaskStarted(at=9.0, pid=1))
    assert (changed.kind, changed.state) == ("tool", "interrupted")
    told = e.ToolFinished(
        at=9.1, call=CallId("1"), name="read_file", outcome="interrupted", content=(), title="Reading"
    )
    (changed,) = line.add(told)
    assert (changed.place, changed.state) == (len(line.items) - 1, "interrupted")  # once


def test_lost_and_unknown_records_are_shown() -> None:
    events = [
        e.RecordLost(at=0.0, seq=1, why="the checksum is wrong"),
        e.UnknownEvent(at=1.0, kind="dream", body=b"{}"),
    ]
    assert [each.text for each in timeline(events)] == [
        "record 1 of this task is lost: the checksum is wrong",
        "`dream`: a newer Tarmac knows what this is",
    ]


def test_every_kind_that_people_see_is_in_the_timeline() -> None:
    assert {each.kind for each in timeline([each for each in one_of_each() if each.at != 20.0])} == {
        "text",
        "user_feedback",
        "api_req_started",
        "api_req_retried",
        "reasoning",
        "api_response",
        "command",
        "tool",
        "command_output",
        "mode_changed",
        "condense_context",
        "checkpoint_created",
        "subtask_result",
        "shell_integration_warning",
        "completion_result",
    }


# What a list shows


def test_metadata_counts_tokens_cost_and_calls_and_an_unknown_price_is_not_0() -> None:
    """S3, S16."""
    created = e.TaskCreated(at=0.5, task=TaskId("t"), number=7, workspace=Path("/p"), mode="code")
    found = metadata([created, e.UserSaid(at=1.0, text=" fix \n it "), said(ONE), finished("1", outcome="failed")])
    assert (found.name, found.number, found.workspace, found.mode) == ("fix it", 7, Path("/p"), "code")
    assert (found.usage, found.context, found.total_cost) == (Usage(input=100, output=10), 110, 0.5)
    assert [(name, count.calls, count.failures) for name, count in found.tools.items()] == [("read_file", 1, 1)]
    found.add(said(Text("more"), cost=None))
    assert (found.cost, found.total_cost, found.requests) == (0.5, None, 2)
    assert metadata([created]).name == "Task #7"


def test_the_status_follows_from_what_happened() -> None:
    """Part of S1: the status, as a fold of the log."""
    question = QuestionId("q")
    created = e.TaskCreated(at=0.5, task=TaskId("t"), number=7, workspace=Path("/p"), mode="code")
    steps: list[tuple[e.TaskEvent, str]] = [
        (created, "created"),
        (FIRST, "initialised"),
        (e.TaskStarted(at=1.5, pid=1), "running"),
        (e.QuestionAsked(at=2.0, question=question, ask="command", text="rm?"), "waiting"),
        (e.QuestionAnswered(at=3.0, question=question, answer=AnswerKind.NO), "running"),
        (e.TaskPaused(at=4.0), "paused"),
        (e.QuestionAsked(at=4.1, question=question, ask="command", text="rm?"), "waiting"),  # of a call under way
        (e.QuestionAnswered(at=4.2, question=question, answer=AnswerKind.NO), "paused"),
        (e.TaskUnpaused(at=5.0), "running"),
        (e.QuestionAsked(at=5.1, question=question, ask="command", text="rm?"), "waiting"),
        (e.TaskPaused(at=5.2), "paused"),
        (e.TaskUnpaused(at=5.3), "waiting"),
        (e.TaskStarted(at=5.4, pid=1), "running"),
        (said(ONE), "running"),
        (finished("1"), "running"),
        (said(Text("What now?")), "waiting"),  # it is the person's turn
        (e.RequestStarted(at=5.5, request=RequestId("r"), model="m"), "running"),
        (finished("2", outcome="interrupted"), "waiting"),
        (e.RequestStarted(at=5.6, request=RequestId("r"), model="m"), "running"),
        (e.RequestFailed(at=5.7, request=RequestId("r"), what="busy", retry_in=1.0), "running"),
        (e.RequestFailed(at=5.8, request=RequestId("r"), what="no"), "waiting"),
        (e.RequestStarted(at=5.9, request=RequestId("r"), model="m"), "running"),
        (e.TaskCompleted(at=6.0, result="done", usage=Usage()), "completed"),
        (e.TaskSaved(at=7.0), "saved"),
        (e.TaskStarted(at=8.0, pid=2), "running"),
        (e.TaskAborted(at=9.0), "aborted"),
    ]
    found = Metadata()
    for event, status in steps:
        found.add(event)
        assert found.status == status
    assert (found.outcome, found.at) == ("aborted", 9.0)


@given(st.lists(any_event, max_size=6), st.lists(any_event, max_size=3))
def test_metadata_can_be_put_away_and_gone_on_with(before: list[e.TaskEvent], after: list[e.TaskEvent]) -> None:
    """S3: the index does so."""
    found = metadata(before)
    back = from_plain(to_plain(found), Metadata)
    assert back == found
    whole = copy.deepcopy(found)
    for event in after:
        back.add(event)
        whole.add(event)
    assert back == whole


def test_an_item_has_its_checkpoint_and_how_far_it_has_come() -> None:
    """S5: checkpoint, partial and progress."""
    view, call = Timeline(), e.CallId("c1")
    view.add(e.CheckpointCreated(at=1.0, checkpoint="1", why="Running `make`", call=call))
    [running] = view.add(e.ToolStarted(at=2.0, call=call, name="execute_command", title="Running `make`"))
    assert (running.partial, running.checkpoint) == (True, 1)
    [further] = view.show(ProgressMade(call=call, text="half of it"))
    assert further.progress == "half of it"
    [ended] = view.add(e.ToolFinished(at=3.0, call=call, name="execute_command", outcome="done", content=()))
    assert (ended.partial, ended.progress, ended.checkpoint) == (False, "", 1)
    assert view.show(ProgressMade(call=call, text="too late")) == []
