"""Whatever a command comes to, its data fits the schema that was promised, and a message can carry it."""

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.events import TerminalId
from tarmac.mcp import workspace
from tarmac.mcp.adapter import _result
from tarmac.mcp.catalog import BY_NAME, ENTRIES
from tarmac.mcp.client import ToolAnswer
from tarmac.models.provider import ToolSchema
from tarmac.policy.verdict import Decision, Part, Risk, Verdict
from tarmac.tasks.views.model_history import text_size, tools_size
from tarmac.terminals.result import Evidence, Reason, Result
from tarmac.tools.execute_command import done
from tarmac.tools.report import Report

pytestmark = pytest.mark.slow

texts = st.text(st.characters(), max_size=40)  # also halves of characters, and what can't be seen
paths = st.sampled_from(["/", "/a b", "/\udcff", "/x\n"]).map(Path)
commands = st.builds(
    Result,
    command=st.text(st.characters(), min_size=1, max_size=40),
    output=texts,
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.just("SIGKILL"),
    reason=st.sampled_from(get_args(Reason)),
    duration=st.floats(0, 1e6),
    cwd=paths,
    truncated=st.booleans(),
    evidence=st.sampled_from(get_args(Evidence)),
    output_path=st.none() | paths,
    output_bytes=st.integers(0, 1 << 40),
    pipestatus=st.lists(st.integers(0, 255), max_size=3).map(tuple),
    binary=st.booleans(),
    forged_marks=st.integers(0, 3),
    fresh_shell=st.booleans(),
    awaiting=st.none() | st.sampled_from(["line", "secret", "keys", "unknown"]),
    prompt=texts,
    notes=st.lists(texts, max_size=2).map(tuple),
)
reports = st.builds(
    Report,
    result=commands,
    cwd=paths,
    terminal=st.none() | st.just(TerminalId("t3")),
    number=st.integers(0, 9),
    stays=st.booleans(),
    alone=st.just(True),
)
decisions, risks = st.sampled_from(get_args(Decision)), st.sampled_from(get_args(Risk))
parts = st.builds(
    Part,
    text=texts,
    words=st.none(),
    decision=decisions,
    risk=risks,
    reason=texts,
    explanation=texts,
    rule=texts,
)
verdicts = st.builds(
    Verdict,
    decision=decisions,
    risk=risks,
    reason=texts,
    part=texts,
    explanation=texts,
    rule=texts,
    suggested_grants=st.just(()),
    plan=st.none(),
    parts=st.lists(parts, max_size=3).map(tuple),
)
VALID = {each.name: jsonschema.Draft202012Validator(each.output) for each in ENTRIES}


def carried(name: str, data: dict[str, object], text: str = "") -> None:
    """It goes over the wire, and is then what was promised."""
    message = _result(ToolAnswer(text=text, data=data, title=text)).model_dump_json(by_alias=True)
    found = json.loads(message.encode())["structuredContent"]
    VALID[name].validate(found)
    assert None not in found.values()


@settings(max_examples=100, deadline=None)
@given(reports)
def test_a_commands_result_is_what_was_promised(report: Report) -> None:
    """A3: structured output fits its schema, always."""
    made = done(report)
    whole = workspace.data_of("run_command", made)
    data = workspace.lean(whole)
    carried("run_command", data, str(report))
    usual = {"running": False, "reason": "done", "truncated": False}
    assert {**usual, **data}.items() >= {key: whole[key] for key in (*usual, "output")}.items()
    assert ("exit_code" in data) == (report.result.exit_code is not None)
    assert ("next" in data) >= whole["running"]


@settings(deadline=None)
@given(verdicts)
def test_a_verdict_is_what_was_promised(verdict: Verdict) -> None:
    """A3."""
    carried("check_command", workspace.verdict_data(verdict))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.name)
def test_a_tool_says_what_it_does_to_the_world(entry: object) -> None:
    """A3: annotations. What runs commands or ends them may destroy; what only looks says so."""
    looks = {"list_terminals", "read_terminal", "look_at_terminal", "wait_for_terminal", "check_command"}
    runs = {"run_command", "run_persistent_command", "send_to_terminal"}
    ends = {"interrupt_terminal", "kill_persistent_terminal"}
    each = BY_NAME[entry.name]  # type: ignore[attr-defined]
    assert each.read_only == (each.name in looks)
    assert each.destructive == (each.name in runs | ends)
    assert each.open_world == (each.name in runs)
    if each.name in ends:
        assert each.idempotent  # a second time changes nothing
    for schema in (each.input, each.output):
        assert schema is not None
        assert schema["additionalProperties"] is False
        jsonschema.Draft202012Validator.check_schema(schema)


def test_all_tools_together_cost_little() -> None:
    """A3: a client gives them to its model with every request."""
    schemas = [ToolSchema(name=each.name, description=each.text, parameters=each.input) for each in ENTRIES]
    assert tools_size(schemas) < 1_500


@settings(deadline=None)
@given(st.text(max_size=3))
def test_a_short_result_is_short(output: str) -> None:
    """A3: what is as usual is left out, so that three bytes cost 40 tokens at most."""
    usual = {"command": "x" * 200, "cwd": "/a", "cwd_after": "/a", "running": False, "reason": "done"}
    told = workspace.lean({**usual, "truncated": False, "duration": 0.02, "exit_code": 0, "output": output})
    assert told == {"exit_code": 0, "output": output}
    assert text_size(json.dumps(told)) <= 40


def test_a_short_result_is_short_as_text_too() -> None:
    """A3: many clients give their model the text, not the data. What a result must say is still said."""

    def said(*, sandboxed: bool = False, **odd: Any) -> str:
        usual = Result(
            "echo ok", "ok\n", 0, None, "done", 0.02, Path("/a"), truncated=False, evidence="mark", output_path=None
        )
        result = usual._replace(**odd)
        return str(Report(result=result, cwd=Path("/a"), terminal=TerminalId("t1"), lean=True, sandboxed=sandboxed))

    assert said().startswith("Exit code: 0. Output (untrusted):\n<output-")
    assert text_size(said()) <= 40
    assert said(output="") == "Exit code: 0. Output: (none)"
    odd: list[dict[str, Any]] = [
        {"exit_code": 1},
        {"cwd": Path("/b")},
        {"notes": ("x",)},
        {"fresh_shell": True},
        {"truncated": True},
    ]
    assert all("Command executed in" in said(**each) for each in odd)
    assert "in the sandbox" in said(sandboxed=True)
