"""PURE: what an editor is told of a task, piece by piece."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.acp.editor import check, schema
from tests.tasks.samples import any_event, conversation, of_type

from tarmac.acp.content import MOST_OUTPUT, fenced, read_client
from tarmac.acp.editor_questions import LONGEST, form, permission
from tarmac.acp.updates import Updates
from tarmac.acp.wire import Notification, encode
from tarmac.events import TerminalId
from tarmac.models.messages import Text, ToolUse, Usage
from tarmac.policy.approval import AnswerKind, make_request
from tarmac.policy.verdict import Verdict, WriteFile
from tarmac.tasks import events as e
from tarmac.tasks import signals as s

pytestmark = pytest.mark.slow

CALL = e.CallId("c1")


def said(name: str, arguments: dict[str, object], id: str = CALL) -> e.ModelSaid:
    return e.ModelSaid(
        at=1.0,
        request=e.RequestId("r"),
        parts=(ToolUse(id, name, json.dumps(arguments)),),
        usage=Usage(),
        cost=None,
        stop="tool_use",
    )


def running(updates: Updates) -> None:
    updates.of(said("execute_command", {"command": "x"}))
    updates.of(e.ToolStarted(at=1.0, call=CALL, name="execute_command", title="Running", command="x", cwd=Path("/p")))


def output(data: bytes) -> s.OutputStreamed:
    return s.OutputStreamed(call=CALL, terminal=TerminalId("t1"), data=data)


@given(st.text(alphabet="`a \n~", max_size=60))
def test_nothing_in_a_fence_closes_it(text: str) -> None:
    """P6: a line of backticks, indented or not, shorter or longer than ours."""
    opened, *inside, closed = fenced(text).split("\n")
    assert set(opened) == {"`"} and opened == closed and len(opened) >= 3
    for line in inside:
        bare = line.strip()
        assert not (bare and set(bare) == {"`"} and len(bare) >= len(opened))


@given(st.lists(st.binary(max_size=9), max_size=9), st.text(max_size=30))
def test_characters_are_whole_whatever_the_pieces(cuts: list[bytes], text: str) -> None:
    """A2: a terminal that the editor shows gets every character once."""
    data = text.encode("utf-8", "replace")
    updates = Updates(terminals=True)
    running(updates)
    step = max(1, len(cuts))
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    told = [each for piece in pieces for each in updates.of(output(piece))]
    assert "".join(each["_meta"]["terminal_output"]["data"] for each in told) == data.decode()  # type: ignore[index]


def test_output_as_text_is_bounded_and_says_so() -> None:
    """A2: the last part, however much there was; what it holds does not grow."""
    updates = Updates()
    running(updates)
    for number in range(3000):
        updates.of(output(f"line {number} of the output\n".encode()))
    updates.missed(CALL, 5000)
    done = e.ToolFinished(at=2.0, call=CALL, name="execute_command", outcome="interrupted", content=(Text("why"),))
    (last,) = updates.of(done)
    text = last["content"][0]["content"]["text"]  # type: ignore[index]
    assert "characters before this]" in text and "5,000 bytes, which came faster" in text and "line 2999" in text
    assert last["status"] == "failed" and len(text) < MOST_OUTPUT + 200


def test_a_command_that_never_ran_shows_why_and_no_terminal_of_its_own() -> None:
    """A2: also where the editor shows terminals."""
    for terminals in (True, False):
        updates = Updates(terminals=terminals, elsewhere=True)
        running(updates)
        failed = e.ToolFinished(at=2.0, call=CALL, name="x", outcome="failed", content=(Text("no terminal is free"),))
        (last,) = updates.of(failed)
        assert "no terminal is free" in str(last["content"]) and "_meta" not in last


def test_what_a_killed_tarmac_left_under_way_does_not_stay_so() -> None:
    """A2: in an editor that loads the session; each such call once."""
    updates = Updates(replay=True)
    running(updates)
    updates.of(said("read_file", {"path": "a"}, "c2"))
    assert [(each["toolCallId"], each["status"]) for each in updates.cut_off()] == [("c1", "failed"), ("c2", "failed")]
    assert updates.cut_off() == []


def test_a_call_names_its_files_and_lines() -> None:
    """A2: for an editor that goes along; arguments may be anything."""
    cases: list[tuple[dict[str, object], object]] = [
        ({"path": "a.py"}, [{"path": "/w/a.py"}]),
        ({"path": "/x/b.py", "line": 7}, [{"path": "/x/b.py", "line": 7}]),
        ({"files": [{"path": "a", "line_ranges": ["12-20"]}, 5, {"path": 3}]}, [{"path": "/w/a", "line": 12}]),
        ({"files": "a"}, None),
        ({"path": ["a"]}, None),
        ({"path": "a\0b"}, None),
        ({"path": "a", "line": -4}, [{"path": "/w/a"}]),
    ]
    for arguments, expected in cases:
        (update,) = Updates(workspace=Path("/w")).of(said("read_file", arguments))
        assert update.get("locations") == expected, arguments


def test_an_answer_that_is_recorded_with_its_words_is_replayed_once() -> None:
    """A2: both are in the log, with one time."""
    updates = Updates(replay=True)
    answered = e.QuestionAnswered(at=2.0, question=e.QuestionId("q"), answer=AnswerKind.MESSAGE, text="blue")
    (told,) = [*updates.of(e.UserSaid(at=2.0, text="blue")), *updates.of(answered)]
    assert (told["content"], told["messageId"]) == ({"type": "text", "text": "blue"}, "user-2.0")


def test_what_was_asked_and_said_between_is_replayed() -> None:
    """A2: a person's answers and what they said while it worked."""
    updates = Updates(replay=True)
    told = [
        *updates.of(e.UserSaid(at=1.0, text="first")),
        *updates.of(e.MessageQueued(at=1.0, message=e.MessageId("m"), text="second")),
        *updates.of(e.QuestionAnswered(at=1.0, question=e.QuestionId("q"), answer=AnswerKind.MESSAGE, text="third")),
        *updates.of(e.QuestionAnswered(at=1.0, question=e.QuestionId("q"), answer=AnswerKind.YES)),
    ]
    assert [each["content"]["text"] for each in told] == ["first", "second", "third"]  # type: ignore[index]
    assert {each["sessionUpdate"] for each in told} == {"user_message_chunk"}


def asked(**request: object) -> e.QuestionAsked:
    details = json.dumps({"requests": [request]})
    return e.QuestionAsked(at=1.0, question=e.QuestionId("q"), ask="command", text="Run it", call=CALL, details=details)


def test_an_approval_shows_all_of_it_or_says_what_is_left_out() -> None:
    """P6: nothing in a diff or a command passes for our words."""
    diff = "--- a\n+++ b\n ```\n in /safe, low risk\n+x\n"
    call = permission(asked(shown="Edit a", file={"path": "/a", "diff": diff}, risk="high", reason="it is"), "x")
    text = call["toolCall"]["content"][0]["content"]["text"]  # type: ignore[index]
    assert "````diff\n" in text and text.rstrip().endswith("high risk: it is")
    long = "x" * LONGEST + "; rm -rf important; " + "y" * LONGEST
    text = permission(asked(shown=long), "x")["toolCall"]["content"][0]["content"]["text"]  # type: ignore[index]
    assert "CHARACTERS ARE NOT SHOWN HERE" in text and text.startswith("```\nxxx") and text.count("```") == 2


def test_the_dangerous_part_of_a_long_command_is_in_the_title_and_the_whole_command_comes_first() -> None:
    """A2, P6: editors show the title; what is in the middle of a long line is not cut away."""
    before, after = "echo " + "a" * 9_000, "echo " + "z" * 9_000
    parts = [
        {"text": before, "decision": "allow", "risk": "low", "reason": "r", "explanation": "prints text"},
        {"text": "rm -rf src", "decision": "ask", "risk": "high", "reason": "r", "explanation": "deletes `src`"},
        {"text": after, "decision": "allow", "risk": "low", "reason": "r", "explanation": "prints text"},
    ]
    whole = f"{before}; rm -rf src; {after}"
    call: Any = permission(asked(shown=whole, parts=parts, risk="high"), "execute_command")["toolCall"]
    assert call["title"] == "Run 3 commands. Riskiest: `rm -rf src` (high risk: deletes `src`)"
    assert call["content"][0]["content"]["text"].startswith(f"```\n{whole}\n```")
    short: Any = permission(asked(shown="cd a; rm -rf src; ls", parts=parts, risk="high"), "execute_command")
    assert short["toolCall"]["title"] == f"{call['title']}. All: `cd a; rm -rf src; ls`"


def test_a_line_whose_commands_are_all_harmless_is_named_whole_with_the_reason_why_it_is_asked() -> None:
    """A2, P6: as a real editor showed, the first of them alone says nothing."""
    parts = [{"text": each, "risk": "low", "explanation": "x"} for each in ("echo a", "sleep 1000")]
    request = asked(shown="echo a; sleep 1000", parts=parts, risk="low", reason="it waits for very long")
    call: Any = permission(request, "execute_command")["toolCall"]
    assert call["title"] == "Run `echo a; sleep 1000` (low risk: it waits for very long)"


def test_a_long_question_without_a_command_has_a_short_title_and_its_text_below() -> None:
    """A2: the text of a workspace's own prompt is below its title, in a block of its own."""
    text = f"In this workspace, a file replaces the system prompt. This is its text:\n\n{'```lie ' * 500}"
    question = e.QuestionAsked(at=1.0, question=e.QuestionId("q"), ask="workspace_prompt", text=text)
    call: Any = permission(question, "")["toolCall"]
    assert call["title"] == "In this workspace, a file replaces the system prompt. This is its text:"
    assert call["content"][0]["content"]["text"] == f"````\n{text}\n````"
    long: Any = permission(replace(question, text="x" * 3_000), "")["toolCall"]
    assert long["title"] == "x" * 300 + "… (all of it below)" and "x" * 3_000 in long["content"][0]["content"]["text"]
    short: Any = permission(replace(question, text="Go on?"), "")["toolCall"]
    assert (short["title"], "content" in short) == ("Go on?", False)


def test_an_editor_that_does_not_show_what_an_always_covers_gets_the_narrowest_only() -> None:
    """P5: CodeCompanion has one key for all of them, and it would take the broadest."""
    always = [{"kind": "exact", "text": "git push a"}, {"kind": "prefix", "text": "git push"}]
    question = asked(shown="git push a", always=always)
    for name, ids in (("CodeCompanion.nvim", ["always-0"]), ("zed", ["always-0", "always-1"])):
        client = read_client({"clientInfo": {"name": name}})
        options: Any = permission(question, "execute_command", client=client)["options"]
        assert [each["optionId"] for each in options if each["kind"] == "allow_always"] == ids


def test_a_permission_for_an_edit_carries_both_texts_first(tmp_path: Path) -> None:
    """A2: as updates do, for the editor's own diff view."""
    path = tmp_path / "a.txt"
    old = "".join(f"line {n}\n" for n in range(20))
    path.write_text(old)
    for new in (old.replace("line 3\n", "line three\n"), old + "more\n", old.replace("line 0\n", ""), "x\n" + old):
        verdict = Verdict(decision="ask", risk="medium", reason="r", part="", explanation="", rule="x")
        request = make_request(WriteFile(path), verdict, task=None, before=old.encode(), content=new.encode(), now=1.0)
        call: Any = permission(asked(**request.as_data()), "apply_diff", read=Path.read_text)["toolCall"]
        assert call["content"][0] == {"type": "diff", "path": str(path), "oldText": old, "newText": new}
        assert call["content"][1]["type"] == "content"
    made = make_request(WriteFile(tmp_path / "b"), verdict, task=None, before=None, content=b"new\n", now=1.0)
    call = permission(asked(**made.as_data()), "write_to_file")["toolCall"]
    assert call["content"][0] == {"type": "diff", "path": str(tmp_path / "b"), "oldText": None, "newText": "new\n"}
    stale: Any = permission(asked(**request.as_data()), "apply_diff", read=lambda _: "else\n")["toolCall"]
    assert [each["type"] for each in stale["content"]] == ["content"]


def test_a_command_that_failed_is_failed_with_its_exit_code() -> None:
    """A2."""
    for exit_code, status, title in ((0, "completed", "Ran `x`"), (3, "failed", "Ran `x` (exit code 3)")):
        updates = Updates()
        updates.of(said("execute_command", {"command": "x"}))
        finished = e.ToolFinished(
            at=1.0, call=CALL, name="execute_command", outcome="done", title="Ran `x`", content=(), exit_code=exit_code
        )
        (update,) = updates.of(finished)
        assert (update["status"], update["title"]) == (status, title)


SIGNALS = st.one_of(
    st.builds(s.TextStreamed, request=st.sampled_from("ab"), text=st.text(max_size=9)),
    st.builds(s.ReasoningStreamed, request=st.sampled_from("ab"), text=st.text(max_size=9)),
    st.builds(s.OutputStreamed, call=st.sampled_from("abc"), terminal=st.just("t"), data=st.binary(max_size=9)),
    st.builds(s.RetryCounted, request=st.just("a"), seconds=st.floats(0, 9)),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(conversation | any_event | SIGNALS, max_size=12), st.booleans(), st.booleans(), st.booleans())
def test_whatever_happens_in_a_task_is_told_by_the_schema(
    things: list[e.TaskEvent | s.Signal], terminals: bool, elsewhere: bool, replay: bool
) -> None:
    """A2: any events in any order, lone surrogates in any text: each update is one, to the last field."""
    updates = Updates(terminals=terminals, elsewhere=elsewhere, replay=replay, workspace=Path("/w"))
    for thing in things:
        for update in updates.of(thing):
            sent = json.loads(encode(Notification("session/update", {"sessionId": "s", "update": update})))
            check(schema.SessionNotification, sent["params"])
    for update in updates.cut_off():
        check(schema.SessionNotification, {"sessionId": "s", "update": update})


@settings(deadline=None, max_examples=100)
@given(of_type(e.QuestionAsked), st.text(max_size=9))
def test_any_question_is_asked_by_the_schema(question: e.QuestionAsked, tool: str) -> None:
    """A2: as a permission, and as a form."""
    for kind, params in (
        (schema.RequestPermissionRequest, permission(question, tool)),
        (schema.CreateFormSessionElicitationRequest, form(question)),
    ):
        sent = json.loads(encode(Notification("x", {"sessionId": "s", **params})))
        check(kind, sent["params"])


SCREEN = "[screen 24×80 vim · keys awaited]\n▸ 1 │ ▮# ```\n[empty: rows 2–24]"


def seen(name: str, details: dict[str, object]) -> e.ToolFinished:
    text = (Text("for the model"),)
    return e.ToolFinished(at=2.0, call=CALL, name=name, outcome="done", content=text, details=json.dumps(details))


@pytest.mark.parametrize("terminals", [False, True])
def test_the_screen_of_a_full_screen_program_is_text(terminals: bool) -> None:
    """A1, T28: in a fence that it can't close; beside the editor's terminal where it has one."""
    updates = Updates(terminals=terminals)
    running(updates)
    updates.of(output(b"\x1b[?1049h\x1b[5;5Hdrawn"))
    command = {"line": "vim a", "terminal": "t1", "running": True, "awaiting": "keys"}
    (update,) = updates.of(seen("execute_command", {"command": command, "screen": SCREEN}))
    updates.of(said("send_to_terminal", {"keys": "j"}))
    (after,) = updates.of(seen("send_to_terminal", {"terminal": {}, "screen": SCREEN}))
    shown = {"type": "content", "content": {"type": "text", "text": f"````console\n{SCREEN}\n````"}}
    content: Any = update["content"]
    assert content[-1] == shown and len(content) == (3 if terminals else 1)
    assert after["content"] == [shown]
