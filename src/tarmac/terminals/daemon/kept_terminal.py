"""A terminal whose shell belongs to the daemon. It has the usual verbs, and another program can continue with it.

Before a command goes to the shell, terminal_records.py stores what the next program needs. When the block of
`open_terminal(outlive=True)` ends, the shell keeps running. `aclose()` ends it.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tarmac.errors import StateUnavailable, TarmacError
from tarmac.events import TaskId, TerminalId
from tarmac.terminals import environment
from tarmac.terminals.daemon.connection import daemon_folder
from tarmac.terminals.daemon.kept_pty import DaemonChild, Keeper, KeptPty
from tarmac.terminals.daemon.terminal_records import CommandRecord, EndRecord, Records, TerminalRecord
from tarmac.terminals.execution import Execution
from tarmac.terminals.process.birthmark import COOKIE
from tarmac.terminals.process.processes import Process
from tarmac.terminals.process.pty import Fences
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.shell.session import Owner, Session, Typed
from tarmac.terminals.shell.shell_process import OomCounter
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import NewTerminal, Past

END_DELAY = 0.05  # an end is stored so soon, or with the start of the next command


def new_id() -> TerminalId:
    """Unique among all programs' terminals."""
    return TerminalId(f"t-{os.urandom(3).hex()}")


def new_cookie(id: TerminalId) -> str:
    """It names no program: whoever cleans up after a killed one finds nothing of this terminal."""
    return f"{id}.daemon.{os.urandom(6).hex()}"


class LeftSandbox:
    """The sandbox of a shell that another program wrapped: it stays as long as the shell."""

    argv: ClassVar[list[str]] = []

    def close(self) -> None:
        pass


class _Unseen:
    """Hears all that a session tells, but the output."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def on_output(self, data: bytes) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)


class KeptSession(Session):
    """A shell that the daemon forked."""

    def __init__(
        self,
        shell: Shell,
        settings: Settings,
        *,
        owner: Owner,
        env: Mapping[str, str],
        keeper: Keeper,
        pty: KeptPty | None = None,
        nonce: bytes = b"",
    ) -> None:
        self.kept_pty = pty or KeptPty(keeper, rows=settings.rows, columns=settings.columns)
        super().__init__(shell, settings, owner=owner, env=env, pty=self.kept_pty, nonce=nonce)
        self.read_hidden = keeper.read_hidden
        self.before_typing: Callable[[], None] = lambda: None  # called before each line of ours is typed
        self._replays = False

    def _type(self, line: bytes, *, hidden: bool = False) -> None:
        self.before_typing()
        super()._type(line, hidden=hidden)

    # For the next program

    def record(self, terminal: "KeptTerminal") -> TerminalRecord:
        return TerminalRecord(
            id=terminal.id,
            name=terminal.name,
            task=terminal.task,
            origin=terminal.origin,
            cookie=terminal.cookie,
            spools=terminal.spools.name,
            shell=self.shell.path,
            cwd=str(terminal.cwd),
            nonce=self._nonce.decode(),
            folder=str(self.files.folder),
            pid=self.pid,
            version=self.version,
            wrapped=self._wrapped is not None,
            adopted=self._adopted.decode("latin-1"),
            prompt_call=self._prompt_call.decode("latin-1"),
            companions=[[each.pid, each.started] for each in self.companions],
            created=terminal.created,
            sessions=sorted(terminal.sessions),
            changed=terminal.changed,
        )

    def start_record(self, execution: Execution, move: bytes) -> CommandRecord:
        return CommandRecord(
            number=execution.number,
            command=execution.command,
            offset=self.kept_pty.journal.end,
            cwd=str(execution.cwd_before),
            move=os.fsdecode(move),
            internal=execution.internal,
            began=time.time(),
            started_at=execution.started_at,
            typed_line=self._typed.line if self._typed is not None else None,
            traced=self._traced,
            fresh=self.fresh,
            jobs=self.has_had_jobs,
        )

    # From the program before

    def take_over(self, record: TerminalRecord, held: list[int]) -> None:
        """Know what the program before knew when the shell was started."""
        self.files.take_over(Path(record.folder), *held)
        self._look_at(record.pid)
        self._oom = OomCounter(record.pid)
        self.integrated = True
        self.version = record.version
        self._wrapped = LeftSandbox() if record.wrapped else None
        self._adopted = record.adopted.encode("latin-1")
        self._prompt_call = record.prompt_call.encode("latin-1")
        self.companions = {Process(pid, started) for pid, started in record.companions}
        self.fresh = False
        self.has_had_jobs = True  # nobody knows
        self._fences = Fences(self.pty, self._nonce, first=int.from_bytes(os.urandom(4), "big"))
        self.when_read = self._fences.when_read
        self.until_read = self._fences.until_read

    def loaded_before(self, record: CommandRecord) -> None:
        """The program before was about to give this command to the shell."""
        self._loaded = record.number
        self._traced, self.fresh, self.has_had_jobs = record.traced, record.fresh, record.jobs
        if record.typed_line is not None:
            data, move = os.fsencode(record.command), os.fsencode(record.move)
            self._typed = Typed(record.number, record.typed_line, record.command, data, move)

    def replay(self, data: bytes, *, answered: bool, shown: bool) -> None:
        """Read earlier output again. Skip `answered` questions, and what viewers were already `shown`."""
        owner = self._owner
        self._replays, self._queries.muted = True, answered
        if shown:
            self._owner = _Unseen(owner)
        try:
            self._data(data)
        finally:
            self._replays = self._queries.muted = False
            self._owner = owner

    def _enter(self, person: bytes) -> None:
        if not self._replays:
            super()._enter(person)
            return
        self.prompted = False

    def go_on(self, child: DaemonChild) -> None:
        """Listen from now on."""
        self.kept_pty.go_on(child, on_data=self._data, on_exit=self._exited, on_death=self.when_read)
        if self.shell.pipe and child.known is None and self.in_front() and not self._reads_pipe():
            super()._enter(b"0")  # it shows its prompt, and nobody made it read our pipe

    def leave(self) -> None:
        """Let go of the shell: it goes on."""
        self.pty.close()
        if self._children >= 0:
            os.close(self._children)
            self._children = -1
        if self._oom is not None:
            self._oom.close()
            self._oom = None
        self.files.leave()


class KeptTerminal(PtyTerminal):
    """See `Terminal`. Its shell outlives this program."""

    def __init__(self, shell: Shell, new: NewTerminal, *, id: TerminalId, cookie: str = "") -> None:
        cookie = cookie or new_cookie(id)
        self.keeper = Keeper(daemon_folder(os.environ), id, cookie=cookie, settings=new.settings)
        self.keeper.on_lost = self._daemon_lost
        self.records = Records(self.keeper.folder)
        self.created = time.time()
        self.changed: dict[str, str | None] | None = None  # in the environment, when somebody last asked
        self._stored: tuple[Session, TaskId | None] | None = None
        self._ended: list[CommandRecord | EndRecord] = []  # not stored yet
        self._starting: tuple[KeptSession, Execution, bytes] | None = None  # not stored yet
        self._end_timer: asyncio.TimerHandle | None = None
        self._leaving = False
        super().__init__(shell, new, id=id, cookie=cookie)

    outlives = True

    def _make_session(self, shell: Shell, settings: Settings, *, owner: Owner, env: Mapping[str, str]) -> Session:
        session = KeptSession(shell, settings, owner=owner, env=env, keeper=self.keeper)
        session.before_typing = self._store_start
        return session

    async def open(self) -> None:
        await self._connect()
        await super().open()
        self._store()

    async def _connect(self) -> None:
        if self.keeper.lost:  # what cleans up after a killed daemon still looks for the old cookie
            self.cookie = self.env[COOKIE] = new_cookie(self.id)
            self.keeper.use_cookie(self.cookie)
        if not self.keeper.connected:
            await asyncio.get_running_loop().run_in_executor(None, self.keeper.connect)
            self.keeper.listen()

    async def _live_shell(self) -> None:
        if self.session is None or not self.session.alive:
            await self._connect()
        await super()._live_shell()

    async def reset(self, cwd: Path) -> None:
        await self._connect()
        await super().reset(cwd)
        self._store()

    def associate(self, session: str) -> None:
        super().associate(session)
        if self.alive:
            self._store()

    # What the program before did

    def take_over(self, session: KeptSession) -> None:
        self._lifecycle.session = session
        session.before_typing = self._store_start
        self._stored = (session, self.task)

    def restored(self) -> None:
        """Its shell is another one: the next result says so."""
        self._lifecycle.note_fresh("the terminal daemon ended, and the shell with it: this ran in a new one")

    def numbers_used(self, last: int) -> None:
        """Numbers up to this one were given to commands."""
        self._numbers = max(self._numbers, last)

    def remember(self, execution: Execution, start: CommandRecord, end: EndRecord) -> None:
        """A command that had ended."""
        self.numbers_used(execution.number)
        self._finished.append(execution)
        self.last_command = execution.command
        past = Past(
            execution.number,
            execution.command,
            end.by_person,
            end.exit_code,
            end.reason,
            Path(start.cwd),
            start.began,
            end.duration,
        )
        self.history.append(past)

    def begun_before(self, start: CommandRecord) -> Execution:
        """The command that was running."""
        self._numbers = start.number - 1
        execution = self._new_execution(start.command, internal=start.internal, echo=True)
        execution.started_at = execution.last_output = start.started_at
        execution.cwd_before = Path(start.cwd)
        if start.internal:
            self.tracker.internal = execution.number
        return execution

    def set_variables(self, changed: Mapping[str, str | None]) -> None:
        """Start the next shell with these variables. Secrets are never among them."""
        for name, value in changed.items():
            if value is None:
                self.env.pop(name, None)
            elif environment.masked(name, "x") == "x":
                self.env[name] = value

    # What the next program needs

    def _store(self) -> None:
        """Once for each shell, and when it changes its task."""
        session = self._need_session()
        assert isinstance(session, KeptSession)
        if self._stored is None or self._stored[0] is not session:
            self.keeper.hold(session.files.descriptors())
        self.records.store(session.record(self))
        self._stored = (session, self.task)

    def _load(
        self, session: Session, execution: Execution, data: bytes, move: bytes, *, restarted: bool = False
    ) -> None:
        assert isinstance(session, KeptSession)
        if self._stored != (session, self.task):
            self._store()
        self._starting = session, execution, move
        try:
            super()._load(session, execution, data, move, restarted=restarted)
        finally:
            self._starting = None

    def _store_start(self) -> None:
        """Store the start of the command whose line is about to be typed."""
        if self._starting is not None:
            session, execution, move = self._starting
            self._starting = None
            start = session.start_record(execution, move)
            self.records.append(*self._take_ended(), start)
            session.kept_pty.journal.trim(start.offset)

    def _finished_execution(self, execution: Execution) -> None:
        super()._finished_execution(execution)
        ending, session = execution.ending, self.session
        assert ending is not None
        offset = session.kept_pty.journal.end if isinstance(session, KeptSession) else 0
        if execution.by_person:
            self._ended.append(
                CommandRecord(
                    number=execution.number,
                    command=execution.command,
                    offset=offset,
                    cwd=str(execution.cwd_before),
                    by_person=True,
                    began=self.history[-1].began,
                    started_at=execution.started_at,
                )
            )
        self._ended.append(
            EndRecord(
                number=execution.number,
                reason=ending.reason,
                evidence=ending.evidence,
                cwd=str(ending.cwd),
                offset=offset,
                exit_code=ending.exit_code,
                pipestatus=ending.pipestatus,
                notes=(*execution.notes, *ending.notes),
                output_bytes=execution.output_bytes,
                by_person=execution.by_person,
                duration=time.monotonic() - execution.started_at,
            )
        )
        if self._end_timer is None and not self._closed:
            self._end_timer = asyncio.get_running_loop().call_later(END_DELAY, self._store_ended)

    def _take_ended(self) -> list[CommandRecord | EndRecord]:
        ended, self._ended = self._ended, []
        return ended

    def _store_ended(self) -> None:
        if self._end_timer is not None:  # it goes on while commands follow one another: a timer for each costs more
            self._end_timer.cancel()
            self._end_timer = None
        if ended := self._take_ended():
            try:
                self.records.append(*ended)
            except StateUnavailable:
                pass  # the journal tells it, too

    async def remember_environment(self) -> None:
        """Store what commands changed in the environment, in case a new shell must replace this one."""
        if self.alive and not self.busy and not self.held:
            try:
                self.changed = await self.environment()
                self._store()
            except TarmacError:
                pass  # it is busy with something of its own

    # The daemon is gone

    def _daemon_lost(self) -> None:
        execution, session = self.current, self.session
        if execution is not None and execution.running:
            note = "the terminal daemon ended, and its shells with it"
            self.tracker.end(execution, "daemon lost", "unknown", None, notes=(note,))
        if session is not None and isinstance(session.pty.child, DaemonChild):
            session.pty.child.lost()

    # Ends

    def _guard(self) -> None:
        """The daemon ends what it leaves behind, not this program's watchdog."""

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def leave(self, *, seconds: float | None = None) -> None:
        """Leave the shell running. It ends if no program attaches within `seconds` [a day]."""
        if not self._closed and self.keeper.connected and self.alive:
            await self.remember_environment()
            self._leaving = True
        self.keeper.time_to_live = seconds
        await self.aclose()

    async def _close(self) -> None:
        session = self.session
        if self._leaving and isinstance(session, KeptSession) and session.alive:
            self.monitor.stop()
            self._lifecycle.stop()
            if self.current is not None:
                self.current.leave()
            self._store_ended()
            await self.tracker.compacted()
            session.leave()
            self.keeper.leave()
            self._released.ring()
        else:
            await super()._close()
            self._ended.clear()
            self.keeper.forget()
        if self._end_timer is not None:
            self._end_timer.cancel()
            self._end_timer = None
        self.records.close()
