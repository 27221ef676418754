"""An editor drives Tarmac: a real process on its standard input and output, a scripted model, real files and shells."""

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acp.editor import allow, editor, inside, sleepers

pytestmark = pytest.mark.shell

DONE = """
[[turn.call]]
name = "attempt_completion"
arguments = { result = " Done." }
"""
HELLO = f"""
[[turn]]
text = "Hello there."
usage = {{ input = 100, output = 5 }}
{DONE}"""
WORK = """
context_window = 1000
[[turn]]
text = "I will write it."
usage = { input = 100, output = 10 }
[[turn.call]]
name = "write_to_file"
arguments = { path = "note.txt", content = "one\\n" }
[[turn.call]]
name = "update_todo_list"
arguments = { todos = "[x] write\\n[-] run\\n[ ] rest" }
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "cat note.txt; printf 'err\\\\n' >&2; (exit 3)" }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "It is written." }
"""


def by_kind(options: list[dict[str, str]]) -> list[str]:
    return [each["kind"] for each in options]


async def test_an_editor_is_told_what_we_are_in_version_1(tmp_path: Path) -> None:
    """A2: also one that offers nothing that makes sense; nothing else is served before."""
    async with inside(tmp_path, HELLO) as ours:
        assert (await ours.refused("session/new", {"cwd": str(tmp_path)}))["code"] == -32600
        for offered in (1, 0, "2025-11-25"):
            found = await ours.call("initialize", {"protocolVersion": offered, "clientCapabilities": {}})
            assert (found["protocolVersion"], found["agentInfo"]["name"]) == (1, "tarmac")
        assert found["agentCapabilities"]["loadSession"] is True
        assert (await ours.refused("session/fork", {}))["code"] == -32601


async def test_a_prompt_is_answered_and_all_updates_come_before_its_end(tmp_path: Path) -> None:
    """A2: text as it streams; the commands of a new session come after its id."""
    (tmp_path / ".tarmac" / "commands").mkdir(parents=True)
    (tmp_path / ".tarmac" / "commands" / "greet.md").write_text("Say hello.\n")
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        made = await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert [each["id"] for each in made["modes"]["availableModes"]][:2] == ["architect", "code"] or made["modes"]
        assert {each["id"] for each in made["configOptions"]} == {"mode", "model"}
        assert await ours.prompt(made["sessionId"], "/greet now") == "end_turn"
        assert ours.said() == "Hello there. Done."
        kinds = [each.get("method") or "response" for each in ours.wire]
        assert kinds.index("session/update") > 1 and kinds[-1] == "response"
        (commands,) = ours.updates("available_commands_update")
        assert [(each["name"], each["description"]) for each in commands["availableCommands"]] == [
            ("greet", "Say hello.")
        ]


async def test_work_is_shown_as_calls_with_diffs_output_plan_and_use(tmp_path: Path) -> None:
    """A2: each call announced, begun and ended; permission asked with what will be done; the todo list as a plan."""
    async with editor(tmp_path, WORK) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        assert await ours.prompt(session, "write it") == "end_turn"
    assert (tmp_path / "note.txt").read_text() == "one\n"
    write, run = ours.updates("tool_call")
    assert (write["kind"], write["status"], run["kind"]) == ("edit", "pending", "execute")
    assert write["rawInput"] == {"path": "note.txt", "content": "one\n"}
    updates = {each["toolCallId"]: each for each in ours.updates("tool_call_update")}  # the last of each
    diff = {"type": "diff", "path": str(tmp_path / "note.txt"), "oldText": None, "newText": "one\n"}
    assert (updates[write["toolCallId"]]["status"], updates[write["toolCallId"]]["content"]) == ("completed", [diff])
    (console,) = updates[run["toolCallId"]]["content"]
    assert "one\nerr" in console["content"]["text"]
    (plan,) = ours.updates("plan")
    assert [each["status"] for each in plan["entries"]] == ["completed", "in_progress", "pending"]
    assert ours.updates("usage_update")[0]["used"] == 110
    assert ours.said().endswith("It is written.")
    assert [by_kind(each["options"])[0] for each in ours.asked] == ["allow_once", "allow_once"]
    shown = ours.asked[1]["toolCall"]["content"][0]["content"]["text"]
    assert "cat note.txt; printf" in shown and f"in {tmp_path}" in shown and "risk:" in shown


async def test_commands_are_terminals_where_the_editor_shows_ours(tmp_path: Path) -> None:
    """A2: by the `_meta.terminal_*` convention: info, output, exit."""
    async with inside(tmp_path, WORK) as ours:
        await ours.initialize(_meta={"terminal_output": True})
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        await ours.prompt(session, "write it")
    call = ours.updates("tool_call")[1]["toolCallId"]
    updates = [each for each in ours.updates("tool_call_update") if each["toolCallId"] == call]
    metas: dict[str, Any] = {}
    output = ""
    for each in updates:
        metas |= each.get("_meta", {})
        output += each.get("_meta", {}).get("terminal_output", {}).get("data", "")
    assert updates[0]["content"] == [{"type": "terminal", "terminalId": call}]
    assert metas["terminal_info"] == {"terminal_id": call, "cwd": str(tmp_path)}
    assert output.replace("\r", "") == "one\nerr\n"
    assert metas["terminal_exit"] == {"terminal_id": call, "exit_code": 3, "signal": None}


async def test_a_no_is_told_to_the_model_and_nothing_is_done(tmp_path: Path) -> None:
    """A2, P6: by its kind; an option nobody offered is a no as well."""
    for answer in ({"outcome": "selected", "optionId": "reject"}, {"outcome": "selected", "optionId": "nosuch"}):
        folder = tmp_path / answer["optionId"]
        folder.mkdir()
        async with inside(folder, WORK) as ours:
            ours.choose = lambda _, answer=answer: {"outcome": answer}  # type: ignore[misc]
            await ours.initialize()
            session = (await ours.call("session/new", {"cwd": str(folder), "mcpServers": []}))["sessionId"]
            await ours.prompt(session, "write it")
        assert not (folder / "note.txt").exists()
        assert ours.updates("tool_call_update")[-1]["status"] in ("failed", "completed")


ALWAYS = (
    """
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch a" }
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch a" }
[[turn]]
text = "Done."
"""
    + DONE
)


async def test_an_always_is_asked_once(tmp_path: Path) -> None:
    """A2, P6: exactly what is offered is remembered."""

    def always(params: dict[str, Any]) -> dict[str, Any]:
        found = [each["optionId"] for each in params["options"] if each["kind"] == "allow_always"]
        return {"outcome": {"outcome": "selected", "optionId": found[0]}}

    async with inside(tmp_path, ALWAYS) as ours:
        ours.choose = always
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        await ours.prompt(session, "go")
    assert len(ours.asked) == 1 and (tmp_path / "a").exists()


SUBTASK = """
[[turn]]
[[turn.call]]
name = "new_task"
arguments = { message = "part one" }
[[turn]]
task = "part one"
[[turn.call]]
name = "write_to_file"
arguments = { path = "x.txt", content = "x" }
[[turn]]
task = "part one"
text = "Written."
[[turn]]
text = "All of it."
"""


async def test_a_subtasks_questions_reach_the_editor(tmp_path: Path) -> None:
    """A2, S15: they are asked in the session of the parent."""
    async with inside(tmp_path, SUBTASK) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        await ours.prompt(session, "go")
    assert len(ours.asked) == 2 and {each["sessionId"] for each in ours.asked} == {session}
    assert (tmp_path / "x.txt").read_text() == "x"


SLOW = (
    """
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch begun; sleep 600" }
[[turn]]
text = "And on."
"""
    + DONE
)


async def test_a_turn_can_be_cancelled_while_a_command_runs_and_while_it_asks(tmp_path: Path) -> None:
    """A2: stop reason cancelled, no process left, and the session goes on."""
    async with inside(tmp_path, SLOW) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        turn = asyncio.create_task(ours.prompt(session, "wait"))
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
        ours.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert await turn == "cancelled"
        assert await ours.prompt(session, "and now?") == "end_turn"
        assert ours.said() == "And on. Done."


async def test_a_permission_that_is_cancelled_ends_the_turn(tmp_path: Path) -> None:
    """A2: the editor answers what is pending with `cancelled` when its person stops."""
    async with inside(tmp_path, SLOW) as ours:
        ours.choose = lambda _: {"outcome": {"outcome": "cancelled"}}
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        assert await ours.prompt(session, "wait") == "cancelled"
        assert not (tmp_path / "begun").exists()


QUESTION = (
    """
[[turn]]
[[turn.call]]
name = "ask_followup_question"
arguments = { question = "Tea or coffee?", follow_up = [{ text = "Tea" }, { text = "Coffee" }] }
[[turn]]
text = "Tea it is."
"""
    + DONE
)


async def test_a_question_ends_the_turn_and_the_next_prompt_answers_it(tmp_path: Path) -> None:
    """A2, S10: an editor has no other place for it."""
    async with inside(tmp_path, QUESTION) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        assert await ours.prompt(session, "serve me") == "end_turn"
        assert "Tea or coffee?" in ours.said() and "1. Tea" in ours.said()
        assert await ours.prompt(session, "Tea") == "end_turn"
        assert ours.said().endswith("Tea it is. Done.")


async def test_sessions_are_listed_loaded_resumed_closed_and_deleted(tmp_path: Path) -> None:
    """A2: the same tasks in another process; what was said is told again by load, and not by resume."""
    there = {"cwd": str(tmp_path), "mcpServers": []}
    async with inside(tmp_path, WORK) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", there))["sessionId"]
        silent = (await ours.call("session/new", there))["sessionId"]
        await ours.prompt(session, "write it")
        await ours.call("session/close", {"sessionId": silent})
        assert (await ours.refused("session/prompt", {"sessionId": silent, "prompt": []}))["code"] == -32002
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        (listed,) = (await ours.call("session/list", {"cwd": str(tmp_path)}))["sessions"]
        assert (listed["sessionId"], listed["cwd"], listed["title"]) == (session, str(tmp_path), "write it")
        await ours.call("session/load", {"sessionId": session, **there})
        kinds = [each["sessionUpdate"] for each in ours.updates()]
        assert kinds[0] == "user_message_chunk" and {"tool_call", "tool_call_update", "plan"} <= set(kinds)
        await ours.call("session/close", {"sessionId": session})
        before = len(ours.updates())
        await ours.call("session/resume", {"sessionId": session, **there})
        await ours.until(lambda: len(ours.updates()) > before)
        assert [each["sessionUpdate"] for each in ours.updates()[before:]] == ["available_commands_update"]
        await ours.call("session/delete", {"sessionId": session})
        assert (await ours.call("session/list", {}))["sessions"] == []
        assert (await ours.refused("session/load", {"sessionId": session, **there}))["code"] == -32002


async def test_mode_and_model_are_options(tmp_path: Path) -> None:
    """A2: set by either way, told by both."""
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        made = await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        session = made["sessionId"]
        await ours.call("session/set_mode", {"sessionId": session, "modeId": "ask"})
        await ours.until(lambda: ours.updates("current_mode_update"))
        found = await ours.call(
            "session/set_config_option", {"sessionId": session, "configId": "mode", "value": "debug"}
        )
        assert next(each for each in found["configOptions"] if each["id"] == "mode")["currentValue"] == "debug"
        error = await ours.refused("session/set_mode", {"sessionId": session, "modeId": "debugg"})
        assert error["code"] == -32602 and "debug" in error["message"]


async def test_pictures_and_files_come_with_a_prompt_and_sound_is_refused(tmp_path: Path) -> None:
    """A2: images and embedded context."""
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30)).decode()
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x/a.py", "name": "a.py"},
        {"type": "resource", "resource": {"uri": "file:///x/b.py", "text": "```\nfence"}},
        {"type": "resource", "resource": {"uri": "file:///x/c.png", "blob": picture, "mimeType": "image/png"}},
    ]
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        no_picture = {"uri": "x", "text": "no blob", "mimeType": "image/png"}
        odd = [{"type": "hologram"}], "text", [{"type": "resource", "resource": no_picture}]
        for wrong in ([{"type": "audio", "data": "", "mimeType": "audio/wav"}], [], *odd):
            assert (await ours.refused("session/prompt", {"sessionId": session, "prompt": wrong}))["code"] == -32602
        found = await ours.call("session/prompt", {"sessionId": session, "prompt": blocks})
        assert found["stopReason"] == "end_turn"


async def test_an_editor_that_dies_leaves_no_process_and_a_task_that_resumes(tmp_path: Path) -> None:
    """A2: in the middle of a command."""
    async with editor(tmp_path, SLOW) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
    assert sleepers(tmp_path) == []
    async with editor(tmp_path, SLOW) as ours:
        await ours.initialize()
        await ours.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})


async def test_without_a_model_a_session_says_what_to_set(tmp_path: Path) -> None:
    """A2: one clear message."""
    async with inside(tmp_path, HELLO, TARMAC_MODEL="") as ours:
        await ours.initialize()
        error = await ours.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert "no model" in error["message"] and "TARMAC_MODEL" in error["message"]
        for wrong in ({"cwd": "relative"}, {"cwd": "/nonexistent/x"}, {}):
            assert (await ours.refused("session/new", wrong))["code"] == -32602


def test_an_answer_by_kind() -> None:
    assert allow({"options": [{"optionId": "x", "kind": "allow_once"}]})["outcome"]["optionId"] == "x"


SERVED = f"""
[[turn]]
[[turn.call]]
name = "use_mcp_tool"
arguments = {{ server_name = "tester", tool_name = "greet", arguments = "{{\\"who\\": \\"Ada\\"}}" }}
{DONE}"""


async def test_servers_that_the_editor_passes_are_used(tmp_path: Path) -> None:
    """S20: by a question for each tool."""
    script = Path(__file__).parents[1] / "tools" / "mcp_server.py"
    given = {"name": "tester", "command": sys.executable, "args": [str(script)], "env": [{"name": "A", "value": "b"}]}
    async with inside(tmp_path, SERVED) as ours:
        await ours.initialize()
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": [given]}))["sessionId"]
        assert await ours.prompt(session, "greet Ada") == "end_turn"
        (asked,) = ours.asked
        assert "tester greet" in json.dumps(asked)
        last = ours.updates("tool_call_update")[-1]
        assert last["status"] == "completed" and "Hello Ada!" in json.dumps(last)


def test_the_first_answer_does_not_wait_for_policy_tasks_and_terminals() -> None:
    """A1: they are imported while the editor reads it."""
    heavy = ("tarmac.policy", "tarmac.tasks.events", "tarmac.terminals.execution", "anthropic", "openai")
    code = f"import sys, tarmac.acp.agent; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
