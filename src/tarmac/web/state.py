"""What all pages share: the workspaces, the open tasks and their feeds, the terminals, and who has which keyboard.

Everything here is the server's: a page that is reloaded, or a second one, finds it as it is.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tarmac.app import App, open_app
from tarmac.config import Config, load_config
from tarmac.config.workspace import check_workspace
from tarmac.errors import BadRequest, DirectoryUnavailable, TarmacError, TaskInUse, TaskNotFound, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.paths import check_directory, state_dir
from tarmac.policy.approval import Answer, AnswerKind, Picture
from tarmac.tasks.auto import Auto
from tarmac.tasks.events import AgentHosted, TaskCreated
from tarmac.tasks.log.lock import is_alive, writer_of
from tarmac.tasks.store import Listed, TaskStore
from tarmac.tasks.task import Task
from tarmac.terminals import events
from tarmac.terminals.environment import wipe_own_environment
from tarmac.terminals.terminal import Terminal
from tarmac.web import shapes
from tarmac.web.feed import TaskFeed
from tarmac.web.open_task import OpenTask
from tarmac.web.shapes import Json

MOST_LISTED: Final = 500
MOST_OPEN: Final = 100
SOON: Final = 0.03  # seconds in which changes of a row are told together
LOOK_EVERY: Final = 3.0  # seconds between looks at what other processes do to tasks


class PageLike(Protocol):
    """A connected page, as the state needs it."""

    id: str

    def tell(self, frame: Json) -> None: ...


@dataclass(slots=True)
class Hold:
    """Who has the keyboard of a terminal."""

    page: PageLike | None = None
    epoch: int = 0


class WebState:
    """The state behind the pages. `open` it, `aclose` it."""

    def __init__(self, config: Config, environ: Mapping[str, str], overrides: Mapping[str, object]) -> None:
        self.config = config
        self.environ = environ
        self._overrides = overrides
        self.store = TaskStore(state_dir(environ) / "tasks")
        self.open: dict[TaskId, OpenTask] = {}
        self.open_changed: Callable[[], object] = bool  # the set of open tasks is another
        self._feeds: dict[TaskId, TaskFeed] = {}
        self._apps: dict[Path, App] = {}
        self._owns = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._resuming = asyncio.Lock()
        self._pages: set[PageLike] = set()
        self._task_rows: dict[TaskId, Json] = {}
        self._listed: dict[TaskId, Listed] = {}
        self._dirty_tasks: set[TaskId] = set()
        self._dirty_terminals: set[TerminalId] = set()
        self._flushing: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._numbers: dict[TerminalId, int] = {}
        self._holds: dict[TerminalId, Hold] = {}
        self._awaits: dict[TerminalId, events.AwaitingInput] = {}
        self._last_tasks: dict[TerminalId, TaskId] = {}  # whose each is, or was before it was released

    async def aclose(self) -> None:
        """Leave every task in order, close the terminals."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._flushing is not None:
            self._flushing.cancel()
        await asyncio.gather(*(each.stop() for each in self._feeds.values()))
        closing, self.open = list(self.open.values()), {}
        await asyncio.gather(*(each.close() for each in closing), return_exceptions=True)
        await self._owns.aclose()

    # Pages

    def join(self, page: PageLike) -> None:
        """A page is connected."""
        self._pages.add(page)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_at_tasks())

    def leave(self, page: PageLike) -> None:
        """A page is gone, and with it its hold of keyboards."""
        self._pages.discard(page)
        for id, hold in self._holds.items():
            if hold.page is page:
                hold.page = None
                self._terminal_changed(id)

    def _tell(self, frame: Json) -> None:
        for page in list(self._pages):
            page.tell(frame)

    # Workspaces

    async def app(self, workspace: Path) -> App:
        """One for each workspace: its configuration may tighten what the user's allows."""
        async with self._opening:
            if workspace not in self._apps:
                config = await asyncio.to_thread(load_config, workspace, self.environ, self._overrides)
                wipe_own_environment(config.terminals)
                app = await self._owns.enter_async_context(open_app(config, environ=self.environ))
                app.registry.subscribe(self._terminal_event)
                self._apps[workspace] = app
            return self._apps[workspace]

    def workspace(self, cwd: str | None) -> Path:
        """The folder that a page names; BadRequest for one that an agent may not have."""
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
            task = await owns.enter_async_context(made)
            opened = await self._opened(app, task, owns.pop_all(), level)
        opened.go()
        return opened

    async def resume(self, id: str) -> OpenTask:
        """A task of before, open; the one that is open already."""
        task = TaskId((await asyncio.to_thread(self.store.path, id)).name)
        async with self._resuming:
            if task in self.open:
                return self.open[task]
            self._check_room()
            past = (await self.store.read(task)).events
            created = next((each for each in past if isinstance(each, TaskCreated)), None)
            if hosted := next((each for each in past if isinstance(each, AgentHosted)), None):
                hint = f"tarmac host --resume {task} -- the agent's command"
                raise BadRequest(f"the task {task} is that of another agent: {hosted.name}", hint=hint)
            app = await self.app(check_directory(created.workspace if created else self.config.workspace))
            async with AsyncExitStack() as owns:
                opened = await owns.enter_async_context(app.resume_task(task))
                return await self._opened(app, opened, owns.pop_all(), None)

    def _check_room(self) -> None:
        if len(self.open) >= MOST_OPEN:
            raise BadRequest(f"{MOST_OPEN} tasks are open", hint="close some first")

    async def _opened(self, app: App, task: Task, owns: AsyncExitStack, level: Auto | None) -> OpenTask:
        opened = OpenTask(app, task, owns, lambda: self._task_changed(task.id))
        opened.level = level or opened.level
        self.open[task.id] = opened
        owns.callback(task.subscribe(lambda seq, _: self._task_changed(task.id) if seq is not None else None))
        if task.id in self._feeds:
            await self._feeds[task.id].start(task)
        self._task_changed(task.id)
        self.open_changed()
        return opened

    def opened(self, id: str) -> OpenTask:
        """One that is open here; BadRequest for others."""
        found = self.open.get(TaskId(id))
        if found is None:
            raise BadRequest(f"the task {id} is not open here", hint="resume it first")
        return found

    async def shut(self, id: str) -> None:
        """Close it here, so that another door may open it. A result that is on the page is accepted."""
        opened = self.opened(id)
        for asked in opened.task.questions:
            if asked.ask == "completion_result":
                await opened.task.answer(asked.question, Answer(AnswerKind.YES, by="web"))
        del self.open[opened.task.id]
        await opened.close()
        if opened.task.id in self._feeds:
            await self._feeds[opened.task.id].start(None)
        await self._refresh([opened.task.id])
        self.open_changed()

    async def delete(self, id: str) -> None:
        """Remove it for good, and end what runs in its terminals."""
        task = TaskId((await asyncio.to_thread(self.store.path, id)).name)
        opened = self.open.pop(task, None)
        if opened is not None:
            await opened.task.abort("it is deleted")
            await opened.close()
        for app in self._apps.values():
            await app.registry.end_task(task)
        if (feed := self._feeds.pop(task, None)) is not None:
            await feed.stop()
        await self.store.delete(task)
        self._gone(task)
        self.open_changed()

    async def feed(self, id: str) -> TaskFeed:
        """The feed of a task, ready to be followed: follow it before the next await."""
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
        """Somebody stopped following: a feed that nobody follows is dropped."""
        feed = self._feeds.get(TaskId(id))
        if feed is not None and not feed.followed:
            del self._feeds[TaskId(id)]
            await feed.stop()

    # The list of tasks

    async def task_rows(self) -> list[Json]:
        """All of them, newest first."""
        await self._list()
        rows = sorted(self._task_rows.values(), key=lambda row: -row["at"])
        return rows[:MOST_LISTED]

    async def _look_at_tasks(self) -> None:
        """Other processes work on tasks, too."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if self._pages:
                try:
                    await self._list()
                except TarmacError:  # the disk: the next look may be luckier
                    continue

    async def _list(self) -> None:
        listed = {each.task: each for each in await self.store.listing(limit=MOST_LISTED)}
        self._listed = listed
        others = await asyncio.to_thread(self._elsewhere, [id for id in listed if id not in self.open])
        for id, each in listed.items():
            self._put_row(id, self._row(each, elsewhere=id in others))
        for id in [id for id in self._task_rows if id not in listed and id not in self.open]:
            self._gone(id)

    async def _refresh(self, ids: Iterable[TaskId]) -> None:
        for id in ids:
            await self.store.refresh(id)
        await self._list()

    def _elsewhere(self, ids: Iterable[TaskId]) -> set[TaskId]:
        """Those on which another process says that it works."""
        found = set()
        for id in ids:
            pid = writer_of(self.store.folder / id)
            if pid and is_alive(pid) and self._listed[id].metadata.status in ("running", "waiting"):
                found.add(id)
        return found

    def _row(self, listed: Listed, *, elsewhere: bool) -> Json:
        opened = self.open.get(listed.task)
        if opened is None:
            return shapes.task_row(listed.task, listed.metadata, elsewhere=elsewhere, trouble=listed.trouble)
        return self._open_row(opened)

    @staticmethod
    def _open_row(opened: OpenTask) -> Json:
        task, ended = opened.task, opened.ended
        return shapes.task_row(
            task.id,
            task.metadata,
            open=True,
            running=task.running,
            level=opened.level,
            questions=task.questions,
            queue=task.queue,
            trouble=ended.text if ended is not None and ended.why == "failed" else "",
        )

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
        """Tell of all that changed, now."""
        if self._flushing is not None:
            self._flushing.cancel()
        self._flushing = None
        tasks, self._dirty_tasks = self._dirty_tasks, set()
        terminals, self._dirty_terminals = self._dirty_terminals, set()
        for task in tasks:
            if (opened := self.open.get(task)) is not None:
                self._put_row(task, self._open_row(opened))
        for id in terminals:
            try:
                self._tell({"type": "terminal", "terminal": self._terminal_row(self.terminal(id))})
            except TerminalNotFound:
                continue

    # Terminals

    def terminal(self, id: str) -> Terminal:
        """The terminal of that id, in whichever workspace."""
        for app in self._apps.values():
            try:
                return app.registry.get(id)
            except TerminalNotFound:
                continue
        raise TerminalNotFound(f"terminal {id} is not there any more", hint="it was closed")

    def terminals(self) -> list[Json]:
        """All of them, as rows."""
        return [self._terminal_row(each) for app in self._apps.values() for each in app.registry.listing()]

    def number(self, id: TerminalId) -> int:
        """How binary frames name it."""
        return self._numbers.setdefault(id, len(self._numbers) + 1)

    def _terminal_row(self, terminal: Terminal) -> Json:
        hold = self._holds.get(terminal.id, Hold())
        return shapes.terminal_row(
            terminal,
            number=self.number(terminal.id),
            last_task=self._last_tasks.get(terminal.id),
            awaits=self._awaits.get(terminal.id),
            holder=hold.page.id if hold.page else None,
            epoch=hold.epoch,
        )

    def _terminal_event(self, event: events.TerminalEvent) -> None:
        id = event.terminal
        match event:
            case events.DataWritten():
                if self._awaits.pop(id, None) is None:
                    return
            case events.AwaitingInput():
                self._awaits[id] = event
            case events.CommandFinished():
                self._awaits.pop(id, None)
            case events.TerminalClosedEvent():
                for kept in (self._awaits, self._holds, self._last_tasks):
                    kept.pop(id, None)
                self._tell({"type": "terminal_gone", "terminal": id})
                return
        try:
            if (task := self.terminal(id).task) is not None:
                self._last_tasks[id] = task
        except TerminalNotFound:  # it is just being opened
            pass
        self._terminal_changed(id)

    async def open_terminal(self, *, cwd: str | None, task: str | None) -> Terminal:
        """A terminal of the person's own; of a task, in its workspace."""
        opened = self.opened(task) if task else None
        workspace = opened.app.config.workspace if opened else self.config.workspace
        app = opened.app if opened else await self.app(workspace)
        where = check_directory(Path(cwd).expanduser()) if cwd else workspace
        terminal = await app.registry.open(cwd=where, task=task, origin="person")
        self._terminal_changed(terminal.id)
        return terminal

    async def close_terminal(self, id: str) -> None:
        """End it and all that runs in it."""
        for app in self._apps.values():
            await app.registry.kill(id)

    def focus(self, id: str) -> None:
        """The person looks at it."""
        for app in self._apps.values():
            try:
                app.registry.focus(id)
            except TerminalNotFound:
                continue

    # Keyboards

    def take(self, id: str, page: PageLike) -> int:
        """The keyboard is this page's; the epoch that its input must carry."""
        terminal = self.terminal(id)
        hold = self._holds.setdefault(terminal.id, Hold())
        if hold.page is not None and hold.page is not page:
            hold.page.tell({"type": "taken", "terminal": id, "epoch": hold.epoch})
        hold.page, hold.epoch = page, hold.epoch + 1
        self._terminal_changed(terminal.id)
        return hold.epoch

    def held(self, id: str, epoch: int) -> Terminal:
        """The terminal, if that epoch still has its keyboard."""
        terminal = self.terminal(id)
        hold = self._holds.get(terminal.id, Hold())
        if hold.page is None or hold.epoch != epoch:
            raise BadRequest(f"the keyboard of {id} is not yours", hint="take it first")
        return terminal

    async def give(self, id: str, epoch: int) -> None:
        """The keyboard is the agent's again. A half-typed line is dropped, so that nothing is added to it."""
        terminal = self.held(id, epoch)
        self._holds[terminal.id].page = None
        if terminal.held and terminal.current is None:
            await terminal.type(b"\x03")
        self._terminal_changed(terminal.id)

    def resize(self, id: str, epoch: int, *, rows: int, columns: int) -> None:
        """Only who has the keyboard decides, and not while the agent's own command draws."""
        terminal = self.held(id, epoch)
        if terminal.current is not None and not terminal.current.by_person:
            return
        terminal.resize(rows=rows, columns=columns)
        self._terminal_changed(terminal.id)

    async def secret(self, id: str, text: str) -> None:
        """Type a secret, if one is asked for right now. It is kept nowhere."""
        terminal = self.terminal(id)
        if terminal.current is None:
            raise BadRequest(f"nothing runs in {id}: nothing was typed")
        await terminal.current.send_secret(text, timeout=2)
        self._awaits.pop(terminal.id, None)
        self._terminal_changed(terminal.id)

    # After a restart

    def unfinished(self) -> list[TaskId]:
        """The open tasks that a next run of the server should open again."""
        return [id for id, each in self.open.items() if each.task.metadata.outcome is None]

    def say_trouble(self, what: str) -> None:
        """Tell every page."""
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
