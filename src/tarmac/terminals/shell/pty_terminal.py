"""A live shell as a terminal: one command at a time, held by a person or by us, reopened when its shell dies.

start() → our turn? → Session.load() → what shell_terminal.py hears → Result
"""

import asyncio
import os
import time
from functools import partial
from pathlib import Path

from tarmac.errors import DirectoryUnavailable, ExecutionEnded, ShellFailed, TarmacError, TerminalHeld
from tarmac.paths import nearest_existing, sweep_scratch
from tarmac.terminals import environment, events
from tarmac.terminals.execution import Execution
from tarmac.terminals.input.keyboard import Keyboard
from tarmac.terminals.process import processes
from tarmac.terminals.shell.interrupt import interrupt, kill
from tarmac.terminals.shell.session import Session
from tarmac.terminals.shell.shell_terminal import ShellTerminal

MOVE_PATIENCE = 2.0  # to hear of a move; then the command's result will tell
LOADING = 0.5  # from our line to the start mark, with much room
SCRATCH_AGE = 3600.0  # what a killed host left is removed after so long


class PtyTerminal(ShellTerminal):
    """See `Terminal`. Opened by `open()`, which returns at the shell's first prompt."""

    async def open(self) -> None:
        """Start the shell and wait for its first prompt, within `shell_integration_timeout`."""
        await self._keeper.open(self.cwd)
        self.shell = self._need_session().shell  # start-up files may have put another in its place

    # Starting a command

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        session = self._keeper.session
        if session is None or not session.prompted or not session.alive or self.held or self.current is not None:
            await self._until_free()
            await self._live_shell()
            session = self._need_session()
        fresh, notes = self._keeper.take_news()
        move = b"" if cwd is None or cwd == self.cwd else os.fsencode(cwd)
        if not move and session.directory_is_gone():
            target = nearest_existing(self.cwd)
            notes.append(f"its directory {self.cwd} was deleted: moved to {target}")
            move = os.fsencode(target)
        self.baseline = processes.descendants(session.pid) if session.has_children() else set()
        execution = self._new_execution(command, notes=tuple(notes))
        execution.fresh_shell = fresh
        self._load(session, execution, data, move)
        if move:
            await self._confirm_move(execution)
        return execution

    async def _confirm_move(self, execution: Execution) -> None:
        """Wait until it moved and began, or could not; not for longer than a moment, as a prompt's hook may hang."""
        try:
            await execution.until_begun(MOVE_PATIENCE)
        except asyncio.CancelledError:  # the caller is gone, and nobody else has a handle on it
            await asyncio.shield(execution.kill())
            raise
        if execution.refused:
            raise DirectoryUnavailable(
                f"the terminal could not move to {os.fsdecode(self._move)}; the command was not run",
                hint="does it exist, and may you enter it?",
            )

    async def _until_free(self) -> None:
        """Wait until the shell is at its prompt and nobody is typing (T2)."""
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
        # The prompt's mark may be late (slow hooks) or never come (a command took all our hooks away at once).
        for seconds in (0.05, 0.2, 0.5, 1.0, 2.0, 5.0):
            if await session.until_prompted(seconds) or session.waits() or not session.alive:
                return
        raise ShellFailed(
            f"the shell of {self.id} does not come back to its prompt", hint="a prompt hook may hang: close it"
        )

    # Runner: what an Execution asks for

    def send_input(self, execution: Execution, data: bytes) -> None:
        if self.current is not execution or self.session is None:
            raise ExecutionEnded(f"`{execution.command[:60]}` is not running any more; nothing was sent")
        execution.typed(data, hidden=self.session.pty.hides_input())
        self.session.pty.write(data)

    def close_input(self, execution: Execution) -> None:
        self.send_input(execution, b"\x04")

    async def withdraw(self, execution: Execution) -> None:
        session = self.session
        if session is None or not session.alive or self.current is not execution:
            return
        session.withdraw()
        await session.until_read()  # its start mark may be on the way
        if not self._is_busy_elsewhere(session):
            await execution.until_begun(LOADING)
        if self.current is execution and not execution.began and self._again is None:
            who = self._in_front(session)
            note = f"the shell did not take the command: it is busy with {who}; the command was not run"
            self._withdrawn = execution.number
            self._end(execution, "not run", "unknown", None, notes=(note,))

    def _is_busy_elsewhere(self, session: Session) -> bool:
        """Whether the shell can't be on its way from our line to the command: it waits, or has a program in front."""
        return not session.in_front() or session.waits()

    def _in_front(self, session: Session) -> str:
        group = session.pty.foreground()
        name = processes.name(group) if group not in (-1, session.pid) else ""
        return f"`{name}`, which one of its hooks started" if name else "something else"

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
        """What a person types. From their first byte until the next prompt the terminal is theirs (T2)."""
        self._check_open()
        keys = data.encode() if isinstance(data, str) else data
        if keys:
            await self._live_shell()
            session = self._need_session()
            if self.current is not None:
                self.current.typed(keys, hidden=session.pty.hides_input())
            self.keyboard.type(session, keys, running=self.current is not None)

    # The rest

    def resize(self, *, rows: int, columns: int) -> None:
        super().resize(rows=rows, columns=columns)
        self._need_session().pty.resize(rows, columns)

    async def reset(self, cwd: Path) -> None:
        """A fresh shell in its place, in `cwd`; jobs of the old one end with it."""
        async with self._turn:
            self._check_open()
            await self._until_free()
            await self._keeper.replace(cwd)
            self.moves = 0
            self._had_jobs = False
            self._recent.clear()
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
            # Our own question: not in the history, not told to anybody.
            last, used, listeners, self._listeners = self.last_command, self.used_at, self._listeners, []
            self._quiet = True
            try:
                execution = self._new_execution(command)
                self._load(session, execution, os.fsencode(command), b"")
                await execution.ended(self.settings.shell_integration_timeout)
                now = target.read_text("utf-8", "surrogateescape")
                if theirs is None:
                    target.unlink()
            except OSError as error:
                why = error.what if isinstance(error, TarmacError) else error.strerror
                raise ShellFailed(f"the shell did not tell its environment: {why}") from error
            finally:
                self._listeners = listeners
                self.last_command, self.used_at = last, used
        parse = session.shell.parse_exports
        return environment.changes(parse(session.files.exports()), parse(now))

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._keeper.stop()
        execution = self.current
        session = self.session
        if session is not None:
            if execution is not None:
                execution.cause = execution.cause or "terminal closed"
            await session.end(grace=0.2, busy=execution is not None)
            if execution is not None and execution.running:
                self._end(execution, "terminal closed", "unknown", None)
        if self._again is not None:
            await self._again
        await self._keeper.swept()
        for task in list(self._compacting):
            await task
        self.keyboard = Keyboard()
        self._released.ring()
        self.spools.clear()
        sweep = partial(sweep_scratch, os.environ, older_than=SCRATCH_AGE)
        await asyncio.get_running_loop().run_in_executor(None, sweep)
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))
