"""`tarmac run` with the real SDKs, against a server that speaks each provider's language."""

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.conftest import TARMAC
from tests.models.server import Reply, Server, call, claude, gpt, refusal, serving

pytestmark = pytest.mark.shell

KEY = "sk-hidden-4711"
SHOWS = {"command": 'echo "key=($ANTHROPIC_API_KEY$OPENAI_API_KEY)" | tr a-z A-Z'}
DONE = {"result": "It is done."}


@dataclass(frozen=True)
class Way:
    """How a model is asked, and how it calls a tool."""

    model: str
    environ: Callable[[str], dict[str, str]]
    calls: Callable[[str, dict[str, str]], list[bytes]]

    def __str__(self) -> str:
        return self.model.partition("/")[0]


def _claude(name: str, arguments: dict[str, str]) -> list[bytes]:
    use: dict[str, object] = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "json": [json.dumps(arguments)]}
    usage = {"input_tokens": 1000, "output_tokens": 50}
    return claude({"type": "text", "text": ["So. "]}, use, stop="tool_use", usage=usage)


def _gpt(name: str, arguments: dict[str, str]) -> list[bytes]:
    return gpt({"content": "So."}, call(0, json.dumps(arguments), id="call_0", name=name), finish="tool_calls")


def _xml(name: str, arguments: dict[str, str]) -> list[bytes]:
    tags = "".join(f"<{key}>{value}</{key}>\n" for key, value in arguments.items())
    letters: list[dict[str, object]] = [{"content": letter} for letter in f"So.\n<{name}>\n{tags}</{name}>\n"]
    return gpt(*letters)


WAYS = [
    Way("anthropic/claude-opus-5", lambda url: {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}, _claude),
    Way("openai/gpt-5", lambda url: {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"}, _gpt),
    Way("ollama/phi", lambda url: {"OLLAMA_BASE_URL": f"{url}/v1", "TARMAC_MODELS_NATIVE_TOOLS": "false"}, _xml),
]


async def run(server: Server, way: Way, project: Path, *more: str) -> tuple[int, str, str]:
    """Its exit status, and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *TARMAC,
        *("run", "look", "--model", way.model, "--cwd", str(project), "--auto", "all", *more),
        env={**os.environ, **way.environ(server.url)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 300)  # the machine may be busy
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_a_task_is_done_by_a_model_behind_a_network(way: Way, tmp_path: Path, own_state: Path) -> None:
    """A5, S6: asked again after a refusal, its calls run, their results sent back; the key is nowhere."""
    replies = [
        refusal(429, {"message": "slow down"}, retry_after="0"),
        Reply(way.calls("execute_command", SHOWS)),
        Reply(way.calls("attempt_completion", DONE)),
    ]
    async with serving(*replies) as server:
        code, out, err = await run(server, way, tmp_path)
        assert (code, server.replies) == (0, []), out + err
    assert "It is done." in out
    assert "slow down" in out + err
    results = json.dumps(server.requests[2].body["messages"])
    assert "KEY=()" in results
    assert all(name in results for name in ("execute_command", "So."))
    kept = [file.read_bytes() for file in own_state.rglob("*") if file.is_file()]
    assert kept
    assert not any(KEY.encode() in each or KEY.upper().encode() in each for each in kept)
    assert KEY not in out + err


async def test_a_key_that_is_refused_ends_the_task_with_words(tmp_path: Path) -> None:
    async with serving(refusal(401, {"message": f"invalid key {KEY}"})) as server:
        code, out, err = await run(server, WAYS[0], tmp_path)
    assert code == 1
    assert [line.split(":")[0] for line in err.splitlines()] == ["tarmac", "  hint", "  hint"], "each once, on its line"
    assert "check the key for anthropic" in err.splitlines()[1]
    assert KEY not in out + err


async def test_the_address_of_a_server_is_an_option(tmp_path: Path) -> None:
    """A5: `--base-url`, for a server that no variable and no file names."""
    way = Way("compatible/any", lambda _: {}, _gpt)
    async with serving(Reply(_gpt("attempt_completion", DONE))) as server:
        code, out, err = await run(server, way, tmp_path, "--base-url", f"{server.url}/v1")
        assert (code, server.replies) == (0, []), out + err
    assert "It is done." in out


async def test_a_picture_for_a_model_that_cannot_see_is_said(tmp_path: Path) -> None:
    """S19."""
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 50)
    async with serving(Reply(_xml("attempt_completion", DONE))) as server:
        code, _, err = await run(server, WAYS[2], tmp_path, "--image", str(picture))
    assert code == 0 and "ollama/phi can't see pictures" in err and "models.images" in err


async def test_an_address_that_is_none_is_told(tmp_path: Path) -> None:
    async with serving() as server:
        code, _, err = await run(server, Way("compatible/any", lambda _: {}, _gpt), tmp_path, "--base-url", "ftp://x")
    assert code == 2
    assert "--base-url: `base_url` must be a URL" in err
