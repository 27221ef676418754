"""What goes over the wire: the same prefix in each request, in every dialect; and `tarmac tasks prompt`."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.models.server import Reply, Request, call, claude, gpt, responses, serving
from tests.tasks.engine import an_app, stored

from tarmac.app import App
from tarmac.cli.tasks import prompt_lines, prompt_record
from tarmac.models.model_catalog import model_info
from tarmac.models.openai_responses import Responses
from tarmac.models.provider import ModelSettings
from tarmac.tasks.views.model_history import last_prompt

TURNS = 60
LONG = 12  # characters of a line that says something
Body = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """A model, how it calls a tool, and what of a request must stay the same."""

    model: str
    calls: Callable[[int, str, dict[str, object]], list[bytes]]
    says: Callable[[str], list[bytes]]
    messages: Callable[[Body], list[Body]]
    settings: dict[str, object]

    def __str__(self) -> str:
        return f"{self.model}{self.settings or ''}"


def _claude(turn: int, name: str, arguments: dict[str, object]) -> list[bytes]:
    use: dict[str, object] = {"type": "tool_use", "id": f"toolu_{turn}", "name": name, "json": [json.dumps(arguments)]}
    return claude({"type": "text", "text": ["So. "]}, use, stop="tool_use", usage={"input_tokens": 1000})


def _claude_says(text: str) -> list[bytes]:
    return claude({"type": "text", "text": [text]})


def _gpt(turn: int, name: str, arguments: dict[str, object]) -> list[bytes]:
    return gpt({"content": "So."}, call(0, json.dumps(arguments), id=f"call_{turn}", name=name), finish="tool_calls")


def _gpt_says(text: str) -> list[bytes]:
    return gpt({"content": text})


def _responses(turn: int, name: str, arguments: dict[str, object]) -> list[bytes]:
    item: dict[str, object] = {
        "type": "function_call",
        "call_id": f"call_{turn}",
        "name": name,
        "arguments": [json.dumps(arguments)],
    }
    return responses(item)


def _responses_say(text: str) -> list[bytes]:
    return responses({"type": "message", "text": [text]})


def _xml(turn: int, name: str, arguments: dict[str, object]) -> list[bytes]:
    tags = "".join(f"<{key}>{value}</{key}>\n" for key, value in arguments.items())
    return gpt({"content": f"So.\n<{name}>\n{tags}</{name}>\n"})


def _without_marks(message: Body) -> Body:
    """Anthropic's marks say where to cache; they are not what is cached."""
    content = [{key: value for key, value in block.items() if key != "cache_control"} for block in message["content"]]
    return {**message, "content": content}


DIALECTS = [
    Dialect(
        "anthropic/claude-opus-5",
        _claude,
        _claude_says,
        lambda body: [_without_marks(each) for each in body["messages"]],
        {},
    ),
    Dialect("ollama/qwen", _gpt, _gpt_says, lambda body: body["messages"], {}),
    Dialect("openai/gpt-4o", _gpt, _gpt_says, lambda body: body["messages"], {}),
    Dialect("openai/gpt-5", _responses, _responses_say, lambda body: body["input"], {}),
    Dialect("ollama/phi", _xml, _gpt_says, lambda body: body["messages"], {"models.native_tools": False}),
]


def use_responses(app: App, dialect: Dialect, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the app speak it to our server: by itself it speaks it to OpenAI only."""
    if dialect.calls is _responses:
        info, chosen = model_info(dialect.model, ModelSettings()), ModelSettings()
        with_url = Responses(info, base_url=url, key="none", settings=chosen)
        monkeypatch.setattr(app, "open_model", lambda spec: with_url)


def assert_is_what_was_sent(record: Body, dialect: Dialect, body: Body) -> None:
    """System prompt, tools with descriptions and schemas, and every text of every message, in their order."""
    tools = [each.get("function", each) for each in body.get("tools", [])]
    assert [(each["name"], each["description"]) for each in tools] == [
        (each["name"], each["description"]) for each in record["tools"]
    ]
    schemas = [each.get("input_schema") or each["parameters"] for each in tools]
    assert json.dumps(schemas) == json.dumps([each["parameters"] for each in record["tools"]])
    messages = dialect.messages(body)
    system = body.get("system") or body.get("instructions") or messages[0]["content"]
    assert ("".join(each["text"] for each in system) if isinstance(system, list) else system) == record["system"]
    shown = json.dumps(record["messages"])
    at = 0
    for text in _texts([each for each in messages if each.get("role") not in ("system", "developer")]):
        for line in text.split("\n"):
            at = shown.index(json.dumps(line)[1:-1], at) if len(line) > LONG else at


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name in ("content", "output", "text"):
            yield from _texts(value.get(name))


async def sent(tmp_path: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Body], Body, str]:
    """The bodies of 60 requests, the last prompt as `tarmac tasks prompt` has it, and the task's id."""
    work = tmp_path / "work"
    work.mkdir()
    for number in range(5):
        (work / f"f{number}.txt").write_text(f"file {number}\n")
    turns = 0

    def answer(request: Request) -> Reply:
        nonlocal turns
        turns += 1
        if turns >= TURNS:
            return Reply(dialect.calls(turns, "attempt_completion", {"result": "Done."}))
        if turns % 20 == 0:
            return Reply(dialect.calls(turns, "write_to_file", {"path": f"new{turns}.txt", "content": "new\n"}))
        return Reply(dialect.calls(turns, "read_file", {"path": f"f{turns % 5}.txt"}))

    async with asyncio.timeout(60), serving() as server:
        server.answer = answer
        url = server.url if dialect.model.startswith("anthropic") else f"{server.url}/v1"
        settings = {"model": dialect.model, "base_url": url, **dialect.settings}
        async with AsyncExitStack() as stack:
            app = await stack.enter_async_context(an_app(work, **settings))
            use_responses(app, dialect, url, monkeypatch)
            creating = app.create_task("Read.", model=dialect.model, attended=False, auto="all")
            task = await stack.enter_async_context(creating)
            ended = await task.run_until_idle()
            found = last_prompt(await stored(task), task.log.blobs.read)
            assert found is not None and list(prompt_lines(found))
    assert ended.why == "completed", ended
    return [each.body for each in server.requests], prompt_record(found), task.id


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
async def test_each_request_begins_with_all_of_the_one_before_it(
    tmp_path: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S7, S8: 60 turns on the wire: tools, system prompt and messages stay byte for byte, so that they are cached."""
    bodies, record, task = await sent(tmp_path, dialect, monkeypatch)
    assert len(bodies) == TURNS
    for before, after in pairwise(bodies):
        for field in ("tools", "system", "instructions"):
            assert json.dumps(before.get(field)) == json.dumps(after.get(field))
        one, two = dialect.messages(before), dialect.messages(after)
        assert json.dumps(two[: len(one)]) == json.dumps(one)
    last = bodies[-1]
    users = [each for each in dialect.messages(last) if each.get("role") == "user"]
    assert ("environment_details" in json.dumps(users[0])) is True
    assert_is_what_was_sent(record, dialect, last)
    if dialect.calls in (_gpt, _responses):  # nobody but the person speaks in messages of the user
        assert len(users) == 1
    assert last.get("prompt_cache_key") == (task if dialect.model.startswith("openai") else None)
    if dialect.calls is _claude:
        marks = json.dumps(last).count("cache_control")
        assert marks == 3 and "cache_control" in json.dumps(last["messages"][-1])


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
async def test_the_prompt_that_is_shown_is_what_was_sent_after_condensing_and_another_mode(
    tmp_path: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S7, S17: `tarmac tasks prompt` has the system prompt, the tools and the messages of the last request."""
    work = tmp_path / "work"
    work.mkdir()
    for number in range(20):
        (work / f"f{number}.txt").write_text(f"this is file {number}\n" * 100)
    turns = 0

    def answer(request: Request) -> Reply:
        nonlocal turns
        turns += 1
        if "summar" in json.dumps(dialect.messages(request.body)[-1]).lower():
            return Reply(dialect.says("Files were read."))
        if turns == 4:
            return Reply(dialect.calls(turns, "switch_mode", {"mode_slug": "ask"}))
        if turns in (10, 14):
            return Reply(dialect.calls(turns, "attempt_completion", {"result": "Done."}))
        return Reply(dialect.calls(turns, "read_file", {"path": f"f{turns}.txt"}))

    async with asyncio.timeout(60), serving() as server:
        server.answer = answer
        url = server.url if dialect.model.startswith("anthropic") else f"{server.url}/v1"
        settings = {"model": dialect.model, "base_url": url, **dialect.settings}
        async with (
            an_app(work, **settings) as app,
            AsyncExitStack() as stack,
        ):
            use_responses(app, dialect, url, monkeypatch)
            creating = app.create_task("Read.", model=dialect.model, attended=False, auto="all")
            task = await stack.enter_async_context(creating)
            for more in ("", "Read on, please."):
                if more:
                    await task.condense("the files")
                    await task.say(more)
                ended = await task.run_until_idle()
                assert ended.why == "completed", ended
                found = last_prompt(await stored(task), task.log.blobs.read)
                assert found is not None
                assert_is_what_was_sent(prompt_record(found), dialect, server.requests[-1].body)
            facts = {type(each).__name__ for each in await stored(task)}
            assert {"ModeSwitched", "HistoryCondensed"} <= facts
            assert "Files were read." in json.dumps(server.requests[-1].body)
