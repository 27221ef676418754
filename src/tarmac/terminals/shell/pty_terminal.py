"""A live shell as a terminal: one command at a time, held by a person or by us, reopened when its shell dies.

start() → our turn? → Session.load() → on_started → on_output… → on_ended (or on_prompt, on_answered, on_exit) → Ending

`state` says what becomes of the present command; state.py draws its transitions, and the handlers below are these.
Evidence for an end, in this order: the end mark; the prompt's mark with the same number (after an interrupt the rest
of the line, and our end mark with it, is discarded); waitpid; asked. Without any of them the command has not ended.
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
from tarmac.events import TaskId, TerminalId
from tarmac.paths import nearest_existing, sweep_scratch
from tarmac.terminals import environment, events
from tarmac.terminals.bell import Bell
from tarmac.terminals.execution import Execution
from tarmac.terminals.input.keyboard import Keyboard
from tarmac.terminals.process import processes
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Ending, Evidence, Reason
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.ending import INTERRUPTED, ending_of, was_killed_for_memory
from tarmac.terminals.shell.interrupt import interrupt, kill
from tarmac.terminals.shell.monitor import Monitor, give_up
from tarmac.terminals.shell.owner import Turn
from tarmac.terminals.shell.session import Session
from tarmac.terminals.shell.shell_lifecycle import ShellLifecycle
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.shell.state import (
    Asked,
    Begun,
    ByPerson,
    EndTold,
    Given,
    Idle,
    Loading,
    Restarting,
    Running,
    State,
)
from tarmac.terminals.terminal import Origin, Terminal, echo_of
from tarmac.vt.marks import Mark

MOVE_PATIENCE = 2.0  # to hear of a move; then the command's result will tell
LOADING = 0.5  # from our line to the start mark, with much room
SCRATCH_AGE = 3600.0  # what a killed host left is removed after so long


class PtyTerminal(Terminal):
    """See `Terminal`. Opened by `open()`, which returns at the shell's first prompt."""

    provider = "pty"

    def __init__(
        self,
        shell: Shell,
        *,
        id: TerminalId,
        cwd: Path,
        settings: Settings,
        base_env: Mapping[str, str],
        name: str = "",
        origin: Origin = "agent",
        task: TaskId | None = None,
    ) -> None:
        super().__init__(id=id, cwd=cwd, settings=settings, name=name, origin=origin, task=task)
        self.shell = shell
        self.env = environment.build(base_env, settings, cookie=self.cookie)
        self.state: State = Idle()
        self.baseline: set[processes.Process] = set()  # what ran in the background when the current command started
        self.keyboard = Keyboard()
        self.monitor = Monitor(self)
        self._lifecycle = ShellLifecycle(shell, settings, env=self.env, owner=self)
        self._released = Bell()  # a prompt of ours, the end of a command or of the shell
        self._internal = 0  # the number of our last internal command: its prompt is no news
        self._withdrawn = 0  # the number of the last command that was taken back before it began
        self._compacting: set[asyncio.Task[None]] = set()

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
        return "rich" if self.session is not None and self.session.integrated else "none"

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
        execution = self._new_execution(command, notes=tuple(notes))
        execution.fresh_shell = fresh
        self._load(session, execution, data, move)
        if move:
            await self._confirm_move(execution, move)
        return execution

    def _load(
        self, session: Session, execution: Execution, data: bytes, move: bytes, *, restarted: bool = False
    ) -> None:
        session.pty.forget_input()
        self.state = Loading(Given(execution, data, move, session.oom_kills(), restarted))
        session.has_had_jobs = session.has_had_jobs or bool(self.baseline)
        try:
            session.load(execution.number, execution.command, data, cwd=move, jobs=session.has_had_jobs)
        except TarmacError:  # a full disk, say
            self._end(execution, "not run", "unknown", None)
            raise
        if not execution.internal:  # the shell works meanwhile
            session.fresh = False
            self._wrote(echo_of(execution.command))
        self.monitor.watch()

    async def _confirm_move(self, execution: Execution, move: bytes) -> None:
        """Wait until it moved and began, or could not; not for longer than a moment, as a prompt's hook may hang."""
        try:
            await execution.until_begun(MOVE_PATIENCE)
        except asyncio.CancelledError:  # the caller is gone, and nobody else has a handle on it
            await asyncio.shield(execution.kill())
            raise
        if execution.refused:
            raise DirectoryUnavailable(
                f"the terminal could not move to {os.fsdecode(move)}; the command was not run",
                hint="does it exist, and may you enter it?",
            )

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
        # The prompt's mark may be late (slow hooks) or never come (a command took all our hooks away at once).
        for seconds in (0.05, 0.2, 0.5, 1.0, 2.0, 5.0):
            if await session.until_prompted(seconds) or session.waits() or not session.alive:
                return
        raise ShellFailed(
            f"the shell of {self.id} does not come back to its prompt", hint="a prompt hook may hang: close it"
        )

    async def _live_shell(self) -> None:
        """Have a shell that lives: the present one, or a fresh one in the same directory."""
        self._check_open()
        revived = await self._lifecycle.revive(self.cwd)
        if revived is not None:
            why, here = revived
            self._moved(here)
            self._emit(events.ShellReplaced(at=time.monotonic(), terminal=self.id, why=why))

    def _need_session(self) -> Session:
        if self.session is None or self._closed:
            raise TerminalClosed(f"terminal {self.id} is closed", hint="open another one")
        return self.session

    # What the session tells: the transitions of `state`

    def on_output(self, data: bytes) -> None:
        match self.state:
            case Idle():
                if not self.keyboard.switching:
                    self._wrote(data)  # prompts, and jobs that print while nobody runs anything
            case Loading() | Restarting():
                pass  # the echo of our line
            case ByPerson(execution):
                self._feed(execution, self._masked(execution, data))
            case EndTold(given) as told:
                data = self._masked(given.execution, data)
                if not told.hold(data):
                    self._feed(given.execution, data)
            case Running(given) | Asked(given):
                self._feed(given.execution, self._masked(given.execution, data))

    def _masked(self, execution: Execution, data: bytes) -> bytes:
        return data if execution.secrets is None else execution.secrets.mask(data)

    def _feed(self, execution: Execution, data: bytes) -> None:
        execution.feed(data)
        if not execution.internal:
            self._wrote(data)
        if execution.spool.crowded:
            self._compact(execution)

    def on_forged(self, mark: Mark) -> None:
        if self.current is not None:
            self.current.forged_marks += 1
        self.on_output(mark.raw)

    def on_started(self, number: int) -> None:
        match self.state:
            case Loading(given) if given.execution.number == number:
                self.state = Running(given)
                given.execution.begin()
            case _ if number == self._withdrawn and self.session is not None:
                give_up(self.session)  # its caller was told that it does not run

    def on_not_started(self) -> None:
        if isinstance(self.state, Loading):
            self.monitor.look_soon()

    def on_refused(self, number: int, why: str) -> None:
        match self.state:
            case Loading(given, looks=0) if given.execution.number == number and why == "stale" and self.session:
                give_up(self.session)  # somebody played with our number: this shell won't run it
            case Loading(given) if given.execution.number == number:
                notes = (f"the terminal could not move to {os.fsdecode(given.move)}",) if given.move else ()
                given.execution.refused = True
                self._end(given.execution, "not run", "mark", None, notes=notes)

    def on_ended(self, number: int, status: int, pipestatus: tuple[int, ...]) -> None:
        begun, session = self._begun(number), self.session
        if begun is None or session is None:
            return
        self._moved(session.directory())
        self._end_is_told(begun, session, self._ending(begun.given.execution, session, "mark", status, pipestatus))

    def _end_is_told(self, begun: Begun, session: Session, ending: Ending) -> None:
        """By an end mark. It counts if the shell is in front; else the prompt, or the death of the shell, decides."""
        execution = begun.given.execution
        self._give_up(begun)  # two end marks: the first was a lie
        if session.in_front():
            self._finish(execution, ending)
        else:
            self.state = told = EndTold(begun.given, ending, looks=begun.looks)
            execution.note(told.note)

    def on_answered(self, number: int, status: int | None, pipestatus: tuple[int, ...]) -> None:
        begun, session = self._begun(number), self.session
        if begun is None or session is None:
            return
        execution = begun.given.execution
        self._moved(session.directory())
        if status is None:
            note = "the shell's variables are read-only: it could not note how the command ended"
            self._end(execution, execution.cause or "done", "asked", None, notes=(note,))
        else:
            self._finish(execution, self._ending(execution, session, "asked", status, pipestatus))

    def on_prompt(
        self, number: int, status: int, turn: Turn, pipestatus: tuple[int, ...], *, sure: bool, discarded: bool = False
    ) -> None:
        begun, session = self._begun(number), self.session
        if session is None:
            return
        if not session.in_front():
            if begun is not None and sure and session.has_died():
                ending = self._ending(begun.given.execution, session, "mark", status, pipestatus)
                self._end_is_told(begun, session, ending)
            return
        self._moved(session.directory())
        if isinstance(self.state, ByPerson):
            self._end(self.state.execution, "done", "mark", status)
            turn = "was theirs" if turn == "theirs" else turn  # they took our hook away; but their line is done
        elif begun is not None:
            if discarded and begun.given.execution.cause:
                status, pipestatus = INTERRUPTED, ()  # whatever zsh says of a line that it did not get through
            self._ended_by_prompt(begun, session, status, pipestatus, sure=sure)
        self.keyboard.prompt(session, turn)
        if turn == "ours":
            self._released.ring()
            if self.current is None and self._listeners and number != self._internal:
                self._emit(events.BecameIdle(at=time.monotonic(), terminal=self.id))

    def _ended_by_prompt(
        self, begun: Begun, session: Session, status: int, pipestatus: tuple[int, ...], *, sure: bool
    ) -> None:
        execution = begun.given.execution
        if isinstance(begun, EndTold) and sure and begun.ending.exit_code == status:
            self.confirm(begun)
            return
        begun = self._give_up(begun)
        if not sure and execution.cause and status > 128:
            # bash leaves a $? above 128 as it was; a line that it discards with such a status was interrupted.
            self._finish(execution, self._ending(execution, session, "mark", INTERRUPTED, ()))
        elif sure:
            self._finish(execution, self._ending(execution, session, "mark", status, pipestatus))
        else:  # something printed our prompt; or it is the prompt, and our own words are gone
            self.monitor.look_soon()

    def confirm(self, told: EndTold) -> None:
        """The end that was told is one; what came after it was a prompt hook's."""
        self._finish(told.given.execution, told.ending, at=told.at)

    def _give_up(self, begun: Begun) -> Begun:
        """An end that was told is none: what came after it is output."""
        if not isinstance(begun, EndTold):
            return begun
        execution = begun.given.execution
        execution.notes.remove(begun.note)
        execution.feed(bytes(begun.held))
        self.state = running = Running(begun.given, looks=begun.looks)
        return running

    def _begun(self, number: int) -> Begun | None:
        """The command of that number, if it has begun."""
        state = self.state
        if isinstance(state, Running | Asked | EndTold) and state.given.execution.number == number:
            return state
        return None

    def on_person_ran(self, command: str) -> None:
        if self.current is None:
            execution = self._new_execution(command, by_person=True)
            self.state = ByPerson(execution)
            execution.begin()

    def on_exit(self, status: int) -> None:
        code = status if status >= 0 else 128 - status
        self._lifecycle.died(status, leftovers=not self._closed)
        match self.state:
            case EndTold() as told:
                self.confirm(told)  # it had ended, then its shell did
            case Running(given) | Asked(given):
                self._end(given.execution, given.execution.cause or "terminal closed", "waitpid", code)
            case ByPerson(execution):
                self._end(execution, execution.cause or "terminal closed", "waitpid", code)
            case Restarting() if not self._closed:
                pass  # the fresh shell left; its task decides
            case Loading(given) if not self._closed and not given.execution.cause and not given.restarted:
                self.state = Restarting(given, asyncio.get_running_loop().create_task(self._run_again(given)))
            case Loading(given) | Restarting(given):
                self._not_run(given.execution)
        self.keyboard = Keyboard()
        self._released.ring()
        if self.session is not None and self.session.integrated and not self._closed:
            self._emit(events.ShellEnded(at=time.monotonic(), terminal=self.id, status=status))

    async def _run_again(self, given: Given) -> None:
        """The shell died before the command began, so it was not run: run it in a fresh one, once."""
        execution = given.execution
        try:
            await self._live_shell()
            execution.fresh_shell, notes = self._lifecycle.take_news()
            execution.notes += notes
            self._load(self._need_session(), execution, given.data, given.move, restarted=True)
        except TarmacError:
            self._not_run(execution)

    def _not_run(self, execution: Execution) -> None:
        if not execution.running:
            return
        if self._closed:
            self._end(execution, "terminal closed", "waitpid", None)
        else:
            notes = ("the shell ended before the command was started",)
            self._end(execution, "not run", "waitpid", None, notes=notes)

    # Ends

    def _ending(
        self, execution: Execution, session: Session, evidence: Evidence, status: int, pipestatus: tuple[int, ...]
    ) -> Ending:
        ending = ending_of(
            execution,
            session,
            status=status,
            pipestatus=pipestatus,
            evidence=evidence,
            cwd=self.cwd,
            baseline=self.baseline,
        )
        if ending.reason == "stopped" or (execution.cause and session.has_children()):
            session.has_had_jobs = True
        return ending

    def _end(
        self, execution: Execution, reason: Reason, evidence: Evidence, code: int | None, notes: tuple[str, ...] = ()
    ) -> None:
        self._finish(execution, Ending(reason=reason, evidence=evidence, cwd=self.cwd, exit_code=code, notes=notes))

    def _finish(self, execution: Execution, ending: Ending, *, at: float | None = None) -> None:
        state, self.state = self.state, Idle()
        if isinstance(state, EndTold):
            execution.notes.remove(state.note)
        if (
            isinstance(state, Running | Asked | EndTold)
            and self.session is not None
            and was_killed_for_memory(execution, ending, state.given.oom_kills, self.session.oom_kills)
        ):
            execution.note("out of memory: the kernel killed it")
        if execution.secrets is not None and (rest := execution.secrets.rest()):
            self._feed(execution, rest)
        execution.finish(ending, at=at)
        self._finished_execution(execution)
        self._released.ring()

    def _compact(self, execution: Execution) -> None:
        """Let the oldest output go, in a thread; the program waits meanwhile."""
        session = self._need_session()
        session.pty.pause()

        async def compact() -> None:
            await asyncio.get_running_loop().run_in_executor(None, execution.spool.compact)
            session.pty.resume()

        task = asyncio.get_running_loop().create_task(compact())
        self._compacting.add(task)
        task.add_done_callback(self._compacting.discard)

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
        self.session.pty.write(data)

    def close_input(self, execution: Execution) -> None:
        self.send_input(execution, b"\x04")

    async def withdraw(self, execution: Execution) -> None:
        session = self.session
        if session is None or not session.alive or not isinstance(self.state, Loading):
            return
        session.withdraw()
        await session.until_read()  # its start mark may be on the way
        if session.in_front() and not session.waits():  # it may be on its way from our line to the command
            await execution.until_begun(LOADING)
        if isinstance(self.state, Loading) and self.state.given.execution is execution:
            group = session.pty.foreground()
            name = processes.name(group) if group not in (-1, session.pid) else ""
            busy = f"`{name}`, which one of its hooks started" if name else "something else"
            note = f"the shell did not take the command: it is busy with {busy}; the command was not run"
            self._withdrawn = execution.number
            self._end(execution, "not run", "unknown", None, notes=(note,))

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

    # The rest

    def resize(self, *, rows: int, columns: int) -> None:
        super().resize(rows=rows, columns=columns)
        self._need_session().pty.resize(rows, columns)

    async def reset(self, cwd: Path) -> None:
        """A fresh shell in its place, in `cwd`; jobs of the old one end with it."""
        async with self._turn:
            self._check_open()
            await self._until_free()
            await self._lifecycle.replace(cwd)
            self.moves = 0
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
            try:
                execution = self._new_execution(command, internal=True)
                self._internal = execution.number
                self._load(session, execution, os.fsencode(command), b"")
                await execution.ended(self.settings.shell_integration_timeout)
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
        restarting = self.state.task if isinstance(self.state, Restarting) else None
        execution = self.current
        session = self.session
        if session is not None:
            if execution is not None:
                execution.cause = execution.cause or "terminal closed"
            await session.end(grace=0.2, busy=execution is not None)
            if execution is not None and execution.running:
                self._end(execution, "terminal closed", "unknown", None)
        if restarting is not None:
            await restarting
        await self._lifecycle.swept()
        for task in list(self._compacting):
            await task
        self.keyboard = Keyboard()
        self._released.ring()
        self.spools.clear()
        sweep = partial(sweep_scratch, os.environ, older_than=SCRATCH_AGE)
        await asyncio.get_running_loop().run_in_executor(None, sweep)
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))
