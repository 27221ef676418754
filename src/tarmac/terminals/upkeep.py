"""What a registry does unasked: fills the warm pool, closes what nobody uses, notices the ends of jobs (T9, T12).

Nothing here polls: a timer for the pool, one for the terminal that was not used for longest, and the kernel's word for
jobs. What is closed behind everybody's back is waited for at the registry's own end.
"""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.paths import nearest_existing
from tarmac.terminals import signals
from tarmac.terminals.opening import make_terminal
from tarmac.terminals.pool import Stamp, stamp
from tarmac.terminals.pty_terminal import PtyTerminal
from tarmac.terminals.shells import Shell
from tarmac.terminals.stock import Claim, Entry, Stock
from tarmac.terminals.terminal import Terminal

MOST_GONE = 100
FILL_AFTER = 0.25  # seconds: the command that a terminal was lent for comes first, then the pool is filled


class Upkeep:
    """Looks after a stock; `changed` is called when something may be free, `waiting` says whether anybody waits."""

    def __init__(self, stock: Stock, *, changed: Callable[[], None], waiting: Callable[[], int]) -> None:
        self.gone: OrderedDict[str, Terminal] = OrderedDict()  # closed, or about to be, with something left to read
        self._stock = stock
        self._settings = stock.settings
        self._changed = changed
        self._waiting = waiting
        self._closed = False
        self._hopeless: Stamp | None = None  # no warm terminal can be made so
        self._work: set[asyncio.Task[None]] = set()  # may be cancelled
        self._closing: dict[str, asyncio.Task[None]] = {}  # may not
        self._watched: set[str] = set()  # terminals whose jobs' end somebody waits for
        self._filling = asyncio.Lock()
        self._fill_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    # Closing

    def close_behind(self, entry: Entry) -> "asyncio.Task[None]":
        """Close it without anybody waiting for it; the registry's own end does."""
        terminal = entry.terminal
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
        """What nobody has read stays readable by id, of the last so many terminals (T9)."""
        if terminal.unread or terminal.current is not None:
            self.gone[terminal.id] = terminal
            if len(self.gone) > MOST_GONE:
                self.gone.popitem(last=False)
        else:
            self.gone.pop(terminal.id, None)

    # Jobs and idle terminals

    def watch_jobs(self) -> None:
        """Somebody waits, and a terminal is kept only by what runs in its background: be told when that ends."""
        for entry in self._stock:
            terminal = entry.terminal
            if terminal.id in self._watched or entry.trouble or not isinstance(terminal, PtyTerminal):
                continue
            if terminal.has_jobs:
                self._watched.add(terminal.id)
                self._start(self._after_jobs(terminal))

    async def _after_jobs(self, terminal: PtyTerminal) -> None:
        try:
            await signals.gone(terminal.jobs())
        finally:
            self._watched.discard(terminal.id)
        self._changed()

    def watch_idle(self) -> None:
        """See to it that terminals which nobody uses are closed."""
        if self._idle_timer is None and (oldest := self._oldest()) is not None:
            wait = oldest.used_at + self._settings.terminal_idle_timeout - time.monotonic()
            self._idle_timer = asyncio.get_running_loop().call_later(max(wait, 0), self._close_idle)

    def _close_idle(self) -> None:
        self._idle_timer = None
        while (oldest := self._oldest()) is not None:
            if oldest.used_at + self._settings.terminal_idle_timeout > time.monotonic():
                break
            if oldest.spare():
                self._stock.entries.pop(oldest.terminal.id)
                self.close_behind(oldest)
            else:
                oldest.touched = time.monotonic()  # something runs in it: not idle
        self._changed()

    def _oldest(self) -> Entry | None:
        lent = (each for each in self._stock if not (each.claim and each.claim.until == "killed"))
        own = (each for each in lent if each.terminal.origin != "person")
        return min(own, key=lambda each: each.used_at, default=None)

    # The warm pool

    def fill_soon(self, cwd: Path, shell: Shell, *, again: bool) -> None:
        """Fill the pool in a moment; `again`: one was taken just now, and its first command comes before that."""
        if not self._settings.warm_pool:
            return
        if again:
            self._cancel_fill()
        if self._fill_timer is None:
            loop = asyncio.get_running_loop()
            self._fill_timer = loop.call_later(FILL_AFTER, self._fill_now, cwd, shell)

    def _cancel_fill(self) -> None:
        if self._fill_timer is not None:
            self._fill_timer.cancel()
            self._fill_timer = None

    def _fill_now(self, cwd: Path, shell: Shell) -> None:
        self._fill_timer = None
        if not self._closed and not self._filling.locked():
            self._start(self.fill(cwd, shell))

    async def fill(self, cwd: Path, shell: Shell) -> None:
        """Have `warm_pool` terminals ready; they wait in `cwd`, where the next one is likely to be wanted."""
        async with self._filling:
            while self._stock.wants_warm() and not self._waiting() and await self._add_warm(cwd, shell):
                self._changed()
        self._cancel_fill()

    async def _add_warm(self, cwd: Path, shell: Shell) -> bool:
        made_with = stamp(shell, self._stock.settings, os.environ)
        if made_with == self._hopeless:
            return False
        with self._stock.room():
            here, settings = nearest_existing(cwd), self._stock.settings
            try:
                terminal = await make_terminal(cwd=here, shell=shell.path, settings=settings)
            except TarmacError:
                return False  # the next caller will be told
            if not await self._is_fit(terminal):
                self._hopeless = made_with
                return False
        self._stock.add(terminal, claim=Claim("taken"), stamp=made_with)
        return True

    async def _is_fit(self, terminal: Terminal) -> bool:
        """Whether it can wait in the pool; else it is closed."""
        fit = False
        try:
            if terminal.provider == "pty":
                await terminal.environment()  # a shell's first command takes twice as long: this one is nobody's
                fit = not self._closed
        except TarmacError:
            pass
        finally:
            if not fit:
                await terminal.aclose()
        return fit

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def aclose(self) -> None:
        """Close all, and wait for what is being closed."""
        self._closed = True
        for timer in (self._fill_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        for entry in list(self._stock.entries.values()):
            self.close_behind(entry)
        results = await asyncio.gather(*self._closing.values(), return_exceptions=True)
        self._stock.entries.clear()
        self.gone.clear()
        errors = [each for each in results if isinstance(each, BaseException)]
        if errors:
            raise BaseExceptionGroup("some terminals could not be closed", errors)
