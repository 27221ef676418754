"""Keeps a live shell: opens it, opens a fresh one when it died, and remembers what the next result must say of that."""

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path

from tarmac.errors import ShellFailed, TerminalClosed
from tarmac.paths import nearest_existing
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.owner import Owner
from tarmac.terminals.shell.session import Session
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.shell.startup import until_up


class NoIntegration(ShellFailed):
    """The shell started, but our integration did not come up in time."""


class ShellLifecycle:
    """One shell at a time; `session` is the present one, if any."""

    def __init__(self, shell: Shell, settings: Settings, *, env: Mapping[str, str], owner: Owner) -> None:
        self.session: Session | None = None
        self._shell = shell
        self._settings = settings
        self._env = env
        self._owner = owner
        self._death: str | None = None  # how the last shell ended
        self._fresh = False
        self._news: list[str] = []
        self._sweep: asyncio.Task[None] | None = None
        self._stopped = False

    def stop(self) -> None:
        """The terminal is being closed: no shell is opened any more, and one that is coming up goes again."""
        self._stopped = True

    def _check(self) -> None:
        if self._stopped:
            raise TerminalClosed("the terminal was closed while its shell started", hint="open another one")

    async def open(self, cwd: Path) -> None:
        """Start the shell and wait for its first prompt; once more without start-up files if it leaves."""
        with_files = self._settings.start_up_files
        status = await self._open(cwd, start_up_files=with_files)
        if status is not None and with_files:
            left, status = status, await self._open(cwd, start_up_files=False)
            self._news.append(f"the start-up files end the shell (status {left}): it runs without them")
        if status is not None:
            raise ShellFailed(
                f"{self._shell.path} left at once, with status {status}", hint="run it by hand to see why"
            )

    async def _open(self, cwd: Path, *, start_up_files: bool) -> int | None:
        """None, or the status of a shell that left before its first prompt."""
        self._check()
        session = Session(self._shell, self._settings, owner=self._owner, env=self._env)
        self.session = session
        session.start(cwd=cwd, start_up_files=start_up_files)
        try:
            why = await until_up(session, self._settings.shell_integration_timeout)
        except BaseException:
            await asyncio.shield(asyncio.create_task(self._drop(session)))
            raise
        if self._stopped:
            await self._drop(session)
            self._check()
        if session.alive and not why:
            if session.shell.name != self._shell.name:
                self._news.append(f"the start-up files put {session.shell.name} in the place of {self._shell.name}")
            session.learn_companions()
            return None
        status = session.exit_status
        await self._drop(session)
        if status is None:
            raise NoIntegration(
                f"{self._shell.name} can't be used: {why}",
                hint="see the settings `start_up_files`, `shell_integration_timeout`",
            )
        return status

    async def _drop(self, session: Session) -> None:
        if self.session is session:
            self.session = None
        await session.end(grace=0.1)

    def died(self, status: int, *, leftovers: bool) -> None:
        """The present shell has ended; with `leftovers` what it left behind is ended too."""
        self._death = f"exit code {status}" if status >= 0 else f"killed by {_signal(-status)}"
        session = self.session
        if session is not None and session.integrated and leftovers:
            self._sweep = asyncio.get_running_loop().create_task(self._clean_up(session))

    async def _clean_up(self, session: Session) -> None:
        await session.sweep()
        session.close()

    async def revive(self, cwd: Path) -> tuple[str, Path] | None:
        """Have a shell that lives. None if there was one; else why the last one ended, and where the fresh one is."""
        await self.swept()
        if self.session is not None and self.session.alive:
            return None
        if self._death:
            self._news.append(f"the shell had ended ({self._death}): this ran in a fresh one, without its variables")
        here = nearest_existing(cwd)
        if here != cwd:
            self._news.append(f"its directory {cwd} is gone: the fresh shell is in {here}")
        why, self._death, self._fresh = self._death or "it was gone", None, True
        await self.open(here)
        return why, here

    async def replace(self, cwd: Path) -> None:
        """End the present shell, and have a fresh one in `cwd`; nothing is said of it in results."""
        session, self.session = self.session, None
        await self.swept()
        if session is not None:
            self._sweep = asyncio.get_running_loop().create_task(session.end(grace=0.2))
            await asyncio.shield(self._sweep)
        self._news.clear()
        await self.open(cwd)
        self._death, self._fresh = None, False

    async def swept(self) -> None:
        if self._sweep is not None:
            await self._sweep

    def take_news(self) -> tuple[bool, list[str]]:
        """Whether the shell is a fresh one, and what else to tell; once."""
        fresh, self._fresh, news, self._news = self._fresh, False, self._news, []
        return fresh, news


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
