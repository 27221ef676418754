"""Tools of a program that embeds Tarmac without terminals and without a policy."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, a_task, call, done, results, turn
from tests.tools import mcp_server
from tests.tools.workshop import Workshop

from tarmac.calls.call_judge import DenyAll, Judge
from tarmac.errors import TarmacError
from tarmac.events import TaskId
from tarmac.policy import ReadFile
from tarmac.terminals.pool.protocol import NoTerminals
from tarmac.tools.tool import Go, Want
from tarmac.tools.toolbox import toolbox

ARGUMENTS: dict[str, dict[str, object]] = {
    "execute_command": {"command": "true"},
    "run_command": {"command": "true"},
    "open_persistent_terminal": {},
    "run_persistent_command": {"command": "true", "id": "t1"},
    "read_terminal": {"id": "t1"},
    "send_to_terminal": {"id": "t1", "text": "x"},
    "wait_for_terminal": {},
    "kill_persistent_terminal": {"id": "t1"},
}


def test_every_terminal_tool_is_tried() -> None:
    """A6."""
    assert {each.name for each in toolbox() if each.group == "command"} == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_without_terminals_a_tool_says_so(shop: Workshop, name: str) -> None:
    """A6: NoTerminals works with every tool: it fails with words, or has nothing to do."""
    bench = replace(shop.bench, registry=NoTerminals())
    try:
        ready = await toolbox().decode(name, json.dumps(ARGUMENTS[name])).prepare(bench)
        done = await ready.act(Go(approved=True))
    except TarmacError as error:
        assert "terminal" in error.what.lower()
    else:
        assert name == "kill_persistent_terminal" and "is not open" in str(done.content)


# What each tool is called with, beside those above
OTHERS: dict[str, dict[str, object]] = {
    "read_file": {"path": "a.txt"},
    "list_files": {"path": "."},
    "search_files": {"path": ".", "regex": "one"},
    "list_code_definition_names": {"path": "."},
    "codebase_search": {"query": "one"},
    "fetch_url": {"url": "http://127.0.0.1:9/"},
    "browser_action": {"action": "launch", "url": "http://127.0.0.1:9/"},
    "write_to_file": {"path": "b.txt", "content": "b\n"},
    "apply_diff": {"path": "a.txt", "diff": "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE"},
    "insert_content": {"path": "a.txt", "line": 1, "content": "zero"},
    "search_and_replace": {"path": "a.txt", "search": "one", "replace": "two"},
    "apply_patch": {"patch": "*** Begin Patch\n*** Add File: b.txt\n+b\n*** End Patch"},
    "generate_image": {"prompt": "a cat", "path": "cat.png"},
    "use_mcp_tool": {"server_name": "s", "tool_name": "greet", "arguments": {"who": "me"}},
    "access_mcp_resource": {"server_name": "s", "uri": "file:///a"},
}
SETTINGS = {"tools.browser": True, "image_model": "openai/gpt-image-1"}
NEEDS_A_TERMINAL = set(ARGUMENTS) - {"execute_command", "run_command", "open_persistent_terminal"}


async def test_deny_all_denies_every_tool_in_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Callable[[str], None]
) -> None:
    """A6: the null policy works with every tool: the model is told no, and nothing happens."""
    require("chromium")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    (tmp_path / "user").mkdir()
    server = f"[servers.s]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(mcp_server.__file__)}]\n"
    (tmp_path / "user" / "mcp_servers.toml").write_text(server)
    calls = OTHERS | ARGUMENTS
    assert set(calls) == {each.name for each in toolbox() if each.group not in ("always", "modes")}
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    turns = [  # with a call that works in each: a model that gets nowhere would be stopped
        turn(call("update_todo_list", todos=f"[ ] {name}"), call(name, **arguments))
        for name, arguments in calls.items()
    ]
    async with a_task(work, *turns, done(), auto="all", config=SETTINGS) as task:
        task.switch_level(DenyAll(), task._state.context.settings)
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        assert task._state.context.registry.listing() == []
        assert [each.state for each in task.servers.status()] == ["not started"]
    found = {name: (outcome, text) for name, outcome, text in results(seen)}
    assert {path.name: path.read_text() for path in work.iterdir()} == {"a.txt": "one\n"}
    for name in calls:
        outcome, text = found[name]
        if name in NEEDS_A_TERMINAL:  # and none can be opened
            assert outcome in ("failed", "done") and text.endswith("No terminal is open.")
        else:
            assert outcome == "denied", (name, text)
            assert text.endswith("is not allowed, and was not done: this program allows nothing")


async def test_deny_all_denies_what_any_tool_wants(tmp_path: Path) -> None:
    """A6: every request is denied."""
    judge = Judge(policy=DenyAll(), workspace=tmp_path, task=TaskId("t"))
    judged = await judge.judge(Want(action=ReadFile(tmp_path / "a")))
    assert (judged.decision, judged.verdict.reason) == ("deny", "this program allows nothing")
