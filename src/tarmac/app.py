"""The one place that wires things: a configuration becomes terminals, a policy, a store, and tasks that use them.

async with open_app(config) as app:
    async with app.create_task("make the tests pass") as task:
        ended = await task.run_until_idle()
"""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.config import Config
from tarmac.errors import BadRequest, ParserUnavailable, SandboxUnavailable
from tarmac.events import TaskId
from tarmac.models.factory import open_model, warm
from tarmac.models.image_model import ImageModel
from tarmac.models.provider import Model
from tarmac.paths import check_directory, config_dir, private_dir, shown, state_dir
from tarmac.policy import Enforcement, Policy
from tarmac.policy.approval import Picture
from tarmac.policy.files import Files, look
from tarmac.policy.grants import GrantFile
from tarmac.policy.parse.parser import check_parser
from tarmac.prompts.instructions import Instructions, first_heard, read_instructions
from tarmac.prompts.modes import Modes, load_modes
from tarmac.prompts.system import SystemFacts
from tarmac.tasks.auto import Auto, kinds_for, level_named, settings_for
from tarmac.tasks.context import NOWHERE, TaskContext, TaskSettings, find_mode, now
from tarmac.tasks.events import ModelSwitched, Noted, RequestStarted, SubtaskStarted, TaskCreated, TaskEvent, UserSaid
from tarmac.tasks.limits import Limits
from tarmac.tasks.log import TaskLog
from tarmac.tasks.log.reader import LOG, read_log
from tarmac.tasks.recordings import Recordings
from tarmac.tasks.state import TaskState
from tarmac.tasks.store import TaskStore
from tarmac.tasks.task import Task
from tarmac.terminals.events import CommandFinished, NoShellIntegration, TerminalEvent
from tarmac.terminals.pool import Pool
from tarmac.tools.chromium import find_chromium
from tarmac.tools.servers import Hub, ServerDefinition, read_definitions
from tarmac.tools.servers.hub import with_servers
from tarmac.tools.tool import Need
from tarmac.tools.toolbox import Installed, Toolbox, toolbox, with_installed

if TYPE_CHECKING:
    from tarmac.fleet.open_address import WorkingPlace

# Tools that look at the files of this machine, and have no way to another place yet
HERE_ONLY: Final = ("codebase_search", "browser_action")
NOT_THERE: Final = (
    "the task works at {}. It can't be undone there: there are no checkpoints. Also not there: "
    "codebase_search, browser_action, trying a command on a copy, the sandbox, rules and modes of the workspace. "
    "MCP servers run here"
)


def _grants_of(place: str) -> str:
    """The file of grants. What was allowed at one place says nothing about another."""
    return f"grants-{sha256(place.encode()).hexdigest()[:16]}.json" if place else "grants.json"


@asynccontextmanager
async def open_app(
    config: Config, *, environ: Mapping[str, str] | None = None, place: "WorkingPlace | None" = None
) -> AsyncIterator["App"]:
    """All of Tarmac; on the way out its tasks are left in order and its terminals closed.

    With a `place`, all of its tasks work there.
    """
    app = App(config, os.environ if environ is None else environ, place)
    try:
        yield app
    finally:
        await app.aclose()


class App:
    """What the front ends share. Get one from `open_app`."""

    def __init__(self, config: Config, environ: Mapping[str, str], place: "WorkingPlace | None" = None) -> None:
        state = state_dir(environ)
        self._state, self._environ = state, environ
        self.place = place
        if place is not None and config.strict_sandbox:
            raise SandboxUnavailable(
                f"commands at {place.name} can't be kept in a sandbox from here", hint="turn the sandbox off"
            )
        self.config = config
        self.store = TaskStore(state / "tasks")
        self.grants = GrantFile(state / _grants_of(place.name if place else ""))
        self.files = Files(own=[state, config.user_folder])
        if place is not None:
            self.files = Files(own=place.own, ignore_case=False, system=place.files)
        self.registry = Pool(config.terminals, machine=place.machine if place else None)
        self._unsubscribe = self.registry.subscribe(self._heard)
        self._recordings = Recordings(self.store.folder, self.registry.get)
        self.registry.subscribe(self._recordings.heard)
        self.tasks: dict[TaskId, Task] = {}  # those that are open
        self.tasks_changed: Callable[[], object] = bool  # told when one is opened or closed
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
                environ=self._environ if self.place is None else {"HOME": str(self.place.home)},
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
            raise BadRequest("a task needs a text", hint="say what to do")
        spec = self._model(model)
        warm(spec)
        unjudged = await _check_parser(attended=attended)
        workspace = await self._workspace(Path(cwd) if cwd is not None else self.config.workspace)
        project = NOWHERE if self.place else workspace
        modes = await asyncio.to_thread(load_modes, project, self.config.user_folder)
        chosen = find_mode(modes, mode or self.config.mode)
        opened = await asyncio.to_thread(self.open_model, spec)
        place = self.place.name if self.place else ""
        async with self.store.create(workspace=workspace, mode=chosen.slug, place=place) as log:
            past = (await asyncio.to_thread(read_log, log.folder)).events
            state = self._open_state(
                log, past, workspace, opened, modes, attended=attended, auto=auto, limits=limits, servers=servers
            )
            unread = await asyncio.to_thread(read_instructions, project, self.config.user_folder, chosen.slug)
            heard = await asyncio.to_thread(self._first_heard, project, unread, modes)
            for trouble in (
                *unjudged,
                *([NOT_THERE.format(place)] if place else []),
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
            async with self._closing(self._task(state, past)) as task:
                yield task

    async def _workspace(self, path: Path) -> Path:
        """The folder of a task, if it can be entered: here, or at the place."""
        return check_directory(path) if self.place is None else await self.place.machine.directory(path)

    async def _workspace_of(self, created: TaskCreated | None) -> Path:
        """The folder of a task of before. BadRequest if it is at another place than this app."""
        here, there = self.place.name if self.place else "", created.place if created else ""
        if here != there:
            where = f"at {there}" if there else "on this machine"
            hint = f"tarmac resume --on {there}" if there else "resume it without --on"
            raise BadRequest(f"the workspace of this task is {where}", hint=hint)
        return await self._workspace(created.workspace if created else self.config.workspace)

    def _task(self, state: TaskState, past: Sequence[TaskEvent]) -> Task:
        """An open task. It does not keep the app alive: who keeps a task after its end keeps no terminals with it."""
        this = weakref.ref(self)

        def app() -> App:
            found = this()
            if found is None:
                raise BadRequest(f"task {state.context.task} is closed")
            return found

        return Task(
            state,
            past,
            lambda spec: app().open_model(spec),
            lambda parent, started, limits: app()._open_child(parent, started, limits),
        )

    def _first_heard(self, workspace: Path, found: Instructions, modes: Modes) -> tuple[str, ...]:
        """Which files of a workspace speak to the model: told when they are new or have changed."""
        added = [each for each in modes.all if each.slug not in modes.replaced]  # those are asked about
        text = first_heard(workspace, found, added, told=self.store.folder.parent / "told-files")
        return (text,) if text else ()

    @asynccontextmanager
    async def _open_child(self, parent: TaskState, started: SubtaskStarted, limits: Limits) -> AsyncIterator[Task]:
        """The subtask of a task: a new one, or the one that was started before a restart."""
        context = parent.context
        workspace = await self._workspace(started.workspace or context.workspace)
        modes = await asyncio.to_thread(load_modes, NOWHERE if self.place else workspace, self.config.user_folder)
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
                    place=context.place,
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
            task = self._task(state, past)
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
            workspace = await self._workspace_of(created)
            modes = await asyncio.to_thread(load_modes, NOWHERE if self.place else workspace, self.config.user_folder)
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
            async with self._closing(self._task(state, past)) as task:
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
            workspace = await self._workspace_of(created)
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
        private_dir(self._state)  # whoever owns it could put grants and logs there
        level = level_named(auto or self.config.auto) or self.config.auto
        hub = self.open_hub(workspace if self.place is None else self.config.user_folder, servers)
        tools = self.toolbox.available(self._at_hand(hub))
        if self.place is not None:
            tools = tools.without(*HERE_ONLY)
        context = TaskContext(
            task=TaskId(log.folder.name),
            workspace=workspace,
            log=log,
            registry=self.registry,
            policy=self.policy_for(level),
            files=self.files,
            grants=self.grants,
            toolbox=tools,
            servers=hub,
            image_model=self._image_model(),
            cache=self._state / "cache",
            modes=modes,
            settings=self._settings(level, limits),
            place=self.place.name if self.place else "",
            home=self.place.home if self.place else None,
        )
        return TaskState(context, past, model=model, attended=attended)

    def _at_hand(self, hub: Hub) -> set[Need]:
        """What some tools need, and this machine and the configuration have."""
        found: dict[Need, object] = {
            "servers": hub.names,
            "browser": self.config.tools.browser and find_chromium(),
            "image model": self.config.image_model,
        }
        return {need for need, has in found.items() if has}

    def _image_model(self) -> ImageModel | None:
        spec = self.config.image_model
        return ImageModel(spec, self.config.models_for(spec)) if spec else None

    def open_hub(self, workspace: Path, more: Sequence[ServerDefinition] = ()) -> Hub:
        """The MCP servers for a workspace. None is started yet."""
        found = with_servers(read_definitions(workspace, self.config.user_folder, self._environ), more)
        return Hub(found, workspace=workspace, state=self._state / "mcp")

    def _settings(self, auto: Auto, limits: Limits | None) -> TaskSettings:
        config, kernel, place = self.config, os.uname(), self.place
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
                os=f"{kernel.sysname} {kernel.release}" if place is None else f"{place.system} at {place.name}",
                shell=self.registry.shell().name,
                home=str(Path.home() if place is None else place.home),
            ),
        )

    @asynccontextmanager
    async def _closing(self, task: Task) -> AsyncIterator[Task]:
        self.tasks[task.id] = task
        self.tasks_changed()
        try:
            yield task
        finally:
            self.tasks.pop(task.id, None)
            self.tasks_changed()
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
        """Messages of terminals for the person: no shell integration, a failure without a secret."""
        if isinstance(event, NoShellIntegration):
            for task in self.tasks.values():
                task.warn_of_no_integration(event.terminal)
        if isinstance(event, CommandFinished) and event.exit_code and self.config.held_secrets:
            for task in self.tasks.values():
                task.tell_held_secrets(event.terminal, self.config.held_secrets)

    def modes(self) -> Modes:
        """The modes of the workspace."""
        return load_modes(self.project, self.config.user_folder)

    @property
    def project(self) -> Path:
        """Where rules, modes and commands of the workspace are read; nowhere if it is at another place."""
        return NOWHERE if self.place else self.config.workspace

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
            self._recordings.close()
            self._unsubscribe()


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


PROJECT = "choose the folder of a project"


def check_workspace(folder: Path, environ: Mapping[str, str]) -> Path:
    """The folder, made absolute. BadRequest if an agent may not have it as a workspace.

    Files of the workspace may be read and changed with fewer questions, so it can't contain the home directory, and
    it can't be a folder with credentials or with Tarmac's own files.
    """
    folder = check_directory(folder)
    real = Path(os.path.realpath(folder))
    if real == Path(real.anchor):
        raise BadRequest("the whole machine can't be the workspace", hint=PROJECT)
    home = environ.get("HOME", "")
    if home.startswith("/") and Path(os.path.realpath(home)).is_relative_to(real):
        raise BadRequest(f"{shown(folder)} contains your home directory, so it can't be the workspace", hint=PROJECT)
    for own in (state_dir(environ), config_dir(environ)):
        if real.is_relative_to(os.path.realpath(own)):
            raise BadRequest(f"{shown(folder)} belongs to Tarmac, so it can't be the workspace", hint=PROJECT)
    if look(real, cwd=real.parent, workspace=Path("/nonexistent")).credential:
        raise BadRequest(f"{shown(folder)} may contain credentials, so it can't be the workspace", hint=PROJECT)
    return folder
