"""An editor tells which files are open, which one is in front, what is selected, and its problems."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acp.editor import Editor, check, editor, inside, schema
from tests.acp.test_agent import HELLO

from tarmac.acp.content import EditorDocuments

pytestmark = pytest.mark.shell
TWICE = HELLO + HELLO


def span(first: int, last: int) -> dict[str, Any]:
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 3}}


def told(folder: Path) -> str:
    """What the model was told of its environment, in all turns."""
    (log,) = folder.glob("state/tasks/*/*.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return "\n".join(text for each in events if "<environment_details>" in (text := str(each.get("text", ""))))


async def begun(ours: Editor, folder: Path) -> str:
    found = await ours.initialize(nes={})
    assert set(found["agentCapabilities"]["nes"]["events"]["document"]) == {"didOpen", "didClose", "didFocus"}
    return str((await ours.call("session/new", {"cwd": str(folder), "mcpServers": []}))["sessionId"])


async def test_the_model_knows_what_the_editor_shows(tmp_path: Path) -> None:
    """A2, S8: a real process; open files, the current one with its selection, problems; later ones replace them."""
    (tmp_path / ".tarmacignore").write_text("secret/\n")
    a, b, key = (str(tmp_path / name) for name in ("a file.py", "b.py", "secret/key"))
    async with editor(tmp_path, TWICE) as ours:
        session = await begun(ours, tmp_path)
        started = (await ours.ask("nes/start", {"workspaceUri": tmp_path.as_uri()}))["result"]
        check(schema.StartNesResponse, started)
        document = {**started, "version": 1}
        for path in (a, b, key, "/elsewhere/c.py"):
            opened = {**document, "uri": Path(path).as_uri(), "languageId": "python", "text": "x\n"}
            check(schema.DidOpenDocumentNotification, opened)
            ours.send({"method": "document/didOpen", "params": opened})
        focus = {**document, "uri": Path(a).as_uri(), "position": {"line": 0, "character": 0}}
        ours.send({"method": "document/didFocus", "params": {**focus, "visibleRange": span(0, 9)}})
        await ours.prompt(session, "look")
        first = told(tmp_path)
        ours.send({"method": "document/didClose", "params": {**started, "uri": Path(a).as_uri()}})
        problem = {"uri": Path(b).as_uri(), "range": span(6, 6), "severity": "error", "message": "no such\nname"}
        wanted = {**document, "uri": Path(b).as_uri(), "position": {"line": 4, "character": 0}, "selection": span(4, 6),
                  "triggerKind": "manual", "context": {"diagnostics": [problem]}}  # fmt: skip
        check(schema.SuggestNesRequest, wanted)
        suggested = (await ours.ask("nes/suggest", wanted))["result"]
        check(schema.SuggestNesResponse, suggested)
        await ours.prompt(session, "look again")
        assert (await ours.ask("nes/close", started))["result"] == {}
    assert suggested == {"suggestions": []}
    assert "# File in front of the user: a file.py\n# Open files\n    a file.py\n    b.py\n" in first
    second = told(tmp_path)[len(first) :]
    assert "# File in front of the user: b.py (lines 5 to 7 are selected)\n# Open files\n    b.py\n" in second
    assert "# Problems in the editor\n    b.py:7: error: no such name\n" in second
    assert "secret/key" not in first + second and "elsewhere" not in first + second


async def test_an_editor_that_says_nothing_of_it_is_offered_nothing(tmp_path: Path) -> None:
    """A2: the draft is no part of version 1, and of none that was not asked for."""
    async with inside(tmp_path, HELLO) as ours:
        assert "nes" not in (await ours.initialize())["agentCapabilities"]
        assert (await ours.refused("nes/start", {}))["code"] == -32601


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=8) | st.just("file:///a"), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["uri", "context", "openFiles", "diagnostics", "selection", "range", "start", "end", "line", "message"]), inner,
        max_size=4)), max_leaves=12)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["didOpen", "didClose", "didFocus", "suggest"]), JSON), max_size=5))
def test_whatever_an_editor_tells_is_borne(things: list[tuple[str, Any]]) -> None:
    """A2."""
    documents = EditorDocuments()
    for name, params in things:
        if not isinstance(params, dict):
            continue
        if name == "suggest":
            documents.suggest(params)
        else:
            assert documents.told(f"document/{name}", params)
    assert all(path.is_absolute() for path in documents.open)
