"""The MCP inspector's command line, as its makers ship it, against `tarmac mcp` on pipes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.installed import npm
from tests.mcp.peers import PATIENCE, TARMAC

pytestmark = pytest.mark.peers
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


def inspect(workspace: Path, *arguments: str) -> dict[str, Any]:
    programs, environ = npm("inspector", INSPECTOR)
    command = ["node", str(programs / "mcp-inspector"), "--cli", *TARMAC, "mcp", "--cwd", str(workspace), *arguments]
    ran = subprocess.run(
        command, env=environ, cwd=workspace, capture_output=True, text=True, timeout=4 * PATIENCE, check=False
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
