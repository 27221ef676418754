"""Version 2 of the protocol, a draft: spoken with agents that answer with it, where the person asks for it.

The shapes are those of the schema in @agentclientprotocol/sdk 2.4.0. A real agent speaks it in test_host_agents.py.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acp.hosting import Stage, hosting
from tests.acp.test_host import OPTIONS, yes

from tarmac.acp.host.open_hosted import Wishes
from tarmac.acp.host.version_two import VersionTwo
from tarmac.tasks import events as e
from tarmac.tasks import signals as s

ANSWER = {
    "protocolVersion": 2,
    "info": {"name": "two", "version": "3"},
    "capabilities": {"session": {"prompt": {"image": {}}}},
}
ENVIRON: dict[str, Any] = {"AGENT_INITIALIZE": json.dumps(ANSWER), "AGENT_VERSION": "2"}
TWO = Wishes(version=2)


def update(name: str, /, **facts: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": name, **facts}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def data(words: str) -> str:
    return base64.b64encode(words.encode()).decode()


def said(stage: Stage) -> str:
    return "".join(each.text for each in stage.of(s.TextStreamed))


@pytest.mark.shell
async def test_a_turn_of_version_two(tmp_path: Path) -> None:
    """A1: the answer to the prompt does not end it; messages, a terminal of the agent's own, a plan, a question."""
    command = {"type": "command", "command": "touch made", "cwd": str(tmp_path / "work")}
    asked = {"title": "Run it?", "subject": command, "options": OPTIONS}
    async with hosting(tmp_path, wishes=TWO, **ENVIRON) as stage:
        stage.answer = yes
        found = await stage.play(
            update("agent_message_chunk", messageId="m1", content=text("Hel")),
            update("agent_message", messageId="m1", content=[text("Hello")]),
            update("terminal_update", terminalId="t1", command="make", output={"data": data("one\n")}),
            update("tool_call_update", toolCallId="c1", title="make", kind="execute", status="in_progress",
                   content=[{"type": "terminal", "terminalId": "t1"}]),
            update("terminal_output_chunk", terminalId="t1", data=data("two\n")),
            update("terminal_update", terminalId="t1", exitStatus={"exitCode": 3}),
            update("tool_call_update", toolCallId="c1", status="failed"),
            update("plan_update", plan={"type": "items", "planId": "p", "entries": [
                {"content": "a", "priority": "high", "status": "completed"}]}),
            {"call": "session/request_permission", "params": asked, "as": "p"},
        )  # fmt: skip
        name, heard = stage.hosted.name, stage.heard()
    assert (said(stage), name) == ("Hello", "two 3")
    ended = stage.of(e.ToolFinished)[0]
    assert (ended.exit_code, ended.outcome, ended.content[0].text) == (3, "failed", "one\ntwo\n")
    assert b"".join(each.data for each in stage.of(s.OutputStreamed)) == b"one\ntwo\n"
    assert [each.text for each in stage.of(e.TodosUpdated)[0].todos] == ["a"]
    assert found["p"]["outcome"] == {"outcome": "selected", "optionId": "fine"} and len(stage.asked) == 1
    offered = next(each["params"] for each in heard if each.get("method") == "initialize")
    assert offered["protocolVersion"] == 2 and offered["info"]["name"] == "tarmac"


@pytest.mark.shell
@pytest.mark.parametrize(("reason", "why"), [("end_turn", "idle"), ("refusal", "refused"), ("max_tokens", "limit")])
async def test_why_a_turn_of_version_two_ended_is_told(tmp_path: Path, reason: str, why: str) -> None:
    """A1."""
    async with hosting(tmp_path, wishes=TWO, **ENVIRON) as stage:
        assert (await stage.turn({"stop": reason})).why == why


@pytest.mark.shell
async def test_a_failure_of_version_two_is_told(tmp_path: Path) -> None:
    """A1: a state tells it, because the prompt was answered long before."""
    async with hosting(tmp_path, wishes=TWO, **ENVIRON) as stage:
        ended = await stage.turn({"stop": "error"})
    assert (ended.why, "no quota" in ended.text) == ("failed", True)


def change(operation: str, path: Path, patch: str = "", **more: Any) -> dict[str, Any]:
    found = {"type": "diff", "changes": [{"operation": operation, "path": str(path), **more}]}
    return {**found, "patch": {"format": "git_patch", "text": patch}} if patch else found


@pytest.mark.shell
async def test_an_edit_of_version_two_is_judged_and_shown_as_one_of_version_one(tmp_path: Path) -> None:
    """A1, P2: by each path that its diff names; what would be in the file is shown."""
    work = tmp_path / "work"
    work.mkdir()
    old, new, moved = work / "old.txt", work / "new.txt", work / ".git" / "config"
    old.write_text("one\ntwo\n")
    edit = f"diff --git {old} {old}\n--- {old}\n+++ {old}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    made = f"diff --git {new} {new}\nnew file mode 100644\n--- /dev/null\n+++ {new}\n@@ -0,0 +1 @@\n+first\n"
    contents = [change("modify", old, edit), change("add", new, made), change("move", moved, oldPath=str(old))]

    def asks(number: int, content: dict[str, Any]) -> dict[str, Any]:
        call = {"toolCallId": f"c{number}", "kind": "edit", "content": [content]}
        subject = {"type": "tool_call", "toolCall": call}
        params = {"title": "Edit?", "subject": subject, "options": OPTIONS}
        return {"call": "session/request_permission", "params": params, "as": f"p{number}"}

    async with hosting(tmp_path, wishes=TWO, **ENVIRON) as stage:
        stage.answer = yes
        await stage.play(
            *(asks(number, each) for number, each in enumerate(contents)),
            update("tool_call_update", toolCallId="c0", status="completed", content=[contents[0]]),
        )
    asked = [[each["file"] for each in json.loads(question.details)["requests"]] for question in stage.asked]
    assert [[each["path"] for each in files] for files in asked] == [[str(old)], [str(new)], [str(old), str(moved)]]
    assert ("-two\n+2" in asked[0][0]["diff"], asked[1][0]["diff"], asked[1][0]["new"]) == (True, "first\n", True)
    assert asked[2][1]["protected"]
    (finished,) = stage.of(e.ToolFinished)
    assert "-two\n+2" in json.loads(finished.details)["files"][0]["diff"]


@pytest.mark.shell
async def test_an_agent_of_version_two_that_dies_is_a_failure(tmp_path: Path) -> None:
    """A1: nobody waits for its end for ever, though no request is open."""
    async with hosting(tmp_path, wishes=TWO, **ENVIRON) as stage:
        ended = await stage.turn({"die": 3})
    assert ended.why == "failed" and "exit code 3" in ended.text


@pytest.mark.shell
async def test_an_agent_that_is_offered_two_and_answers_one_is_spoken_with_in_one(tmp_path: Path) -> None:
    """A1: and gets our capabilities of version 1."""
    async with hosting(tmp_path, wishes=TWO) as stage:
        assert (await stage.turn()).why == "idle"
        offered = next(each["params"] for each in stage.heard() if each.get("method") == "initialize")
    assert offered["clientCapabilities"]["terminal"] is True


@given(st.text(max_size=60), st.lists(st.integers(0, 60)))
def test_a_message_is_told_once_whatever_its_pieces(words: str, cuts: list[int]) -> None:
    """A1: chunks, and the whole of it so far, in any mixture."""
    fold, told = VersionTwo(), ""
    for end in sorted({min(cut, len(words)) for cut in cuts} | {len(words)}):
        whole: dict[str, Any] = {"sessionUpdate": "agent_message", "messageId": "m", "content": [text(words[:end])]}
        told += "".join(each["content"]["text"] for each in fold.of(whole))  # type: ignore[index]
    assert told == words


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)), max_leaves=8)  # fmt: skip
KINDS = ["state_update", "agent_message", "tool_call_update", "tool_call_content_chunk", "terminal_update",
         "terminal_output_chunk", "plan_update", "new"]  # fmt: skip
NAMES = ["content", "toolCallId", "terminalId", "output", "data", "exitStatus", "plan", "state", "messageId", "status"]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), JSON)), max_size=6))
def test_whatever_comes_is_borne(updates: list[tuple[str, dict[str, Any]]]) -> None:
    """A1: a draft changes."""
    fold = VersionTwo()
    for kind, facts in updates:
        fold.of({"sessionUpdate": kind, **facts})
