"""The tasks and terminals that this process has open, and the clients that follow them: pages, and other processes.

RunningApp(config, …)                       the page's server: it opens tasks, and joins those of other processes
RunningApp(config, …, joins=False).adopt(app)   a session at the terminal, or an editor's: others join its tasks

All of this belongs to the server, not to a client. A reloaded page or a second client finds it unchanged.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tarmac.app import App, check_workspace, open_app
from tarmac.config import Config, load_config
from tarmac.errors import BadRequest, DirectoryUnavailable, TarmacError, TaskInUse, TaskNotFound, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.paths import check_directory, state_dir
from tarmac.policy.approval import Answer, AnswerKind, Picture
from tarmac.server import shapes
from tarmac.server.joined_task import JoinedTask, open_joined, process_with
from tarmac.server.live_terminals import ClientLike, LiveTerminals
from tarmac.server.open_task import OpenTask, TaskFeed, TaskRunner
from tarmac.server.shapes import Json
from tarmac.server.trials import Trials, can_try
from tarmac.tasks.auto import LEVELS, Auto
from tarmac.tasks.events import AgentHosted, TaskCreated
from tarmac.tasks.store import Listed, TaskStore
from tarmac.tasks.subtasks import remove_left_worktree
from tarmac.tasks.task import Task
from tarmac.tasks.views.metadata import Metadata
from tarmac.terminals.environment import wipe_own_environment
from tarmac.terminals.terminal import Terminal

MOST_LISTED: Final = 500
MOST_OPEN: Final = 100
MOST_JOINED: Final = 20
SOON: Final = 0.03  # seconds in which changes of a row are collected and sent together
LOOK_EVERY: Final = 3.0  # seconds between looks at what other processes do to tasks


class RunningApp:
    """The state behind the clients. `aclose` it."""

    def __init__(
        self, config: Config, environ: Mapping[str, str], overrides: Mapping[str, object], *, joins: bool = True
    ) -> None:
        """`joins`: list the tasks of other processes, too, and join those that are at work."""
        self.config = config
        self.environ = environ
        self._overrides = overrides
        self._joins = joins
        self.store = TaskStore(state_dir(environ) / "tasks")
        self.open: dict[TaskId, OpenTask] = {}
        self.open_changed: Callable[[], object] = bool  # called when the set of open tasks has changed
        self.current: TaskId | None = None  # the one that was begun, resumed or shown last
        self.terminals = LiveTerminals(lambda: self._apps.values(), self._tell, self._terminal_changed)
        self.known_as: dict[str, str] = {}  # by the name that another process gave it: a client of ours
        self._feeds: dict[TaskId, TaskFeed] = {}
        self._apps: dict[Path, App] = {}
        self._owns = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._resuming = asyncio.Lock()
        self._clients: set[ClientLike] = set()
        self._task_rows: dict[TaskId, Json] = {}
        self._listed: dict[TaskId, Listed] = {}
        self._unjoinable: dict[TaskId, int] = {}  # and the process that lets nobody join
        self._dirty_tasks: set[TaskId] = set()
        self._dirty_terminals: set[TerminalId] = set()
        self._flushing: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self.trials = Trials()
        self._can_try: bool | None = None  # None: not looked yet

    async def aclose(self) -> None:
        """Leave every task in order, close the terminals."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._flushing is not None:
            self._flushing.cancel()
        for app in self._apps.values():
            app.tasks_changed = bool
        for each in self._later:
            each.cancel()
        await asyncio.gather(*self._later, return_exceptions=True)
        await self.trials.aclose()
        await self.terminals.aclose()
        await asyncio.gather(*(each.stop() for each in self._feeds.values()))
        closing, self.open = list(self.open.values()), {}
        await asyncio.gather(*(each.close() for each in closing), return_exceptions=True)
        await self._owns.aclose()

    # Clients

    def join(self, client: ClientLike) -> None:
        """A client is connected."""
        self._clients.add(client)
        if self._can_try is None:
            self._can_try = False
            self._start(self._look_whether_to_try())
        if self._looking is None and self._joins:
            self._looking = asyncio.create_task(self._look_at_tasks())

    async def _look_whether_to_try(self) -> None:
        self._can_try = await asyncio.to_thread(can_try)
        for id in self.open:
            self._task_changed(id)

    def leave(self, client: ClientLike) -> None:
        """A client is gone."""
        self._clients.discard(client)
        self.terminals.left(client)

    def _tell(self, frame: Json) -> None:
        for client in list(self._clients):
            client.tell(frame)

    # Workspaces

    async def app(self, workspace: Path) -> App:
        """One for each workspace: its configuration may tighten what the user's allows."""
        async with self._opening:
            if workspace not in self._apps:
                config = await asyncio.to_thread(load_config, workspace, self.environ, self._overrides)
                wipe_own_environment(config.terminals)
                self.adopt(await self._owns.enter_async_context(open_app(config, environ=self.environ)))
            return self._apps[workspace]

    def adopt(self, app: App) -> None:
        """Share the tasks and terminals of an app, present and future."""
        self._apps[app.config.workspace] = app
        self._owns.callback(app.registry.subscribe(self.terminals.heard))
        app.tasks_changed = lambda: self._tasks_changed(app)
        self._tasks_changed(app)

    def _tasks_changed(self, app: App) -> None:
        for task in app.tasks.values():
            if task.id not in self.open:
                self._add(self._listened(OpenTask(task, app, lambda: None)))
        for id, opened in list(self.open.items()):
            if opened.app is app and id not in app.tasks and opened.runner is None:
                self._remove(id)

    def _add(self, opened: OpenTask) -> None:
        task = opened.task
        self.open[task.id] = opened
        if task.id in self._feeds:
            self._start(self._feeds[task.id].start(task))
        self._task_changed(task.id)

    def _remove(self, id: TaskId) -> None:
        """The front end that had the task closed it, or its process is gone."""
        opened = self.open.pop(id)
        opened.leave()
        if isinstance(opened.task, JoinedTask):
            for row in filter(opened.task.had, opened.task.terminals.values()):
                opened.task.terminal_gone(row["id"])

        async def after() -> None:
            if isinstance(opened.task, JoinedTask):
                await opened.task.aclose()
            if id in self._feeds:
                await self._feeds[id].start(None)
            await self._closed_row(id)

        self._start(after())

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def workspace(self, cwd: str | None) -> Path:
        """The folder that a client names; BadRequest for one that an agent may not have."""
        if cwd is None:
            return self.config.workspace
        try:
            return check_workspace(check_directory(Path(cwd).expanduser()), self.environ)
        except DirectoryUnavailable as error:
            raise BadRequest(error.what, hint=error.hint) from None

    # Tasks

    async def create(
        self,
        text: str,
        pictures: Iterable[Picture],
        *,
        mode: str | None,
        model: str | None,
        level: Auto | None,
        workspace: Path,
    ) -> OpenTask:
        """A new task; it begins at once."""
        self._check_room()
        app = await self.app(workspace)
        async with AsyncExitStack() as owns:
            made = app.create_task(text, images=tuple(pictures), mode=mode, model=model, cwd=workspace, auto=level)
            opened = self._runs_here(await owns.enter_async_context(made), owns.pop_all())
        await opened.wake()
        return opened

    async def resume(self, id: str) -> OpenTask:
        """Open an earlier task. If it is open here or in another process, return that one."""
        task = TaskId((await asyncio.to_thread(self.store.path, id)).name)
        async with self._resuming:
            if task in self.open:
                return self.open[task]
            self._check_room()
            past = (await self.store.read(task)).events
            created = next((each for each in past if isinstance(each, TaskCreated)), None)
            if hosted := next((each for each in past if isinstance(each, AgentHosted)), None):
                hint = f"tarmac host --resume {task} -- the agent's command"
                raise BadRequest(f"the task {task} belongs to another agent: {hosted.name}", hint=hint)
            if created and created.place:
                raise BadRequest(f"the workspace of this task is at {created.place}", hint=f"tarmac resume {task}")
            app = await self.app(check_directory(created.workspace if created else self.config.workspace))
            async with AsyncExitStack() as owns:
                try:
                    opened = await owns.enter_async_context(app.resume_task(task))
                except TaskInUse:
                    if not self._joins:
                        raise
                    return await self._join(task)
                return self._runs_here(opened, owns.pop_all())

    def _check_room(self) -> None:
        if len(self.open) >= MOST_OPEN:
            raise BadRequest(f"{MOST_OPEN} tasks are open", hint="close some first")

    def _runs_here(self, task: Task, owns: AsyncExitStack) -> OpenTask:
        """A task that an app of ours has just opened: we run it."""
        opened = self.open[task.id]
        opened.runner = TaskRunner(task, owns, lambda: self._task_changed(task.id))
        self._task_changed(task.id)
        self.show(task.id)
        self.open_changed()
        return opened

    async def _join(self, id: TaskId) -> OpenTask:
        """A task that another process has open."""
        joined = await open_joined(self.store, id, client="web")
        opened = self._listened(OpenTask(joined, None, lambda: None))
        joined.changed = lambda: self._joined_changed(joined)
        joined.terminal_changed = lambda row: self._tell({"type": "terminal", "terminal": self._joined_row(id, row)})
        joined.terminal_gone = lambda theirs: self._tell({"type": "terminal_gone", "terminal": joined_id(theirs, id)})
        self._add(opened)
        for row in filter(joined.had, joined.terminals.values()):
            joined.terminal_changed(row)
        return opened

    # Terminals of joined tasks

    def _joined_row(self, task: TaskId, row: Json) -> Json:
        """A terminal of another process, as our clients know it."""
        id = joined_id(row["id"], task)
        holder = self.known_as.get(row["holder"] or "", row["holder"])
        return {**row, "id": id, "number": self.terminals.number(TerminalId(id)), "holder": holder}

    def terminal_rows(self) -> list[Json]:
        """All terminals, also those of joined tasks."""
        joined = [each.task for each in self.open.values() if isinstance(each.task, JoinedTask)]
        theirs = [self._joined_row(task.id, row) for task in joined for row in task.terminals.values() if task.had(row)]
        return [*self.terminals.rows(), *theirs]

    def joined_terminal(self, id: str) -> tuple[JoinedTask, str] | None:
        """The task of another process that has the terminal, and its id there; None: it is none of theirs."""
        theirs, at, task = id.partition("@")
        opened = self.open.get(TaskId(task)) if at else None
        return (opened.task, theirs) if opened is not None and isinstance(opened.task, JoinedTask) else None

    def _joined_changed(self, joined: JoinedTask) -> None:
        if joined.gone and joined.id in self.open:
            self._remove(joined.id)
        else:
            self._task_changed(joined.id)

    def opened(self, id: str) -> OpenTask:
        """The task of that id that is open here. Raises BadRequest for others."""
        found = self.open.get(TaskId(id))
        if found is None:
            raise BadRequest(f"the task {id} is not open here", hint="resume it first")
        return found

    def show(self, id: TaskId) -> None:
        """Make it the current one, for every client."""
        if self.current != id:
            self.current = id
            self._tell(self.current_frame())

    def current_frame(self) -> Json:
        """The current task, and the stack of subtasks on top of it."""
        return {"type": "current", "task": self.current, "stack": self.stack(self.current) if self.current else []}

    def stack(self, id: TaskId) -> list[TaskId]:
        """The task, the subtask that it waits for, the subtask of that one …"""
        found = [id]
        while (above := self.open.get(found[-1])) is not None:
            children = [each for each in above.task.metadata.children if each in self.open and each not in found]
            if not children:
                break
            found.append(children[-1])
        return found

    async def shut(self, id: str) -> None:
        """Close it, so that another front end may open it. A result that is on the screen is accepted."""
        opened = self.opened(id)
        if isinstance(opened.task, JoinedTask):
            await opened.task.shut()
            return
        if opened.runner is None:
            what = "another task works with it" if opened.task.metadata.parent else "a session has it open"
            raise BadRequest(f"task {id} can't be closed from here: {what}", hint="`abort` ends it")
        for asked in opened.task.questions:
            if asked.ask == "completion_result":
                await opened.task.answer(asked.question, Answer(AnswerKind.YES, by="web"))
        del self.open[opened.task.id]
        await opened.close()
        if opened.task.id in self._feeds:
            await self._feeds[opened.task.id].start(None)
        await self._closed_row(opened.task.id)
        self.open_changed()

    async def delete(self, id: str) -> None:
        """Remove it and its subtasks for good, and end what runs in their terminals."""
        from tarmac.terminals.daemon.takeover import end_terminals_of

        task = TaskId((await asyncio.to_thread(self.store.path, id)).name)
        opened = self.open.get(task)
        if opened is not None and isinstance(opened.task, JoinedTask):
            await opened.task.delete()
            return
        if opened is not None and opened.runner is None:
            raise BadRequest(f"task {id} can't be deleted while a session has it open", hint="close it there first")
        try:
            if opened is not None:
                await opened.task.abort("it is deleted")
                await opened.close()
            for child in await self.store.below(task):
                await self.delete(child)
            for app in self._apps.values():
                await app.registry.end_task(task)
            await end_terminals_of(task)
            if (feed := self._feeds.pop(task, None)) is not None:
                await feed.stop()
            meta = next((each.metadata for each in await self.store.listing() if each.task == task), Metadata())
            await self.store.delete(task)
            await remove_left_worktree(task, meta)
        finally:
            self.open.pop(task, None)  # not before: who has joined it hears that it is deleted, not that it is closed
        self._gone(task)
        self.open_changed()

    async def switch_level(self, opened: OpenTask, level: Auto) -> None:
        """Change what the task may do without asking."""
        if level not in LEVELS:
            raise BadRequest(f"there is no level `{level}`", hint=", ".join(LEVELS))
        if isinstance(opened.task, JoinedTask):
            await opened.task.switch_level(level)
        elif opened.app is not None:
            opened.app.switch_level(opened.task, level)
        self._task_changed(opened.task.id)

    async def feed(self, id: str) -> TaskFeed:
        """The feed of a task. Follow it before the next await."""
        folder = await asyncio.to_thread(self.store.path, id)
        task = TaskId(folder.name)
        feed = self._feeds.get(task)
        if feed is None:
            self._feeds[task] = feed = TaskFeed(folder)
        with feed.joining():
            if not feed.loaded:
                opened = self.open.get(task)
                await feed.start(opened.task if opened else None)
        return feed

    def followed(self, task: TaskId) -> TaskFeed | None:
        """Its feed, if anybody follows it."""
        feed = self._feeds.get(task)
        return feed if feed is not None and feed.loaded else None

    async def unfollowed(self, id: str) -> None:
        """A client stopped following. A feed that nobody follows is dropped."""
        feed = self._feeds.get(TaskId(id))
        if feed is not None and not feed.followed:
            del self._feeds[TaskId(id)]
            await feed.stop()

    # The list of tasks

    async def task_rows(self) -> list[Json]:
        """All of them, newest first; without `joins` those that are open here."""
        if not self._joins:
            return [self.open_row(each) for each in self.open.values()]
        await self._list()
        rows = sorted(self._task_rows.values(), key=lambda row: -row["at"])
        return rows[:MOST_LISTED]

    async def _look_at_tasks(self) -> None:
        """Look now and then at what other processes do to tasks."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if self._clients:
                try:
                    await self._list()
                except TarmacError:  # a disk error: the next look may succeed
                    continue

    async def _list(self) -> None:
        listed = {each.task: each for each in await self.store.listing(limit=MOST_LISTED)}
        self._listed = listed
        others = await asyncio.to_thread(self._elsewhere, [id for id in listed if id not in self.open])
        await self._join_others(others)
        for id, each in listed.items():
            self._put_row(id, self._row(each, elsewhere=id in others))
        for id in [id for id in self._task_rows if id not in listed and id not in self.open]:
            self._gone(id)

    async def _join_others(self, others: Mapping[TaskId, int]) -> None:
        """Join the running tasks of other processes, so that their questions can be answered here."""
        room = MOST_JOINED - sum(isinstance(each.task, JoinedTask) for each in self.open.values())
        wanted = [id for id, pid in others.items() if self._unjoinable.get(id) != pid and id not in self.open]
        for id in wanted[: max(room, 0)]:
            try:
                async with self._resuming:
                    if id not in self.open:
                        await self._join(id)
            except (TarmacError, OSError):
                self._unjoinable[id] = others[id]

    async def _closed_row(self, id: TaskId) -> None:
        """A task is no longer open here."""
        await self.store.refresh(id)
        if self._joins:
            await self._list()
        else:
            self._task_rows.setdefault(id, {})
            self._gone(id)

    def _elsewhere(self, ids: Iterable[TaskId]) -> dict[TaskId, int]:
        """The tasks that another process says it works on, and its pid."""
        found = {}
        for id in ids:
            pid = process_with(self.store, id)
            if pid and pid != os.getpid() and self._listed[id].metadata.status in ("running", "waiting"):
                found[id] = pid
        return found

    def _row(self, listed: Listed, *, elsewhere: bool) -> Json:
        opened = self.open.get(listed.task)
        if opened is None:
            return shapes.task_row(listed.task, listed.metadata, elsewhere=elsewhere, trouble=listed.trouble)
        return self.open_row(opened)

    def open_row(self, opened: OpenTask) -> Json:
        """An open task in the list, as it is now."""
        task, ended = opened.task, opened.runner.ended if opened.runner else None
        return shapes.task_row(
            task.id,
            task.metadata,
            open=True,
            running=task.running,
            elsewhere=isinstance(task, JoinedTask),
            level=task.level,
            questions=() if task.metadata.parent in self.open else task.questions,  # those are in its parent's row
            queue=task.queue,
            trouble=ended.told if ended is not None and ended.why == "failed" else "",
            can_try=bool(self._can_try),
        )

    def _listened(self, opened: OpenTask) -> OpenTask:
        """Hear of what it does, until it is left."""
        task = opened.task

        def heard(seq: int | None, thing: object) -> None:
            opened.heard(thing)
            if seq is not None:
                self._task_changed(task.id)

        leave = task.subscribe(heard)
        rested = None if isinstance(task, JoinedTask) else task.when_at_rest(lambda: self._task_changed(task.id))
        opened.leave = lambda: (leave(), rested and rested())
        return opened

    def _put_row(self, id: TaskId, row: Json) -> None:
        if self._task_rows.get(id) != row:
            self._task_rows[id] = row
            self._tell({"type": "task", "task": row})

    def _gone(self, id: TaskId) -> None:
        if self._task_rows.pop(id, None) is not None:
            self._tell({"type": "task_gone", "task": id})

    def _task_changed(self, id: TaskId) -> None:
        self._dirty_tasks.add(id)
        self._flush_soon()

    def _terminal_changed(self, id: TerminalId) -> None:
        self._dirty_terminals.add(id)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(SOON, self.flush)

    def flush(self) -> None:
        """Send everything that has changed, now."""
        if self._flushing is not None:
            self._flushing.cancel()
        self._flushing = None
        tasks, self._dirty_tasks = self._dirty_tasks, set()
        terminals, self._dirty_terminals = self._dirty_terminals, set()
        for task in tasks:
            if (opened := self.open.get(task)) is not None:
                self._put_row(task, self.open_row(opened))
        for id in terminals:
            try:
                self._tell({"type": "terminal", "terminal": self.terminals.row(self.terminals.get(id))})
            except TerminalNotFound:
                continue

    async def open_terminal(self, *, cwd: str | None, task: str | None) -> Terminal:
        """Open a terminal for the person; with `task`, in the workspace of that task."""
        app = self.opened(task).app if task else await self.app(self.config.workspace)
        if app is None:
            raise BadRequest(f"task {task} is open in another process", hint="open the terminal there")
        where = check_directory(Path(cwd).expanduser()) if cwd else app.config.workspace
        terminal = await app.registry.open(cwd=where, task=task, origin="person")
        self._terminal_changed(terminal.id)
        return terminal

    # After a restart

    def unfinished(self) -> list[TaskId]:
        """The open tasks that a next run of the server should open again."""
        return [id for id, each in self.open.items() if each.runner and each.task.metadata.outcome is None]

    def say_trouble(self, what: str) -> None:
        """Tell every client."""
        self._tell({"type": "trouble", "what": what, "hint": ""})

    async def reopen(self, ids: Iterable[str]) -> list[str]:
        """Open the tasks that an earlier run of the server had open; why some are not."""
        trouble = []
        for id in ids:
            try:
                await self.resume(id)
            except (TaskNotFound, TaskInUse):
                continue
            except TarmacError as error:
                trouble.append(f"task {id} was not opened again: {error.what}")
        return trouble


def joined_id(terminal: str, task: TaskId) -> str:
    """PURE: the id of a terminal of another process. Each process counts its own from 1."""
    return f"{terminal}@{task}"
