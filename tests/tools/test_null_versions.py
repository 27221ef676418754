"""Tools of a program that embeds Tarmac without terminals and without a policy."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
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


async def test_deny_all_denies_what_any_tool_wants(tmp_path: Path) -> None:
    """A6: every request is denied."""
    judge = Judge(policy=DenyAll(), workspace=tmp_path, task=TaskId("t"))
    judged = await judge.judge(Want(action=ReadFile(tmp_path / "a")))
    assert (judged.decision, judged.verdict.reason) == ("deny", "this program allows nothing")
