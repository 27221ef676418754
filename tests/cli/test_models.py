"""`tarmac models`, the first minute, and the completion of shells: against servers on this machine."""

import asyncio
import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import TARMAC, tarmac
from tests.models.server import Reply, refusal, serving

from tarmac.cli.completion import bash, fish, zsh
from tarmac.cli.models import Chosen, keep, with_settings
from tarmac.cli.parser import TABLE

LISTED = Reply(
    [json.dumps({"data": [{"id": "qwen3:8b", "max_model_len": 40960}, {"id": "phi"}]}).encode()],
    content_type="application/json",
)


async def models(*arguments: str, **environ: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *TARMAC,
        *("models", *arguments),
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.slow
async def test_models_lists_what_a_provider_offers_with_window_and_price() -> None:
    """U9."""
    async with serving(LISTED) as server:
        code, out, _ = await models("--provider", "ollama", "--json", OLLAMA_BASE_URL=server.url)
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert first == {"model": "ollama/qwen3:8b", "context_window": 40960, "price_input": None, "price_output": None}
    assert (second["model"], second["context_window"]) == ("ollama/phi", None)
    answer = json.dumps({"data": [{"id": "claude-opus-5"}]}).encode()
    async with serving(Reply([answer], content_type="application/json")) as server:
        code, out, _ = await models(
            "--provider", "anthropic", "--json", ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY="sk-123456789"
        )
    listed = json.loads(out)
    assert server.requests[0].headers["x-api-key"] == "sk-123456789"
    assert listed["context_window"] == 1_000_000 and listed["price_output"] > listed["price_input"] > 0


@pytest.mark.slow
async def test_a_refused_key_and_a_dead_server_are_told_without_the_key() -> None:
    """U9."""
    async with serving(refusal(401, "no sk-123456789")) as server:
        code, out, err = await models(
            "--provider", "openai", OPENAI_BASE_URL=f"{server.url}/v1", OPENAI_API_KEY="sk-123456789"
        )
    assert (code, out) == (1, "") and "openai refuses the key" in err and "sk-1" not in err
    code, _, err = await models("--provider", "ollama", OLLAMA_BASE_URL="http://127.0.0.1:9")
    assert code == 1 and "does not answer" in err
    code, _, err = await models("--provider", "opnai")
    assert code == 2 and "did you mean `openai`?" in err


def test_a_choice_is_kept_for_the_user_alone_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    """U9."""
    file = tmp_path / "new" / "config.toml"
    keep(file, Chosen("openai/gpt-5.5", "sk-secret"))
    assert tomllib.loads(file.read_text()) == {"model": "openai/gpt-5.5", "keys": {"openai": "sk-secret"}}
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("# mine\n[limits]\nmax_cost = 3\n[keys]\nopenai = 'old'\n")
    keep(file, Chosen("openai/gpt-5.5", "sk-new"))
    assert tomllib.loads(file.read_text()) == {
        "model": "openai/gpt-5.5",
        "limits": {"max_cost": 3},
        "keys": {"openai": "sk-new"},
    }
    assert "# mine" in file.read_text()


@given(st.text("a[]=\"'\n#{}. keysmodl", max_size=60), st.sampled_from(["", "sk-1"]))
def test_a_file_is_changed_exactly_or_not_at_all(text: str, key: str) -> None:
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert with_settings(text, Chosen("ollama/phi", key)) is None
        return
    new = with_settings(text, Chosen("ollama/phi", key))
    if new is not None:
        after = tomllib.loads(new)
        assert after.pop("model") == "ollama/phi"
        before.pop("model", None)
        if key:
            assert after.get("keys", {}).pop("ollama") == key
            before.setdefault("keys", {}).pop("ollama", None)
        assert after == before


def test_without_a_terminal_nobody_is_asked_for_a_model() -> None:
    """U9."""
    outcome = tarmac("run", "hello")
    assert outcome.code == 2 and "no model is configured" in outcome.err


def completed(line: str) -> list[str]:
    words = line.split(" ")
    listed = " ".join(f'"{word}"' for word in words)
    code = (
        f"{bash()}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _tarmac; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.split()


def test_bash_completes_commands_actions_options_and_values() -> None:
    """U11."""
    assert completed("tarmac ru") == ["run"]
    assert completed("tarmac tasks ex") == ["export"]
    assert completed("tarmac run --ma") == ["--max-cost", "--max-turns"]
    assert completed("tarmac run --auto w") == ["workspace"]
    assert set(completed("tarmac help ")) == set(TABLE)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_are_their_language(shell: str, require: Callable[[str], None]) -> None:
    """U11."""
    require(shell)
    script = {"zsh": zsh, "fish": fish}[shell]()
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    assert "max-turns" in script and "export" in script
    if shell == "fish":
        ask = f"{script}\ncomplete -C 'tarmac tasks ex'"
        found = subprocess.run(["fish", "-N", "-c", ask], capture_output=True, text=True, timeout=30)
        assert "export" in found.stdout
