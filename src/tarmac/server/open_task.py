"""A task that is open in this process, or joined in another one: how it runs, and what its followers are told.

say, answer, run → task.wake() → TaskRunner → task.run_until_idle() → waits for the next wake
open here    Task.subscribe → TaskFeed → follower(seq, thing, changed items)
elsewhere    follow(log)    → TaskFeed → …                    facts only: signals are never stored

A task of a session at the terminal, or of an editor, has no runner here: that front end runs it. A fact is told once,
after all before it. A client that comes back says which fact it saw last.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tarmac.app import App
from tarmac.errors import TarmacError
from tarmac.server.joined_task import JoinedTask
from tarmac.tasks.context import Ended
from tarmac.tasks.events import ModelSaid, RequestFailed, RequestId, TaskEvent
from tarmac.tasks.log.reader import follow, read_log, uncollected
from tarmac.tasks.signals import ReasoningStreamed, Signal, TextStreamed
from tarmac.tasks.task import Task
from tarmac.tasks.views.timeline import Item, Timeline

LAST_WORDS: Final = 10.0  # seconds for a run to end in order
TO_BEGIN: Final = 50  # turns of the event loop from a wake to a run
LATE: Final = 20  # facts after which an answer is certainly not being said any more


class TaskRunner:
    """Runs a task whenever it is its turn, whoever looks on. `close` leaves the task in order."""

    def __init__(self, task: Task, owns: AsyncExitStack, changed: Callable[[], object]) -> None:
        self.ended: Ended | None = None  # how its last run ended
        self._task = task
        self._owns = owns
        self._changed = changed
        self._go = asyncio.Event()
        self._runs = asyncio.create_task(self._run(), name=f"runs of {task.id}")
        task.when_woken(self._go.set)
        task.type_secrets()

    async def _run(self) -> None:
        while True:
            await self._go.wait()
            self._go.clear()
            self._changed()
            try:
                self.ended = await self._task.run_until_idle()
            except TarmacError as error:
                self.ended = Ended("failed", error.what, error.hint)
            self._changed()

    async def close(self) -> None:
        """Stop it in order; the task stays."""
        self._runs.cancel()
        await asyncio.wait([self._runs], timeout=LAST_WORDS)
        await self._owns.aclose()


@dataclass(slots=True)
class OpenTask:
    """One of them."""

    task: Task | JoinedTask
    app: App | None  # None: it is joined
    leave: Callable[[], object]  # ends what was subscribed to
    runner: TaskRunner | None = None
    saying: list[TextStreamed | ReasoningStreamed] = field(default_factory=list)  # so far, and not yet a fact

    def heard(self, thing: object) -> None:
        """Keep what the model is saying, for clients that come in the middle of it."""
        if isinstance(thing, TextStreamed | ReasoningStreamed):
            if self.saying and self.saying[0].request != thing.request:
                self.saying.clear()
            self.saying.append(thing)
        elif isinstance(thing, ModelSaid | RequestFailed):
            self.saying.clear()

    async def wake(self) -> None:
        """It is its turn, perhaps: somebody said or answered something. It runs when this returns."""
        self.task.wake()
        for _ in range(TO_BEGIN):
            if self.task.running:
                return
            await asyncio.sleep(0)

    async def to_background(self, by: str) -> None:
        """Let it go on without the commands that it waits for."""
        if isinstance(self.task, JoinedTask):
            self.task.to_background()
        else:
            await self.task.to_background(by)

    async def close(self) -> None:
        """Stop it if it runs here, leave it if it is joined."""
        self.leave()
        if self.runner is not None:
            await self.runner.close()
        elif isinstance(self.task, JoinedTask):
            await self.task.aclose()


@dataclass(frozen=True, slots=True)
class FactTold:
    """A fact, and the items that it made or changed."""

    seq: int
    event: TaskEvent
    items: tuple[Item, ...]
    length: int  # of the timeline now


@dataclass(frozen=True, slots=True)
class SubtaskFact:
    """A fact of a subtask, which is in another log."""

    event: TaskEvent


Follower = Callable[[FactTold | SubtaskFact | Signal], None]


@dataclass(slots=True)
class TaskHistory:
    """What a log holds."""

    events: list[TaskEvent]
    timeline: Timeline

    @classmethod
    def read(cls, folder: Path) -> "TaskHistory":
        """(It waits for the disk: not for the event loop.)"""
        found = cls(read_log(folder).events, Timeline())
        with uncollected():
            for event in found.events:
                found.timeline.add(event)
        return found

    def has_said(self, request: RequestId) -> bool:
        """Whether the answer to a late request is a fact already."""
        late = self.events[-LATE:]
        return any(isinstance(event, ModelSaid) and event.request == request for event in late)

    def changed_since(self, seq: int) -> list[Item]:
        """The items that the facts after `seq` made or changed, as they are now."""
        shadow = Timeline()
        places: set[int] = set()
        for number, event in enumerate(self.events, 1):
            items = shadow.add(event)
            if number > seq:
                places.update(each.place for each in items)
        return [self.timeline.items[place] for place in sorted(places) if place < len(self.timeline.items)]


class TaskFeed:
    """The feed of one task. Call `start` before it is followed, and again when the task is opened or shut."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.loaded = False
        self.past = TaskHistory([], Timeline())
        self._early: dict[int, TaskEvent] = {}  # heard before what comes before them was read
        self._followers: list[Follower] = []
        self._leave: Callable[[], None] = lambda: None
        self._following: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._joining = 0
        self._ended = False

    @property
    def seq(self) -> int:
        return len(self.past.events)

    @property
    def followed(self) -> bool:
        return bool(self._followers or self._joining)

    async def start(self, task: Task | JoinedTask | None) -> None:
        """Hear of facts from the task, or from its log when it is not open here."""
        async with self._starting:
            await self._stop()
            if self._ended:
                return
            if task is not None:
                self._leave = task.subscribe(self._heard)
            found = await asyncio.to_thread(TaskHistory.read, self._folder)
            if self.loaded:
                for event in found.events[self.seq :]:
                    self._add(event)
            else:
                self.past, self.loaded = found, True
            self._take_early()
            if task is None:
                self._following = asyncio.create_task(self._follow())

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Somebody is about to follow it: it must not be dropped."""
        self._joining += 1
        try:
            yield
        finally:
            self._joining -= 1

    async def stop(self) -> None:
        """Hear nothing more, for good."""
        self._ended = True
        async with self._starting:
            await self._stop()

    async def _stop(self) -> None:
        self._leave()
        self._leave = lambda: None
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Tell `follower` all from now on; the returned function ends that."""
        self._followers.append(follower)

        def leave() -> None:
            if follower in self._followers:
                self._followers.remove(follower)

        return leave

    async def _follow(self) -> None:
        try:
            async for seq, event in follow(self._folder, after=self.seq):
                self._heard(seq, event)
        except TarmacError:  # deleted, or cut: the list of tasks tells
            pass

    def _heard(self, seq: int | None, thing: TaskEvent | Signal) -> None:
        if isinstance(thing, Signal):
            if self.loaded:
                self._tell(thing)
        elif seq is None:  # of a subtask: it is in no log of this task
            if self.loaded:
                self._tell(SubtaskFact(thing))
        elif seq > self.seq:
            self._early[seq] = thing
            self._take_early()

    def _take_early(self) -> None:
        while self.loaded and (event := self._early.pop(self.seq + 1, None)) is not None:
            self._add(event)

    def _add(self, event: TaskEvent) -> None:
        self.past.events.append(event)
        items = tuple(self.past.timeline.add(event))
        self._tell(FactTold(self.seq, event, items, len(self.past.timeline.items)))

    def _tell(self, thing: FactTold | SubtaskFact | Signal) -> None:
        for follower in self._followers[:]:
            follower(thing)
