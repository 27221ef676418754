"""`tarmac mcp-servers`: listed, checked, and names that are wrong."""

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac
from tests.tools import mcp_server

pytestmark = pytest.mark.slow


def test_servers_are_listed_and_checked(tmp_path: Path) -> None:
    """S20."""
    servers = {
        "good": {"command": sys.executable, "args": [mcp_server.__file__]},
        "bad": {"command": "no-such-server"},
        "wrong": {},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    where = ("--workspace", str(tmp_path))
    listed = tarmac("mcp-servers", *where)
    assert listed.code == 0
    assert "good  not started" in listed.out and "needs a `command` or a `url`" in listed.out
    checked = tarmac("mcp-servers", "check", "--json", *where)
    assert checked.code == 1
    found = {each["name"]: each for each in map(json.loads, checked.out.splitlines())}
    assert (found["good"]["state"], "greet" in found["good"]["tools"]) == ("running", True)
    assert found["bad"]["state"] == "failed" and "can't be started" in found["bad"]["error"]
    lines = tarmac("mcp-servers", "check", "bad", *where).out.splitlines()[:4]
    assert [line.split()[0] for line in lines] == ["bad", "The", "hint:", "from"]  # the hint stood in its sentence
    missed = tarmac("mcp-servers", "check", "goood", *where)
    assert missed.code == 2 and "Did you mean 'good'?" in missed.err
    assert tarmac("mcp-servers", "chek").code == 2
