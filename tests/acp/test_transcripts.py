"""Sessions recorded from real editors, replayed: what they said then gets the same answers, in the same order, today.

The transcripts of CodeCompanion 19.22 in Neovim 0.12.4 and of agent-shell 0.74.3 in Emacs 30.2 were recorded by `make
editors` (test_editors.py), those of acpx by `make peers RECORD=1` (test_acpx.py). Only the paths were shortened. The
replay compares what the messages are and what an editor must show: kinds, states, options, diffs. It does not compare
our own words, so a recording stays as it was recorded when those change.
"""

import json
from collections import defaultdict, deque
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.acp.editor import editor, inside

pytestmark = pytest.mark.shell
TRANSCRIPTS = Path(__file__).parent / "transcripts"
SCRIPT = """
[[turn]]
text = "I will write it."
usage = { input = 100, output = 10 }
[[turn.call]]
name = "write_to_file"
arguments = { path = "note.txt", content = "one\\n" }
[[turn.call]]
name = "update_todo_list"
arguments = { todos = "[x] write\\n[-] run" }
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "cat note.txt; touch made; (exit 3)" }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "It is written." }
"""
WHOLE_LOOP = """
[[turn]]
text = "I will mend it."
usage = { input = 100, output = 10 }
[[turn.call]]
name = "search_and_replace"
arguments = { path = "app.py", search = "a - b", replace = "a + b" }
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch one two three four five six seven eight nine ten; rm -rf build; touch eleven twelve" }
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "cat app.py; test -e build" }
[[turn]]
text = "It adds now."
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "echo it has begun; sleep 1000" }
"""


def shape(message: dict[str, Any]) -> str:
    """What a message is, without what differs each time and without our words."""
    params = message.get("params", {})
    if message.get("method") == "session/update":
        update = params["update"]
        parts = [update["sessionUpdate"], update.get("kind"), update.get("status"), *contents(update)]
        return " ".join(filter(None, parts))
    if message.get("method") == "session/request_permission":
        options = [f"{each['optionId']}={each['kind']}" for each in params["options"]]
        return " ".join([message["method"], params["toolCall"]["kind"], *contents(params["toolCall"]), *options])
    if "method" in message:
        return str(message["method"])
    return f"response {sorted(message['result'])}"


def contents(call: dict[str, Any]) -> list[str]:
    """Their kinds in order; of a diff, both texts."""
    found = [each for each in call.get("content", []) if isinstance(each, dict)]
    return [
        f"diff {each['oldText']!r} {each['newText']!r}" if each.get("type") == "diff" else each["type"]
        for each in found
    ]


def shapes(messages: list[dict[str, Any]]) -> list[str]:
    """Of each message; several of the same kind in a row are one, as output may come in pieces."""
    return [each for each, _ in groupby(map(shape, messages))]


@pytest.mark.parametrize("file", sorted(TRANSCRIPTS.glob("*.jsonl")), ids=lambda file: file.stem)
async def test_a_recorded_editor_is_answered_as_it_was(file: Path, tmp_path: Path) -> None:
    """A2: its requests, its answers to ours; each of our messages of the same kind and at the same place."""
    (tmp_path / "build").mkdir()
    (tmp_path / "app.py").write_text("def add(a, b):\n    return a - b\n")
    rows = [json.loads(line.replace("/project", str(tmp_path))) for line in file.read_text().splitlines()]
    asked = {each["agent"]["id"]: each["agent"]["method"] for each in rows if _asks(each.get("agent"))}
    answers: dict[str, deque[Any]] = defaultdict(deque)
    again = []  # an editor may answer a question twice: agent-shell cancels all that were ever open
    for message in (row["editor"] for row in rows if "result" in row.get("editor", {})):
        if method := asked.pop(message["id"], ""):
            answers[method].append(message["result"])
        else:
            again.append(message)
    told = {"acp.client_terminals": "terminals" in file.stem}
    acpx = file.stem.startswith("acpx")
    async with inside(tmp_path, SCRIPT, told) if acpx else editor(tmp_path, WHOLE_LOOP) as ours:
        for method, given in answers.items():
            ours.serves[method] = partial(_next, given)
        ours.serves["fs/write_text_file"] = _write
        ours.choose = lambda _: answers["session/request_permission"].popleft()
        session, heard = "", list[dict[str, Any]]()
        for row in rows:
            message = row.get("editor", {})
            if message in again or "method" in message:  # said when all of this had been heard
                await ours.until(partial(_heard, ours, shapes(heard)))
            if message in again:
                ours.send(message)
            elif "method" in message:
                results = [each.get("result", {}) for each in ours.wire]
                session = next((each["sessionId"] for each in results if "sessionId" in each), session)
                params = message["params"] | ({"sessionId": session} if "sessionId" in message["params"] else {})
                ours.send({**message, "params": params})
                if message["method"] == "session/list":  # agent-shell asks beside its prompt: the answers have no order
                    await ours.until(partial(_answered, ours, message["id"]))
            heard += [row["agent"]] if "agent" in row else []
        await ours.until(partial(_heard, ours, shapes(heard)))
    assert shapes(ours.wire) == shapes(heard)


def _heard(ours: Any, expected: list[str]) -> bool:
    return len(shapes(ours.wire)) >= len(expected)


def _answered(ours: Any, number: int) -> bool:
    return any(each.get("id") == number and "result" in each for each in ours.wire)


def _write(params: dict[str, Any]) -> dict[str, Any]:
    Path(params["path"]).write_text(params["content"])
    return {}


def _next(given: "deque[Any]", _: object) -> Any:
    """The next answer; the last one again and again, as we may look more often than then."""
    return given[0] if len(given) == 1 else given.popleft()


def _asks(message: dict[str, Any] | None) -> bool:
    return message is not None and "id" in message and "method" in message
