"""`tarmac run` with a real SDK and a real HTTP server: the whole way from the shell to a model and back."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac
from tests.models.server import Reply, claude, refusal, serving

pytestmark = pytest.mark.shell
KEY = "sk-ant-not-a-real-key-0123456789"


def _use(id: str, name: str, arguments: dict[str, object]) -> dict[str, object]:
    return {"type": "tool_use", "id": id, "name": name, "json": [json.dumps(arguments)]}


async def test_from_the_shell_to_a_model_and_back(tmp_path: Path, own_state: Path) -> None:
    """S6, A5: a refusal that is waited for, a call, its result, the end; the key is in no file and no command."""
    look = _use("toolu_1", "execute_command", {"command": "env | grep -c ANTHROPIC"})
    end = _use("toolu_2", "attempt_completion", {"result": "Counted."})
    async with serving(
        refusal(429, {"type": "rate_limit_error", "message": "slow down"}, retry_after="1"),
        Reply(claude({"type": "text", "text": ["I ", "count."]}, look, stop="tool_use", usage={"input_tokens": 900})),
        Reply(claude(end, stop="tool_use")),
    ) as server:
        outcome = await asyncio.to_thread(
            tarmac,
            *("run", "count", "--model", "anthropic/claude-sonnet-4-5", "--cwd", str(tmp_path), "--auto", "all"),
            ANTHROPIC_API_KEY=KEY,
            ANTHROPIC_BASE_URL=server.url,
        )
    assert (outcome.code, outcome.err) == (0, ""), outcome.out
    for wanted in (
        "slow down",
        "again in 1 s",
        "I count.",
        "  │ 0\n",
        "✓ Done\nCounted.",
        "2 requests · 910 in, 16 out · $0.0030\n",
    ):
        assert wanted in outcome.out, outcome.out
    last = json.dumps(server.requests[-1].body["messages"])
    assert "toolu_1" in last and "Exit code: 1" in last
    assert KEY not in outcome.out
    assert [each for each in own_state.rglob("*") if each.is_file() and KEY.encode() in each.read_bytes()] == []
    assert os.environ.get("ANTHROPIC_API_KEY") != KEY


def test_a_model_without_its_key_names_the_variable(tmp_path: Path) -> None:
    outcome = tarmac("run", "x", "--model", "anthropic/claude-sonnet-4-5", "--cwd", str(tmp_path), ANTHROPIC_API_KEY="")
    assert (outcome.code, "ANTHROPIC_API_KEY" in outcome.err) == (2, True), outcome.err
