"""Sessions recorded from real editors, replayed: what they said then gets the same answers, in the same order, today.

Recorded with `acpx --format json exec`, which prints both sides of the wire; the paths were shortened.
"""

import asyncio
import json
from collections import defaultdict, deque
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.acp.editor import inside

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


def shape(message: dict[str, Any]) -> str:
    """What a message is, without what differs each time."""
    if message.get("method") == "session/update":
        update = message["params"]["update"]
        contents = [each.get("type") for each in update.get("content", []) if isinstance(each, dict)]
        return " ".join(filter(None, [update["sessionUpdate"], update.get("status"), *contents]))
    if "method" in message:
        return str(message["method"])
    return f"response {sorted(message['result'])}"


@pytest.mark.parametrize("file", sorted(TRANSCRIPTS.glob("*.jsonl")), ids=lambda file: file.stem)
async def test_a_recorded_editor_is_answered_as_it_was(file: Path, tmp_path: Path) -> None:
    """A2: its requests, its answers to ours; each of our messages of the same kind and at the same place."""
    rows = [json.loads(line.replace("/project", str(tmp_path))) for line in file.read_text().splitlines()]
    asked = {each["agent"]["id"]: each["agent"]["method"] for each in rows if _asks(each.get("agent"))}
    answers: dict[str, deque[Any]] = defaultdict(deque)
    for each in (row["editor"] for row in rows if "editor" in row):
        if "method" not in each:
            answers[asked[each["id"]]].append(each["result"])
    told = {"acp.client_terminals": "terminals" in file.stem}
    async with inside(tmp_path, SCRIPT, told) as ours:
        for method, given in answers.items():
            ours.serves[method] = partial(_next, given)
        ours.choose = lambda _: answers["session/request_permission"].popleft()
        session = ""
        for row in rows:
            message = row.get("editor", {})
            if "method" in message and "id" in message:
                params = message["params"] | ({"sessionId": session} if "sessionId" in message["params"] else {})
                async with asyncio.timeout(20):
                    result = (await ours.ask(message["method"], params))["result"]
                session = result.get("sessionId", session)
            await asyncio.sleep(0)
        await ours.until(lambda: len(ours.wire) >= len([row for row in rows if "agent" in row]))
    assert [shape(each) for each in ours.wire] == [shape(row["agent"]) for row in rows if "agent" in row]


def _next(given: "deque[Any]", _: object) -> Any:
    """The next answer; the last one again and again, as we may look more often than then."""
    return given[0] if len(given) == 1 else given.popleft()


def _asks(message: dict[str, Any] | None) -> bool:
    return message is not None and "id" in message and "method" in message
