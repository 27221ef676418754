"""The MCP conformance suite, as the protocol's makers ship it, over HTTP and in both eras. Only in `make peers`.

Left out are scenarios for what Tarmac does not offer: prompts, completion, logging, sampling, subscriptions, tasks,
pictures and sound, and forms with other fields than ours.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installed import npm
from tests.mcp.peers import PATIENCE, environ

pytestmark = [pytest.mark.peers, pytest.mark.shell]
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
ROOT = Path(__file__).parent.parent.parent
BOTH = [
    "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress", "resources-list",
    "resources-read-text", "resources-templates-read", "server-sse-multiple-streams", "dns-rebinding-protection",
    "json-schema-2020-12",
]  # fmt: skip
OLDER = ["server-initialize", "server-session-lifecycle", "ping", "tools-call-elicitation"]
STATELESS = [
    "http-header-validation", "sep-2164-resource-not-found", "input-required-result-basic-elicitation",
    "input-required-result-result-type", "input-required-result-unsupported-methods",
    "input-required-result-tampered-state", "input-required-result-validate-input", "server-stateless",
    "input-required-result-basic-list-roots", "input-required-result-request-state",
    "input-required-result-multi-round", "input-required-result-missing-input-response",
    "input-required-result-ignore-extra-params", "http-custom-header-server-validation",
]  # fmt: skip
# Checks that ask for what is not offered; all others of these scenarios must hold.
UNOFFERED = {"caching": {"PromptsListCachingHints"}}


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


def failures(address: str, scenario: str, version: str, folder: Path) -> list[str]:
    """The names of the checks that failed."""
    programs, env = npm("conformance", SUITE)
    ran = subprocess.run(
        ["node", str(programs / "conformance"), "server", "--url", address, "--spec-version", version,
         "--scenario", scenario],
        env=environ() | env, cwd=folder, capture_output=True, text=True, timeout=4 * PATIENCE, check=False,
    )  # fmt: skip
    summary = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", ran.stdout)
    assert summary, ran.stdout + ran.stderr
    assert int(summary[1]) > 0
    found = re.findall(r"^ {2}- (\w+): ", ran.stdout.partition("=== Failed Checks ===")[2], re.MULTILINE)
    assert len(found) >= int(summary[3]), ran.stdout
    return found


@pytest.mark.parametrize("scenario", [*BOTH, *STATELESS, *UNOFFERED])
def test_the_stateless_era_conforms(address: str, scenario: str, tmp_path: Path) -> None:
    """A3."""
    assert set(failures(address, scenario, "2026-07-28", tmp_path)) <= UNOFFERED.get(scenario, set())


@pytest.mark.parametrize("scenario", [*BOTH, *OLDER])
def test_the_older_era_conforms(address: str, scenario: str, tmp_path: Path) -> None:
    """A3."""
    assert failures(address, scenario, "2025-11-25", tmp_path) == []
