"""`tarmac mcp --on PLACE` and `tarmac acp --on PLACE`: terminals, files and judgements are those of the place."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acp.editor import editor
from tests.fleet.conftest import Container, Sshd
from tests.fleet.test_run_on import in_box
from tests.mcp.peers import ERAS, Person, call, on_pipes, ran, refused, said

pytestmark = [pytest.mark.shell, pytest.mark.fleet]
TARMAC = [sys.executable, "-m", "tarmac"]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARMAC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TARMAC_CONFIG_DIR", str(tmp_path / "config"))


def turns(*calls: tuple[str, dict[str, object]]) -> str:
    rows = []
    for name, arguments in (*calls, ("attempt_completion", {"result": "done"})):
        rows.append(
            f"[[turn]]\n[[turn.call]]\nname = {json.dumps(name)}\narguments = {json.dumps(json.dumps(arguments))}"
        )
    return "\n".join(rows)


async def test_an_mcp_client_works_at_the_place(container: Container, tmp_path: Path) -> None:
    """F2, A3: the same path exists on this machine with other files, and nobody touches them."""
    here = tmp_path / "work"
    here.mkdir()
    (here / "app.py").write_text("here = 1\n")
    in_box(
        container,
        f"mkdir -p {here}; cd {here}; echo 'there = 1' > app.py; echo hidden.txt > .tarmacignore;"
        " echo there > hidden.txt; echo far > /tmp/far.txt; ln -s /tmp/far.txt link.txt",
    )
    person = Person()
    async with on_pipes(here, ERAS[1], person, "--on", "docker://box", "--tools", "all") as client:
        assert "docker://box" in (client.instructions or "")
        run = await ran(client, "hostname; pwd; echo 'there = 2' > app.py; (exit 3)")
        read = said(await client.call_tool("read_file", {"path": "app.py"}))
        found = said(await client.call_tool("search_files", {"regex": "there"}))
        wrote = await client.call_tool("write_to_file", {"path": "sub/new.py", "content": "made = True\n"})
        hidden = await refused(client, "read_file", path="hidden.txt")
        judged = await call(client, "check_command", command="cat app.py")
        person.choice = "Deny"
        outside = await refused(client, "read_file", path="link.txt")
    assert (run["output"], run["exit_code"]) == (f"box\n{here}\n", 3)
    assert "there = 2" in read
    assert found == "Found 1 result.\n\n# app.py\n>1 | there = 2\n----"
    assert not wrote.is_error
    assert "hidden.txt" in hidden and ".tarmacignore" in hidden
    assert (judged["decision"], judged["rule"]) == ("ask", "ask.unproven")
    assert "denied" in outside  # it leads out of the workspace there: the person is asked
    assert in_box(container, f"cat {here}/app.py {here}/sub/new.py") == "there = 2\nmade = True\n"
    assert [each.name for each in here.iterdir()] == ["app.py"]
    assert (here / "app.py").read_text() == "here = 1\n"


async def test_an_mcp_client_goes_on_when_the_place_does(sshd: Sshd, tmp_path: Path) -> None:
    """F4, F5, A3: a real ssh that is cut, and then a host that is killed. The next call has a place again."""
    async with on_pipes(tmp_path, ERAS[0], Person(), "--on", sshd.address, "--auto", "all") as client:
        first = await ran(client, "echo $WHERE; COLOUR=green")
        for pid in sshd.connections():
            os.kill(pid, signal.SIGKILL)
        again = await ran(client, "echo $COLOUR")
        host = int((await ran(client, "echo $PPID"))["output"])
        os.kill(host, signal.SIGKILL)
        lost = said(await client.call_tool("run_command", {"command": "echo one"}))
        fresh = await ran(client, "echo two; echo $COLOUR")
    assert (first["output"], again["output"]) == ("sshd\n", "green\n")
    assert "no longer runs" in lost or "one" in lost  # that it has ended may be known already
    assert fresh["output"] == "two\n\n"


async def test_an_mcp_client_hears_why_a_place_can_not_be_used(tmp_path: Path) -> None:
    """F5, A3: the server answers, and each call says what is wrong. So a place that comes back is used."""
    async with on_pipes(tmp_path, ERAS[0], Person(), "--on", f"unix:{tmp_path}/socket") as client:
        assert "there is no socket" in await refused(client, "run_command", command="true")
        assert "there is no socket" in await refused(client, "run_command", command="false")


async def test_an_editor_works_at_the_place(sshd: Sshd, tmp_path: Path) -> None:
    """F2, A1: over a real ssh. The editor's folder is not used, because --cwd names one there."""
    project, there = tmp_path / "project", tmp_path / "there"
    for each in (project, there):
        each.mkdir()
    (there / "a.txt").write_text("one\n")
    script = turns(
        ("read_file", {"path": "a.txt"}),
        ("search_and_replace", {"path": "a.txt", "search": "one", "replace": "two"}),
        ("execute_command", {"command": "echo $WHERE; pwd"}),
    )
    state = str(tmp_path / "state")
    options = ("--on", sshd.address, "--cwd", str(there), "--auto", "all")
    async with editor(project, script, *options, TARMAC_STATE_DIR=state) as made:
        await made.initialize(fs={"readTextFile": True, "writeTextFile": True}, terminal=True)
        session = (await made.call("session/new", {"cwd": str(project), "mcpServers": []}))["sessionId"]
        assert await made.prompt(session, "go") == "end_turn"
        listed = (await made.call("session/list", {}))["sessions"]
        told = json.dumps(made.updates())
    assert (there / "a.txt").read_text() == "two\n"
    assert f"sshd\\n{there}" in told or f"sshd\\\\n{there}" in told or f"sshd\\r\\n{there}" in told
    assert [each["cwd"] for each in listed] == [str(there)]
    assert "there are no checkpoints" in told
    assert not any(each.name == "a.txt" for each in project.iterdir())
    async with editor(project, script, TARMAC_STATE_DIR=state) as made:  # one that works here
        await made.initialize()
        assert (await made.call("session/list", {}))["sessions"] == []
        answer = await made.refused("session/load", {"sessionId": session, "cwd": str(there), "mcpServers": []})
        assert sshd.address in answer["message"]
    async with editor(project, script, "--on", sshd.address, TARMAC_STATE_DIR=state) as made:
        await made.initialize()
        await made.call("session/load", {"sessionId": session, "cwd": str(there), "mcpServers": []})
        refusal = await made.refused("session/new", {"cwd": str(tmp_path / "nowhere"), "mcpServers": []})
        assert "nowhere" in refusal["message"]


async def test_an_editor_hears_why_a_place_can_not_be_used(tmp_path: Path) -> None:
    """F5, A1."""
    async with editor(tmp_path, turns(), "--on", f"unix:{tmp_path}/socket") as made:
        await made.initialize()
        for _ in range(2):
            answer = await made.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
            assert "there is no socket" in answer["message"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mcp", "--on", "unix:"], "--cwd DIR: a folder there"),
        (["mcp", "--on", "nobody", "--cwd", "/"], "there is no place `nobody`"),
        (["acp", "--on", "nobody"], "there is no place `nobody`"),
        (["acp", "--on", "docker://"], "`docker://` is not the address of a place"),
        (["mcp", "--on", "shh://host", "--cwd", "/"], "`shh://host` is not the address of a place"),
        (["acp", "--cwd", "/"], "only with --on"),
        (["acp", "--on", "unix:", "--client-terminals"], "can't be used at another place"),
    ],
)
def test_arguments_that_make_no_sense(words: list[str], told: str) -> None:
    """F5."""
    done = subprocess.run([*TARMAC, *words], check=False, capture_output=True, text=True, input="", timeout=60)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
