"""The first minute: without a model, the person chooses one in a real terminal, and what they asked for goes on."""

import asyncio
import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import TARMAC
from tests.e2e.tmux import READY, Tmux, tarmac_in_tmux
from tests.models.server import Reply, Request, Server, gpt, refusal, serving

pytestmark = [pytest.mark.shell, pytest.mark.slow]

WRONG = "sk-wrong-12345678"
KEY = "sk-typed-unseen-4711"
NOWHERE = "http://127.0.0.1:9"  # nobody listens there
NO_SERVERS = {f"{name}_BASE_URL": NOWHERE for name in ("OLLAMA", "LMSTUDIO", "LLAMACPP", "VLLM")}
CHOOSE = "Which one? A number, or provider/name"


@pytest.fixture(autouse=True)
def _tmux(require: Callable[[str], None]) -> None:
    require("tmux")


def file(home: Path) -> Path:
    return home / ".config" / "tarmac" / "config.toml"


def answer(request: Request) -> Reply:
    """A server with two models, which refuses one key."""
    if WRONG in request.headers.get("authorization", ""):
        return refusal(401, "wrong key")
    if request.path.endswith("/models"):
        listed = {"data": [{"id": "qwen3:8b"}, {"id": "phi"}]}
        return Reply([json.dumps(listed).encode()], content_type="application/json")
    return Reply(gpt({"content": "Good morning."}, usage={"prompt_tokens": 5, "completion_tokens": 2}))


async def drive(play: Callable[[Tmux], None], server: Server, project: Path, *words: str, **environ: str) -> None:
    """Play at the keyboard of `tarmac` while the server answers."""
    server.answer = answer

    def at_the_keyboard() -> None:
        with tarmac_in_tmux(*words, cwd=project, **{**NO_SERVERS, **environ}) as tmux:  # type: ignore[arg-type]
            play(tmux)

    await asyncio.to_thread(at_the_keyboard)


def asked(server: Server) -> list[Request]:
    """The requests for an answer."""
    return [each for each in server.requests if not each.path.endswith("/models")]


async def test_a_server_on_this_machine_is_found_chosen_and_asked_what_the_person_asked(
    tmp_path: Path, own_state: Path
) -> None:
    """U9: the choice is kept, and not asked for again."""

    def first(tmux: Tmux) -> None:
        seen = tmux.until("❯ say good morning", "No model is set up yet", CHOOSE)
        assert "1  ollama/qwen3:8b" in seen and "2  ollama/phi" in seen and "3  another provider" in seen
        tmux.type("7")
        tmux.keys("Enter")
        tmux.until("`7` is not on the list")
        tmux.type("2")
        tmux.keys("Enter")
        tmux.until("Wrote", "Good morning.", READY)
        tmux.leave()

    def second(tmux: Tmux) -> None:
        assert "No model is set up" not in tmux.until(READY, "ollama/phi")
        assert tmux.leave() == 0

    async with serving() as server:
        url = f"{server.url}/v1"
        await drive(first, server, tmp_path, "run", "say good morning", OLLAMA_BASE_URL=url)
        await drive(second, server, tmp_path, OLLAMA_BASE_URL=url)
    assert tomllib.loads(file(own_state).read_text()) == {"model": "ollama/phi"}
    (request,) = asked(server)
    assert request.body["model"] == "phi" and "say good morning" in json.dumps(request.body)


async def test_a_key_is_typed_unseen_checked_and_kept_for_the_user_alone(tmp_path: Path, own_state: Path) -> None:
    """U9: a wrong name and a refused key are said and asked for again."""

    def play(tmux: Tmux) -> None:
        seen = tmux.until("None was found.", CHOOSE)
        assert "1  another provider" in seen
        tmux.keys("Enter")
        tmux.until("Which provider?")
        tmux.type("ollama\n")
        tmux.until("Ollama needs no key. Start it")
        tmux.type("opnai\n")
        tmux.until("Did you mean `openai`?")
        tmux.type("openai\n")
        tmux.until("Key for openai (it is not shown):")
        tmux.type(f"{WRONG}\n")
        tmux.until("openai refuses the key")
        tmux.type(f"{KEY}\n")
        tmux.until("Which model?")
        tmux.type("phi\n")
        tmux.until("Wrote", READY)
        tmux.type("hello")
        tmux.keys("Enter")
        tmux.until("Good morning.")
        seen = tmux.screen(history=True)
        assert KEY not in seen and WRONG not in seen
        tmux.leave()

    async with serving() as server:
        await drive(play, server, tmp_path, OPENAI_BASE_URL=f"{server.url}/v1")
    assert tomllib.loads(file(own_state).read_text()) == {"model": "openai/phi", "keys": {"openai": KEY}}
    assert file(own_state).stat().st_mode & 0o777 == 0o600
    (request,) = asked(server)
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_a_key_in_the_environment_is_offered_first(tmp_path: Path, own_state: Path) -> None:
    """U9: Enter takes the provider's default."""

    def play(tmux: Tmux) -> None:
        assert "1  deepseek/" in tmux.until("DEEPSEEK_API_KEY is set", CHOOSE)
        tmux.keys("Enter")
        tmux.until("Wrote", READY)
        assert tmux.leave() == 0

    async with serving() as server:
        await drive(play, server, tmp_path, DEEPSEEK_API_KEY=KEY)
    text = file(own_state).read_text()
    assert text.startswith('model = "deepseek/') and KEY not in text


async def test_who_leaves_the_choice_changes_nothing_and_is_told_what_else_there_is(
    tmp_path: Path, own_state: Path
) -> None:
    """U9: Ctrl-C, in a narrow terminal; no word is broken."""

    def play(tmux: Tmux) -> None:
        tmux.resize(50, 20)
        tmux.until(CHOOSE)
        tmux.keys("C-c")
        assert tmux.exit_status() == 2
        tmux.until("no model was chosen", "`tarmac demo` shows")

    async with serving() as server:
        await drive(play, server, tmp_path)
    assert not file(own_state).exists()


async def doctor(**environ: str) -> tuple[int, dict[str, object]]:
    """What `tarmac doctor --ask-model` finds about the model."""
    process = await asyncio.create_subprocess_exec(
        *TARMAC,
        *("doctor", "--ask-model", "--shell", "bash", "--json"),
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    (found,) = (each for each in json.loads(out)["findings"] if each["topic"] == "model")
    return process.returncode or 0, found


async def test_the_doctor_asks_the_model_one_question_if_told_to() -> None:
    """U9."""
    async with serving() as server:
        server.answer = answer
        _, found = await doctor(TARMAC_MODEL="ollama/phi", OLLAMA_BASE_URL=f"{server.url}/v1")
    assert found["level"] == "ok" and str(found["what"]).startswith("ollama/phi answered in ")
    assert len(asked(server)) == 1
    code, found = await doctor(TARMAC_MODEL="ollama/phi", OLLAMA_BASE_URL=NOWHERE)
    assert (code, found["level"]) == (1, "problem") and "can't be reached" in str(found["what"])
    code, found = await doctor()
    assert (code, found["level"], found["what"]) == (1, "problem", "none is configured")
