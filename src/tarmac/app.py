"""The one place that wires things: a configuration becomes terminals, a policy, a store, and tasks that use them.

async with open_app(config) as app:
    async with app.create_task("make the tests pass") as task:
        ended = await task.run_until_idle()
"""

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tarmac.config import Config
from tarmac.errors import BadRequest
from tarmac.events import TaskId
from tarmac.models.provider import Model, open_model, warm
from tarmac.paths import check_directory, state_dir
from tarmac.policy import Policy
from tarmac.policy.files import Files
from tarmac.policy.grants import GrantFile
from tarmac.prompts.modes import load_modes
from tarmac.prompts.system import SystemFacts
from tarmac.tasks.audience import Audience
from tarmac.tasks.auto import Auto, settings_for
from tarmac.tasks.desk import Desk, TaskSettings, now
from tarmac.tasks.events import Noted, UserSaid
from tarmac.tasks.history import ModelHistory
from tarmac.tasks.limits import Limits
from tarmac.tasks.log import TaskLog
from tarmac.tasks.metadata import Metadata
from tarmac.tasks.reading import read_log, uncollected
from tarmac.tasks.store import TaskStore
from tarmac.tasks.task import Picture, Task
from tarmac.terminals.registry import TerminalRegistry
from tarmac.terminals.shells import find_shell
from tarmac.tools.toolbox import Toolbox, toolbox


@asynccontextmanager
async def open_app(config: Config, *, environ: Mapping[str, str] | None = None) -> AsyncIterator["App"]:
    """All of Tarmac; on the way out its tasks are left in order and its terminals closed."""
    app = App(config, os.environ if environ is None else environ)
    try:
        yield app
    finally:
        await app.aclose()


class App:
    """What the doors share. Get one from `open_app`."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        state = state_dir(environ)
        self.config = config
        self.store = TaskStore(state / "tasks")
        self.grants = GrantFile(state / "grants.json")
        self.files = Files(own=[state, config.user_folder])
        self.registry = TerminalRegistry(config.terminals)
        self.toolbox: Toolbox = toolbox()
        self.tasks: dict[TaskId, Task] = {}  # those that are open
        self._policies: dict[Auto, Policy] = {}

    @property
    def policy(self) -> Policy:
        """The judge, at the level of the configuration."""
        return self.policy_for(self.config.auto)

    def policy_for(self, auto: Auto) -> Policy:
        """The judge at a level of trust."""
        if auto not in self._policies:
            settings = settings_for(auto, self.config.policy)
            self._policies[auto] = Policy(settings, rules=self.config.rules, grants=self.grants, files=self.files)
        return self._policies[auto]

    def open_model(self, spec: str) -> Model:
        """The model of that name, with the keys and addresses of the configuration."""
        return open_model(spec, self.config.models_for(spec))

    # Tasks

    @asynccontextmanager
    async def create_task(
        self,
        text: str,
        *,
        images: Sequence[Picture] = (),
        mode: str | None = None,
        model: str | None = None,
        cwd: Path | str | None = None,
        attended: bool = True,
        auto: Auto | None = None,
        limits: Limits | None = None,
    ) -> AsyncIterator[Task]:
        """A new task, open; it begins when it is run."""
        if not text.strip() and not images:
            raise BadRequest("a task needs words", hint="say what is to be done")
        spec = self._model(model)
        warm(spec)
        workspace = check_directory(Path(cwd) if cwd is not None else self.config.workspace)
        chosen = mode or self.config.mode
        opened = await asyncio.to_thread(self.open_model, spec)
        async with self.store.create(workspace=workspace, mode=chosen) as log:
            task = await self._open(log, workspace, opened, attended=attended, auto=auto, limits=limits, mode=chosen)
            blobs = [await asyncio.to_thread(log.blobs.keep, data, media) for data, media in images]
            await log.append(UserSaid(at=now(), text=text, images=tuple(blobs)))
            async with self._closing(task):
                yield task

    @asynccontextmanager
    async def resume_task(
        self,
        id: str,
        *,
        mode: str | None = None,
        model: str | None = None,
        attended: bool = True,
        auto: Auto | None = None,
        limits: Limits | None = None,
    ) -> AsyncIterator[Task]:
        """A task of before, open; it goes on when it is run. One that is completed does so only after new words."""
        folder = await asyncio.to_thread(self.store.path, id)
        async with self.store.open(TaskId(folder.name)) as log:
            found = Metadata()
            with uncollected():
                for event in log.past:
                    found.add(event)
            workspace = check_directory(found.workspace or self.config.workspace)
            spec = self._model(model or found.model)
            opened = await asyncio.to_thread(self.open_model, spec)
            task = await self._open(
                log, workspace, opened, attended=attended, auto=auto, limits=limits, mode=mode or found.mode
            )
            if mode and mode != found.mode:
                await task.switch_mode(mode)
            async with self._closing(task):
                yield task

    async def _open(
        self,
        log: TaskLog,
        workspace: Path,
        model: Model,
        *,
        mode: str,
        attended: bool,
        auto: Auto | None,
        limits: Limits | None,
    ) -> Task:
        level = auto or self.config.auto
        modes = await asyncio.to_thread(load_modes, workspace, self.config.user_folder)
        chosen = modes.get(mode)
        history, metadata = ModelHistory(), Metadata()
        past, log.past = log.past, []
        if len(past) < log.seq:  # a new one, which has its first fact already
            past = (await asyncio.to_thread(read_log, log.folder)).events
        with uncollected():
            for event in past:
                history.add(event)
                metadata.add(event)
        log.subscribe(lambda _, event: history.add(event))  # before anybody else: who is told of a fact can ask
        log.subscribe(lambda _, event: metadata.add(event))
        desk = Desk(
            task=TaskId(log.folder.name),
            workspace=workspace,
            log=log,
            audience=Audience(log),
            history=history,
            metadata=metadata,
            registry=self.registry,
            policy=self.policy_for(level),
            files=self.files,
            grants=self.grants,
            toolbox=self.toolbox,
            modes=modes,
            mode=chosen or modes.all[0],
            model=model,
            settings=self._settings(level, limits),
            attended=attended,
            seen={Path(path): digest for path, digest in metadata.files.items()},
            todos=metadata.todos,
            cost=metadata.total_cost,
            context=metadata.context,
        )
        if chosen is None:
            desk.mode = desk.mode_of("code") if len(past) > 1 else desk.mode_of(mode)
            log.add(Noted(at=now(), what="notice", text=f"there is no mode `{mode}` here any more: code is used"))
        for trouble in modes.trouble if len(past) == 1 else ():
            log.add(Noted(at=now(), what="notice", text=trouble))
        return Task(desk, past, self.open_model)

    def _settings(self, auto: Auto, limits: Limits | None) -> TaskSettings:
        config = self.config
        return TaskSettings(
            auto=auto,
            limits=limits or config.limits,
            approval_timeout=config.approval_timeout,
            tools=config.tools,
            user_folder=config.user_folder,
            instructions=config.instructions,
            language=config.language,
            system=SystemFacts(
                os=f"{platform.system()} {platform.release()}",
                shell=find_shell(None).name,
                home=str(Path.home()),
            ),
        )

    @asynccontextmanager
    async def _closing(self, task: Task) -> AsyncIterator[None]:
        self.tasks[task.id] = task
        try:
            yield
        finally:
            self.tasks.pop(task.id, None)
            await task.aclose()

    def _model(self, wanted: str | None) -> str:
        spec = wanted or self.config.model
        if not spec:
            raise BadRequest(
                "no model is chosen",
                hint="--model provider/name, or `model` in config.toml, or TARMAC_MODEL; `tarmac demo` needs none",
            )
        return spec

    async def aclose(self) -> None:
        """Leave every task in order, then close the terminals. May be called twice."""
        try:
            await asyncio.gather(*(task.aclose() for task in list(self.tasks.values())))
        finally:
            await self.registry.aclose()
