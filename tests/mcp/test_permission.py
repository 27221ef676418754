"""A yes is bound to what was shown, and good once, also where the client carries the state between two calls."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from tests.mcp.peers import Person, a_server, client_of, ran, refused, said, until

from tarmac.app import open_app
from tarmac.config import Config
from tarmac.events import TaskId
from tarmac.mcp.client import Form, FormReply
from tarmac.mcp.workspace import Workspace
from tarmac.paths import state_dir
from tarmac.tasks.events import CallJudged, TaskCompleted, ToolFinished, ToolStarted
from tarmac.tasks.store import TaskStore

pytestmark = pytest.mark.shell
YES: Any = {"approval": types.ElicitResult(action="accept", content={"decision": "Allow once"})}


async def asked(client: Client, command: str) -> types.InputRequiredResult:
    """The question, unanswered, as the stateless era has it."""
    result = await client.session.call_tool("run_command", {"command": command}, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def again(client: Client, command: str, state: str | None, responses: Any = YES) -> Any:
    return await client.session.call_tool(
        "run_command",
        {"command": command},
        input_responses=responses,
        request_state=state,
        allow_input_required=True,
    )


async def test_an_answer_counts_once(tmp_path: Path) -> None:
    """A3: a replayed answer asks anew; nothing runs twice."""
    async with a_server(tmp_path) as server, client_of(server, "2026-07-28", Person()) as client:
        question = await asked(client, "echo x >> log")
        await asyncio.sleep(0.25)
        first = await again(client, "echo x >> log", question.request_state)
        second = await again(client, "echo x >> log", question.request_state)
    assert isinstance(first, types.CallToolResult) and not first.is_error
    assert isinstance(second, types.InputRequiredResult)
    assert (tmp_path / "log").read_text() == "x\n"


async def test_an_answer_that_is_sent_many_times_at_once_counts_once(tmp_path: Path) -> None:
    """A3: the copies race, and one of them runs."""
    async with a_server(tmp_path) as server, client_of(server, "2026-07-28", Person()) as client:
        question = await asked(client, "echo x >> log")
        await asyncio.sleep(0.25)
        copies = await asyncio.gather(
            *(again(client, "echo x >> log", question.request_state) for _ in range(8)), return_exceptions=True
        )
    assert (tmp_path / "log").read_text() == "x\n", copies


async def test_an_answer_counts_for_its_own_command(tmp_path: Path) -> None:
    """A3: bound to the command."""
    async with a_server(tmp_path) as server, client_of(server, "2026-07-28", Person()) as client:
        question = await asked(client, "touch shown")
        await asyncio.sleep(0.25)
        with pytest.raises(Exception, match="requestState"):
            await again(client, "touch other", question.request_state)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("state", [None, "", "made-up", "v1.AAAA"])
async def test_an_answer_to_no_question_is_none(tmp_path: Path, state: str | None) -> None:
    async with a_server(tmp_path) as server, client_of(server, "2026-07-28", Person()) as client:
        try:
            result = await again(client, "touch made", state)
            assert isinstance(result, types.InputRequiredResult)
        except Exception as error:
            assert "requestState" in str(error)
    assert not (tmp_path / "made").exists()


async def test_a_terminal_that_moved_meanwhile_runs_nothing(tmp_path: Path) -> None:
    """P6: bound to the directory, too."""
    async with a_server(tmp_path) as server, client_of(server, "2026-07-28", Person()) as client:
        opened = await client.call_tool("open_persistent_terminal", {})
        id = opened.structured_content["id"]
        arguments = {"id": id, "command": "touch made"}
        question = await client.session.call_tool("run_persistent_command", arguments, allow_input_required=True)
        assert isinstance(question, types.InputRequiredResult)
        await client.call_tool("run_persistent_command", {"id": id, "command": "cd /"})
        result = await client.session.call_tool(
            "run_persistent_command",
            arguments,
            input_responses=YES,
            request_state=question.request_state,
            allow_input_required=True,
        )
    assert isinstance(result, types.InputRequiredResult)  # the question is another one now
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content", [None, {}, {"decision": "yes please"}, {"decision": 7}, {"decision": ["Allow once"]}, {"other": "x"}]
)
async def test_an_accepted_form_without_a_choice_is_no_yes(tmp_path: Path, content: Any) -> None:
    async def answer(_: Any, __: Any) -> types.ElicitResult:
        await asyncio.sleep(0.25)
        return types.ElicitResult(action="accept", content=content)

    async with a_server(tmp_path) as server, client_of(server, "legacy", answer) as client:
        result = await client.call_tool("run_command", {"command": "touch made"})
    assert result.is_error
    assert not (tmp_path / "made").exists()


async def test_a_question_hides_nothing(tmp_path: Path) -> None:
    """P6: characters that can't be seen are shown."""
    person = Person("Deny")
    async with a_server(tmp_path) as server, client_of(server, "legacy", person) as client:
        await client.call_tool("run_command", {"command": "touch a\u202e\x1b[8m; touch b"})
    assert "⟨U+202E⟩" in person.questions[0] and "⟨U+001B⟩" in person.questions[0]
    assert "\x1b" not in person.questions[0]
    assert json.dumps(person.schemas[0]["properties"]["decision"]["enum"]).count("Allow once") == 1


class Slow(Person):
    """Takes their time, until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        answer = await super().__call__(context, params)
        await self.free.wait()
        return answer


async def test_a_question_that_nobody_answers_stays_open_and_the_same_call_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: every call comes back; the question is put once, and its answer is good once."""
    monkeypatch.setattr("tarmac.mcp.tool_server.WITHIN", 4.0)  # 42 in earnest
    person = Slow()
    async with a_server(tmp_path) as server, client_of(server, "legacy", person) as client:
        told = await refused(client, "run_command", command="touch made")
        assert "has not answered yet" in told
        assert not (tmp_path / "made").exists()
        person.free.set()
        await ran(client, "touch made")
        assert len(person.questions) == 1
        await ran(client, "touch made")
        assert len(person.questions) == 2  # a yes is good once


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_a_cancelled_call_ends_its_command_and_nothing_else(tmp_path: Path, era: str) -> None:
    """A3: a client that takes its call back."""
    async with a_server(tmp_path) as server, client_of(server, era, Person()) as client:
        call = asyncio.create_task(ran(client, "X=1; echo $$ > pid; sleep 600", timeout=40))
        await until((tmp_path / "pid").exists)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        (terminal,) = next(iter(server._open.values())).registry.listing()
        await until(lambda: not terminal.busy)


async def test_a_call_that_is_taken_back_takes_its_question_with_it(tmp_path: Path) -> None:
    person = Slow()
    async with a_server(tmp_path) as server, client_of(server, "legacy", person) as client:
        call = asyncio.create_task(ran(client, "touch made"))
        await person.asked.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        person.free.set()
        await asyncio.sleep(0.3)
        place = next(iter(server._open.values()))
        assert not place.questions.waiting._open
    assert not (tmp_path / "made").exists()


async def test_no_call_takes_longer_than_its_client_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A3: whatever time it asks for, a call comes back with a handle."""
    monkeypatch.setattr("tarmac.mcp.tool_server.WITHIN", 3.0)  # 42 in earnest
    async with a_server(tmp_path) as server, client_of(server, "2026-07-28", Person()) as client:
        began = time.monotonic()
        result = await ran(client, "X=1; sleep 600", timeout=3600)
        took = time.monotonic() - began
    assert result["running"] and result["terminal_id"]
    assert took < 10


async def test_a_host_lends_its_own_terminals_and_asks_itself(tmp_path: Path) -> None:
    """A1: an agent that is hosted gets the host's registry and approvals over MCP, never a second one."""
    asked: list[Form] = []

    async def ask(question: Form) -> FormReply:
        asked.append(question)
        await asyncio.sleep(0.25)
        return FormReply(action="accept", choice=question.choices[0])

    async with open_app(Config(workspace=tmp_path, user_folder=Path.home() / "config")) as app:
        place = Workspace(app, task=TaskId("hosted"), ask=ask)
        async with a_server(tmp_path) as server:
            server.hosted = place
            async with client_of(server, "2026-07-28") as client:  # it can't be asked itself
                await ran(client, "touch made; X=1")
                (terminal,) = app.registry.listing(task="hosted")
                await ran(client, "echo $X > x")
        assert not terminal.closed  # the host's: it outlives the client
        await place.log.aclose()
    assert (tmp_path / "x").read_text() == "1\n"
    assert len(asked) == 2


@pytest.mark.parametrize(("command", "cwd"), [("touch made", ""), ("ls", "/")])
async def test_what_a_model_is_told_to_tell_its_person_works(tmp_path: Path, command: str, cwd: str) -> None:
    """A3: the command in the refusal, run as it stands and anywhere, allows the call."""
    async with a_server(tmp_path) as server, client_of(server, "legacy") as client:
        arguments = {"command": command, "cwd": cwd}
        told = await refused(client, "run_command", **arguments)
        (line,) = re.findall(r"tarmac grants allow.*?(?=\. Or|, or)", told)
        words = [sys.executable, "-m", *shlex.split(line)]
        allowed = await asyncio.to_thread(subprocess.run, words, cwd="/", capture_output=True, text=True, check=False)
        assert allowed.returncode == 0, allowed.stderr
        result = await client.call_tool("run_command", arguments)
        assert not result.is_error, said(result)


async def test_every_decision_is_in_a_log_that_can_be_read(tmp_path: Path) -> None:
    """P7: who asked, what was said to it, by whom and why, and what came of it; `tarmac tasks` shows it."""
    async with a_server(tmp_path) as server, client_of(server, "legacy", Person()) as client:
        await ran(client, "ls")
        await ran(client, "touch made; false")
        await refused(client, "run_command", command="rm -rf /")
        await client.call_tool("list_terminals", {})
    store = TaskStore(state_dir(os.environ) / "tasks")
    (task,) = [TaskId(each.name) for each in store.folder.iterdir() if each.is_dir()]
    events = (await store.read(task)).events
    judged = [(each.decision, each.by.partition(",")[0]) for each in events if isinstance(each, CallJudged)]
    made = [(each.outcome, each.exit_code) for each in events if isinstance(each, ToolFinished)]
    assert judged == [("allow", "policy"), ("allow", "the person"), ("deny", "policy")]
    assert made == [("done", 0), ("done", 1), ("denied", None)]
    assert [each.command for each in events if isinstance(each, ToolStarted)] == ["ls", "touch made; false"]
    assert isinstance(events[-1], TaskCompleted)
