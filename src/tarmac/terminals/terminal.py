"""The interface of every terminal: an identity, one command at a time, and the commands that ran.

`PtyTerminal` (pty_terminal.py) is a live shell. `ExecTerminal` (exec.py) starts one process for each command. Both are
used through the verbs here.
"""

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, Unpack

from tarmac.errors import BadRequest, ScreenUnavailable, TerminalBusy, TerminalClosed
from tarmac.events import TaskId, TerminalId
from tarmac.paths import check_directory
from tarmac.terminals import events
from tarmac.terminals.answers import Answers, answers_of, run_answering
from tarmac.terminals.bell import Alarm
from tarmac.terminals.events import Listener
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.follow import Gap
from tarmac.terminals.output.spool import Spools
from tarmac.terminals.output.tape import Snapshot, Tape, TapePiece
from tarmac.terminals.output.terminal_screen import LONGEST_SETTLING, ScreenLook, TerminalScreen
from tarmac.terminals.process import birthmark, watchdog
from tarmac.terminals.process.processes import Process
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Result
from tarmac.terminals.settings import OnTimeout, Sandbox, Settings, check_command, check_on_timeout, check_timeout
from tarmac.terminals.wait_conditions import Conditions, Happened, waiting_for
from tarmac.vt.marks import NO_HINTS, Hints
from tarmac.vt.text import clean

if TYPE_CHECKING:
    from tarmac.terminals.shell.shells import Shell

Provider = Literal["pty", "exec"]
Origin = Literal["agent", "person", "system"]

MOST_UNREAD = 50
MOST_HISTORY = 1000


class Past(NamedTuple):
    """A command of the terminal's history."""

    number: int
    command: str
    by_person: bool
    exit_code: int | None
    reason: str
    cwd: Path
    began: float  # time.time()
    duration: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTerminal:
    """What a terminal that is to be opened shall be."""

    cwd: Path
    settings: Settings
    shell: str | None = None
    arguments: tuple[str, ...] = ()  # of the shell
    provider: Provider = "pty"
    name: str = ""
    origin: Origin = "agent"
    task: TaskId | None = None
    environ: Mapping[str, str] | None = None  # None: that of the process that starts the shell
    without: str = ""  # why a live shell can't be used; an `exec` terminal stands in for it


class Default:
    """The type of DEFAULT: use the time from the settings. (None means no limit.)"""


DEFAULT = Default()


class Terminal(ABC):
    """A terminal: open it with `open_terminal`, use it with `run` or `start`, leave the block to close it."""

    elsewhere = False  # its commands don't see this machine's files and processes
    provider: Provider | Literal["editor"]  # "editor": opened by an editor, see Pool.adopt
    shell: "Shell"
    outlives: bool = False  # another program can go on with it

    def __init__(self, new: NewTerminal, *, id: TerminalId, cookie: str = "") -> None:
        self.id = id
        self.name = new.name or id
        self.cookie = cookie or f"{id}.{os.getpid()}.{os.urandom(6).hex()}"
        self.origin = new.origin
        self.task = new.task
        self.sessions: set[str] = set()  # those it was associated with
        self.initial_cwd = new.cwd
        self.cwd = new.cwd
        self.moves = 0  # how often it was moved for reuse
        self.settings = settings = new.settings
        self.used_at = time.monotonic()
        self.last_command: str | None = None
        self.selection = ""  # what a person selected in it last, in the page
        self.history: deque[Past] = deque(maxlen=MOST_HISTORY)
        self.current: Execution | None = None
        self._finished: deque[Execution] = deque(maxlen=MOST_UNREAD)
        self.tape = Tape(rows=settings.rows, columns=settings.columns)
        self.screen = TerminalScreen(self.tape)
        self.listeners = events.Listeners()
        self._numbers = 0
        self._turn = asyncio.Lock()
        self.alarm = Alarm()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None
        self._heading: Path | None = None  # where its next command must run
        self._heading_counts = False
        self.spools = Spools(self.cookie, settings)

    # State

    @property
    def sandbox(self) -> Sandbox | None:
        """The sandbox that its commands run in, if any."""
        return self.settings.sandbox

    @property
    def busy(self) -> bool:
        """Whether a command runs in it, including one that a person typed."""
        return self.current is not None

    @property
    def running(self) -> bool:
        return self.busy

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def alive(self) -> bool:
        """Whether the next command would find it as the last one left it."""
        return not self._closed

    @property
    @abstractmethod
    def has_jobs(self) -> bool:
        """Whether something that an ended command started still runs in it."""

    @property
    def unread(self) -> list[Execution]:
        """Finished executions whose result nobody has read yet, oldest first."""
        return [each for each in self._finished if not each.read]

    @property
    def executions(self) -> list[Execution]:
        """The last commands, oldest first, and the one that runs: what they printed can be read again."""
        return [*self._finished, *([self.current] if self.current is not None else ())]

    def written_since_last_command(self) -> bytes:
        """The output of the last command, and what came after it."""
        return self.tape.since_command()

    def recent_output(self, *, max_chars: int = 16_000) -> str:
        """The last 40 writes to it, as text."""
        return clean(self.tape.recent())[-max_chars:]

    async def snapshot(self) -> Snapshot:
        """What a viewer paints before it follows the tape. Without the extra `screen` it is what the tape holds."""
        try:
            return await self.screen.snapshot()
        except ScreenUnavailable:
            return Snapshot(self.tape.end, *self.tape.size, self.tape.since_reset())

    async def look(self, *, since: str | None = None, limit: float = LONGEST_SETTLING) -> ScreenLook:
        """What it shows once its program has reacted to what was typed, after at most `limit` seconds.

        With `since`, the hash of an earlier look, it tells which rows changed. ScreenUnavailable: it has no screen.
        """
        raise ScreenUnavailable(f"terminal {self.id} has no screen", hint="open one with the pty provider")

    async def watch(self, offset: int | None = None) -> AsyncIterator[Snapshot | TapePiece]:
        """What a viewer needs: a snapshot, then all that comes. With an `offset`, go on from there.

        A viewer that missed something gets the Gap and then a new snapshot.
        """
        if offset is None or not self.tape.start <= offset <= self.tape.end:
            snapshot = await self.snapshot()
            yield snapshot
            offset = snapshot.offset
        following = True
        while following:
            following = False
            async for piece in self.tape.follow(offset):
                yield piece
                if isinstance(piece, Gap):
                    snapshot = await self.snapshot()
                    yield snapshot
                    offset, following = snapshot.offset, True
                    break

    @property
    @abstractmethod
    def held(self) -> bool:
        """Whether a person is typing in it."""

    @property
    def shell_version(self) -> str:
        """The version that the shell reports; empty if it reports none."""
        return ""

    @property
    @abstractmethod
    def quality(self) -> str:
        """How well the shell reports what it does: none, rich, or basic while another shell in it gives hints.

        relay: a terminal at another place, without a host there.
        """

    @property
    def hints(self) -> Hints:
        """What a shell that runs in it reports, such as its directory. It proves nothing."""
        return self.current.hints if self.current is not None else NO_HINTS

    def associate(self, session: str) -> None:
        """From now on it belongs to `session`, too: a task, or a client of ACP or MCP."""
        self.sessions.add(session)

    # Verbs

    async def run(
        self,
        command: str,
        *,
        timeout: float | Default | None = DEFAULT,
        on_timeout: OnTimeout = "leave",
        idle_timeout: float | Default | None = DEFAULT,
        cwd: Path | str | None = None,
        answers: Answers | None = None,
    ) -> Result:
        """Run `command` and wait for its result; commands given at once run one after another.

        After `timeout` seconds [30] it is left running, interrupted or killed, as `on_timeout` says. `cwd` moves the
        terminal there first. With `answers` its questions are answered within 60 seconds, each answer once. A question
        without an answer ends the wait at once.
        """
        default = self.settings.run_timeout if answers is None else self.settings.interactive_timeout
        limit = default if isinstance(timeout, Default) else check_timeout(timeout)
        usual = self.settings.idle_timeout
        idle = usual if isinstance(idle_timeout, Default) else check_timeout(idle_timeout, "idle_timeout")
        check_on_timeout(on_timeout)
        if answers is not None:
            prepared = answers_of(answers)
        async with self._turn:
            execution = await self._start(command, cwd=cwd, input_open=False)
            try:
                if answers is not None:
                    return await run_answering(
                        execution, prepared, timeout=limit, idle_timeout=idle, on_timeout=on_timeout
                    )
                return await execution.checked_result(limit, on_timeout, idle)
            except asyncio.CancelledError:
                # The caller is gone, and with it the only handle: end what it asked for.
                self._untold(execution)
                if execution.running and self.current is execution:
                    await asyncio.shield(execution.kill())
                raise

    async def start(self, command: str, *, cwd: Path | str | None = None, input_open: bool = True) -> Execution:
        """Start `command` and return an Execution, with which to follow, answer and end it.

        Without `input_open` a command of an `exec` terminal has no input.
        """
        async with self._turn:
            return await self._start(command, cwd=cwd, input_open=input_open)

    async def waiting_for(self, **conditions: Unpack[Conditions]) -> Happened:
        """Wait until what runs here ends, prints `pattern`, wants `input`, is `quiet` so long, or listens on `port`.

        Returns what came first, with its evidence, or after `timeout` [30] seconds that nothing came.
        """
        return await waiting_for(self, **conditions)

    async def _start(self, command: str, *, cwd: Path | str | None, input_open: bool) -> Execution:
        data = check_command(command)
        self._check_open()
        if self.current is not None and not self.current.by_person:
            raise TerminalBusy(
                f"`{self.current.command[:60]}` is still running in {self.id}",
                hint="wait for it, interrupt or kill it, or open another terminal",
            )
        wanted = self._heading if cwd is None else Path(cwd)
        target = self._check_directory(wanted) if wanted is not None else None
        if self.settings.command_delay > 0:
            await asyncio.sleep(self.settings.command_delay)
        execution = await self._begin(command, data, cwd=target, input_open=input_open)
        if self._heading is not None:
            self.moves += self._heading_counts and cwd is None
            self._heading = None
        return execution

    def _check_directory(self, path: Path) -> Path:
        """`path` made absolute. DirectoryUnavailable when a command can't run there."""
        return check_directory(path)

    @abstractmethod
    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution: ...

    def _untold(self, execution: Execution) -> None:  # noqa: B027 (most have nothing to say)
        """Nobody gets the result of `execution`, so what it says about the terminal goes to the next one."""

    def head_for(self, cwd: Path | None, *, counts: bool = False) -> None:
        """Run the next command in `cwd` or not at all. With `counts`, it counts as a move.

        It moves together with that command, not before, so the move costs nothing and leaves no trace.
        """
        self._heading, self._heading_counts = cwd, counts

    @abstractmethod
    async def reset(self, cwd: Path) -> None:
        """Reset to a fresh shell in `cwd`. Nothing that commands left in it remains."""

    @abstractmethod
    async def open(self) -> None:
        """Make it ready; called once."""

    def opened(self) -> None:
        """Tell that it is open."""
        asyncio.get_running_loop().call_soon(self._guard)
        at = time.monotonic()
        self._emit(events.TerminalOpened(at=at, terminal=self.id, cwd=self.cwd, shell=self.shell.name))
        self._emit(events.ShellIntegrationChanged(at=at, terminal=self.id, quality=self.quality))

    def tell_quality(self) -> None:
        """Tell that its quality has changed."""
        if self.listeners.want(events.ShellIntegrationChanged):
            self._emit(events.ShellIntegrationChanged(at=time.monotonic(), terminal=self.id, quality=self.quality))

    def _guard(self) -> None:
        if not self._closed:
            watchdog.guard(birthmark.of(self.cookie))

    @abstractmethod
    async def type(self, data: bytes | str) -> None:
        """Send a person's keys. From their first byte until the next prompt the terminal is theirs."""

    def resize(self, *, rows: int, columns: int) -> None:
        """Change its size; programs in it are told."""
        if not (0 < rows < 65536 and 0 < columns < 65536):
            raise BadRequest(
                f"a terminal can't have {rows} × {columns} characters", hint="rows and columns from 1 to 65,535"
            )

    @abstractmethod
    def tree(self, *, own: bool) -> set[Process]:
        """The processes in it; `own`: without those that earlier commands left there."""

    # What an Execution asks of its terminal

    @abstractmethod
    def send_input(self, execution: Execution, data: bytes) -> None: ...

    @abstractmethod
    def close_input(self, execution: Execution) -> None: ...

    async def until_taken(self, execution: Execution) -> None:  # noqa: B027
        """Wait while much input is still on its way to the command."""

    async def withdraw(self, execution: Execution) -> None:  # noqa: B027 (most begin at once)
        """Its time is up. One that has not begun is taken back, and is `not run` if it surely never will begin.

        One whose end was told, and whose shell is in a prompt hook, has ended.
        """

    @abstractmethod
    async def interrupt(self, execution: Execution) -> None: ...

    @abstractmethod
    async def kill(self, execution: Execution) -> None: ...

    @abstractmethod
    def waiting(self, execution: Execution) -> Waiting | None: ...

    @abstractmethod
    async def environment(self) -> dict[str, str | None]:
        """What its commands changed in the environment since the start (None: unset), secrets masked."""

    async def leave(self, *, seconds: float | None = None) -> None:
        """If it outlives the program, leave it running, for `seconds` unless a program takes it over. Else close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close it: end everything in it, and wait until it has ended. May be called twice."""
        if not self._closed:
            self._closed = True
            self.alarm.stop()
            self._closing = asyncio.create_task(self._close_and_release())
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _close_and_release(self) -> None:
        try:
            await self._close()
        finally:
            self.tape.close()
            self.screen.close()
            if (leaving := watchdog.release(birthmark.of(self.cookie))) is not None:
                await asyncio.get_running_loop().run_in_executor(None, leaving.wait)

    @abstractmethod
    async def _close(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Events

    def subscribe(self, listener: Listener, *kinds: events.Kind) -> Callable[[], None]:
        """Call `listener` with events from now on: all, or those of `kinds`. The returned function ends that."""
        return self.listeners.add(listener, *kinds)

    def _emit(self, event: events.TerminalEvent) -> None:
        self.listeners.tell(event)

    def _tell_idle(self) -> None:
        if self.listeners.want(events.BecameIdle):
            self._emit(events.BecameIdle(at=time.monotonic(), terminal=self.id))

    def _wrote(self, data: bytes) -> None:
        """Viewers see `data`."""
        self.tape.write(data)
        if self.listeners.want(events.DataWritten):
            self._emit(events.DataWritten(at=time.monotonic(), terminal=self.id, data=data))

    # Executions

    def _new_execution(
        self,
        command: str,
        *,
        by_person: bool = False,
        notes: tuple[str, ...] = (),
        internal: bool = False,
        echo: bool = False,
    ) -> Execution:
        """The next command. With `echo` viewers see it. An `internal` one is our own question: it leaves no trace."""
        self._numbers += 1
        number = self._numbers
        execution = Execution(
            number=number,
            command=command,
            by_person=by_person,
            runner=self,
            settings=self.settings,
            make_spool=partial(self.spools.new, number),
            notes=notes,
            internal=internal,
        )
        self.current = execution
        if internal:
            return execution
        self.last_command = command
        self.used_at = execution.started_at
        if self.listeners.want(events.CommandStarted):
            self._emit(
                events.CommandStarted(
                    at=execution.started_at,
                    terminal=self.id,
                    number=execution.number,
                    command=command,
                    by_person=by_person,
                    cwd=self.cwd,
                )
            )
        if echo:
            self._wrote(command.encode("utf-8", "replace").replace(b"\n", b"\r\n") + b"\r\n")
        self.tape.command_began(number)
        return execution

    def _finished_execution(self, execution: Execution) -> None:
        """`execution.ending` is set: remember it, tell everybody, be free again."""
        ending = execution.ending
        assert ending is not None
        if self.current is execution:
            self.current = None
        if execution.internal:
            return
        if execution.hints != NO_HINTS:
            self.tell_quality()
        self.tape.command_ended(execution.number)
        now = time.monotonic()
        self.used_at = now
        self._finished.append(execution)
        duration = now - execution.started_at
        began = time.time() - duration
        self.history.append(
            Past(
                execution.number,
                execution.command,
                execution.by_person,
                ending.exit_code,
                ending.reason,
                execution.cwd_before,
                began,
                duration,
            )
        )
        if self.listeners.want(events.CommandFinished):
            self._emit(
                events.CommandFinished(
                    at=now,
                    terminal=self.id,
                    number=execution.number,
                    command=execution.command,
                    by_person=execution.by_person,
                    exit_code=ending.exit_code,
                    reason=ending.reason,
                    cwd=ending.cwd,
                )
            )

    def _moved(self, cwd: Path | None) -> None:
        if cwd is None or cwd is self.cwd:
            return
        before, self.cwd = self.cwd, cwd  # the same object from now on: to compare paths takes longer than to move
        if cwd != before and self.listeners.want(events.DirectoryChanged):
            self._emit(events.DirectoryChanged(at=time.monotonic(), terminal=self.id, cwd=cwd))

    def _check_open(self) -> None:
        if self._closed:
            raise TerminalClosed(f"terminal {self.id} is closed", hint="open another one")
