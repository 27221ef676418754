"""The configurations in docs/mcp.md: each has its client's form, and starts a server that answers."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.peers import PATIENCE, encoded, environ
from tests.mcp.test_wire import HELLO

PAGE = Path(__file__).parent.parent.parent / "docs" / "mcp.md"
WHERE = {  # client → where its servers are
    "Claude Code": "mcpServers",
    "Codex": "mcp_servers",
    "Gemini CLI": "mcpServers",
    "Cursor": "mcpServers",
    "VS Code": "servers",
    "Zed": "context_servers",
    "opencode": "mcp",
}


def configurations() -> dict[str, dict[str, Any]]:
    """Client → what its file says."""
    page = PAGE.read_text().partition("## The tools")[0]
    found: dict[str, dict[str, Any]] = {}
    for name, about, language, text in re.findall(
        r"^\*\*(.+?)\*\* (.*?)```(json|toml)\n(.*?)```", page, re.MULTILINE | re.DOTALL
    ):
        assert re.search(r"20\d\d-\d\d(-\d\d)?", about), f"{name}: of which day?"
        found[name] = json.loads(text) if language == "json" else tomllib.loads(text)
    return found


def command_line(client: str, said: dict[str, Any]) -> list[str]:
    server = said[WHERE[client]]["tarmac"]
    assert set(server) <= {"type", "command", "args", "env", "timeout", "tool_timeout_sec", "enabled",
                           "supports_parallel_tool_calls"}  # fmt: skip
    command = server["command"]
    return list(command) if isinstance(command, list) else [command, *server["args"]]


def test_every_client_of_the_issue_has_its_configuration() -> None:
    """A3: dated, with where it is from."""
    assert list(configurations()) == list(WHERE)


@pytest.mark.shell
def test_every_command_line_starts_a_server(tmp_path: Path) -> None:
    """A3: as the clients start it: `tarmac` is on the PATH, their variables are filled in."""
    lines = {tuple(command_line(client, said)) for client, said in configurations().items()}
    lines |= {
        tuple(each.split())
        for each in re.findall(r"`(?:claude|codex|gemini) mcp add .*?(tarmac mcp)`", PAGE.read_text())
    }
    assert len(lines) >= 3
    path = f"{Path(sys.executable).parent}:{environ()['PATH']}"
    started = [
        subprocess.Popen(
            [each.replace("${workspaceFolder}", str(tmp_path)) for each in line],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=environ(PATH=path),
        )
        for line in sorted(lines)
    ]  # fmt: skip
    try:
        for process in started:  # together: most of their time is starting
            said, _ = process.communicate(encoded(HELLO), timeout=4 * PATIENCE)
            assert json.loads(said)["result"]["serverInfo"]["name"] == "tarmac"
            assert process.returncode == 0
    finally:
        for process in started:
            process.kill()
            process.wait()
