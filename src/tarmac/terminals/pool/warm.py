"""Warm shells: terminals that wait ready-made, so that a lease takes milliseconds."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.terminals.open import Machine
from tarmac.terminals.pool.entries import Entries
from tarmac.terminals.pool.reuse import Fingerprint, fingerprint
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import NewTerminal, Terminal

FILL_AFTER = 0.25  # seconds: the command that a terminal was lent for comes first


class WarmShells:
    """Keeps `warm_pool` terminals ready. `changed` is called for each; none is made while callers wait."""

    def __init__(
        self, entries: Entries, machine: Machine, *, changed: Callable[[], None], callers_wait: Callable[[], bool]
    ) -> None:
        self._entries = entries
        self._machine = machine
        self._changed = changed
        self._callers_wait = callers_wait
        self._closed = False
        self._unfit: Fingerprint | None = None  # no shell that is made with this can be kept warm
        self._filling = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None

    def fill_soon(self, cwd: Path, shell: Shell, *, taken: bool) -> None:
        """Fill the pool in a moment. `taken`: a terminal was lent just now, and its first command comes first."""
        if not self._entries.settings.warm_pool:
            return
        if taken:
            self._cancel_timer()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FILL_AFTER, self._fill_now, cwd, shell)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fill_now(self, cwd: Path, shell: Shell) -> None:
        self._timer = None
        if not self._closed and not self._filling.locked():
            self._work = asyncio.get_running_loop().create_task(self.fill(cwd, shell))

    async def fill(self, cwd: Path, shell: Shell) -> None:
        """Have `warm_pool` terminals ready. They wait in `cwd`, where the next one is likely to be wanted."""
        async with self._filling:
            while self._entries.wants_warm() and not self._callers_wait():
                try:
                    if not await self._add(cwd, shell):
                        break
                finally:
                    self._changed()  # also when it failed: a caller may wait for the room that it took
        self._cancel_timer()

    async def _add(self, cwd: Path, shell: Shell) -> bool:
        settings = self._entries.settings
        made_with = fingerprint(shell, settings, os.environ)
        if made_with == self._unfit:
            return False
        with self._entries.room_for_warm():
            try:
                where = self._machine.nearest_directory(cwd)
                new = NewTerminal(cwd=where, shell=shell.path, settings=settings, environ=made_with.environ)
                terminal = await self._machine.open(new)
            except TarmacError:
                return False  # the next caller will be told
            if not await self._is_fit(terminal):
                self._unfit = made_with
                return False
        self._entries.add_warm(terminal, made_with)
        return True

    async def _is_fit(self, terminal: Terminal) -> bool:
        """Whether it can be kept warm; else it is closed."""
        fit = False
        try:
            if terminal.provider == "pty":
                await terminal.environment()  # the first command of a shell takes twice as long: this one is ours
                fit = not self._closed
        except TarmacError:
            pass
        finally:
            if not fit:
                await terminal.aclose()
        return fit

    async def aclose(self) -> None:
        """Make no more."""
        self._closed = True
        self._cancel_timer()
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
