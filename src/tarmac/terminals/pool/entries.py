"""The terminals of a pool: their owners, their leases, the limits on their number, and who waits at a limit.

claim(request) → Lease: an open terminal, or room for a new one; None at a limit
undo(lease) → as if it had never been claimed
WaitQueue.get(request) → a lease, at once or later; serve() tries every caller again, the first one first

Choosing and claiming are one step of the event loop, so no terminal is ever lent twice. A caller that can't be served
does not block those behind it: they get only what it could not use. A caller that is cancelled after it was served
gives back what it got.

Cleanup closes terminals that nobody uses any more. It does not poll: there is one timer for the terminal that was
unused for longest, and the kernel tells when a background job ends.
"""

import asyncio
import os
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from tarmac.errors import LeaseTimedOut
from tarmac.events import TaskId
from tarmac.terminals.pool.reuse import (
    Candidate,
    Fingerprint,
    LeaseRequest,
    Obstacle,
    ReuseChoice,
    Until,
    choose,
    explain,
    explain_new,
    explain_reuse,
    fingerprint,
)
from tarmac.terminals.process import birthmark, signals
from tarmac.terminals.process.processes import Process
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Terminal

MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A terminal was moved to another directory to be used again."""

    at: float  # time.time()
    before: Path
    after: Path
    # What its commands had changed in the environment by then. A variable that is None was unset; secrets are masked.
    environment: dict[str, str | None] | None  # None: the shell did not tell


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """A terminal, and what the pool knows of it."""

    terminal: Terminal
    number: int
    lease: "Lease | None" = None
    fingerprint: Fingerprint | None = None  # of a warm shell: what it was made with
    warm: bool = False  # nobody has had it yet
    users: frozenset[TaskId | None] = frozenset()  # the tasks whose commands ran in its shell; None: of no task
    touched: float = field(default_factory=time.monotonic)
    focused: float = 0.0
    why: str = ""
    switches: deque[Switch] | None = None
    awaits_task: bool = False  # its task was closed, and may be resumed by another program

    @property
    def used_at(self) -> float:
        return max(self.touched, self.terminal.used_at)

    @property
    def obstacle(self) -> Obstacle | None:
        """Why it can't be lent to anybody now."""
        terminal = self.terminal
        if terminal.origin == "person":
            return Obstacle.OWNED_BY_PERSON
        if terminal.closed:
            return Obstacle.CLOSED
        if terminal.current is not None:
            return Obstacle.BUSY
        if self.lease is not None:
            return Obstacle.KEPT if self.lease.request.until is Until.CLOSED else Obstacle.LENT
        if not terminal.alive:
            return Obstacle.DEAD
        return Obstacle.HELD if terminal.held else None

    def candidate(self) -> Candidate:
        terminal, obstacle = self.terminal, self.obstacle
        passes_on = bool(self.users) and terminal.task is None and terminal.provider == "pty"
        return Candidate(
            id=terminal.id,
            number=self.number,
            provider=terminal.provider,
            shell=" ".join((terminal.shell.path, *terminal.shell.arguments)),
            task=terminal.task,
            cwd=terminal.cwd if terminal.provider == "exec" or terminal.quality != "none" else None,
            moves=terminal.moves,
            obstacle=obstacle,
            command=terminal.current.command if terminal.current is not None else "",
            users=self.users,
            jobs=obstacle is None and passes_on and terminal.has_jobs,
        )

    def is_of(self, task: str) -> bool:
        """Whether it belongs to `task`; or to nobody, and only `task` has used it."""
        owner = self.terminal.task
        mine = owner == task or (owner is None and self.users == {task})
        return mine and self.terminal.origin != "person"

    def is_left(self) -> bool:
        """Whether it goes on when the pool is closed: it can, and somebody will want it."""
        terminal = self.terminal
        if not terminal.outlives or terminal.closed or not terminal.alive:
            return False
        kept = self.lease is not None and self.lease.request.until is Until.CLOSED
        return kept or self.awaits_task or terminal.busy or terminal.has_jobs

    def is_spare(self) -> bool:
        """Whether it may be closed: nobody uses it, and nothing runs in it, not even in the background."""
        return self.obstacle is None and not self.terminal.has_jobs


@dataclass(slots=True, kw_only=True, eq=False)
class Lease:
    """A claim on a terminal, or on room for a new one."""

    request: LeaseRequest
    entry: Entry | None = None  # None: room for a new one
    choice: ReuseChoice | None = None  # of a terminal that is used again
    evicted: tuple[Entry, ...] = ()  # to be closed first
    why: str = ""
    previous_task: TaskId | None = None
    ready: bool = False  # the caller has the terminal; before that nobody can release it


class Entries:
    """All terminals of a pool."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._all: dict[str, Entry] = {}
        self._opening: Counter[TaskId | None] = Counter()  # room that is claimed and not filled yet
        self._numbers = 0

    def __iter__(self) -> Iterator[Entry]:
        """Those that callers may see, oldest first."""
        return (each for each in self._all.values() if not each.warm)

    def everything(self) -> list[Entry]:
        """Warm shells too."""
        return list(self._all.values())

    def get(self, id: str) -> Entry | None:
        """The terminal of that id; a warm one has none that a caller could know."""
        entry = self._all.get(id)
        return None if entry is None or entry.warm else entry

    def add(self, terminal: Terminal, *, lease: Lease | None = None, why: str = "") -> Entry:
        self._numbers += 1
        entry = Entry(terminal=terminal, number=self._numbers, lease=lease, why=why)
        self._all[terminal.id] = entry
        return entry

    def add_warm(self, terminal: Terminal, made_with: Fingerprint) -> None:
        entry = self.add(terminal)
        entry.warm, entry.fingerprint = True, made_with

    def remove(self, entry: Entry) -> None:
        self._all.pop(entry.terminal.id, None)

    def clear(self) -> None:
        self._all.clear()

    # Limits

    def count(self, task: TaskId | None = None) -> int:
        """How many there are or are being opened: of a task, or of all."""
        if task is None:
            return len(self._all) + self._opening.total()
        return self._opening[task] + sum(each.terminal.task == task for each in self._all.values())

    def task_is_full(self, task: TaskId | None) -> bool:
        return task is not None and self.count(task) >= self.settings.max_per_task

    def wants_warm(self) -> bool:
        """Whether a warm shell is missing, and there is room for it."""
        if self.settings.outlive:
            return False  # one that nobody has had would be left behind by a kill
        warm = sum(each.warm for each in self._all.values())
        return warm < self.settings.warm_pool and self.count() < self.settings.max_terminals

    @contextmanager
    def room_for_warm(self) -> Iterator[None]:
        self._opening[None] += 1
        try:
            yield
        finally:
            self._opening[None] -= 1

    def too_late(self, request: LeaseRequest) -> LeaseTimedOut:
        """The error that says which limit kept `request` waiting, and who has the terminals."""
        task, settings = request.task, self.settings
        if self.task_is_full(task) and self._least_used(task, but=()) is None:
            limit = f"task {task} has its {settings.max_per_task} terminals (max_per_task)"
            users = [each for each in self if each.terminal.task == task]
        else:
            limit = f"there are {settings.max_terminals} terminals (max_terminals)"
            users = list(self)
        uses = ", ".join(map(self._use, users[:MOST_SHOWN]))
        return LeaseTimedOut(
            f"no terminal became free within {settings.lease_timeout:g} s: {limit}, all in use: {uses}",
            hint="wait for a command, end one, or close a terminal",
        )

    def _use(self, entry: Entry) -> str:
        found = entry.obstacle
        if found is None:
            return f"{entry.terminal.id} has a job running"
        return explain(entry.candidate(), found, self.settings)

    # Claims

    def claim(self, request: LeaseRequest) -> Lease | None:
        """The best there is, claimed at once; None when a limit is reached and nothing can be closed."""
        open_to_it = () if request.new else (each for each in self if each.terminal.task in (request.task, None))
        seen = [each.candidate() for each in open_to_it]
        choice = None if request.new else choose(seen, request, self.settings)
        evicted: list[Entry] = []
        if (choice is None or not choice.own) and self.task_is_full(request.task):
            spare = self._least_used(request.task, but=())
            if spare is None:
                return None
            evicted.append(spare)
        if choice is not None:
            why = explain_reuse(choice, request, self.settings)
            return self._lend(request, evicted, why=why, entry=self._all[choice.candidate.id], choice=choice)
        why = "" if request.new else explain_new(seen, request, self.settings)
        if not request.new and request.usable_provider == "pty" and request.shell is not None:
            warm, stale = self._warm(request.shell)
            evicted += stale
            if warm is not None:
                return self._lend(
                    request, evicted, why=f"took {warm.terminal.id} from the warm pool: {why}", entry=warm
                )
        while self.count() - len(evicted) >= self.settings.max_terminals:
            left = [each for each in self._all.values() if each.warm and each not in evicted]
            spare = left[0] if left else self._least_used(None, but=evicted)
            if spare is None:
                return None
            evicted.append(spare)
        return self._lend(request, evicted, why=why)

    def _lend(
        self,
        request: LeaseRequest,
        evicted: Iterable[Entry],
        *,
        why: str,
        entry: Entry | None = None,
        choice: ReuseChoice | None = None,
    ) -> Lease:
        lease = Lease(request=request, entry=entry, choice=choice, evicted=tuple(evicted), why=why)
        for each in lease.evicted:
            self.remove(each)
        if entry is None:
            self._opening[request.task] += 1
        else:
            lease.previous_task = entry.terminal.task
            entry.lease, entry.warm, entry.terminal.task = lease, False, request.task
            entry.touched = time.monotonic()
        return lease

    def undo(self, lease: Lease) -> None:
        """The caller is gone before it got the terminal."""
        entry, task = lease.entry, lease.request.task
        if entry is None:
            self._opening[task] -= 1
            return
        if entry.lease is lease:
            entry.lease, entry.warm = None, lease.choice is None
        if entry.terminal.task == task:  # else the task was released meanwhile
            entry.terminal.task = lease.previous_task

    def fill(self, lease: Lease, terminal: Terminal) -> Entry:
        """Put `terminal` into the room that was claimed."""
        self._opening[lease.request.task] -= 1
        terminal.task = lease.request.task
        return self.add(terminal, lease=lease, why=f"opened {terminal.id}: {lease.why}")

    def _warm(self, shell: Shell) -> tuple[Entry | None, list[Entry]]:
        """A warm shell to lend, and those that were made with something that has changed since."""
        warm = [each for each in self._all.values() if each.warm]
        if not warm:
            return None, []
        now = fingerprint(shell, self.settings, os.environ)
        fit = [each for each in warm if each.fingerprint == now and each.terminal.alive]
        stale = [each for each in warm if each not in fit and each.terminal.shell.path == shell.path]
        return (fit[0] if fit else None), stale

    def _least_used(self, task: TaskId | None, *, but: Iterable[Entry]) -> Entry | None:
        """The spare terminal (of `task`) that was unused for longest; first those that belong to no task."""
        found = [each for each in self if task in (None, each.terminal.task) and each not in but]
        found.sort(key=lambda each: (each.terminal.task is not None, each.used_at))
        return next((each for each in found if each.is_spare()), None)


MOST_CLOSED = 100  # closed terminals whose output can still be read


class Cleanup:
    """Closes the terminals of `entries`. `changed` is called when something may be free."""

    def __init__(self, entries: Entries, *, changed: Callable[[], None]) -> None:
        self.closed: OrderedDict[str, Terminal] = OrderedDict()  # closed or closing, with output that nobody has read
        self._entries = entries
        self._changed = changed
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._watched: dict[str, asyncio.Task[None]] = {}  # terminals with background jobs
        self._idle_timer: asyncio.TimerHandle | None = None

    def close(self, entry: Entry) -> "asyncio.Task[None]":
        """Remove it from the pool and close it. The task must not be cancelled: shield it."""
        terminal = entry.terminal
        self._entries.remove(entry)
        task = self._closing.get(terminal.id)
        if task is None:
            self.keep_unread(terminal)
            task = self._closing[terminal.id] = asyncio.get_running_loop().create_task(self._close(terminal))
        return task

    async def _close(self, terminal: Terminal) -> None:
        try:
            await terminal.aclose()
        finally:
            del self._closing[terminal.id]
            self.keep_unread(terminal)

    def keep_unread(self, terminal: Terminal) -> None:
        """Output that nobody has read stays readable by id, of the last so many terminals."""
        if terminal.unread or terminal.current is not None:
            self.closed[terminal.id] = terminal
            if len(self.closed) > MOST_CLOSED:
                self.closed.popitem(last=False)
        else:
            self.closed.pop(terminal.id, None)

    # Idle terminals

    def watch_idle(self) -> None:
        """Set the timer that closes idle terminals."""
        if self._idle_timer is None and (oldest := self._oldest()) is not None:
            wait = self._idle_at(oldest) - time.monotonic()
            self._idle_timer = asyncio.get_running_loop().call_later(max(wait, 0), self._close_idle)

    def _close_idle(self) -> None:
        self._idle_timer = None
        while (oldest := self._oldest()) is not None and self._idle_at(oldest) <= time.monotonic():
            if oldest.is_spare():
                self.close(oldest)
            else:
                oldest.touched = time.monotonic()  # something runs in it, so it is not idle
        self._changed()

    def _idle_at(self, entry: Entry) -> float:
        return entry.used_at + self._entries.settings.terminal_idle_timeout

    def _oldest(self) -> Entry | None:
        lent = (each for each in self._entries if not (each.lease and each.lease.request.until is Until.CLOSED))
        return min(
            (each for each in lent if each.terminal.origin != "person"), key=lambda each: each.used_at, default=None
        )

    # Background jobs

    def watch_jobs(self) -> None:
        """A caller waits: notice when the last job ends in a terminal that could be closed but for that job."""
        for entry in self._entries:
            terminal = entry.terminal
            if terminal.id not in self._watched and entry.obstacle is None and (jobs := _jobs(terminal)):
                work = self._after(terminal, jobs)
                self._watched[terminal.id] = asyncio.get_running_loop().create_task(work)

    async def _after(self, terminal: Terminal, jobs: set[Process]) -> None:
        try:
            await signals.gone(jobs)
        finally:
            del self._watched[terminal.id]
        self._changed()

    async def aclose(self) -> None:
        """Close all terminals, and wait for them."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        watched = list(self._watched.values())
        for task in watched:
            task.cancel()
        await asyncio.gather(*watched, return_exceptions=True)
        for entry in self._entries.everything():
            if entry.is_left():
                self._entries.remove(entry)
                leaving = asyncio.get_running_loop().create_task(entry.terminal.leave())
                self._closing[entry.terminal.id] = leaving
            else:
                self.close(entry)
        results = await asyncio.gather(*self._closing.values(), return_exceptions=True)
        self.closed.clear()
        errors = [each for each in results if isinstance(each, BaseException)]
        if errors:
            raise BaseExceptionGroup("some terminals could not be closed", errors)


def _jobs(terminal: Terminal) -> set[Process]:
    """What ended commands left running. Below a live shell, or, of `exec`, adopted by init and found by its cookie."""
    return terminal.jobs() if isinstance(terminal, PtyTerminal) else birthmark.orphans(terminal.cookie)


Wanted = TypeVar("Wanted")
Got = TypeVar("Got")


class WaitQueue(Generic[Wanted, Got]):
    """Callers at a limit, in order."""

    def __init__(self, attempt: Callable[[Wanted], Got | None], give_back: Callable[[Got], None]) -> None:
        self._attempt = attempt
        self._give_back = give_back
        self._waiting: list[tuple[Wanted, asyncio.Future[Got]]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    async def get(self, wanted: Wanted, *, seconds: float, late: Callable[[], Exception], first: bool = False) -> Got:
        """Wait for `wanted`, or raise `late()` after `seconds`. With `first` it goes before all others."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Got] = loop.create_future()
        self._waiting.insert(0 if first else len(self._waiting), (wanted, future))
        self.serve()
        timer = None if future.done() else loop.call_later(seconds, self._time_out, future, late)
        try:
            return await future
        except asyncio.CancelledError:
            self._remove(future)
            if not future.cancelled() and future.exception() is None:
                self._give_back(future.result())
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def serve(self) -> None:
        """Try every caller, in order."""
        for wanted, future in self._waiting[:]:
            if future.done():  # cancelled: its caller removes it when it runs
                continue
            try:
                got = self._attempt(wanted)
            except Exception as error:
                self._remove(future)
                future.set_exception(error)
                continue
            if got is not None:
                self._remove(future)
                future.set_result(got)

    def close(self, error: Callable[[], Exception]) -> None:
        """Raise `error()` in every caller that waits."""
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error())
        self._waiting.clear()

    def _time_out(self, future: "asyncio.Future[Got]", late: Callable[[], Exception]) -> None:
        if not future.done():
            self._remove(future)
            future.set_exception(late())

    def _remove(self, future: "asyncio.Future[Got]") -> None:
        self._waiting = [each for each in self._waiting if each[1] is not future]
