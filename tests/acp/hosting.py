"""Tarmac as a host, with the scripted agent as a real process: for the tests of hosting."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tarmac.acp.host.hosted import HostedTask
from tarmac.acp.host.open_hosted import Lend, Wishes, open_hosted
from tarmac.app import App, open_app
from tarmac.config import load_config
from tarmac.errors import BadRequest
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.context import Ended

AGENT = [sys.executable, str(Path(__file__).with_name("scripted_agent.py"))]
Steps = list[dict[str, Any]]


@dataclass
class Stage:
    """A hosted agent, and what was seen of it."""

    hosted: HostedTask
    folder: Path
    seen: list[e.TaskEvent | s.Signal] = field(default_factory=list)
    asked: list[e.QuestionAsked] = field(default_factory=list)
    answer: "Callable[[e.QuestionAsked], AnswerKind | None]" = lambda asked: AnswerKind.NO

    def hear(self, _: int | None, thing: e.TaskEvent | s.Signal) -> None:
        self.seen.append(thing)
        if isinstance(thing, e.QuestionAsked):
            self.asked.append(thing)
            if (said := self.answer(thing)) is not None:
                self.start(self.hosted.answer(thing.question, Answer(said, by="test")))

    _jobs: "list[asyncio.Task[None]]" = field(default_factory=list)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._jobs.append(asyncio.create_task(work))

    async def try_answer(self, asked: e.QuestionAsked, word: str, left: list[str]) -> None:
        """Words, and the next ones where these make no sense."""
        while True:
            try:
                await self.hosted.answer(asked.question, Answer(AnswerKind.MESSAGE, text=word, by="test"))
                return
            except BadRequest:
                word = left.pop(0)

    async def play(self, *steps: dict[str, Any]) -> dict[str, Any]:
        """One turn; what the agent's requests gave, by name."""
        await self.turn(*steps)
        found: dict[str, Any] = json.loads((self.folder / "agent.json").read_text())["found"]
        return found

    async def turn(self, *steps: dict[str, Any]) -> Ended:
        async with asyncio.timeout(20):
            await self.hosted.say(json.dumps(steps))
            return await self.hosted.run_until_idle()

    def heard(self) -> list[dict[str, Any]]:
        log: list[dict[str, Any]] = json.loads((self.folder / "agent.json").read_text())["heard"]
        return log

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.seen if isinstance(each, kind)]


@asynccontextmanager
async def hosting(
    folder: Path,
    *,
    auto: str = "ask",
    attended: bool = True,
    wishes: Wishes | None = None,
    lend: "Callable[[App], Lend] | None" = None,
    **environ: str,
) -> AsyncIterator[Stage]:
    """The scripted agent in a workspace and a home of its own."""
    workspace = folder / "work"
    workspace.mkdir(exist_ok=True)
    own = {"TARMAC_STATE_DIR": str(folder / "state"), "TARMAC_CONFIG_DIR": str(folder / "config")}
    env = {**os.environ, "HOME": str(folder), **own, "AGENT_LOG": str(folder / "agent.json"), **environ}
    config = load_config(workspace, env, {"auto": auto})
    async with (
        open_app(config, environ=env) as app,
        open_hosted(
            app, AGENT, attended=attended, wishes=wishes, lend=lend(app) if lend else None, environ=env
        ) as hosted,
    ):
        stage = Stage(hosted, folder)
        hosted.subscribe(stage.hear)
        yield stage
