"""The one place that wires things: a configuration becomes terminals, a policy, a store, and tasks that use them.

async with open_app(config) as app:
    async with app.create_task("make the tests pass") as task:
        ended = await task.run_until_idle()
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from pathlib import Path

from tarmac.config import Config
from tarmac.errors import BadRequest, ParserUnavailable
from tarmac.events import TaskId
from tarmac.models.factory import open_model, warm
from tarmac.models.provider import Model
from tarmac.paths import check_directory, state_dir
from tarmac.policy import Enforcement, Policy
from tarmac.policy.approval import Picture
from tarmac.policy.grants import GrantFile
from tarmac.policy.parse.parser import check_parser
from tarmac.policy.paths.files import Files
from tarmac.prompts.instructions import Instructions, first_heard, read_instructions, read_replacement
from tarmac.prompts.modes import Modes, load_modes
from tarmac.prompts.system import SystemFacts
from tarmac.tasks.auto import Auto, kinds_for, level_named, settings_for
from tarmac.tasks.context import TaskContext, TaskSettings, find_mode, now
from tarmac.tasks.events import ModelSwitched, Noted, RequestStarted, SubtaskStarted, TaskCreated, TaskEvent, UserSaid
from tarmac.tasks.limits import Limits
from tarmac.tasks.log import TaskLog
from tarmac.tasks.log.reader import LOG, read_log
from tarmac.tasks.state import TaskState
from tarmac.tasks.store import TaskStore
from tarmac.tasks.task import Task
from tarmac.terminals.events import CommandFinished, NoShellIntegration, TerminalEvent
from tarmac.terminals.pool import Pool
from tarmac.tools.plugins import Installed, with_installed
from tarmac.tools.servers import Hub, ServerDefinition, read_definitions
from tarmac.tools.servers.hub import with_servers
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
        self._state, self._environ = state, environ
        self.config = config
        self.store = TaskStore(state / "tasks")
        self.grants = GrantFile(state / "grants.json")
        self.files = Files(own=[state, config.user_folder])
        self.registry = Pool(config.terminals)
        self.registry.subscribe(self._heard)
        self.tasks: dict[TaskId, Task] = {}  # those that are open
        self._policies: dict[Auto, Policy] = {}

    @cached_property
    def installed(self) -> Installed:
        """Our tools and those of other packages; looked for when first wanted."""
        return with_installed(toolbox())

    @property
    def toolbox(self) -> Toolbox:
        return self.installed.toolbox

    @property
    def policy(self) -> Policy:
        """The judge, at the level of the configuration."""
        return self.policy_for(self.config.auto)

    def policy_for(self, auto: Auto) -> Policy:
        """The judge at a level of trust."""
        auto = level_named(auto) or auto
        if auto not in self._policies:
            from tarmac.terminals.process.confinement import means  # ctypes, which few other ways in need

            settings = settings_for(auto, self.config.policy, sandboxed=self.config.strict_sandbox)
            self._policies[auto] = Policy(
                settings,
                rules=self.config.rules,
                grants=self.grants,
                files=self.files,
                enforcement=Enforcement(means().value),
            )
        return self._policies[auto]

    def open_model(self, spec: str) -> Model:
        """The model of that name, with the keys and addresses of the configuration."""
        return open_model(spec, self.config.models_for(spec))

    # Tasks

    @asynccontextmanager
    async def create_task(
        self,
        text: str | None,
        *,
        images: Sequence[Picture] = (),
        mode: str | None = None,
        model: str | None = None,
        cwd: Path | str | None = None,
        attended: bool = True,
        auto: Auto | None = None,
        limits: Limits | None = None,
        servers: Sequence[ServerDefinition] = (),
    ) -> AsyncIterator[Task]:
        """A new task, open; it begins when it is run. With None for `text`, nothing is said to it yet.

        `servers`: MCP servers that it may use beside those of the configuration.
        """
        if text is not None and not text.strip() and not images:
            raise BadRequest("a task needs words", hint="say what is to be done")
        spec = self._model(model)
        warm(spec)
        unjudged = await _check_parser(attended=attended)
        workspace = check_directory(Path(cwd) if cwd is not None else self.config.workspace)
        modes = await asyncio.to_thread(load_modes, workspace, self.config.user_folder)
        chosen = find_mode(modes, mode or self.config.mode)
        opened = await asyncio.to_thread(self.open_model, spec)
        async with self.store.create(workspace=workspace, mode=chosen.slug) as log:
            past = (await asyncio.to_thread(read_log, log.folder)).events
            state = self._open_state(
                log, past, workspace, opened, modes, attended=attended, auto=auto, limits=limits, servers=servers
            )
            unread = await asyncio.to_thread(read_instructions, workspace, self.config.user_folder, chosen.slug)
            heard = await asyncio.to_thread(self._first_heard, workspace, unread, modes, chosen.slug)
            for trouble in (
                *unjudged,
                *self.config.notes,
                *modes.trouble,
                *unread.trouble,
                *self.installed.trouble,
                *state.context.servers.trouble,
                *heard,
            ):
                log.add(Noted(at=now(), what="notice", text=trouble))
            if text is not None:
                blobs = [await asyncio.to_thread(log.blobs.keep, data, media) for data, media in images]
                said = UserSaid(at=now(), text=text, images=tuple(blobs))
                await log.append(said)
                past = [*past, said]
            state.spec = spec
            async with self._closing(Task(state, past, self.open_model, self._open_child)) as task:
                yield task

    def _first_heard(self, workspace: Path, found: Instructions, modes: Modes, mode: str) -> tuple[str, ...]:
        """Which files of a workspace speak to the model: told when they are new or have changed."""
        replacement, _ = read_replacement(workspace, self.config.user_folder, mode)
        text = first_heard(workspace, found, replacement, modes.all, told=self.store.folder.parent / "told-files")
        return (text,) if text else ()

    @asynccontextmanager
    async def _open_child(self, parent: TaskState, started: SubtaskStarted, limits: Limits) -> AsyncIterator[Task]:
        """The subtask of a task: a new one, or the one that was started before a restart."""
        context = parent.context
        workspace = check_directory(started.workspace or context.workspace)
        modes = await asyncio.to_thread(load_modes, workspace, self.config.user_folder)
        opened = await asyncio.to_thread(self.open_model, parent.spec)
        async with AsyncExitStack() as stack:
            known = (self.store.folder / started.child / LOG).exists()
            log = await stack.enter_async_context(
                self.store.open(started.child)
                if known
                else self.store.create(
                    workspace=workspace,
                    mode=started.mode,
                    root=parent.metadata.root or context.task,
                    parent=context.task,
                    task=started.child,
                )
            )
            past: Sequence[TaskEvent] = (await asyncio.to_thread(read_log, log.folder)).events
            log.past = []
            attended, auto = parent.attended, context.settings.auto
            state = self._open_state(log, past, workspace, opened, modes, attended=attended, auto=auto, limits=limits)
            state.depth, state.spec = parent.depth + 1, parent.spec
            if not any(isinstance(each, UserSaid) for each in past):
                said = UserSaid(at=now(), text=started.text)
                await log.append(said)
                past = [*past, said]
            task = Task(state, past, self.open_model, self._open_child)
            yield await stack.enter_async_context(self._closing(task))

    def _depth(self, parent: TaskId | None) -> int:
        """How many parents a task has."""
        depth = 0
        while parent and depth < 100:
            row = self.store.index.row(parent)
            depth, parent = depth + 1, row.metadata.parent if row else None
        return depth

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
        servers: Sequence[ServerDefinition] = (),
    ) -> AsyncIterator[Task]:
        """A task of before, open: it asks `resume_task`, and goes on when that is answered or it is run.

        One that is completed asks `resume_completed_task`, and goes on only after a yes, or words.
        """
        folder = await asyncio.to_thread(self.store.path, id)
        unjudged = await _check_parser(attended=attended)
        async with self.store.open(TaskId(folder.name)) as log:
            past, log.past = log.past, []
            created = next((each for each in past if isinstance(each, TaskCreated)), None)
            workspace = check_directory(created.workspace if created else self.config.workspace)
            modes = await asyncio.to_thread(load_modes, workspace, self.config.user_folder)
            wanted = find_mode(modes, mode) if mode else None
            asked = [each.model for each in past if isinstance(each, RequestStarted | ModelSwitched)]
            last = asked[-1] if asked else ""
            if last.startswith("scripted/") and self.config.model:  # a log does not say where the script is
                last = self.config.model
            opened = await asyncio.to_thread(self.open_model, self._model(model or last))
            state = self._open_state(
                log, past, workspace, opened, modes, attended=attended, auto=auto, limits=limits, servers=servers
            )
            for trouble in unjudged:
                log.add(Noted(at=now(), what="notice", text=trouble))
            state.spec = self._model(model or last)
            state.depth = await asyncio.to_thread(self._depth, state.metadata.parent)
            async with self._closing(Task(state, past, self.open_model, self._open_child)) as task:
                if wanted:
                    await task.switch_mode(wanted.slug)
                await task.opened_again()
                yield task

    @asynccontextmanager
    async def create_hosted(self, model: Model, *, attended: bool) -> AsyncIterator[TaskState]:
        """A new task that somebody else works on (an agent we host): its log, and all it may use. No model is asked."""
        workspace = check_directory(self.config.workspace)
        modes = await asyncio.to_thread(load_modes, workspace, self.config.user_folder)
        async with self.store.create(workspace=workspace, mode=find_mode(modes, self.config.mode).slug) as log:
            past = (await asyncio.to_thread(read_log, log.folder)).events
            state = self._open_state(log, past, workspace, model, modes, attended=attended, auto=None, limits=None)
            for trouble in self.config.notes:
                log.add(Noted(at=now(), what="notice", text=trouble))
            try:
                yield state
            finally:
                await self.registry.end_task(state.context.task)
                await state.checkpoints.aclose()

    @asynccontextmanager
    async def resume_hosted(self, id: str, model: Model, *, attended: bool) -> AsyncIterator[TaskState]:
        """A task of before that somebody else works on, as `create_hosted`."""
        folder = await asyncio.to_thread(self.store.path, id)
        modes = await asyncio.to_thread(load_modes, self.config.workspace, self.config.user_folder)
        async with self.store.open(TaskId(folder.name)) as log:
            past, log.past = log.past, []
            created = next((each for each in past if isinstance(each, TaskCreated)), None)
            workspace = check_directory(created.workspace if created else self.config.workspace)
            state = self._open_state(log, past, workspace, model, modes, attended=attended, auto=None, limits=None)
            try:
                yield state
            finally:
                await self.registry.end_task(state.context.task)
                await state.checkpoints.aclose()

    def _open_state(
        self,
        log: TaskLog,
        past: Sequence[TaskEvent],
        workspace: Path,
        model: Model,
        modes: Modes,
        *,
        attended: bool,
        auto: Auto | None,
        limits: Limits | None,
        servers: Sequence[ServerDefinition] = (),
    ) -> TaskState:
        """All that a task works with, and what its log says; its views hear of each fact before anybody else."""
        level = level_named(auto or self.config.auto) or self.config.auto
        hub = self.open_hub(workspace, servers)
        context = TaskContext(
            task=TaskId(log.folder.name),
            workspace=workspace,
            log=log,
            registry=self.registry,
            policy=self.policy_for(level),
            files=self.files,
            grants=self.grants,
            toolbox=self.toolbox.available({"servers"} if hub.names else ()),
            servers=hub,
            cache=self._state / "cache",
            modes=modes,
            settings=self._settings(level, limits),
        )
        return TaskState(context, past, model=model, attended=attended)

    def open_hub(self, workspace: Path, more: Sequence[ServerDefinition] = ()) -> Hub:
        """The MCP servers for a workspace. None is started yet."""
        found = with_servers(read_definitions(workspace, self.config.user_folder, self._environ), more)
        return Hub(found, workspace=workspace, state=self._state / "mcp")

    def _settings(self, auto: Auto, limits: Limits | None) -> TaskSettings:
        config, kernel = self.config, os.uname()
        return TaskSettings(
            auto=auto,
            approved=kinds_for(auto, config.approved),
            limits=limits or config.limits,
            approval_timeout=config.approval_timeout,
            tools=config.tools,
            user_folder=config.user_folder,
            instructions=config.instructions,
            language=config.language,
            auto_condense=config.auto_condense,
            auto_condense_percent=config.auto_condense_percent,
            system=SystemFacts(
                os=f"{kernel.sysname} {kernel.release}",
                shell=self.registry.shell().name,
                home=str(Path.home()),
            ),
        )

    @asynccontextmanager
    async def _closing(self, task: Task) -> AsyncIterator[Task]:
        self.tasks[task.id] = task
        try:
            yield task
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

    def _heard(self, event: TerminalEvent) -> None:
        """What terminals tell that a person should know: no shell integration (T21), a failure without a secret."""
        if isinstance(event, NoShellIntegration):
            for task in self.tasks.values():
                task.warn_of_no_integration(event.terminal)
        if isinstance(event, CommandFinished) and event.exit_code and self.config.held_secrets:
            for task in self.tasks.values():
                task.tell_held_secrets(event.terminal, self.config.held_secrets)

    def modes(self) -> Modes:
        """The modes of the workspace."""
        return load_modes(self.config.workspace, self.config.user_folder)

    def switch_level(self, task: Task, level: Auto) -> None:
        """What a task may do without asking, from now on."""
        level = level_named(level) or level
        task.switch_level(self.policy_for(level), self._settings(level, None))

    async def aclose(self) -> None:
        """Leave every task in order, then close the terminals. May be called twice."""
        try:
            closing = (task.aclose() for task in list(self.tasks.values()))
            failed = [each for each in await asyncio.gather(*closing, return_exceptions=True) if each]
            if failed:
                raise failed[0]
        finally:
            await self.registry.aclose()


async def _check_parser(*, attended: bool) -> tuple[str, ...]:
    """A notice when the parser can't run: every command has to be asked about. Without a person that is an error."""
    why = await check_parser()
    if not why:
        return ()
    if not attended:
        raise ParserUnavailable(
            f"no command can be judged: {why}",
            hint="nobody is here to approve each command; `tarmac doctor` tells what is wrong",
        )
    return (f"no command can be judged, so that you are asked about each: {why}",)
