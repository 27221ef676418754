"""Our terminals for a hosted agent over MCP: who gets in, whose terminals they are, who is asked, and their end."""

import asyncio
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acp.hosting import Stage, hosting
from tests.acp.test_host import OPTIONS, create, on

from tarmac import paths
from tarmac.acp.host.bridge_server import BRIDGE
from tarmac.acp.host.open_hosted import Lend, Wishes
from tarmac.app import App
from tarmac.cli.host import LentTerminals
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.terminals.process import processes

pytestmark = [pytest.mark.shell, pytest.mark.slow]
CONNECT = {"connect": "mcp"}


def lend(app: App) -> Lend:
    return lambda hosted: LentTerminals(app, hosted)


@asynccontextmanager
async def lending(folder: Path, **more: Any) -> AsyncIterator[Stage]:
    async with hosting(folder, lend=lend, **more) as stage:
        yield stage


def tool(name: str, as_: str = "x", how: str = "tool", **arguments: Any) -> dict[str, Any]:
    return {how: name, "arguments": arguments, "as": as_}


def yes(_: e.QuestionAsked) -> AnswerKind:
    return AnswerKind.YES


def data(result: dict[str, Any]) -> dict[str, Any]:
    assert not result.get("isError"), result
    found: dict[str, Any] = result["structuredContent"]
    return found


def notes(stage: Stage) -> list[str]:
    return [each.text for each in stage.of(e.Noted)]


# What it gets


async def test_an_agent_runs_commands_in_terminals_of_its_task(tmp_path: Path) -> None:
    """A1: one registry, one asking, one log: what is run over MCP is judged, asked, shown and kept as all it does."""
    async with lending(tmp_path) as stage:
        stage.answer = yes
        found = await stage.play(
            CONNECT,
            tool("run_command", "a", command="X=5; echo out; touch made; (exit 3)"),
            tool("run_command", "b", command="echo $X > x"),
            tool("run_command", "c", command="ls"),
        )
        (terminal,) = stage.hosted.state.context.registry.listing(task=stage.hosted.id)
        assert data(found["a"])["terminal_id"] == data(found["b"])["terminal_id"] == terminal.id
    assert (tmp_path / "work" / "x").read_text() == "5\n"
    assert data(found["a"])["exit_code"] == 3
    assert data(found["c"])["output"].split() == ["made", "x"]
    assert [each.ask for each in stage.asked] == ["command", "command"]  # `ls` only reads
    assert "X=5; echo out" in stage.asked[0].details
    ended = [(each.title, each.exit_code) for each in stage.of(e.ToolFinished)]
    assert ended == [("Ran `X=5; echo out; touch made; (exit 3)`", 3), ("Ran `echo $X > x`", 0), ("Ran `ls`", 0)]
    assert b"out" in b"".join(each.data for each in stage.of(s.OutputStreamed))
    assert [each.decision for each in stage.of(e.CallJudged)] == ["ask", "ask", "allow"]
    folders = [each for each in (tmp_path / "state" / "tasks").iterdir() if each.is_dir()]
    assert [each.name for each in folders] == [stage.hosted.id]  # no second task for what came over MCP


async def test_what_is_denied_is_told_and_shown_once(tmp_path: Path) -> None:
    async with lending(tmp_path) as stage:
        found = await stage.play(CONNECT, tool("run_command", "a", command="touch made"))
    assert found["a"]["isError"]
    assert "denied" in found["a"]["content"][0]["text"]
    assert not (tmp_path / "work" / "made").exists()
    assert [each.outcome for each in stage.of(e.ToolFinished)] == ["denied"]


async def test_a_command_that_a_person_changed_is_the_one_that_runs_and_is_told(tmp_path: Path) -> None:
    async with lending(tmp_path) as stage:

        def change(asked: e.QuestionAsked) -> None:
            edited = None if "other" in asked.details else "touch other"
            stage.start(stage.hosted.answer(asked.question, Answer(AnswerKind.YES, edited=edited, by="test")))

        stage.answer = change
        found = await stage.play(CONNECT, tool("run_command", "a", command="touch made"))
    assert (tmp_path / "work" / "other").exists() and not (tmp_path / "work" / "made").exists()
    assert "changed the command to: touch other" in found["a"]["content"][0]["text"]
    assert stage.of(e.ToolFinished)[-1].title == "Ran `touch other`"


async def test_a_yes_to_the_agents_own_question_is_good_for_the_call(tmp_path: Path) -> None:
    """A1: an agent that asks before it uses our tool makes the person answer once; for another command, twice."""
    async with lending(tmp_path) as stage:
        stage.answer = yes
        call = {"toolCallId": "c", "title": "mcp__tarmac__run_command", "kind": "other"}
        ask = {"call": "session/request_permission", "as": "p"}
        first = {"toolCall": {**call, "rawInput": {"command": "touch a"}}, "options": OPTIONS}
        await stage.play(CONNECT, {**ask, "params": first}, tool("run_command", "a", command="touch a"))
        assert len(stage.asked) == 1
        await stage.play({**ask, "params": first}, tool("run_command", "b", command="touch b"))
        assert len(stage.asked) == 3
    assert (tmp_path / "work" / "a").exists() and (tmp_path / "work" / "b").exists()


async def test_a_call_that_the_agent_tells_of_as_well_is_shown_once(tmp_path: Path) -> None:
    """A1: its own word on a call of our tool is no news when we made it; of one that never came it is."""

    def update(**more: Any) -> dict[str, Any]:
        return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", **more}}

    theirs = {"title": "tarmac_run_command", "kind": "other", "rawInput": {"command": "ls"}}
    text = [{"type": "content", "content": {"type": "text", "text": "made"}}]
    async with lending(tmp_path) as stage:
        await stage.play(
            CONNECT,
            update(**theirs, status="in_progress"),
            tool("run_command", "a", command="ls"),
            update(status="completed", content=text),
            {"update": {"sessionUpdate": "tool_call", "toolCallId": "d", **theirs, "status": "completed"}},
        )
    assert [each.title for each in stage.of(e.ToolFinished)] == ["Ran `ls`", "Used tarmac_run_command"]


@pytest.mark.parametrize("status", ["pending", "in_progress"])
async def test_a_call_whose_title_is_the_command_is_shown_once(tmp_path: Path, status: str) -> None:
    """A1: gemini names a call of our tool by its command alone."""
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "mcp_x", "title": "X=1; echo hi", "kind": "other"}
    async with lending(tmp_path, auto="all", attended=False) as stage:
        await stage.play(
            CONNECT,
            {"update": {**call, "status": status}},
            tool("run_command", "a", command="X=1; echo hi"),
            {"update": {**call, "status": "completed"}},
        )
    assert [each.title for each in stage.of(e.ToolFinished)] == ["Ran `X=1; echo hi`"]
    assert len(stage.of(e.ToolStarted)) == 1
    (call_id,) = {each.call for each in stage.of(s.OutputStreamed)}
    assert stage.of(e.ToolFinished)[0].call == stage.of(e.ToolStarted)[0].call == call_id


@pytest.mark.parametrize("slowness", ["0", "2"])  # seconds that our server takes to start, as on a busy machine
async def test_the_first_turn_waits_until_the_agent_knows_our_tools(tmp_path: Path, slowness: str) -> None:
    """A1: codex-acp asks its model before its MCP servers have answered; one-shot, the tools would never be offered."""
    async with lending(tmp_path, AGENT_EARLY=slowness) as stage:  # starts it with session/new, lists a second later
        await stage.play({"shell": "true"})
        heard = [each.get("method") for each in stage.heard()]
    assert heard.index("tools listed") < heard.index("session/prompt")


async def test_a_question_that_takes_long_is_found_answered_by_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: the call comes back in time, the question stays; asked once, whatever the agent does meanwhile."""
    monkeypatch.setattr("tarmac.mcp.tool_server.WITHIN", 2.5)  # 42 in earnest
    async with lending(tmp_path) as stage:
        waits = asyncio.Event()

        def later(asked: e.QuestionAsked) -> None:
            async def answer() -> None:
                await waits.wait()
                await stage.hosted.answer(asked.question, Answer(AnswerKind.YES, by="test"))

            stage.start(answer())

        def hear(_: int | None, thing: object) -> None:
            if isinstance(thing, s.TextStreamed):
                assert not stage.of(e.ToolFinished)  # nothing is told as denied that is still asked
                waits.set()

        stage.answer = later
        stage.hosted.subscribe(hear)
        found = await stage.play(
            CONNECT,
            tool("run_command", "a", command="touch made"),
            {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "once more"}}},
            tool("run_command", "b", command="touch made"),
        )
        assert found["a"]["isError"] and "answer" in found["a"]["content"][0]["text"]
        assert data(found["b"])["exit_code"] == 0
    assert len(stage.asked) == 1


async def test_stopping_the_turn_ends_what_runs(tmp_path: Path) -> None:
    began = asyncio.Event()
    async with lending(tmp_path, auto="all", attended=False) as stage:

        def hear(_: int | None, thing: object) -> None:
            if isinstance(thing, s.OutputStreamed) and b"began" in thing.data:
                began.set()

        stage.hosted.subscribe(hear)
        turn = asyncio.create_task(
            stage.turn(
                CONNECT,
                tool("run_command", "a", command="X=1; echo began; sleep 1000"),
                {"until": "session/cancel"},
                {"stop": "cancelled"},
            )
        )
        async with asyncio.timeout(15):
            await began.wait()
            stage.hosted.cancel()
            assert (await turn).why == "interrupted"
        assert not stage.hosted.state.context.registry.listing(task=stage.hosted.id)[0].busy
        found = await stage.play(tool("run_command", "b", command="echo again > again"))
        assert data(found["b"])["exit_code"] == 0


async def test_terminals_over_mcp_end_with_the_agent(tmp_path: Path) -> None:
    """A1: nothing of it survives, nor does the socket."""
    async with lending(tmp_path, auto="all", attended=False, TMPDIR=str(tmp_path)) as stage:
        found = await stage.play(
            CONNECT,
            tool("open_persistent_terminal", "open"),
            tool("run_command", "a", command="X=1; setsid sh -c 'echo $$ > pid; exec sleep 1000' & wait", timeout=1),
            create("true"),
            on("release", "r"),
        )  # fmt: skip
        assert data(found["open"])["id"]
        hatch = stage.hosted.bridge
        assert hatch is not None and hatch.came.is_set()
    assert processes.look(int((tmp_path / "work" / "pid").read_text())) is None
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("tarmac-")] == []


# Who gets in


async def test_the_way_in_is_private_and_the_secret_is_no_word_of_a_command(tmp_path: Path) -> None:
    """A1: the socket is ours alone, and what `ps` shows of the server does not open it."""
    async with lending(tmp_path, TMPDIR=str(tmp_path)) as stage:
        await stage.play({"stop": "end_turn"})
        (new,) = [each for each in stage.heard() if each.get("method") == "session/new"]
        (entry,) = new["params"]["mcpServers"]
        ((name, value),) = [(each["name"], each["value"]) for each in entry["env"]]
        secret, _, place = value.partition(" ")
        found = Path(place).stat()
        assert (stat.S_ISSOCK(found.st_mode), stat.S_IMODE(found.st_mode)) == (True, 0o600)
        assert stat.S_IMODE(Path(place).parent.stat().st_mode) == 0o700
        assert secret not in " ".join([entry["command"], *entry["args"]])
        assert len(secret) >= 40 and name.startswith("TARMAC_")  # which no command of ours inherits


async def test_a_wrong_secret_a_second_use_and_a_stranger_are_refused_and_told(tmp_path: Path) -> None:
    """A1: once, by who knows the secret, below the agent."""
    async with lending(tmp_path) as stage:
        found = await stage.play(
            {"connect": "wrong", "env": {"TARMAC_BRIDGE": "x{TARMAC_BRIDGE}"}},
            CONNECT,
            {"connect": "again"},
            tool("run_command", "a", command="ls"),
        )
        assert "does not know the secret" in found["wrong"]["refused"]
        assert found["mcp"]["serverInfo"]["name"] == "tarmac"
        assert "used before" in found["again"]["refused"]
        assert data(found["a"])["exit_code"] == 0  # who is in stays in
        hatch = stage.hosted.bridge
        assert hatch is not None
        value = hatch.entry()["env"][0]["value"]  # type: ignore[index]
        reason = await _connect(str(value))  # this process: it knows the secret, and is above the agent
        assert "does not descend from the agent" in reason
    assert [len([each for each in notes(stage) if word in each]) for word in ("know", "before", "descend")] == [1, 1, 1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_does_not_get_in_even_with_the_secret_and_an_open_folder(tmp_path: Path) -> None:
    """A1: the folder keeps them out; where it does not, the kernel says who they are."""
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o755)
        async with lending(tmp_path, TMPDIR=open_to_all) as stage:
            hatch = stage.hosted.bridge
            assert hatch is not None
            place = hatch._path
            said = hatch._secret
            assert "Permission denied" in await _connect_as_nobody(place, said)
            place.parent.chmod(0o755)
            place.chmod(0o666)
            assert await _connect_as_nobody(place, said) == "-it belongs to another user (65534)\n"
            place.parent.chmod(0o700)
            assert "mcp" in await stage.play(CONNECT)  # who may come in does


async def _connect_as_nobody(place: Path, secret: str) -> str:
    """What a process of another user hears."""
    script = (
        "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try:\n s.connect(sys.argv[1]); s.send(sys.argv[2].encode() + b'\\n'); print(s.recv(1000).decode(), end='')\n"
        "except OSError as error: print(error)\n"
    )
    words = [sys.executable, "-c", script, str(place), secret]
    return (await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=False)).stdout


async def test_a_daemon_below_the_agent_still_counts(tmp_path: Path) -> None:
    """The agent's process adopts what was orphaned below it, so that two forks and a session don't matter."""
    forks = "import os, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    both = [sys.executable, "-c", f"{forks}os.execv(sys.argv[1], sys.argv[1:])"]
    async with lending(tmp_path) as stage:
        found = await stage.play({**CONNECT, "with": both}, tool("run_command", "a", command="ls"))
    assert data(found["a"])["exit_code"] == 0


async def test_who_floods_the_way_in_or_says_nothing_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarmac.acp.host.bridge_server.TO_SAY_IT", 0.5)
    async with lending(tmp_path) as stage:
        hatch = stage.hosted.bridge
        assert hatch is not None
        refused = await asyncio.gather(*(_connect(f"{'y' * 4000} {hatch._path}") for _ in range(40)))
        assert all(each.startswith("-") for each in refused)
        found = await stage.play(CONNECT)
        assert found["mcp"]["serverInfo"]["name"] == "tarmac"
    assert len(notes(stage)) <= 5


async def test_garbage_on_the_way_in_ends_nothing(tmp_path: Path) -> None:
    async with lending(tmp_path) as stage:
        found = await stage.play(
            CONNECT,
            {"shell": "true"},
            {"tool": "no_such", "arguments": {}, "as": "n"},
            {"tool": "run_command", "arguments": {"command": 7}, "as": "w"},
            tool("run_command", "a", command="ls"),
        )
    assert "Unknown tool" in str(found["n"]) and found["w"]["isError"]
    assert data(found["a"])["exit_code"] == 0


# Agents that don't


async def test_an_agent_that_takes_no_servers_works_without(tmp_path: Path) -> None:
    """A1: session/new is asked again without them, and it is told."""
    async with lending(tmp_path, AGENT_NO_MCP="1") as stage:
        assert (await stage.turn({"stop": "end_turn"})).why == "idle"
        assert [len(each["params"]["mcpServers"]) for each in stage.heard() if each.get("method") == "session/new"] == [
            1,
            0,
        ]
        log = (tmp_path / "state" / "tasks" / stage.hosted.id / "log.jsonl").read_text()
        first, second = (each["params"] for each in stage.heard() if each.get("method") == "session/new")
    assert "does not take Tarmac's terminals over MCP" in log
    assert "_meta" in first and "_meta" not in second  # then it keeps its own shell


LOADS = '{"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}'


async def test_an_agent_with_our_terminals_is_told_to_leave_its_own_shell_alone(tmp_path: Path) -> None:
    """A1: Claude's agent takes this from session/new, and from session/load when it goes on; others ignore it."""
    async with lending(tmp_path) as stage:
        await stage.play({"stop": "end_turn"})
        (new,) = [each for each in stage.heard() if each.get("method") == "session/new"]
        task = stage.hosted.id
    assert new["params"]["_meta"] == {"claudeCode": {"options": {"disallowedTools": ["Bash"]}}}
    async with lending(tmp_path, wishes=Wishes(resume=task), AGENT_INITIALIZE=LOADS) as stage:
        await stage.play({"stop": "end_turn"})
        (old,) = [each for each in stage.heard() if each.get("method") == "session/load"]
    assert old["params"]["_meta"] == new["params"]["_meta"]


async def test_without_lending_no_server_is_offered(tmp_path: Path) -> None:
    async with hosting(tmp_path) as stage:
        await stage.play({"stop": "end_turn"})
        (new,) = [each for each in stage.heard() if each.get("method") == "session/new"]
        assert (new["params"]["mcpServers"], stage.hosted.bridge) == ([], None)
        assert "_meta" not in new["params"]


def test_the_bridge_costs_next_to_nothing() -> None:
    """An agent starts it for each session: it is Python, and three modules that are part of it."""
    before = os.times()
    ran = subprocess.run([sys.executable, "-I", "-S", str(BRIDGE)], env={}, capture_output=True, text=True, check=False)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert ran.returncode == 1 and "tarmac host" in ran.stderr
    assert used < 0.1


async def _connect(value: str) -> str:
    """What a process that is not below the agent hears."""
    secret, _, place = value.partition(" ")
    reader, writer = await asyncio.open_unix_connection(place)
    try:
        writer.write(f"{secret}\n".encode())
        return (await reader.read()).decode()
    except ConnectionError:
        return "-gone"
    finally:
        writer.close()


async def test_a_host_that_was_killed_leaves_no_folder_for_ever(tmp_path: Path) -> None:
    """What stands in TMPDIR is removed by the next Tarmac, and never while it is in use."""
    async with lending(tmp_path, TMPDIR=str(tmp_path)) as stage:
        hatch = stage.hosted.bridge
        assert hatch is not None and hatch._folder is not None
        folder, old = hatch._folder, time.time() - 7200
        os.utime(folder, (old, old))
        paths._swept.clear()
        paths.sweep_scratch({"TMPDIR": str(tmp_path)}, older_than=3600)
        assert folder.exists()
        os.close(hatch._lock)  # as a kill does
        hatch._lock = -1
        paths._swept.clear()
        paths.sweep_scratch({"TMPDIR": str(tmp_path)}, older_than=3600)
        assert not folder.exists()
