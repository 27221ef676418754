"""opencode and claude-agent-acp, as their makers ship them, hosted: with a model that plays a script. `make peers`.

Both run commands themselves: what Tarmac sees of them is what they ask about, and what they use of the server it gives
them.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.acp.hosting import Stage
from tests.agents import PATIENCE, Agent, claude, codex, gemini, leaving_nothing, opencode
from tests.mcp.peers import until
from tests.playing import Model, Turn, playing, say, use

from tarmac.acp.host.open_hosted import Wishes, open_hosted
from tarmac.app import open_app
from tarmac.cli.host import LentTerminals
from tarmac.config import load_config
from tarmac.policy.approval import AnswerKind
from tarmac.tasks import events as e
from tarmac.terminals.process import processes

pytestmark = [pytest.mark.peers, pytest.mark.shell]


@dataclass(frozen=True)
class Kind:
    """How an agent is started, and what it calls its tools."""

    start: Callable[[Path, Model], Agent]
    command: Callable[[str], Turn]
    write: Callable[[Path, str], Turn]
    ours: str  # the name under which the model sees our run_command


KINDS = [
    pytest.param(
        Kind(
            opencode,
            lambda command: use("bash", command=command, description="as asked"),
            lambda path, text: use("write", filePath=str(path), content=text),
            "tarmac_run_command",
        ),
        id="opencode",
    ),
    pytest.param(
        Kind(
            claude,
            lambda command: use("Bash", command=command, description="as asked"),
            lambda path, text: use("Write", file_path=str(path), content=text),
            "mcp__tarmac__run_command",
        ),
        id="claude",
    ),
]


def host(work: Path, agent: Agent, *options: str, prompt: str = "do it") -> subprocess.CompletedProcess[str]:
    """With its own shell, unless told otherwise."""
    own = () if "--only-our-terminals" in options else ("--own-shell",)
    argv = [sys.executable, "-m", "tarmac", "host", *own, *options, "--prompt", prompt, "--", *agent.argv]
    return subprocess.run(
        argv, cwd=work, env=agent.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_agent_runs_a_command_and_writes_a_file(tmp_path: Path, kind: Kind) -> None:
    """A1: both are asked about, shown, and logged; nothing of the agent survives."""
    with leaving_nothing(tmp_path) as work:
        script = [kind.command("touch made; echo 4$((1+1))"), kind.write(work / "new.txt", "one\ntwo\n")]
        with playing(*script, say("All is done.")) as model:
            ran = host(work, kind.start(tmp_path, model), "--auto", "all")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Ran `touch made; echo 4$((1+1))`" in ran.stdout
    assert "│ 42" in ran.stdout
    assert "new.txt" in ran.stdout
    assert "All is done." in ran.stdout
    assert "42" in model.results[0]
    assert {each.name for each in work.iterdir()} == {"made", "new.txt"}


def test_claude_has_no_shell_of_its_own_where_it_has_our_terminals(tmp_path: Path) -> None:
    """A1: every command goes through Tarmac."""
    with leaving_nothing(tmp_path) as work:
        script = [use("Bash", command="touch made", description="as asked"), say("All is done.")]
        with playing(*script) as model:
            ran = host(work, claude(tmp_path, model), "--only-our-terminals", "--auto", "all")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Bash is disabled for this session" in ran.stdout
    assert list(work.iterdir()) == []


async def test_claude_speaks_version_two_where_it_is_offered(tmp_path: Path) -> None:
    """A1: the draft, with a published agent that negotiates it: asked, run, told, and stopped by its state."""
    with leaving_nothing(tmp_path) as work, playing(
        use("Bash", command="touch made; echo 4$((1+1))", description="as asked"),
        use("Write", file_path=str(work / "new.txt"), content="one\n"),
        say("All is done."),
    ) as model:  # fmt: skip
        async with staged(tmp_path, claude(tmp_path, model), version=2) as stage:
            stage.answer = lambda _: AnswerKind.YES
            ended = await stage.hosted.run_until_idle()
            version = stage.hosted.met.version
        assert {each.name for each in work.iterdir()} == {"made", "new.txt"}
    assert (version, ended.why) == (2, "completed")
    command, change = requests(stage)
    assert command["shown"] == "touch made; echo 4$((1+1))"
    assert change["file"] | {"path": "", "outside": False} == {
        "path": "", "new": True, "deletes": False, "folder": False, "diff": "one\n", "outside": False, "protected": "",
    }  # fmt: skip
    finished = [each for each in stage.of(e.ToolFinished) if each.name == "execute"]
    assert [each.outcome for each in finished] == ["done"] and "42" in finished[0].content[0].text


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_agent_is_told_no_where_nobody_can_be_asked(tmp_path: Path, kind: Kind) -> None:
    """A1: what needs a person is rejected, and nothing happens."""
    with leaving_nothing(tmp_path) as work, playing(kind.command("touch made"), say("All is done.")) as model:
        ran = host(work, kind.start(tmp_path, model))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "✗ Ran `touch made`" in ran.stdout
    assert "not allowed, as nobody is here to be asked: `touch made`" in ran.stdout
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_real_agent_asks_is_judged_first_and_then_asked(tmp_path: Path, kind: Kind) -> None:
    """A1: what only reads is no question; else the whole command is shown, and a file as a diff."""
    with leaving_nothing(tmp_path) as work:
        script = [kind.command("ls -a"), kind.command("touch made; exit 3"), kind.write(work / "new.txt", "one\n")]
        with playing(*script, say("All is done.")) as model:
            async with staged(tmp_path, kind.start(tmp_path, model)) as stage:
                stage.answer = lambda asked: AnswerKind.YES if "touch made" in asked.details else AnswerKind.NO
                ended = await stage.hosted.run_until_idle()
    assert ended.why == "completed"
    command, change = requests(stage)
    assert (command["shown"], command["directory"]) == ("touch made; exit 3", str(work))
    assert (change["file"]["path"], "one" in change["file"]["diff"]) == (str(work / "new.txt"), True)
    listed, touched, written = stage.of(e.ToolFinished)
    assert (listed.outcome, listed.content[0].text.split()) == ("done", [".", ".."])
    assert (touched.title, touched.exit_code, written.outcome) == ("Ran `touch made; exit 3`", 3, "failed")
    assert [each.name for each in work.iterdir()] == ["made"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_real_agent_uses_our_terminals_and_a_person_is_asked_once(tmp_path: Path, kind: Kind) -> None:
    """A1: by the MCP server that its session was given; the shell keeps its state, the exit code is true.

    Claude asks about the call, too: that yes is good for the command, and nobody is asked twice.
    """
    commands = ["WORD=kept; mkdir made", 'echo "$WORD"; rmdir not-there']
    script = [use(kind.ours, command=each) for each in commands]
    with leaving_nothing(tmp_path) as work, playing(*script, say("All is done.")) as model:
        async with staged(tmp_path, kind.start(tmp_path, model)) as stage:
            stage.answer = lambda asked: AnswerKind.YES
            ended = await stage.hosted.run_until_idle()
    assert ended.why == "completed"
    assert [request["shown"] for request in requests(stage)] == commands
    assert [(each.name, each.exit_code) for each in stage.of(e.ToolFinished)] == [
        ("run_command", 0),
        ("run_command", 1),
    ]
    assert "kept" in model.results[1]
    assert stage.of(e.Noted) == []
    assert [each.name for each in work.iterdir()] == ["made"]


@pytest.mark.allpeers
@pytest.mark.parametrize(
    "start, call, options",
    [
        # in its other modes Codex has its own model judge each call
        pytest.param(
            codex, Turn(tool="run_command", namespace="mcp__tarmac"), ["--mode", "agent-full-access"], id="codex"
        ),
        pytest.param(
            codex,
            Turn(tool="run_command", namespace="mcp__tarmac"),
            ["--mode", "agent-full-access", "--acp-version", "2"],
            id="codex-v2",
        ),
        pytest.param(gemini, Turn(tool="mcp_tarmac_run_command"), [], id="gemini"),
    ],
)
def test_our_terminals_are_there_in_the_first_turn(
    tmp_path: Path, start: Callable[[Path, Model], Agent], call: Turn, options: list[str]
) -> None:
    """A1: Codex waits for no server: a prompt that is sent too soon gets a model without our tools."""
    script = [call.of(command="WORD=kept; mkdir made"), call.of(command='echo "$WORD"; rmdir not-there')]
    with leaving_nothing(tmp_path) as work, playing(*script, say("All is done.")) as model:
        ran = host(work, start(tmp_path, model), "--auto", "all", *options)
    assert (ran.returncode, "All is done." in ran.stdout) == (0, True), ran.stdout + ran.stderr
    assert "kept" in model.results[1], model.results
    assert "│ kept" in ran.stdout and "exit code 1" in ran.stdout
    assert [each.name for each in work.iterdir()] == ["made"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_agent_goes_on_with_its_session_of_before(tmp_path: Path, kind: Kind) -> None:
    """A1: --resume: the model is told again what was said and done in the first process."""
    with leaving_nothing(tmp_path) as work:
        with playing(kind.command("echo forty-two"), say("I have seen it.")) as model:
            first = host(work, kind.start(tmp_path, model), "--auto", "all", prompt="look at this")
        with playing(say("unused"), say("I remember.")) as model:
            task = first.stdout.split()[1]
            ran = host(work, kind.start(tmp_path, model), "--auto", "all", "--resume", task, prompt="and now?")
    assert (ran.returncode, "I remember." in ran.stdout) == (0, True), first.stdout + ran.stdout + ran.stderr
    assert [each.strip() for each in model.results] == ["forty-two"]
    said = json.dumps(model.longest)
    assert "look at this" in said and "I have seen it." in said and "and now?" in said


@pytest.mark.parametrize("kind", KINDS)
async def test_a_real_agent_stops_when_it_is_told_to(tmp_path: Path, kind: Kind) -> None:
    """A1: session/cancel while its own command runs: the turn is over, and so is the command."""
    script = [kind.command("echo $$ > pid; exec tail -f /dev/null"), say("All is done.")]
    with leaving_nothing(tmp_path) as work, playing(*script) as model:
        async with staged(tmp_path, kind.start(tmp_path, model), auto="all") as stage:
            running = asyncio.create_task(stage.hosted.run_until_idle())
            await until(lambda: running.done() or ((work / "pid").exists() and (work / "pid").read_text().strip()))
            stage.hosted.cancel()
            ended = await running
            await until(lambda: processes.look(int((work / "pid").read_text())) is None)
    assert (ended.why, ended.text) == ("interrupted", "the person stopped it")


def requests(stage: Stage) -> list[dict[str, Any]]:
    """What was asked about."""
    return [each for asked in stage.asked for each in json.loads(asked.details)["requests"]]


@asynccontextmanager
async def staged(folder: Path, agent: Agent, auto: str = "ask", version: int = 1) -> AsyncIterator[Stage]:
    """Somebody sits before it, and has said the prompt."""
    work = folder / "work"
    config = load_config(work, agent.environ, {"auto": auto})
    async with (
        asyncio.timeout(PATIENCE),
        open_app(config, environ=agent.environ) as app,
        open_hosted(
            app,
            agent.argv,
            attended=True,
            wishes=Wishes(once=True, only_our_terminals=False, version=version),
            lend=partial(LentTerminals, app),
            environ=agent.environ,
        ) as hosted,
    ):
        stage = Stage(hosted, folder)
        hosted.subscribe(stage.hear)
        await hosted.say("do it")
        yield stage
