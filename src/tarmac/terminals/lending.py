"""How a terminal comes to a caller and back: the part of lending that takes time (T3, T8, T11, T12, T21).

lend(ask) → its turn (line.py) → what stock.py gives → made ready: reset, or its environment noted, or opened
release() → free again; whoever waits is served

Whatever fails or is cancelled on the way gives back what it had.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tarmac.errors import LeaseTimedOut, ShellFailed, TarmacError, TerminalClosed, TerminalHeld
from tarmac.events import TaskId
from tarmac.terminals import events
from tarmac.terminals.exec import ExecTerminal
from tarmac.terminals.keeper import NoIntegration
from tarmac.terminals.line import Line
from tarmac.terminals.opening import make_terminal
from tarmac.terminals.settings import Settings
from tarmac.terminals.stock import MOST_SWITCHES, Ask, Entry, Grant, Stock, Switch
from tarmac.terminals.terminal import Listener
from tarmac.terminals.upkeep import Upkeep


class Lending:
    """Gives terminals out and takes them back; `tell` hears every event of every terminal."""

    def __init__(self, settings: Settings, tell: Listener) -> None:
        self.settings = settings
        self.stock = Stock(settings)
        self.closed = False
        self._tell = tell
        self._line: Line[Ask, Grant] = Line(self._give, self._give_back)
        self.upkeep = Upkeep(self.stock, changed=self.changed, waiting=self._line.__len__)
        self._without: dict[TaskId | None, str] = {}  # why a task's commands go through `exec` (T21)

    async def lend(self, ask: Ask) -> Entry:
        """What suits `ask` best, claimed and ready; waits in line while a bound is reached."""
        end = time.monotonic() + self.settings.lease_timeout
        first = False
        while True:
            self.check_open()
            now = self._as_the_task_can(ask)
            left = max(end - time.monotonic(), 0.001)
            grant = await self._line.turn(now, seconds=left, too_late=lambda: self._too_late(ask), first=first)
            try:
                entry = await self._fulfil(grant)
            except BaseException:
                self._give_back(grant)
                raise
            if entry is not None:
                if ask.provider == "pty" and not ask.new:
                    self.upkeep.fill_soon(ask.wish.cwd, ask.shell, again=grant.choice is None)
                return entry
            first = True  # it was lost under our hands: another one, and no queueing again

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    def check_open(self) -> None:
        if self.closed:
            raise TerminalClosed("this registry is closed")

    def _as_the_task_can(self, ask: Ask) -> Ask:
        """Once integration did not come up for a task, it uses `exec` and waits no more (T21)."""
        if ask.wish.provider != "pty" or ask.wish.task not in self._without:
            return ask
        return replace(ask, wish=replace(ask.wish, provider="exec"))

    def _too_late(self, ask: Ask) -> Exception:
        task, limit = ask.wish.task, self.settings
        if task is not None and self.stock.count(task) >= limit.max_per_task:
            bound = f"task {task} has its {limit.max_per_task} terminals (max_per_task)"
            users = [each for each in self.stock if each.terminal.task == task]
        else:
            bound = f"there are {limit.max_terminals} terminals (max_terminals)"
            users = list(self.stock)
        what = ", ".join(f"{each.terminal.id} {each.trouble or 'has a job running'}" for each in users[:5])
        return LeaseTimedOut(
            f"no terminal became free within {limit.lease_timeout:g} s: {bound}, all in use: {what}",
            hint="wait for a command, end one, or close a terminal",
        )

    def _give(self, ask: Ask) -> Grant | None:
        grant = self.stock.give(ask)
        if grant is None:
            self.upkeep.watch_jobs()
        return grant

    # Making ready

    async def _fulfil(self, grant: Grant) -> Entry | None:
        """The terminal, ready for its first command; None when it was lost meanwhile."""
        if grant.evicted:
            await asyncio.wait([self.upkeep.close_behind(each) for each in grant.evicted])
        entry = grant.entry
        if entry is None:
            entry = await self._open(grant)
            entry.terminal.head_for(None if grant.ask.new else grant.ask.wish.cwd)
        elif await self._ready(entry, grant):
            entry.why = grant.why
        else:
            return None
        entry.touched = time.monotonic()
        return entry

    async def _open(self, grant: Grant) -> Entry:
        ask, task = grant.ask, grant.ask.wish.task
        without = self._without.get(task, "") if ask.provider != ask.wish.provider else ""
        terminal = await make_terminal(
            cwd=ask.wish.cwd,
            shell=ask.shell.path,
            provider=ask.provider,
            settings=self.stock.settings,
            name=ask.name,
            origin=ask.origin,
            task=task,
            listener=self.on_event,
            without=without,
        )
        if self.closed:
            await terminal.aclose()
            self.check_open()
        if isinstance(terminal, ExecTerminal) and terminal.stands_in:
            self._without[task] = terminal.stands_in
        return self.stock.filled(grant, terminal)

    async def _ready(self, entry: Entry, grant: Grant) -> bool:
        terminal, choice, cwd = entry.terminal, grant.choice, grant.ask.wish.cwd
        if choice is None:  # a warm one: now it is somebody's, and its first move is no switch
            terminal.subscribe(self.on_event)
            terminal.initial_cwd = cwd
            terminal.head_for(cwd)
            terminal.opened()
            return True
        try:
            if choice.reset:
                await terminal.reset(cwd)
                entry.users = frozenset()
                terminal.moves = int(choice.switch)
            elif choice.switch:
                await self._note_environment(entry, cwd)
        except TerminalHeld:  # a person was quicker
            self.stock.take_back(grant)
            return False
        except NoIntegration as error:
            self._without[grant.ask.wish.task] = error.what
            self._tell(events.NoShellIntegration(at=time.monotonic(), terminal=terminal.id, why=error.what))
            self.drop(entry)
            return False
        except TarmacError:
            self.drop(entry)
            return False
        if not terminal.alive or terminal.busy:
            self.drop(entry)
            return False
        terminal.head_for(cwd, counts=choice.switch and not choice.reset)
        return True

    async def _note_environment(self, entry: Entry, after: Path) -> None:
        before = entry.terminal.cwd
        found: dict[str, str | None] | None = None
        try:
            found = await entry.terminal.environment()
        except (ShellFailed, OSError):  # a full disk, say: no reason to lose the terminal
            pass
        if entry.switches is None:
            entry.switches = deque(maxlen=MOST_SWITCHES)
        entry.switches.append(Switch(at=time.time(), before=before, after=after, environment=found))

    def _give_back(self, grant: Grant) -> None:
        for each in grant.evicted:
            self.upkeep.close_behind(each)
        entry = grant.entry
        if entry is not None and not entry.terminal.alive:
            self.drop(entry)
        else:
            self.stock.take_back(grant)
        self.changed()

    # Coming back

    def release(self, entry: Entry) -> None:
        """End the claim on it; it stays bound to its task."""
        if entry.claim is None or entry.warm:
            return
        entry.claim = None
        entry.touched = time.monotonic()
        entry.terminal.head_for(None)
        if not entry.terminal.alive:
            self.drop(entry)
        self.changed()

    def drop(self, *entries: Entry) -> None:
        """They are of no more use: out of the stock, and closed."""
        for entry in entries:
            self.stock.entries.pop(entry.terminal.id, None)
            self.upkeep.close_behind(entry)
        self.changed()

    def forget(self, task: TaskId) -> None:
        """Integration may be tried again for it."""
        self._without.pop(task, None)

    def changed(self) -> None:
        """Something may be free now."""
        if self.closed:
            return
        if self._line:
            self._line.serve()
        self.upkeep.watch_idle()

    def on_event(self, event: events.TerminalEvent) -> None:
        """What the terminals tell."""
        handle = _HANDLERS.get(type(event))
        entry = self.stock.entries.get(event.terminal) if handle else None
        if handle and entry is not None:
            handle(self, entry)
        self._tell(event)

    def _command_started(self, entry: Entry) -> None:
        user = entry.terminal.task if entry.claim is None else entry.claim.task  # a task may be released under a lease
        if user not in entry.users:
            entry.users |= {user}

    def _command_finished(self, entry: Entry) -> None:
        if entry.claim is not None and entry.claim.until == "run" and not entry.terminal.history[-1].by_person:
            self.release(entry)
        else:
            self.changed()

    def _became_idle(self, entry: Entry) -> None:
        if self._line:
            self.changed()

    def _shell_ended(self, entry: Entry) -> None:
        """A crashed terminal leaves by itself (T11); one that somebody has gets a fresh shell with its next command."""
        if entry.claim is None and entry.terminal.origin != "person":
            self.drop(entry)

    def _terminal_closed(self, entry: Entry) -> None:
        del self.stock.entries[entry.terminal.id]
        self.upkeep.keep_unread(entry.terminal)
        self.changed()

    async def aclose(self) -> None:
        """Send away who waits, close all."""
        self.closed = True
        self._line.send_away(lambda: TerminalClosed("this registry is closed"))
        await asyncio.shield(asyncio.create_task(self.upkeep.aclose()))


_HANDLERS: dict[type[events.TerminalEvent], Callable[[Lending, Entry], None]] = {
    events.CommandStarted: Lending._command_started,
    events.CommandFinished: Lending._command_finished,
    events.BecameIdle: Lending._became_idle,
    events.ShellEnded: Lending._shell_ended,
    events.TerminalClosedEvent: Lending._terminal_closed,
}
