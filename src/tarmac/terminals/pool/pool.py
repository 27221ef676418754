"""A pool of terminals: leased to tasks, or kept open by id.

lease(cwd, task) → claim or wait at a limit (entries.py, decided by reuse.py)
  → prepare: reset, move, take a warm shell (warm.py) or open one
  → released: free again, and still bound to its task

Choosing and claiming happen in one step of the event loop. Everything that takes time comes after it, with the claim
in hand. Whatever fails or is cancelled on the way gives the claim back.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from tarmac.errors import (
    BadRequest,
    OutOfTerminals,
    ShellFailed,
    TarmacError,
    TerminalClosed,
    TerminalHeld,
    TerminalNotFound,
)
from tarmac.events import TaskId
from tarmac.terminals import events
from tarmac.terminals.events import Listener
from tarmac.terminals.exec import ExecTerminal
from tarmac.terminals.open import Machine, ThisMachine, check_can_outlive
from tarmac.terminals.output.follow import cool, is_hot, unread_output
from tarmac.terminals.pool.entries import Cleanup, Entries, Entry, Lease, Switch, WaitQueue
from tarmac.terminals.pool.reuse import LeaseRequest, Until
from tarmac.terminals.pool.warm import WarmShells
from tarmac.terminals.result import Result
from tarmac.terminals.settings import PathContribution, Settings
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.shell.shell_lifecycle import NoIntegration
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import NewTerminal, Origin, Provider, Terminal

MOST_SWITCHES = 20  # remembered of each terminal
HEARD = (
    events.CommandStarted,
    events.CommandFinished,
    events.BecameIdle,
    events.ShellEnded,
    events.TerminalClosedEvent,
)


class Prepared(Enum):
    READY = auto()
    HELD = auto()  # a person began to type in it
    LOST = auto()  # it can't be used any more


async def prepare(entry: Entry, lease: Lease) -> Prepared:
    """Reset the terminal or note its environment, and have its next command run in the wanted directory.

    NoIntegration is raised when a reset could not bring up a shell.
    """
    terminal, choice, cwd = entry.terminal, lease.choice, lease.request.cwd
    try:
        if choice is not None and choice.reset:
            await terminal.reset(cwd)
            entry.users = frozenset()
            terminal.moves = int(choice.switch)
        elif choice is not None and choice.switch:
            await _note_environment(entry, cwd)
    except TerminalHeld:
        return Prepared.HELD
    except NoIntegration:
        raise
    except TarmacError:
        return Prepared.LOST
    if terminal.held or (terminal.current is not None and terminal.current.by_person):
        return Prepared.HELD
    if not terminal.alive or terminal.busy or (choice is None and _has_died(terminal)):
        return Prepared.LOST
    if choice is None:
        terminal.initial_cwd = cwd  # it was warm, so its first move does not count
    terminal.head_for(cwd, counts=choice is not None and choice.switch and not choice.reset)
    return Prepared.READY


def _has_died(terminal: Terminal) -> bool:
    """By the kernel's word: we are told of a death only when all that the shell printed has been read."""
    session = terminal.session if isinstance(terminal, PtyTerminal) else None
    return session is not None and session.has_died()


async def _note_environment(entry: Entry, after: Path) -> None:
    before = entry.terminal.cwd
    found: dict[str, str | None] | None = None
    try:
        found = await entry.terminal.environment()
    except (ShellFailed, OSError):  # the disk may be full: no reason to lose the terminal
        pass
    if entry.switches is None:
        entry.switches = deque(maxlen=MOST_SWITCHES)
    entry.switches.append(Switch(at=time.time(), before=before, after=after, environment=found))


if TYPE_CHECKING:
    from tarmac.terminals.wait_conditions import Conditions, Happened


class Pool:
    """Leases terminals to tasks, and keeps others by id. `async with` closes all of them."""

    def __init__(self, settings: Settings | None = None, *, machine: Machine | None = None) -> None:
        self.settings = settings or Settings()
        self.machine: Machine = machine or ThisMachine()
        self._entries = Entries(self.settings)
        self._queue: WaitQueue[LeaseRequest, Lease] = WaitQueue(self._claim, self._give_back)
        self._cleanup = Cleanup(self._entries, changed=self._changed)
        self._warm = WarmShells(
            self._entries, self.machine, changed=self._changed, callers_wait=lambda: len(self._queue) > 0
        )
        self._no_integration: dict[TaskId | None, str] = {}  # tasks whose commands use `exec` instead, and why
        self._paths: dict[str, PathContribution] = {}
        self._listeners = events.Listeners()
        self._listeners.add(self._heard, *HEARD)
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every terminal. One that fails to close does not keep the others open."""
        self._closed = True
        self._queue.close(_closed)
        await asyncio.shield(asyncio.create_task(self._close_all()))

    async def _close_all(self) -> None:
        await self._warm.aclose()
        await self._cleanup.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    # Leases

    @asynccontextmanager
    async def lease(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> AsyncIterator[Terminal]:
        """A terminal for a block. Nobody else gets it meanwhile. Its first command runs in `cwd`, or not at all.

        Afterwards it stays bound to `task`, with everything that was set in it, until `release_for_task`.
        """
        entry = await self._lend(self._request(cwd, task, provider, shell, until=Until.RELEASED))
        lease = entry.lease
        try:
            yield entry.terminal
        finally:
            if entry.lease is lease:
                self._release(entry)

    async def get_or_create(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> Terminal:
        """The same without a block. It is yours until its first command has ended, or until `release(terminal)`."""
        return (await self._lend(self._request(cwd, task, provider, shell, until=Until.FIRST_COMMAND))).terminal

    async def open(
        self,
        *,
        name: str = "",
        cwd: Path | str | None = None,
        shell: str | None = None,
        arguments: Sequence[str] = (),
        provider: Provider = "pty",
        task: str | None = None,
        origin: Origin = "agent",
        outlive: bool = False,
    ) -> Terminal:
        """Open a terminal that stays until it is killed or the pool is closed. It is never leased.

        With `outlive` the terminal daemon keeps it when the pool is closed: see docs/daemon.md.
        """
        request = self._request(cwd, task, provider, shell, until=Until.CLOSED)
        if outlive:
            check_can_outlive(self._entries.settings)
            if not isinstance(self.machine, ThisMachine):
                raise BadRequest(
                    "a terminal at another place can't outlive the program", hint="open it without `outlive`"
                )
        request = replace(request, new=True, name=name, origin=origin, outlive=outlive, arguments=tuple(arguments))
        entry = await self._lend(request)
        entry.why = f"opened {entry.terminal.id}: it was asked for"
        return entry.terminal

    def _request(
        self, cwd: Path | str | None, task: str | None, provider: Provider, shell: str | None, *, until: Until
    ) -> LeaseRequest:
        here = self.machine.check_directory(Path(cwd) if isinstance(cwd, str) else cwd)
        if provider not in ("pty", "exec"):
            raise BadRequest(f"provider is 'pty' or 'exec', not {provider!r}")
        if task == "":
            raise BadRequest("a task's id is not empty", hint="leave it out for a terminal of no task")
        owner = None if task is None else TaskId(task)
        return LeaseRequest(cwd=here, task=owner, provider=provider, shell=self.shell(shell), until=until)

    def adopt(self, terminal: Terminal, why: str) -> None:
        """Add a terminal that somebody else opened, by its id, while it is open. It is never leased."""
        self._check_open()
        if self._entries.task_is_full(terminal.task):
            raise OutOfTerminals(
                f"task {terminal.task} has its {self.settings.max_per_task} terminals (max_per_task)",
                hint="end one of its commands, or close a terminal",
            )
        request = LeaseRequest(cwd=terminal.cwd, task=terminal.task, until=Until.CLOSED)
        entry = self._entries.add(terminal, lease=Lease(request=request, ready=True), why=f"{terminal.id} {why}")
        entry.users = frozenset({terminal.task})
        terminal.listeners.join(self._listeners)
        terminal.opened()

    def release(self, terminal: Terminal) -> None:
        """End the lease of a terminal, whoever has it. One that was kept by its id may be leased from now on."""
        entry = self._entries.get(terminal.id)
        if entry is not None:
            self._release(entry)

    def release_for_task(self, task: str) -> list[Terminal]:
        """The task is done. Its terminals go to the background, where any task may get them. Commands go on."""
        released = []
        for entry in list(self._entries):
            if entry.terminal.task == task and entry.terminal.origin != "person":
                entry.terminal.task = None
                released.append(entry.terminal)
                if entry.lease is not None and entry.lease.request.until is not Until.RELEASED:
                    self._release(entry)
        self._no_integration.pop(TaskId(task), None)
        self._changed()
        return released

    def leave_task(self, task: str) -> None:
        """The task is closed, and may be resumed. Its terminals that outlive the program wait for it.

        The others are released, as by `release_for_task`.
        """
        waiting = [each for each in self._entries if each.terminal.task == task and each.terminal.outlives]
        for entry in waiting:
            entry.awaits_task, entry.terminal.task = True, None
            self._release(entry)
        self.release_for_task(task)
        for entry in waiting:
            entry.terminal.task = TaskId(task)

    async def take_over(self, session: str) -> list[Terminal]:
        """Take over the terminals of `session` that another program left, or had when it was killed.

        Those of a task may be leased again. Those that were only associated with a session are kept by their id.
        """
        from tarmac.terminals.daemon.takeover import attach_terminal, list_terminals

        for entry in self._entries:
            entry.awaits_task = entry.awaits_task and entry.terminal.task != session
        found: list[Terminal] = []
        for each in await list_terminals(session=session):
            if each.host is not None:
                continue  # this program has it, or another running one
            try:
                terminal = await attach_terminal(each.id, settings=self._entries.settings)
            except TarmacError:
                continue  # another program was quicker, or it just ended
            try:
                self.adopt(terminal, "was taken over from another program")
            except TarmacError:  # the task has all it may have
                await terminal.leave()
                continue
            if terminal.task == session:
                self.release(terminal)
            found.append(terminal)
        return found

    def outliving(self) -> list[Terminal]:
        """The terminals that go on when the pool is closed now. `kill` ends those that nobody wants."""
        return [each.terminal for each in self._entries if each.is_left()]

    async def end_task(self, task: str) -> None:
        """The task was aborted or deleted. Its terminals are closed, and all that runs in them ends.

        This includes terminals that it left in the background, unless another task has used them since.
        """
        self._no_integration.pop(TaskId(task), None)
        await self._drop(*(each for each in self._entries if each.is_of(task)))

    async def kill(self, id: str) -> None:
        """Close the terminal of that id and end all that runs in it. An unknown id is not an error."""
        entry = self._entries.get(id)
        if entry is not None:
            await self._drop(entry)

    async def warm_up(self, *, cwd: Path | str | None = None, shell: str | None = None) -> None:
        """Start the warm shells now. Without this they are started after the first lease."""
        self._check_open()
        here = self.machine.check_directory(Path(cwd) if isinstance(cwd, str) else cwd)
        await self._warm.fill(here, self.shell(shell))

    def shell(self, name: str | None = None) -> Shell:
        """The shell of that name, or the default one."""
        return self.machine.shell(name or self.settings.shell)

    # How a lease comes about

    def _claim(self, request: LeaseRequest) -> Lease | None:
        lease = self._entries.claim(request)
        if lease is None:
            self._cleanup.watch_jobs()
        return lease

    async def _lend(self, request: LeaseRequest) -> Entry:
        """Claim a terminal, or wait for one, and prepare it."""
        end = time.monotonic() + self.settings.lease_timeout
        first = False
        while True:
            self._check_open()
            if request.provider == "pty":
                request = replace(request, no_integration=self._no_integration.get(request.task, ""))
            left = max(end - time.monotonic(), 0.001)
            lease = await self._queue.get(
                request, seconds=left, late=partial(self._entries.too_late, request), first=first
            )
            try:
                entry = await self._prepare(lease)
            except BaseException:
                self._give_back(lease)
                raise
            if entry is not None:
                lease.ready, entry.touched = True, time.monotonic()
                if request.provider == "pty" and request.shell is not None and not request.new:
                    self._warm.fill_soon(request.cwd, request.shell, taken=lease.choice is None)
                return entry
            first = True  # the terminal was lost on the way: the caller gets the next one

    async def _prepare(self, lease: Lease) -> Entry | None:
        """The terminal, ready for its first command; None when it was lost meanwhile."""
        if lease.evicted:
            await asyncio.wait([self._cleanup.close(each) for each in lease.evicted])
        entry, request = lease.entry, lease.request
        if entry is None:
            entry = await self._open(lease)
            entry.terminal.head_for(None if request.new else request.cwd)
            return entry
        try:
            prepared = await prepare(entry, lease)
        except NoIntegration as error:
            self._no_integration[request.task] = error.what
            self._listeners.tell(
                events.NoShellIntegration(at=time.monotonic(), terminal=entry.terminal.id, why=error.what)
            )
            prepared = Prepared.LOST
        match prepared:
            case Prepared.READY:
                entry.why = lease.why
                if lease.choice is None:  # it was warm: from now on it is visible
                    entry.terminal.listeners.join(self._listeners)
                    entry.terminal.opened()
                return entry
            case Prepared.HELD:
                self._entries.undo(lease)
            case Prepared.LOST:
                self._drop_behind(entry)
        return None

    async def _open(self, lease: Lease) -> Entry:
        request = lease.request
        settings = self._entries.settings
        new = NewTerminal(
            cwd=request.cwd,
            shell=request.shell.path if request.shell is not None else None,
            arguments=request.arguments,
            provider=request.provider,
            settings=replace(settings, outlive=True) if request.outlive else settings,
            name=request.name,
            origin=request.origin,
            task=request.task,
            without=request.no_integration,
        )
        terminal = await self.machine.open(new, listeners=self._listeners)
        if self._closed:
            await terminal.aclose()
            self._check_open()
        if isinstance(terminal, ExecTerminal) and terminal.stands_in:
            self._no_integration[request.task] = terminal.stands_in
        return self._entries.fill(lease, terminal)

    def _give_back(self, lease: Lease) -> None:
        for each in lease.evicted:
            self._cleanup.close(each)
        if lease.entry is not None and not lease.entry.terminal.alive:
            self._drop_behind(lease.entry)
        else:
            self._entries.undo(lease)
        self._changed()

    def _release(self, entry: Entry) -> None:
        if entry.lease is None or not entry.lease.ready:
            return
        entry.lease = None
        entry.touched = time.monotonic()
        entry.terminal.head_for(None)
        if not entry.terminal.alive:
            self._drop_behind(entry)
        self._changed()

    async def _drop(self, *entries: Entry) -> None:
        """Close them and wait. They are closed even when the caller is cancelled."""
        closing = asyncio.gather(*(self._cleanup.close(each) for each in entries))
        self._changed()
        await asyncio.shield(closing)

    def _drop_behind(self, entry: Entry) -> None:
        """Close it without waiting."""
        self._cleanup.close(entry)
        self._changed()

    def _changed(self) -> None:
        """Something may be free now."""
        if self._closed:
            return
        if self._queue:
            self._queue.serve()
        self._cleanup.watch_idle()

    def _heard(self, event: events.TerminalEvent) -> None:
        """One of HEARD."""
        if (entry := self._entries.get(event.terminal)) is None:
            return
        match event:
            case events.CommandStarted():  # for the task of the lease: the terminal may be released in the block
                user = entry.terminal.task if entry.lease is None else entry.lease.request.task
                if user not in entry.users:
                    entry.users |= {user}
            case events.CommandFinished(by_person=by_person):
                if entry.lease is not None and entry.lease.request.until is Until.FIRST_COMMAND and not by_person:
                    self._release(entry)
                elif entry.lease is None:  # else somebody has it, and nothing is free now
                    self._changed()
            case events.BecameIdle():
                if self._queue:
                    self._changed()
            case events.ShellEnded():  # with a lease, the next command gets a fresh shell
                if entry.lease is None and entry.terminal.origin != "person":
                    self._drop_behind(entry)
            case events.TerminalClosedEvent():
                self._entries.remove(entry)
                self._cleanup.keep_unread(entry.terminal)
                self._changed()

    # Terminals by id

    def get(self, id: str) -> Terminal:
        return self._entry(id).terminal

    def _entry(self, id: str) -> Entry:
        entry = self._entries.get(id)
        if entry is None:
            known = ", ".join(each.terminal.id for each in self._entries) or "none"
            raise TerminalNotFound(f"Terminal {id} not found", hint=f"open terminals: {known}")
        return entry

    def readable(self, id: str) -> Terminal:
        """The terminal of that id, also a closed one that still has unread output."""
        closed = self._cleanup.closed.get(id)
        return closed if closed is not None and (closed.unread or closed.current) else self.get(id)

    @property
    def gone(self) -> list[Terminal]:
        """Closed terminals with unread output, oldest first."""
        return [each for each in self._cleanup.closed.values() if each.unread]

    def listing(self, *, busy: bool | None = None, task: str | None = None) -> list[Terminal]:
        """The open terminals, oldest first: all, or those of a task."""
        found = (each.terminal for each in self._entries)
        return [each for each in found if busy in (None, each.busy) and task in (None, each.task)]

    def associate(self, terminal: Terminal, session: str) -> None:
        """Associate an open terminal with a session: a task, or a client of ACP or MCP.

        If the terminal outlives the program, the next program knows of it: see `take_over`.
        """
        self._entry(terminal.id).terminal.associate(session)

    def terminals_of(self, session: str) -> list[Terminal]:
        """The open terminals of a session, oldest first: those of the task, and those associated with it."""
        return [each for each in self.listing() if session == each.task or session in each.sessions]

    def cwd_of(self, session: str) -> Path | None:
        """Where a session works: the directory of its terminal that was used last. None: it has none."""
        latest = max(self.terminals_of(session), key=lambda each: each.used_at, default=None)
        return latest.cwd if latest is not None else None

    def background(self, *, busy: bool | None = None) -> list[Terminal]:
        """The terminals that belong to no task."""
        return [each for each in self.listing(busy=busy) if each.task is None]

    def why(self, terminal: Terminal) -> str:
        """Why its task got this terminal, in a sentence."""
        return self._entry(terminal.id).why

    def switches(self, id: str) -> list[Switch]:
        """Its moves to other directories for leases, with what its commands had changed by then."""
        return list(self._entry(id).switches or ())

    @property
    def waiting(self) -> int:
        """How many callers wait for a terminal at a limit."""
        return len(self._queue)

    @property
    def active(self) -> Terminal | None:
        """The terminal that was last focused, else last used."""
        latest = max(self._entries, key=lambda each: (each.focused, each.used_at), default=None)
        return latest.terminal if latest is not None else None

    def focus(self, id: str) -> None:
        """A person looks at it."""
        self._entry(id).focused = time.monotonic()

    # Output

    def waiting_for(self, *ids: str, **conditions: "Unpack[Conditions]") -> Coroutine[Any, Any, "Happened"]:
        """Wait for the first of `conditions` in any of these terminals, or in any that is busy.

        What runs at the call is meant, even if it has ended when the wait begins.
        """
        from tarmac.terminals.wait_conditions import first_of

        terminals = [self.get(id) for id in ids] or self.listing(busy=True)
        return first_of([(each, each.current) for each in terminals], **conditions)

    async def read(self, id: str) -> list[Result]:
        """The results that nobody has read yet, oldest first, and last what the running command printed so far."""
        terminal = self.readable(id)
        results = [await each.result() for each in terminal.unread]
        if terminal.current is not None:
            results.append(await terminal.current.so_far())
        return results

    async def unread_output(self, id: str) -> str:
        """The output that nobody has read yet, as text. Of a running command, whole lines only."""
        return await unread_output(self.readable(id))

    def is_hot(self, id: str) -> bool:
        """Whether its command has just printed something, or seems to be compiling."""
        return is_hot(self.get(id).current)

    async def cool(self, task: str | None = None, *, edited: bool = False) -> None:
        """Wait until no command of the task or in the background is hot, but at most 5 s."""
        own = self.listing(busy=True, task=task) if task is not None else []
        running = [each.current for each in (*own, *self.background(busy=True)) if each.current is not None]
        await cool(running, edited=edited)

    # Settings and events

    def contribute_path(self, name: str, directory: Path, *, description: str = "") -> None:
        """Put `directory` in front of PATH in terminals opened from now on. The same name again replaces it."""
        if not name or ":" in str(directory) or "\0" in str(directory):
            raise BadRequest(f"{directory} can't be in PATH, or {name!r} is not a name")
        self._paths[name] = PathContribution(name=name, directory=directory, description=description)
        paths = (*self.settings.path_contributions, *self._paths.values())
        self._entries.settings = replace(self.settings, path_contributions=paths)

    @property
    def path_contributions(self) -> tuple[PathContribution, ...]:
        return tuple(self._paths.values())

    def subscribe(self, listener: Listener, *kinds: events.Kind) -> Callable[[], None]:
        """Call `listener` with events of every terminal: all, or those of `kinds`. The returned function ends that."""
        return self._listeners.add(listener, *kinds)


def _closed() -> Exception:
    return TerminalClosed("the terminal pool is closed")
