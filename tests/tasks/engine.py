"""Tasks with a scripted model, for tests: everything else is real."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tarmac.app import App, open_app
from tarmac.config import Config
from tarmac.models.messages import Message, Text, ToolResult, ToolUse
from tarmac.tasks.auto import Auto
from tarmac.tasks.events import (
    ModelSaid,
    QuestionAsked,
    RequestFailed,
    RequestStarted,
    TaskEvent,
    ToolFinished,
    ToolStarted,
)
from tarmac.tasks.limits import Limits
from tarmac.tasks.log.reader import read_log
from tarmac.tasks.signals import CallStreamed, OutputStreamed, ReasoningStreamed, Signal, TextStreamed
from tarmac.tasks.task import Task
from tarmac.tasks.views.model_history import model_messages

Turn = dict[str, object]


def call(name: str, **arguments: object) -> Turn:
    """A tool call of a turn."""
    return {"name": name, "arguments": json.dumps(arguments)}


def turn(*calls: Turn, text: str = "", **more: object) -> Turn:
    """One answer of the model."""
    return {"text": text, "call": list(calls), **more}


def done(result: str = "It is done.") -> Turn:
    """The answer that ends a task."""
    return turn(call("attempt_completion", result=result))


def write_script(path: Path, *turns: Turn, **top: object) -> str:
    """A script of these turns; the model's name."""
    lines = [f"{key} = {_toml(value)}" for key, value in top.items()]
    for each in turns:
        lines.append("[[turn]]")
        calls = each.get("call", [])
        lines += [f"{key} = {_toml(value)}" for key, value in each.items() if key != "call"]
        assert isinstance(calls, list)
        for one in calls:
            lines.append("[[turn.call]]")
            lines += [f"{key} = {_toml(value)}" for key, value in one.items()]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return f"scripted/{path}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@asynccontextmanager
async def an_app(workspace: Path, **config: object) -> AsyncIterator[App]:
    """Tarmac, with its state in the test's own folder."""
    settings = Config(workspace=workspace, user_folder=workspace.parent / "user", values=config)
    async with open_app(settings) as app:
        yield app


@asynccontextmanager
async def a_task(
    workspace: Path,
    *turns: Turn,
    text: str = "Do it.",
    attended: bool = False,
    auto: Auto = "edit",
    limits: Limits | None = None,
    mode: str | None = None,
    config: dict[str, object] | None = None,
    **script: object,
) -> AsyncIterator[Task]:
    """A task whose model plays these turns."""
    workspace.mkdir(exist_ok=True)
    model = write_script(workspace.parent / "script.toml", *turns, **script)
    async with (
        asyncio.timeout(30),  # a test that waits forever says nothing
        an_app(workspace, **(config or {})) as app,
        app.create_task(text, model=model, attended=attended, auto=auto, limits=limits, mode=mode) as task,
    ):
        yield task


class Seen:
    """All that a listener was told, in order."""

    def __init__(self, task: Task) -> None:
        self.all: list[TaskEvent | Signal] = []
        self._news = asyncio.Event()
        task.subscribe(self._hear)

    def _hear(self, seq: int | None, thing: TaskEvent | Signal) -> None:
        self.all.append(thing)
        self._news.set()

    def of(self, *kinds: type) -> list[object]:
        """Those of these kinds."""
        return [each for each in self.all if isinstance(each, kinds)]

    async def until(self, found: Callable[[TaskEvent | Signal], bool], *, seconds: float = 10.0) -> TaskEvent | Signal:
        """Wait for one that fits, from the beginning on."""
        at = 0
        async with asyncio.timeout(seconds):
            while True:
                for each in self.all[at:]:
                    at += 1
                    if found(each):
                        return each
                self._news.clear()
                await self._news.wait()

    async def question(self, *, after: int = 0) -> QuestionAsked:
        """The next question."""
        found = await self.until(lambda each: isinstance(each, QuestionAsked) and self.all.index(each) >= after)
        assert isinstance(found, QuestionAsked)
        return found


def results(seen: Seen) -> list[tuple[str, str, str]]:
    """Each call's name, outcome and text."""
    return [
        (each.name, each.outcome, "\n".join(part.text for part in each.content if isinstance(part, Text)))
        for each in seen.all
        if isinstance(each, ToolFinished)
    ]


def check_order(things: list[TaskEvent | Signal]) -> None:
    """What is shown of a request comes between its start and its end; the same of a call."""
    requests: set[str] = set()
    calls: set[str] = set()
    for thing in things:
        match thing:
            case RequestStarted(request=request):
                requests.add(request)
            case ModelSaid(request=request) | RequestFailed(request=request, retry_in=None):
                requests.discard(request)
            case TextStreamed(request=request) | ReasoningStreamed(request=request) | CallStreamed(request=request):
                assert request in requests, thing
            case ToolStarted(call=made):
                calls.add(made)
            case ToolFinished(call=made):
                calls.discard(made)
            case OutputStreamed(call=made):
                assert made in calls, thing


async def stored(task: Task) -> list[TaskEvent]:
    """What is on the disk."""
    await task.log.commit()
    return read_log(task.log.folder).events


async def messages_of(task: Task) -> list[Message]:
    """What the model would be sent now, from the disk; as every provider wants it."""
    messages = model_messages(await stored(task))
    check_pairs(messages)
    return messages


def check_pairs(messages: list[Message]) -> None:
    """What every provider wants: sides alternate, and every call has exactly one result, directly after it."""
    for before, after in itertools.pairwise(messages):
        assert before.role != after.role
    for at, message in enumerate(messages):
        uses = [part.id for part in message.parts if isinstance(part, ToolUse)]
        if message.role != "assistant" or not uses:
            assert not any(isinstance(part, ToolUse) for part in message.parts)
            continue
        replies = messages[at + 1].parts if at + 1 < len(messages) else ()
        assert [part.call for part in replies if isinstance(part, ToolResult)] == uses
        assert len(set(uses)) == len(uses)
