"""An editor of version 2, a draft, drives `tarmac acp`.

No editor speaks it yet. Each test runs twice: by itself, and in `make peers` with each message checked by the draft's
schema, as @agentclientprotocol/sdk carries it. That check is stricter than the draft: what the draft leaves to
extensions is refused, because Tarmac sends none. The last test drives Tarmac with the SDK's own client.
"""

import base64
import json
import subprocess
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acp.editor import NEVER, Editor, Params, editor, inside, settings, sleepers
from tests.acp.test_agent import HELLO, WORK
from tests.installed import npm

from tarmac.acp.updates import EditorVersionTwo

pytestmark = pytest.mark.shell
SDK = "@agentclientprotocol/sdk@2.4.0"
INFO = {"name": "by hand", "version": "1"}
DEFINITIONS = {
    "initialize:": "InitializeResponse",
    "session/new:": "NewSessionResponse",
    "session/resume:": "ResumeSessionResponse",
    "session/list:": "ListSessionsResponse",
    "session/close:": "CloseSessionResponse",
    "session/delete:": "DeleteSessionResponse",
    "session/prompt:": "PromptResponse",
    "session/set_config_option:": "SetSessionConfigOptionResponse",
    "session/update": "UpdateSessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "elicitation/create": "CreateElicitationRequest",
}


class Two(Editor):
    """The client's side, in version 2."""

    def check(self, name: str, value: Any) -> None:
        assert name in DEFINITIONS, f"{name} is not in version 2"

    async def begun(self, folder: Path, **capabilities: Any) -> str:
        """A new session."""
        await self.call("initialize", {"protocolVersion": 2, "info": INFO, "capabilities": capabilities})
        return str((await self.call("session/new", {"cwd": str(folder)}))["sessionId"])

    async def say(self, session: str, text: str) -> str:
        """Prompt; the id of the message."""
        block = {"type": "text", "text": text}
        return str((await self.call("session/prompt", {"sessionId": session, "prompt": [block]}))["messageId"])

    def states(self) -> list[str]:
        return [each["state"] for each in self.updates("state_update")]

    async def idle(self, times: int = 1) -> Params:
        """Wait for the end of the turn; what was told of it."""
        await self.until(lambda: self.states().count("idle") >= times)
        return [each for each in self.updates("state_update") if each["state"] == "idle"][-1]

    def printed(self) -> bytes:
        return b"".join(base64.b64decode(each["data"]) for each in self.updates("terminal_output_chunk"))


class Drafted(Two):
    """The same; each message is checked."""

    def check(self, name: str, value: Any) -> None:
        validator(DEFINITIONS[name]).validate(value)


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    folder = npm("acp-sdk", SDK)[0].parent
    found = json.loads((folder / "@agentclientprotocol" / "sdk" / "schema" / "v2" / "schema.json").read_text())
    strict = _strict(deepcopy(found["$defs"]))
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "unevaluatedProperties": False, "$defs": strict})


def _strict(schema: Any) -> Any:
    """Without the variants for extensions, and with no field that is not named."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema if not (isinstance(each, dict) and each.get("title") == "other")]
    if not isinstance(schema, dict):
        return schema
    found = {key: _strict(each) for key, each in schema.items()}
    for key, each in found.get("properties", {}).items() if isinstance(found.get("properties"), dict) else ():
        if isinstance(each, dict) and key not in ("_meta", "rawInput", "rawOutput"):
            found["properties"][key] = {**each, "unevaluatedProperties": False}
    if isinstance(found.get("items"), dict):
        found["items"] = {**found["items"], "unevaluatedProperties": False}
    return found


@pytest.fixture(params=[Two, pytest.param(Drafted, marks=pytest.mark.peers)])
def kind(request: pytest.FixtureRequest) -> type[Two]:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(("offered", "answered"), [(0, 1), (1, 1), ("2", 1), (2, 2), (3, 2), (99, 2)])
async def test_the_highest_version_that_both_sides_speak_is_chosen(tmp_path: Path, offered: Any, answered: int) -> None:
    """A2: version 2 only with who offers it or a later one."""
    async with inside(tmp_path, HELLO, kind=Two) as ours:
        found = (await ours.ask("initialize", {"protocolVersion": offered, "info": INFO}))["result"]
    assert found["protocolVersion"] == answered
    assert ("agentInfo" in found, "info" in found) == (answered == 1, answered == 2)


@pytest.mark.peers
def test_the_check_by_the_schema_finds_what_is_wrong() -> None:
    """A2: a field that version 2 has not, a value of version 1, a field that is missing."""
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "t", "status": "pending"}
    whole: Params = {"sessionId": "s", "update": update}
    validator("UpdateSessionNotification").validate(whole)
    for wrong in (
        {**update, "titel": "t"},
        {**update, "sessionUpdate": "tool_call"},
        {**update, "status": "done"},
        {**update, "content": [{"type": "diff", "path": "/a", "oldText": None, "newText": "x"}]},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}},
        {"sessionUpdate": "state_update", "state": "sleepy"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator("UpdateSessionNotification").validate({**whole, "update": wrong})


async def test_a_turn_of_version_two(tmp_path: Path, kind: type[Two]) -> None:
    """A2: the answer has the message's id; running, its words, idle with the reason; the mode is an option."""
    (tmp_path / ".tarmac" / "commands").mkdir(parents=True)
    (tmp_path / ".tarmac" / "commands" / "greet.md").write_text("Say hello.\n")
    async with inside(tmp_path, HELLO, kind=kind) as ours:
        assert isinstance(ours, Two)
        session = await ours.begun(tmp_path)
        id = await ours.say(session, "/greet now")
        ended = await ours.idle()
        option = {"sessionId": session, "configId": "mode", "type": "id", "value": "architect"}
        options = (await ours.call("session/set_config_option", option))["configOptions"]
        assert {each["configId"]: each["currentValue"] for each in options}["mode"] == "architect"
        await ours.until(lambda: ours.updates("config_option_update"))
        for gone in ("session/load", "session/set_mode", "authenticate"):
            assert (await ours.refused(gone, {"sessionId": session}))["code"] == -32601
        assert await ours.call("session/close", {"sessionId": session}) == {}
        listed = (await ours.call("session/list", {}))["sessions"]
        await ours.call("session/delete", {"sessionId": session})
    assert (ours.states(), ended["stopReason"]) == (["running", "idle"], "end_turn")
    (said,) = ours.updates("user_message")
    assert (said["messageId"], said["content"]) == (id, [{"type": "text", "text": "/greet now"}])
    words: dict[str, str] = {}
    for each in ours.updates("agent_message_chunk"):
        words[each["messageId"]] = words.get(each["messageId"], "") + each["content"]["text"]
    assert list(words.values()) == ["Hello there.", " Done."]
    assert [each["sessionId"] for each in listed] == [session] and not ours.updates("current_mode_update")
    assert ours.updates("available_commands_update")[0]["availableCommands"][0]["input"]["type"] == "text"
    order = [each.get("method") or ("answer" if "messageId" in each.get("result", {}) else "") for each in ours.wire]
    assert order.index("answer") < len(order) - 1


async def test_work_of_version_two(tmp_path: Path, kind: type[Two]) -> None:
    """A2: a patch with absolute paths, a terminal of ours with its bytes and its exit code, a plan, two questions."""
    async with editor(tmp_path, WORK, kind=kind) as ours:
        assert isinstance(ours, Two)
        await ours.say(await ours.begun(tmp_path), "write it")
        await ours.idle()
    assert ours.states() == ["running", *["requires_action", "running"] * 2, "idle"]
    write, run = (next(iter(each)) for each in _calls(ours))
    (diff,) = _calls(ours)[0][write][-1]["content"]
    file = str(tmp_path / "note.txt")
    assert diff["changes"] == [{"operation": "add", "path": file, "fileType": "text"}]
    assert diff["patch"]["text"] == (
        f"diff --git {file} {file}\nnew file mode 100644\n--- /dev/null\n+++ {file}\n@@ -0,0 +1 @@\n+one\n"
    )
    assert ours.printed().replace(b"\r", b"") == b"one\nerr\n"
    begun, ended = ours.updates("terminal_update")
    assert (begun["command"], begun["cwd"]) == ("cat note.txt; printf 'err\\n' >&2; (exit 3)", str(tmp_path))
    assert ended["exitStatus"] == {"exitCode": 3, "signal": None}
    assert _calls(ours)[1][run][-1]["status"] == "failed"
    assert [each["status"] for each in ours.updates("plan_update")[0]["plan"]["entries"]] == [
        "completed", "in_progress", "pending"]  # fmt: skip
    edit, command = ours.asked
    assert edit["subject"]["toolCall"]["content"][0]["changes"][0]["operation"] == "add"
    assert "title" not in edit["subject"]["toolCall"] and edit["title"]
    assert command["subject"] == {"type": "command", "command": begun["command"], "cwd": str(tmp_path),
                                  "toolCallId": run}  # fmt: skip
    assert begun["command"] in command["description"] and "risk" in command["description"]


def _calls(ours: Editor) -> list[dict[str, list[Params]]]:
    """The updates of each call, in the order of their first ones."""
    found: dict[str, list[Params]] = {}
    for each in ours.updates("tool_call_update"):
        found.setdefault(each["toolCallId"], []).append(each)
    return [{id: each} for id, each in found.items()]


SLOW = """
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "echo up; sleep 1000" }
[[turn]]
text = "Later."
[[turn.call]]
name = "attempt_completion"
arguments = { result = "ok" }
"""


async def test_a_turn_of_version_two_is_stopped(tmp_path: Path, kind: type[Two]) -> None:
    """A2: its command ends, the reason is told, and the session goes on."""
    async with inside(tmp_path, SLOW, kind=kind) as ours:
        assert isinstance(ours, Two)
        session = await ours.begun(tmp_path)
        await ours.say(session, "wait")
        await ours.until(lambda: b"up" in ours.printed())
        ours.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await ours.idle())["stopReason"] == "cancelled"
        await ours.say(session, "go on")
        assert (await ours.idle(2))["stopReason"] == "end_turn"
    assert not sleepers(tmp_path) and "Later." in ours.said()


async def test_a_question_of_version_two_stays_until_it_is_withdrawn(tmp_path: Path, kind: type[Two]) -> None:
    """A2: what nobody answers requires an action; stopped, it does not any more."""
    async with inside(tmp_path, WORK, kind=kind) as ours:
        assert isinstance(ours, Two)
        ours.choose = lambda _: NEVER
        session = await ours.begun(tmp_path)
        await ours.say(session, "write it")
        await ours.until(lambda: ours.asked)
        await ours.until(lambda: ours.states()[-1] == "requires_action")
        ours.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await ours.idle())["stopReason"] == "cancelled"
    assert not (tmp_path / "note.txt").exists()


ASKS = """
[[turn]]
[[turn.call]]
name = "ask_followup_question"
arguments = { question = "Which colour?", follow_up = [{ text = "red" }, { text = "blue" }] }
[[turn]]
text = "So be it."
[[turn.call]]
name = "attempt_completion"
arguments = { result = "ok" }
"""


@pytest.mark.parametrize("forms", [True, False])
async def test_a_question_of_the_model_in_version_two(tmp_path: Path, kind: type[Two], forms: bool) -> None:
    """A2: a form where the editor has them; else the turn ends, and the next prompt is the answer."""
    async with inside(tmp_path, ASKS, kind=kind) as ours:
        assert isinstance(ours, Two)
        ours.serves["elicitation/create"] = lambda _: {"action": "accept", "content": {"choice": "blue"}}
        session = await ours.begun(tmp_path, **({"elicitation": {"form": {}}} if forms else {}))
        await ours.say(session, "paint")
        if not forms:
            assert (await ours.idle())["stopReason"] == "end_turn"
            id = await ours.say(session, "blue")
        assert (await ours.idle(1 if forms else 2))["stopReason"] == "end_turn"
    assert "So be it." in ours.said()
    if not forms:
        assert ours.updates("user_message")[-1]["messageId"] == id
        assert len(ours.updates("user_message")) == 2


async def test_a_session_of_version_two_is_replayed(tmp_path: Path, kind: type[Two]) -> None:
    """A2: from its start, under the same ids; without `replayFrom` not at all; from elsewhere it is refused."""
    async with inside(tmp_path, WORK, kind=kind) as ours:
        assert isinstance(ours, Two)
        session = await ours.begun(tmp_path)
        id = await ours.say(session, "write it")
        await ours.idle()
    async with inside(tmp_path, WORK, kind=kind) as later:
        assert isinstance(later, Two)
        await later.begun(tmp_path)
        again = {"sessionId": session, "cwd": str(tmp_path)}
        strange = await later.refused("session/resume", {**again, "replayFrom": {"type": "message"}})
        await later.call("session/resume", again)
        silent = [*later.updates("user_message_chunk"), *later.updates("tool_call_update")]
        await later.call("session/resume", {**again, "replayFrom": {"type": "start"}})
    assert (strange["code"], silent) == (-32602, [])
    (said,) = later.updates("user_message_chunk")
    assert (said["messageId"], said["content"]["text"]) == (id, "write it")
    assert [next(iter(each)) for each in _calls(later)] == [next(iter(each)) for each in _calls(ours)]


async def test_a_failed_turn_of_version_two_says_why(tmp_path: Path, kind: type[Two]) -> None:
    """A2: there is no request left that could fail."""
    async with inside(tmp_path, HELLO, kind=kind) as ours:
        assert isinstance(ours, Two)
        session = await ours.begun(tmp_path)
        await ours.say(session, "hello")
        await ours.idle()
        ours.choose = lambda _: {"outcome": {"outcome": "selected", "optionId": "reject"}}  # not to try again
        await ours.say(session, "and now?")  # the script has no more turns
        ended = await ours.idle(2)
    assert (ended["stopReason"], ended["error"]["code"]) == ("error", -32603) and ended["error"]["message"]


async def test_a_transport_that_version_two_has_not_is_refused(tmp_path: Path) -> None:
    """A2: as the draft wants it; in version 1 the person is told, and the session goes on."""
    async with inside(tmp_path, HELLO, kind=Two) as ours:
        assert isinstance(ours, Two)
        await ours.begun(tmp_path)
        server = {"type": "sse", "name": "old", "url": "http://127.0.0.1:9/sse"}
        refused = await ours.refused("session/new", {"cwd": str(tmp_path), "mcpServers": [server]})
    assert refused["code"] == -32602 and "sse" in refused["message"]


@pytest.mark.peers
def test_the_sdks_own_client_of_version_two_is_served(tmp_path: Path) -> None:
    """A2: nobody here wrote that client; it takes each message apart by the draft."""
    programs, environ = npm("acp-sdk", SDK)
    sdk = programs.parent / "@agentclientprotocol" / "sdk" / "dist" / "v2" / "stable" / "acp.js"
    client = Path(__file__).with_name("version_two_client.mjs")
    command = ["node", str(client), str(sdk), str(tmp_path), "write it", sys.executable, "-m", "tarmac", "acp"]
    ran = subprocess.run(command, env={**settings(tmp_path, WORK, {}), "PATH": environ["PATH"]}, capture_output=True,
                         text=True, timeout=120, check=True)  # fmt: skip
    found = json.loads(ran.stdout)
    assert found["version"] == 2 and (tmp_path / "note.txt").read_text() == "one\n"
    kinds = [each["sessionUpdate"] for each in found["updates"]]
    assert {"user_message", "tool_call_update", "terminal_update", "terminal_output_chunk", "plan_update"} <= set(kinds)
    assert found["updates"][-1] == {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
    assert [each["subject"]["type"] for each in found["asked"]] == ["tool_call", "command"]


@given(st.text(min_size=1).filter(lambda text: "\0" not in text and text.isprintable()), st.text(), st.text())
def test_a_patch_names_its_file_as_git_does(name: str, before: str, after: str) -> None:
    """A2: one header, then hunks; a strange name is quoted and stays on its line."""
    content = [{"type": "diff", "path": f"/w/{name}", "oldText": before, "newText": after}]
    (update,) = EditorVersionTwo().of({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": content})
    text = update["content"][0]["patch"]["text"]  # type: ignore[index]
    head = text.split("\n")
    assert head[0].startswith(("diff --git /w/", 'diff --git "/w/'))
    assert head[0].isascii() and (before == after or head[3].startswith("@@ "))
