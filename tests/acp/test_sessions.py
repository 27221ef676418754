"""What an editor may do with its sessions beside working in them, and what it is told; a real process each time."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.acp.editor import NEVER, Editor, Refusal, editor, inside, sleepers
from tests.acp.test_agent import DONE, HELLO, QUESTION, SLOW

pytestmark = pytest.mark.shell


async def begun(ours: Editor, folder: Path, **more: Any) -> str:
    found = await ours.call("session/new", {"cwd": str(folder), "mcpServers": [], **more})
    return str(found["sessionId"])


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_the_first_request_is_answered_before_the_rest_of_tarmac_is_loaded(tmp_path: Path) -> None:
    """A2: for a part of the CPU that the first prompt takes; benchmarks/first_answer.py has the figure."""
    async with editor(tmp_path, HELLO) as ours:
        await ours.initialize()
        first = cpu_seconds(ours.process.pid)
        assert await ours.prompt(await begun(ours, tmp_path), "hello") == "end_turn"
        both = cpu_seconds(ours.process.pid)
    assert first < both * 0.6, (first, both)


async def test_the_home_and_what_belongs_to_tarmac_are_no_workspace(tmp_path: Path) -> None:
    """A2, P8: as for MCP clients."""
    home = tmp_path.with_name(f"{tmp_path.name}-home")
    (home / ".ssh").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    refused = {"/": "machine", home: "home", home / ".ssh": "credentials", tmp_path / "config": "belongs to Tarmac"}
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        for folder, why in refused.items():
            error = await ours.refused("session/new", {"cwd": str(folder), "mcpServers": []})
            assert why in error["message"]


async def test_a_cancel_that_comes_with_its_prompt_is_heeded(tmp_path: Path) -> None:
    """A2: in one write; the model is not asked, and the next prompt is served."""
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        turn = ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        ours.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await turn)["result"] == {"stopReason": "cancelled"}
        assert ours.said() == ""
        ours.send({"method": "session/cancel", "params": {"sessionId": session}})  # of nothing
        ours.send({"method": "session/cancel", "params": {"sessionId": ["odd"]}})
        assert await ours.prompt(session, "hello") == "end_turn"
        assert ours.said() == "Hello there. Done."


async def test_a_prompt_that_is_cancelled_as_a_request_is_answered_once(tmp_path: Path) -> None:
    """A2: `$/cancel_request`; the command ends with it."""
    async with inside(tmp_path, SLOW) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        turn = ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        id = ours._numbers
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
        ours.send({"method": "$/cancel_request", "params": {"requestId": id}})
        found = await turn
        assert found.get("error", {}).get("code") == -32800 or found["result"] == {"stopReason": "cancelled"}
        assert await ours.prompt(session, "and now?") == "end_turn"
        assert [each.get("id") for each in ours.wire if "method" not in each].count(id) == 1


async def test_the_person_is_told_once_which_mcp_servers_can_not_be_used(tmp_path: Path) -> None:
    """A2, S20: the session begins all the same."""
    good = {"name": "files", "command": "x", "args": [], "env": []}
    servers = [good, {"name": "odd\x1b[2J", "type": "http"}, {"type": "http"}, 5]
    async with inside(tmp_path, HELLO + HELLO) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path, mcpServers=servers)
        await ours.prompt(session, "hello")
        assert (
            ours.said().count("MCP servers") == 1
            and "odd" in ours.said()
            and "files" not in ours.said()
            and "\x1b" not in ours.said()
        )
        before = ours.said()
        await ours.prompt(session, "hello again")
        assert "MCP servers" not in ours.said().removeprefix(before)


@pytest.mark.parametrize(
    ("content", "answer"),
    [({"choice": "Tea"}, "Tea"), ({"own": " Water "}, "Water"), ({"choice": "Tea", "own": "hot"}, "Tea\nhot")],
)
async def test_a_question_is_a_form_where_the_editor_shows_forms(
    tmp_path: Path, content: dict[str, str], answer: str
) -> None:
    """A2: one of the choices or the person's own words, in the same turn."""
    forms: list[dict[str, Any]] = []
    async with inside(tmp_path, QUESTION) as ours:
        ours.serves["elicitation/create"] = lambda params: (
            forms.append(params) or {"action": "accept", "content": content}  # type: ignore[func-returns-value]
        )
        await ours.initialize(elicitation={"form": {}})
        session = await begun(ours, tmp_path)
        assert await ours.prompt(session, "serve me") == "end_turn"
        assert ours.said().endswith("Tea it is. Done.")
    (form,) = forms
    assert (form["message"], form["mode"], form["sessionId"]) == ("Tea or coffee?", "form", session)
    assert [each["const"] for each in form["requestedSchema"]["properties"]["choice"]["oneOf"]] == ["Tea", "Coffee"]
    log = "".join(path.read_text() for path in (tmp_path / "state" / "tasks" / session).glob("*.jsonl"))
    assert json.dumps(answer)[1:-1] in log


@pytest.mark.parametrize("way", ["decline", "cancel", "nonsense", "refuse", "empty"])
async def test_a_form_that_is_put_away_leaves_a_question_that_the_next_prompt_answers(tmp_path: Path, way: str) -> None:
    """A2: a no goes on without an answer; all else ends the turn as without forms."""
    answers = {
        "decline": {"action": "decline"},
        "cancel": {"action": "cancel"},
        "nonsense": [1],
        "empty": {"action": "accept", "content": {"choice": 5}},
    }

    def serve(_: dict[str, Any]) -> Any:
        if way == "refuse":
            raise Refusal("no forms today")
        return answers[way]

    async with inside(tmp_path, QUESTION) as ours:
        ours.serves["elicitation/create"] = serve
        await ours.initialize(elicitation={"form": {}})
        session = await begun(ours, tmp_path)
        assert await ours.prompt(session, "serve me") == "end_turn"
        if way != "decline":
            assert "1. Tea" in ours.said() and "it is" not in ours.said()
            assert await ours.prompt(session, "Tea") == "end_turn"
        assert ours.said().endswith("Tea it is. Done.")


async def test_an_elicitation_capability_without_form_advertises_nothing(tmp_path: Path) -> None:
    """A2: unlike MCP's."""
    async with inside(tmp_path, QUESTION) as ours:
        await ours.initialize(elicitation={})
        assert await ours.prompt(await begun(ours, tmp_path), "serve me") == "end_turn"
        assert not [each for each in ours.wire if each.get("method") == "elicitation/create"]


async def test_an_id_is_a_whole_id_and_a_session_is_loaded_where_it_belongs(tmp_path: Path) -> None:
    """A2: half an id deletes nothing; another folder's configuration does not count for it."""
    other = tmp_path / "other"
    other.mkdir()
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        assert (await ours.refused("session/close", {"sessionId": session[:4]}))["code"] == -32002
        await ours.prompt(session, "hello")
        await ours.call("session/close", {"sessionId": session})
        for verb in ("delete", "load", "resume"):
            for wrong in (session[:4], "nosuch"):
                params: dict[str, Any] = {"sessionId": wrong, "cwd": str(tmp_path), "mcpServers": []}
                assert (await ours.refused(f"session/{verb}", params))["code"] == -32002, (verb, wrong)
            for odd in ("../tasks", "", 5, "a\0b"):
                params = {"sessionId": odd, "cwd": str(tmp_path), "mcpServers": []}
                assert (await ours.refused(f"session/{verb}", params))["code"] == -32602, (verb, odd)
        there = {"sessionId": session, "cwd": str(other), "mcpServers": []}
        assert str(tmp_path) in (await ours.refused("session/load", there))["message"]
        for odd in ("x", -1, "9" * 30):
            assert (await ours.refused("session/list", {"cursor": odd}))["code"] == -32602
        assert [each["sessionId"] for each in (await ours.call("session/list", {}))["sessions"]] == [session]
        assert (await ours.call("session/list", {"cwd": str(other)}))["sessions"] == []
        assert ours.updates("session_info_update")[0]["title"] == "hello"


LOUD = (
    """
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch begun; yes 'a line of output ä' | head -c 12000000; touch done" }
[[turn]]
text = "That was loud."
"""
    + DONE
)


async def test_an_editor_that_reads_slowly_misses_output_and_nothing_else(tmp_path: Path) -> None:
    """A2: memory is bounded, the turn goes on, and it is told what it missed."""
    async with editor(tmp_path, LOUD) as ours:
        await ours.initialize(_meta={"terminal_output": True})
        session = await begun(ours, tmp_path)
        turn = asyncio.create_task(ours.prompt(session, "loud", timeout=60))
        await ours.until(lambda: ours.updates("tool_call_update"))
        ours.reader._transport.pause_reading()  # type: ignore[attr-defined]
        while not (tmp_path / "done").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
        resident = int(Path(f"/proc/{ours.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        ours.reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert await turn == "end_turn"
        assert ours.said() == "That was loud. Done."
    assert resident < 200 << 20
    told = [each.get("_meta", {}).get("terminal_output", {}) for each in ours.updates("tool_call_update")]
    output = "".join(each.get("data", "") for each in told)
    assert "bytes, which came faster than the editor took them]" in output and len(output) < 12_000_000


async def test_an_editor_that_closes_only_its_ear_is_gone(tmp_path: Path) -> None:
    """A2: what runs is ended though its mouth stays open."""
    async with editor(tmp_path, SLOW) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
        ours.reader._transport.close()  # type: ignore[attr-defined]
        ours.send({"id": 99, "method": "session/list", "params": {}})  # its answer finds nobody
        async with asyncio.timeout(10):
            assert await ours.process.wait() == 0


async def test_a_tarmac_that_is_terminated_leaves_no_process(tmp_path: Path) -> None:
    """A2: editors end their agents with SIGTERM."""
    async with editor(tmp_path, SLOW) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
        ours.process.send_signal(signal.SIGTERM)
        ours.code = 128 + signal.SIGTERM
        async with asyncio.timeout(10):
            await ours.process.wait()
        assert sleepers(tmp_path) == []


async def test_a_session_that_is_closed_at_work_answers_its_prompt(tmp_path: Path) -> None:
    """A2: closed or deleted; its command ends, and other sessions go on."""
    async with inside(tmp_path, SLOW) as ours:
        await ours.initialize()
        for verb in ("close", "delete"):
            session = await begun(ours, tmp_path)
            turn = ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
            while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
                await asyncio.sleep(0.02)
            await ours.call(f"session/{verb}", {"sessionId": session})
            async with asyncio.timeout(10):
                assert (await turn)["result"] == {"stopReason": "cancelled"}
            (tmp_path / "begun").unlink()
        assert sleepers(tmp_path) == []
        assert len((await ours.call("session/list", {}))["sessions"]) == 1


async def test_two_prompts_at_once_are_both_answered(tmp_path: Path) -> None:
    """A2: the second is heard after the tool call that runs."""
    script = (
        """
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch begun; until test -e go; do sleep 0.02; done" }
"""
        + HELLO
    )
    async with inside(tmp_path, script) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        first = asyncio.create_task(ours.prompt(session, "one"))
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
        second = asyncio.create_task(ours.prompt(session, "two"))
        await ours.call("session/list", {})  # so it has come
        (tmp_path / "go").touch()
        assert [await first, await second] == ["end_turn", "end_turn"]


async def test_one_session_that_can_not_be_had_leaves_the_others_alone(tmp_path: Path) -> None:
    """A2: a broken configuration, a model nobody knows, an option nobody has."""
    broken = tmp_path / "broken"
    (broken / ".tarmac").mkdir(parents=True)
    (broken / ".tarmac" / "config.toml").write_text("auto = [")
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        error = await ours.refused("session/new", {"cwd": str(broken), "mcpServers": []})
        assert error["code"] == -32602 and "config.toml" in error["message"]
        for params in ({"configId": "model", "value": "nosuch/x"}, {"configId": "colour", "value": "red"}):
            found = await ours.refused("session/set_config_option", {"sessionId": session, **params})
            assert found["code"] in (-32602, -32603) and found["message"]
        assert await ours.prompt(session, "hello") == "end_turn"


async def test_the_order_of_updates_holds_under_load(tmp_path: Path) -> None:
    """A2: of many sessions at once, each one's updates after its id, in order, and all before its prompt's answer."""
    words = "".join(f"word{number} " for number in range(2000))
    script = f"""
[[turn]]
text = "{words}"
[[turn.call]]
name = "execute_command"
arguments = {{ command = "seq 3000; touch made" }}
[[turn]]
text = "The end."
{DONE}"""
    async with inside(tmp_path, script) as ours:
        await ours.initialize(_meta={"terminal_output": True})
        sessions = [await begun(ours, tmp_path) for _ in range(6)]
        found = await asyncio.gather(*(ours.prompt(each, "go", timeout=60) for each in sessions))
    assert found == ["end_turn"] * 6
    ends = [at for at, each in enumerate(ours.wire) if each.get("result") == {"stopReason": "end_turn"}]
    for session in sessions:
        at = [n for n, each in enumerate(ours.wire) if each.get("params", {}).get("sessionId") == session]
        made = next(n for n, each in enumerate(ours.wire) if each.get("result", {}).get("sessionId") == session)
        updates = [ours.wire[n]["params"]["update"] for n in at if ours.wire[n]["method"] == "session/update"]
        texts = [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
        assert "".join(texts) == f"{words}The end. Done."
        data = [each.get("_meta", {}).get("terminal_output", {}).get("data", "") for each in updates]
        assert "".join(data).split() == [str(number) for number in range(1, 3001)]
        kinds = [each.get("status") for each in updates if each["sessionUpdate"].startswith("tool_call")]
        assert [each for each in kinds if each] == ["pending", "in_progress", "completed"]
        assert made < min(at) and sum(end > max(at) for end in ends) >= 1
    assert all(each.get("method") != "session/update" for each in ours.wire[max(ends) :])


async def test_an_editor_that_goes_while_it_asks_has_not_said_no(tmp_path: Path) -> None:
    """A2, S4: what only waited is asked again, when somebody is there."""
    async with inside(tmp_path, SLOW) as ours:
        ours.choose = lambda _: NEVER
        await ours.initialize()
        session = await begun(ours, tmp_path)
        ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        await ours.until(lambda: ours.asked)
    log = "".join(path.read_text() for path in (tmp_path / "state" / "tasks" / session).glob("*.jsonl"))
    assert "question_asked" in log and "question_answered" not in log and "denied" not in log


async def test_many_sessions_are_listed_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: each once, the newest first."""
    monkeypatch.setattr("tarmac.acp.editor_sessions.PAGE", 2)
    async with inside(tmp_path, HELLO) as ours:
        await ours.initialize()
        sessions = [await begun(ours, tmp_path) for _ in range(5)]
        found: list[str] = []
        cursor: dict[str, str] = {}
        for _ in range(3):
            page = await ours.call("session/list", {"cwd": str(tmp_path), **cursor})
            found += [each["sessionId"] for each in page["sessions"]]
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else {}
        assert found == sessions[::-1] and not cursor


async def test_a_session_that_is_deleted_takes_its_background_commands_along(tmp_path: Path) -> None:
    """A2, T9: one that is closed leaves them running."""
    script = (
        """
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch begun; sleep 600", timeout = 0.3 }
"""
        + HELLO
    )
    async with inside(tmp_path, script) as ours:
        await ours.initialize()
        session = await begun(ours, tmp_path)
        assert await ours.prompt(session, "go") == "end_turn"
        await ours.call("session/close", {"sessionId": session})
        assert len(sleepers(tmp_path)) == 1
        await ours.call("session/delete", {"sessionId": session})
        assert sleepers(tmp_path) == []


async def test_a_second_editor_loads_a_session_that_is_at_work_and_answers_it(tmp_path: Path) -> None:
    """F8, A2: session/load joins a task that another process has open; its question is asked there, too."""
    script = SLOW.replace("touch begun; sleep 600", "touch begun")
    async with inside(tmp_path, script) as one, inside(tmp_path, script) as two:
        await one.initialize()
        await two.initialize()
        one.choose = lambda _: NEVER
        session = await begun(one, tmp_path)
        turn = one.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        await one.until(lambda: one.asked)
        await two.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        async with asyncio.timeout(60):
            assert (await turn)["result"] == {"stopReason": "end_turn"}
        assert (tmp_path / "begun").exists() and len(two.asked) == 1
        await two.until(lambda: "And on." in two.said())
