"""The MCP conformance suite, as the protocol's makers ship it, over HTTP and in both eras. Only in `make peers`.

All of its scenarios run (`--suite all`), against the fixture server: Tarmac's own server, with what the suite wants to
see and Tarmac does not offer added to it.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installed import npm
from tests.mcp.peers import environ

pytestmark = [pytest.mark.peers, pytest.mark.shell]
VERSION = "0.2.0-alpha.12"
ROOT = Path(__file__).parent.parent.parent
PATIENCE = 500.0  # seconds for a suite of 40 scenarios; 20 on a quiet machine
SCENARIO = "120000"  # milliseconds
CHECKS = {"2025-11-25": 81, "2026-07-28": 149}  # as docs/mcp.md says


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("workspace")
    command = [sys.executable, "-m", "tests.mcp.fixture", "0", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.terminate()


@pytest.mark.parametrize("era", CHECKS)
def test_every_scenario_of_the_suite_passes(address: str, era: str, tmp_path: Path) -> None:
    """A3."""
    programs, env = npm("conformance", f"@modelcontextprotocol/conformance@{VERSION}")
    command = ["node", str(programs / "conformance"), "server", "--url", address, "--spec-version", era]
    ran = subprocess.run(
        [*command, "--suite", "all", "--timeout", SCENARIO],
        env=environ() | env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    summary = ran.stdout.partition("=== SUMMARY ===")[2]
    failed = re.findall(r"^✗ (.*)$", summary, re.MULTILINE)
    assert failed == [], ran.stdout[-20_000:]
    total = re.search(r"Total: (\d+) passed, 0 failed", summary)
    assert total and int(total[1]) == CHECKS[era], ran.stdout[-2_000:] + ran.stderr[-2_000:]


def test_the_documentation_says_which_version_and_how_many() -> None:
    """A8."""
    text = (ROOT / "docs" / "mcp.md").read_text()
    assert VERSION in text and all(f"{count} of {count}" in text for count in CHECKS.values())
