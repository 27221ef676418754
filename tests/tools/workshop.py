"""A bench as a task makes one: real files, a real registry, a person who answers as the test wants."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tarmac.errors import ToolFailed
from tarmac.events import TaskId, TerminalId
from tarmac.models.messages import Blob, Text
from tarmac.policy import Policy, PolicySettings, Verdict
from tarmac.policy.files import Files
from tarmac.terminals import TerminalRegistry
from tarmac.tools.tool import Bench, Done, Go, Live, Output, Ready, Reply, Suggestion, TodoItem
from tarmac.tools.toolbox import toolbox


@dataclass
class Person:
    """Answers as a test wants it, and remembers what it was told."""

    answers: list[Reply] = field(default_factory=list)
    asked: list[tuple[str, tuple[Suggestion, ...]]] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    mode: str = "code"
    todos: tuple[TodoItem, ...] = ()
    commands: dict[str, str] = field(default_factory=dict)
    condensed: list[str] = field(default_factory=list)

    async def ask(self, question: str, suggestions: tuple[Suggestion, ...]) -> Reply:
        self.asked.append((question, suggestions))
        return self.answers.pop(0)

    async def complete(self, result: str) -> Reply | None:
        self.completed.append(result)
        return self.answers.pop(0) if self.answers else None

    async def switch_mode(self, mode: str, why: str) -> str:
        if mode == "nowhere":
            raise ToolFailed(f"Invalid mode: {mode}")
        self.mode = mode
        return f"Successfully switched to {mode} mode."

    async def subtask(self, mode: str, message: str) -> str:
        return f"{mode}: {message}"

    async def set_todos(self, todos: tuple[TodoItem, ...]) -> None:
        self.todos = todos

    def slash_command(self, name: str) -> str | None:
        return self.commands.get(name)

    def condense(self, focus: str) -> None:
        self.condensed.append(focus)

    def output(self, number: int) -> str | None:
        return None

    def slash_commands(self) -> Mapping[str, str]:
        return dict.fromkeys(self.commands, "")


class Workshop:
    """A workspace with a bench, on which calls are made as a task makes them, with a person who says yes."""

    def __init__(self, folder: Path, registry: TerminalRegistry) -> None:
        self.folder = folder
        self._registry = registry
        self.person = Person()
        self.seen: dict[Path, str | None] = {}
        self.blobs: dict[str, bytes] = {}
        self.live: list[Live] = []
        self._news = asyncio.Event()
        self.spools: list[tuple[TerminalId, Path]] = []
        self.bench = Bench(
            workspace=folder,
            cwd=folder,
            task=TaskId("task-1"),
            files=Files(),
            registry=registry,
            talk=self.person,
            store=self._store,
            seen=self.seen,
            show=self._show,
            started=lambda terminal, spool: self.spools.append((terminal, spool)),
        )

    @property
    def registry(self) -> TerminalRegistry:
        return self._registry

    @property
    def printed(self) -> bytes:
        return b"".join(each.data for each in self.live if isinstance(each, Output))

    def _show(self, live: Live) -> None:
        self.live.append(live)
        self._news.set()

    async def until_printed(self, text: bytes) -> None:
        """Wait until a command has printed it, live."""
        async with asyncio.timeout(20):
            while text not in self.printed:
                self._news.clear()
                await self._news.wait()

    def _store(self, data: bytes, media_type: str) -> Blob:
        name = hashlib.sha256(data).hexdigest()
        self.blobs[name] = data
        return Blob(name, len(data), media_type)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def prepare(self, name: str, /, **arguments: object) -> Ready:
        ready = await toolbox().decode(name, json.dumps(arguments)).prepare(self.bench)
        while ready.then is not None:
            ready = await ready.then()
        return ready

    async def first(self, name: str, /, **arguments: object) -> Ready:
        """As far as it is prepared before anything was allowed."""
        return await toolbox().decode(name, json.dumps(arguments)).prepare(self.bench)

    async def judged(self, ready: Ready) -> tuple[Verdict, ...]:
        policy = Policy(settings=PolicySettings(auto_approve_read=True))
        return tuple([await policy.judge(each.action, workspace=self.folder) for each in ready.wants])

    async def act(self, ready: Ready, *, approved: bool = True, go: Go | None = None) -> Done:
        made = go or Go(verdicts=await self.judged(ready), approved=approved)
        done = await ready.act(made)
        for each in done.seen:
            self.seen[each.path] = each.digest
        return done

    async def call(self, name: str, /, **arguments: object) -> Done:
        """Prepared, judged, approved, made."""
        return await self.act(await self.prepare(name, **arguments))

    async def text(self, name: str, /, **arguments: object) -> str:
        return text_of(await self.call(name, **arguments))

    async def failure(self, name: str, /, **arguments: object) -> str:
        """What the model is told of a call that can't be made."""
        with pytest.raises(ToolFailed) as error:
            await self.call(name, **arguments)
        return str(error.value)

    def settle(self, **settings: object) -> None:
        self.bench = replace(self.bench, settings=replace(self.bench.settings, **settings))  # type: ignore[arg-type]


def text_of(done: Done) -> str:
    return "\n".join(each.text for each in done.content if isinstance(each, Text))
