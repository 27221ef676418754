"""Close terminals in the background: those that nobody uses any more, and those whose caller does not wait.

Nothing here polls. There is one timer for the terminal that was unused for longest, and the kernel tells when a
background job ends. Closing the pool waits for everything that is being closed.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from tarmac.terminals.pool.entries import Entries, Entry
from tarmac.terminals.pool.reuse import Until
from tarmac.terminals.process import birthmark, signals
from tarmac.terminals.process.processes import Process
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Terminal

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
            self.close(entry)
        results = await asyncio.gather(*self._closing.values(), return_exceptions=True)
        self.closed.clear()
        errors = [each for each in results if isinstance(each, BaseException)]
        if errors:
            raise BaseExceptionGroup("some terminals could not be closed", errors)


def _jobs(terminal: Terminal) -> set[Process]:
    """What ended commands left running. Below a live shell, or, of `exec`, adopted by init and found by its cookie."""
    return terminal.jobs() if isinstance(terminal, PtyTerminal) else birthmark.orphans(terminal.cookie)
