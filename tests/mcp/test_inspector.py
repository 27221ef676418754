"""The MCP inspector's command line, as its makers ship it, against `tarmac mcp` on pipes."""

import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from tests.acp.wire_tap import keep, tapped
from tests.installed import npm
from tests.mcp.peers import PATIENCE, TARMAC, environ
from tests.mcp.test_wire import TRANSCRIPTS, shape

pytestmark = pytest.mark.peers
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


def inspect(workspace: Path, *arguments: str, server: list[str] = TARMAC) -> dict[str, Any]:
    programs, node = npm("inspector", INSPECTOR)
    command = ["node", str(programs / "mcp-inspector"), "--cli", *server, "mcp", "--cwd", str(workspace), *arguments]
    ran = subprocess.run(
        command, env=node, cwd=workspace, capture_output=True, text=True, timeout=4 * PATIENCE, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_the_inspector_finds_every_schema_portable(tmp_path: Path) -> None:
    """A3: `--strict` fails for a schema that some client could not read."""
    tools = inspect(tmp_path, "--method", "tools/list", "--strict")["tools"]
    assert [each["name"] for each in tools][:2] == ["run_command", "open_persistent_terminal"]
    assert all("outputSchema" in each and "annotations" in each for each in tools)


def test_the_inspector_runs_a_command(tmp_path: Path) -> None:
    """A3: a call by a client nobody here wrote."""
    (tmp_path / "a file").touch()
    call = ("--method", "tools/call", "--tool-name", "run_command", "--tool-arg", "command=ls")
    assert inspect(tmp_path, *call)["structuredContent"]["output"] == "a file\n"


def test_its_session_is_recorded(tmp_path: Path) -> None:
    """A3: what test_wire.py replays is what the inspector says today; RECORD=1 puts it into the repository."""
    work, tape = tmp_path / "project", tmp_path / "tape.jsonl"
    work.mkdir()
    (work / "notes.txt").write_text("b\na\n")
    call = ("--method", "tools/call", "--tool-name", "run_command", "--tool-arg", "command=sort notes.txt")
    inspect(work, *call, server=tapped(tape, "client", "server", TARMAC))
    renew_and_compare(tape, "inspector-2.12.0", work)


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_session_of_the_sdk_is_recorded(tmp_path: Path, era: str) -> None:
    """A3: the same with the client of the `mcp` package."""
    work, tape = tmp_path / "project", tmp_path / "tape.jsonl"
    work.mkdir()
    (work / "notes.txt").write_text("b\na\n")
    command, *arguments = tapped(tape, "client", "server", [*TARMAC, "mcp", "--cwd", str(work)])
    server = StdioServerParameters(command=command, args=arguments, env=environ(), cwd=str(work))
    async with Client(server, mode=era if era == "2026-07-28" else "legacy") as client:
        await client.list_tools()
        await client.call_tool("run_command", {"command": "sort notes.txt"})
        await client.list_resources()
        await client.call_tool("run_command", {"command": "npm test"})
    renew_and_compare(tape, f"sdk-{version('mcp')}-{era}", work)


def renew_and_compare(tape: Path, name: str, work: Path) -> None:
    recording = TRANSCRIPTS / f"{name}.jsonl"
    if os.environ.get("RECORD"):
        keep(tape, recording, project=work)
    now, then = (
        [row["client"] for line in each.read_text().splitlines() if "client" in (row := json.loads(line))]
        for each in (tape, recording)
    )
    assert [shape(each) for each in now] == [shape(each) for each in then]
