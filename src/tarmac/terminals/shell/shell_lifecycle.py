"""Open a live shell, open a fresh one when it died, and remember what the next result must say about that.

until_up() → "" at the first prompt or the end of the shell; else why it will not come up

Start-up files may take their time, ask something, start another program, or put another shell in the place of ours.
The kernel tells which program waits for keys. A question is never answered. One line is typed, once: into the line
editor of a known shell that stands where ours was.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from tarmac.errors import ShellFailed, TarmacError, TerminalClosed
from tarmac.paths import nearest_existing
from tarmac.terminals.execution import Execution
from tarmac.terminals.process.processes import below, stat
from tarmac.terminals.process.signals import TimeToAct
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.dialects import KNOWN, find_shell
from tarmac.terminals.shell.session import Owner, Session
from tarmac.terminals.shell.shells import Shell

FIRST_LOOK = 0.25  # most shells are up by then
NEXT_LOOK = 0.1
INJECT_AFTER = 1.5
LONGEST_QUESTION = 200


async def until_up(session: Session, seconds: float) -> str:
    """Wait for the first prompt, up to `seconds` in which its processes could act; not while one waits for keys."""
    waited = 0.0
    time_to_act = _time_to_act(session)
    before: Waiting | None = None
    injected = False
    pause = FIRST_LOOK
    while not session.prompted and session.alive:
        if waited >= seconds:
            return f"it showed no prompt of ours within {seconds:g} s"
        await session.until_prompted(pause)
        waited += time_to_act.of(pause)
        pause = NEXT_LOOK
        seen = session.probe() if session.alive and not session.prompted else None
        if seen is None or seen != before or session.pty.has_unread_input():
            before = seen
        elif not _is_at_its_prompt(session, seen):
            return _why(session, seen)
        elif not injected and waited > INJECT_AFTER:
            injected = True
            try:
                session.inject(find_shell(os.readlink(f"/proc/{session.pid}/exe")))
            except (OSError, TarmacError):
                return _why(session, seen)
    # It may show a prompt and leave at once.
    if session.alive:
        await session.learn_prompt()
    return ""


async def until_ended(execution: Execution, session: Session, seconds: float) -> bool:
    """Wait for the end of what the shell does for us, up to `seconds` in which its processes could act."""
    waited = 0.0
    time_to_act = _time_to_act(session)
    while waited < seconds and not await execution.ended(NEXT_LOOK):
        waited += time_to_act.of(NEXT_LOOK)
    return not execution.running


def _time_to_act(session: Session) -> TimeToAct:
    return TimeToAct(lambda: [stat(session.pid), *(each for _, each in below(session.pid))])


def _is_at_its_prompt(session: Session, seen: Waiting) -> bool:
    """Whether it is a shell's line editor that waits, in the place of the shell we started, with its start-up done."""
    if seen.wants is not Wants.KEYS or seen.process.pid != session.pid or seen.name not in KNOWN:
        return False
    if session.pty.echoes():  # `read -k`: a line editor shows by itself what is typed
        return False
    # Ours before its first prompt: one of its start-up files uses the editor to ask. (zsh has that file open; and its
    # prompt may be without our hook.)
    return session.replaced() or (seen.name == "zsh" and not _sources(session.pid))


def _sources(pid: int) -> bool:
    """Whether zsh has a start-up file open: it runs it."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
        links = [os.readlink(f"/proc/{pid}/fd/{each}") for each in names if int(each) > 2]
    except OSError:
        return True
    return any(not link.startswith(("/dev/", "pipe:", "socket:", "anon_inode:")) for link in links)


def _why(session: Session, seen: Waiting) -> str:
    from tarmac.vt.text import clean

    question = clean(session.shown).rstrip().rpartition("\n")[2].strip()[-LONGEST_QUESTION:]
    if seen.process.pid == session.pid and not session.replaced():
        return f"its start-up files wait for an answer: {question!r}"
    return f"its start-up files started {seen.name}, which waits for input: {question!r}"


class NoIntegration(ShellFailed):
    """The shell started, but our integration did not come up in time."""


class ShellLifecycle:
    """One shell at a time; `session` is the present one, if any."""

    def __init__(
        self,
        shell: Shell,
        settings: Settings,
        *,
        env: Mapping[str, str],
        owner: Owner,
        make_session: Callable[..., Session] = Session,
    ) -> None:
        self.session: Session | None = None
        self._make_session = make_session
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
        await self.swept()  # the sweep after an earlier shell would find this one by its mark
        self._check()
        session = self._make_session(self._shell, self._settings, owner=self._owner, env=self._env)
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
            await asyncio.shield(self._sweep)  # a caller who is cancelled cancels it for nobody else

    def note_fresh(self, why: str) -> None:
        """The next result says that its shell is a fresh one."""
        self._fresh = True
        self._news.append(why)

    def note(self, news: str) -> None:
        """What the next result must say."""
        self._news.append(news)

    def take_news(self) -> tuple[bool, list[str]]:
        """Whether the shell is a fresh one, and what else to tell; once."""
        fresh, self._fresh, news, self._news = self._fresh, False, self._news, []
        return fresh, news


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
