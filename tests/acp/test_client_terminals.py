"""Commands in the editor's own terminals: judged and approved as ever, run by a real process of the editor's."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.acp.editor import NEVER, Editor, Refusal, inside
from tests.acp.test_agent import DONE

from tarmac.acp.editor_terminal import exit_of

pytestmark = pytest.mark.shell
TOLD = {"acp.client_terminals": True}


def script(*commands: str, **more: Any) -> str:
    """A model that runs them one after the other."""
    extra = "".join(f", {name} = {value}" for name, value in more.items())
    turns = [
        f'[[turn]]\n[[turn.call]]\nname = "execute_command"\narguments = {{ command = """{each}"""{extra} }}\n'
        for each in commands
    ]
    return "".join(turns) + '[[turn]]\ntext = "Seen."\n' + DONE


class Terminals:
    """terminal/*, with real processes; `way`: whether a shell reads command and words, as some editors have it."""

    def __init__(self, ours: Editor, way: str = "words") -> None:
        self.way = way
        self.made: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.open: dict[str, tuple[asyncio.subprocess.Process, asyncio.Task[None], bytearray]] = {}
        for verb in ("create", "output", "wait_for_exit", "kill", "release"):
            ours.serves[f"terminal/{verb}"] = self._counted(verb, getattr(self, verb))

    def _counted(self, verb: str, serve: Any) -> Any:
        def counted(params: dict[str, Any]) -> Any:
            self.calls.append(verb)
            return serve(params)

        return counted

    async def create(self, params: dict[str, Any]) -> dict[str, Any]:
        self.made.append(params)
        words = [params["command"], *params["args"]]
        process = await asyncio.create_subprocess_exec(
            *(words if self.way == "words" else ["sh", "-c", " ".join(words)]),
            cwd=params["cwd"],
            env={**os.environ, **{each["name"]: each["value"] for each in params["env"]}},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        output = bytearray()
        id = f"term-{len(self.made)}"
        self.open[id] = process, asyncio.create_task(self._read(process, output)), output
        return {"terminalId": id}

    async def _read(self, process: asyncio.subprocess.Process, output: bytearray) -> None:
        assert process.stdout is not None
        while data := await process.stdout.read(65536):
            output += data

    def output(self, params: dict[str, Any]) -> dict[str, Any]:
        _, _, output = self.open[params["terminalId"]]
        return {"output": output[-1000:].decode("utf-8", "ignore"), "truncated": len(output) > 1000}

    async def wait_for_exit(self, params: dict[str, Any]) -> dict[str, Any]:
        process, reading, _ = self.open[params["terminalId"]]
        code = await process.wait()
        await reading
        return {"exitCode": code, "signal": None} if code >= 0 else {"signal": signal.Signals(-code).name}

    def kill(self, params: dict[str, Any]) -> dict[str, Any]:
        process, _, _ = self.open[params["terminalId"]]
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        return {}

    async def release(self, params: dict[str, Any]) -> dict[str, Any]:
        self.kill(params)
        process, reading, _ = self.open.pop(params["terminalId"])
        await asyncio.gather(process.wait(), reading)
        return {}


async def begun(ours: Editor, folder: Path, **capabilities: Any) -> str:
    await ours.initialize(**{"terminal": True, **capabilities})
    return str((await ours.call("session/new", {"cwd": str(folder), "mcpServers": []}))["sessionId"])


def result(folder: Path) -> str:
    """What the model was told."""
    return "".join(path.read_text() for path in folder.glob("state/tasks/*/*.jsonl"))


@pytest.mark.parametrize("way", ["words", "a shell's line"])
async def test_an_approved_command_runs_in_the_editors_terminal_however_it_reads_it(tmp_path: Path, way: str) -> None:
    """A2: the same bytes whether a shell reads what it is given or not; exit code and output reach the model."""
    (tmp_path / "note.txt").write_text("a note\n")
    async with inside(tmp_path, script("""X='a  b'; echo "$X" | cat; echo $PAGER; pwd; (exit 3)"""), TOLD) as ours:
        editors = Terminals(ours, way)
        session = await begun(ours, tmp_path)
        assert await ours.prompt(session, "go") == "end_turn"
    assert len(ours.asked) == 1  # judged first, and asked
    assert editors.calls[0] == "create" and editors.calls[-1] == "release" and editors.open == {}
    assert editors.made[0]["cwd"] == str(tmp_path)
    assert f"a  b\\ncat\\n{tmp_path}" in result(tmp_path) and "Exit code: 3" in result(tmp_path)
    call = ours.updates("tool_call")[0]["toolCallId"]
    contents = [each["content"] for each in ours.updates("tool_call_update") if "content" in each]
    assert contents == [[{"type": "terminal", "terminalId": "term-1"}]]
    assert ours.updates("tool_call_update")[-1] == {
        **ours.updates("tool_call_update")[-1],
        "toolCallId": call,
        "status": "failed",
    }
    assert not Path(editors.made[0]["args"][0]).exists()


async def test_what_runs_without_asking_and_what_is_denied_never_reaches_the_editor(tmp_path: Path) -> None:
    """A2, P1: a plan of literal words is ours; a no is a no."""
    (tmp_path / "note.txt").write_text("a note\n")
    async with inside(tmp_path, script("cat note.txt", "touch x"), TOLD) as ours:
        editors = Terminals(ours)
        ours.choose = lambda _: {"outcome": {"outcome": "selected", "optionId": "reject"}}
        session = await begun(ours, tmp_path, _meta={"terminal_output": True})
        await ours.prompt(session, "go")
    assert editors.calls == [] and not (tmp_path / "x").exists()
    metas = [name for each in ours.updates("tool_call_update") for name in each.get("_meta", {})]
    assert metas == ["terminal_info", "terminal_output", "terminal_exit"]


@pytest.mark.parametrize(
    ("overrides", "able"), [(None, True), (TOLD, False), ({**TOLD, "sandbox.enabled": True}, True)]
)
async def test_only_when_told_to_and_able_and_not_around_a_sandbox(
    tmp_path: Path, overrides: dict[str, object] | None, able: bool
) -> None:
    """A2, P9: else in ours."""
    async with inside(tmp_path, script("echo $((1+1))"), overrides) as ours:
        editors = Terminals(ours)
        session = await begun(ours, tmp_path, terminal=able)
        await ours.prompt(session, "go")
    assert editors.calls == []


async def test_a_command_that_takes_long_is_left_there_and_found_by_its_id(tmp_path: Path) -> None:
    """A2: read, waited for and killed as one of ours is."""
    wait = '[[turn]]\n[[turn.call]]\nname = "wait_for_terminal"\narguments = { pattern = "second", timeout = 20 }\n'
    kill = '[[turn]]\n[[turn.call]]\nname = "kill_persistent_terminal"\narguments = { id = "%s" }\n'
    command = "echo first; until test -e go; do sleep 0.05; done; echo second; sleep 600"
    from tarmac.terminals.open import new_id

    ours_next = f"t{int(new_id()[1:]) + 1}"
    text = script(command, timeout=0.5).replace(
        '[[turn]]\ntext = "Seen."', wait + kill % ours_next + '[[turn]]\ntext = "Seen."'
    )
    async with inside(tmp_path, text, TOLD) as ours:
        editors = Terminals(ours)
        session = await begun(ours, tmp_path)
        turn = asyncio.create_task(ours.prompt(session, "go"))
        await ours.until(lambda: [each for each in ours.updates("tool_call") if "wait" in each["title"]])
        (tmp_path / "go").touch()
        assert await turn == "end_turn"
        assert editors.open == {}
    log = result(tmp_path)
    assert "Command is still running in terminal" in log and "first" in log and "was closed" in log


async def test_a_turn_that_is_cancelled_ends_the_editors_command(tmp_path: Path) -> None:
    """A2: killed, released, and told as cancelled."""
    async with inside(tmp_path, script("touch begun; sleep 600"), TOLD) as ours:
        editors = Terminals(ours)
        session = await begun(ours, tmp_path)
        turn = asyncio.create_task(ours.prompt(session, "go"))
        await ours.until(lambda: "wait_for_exit" in editors.calls)
        ours.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert await turn == "cancelled"
        assert editors.open == {} and editors.calls[-1] == "release" and "kill" in editors.calls


async def test_an_editor_that_dies_in_the_middle_of_a_command_ends_the_turn(tmp_path: Path) -> None:
    """A2: nobody waits for it."""
    async with inside(tmp_path, script("touch begun; sleep 600"), TOLD) as ours:
        editors = Terminals(ours)
        session = await begun(ours, tmp_path)
        ours.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
            await asyncio.sleep(0.02)
    for process, reading, _ in editors.open.values():  # the editor's own affair
        os.killpg(process.pid, signal.SIGKILL)
        await asyncio.gather(process.wait(), reading)


@pytest.mark.parametrize("verb", ["create", "wait_for_exit", "output", "kill", "release"])
@pytest.mark.parametrize("how", ["refuses", "nonsense", "never"])
async def test_an_editor_whose_terminals_do_not_work_is_told_to_the_model(
    tmp_path: Path, verb: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2: a typed failure, within a bounded time; the turn goes on."""
    for name in ("ANSWERS", "AFTER_KILL"):
        monkeypatch.setattr(f"tarmac.acp.editor_terminal.{name}", 0.2)

    def broken(_: Any) -> Any:
        if how == "refuses":
            raise Refusal("out of order")
        return NEVER if how == "never" else [None]

    async with inside(tmp_path, script("touch begun; echo out"), TOLD) as ours:
        editors = Terminals(ours)
        ours.serves[f"terminal/{verb}"] = broken
        session = await begun(ours, tmp_path)
        turn = asyncio.create_task(ours.prompt(session, "go"))
        if (verb, how) == ("wait_for_exit", "never"):  # the person stops what never ends
            while not (tmp_path / "begun").exists():  # noqa: ASYNC110 (the file system tells nobody)
                await asyncio.sleep(0.02)
            ours.send({"method": "session/cancel", "params": {"sessionId": session}})
            assert await turn == "cancelled"
        else:
            assert await turn == "end_turn"
            assert ours.said() == "Seen. Done."
    for process, reading, _ in editors.open.values():
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.gather(process.wait(), reading)
    log = result(tmp_path)
    told = {
        ("create", "refuses"): "out of order",
        ("create", "nonsense"): "did not say which",
        ("create", "never"): "did not answer terminal/create within",
        ("wait_for_exit", "refuses"): "does not tell how it ended: the editor refused: out of order",
        ("wait_for_exit", "nonsense"): "Exit code: unknown",
        ("output", "refuses"): "does not tell its output: the editor refused: out of order",
        ("output", "never"): "does not tell its output: the editor did not answer",
    }
    assert told.get((verb, how), "") in log
    assert "create" in editors.calls or verb == "create"


def test_an_exit_status_is_read_as_shells_tell_it() -> None:
    """A2: code, signal by name or number, or nothing known."""
    cases: list[tuple[object, tuple[int | None, str]]] = [
        ({"exitCode": 0}, (0, "")),
        ({"exitCode": 3, "signal": None}, (3, "")),
        ({"exitCode": None, "signal": "SIGKILL"}, (137, "")),
        ({"signal": "term"}, (143, "")),
        ({"signal": "9"}, (137, "")),
        ({"signal": "fire"}, (None, "fire")),
        ({"exitCode": True}, (None, "")),
        ({"exitCode": -5}, (None, "")),
        ({}, (None, "")),
        (None, (None, "")),
        ([1], (None, "")),
    ]
    for status, expected in cases:
        assert exit_of(status) == expected, status
