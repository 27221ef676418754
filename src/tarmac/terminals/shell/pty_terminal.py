"""A live shell as a terminal: one command at a time, held by a person or by us, reopened when its shell dies.

start() → our turn? → Session.load() → CommandTracker hears what becomes of it → Ending

The tracker (command_tracker.py) holds the state of the present command; state.py draws the states.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tarmac.errors import (
    DirectoryUnavailable,
    ExecutionEnded,
    ShellFailed,
    TarmacError,
    TerminalClosed,
    TerminalHeld,
)
from tarmac.events import TerminalId
from tarmac.paths import nearest_existing, sweep_scratch
from tarmac.terminals import environment, events
from tarmac.terminals.bell import Bell
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.terminal_screen import LONGEST_SETTLING, ScreenLook
from tarmac.terminals.process import processes, tty_probe
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.command_tracker import CommandTracker
from tarmac.terminals.shell.interrupt import interrupt, kill
from tarmac.terminals.shell.keyboard import Keyboard
from tarmac.terminals.shell.monitor import Monitor, give_up
from tarmac.terminals.shell.session import Owner, Session
from tarmac.terminals.shell.shell_lifecycle import ShellLifecycle, until_ended
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.shell.state import (
    EndTold,
    Given,
    Loading,
    Restarting,
)
from tarmac.terminals.terminal import NewTerminal, Terminal
from tarmac.vt.marks import NO_HINTS

MOVE_PATIENCE = 2.0  # to hear of a move; then the command's result will tell
COMES_BACK = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between looks at a shell that should be at its prompt
FREED = (0.05, 0.1, 0.2, 0.5, 1.0)  # the same after what its prompt hook ran was ended
PATIENCE = 2.0  # for the end of a shell that was killed
LOADING = 0.5  # from our line to the start mark, with much room
SCRATCH_AGE = 3600.0  # what a killed host left is removed after so long


class PtyTerminal(Terminal):
    """See `Terminal`. Opened by `open()`, which returns at the shell's first prompt."""

    provider = "pty"

    def __init__(self, shell: Shell, new: NewTerminal, *, id: TerminalId, cookie: str = "") -> None:
        super().__init__(new, id=id, cookie=cookie)
        self.shell = shell
        self.env = environment.build(new.environ, new.settings, cookie=self.cookie)
        self.baseline: set[processes.Process] = set()  # what ran in the background when the current command started
        self.keyboard = Keyboard()
        self.tracker = CommandTracker(self)
        self.monitor = Monitor(self)
        self._lifecycle = ShellLifecycle(
            shell, new.settings, env=self.env, owner=self.tracker, make_session=self._make_session
        )
        self._released = Bell()  # a prompt of ours, the end of a command or of the shell

    def _make_session(self, shell: Shell, settings: Settings, *, owner: Owner, env: Mapping[str, str]) -> Session:
        return Session(shell, settings, owner=owner, env=env)

    @property
    def session(self) -> Session | None:
        """The live shell."""
        return self._lifecycle.session

    @property
    def alive(self) -> bool:
        return not self._closed and self.session is not None and self.session.alive

    @property
    def held(self) -> bool:
        return self.keyboard.held

    @property
    def has_jobs(self) -> bool:
        return bool(self.jobs())

    def jobs(self) -> set[processes.Process]:
        """What commands have started in it and still runs."""
        return self._need_session().jobs() if self.alive else set()

    @property
    def shell_version(self) -> str:
        return self.session.version if self.session is not None else ""

    @property
    def quality(self) -> str:
        if self.session is None or not self.session.integrated:
            return "none"
        return "basic" if self.hints != NO_HINTS else "rich"

    async def open(self) -> None:
        """Start the shell and wait for its first prompt, within `shell_integration_timeout`."""
        await self._lifecycle.open(self.cwd)
        self.shell = self._need_session().shell  # start-up files may have put another in its place

    # Starting a command

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        session = self._lifecycle.session
        if session is None or not session.prompted or not session.alive or self.held or self.current is not None:
            await self._until_free()
            await self._live_shell()
            session = self._need_session()
        fresh, notes = self._lifecycle.take_news()
        move = b"" if cwd is None or cwd == self.cwd else os.fsencode(cwd)
        if not move and session.directory_is_gone():
            target = nearest_existing(self.cwd)
            notes.append(f"its directory {self.cwd} was deleted: moved to {target}")
            move = os.fsencode(target)
        self.baseline = processes.descendants(session.pid) if session.has_children() else set()
        execution = self._new_execution(command, notes=tuple(notes), echo=True)
        execution.fresh_shell = fresh
        self._load(session, execution, data, move)
        if move:
            await self._confirm_move(execution, move)
        return execution

    def _load(
        self, session: Session, execution: Execution, data: bytes, move: bytes, *, restarted: bool = False
    ) -> None:
        session.pty.forget_input()
        session.has_had_jobs = session.has_had_jobs or bool(self.baseline)
        try:
            session.load(execution.number, execution.command, data, cwd=move, jobs=session.has_had_jobs)
        except TarmacError:  # a full disk, say
            self.tracker.end(execution, "not run", "unknown", None)
            raise
        # The shell works meanwhile.
        self.tracker.loading(Given(execution, data, move, session.oom_kills(), restarted))
        if not execution.internal:
            session.fresh = False
        self.monitor.watch()

    async def _confirm_move(self, execution: Execution, move: bytes) -> None:
        """Wait until it moved and began, or could not; not for longer than a moment, as a prompt's hook may hang."""
        try:
            await execution.until_begun(MOVE_PATIENCE)
        except asyncio.CancelledError:  # the caller is gone, and nobody else has a handle on it
            self._untold(execution)
            await asyncio.shield(execution.kill())
            raise
        if execution.refused:
            raise DirectoryUnavailable(
                f"the terminal could not move to {os.fsdecode(move)}; the command was not run",
                hint="does it exist, and may you enter it?",
            )

    def _untold(self, execution: Execution) -> None:
        if execution.fresh_shell:
            self._lifecycle.note_fresh("the shell had ended: this ran in a fresh one, without its variables")

    async def _until_free(self) -> None:
        """Wait until the shell is at its prompt and nobody is typing."""
        session = self.session
        if session is not None and session.prompted and not self.held and self.current is None:
            return
        end = time.monotonic() + self.settings.hold_timeout
        while self.held or self.current is not None:
            left = end - time.monotonic()
            if left <= 0:
                what = "is typing" if self.held else "is running a command"
                raise TerminalHeld(
                    f"a person {what} in terminal {self.id}",
                    hint="wait until their line is done, or use another terminal",
                )
            await self._released.wait(left)
            self._check_open()
        session = self.session
        if session is None or not session.alive or session.prompted:
            return
        # The prompt's mark may be late (slow hooks) or never come (a command took all our hooks away, or one hangs).
        if not await self._comes_back(session, COMES_BACK):
            self._lifecycle.note(session.end_hook())
            if not await self._comes_back(session, FREED):
                give_up(session)
                await session.until_dead(PATIENCE)

    @staticmethod
    async def _comes_back(session: Session, looks: tuple[float, ...]) -> bool:
        """Whether the shell comes back to its prompt, or ends."""
        for seconds in looks:
            if await session.until_prompted(seconds) or session.waits() or not session.alive:
                return True
        return False

    async def _live_shell(self) -> None:
        """Have a shell that lives: the present one, or a fresh one in the same directory."""
        self._check_open()
        revived = await self._lifecycle.revive(self.cwd)
        if revived is not None:
            why, here = revived
            self._need_session().pty.resize(*self.tape.size)
            self._moved(here)
            self._emit(events.ShellReplaced(at=time.monotonic(), terminal=self.id, why=why))

    def _need_session(self) -> Session:
        if self.session is None or self._closed:
            raise TerminalClosed(f"terminal {self.id} is closed", hint="open another one")
        return self.session

    # Runner: what an Execution asks for

    def waiting(self, execution: Execution) -> Waiting | None:
        return self.monitor.waiting(execution)

    def tell_waiting(self, seen: Waiting, execution: Execution) -> None:
        """The command began to wait for input."""
        if not execution.internal:
            self._emit(
                events.AwaitingInput(
                    at=time.monotonic(),
                    terminal=self.id,
                    number=execution.number,
                    wants=str(seen.wants),
                    name=seen.name,
                    prompt=seen.prompt,
                )
            )

    def send_input(self, execution: Execution, data: bytes) -> None:
        if self.current is not execution or self.session is None:
            raise ExecutionEnded(f"`{execution.command[:60]}` is not running any more; nothing was sent")
        execution.typed(data, hidden=self.session.pty.hides_input())
        execution.asleep = tty_probe.sleep_of(self.session.probe())
        self.session.pty.write(data)

    def close_input(self, execution: Execution) -> None:
        self.send_input(execution, b"\x04")

    async def withdraw(self, execution: Execution) -> None:
        session = self.session
        if isinstance(self.tracker.state, EndTold) and session is not None:
            self.tracker.hook_hangs(self.tracker.state, session)
        if session is None or not session.alive or not isinstance(self.tracker.state, Loading):
            return
        session.withdraw()
        await session.until_read()  # its start mark may be on the way
        if session.in_front() and not session.waits():  # it may be on its way from our line to the command
            await execution.until_begun(LOADING)
        if isinstance(self.tracker.state, Loading) and self.tracker.state.given.execution is execution:
            name = session.busy_with()
            busy = f"`{name}`, which one of its hooks started" if name else "something else"
            note = f"the shell did not take the command: it is busy with {busy}; the command was not run"
            self.tracker.withdrawn = execution.number
            self.tracker.end(execution, "not run", "unknown", None, notes=(note,))

    async def interrupt(self, execution: Execution) -> None:
        if self.session is not None and self.current is execution:
            await interrupt(self, self.session, execution)

    async def kill(self, execution: Execution) -> None:
        if self.session is not None and self.current is execution:
            await kill(self, self.session, execution)

    def tree(self, *, own: bool) -> set[processes.Process]:
        session = self.session
        shell = processes.look(session.pid) if session is not None and session.alive else None
        found = processes.descendants(shell.pid) | {shell} if shell else set()
        return found - self.baseline if own else found

    # A person

    async def type(self, data: bytes | str) -> None:
        """What a person types. From their first byte until the next prompt the terminal is theirs."""
        self._check_open()
        keys = data.encode() if isinstance(data, str) else data
        if keys:
            await self._live_shell()
            session = self._need_session()
            if self.current is not None:
                self.current.typed(keys, hidden=session.pty.hides_input())
            self.keyboard.type(session, keys, running=self.current is not None)

    async def look(self, *, since: str | None = None, limit: float = LONGEST_SETTLING) -> ScreenLook:
        return await self.screen.look(self.session, self.current, since=since, limit=limit)

    # The rest

    def resize(self, *, rows: int, columns: int) -> None:
        super().resize(rows=rows, columns=columns)
        self._need_session().pty.resize(rows, columns)
        self.tape.resize(rows, columns)

    async def reset(self, cwd: Path) -> None:
        """A fresh shell in its place, in `cwd`; jobs of the old one end with it."""
        async with self._turn:
            self._check_open()
            await self._until_free()
            await self._lifecycle.replace(cwd)
            self.moves = 0
            self.tape.clear()
            self.tape.resize(self.settings.rows, self.settings.columns)
            self._moved(cwd)
            self._emit(events.ShellReplaced(at=time.monotonic(), terminal=self.id, why="it was reset"))

    async def environment(self) -> dict[str, str | None]:
        """What its commands changed in the environment since the shell's start; asked of the shell while it is idle."""
        async with self._turn:
            self._check_open()
            await self._until_free()
            await self._live_shell()
            session = self._need_session()
            theirs = session.exports_file()
            target = theirs or self.spools.folder() / "exports"
            command = session.shell.export(target)
            try:
                execution = self._new_execution(command, internal=True)
                self.tracker.internal = execution.number
                self._load(session, execution, os.fsencode(command), b"")
                if not await until_ended(execution, session, limit := self.settings.shell_integration_timeout):
                    raise ShellFailed(f"the shell did not tell its environment within {limit:g} s")
                now = target.read_text("utf-8", "surrogateescape")
                if theirs is None:
                    target.unlink()
            except OSError as error:
                why = error.what if isinstance(error, TarmacError) else error.strerror
                raise ShellFailed(f"the shell did not tell its environment: {why}") from error
        parse = session.shell.parse_exports
        return environment.changes(parse(session.files.exports()), parse(now))

    async def _close(self) -> None:
        self.monitor.stop()
        self._lifecycle.stop()
        restarting = self.tracker.state.task if isinstance(self.tracker.state, Restarting) else None
        execution = self.current
        session = self.session
        if session is not None:
            if execution is not None:
                execution.cause = execution.cause or "terminal closed"
            await session.end(grace=0.2, busy=execution is not None)
            if execution is not None and execution.running:
                self.tracker.end(execution, "terminal closed", "unknown", None)
        if restarting is not None:
            await restarting
        await self._lifecycle.swept()
        await self.tracker.compacted()
        self.keyboard = Keyboard()
        self._released.ring()
        self.spools.clear()
        sweep = partial(sweep_scratch, os.environ, older_than=SCRATCH_AGE)
        await asyncio.get_running_loop().run_in_executor(None, sweep)
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))
