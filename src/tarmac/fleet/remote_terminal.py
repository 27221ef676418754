"""Terminals whose shells are on another machine, behind a host. They are used like any other.

RemoteMachine.open() → RemoteTerminal · the host's messages → RemoteMachine → the terminal that each is for
_begin() → CALL start → host → OUTPUT by offset → Execution.feed() → spool, result, listeners: all as for a local one
                             → the last OUTPUT with the ending → Execution.finish()

Timeouts are measured here. Exit codes, directories and input detection come from the host.
"""

import asyncio
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack, cast

from tarmac.errors import BadRequest, ConnectionLost, ExecutionEnded, InputClosed, SandboxUnavailable, TarmacError
from tarmac.events import TerminalId
from tarmac.fleet.place_connection import PROMPT_ANSWER, PlaceConnection
from tarmac.fleet.transport import Transport
from tarmac.terminals import events
from tarmac.terminals.bell import Bell
from tarmac.terminals.events import Listeners, TerminalClosedEvent, TerminalEvent
from tarmac.terminals.execution import Execution
from tarmac.terminals.host.host import TIME_TO_LIVE
from tarmac.terminals.host.wire_values import (
    Header,
    ending_from_wire,
    path_text,
    settings_to_wire,
    table,
    text,
    waiting_from_wire,
    whole,
)
from tarmac.terminals.open import new_id
from tarmac.terminals.output.terminal_screen import LONGEST_SETTLING, ScreenLook, Settled
from tarmac.terminals.process.processes import Process
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.result import Ending, Reason
from tarmac.terminals.shell.dialects import shell_elsewhere
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import NewTerminal, Provider, Terminal
from tarmac.terminals.wait_conditions import Happened, What

if TYPE_CHECKING:
    from tarmac.terminals.wait_conditions import Conditions

JOBS_AGE = 1.0  # seconds for which it is believed that something still runs in the background
CLOSE_PATIENCE = 5.0
MOST_UNTAKEN = 256 << 10
OUTPUT_PATIENCE = 2.0


class RemoteTerminal(Terminal):
    """See `Terminal`. Opened by `RemoteMachine.open`."""

    elsewhere = True

    def __init__(self, connection: PlaceConnection, new: NewTerminal, id: TerminalId) -> None:
        super().__init__(new, id=id)
        self.provider: Provider = new.provider
        self.shell = shell_elsewhere(new.shell)
        self.stands_in = ""  # why the host uses `exec` for it, if it does
        self._connection = connection
        self._new = new
        self._quality = "none"
        self._version = ""
        self._theirs = 0  # the host's number of the command that runs
        self._have = 0  # bytes of its output that are here
        self._known = 0  # the host's number of the last command
        self._waiting: Waiting | None = None
        self._shell_lives = True
        self._untaken = 0  # bytes of input on their way
        self._taken = Bell()
        self._jobs = False
        self._jobs_at = 0.0

    async def open(self) -> None:
        new = self._new
        reply = await self._connection.call(
            "open",
            terminal=self.id,
            cwd=path_text(new.cwd),
            shell=new.shell,
            provider=new.provider,
            task=new.task,
            settings=settings_to_wire(new.settings),
            without=new.without,
        )
        self.cwd = self.initial_cwd = Path(text(reply, "cwd"))
        self.provider = cast(Provider, text(reply, "provider", new.provider))
        self._quality = text(reply, "quality", "none")
        self._version = text(reply, "version", "")
        self.stands_in = text(reply, "stands_in", "")

    # State

    @property
    def alive(self) -> bool:
        return not self._closed and self._shell_lives and self._connection.gone is None

    @property
    def held(self) -> bool:
        return False

    @property
    def has_jobs(self) -> bool:
        """As the host last said. Its word is renewed in the background."""
        if self._jobs and time.monotonic() - self._jobs_at > JOBS_AGE and self.alive:
            self._jobs_at = time.monotonic()
            self._ask_jobs()
        return self._jobs

    def _ask_jobs(self) -> None:
        def replied(header: Header, _: bytes) -> None:
            self._jobs = header.get("jobs") is True

        self._connection.post("jobs", terminal=self.id, replied=replied)

    @property
    def quality(self) -> str:
        return self._quality

    @property
    def shell_version(self) -> str:
        return self._version

    # Starting a command

    def _check_directory(self, path: Path) -> Path:
        return path if path.is_absolute() else self.cwd / path  # the host looks

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        made: list[Execution] = []
        abandoned = False

        def replied(header: Header, _: bytes) -> None:
            execution = self._new_execution(command, echo=self.provider == "pty")
            execution.fresh_shell = header.get("fresh_shell") is True
            self._shell_lives = True
            self._theirs = self._known = whole(header, "number")
            self._have = 0
            self._waiting = None
            execution.begin()
            made.append(execution)
            if abandoned:  # the caller is gone, and nobody else has a handle on it
                self._connection.post("kill", terminal=self.id, number=self._theirs, cause="killed")

        header: dict[str, object] = {"terminal": self.id, "input": input_open}
        if cwd is not None and cwd != self.cwd:
            header["cwd"] = path_text(cwd)
        try:
            await self._connection.call("start", data, replied=replied, **header)
        except asyncio.CancelledError:
            abandoned = True
            raise
        return made[0]

    # What the host tells

    def have(self) -> dict[str, int]:
        """How much of it is here, for a connection that goes on."""
        known: dict[str, int] = {self.id: self._known}
        return known | {f"{self.id}/{self._theirs}": self._have} if self.current is not None else known

    def on_output(self, header: Header, data: bytes) -> None:
        execution = self.current
        if execution is None or whole(header, "number") != self._theirs:
            return
        offset = whole(header, "offset")
        if offset > self._have:
            lost = offset - self._have
            execution.note(f"{lost:,} bytes of its output are lost: it printed more than the host keeps")
            execution.feed(f"\r\n[… {lost:,} bytes left out …]\r\n".encode())
            self._have = offset
        if new := data[self._have - offset :]:
            self._have += len(new)
            self._waiting = None
            execution.feed(new)
            self._wrote(new)
        if "ending" in header:
            self._ended(execution, header)

    def _ended(self, execution: Execution, header: Header) -> None:
        told = table(header, "ending")
        execution.fresh_shell = told.get("fresh_shell") is True
        execution.forged_marks = whole(told, "forged_marks", 0)
        self._jobs, self._jobs_at = header.get("jobs") is True, time.monotonic()
        self._finish(execution, ending_from_wire(told, cwd=self.cwd))

    def _finish(self, execution: Execution, ending: Ending) -> None:
        self._waiting = None
        self._moved(ending.cwd)
        execution.finish(ending)
        self._finished_execution(execution)
        self._tell_idle()

    def on_event(self, header: Header) -> None:
        now = time.monotonic()
        match header.get("event"):
            case "waiting" if self.current is not None and header.get("number") == self._theirs:
                self._waiting = seen = waiting_from_wire(table(header, "waiting"))
                if seen is not None:
                    self.current.asks()
                    self._emit(
                        events.AwaitingInput(
                            at=now,
                            terminal=self.id,
                            number=self.current.number,
                            wants=str(seen.wants),
                            name=seen.name,
                            prompt=seen.prompt,
                        )
                    )
            case "shell_ended":
                self._shell_lives = False
                self._emit(events.ShellEnded(at=now, terminal=self.id, status=whole(header, "status", 0)))
            case "shell_replaced":
                self._shell_lives = True
                self._moved(Path(text(header, "cwd", path_text(self.cwd))))
                self._emit(events.ShellReplaced(at=now, terminal=self.id, why=text(header, "why", "")))
            case "no_integration":
                self._emit(events.NoShellIntegration(at=now, terminal=self.id, why=text(header, "why", "")))
            case "closed" if not self._closed:
                self._gone("terminal closed", "it was closed there")

    def lost(self) -> None:
        """The connection broke. Waiting calls return; the command goes on there."""
        self._waiting = None
        if self.current is not None:
            self.current.leave("connection lost")

    def gone(self, error: TarmacError) -> None:
        """The connection will not come back."""
        self._gone("connection lost", error.what)

    def _gone(self, reason: Reason, why: str) -> None:
        execution = self.current
        if execution is not None:
            self._finish(execution, Ending(reason=reason, evidence="unknown", cwd=self.cwd, notes=(why,)))
        if not self._closed:
            self._closed = True
            self.alarm.stop()
            self.tape.close()
            self.screen.close()
            self.spools.clear()
            self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason=why))

    # Runner: what an Execution asks for

    def waiting(self, execution: Execution) -> Waiting | None:
        return self._waiting if self.current is execution else None

    def send_input(self, execution: Execution, data: bytes) -> None:
        self._check_running(execution)
        hidden = self._waiting is not None and self._waiting.wants is Wants.SECRET
        execution.typed(data, hidden=hidden)
        self._waiting = None
        self._untaken += len(data)

        def taken(header: Header, _: bytes) -> None:
            self._untaken -= len(data)
            self._taken.ring()

        self._connection.post("send", data, replied=taken, terminal=self.id, number=self._theirs)

    async def until_taken(self, execution: Execution) -> None:
        """Wait while much input is still on its way to the host."""
        while self._untaken > MOST_UNTAKEN and execution.running:
            await self._taken.wait(1.0)

    def close_input(self, execution: Execution) -> None:
        self._check_running(execution)
        self._connection.post("close_input", terminal=self.id, number=self._theirs)

    def _check_running(self, execution: Execution) -> None:
        if self.current is not execution:
            raise ExecutionEnded(f"`{execution.command[:60]}` is not running any more; nothing was sent")
        if self._connection.gone is not None:
            raise ConnectionLost(self._connection.gone.what, hint=self._connection.gone.hint)

    async def withdraw(self, execution: Execution) -> None:
        """The host looks whether its shell took it, or is in a prompt hook after its end. Both end it."""
        if self.current is not execution or not self._connection.connected:
            return
        asking = asyncio.ensure_future(self._connection.call("withdraw", terminal=self.id, number=self._theirs))
        asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait([asking], timeout=PROMPT_ANSWER)
        if asking.done() and asking.exception() is None and asking.result().get("running") is False:
            await execution.ended(OUTPUT_PATIENCE)

    async def interrupt(self, execution: Execution) -> None:
        await self._stop("interrupt", execution)

    async def kill(self, execution: Execution) -> None:
        await self._stop("kill", execution)

    async def _stop(self, verb: str, execution: Execution) -> None:
        """Have the host end it. A host that does not answer is not waited for."""
        if self.current is not execution:
            return
        stopping = asyncio.ensure_future(
            self._connection.call(verb, terminal=self.id, number=self._theirs, cause=execution.cause)
        )
        try:
            if not await self._connection.answers():
                execution.leave("connection lost")
                return
            await asyncio.wait(
                [stopping, asyncio.ensure_future(self._until_lost(execution))], return_when="FIRST_COMPLETED"
            )
            await execution.ended(OUTPUT_PATIENCE)
        except TarmacError:
            pass
        finally:
            stopping.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _until_lost(self, execution: Execution) -> None:
        while execution.running and self._connection.connected:
            await execution.news(1.0)

    def tree(self, *, own: bool) -> set[Process]:
        return set()  # they are not of this machine

    async def waiting_for(self, **conditions: "Unpack[Conditions]") -> Happened:
        """The host waits where a port is meant: only it sees who listens."""
        if not conditions.get("port"):
            return await super().waiting_for(**conditions)
        wanted = dict(conditions)
        pattern = wanted.get("pattern")
        if isinstance(pattern, re.Pattern):
            wanted["pattern"] = pattern.pattern
        reply = await self._connection.call("waiting_for", terminal=self.id, conditions=wanted)
        found = text(reply, "text", "")
        port, pid, code = reply.get("port"), reply.get("pid"), reply.get("exit_code")
        return Happened(
            what=cast(What, text(reply, "what")),
            terminal=self.id,
            after=float(str(reply.get("after", 0.0))),
            match=re.match(re.escape(found), found) if reply.get("what") == "pattern" else None,
            waiting=waiting_from_wire(table(reply, "waiting")),
            port=port if isinstance(port, int) else None,
            pid=pid if isinstance(pid, int) else None,
            exit_code=code if isinstance(code, int) else None,
            reason=text(reply, "reason", ""),
        )

    # The rest

    async def type(self, data: bytes | str) -> None:
        """What a person types goes to the command that runs. Only there."""
        if self.current is None:
            raise InputClosed(
                f"no command runs in {self.id}",
                hint="at another place a person can answer commands, but not use the shell itself",
            )
        self.send_input(self.current, data.encode() if isinstance(data, str) else data)

    async def look(self, *, since: str | None = None, limit: float = LONGEST_SETTLING) -> ScreenLook:
        """The host says when the program has settled; the screen is drawn here, from what it printed."""
        start = time.monotonic()
        execution = self.current
        reply = await self._connection.call("settle", terminal=self.id, limit=limit)
        due = start + limit + OUTPUT_PATIENCE
        while execution is not None and execution.running and self._have < whole(reply, "printed", 0):
            if time.monotonic() > due:
                break
            await execution.news(due - time.monotonic())
        settled, waiting = text(reply, "settled"), waiting_from_wire(table(reply, "waiting"))
        known = Settled(settled) if settled in list(Settled) else Settled.QUIET
        return await self.screen.show(since=since, settled=known, waiting=waiting, start=start)

    def resize(self, *, rows: int, columns: int) -> None:
        super().resize(rows=rows, columns=columns)
        self._connection.post("resize", terminal=self.id, rows=rows, columns=columns)
        self.tape.resize(rows, columns)

    async def reset(self, cwd: Path) -> None:
        async with self._turn:
            self._check_open()
            await self._connection.call("reset", terminal=self.id, cwd=path_text(cwd))
            self.moves = 0
            self.tape.clear()
            self._moved(cwd)

    async def environment(self) -> dict[str, str | None]:
        async with self._turn:
            self._check_open()
            reply = await self._connection.call("environment", terminal=self.id)
        found = table(reply, "environment")
        return {name: value if isinstance(value, str) else None for name, value in found.items()}

    def _guard(self) -> None:
        """Nothing of it runs on this machine."""

    async def _close(self) -> None:
        execution = self.current
        if self._connection.connected:
            try:
                async with asyncio.timeout(CLOSE_PATIENCE):
                    await self._connection.call("close", terminal=self.id)
            except (TarmacError, TimeoutError):
                pass
        else:
            self._connection.post("close", terminal=self.id)
        if execution is not None and execution.running and not await execution.ended(0.2):
            self._finish(execution, Ending(reason="terminal closed", evidence="unknown", cwd=self.cwd))
        self.spools.clear()
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))


PATIENCE = 120.0  # seconds in which a broken connection is tried again


class RemoteMachine:
    """Connected while its block runs. Leaving the block ends its terminals there."""

    def __init__(self, transport: Transport, *, time_to_live: float = TIME_TO_LIVE, patience: float = PATIENCE) -> None:
        self.connection = PlaceConnection(transport, self, time_to_live=time_to_live, patience=patience)
        self._terminals: dict[str, RemoteTerminal] = {}

    @property
    def name(self) -> str:
        """The place, as a person writes it."""
        return self.connection.transport.name

    async def __aenter__(self) -> Self:
        await self.connection.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.ensure_future(self.connection.aclose()))

    # Machine

    def check_directory(self, path: Path | None) -> Path:
        """`path` made absolute. Whether it is there is seen when something is to run in it."""
        home = Path(text(self.connection.welcome, "home", "/"))
        return home if path is None else home / path

    def nearest_directory(self, path: Path) -> Path:
        return path

    def shell(self, name: str | None) -> Shell:
        return shell_elsewhere(name)

    async def open(self, new: NewTerminal, *, listeners: Listeners | None = None) -> Terminal:
        if new.settings.sandbox is not None:
            raise SandboxUnavailable(
                f"commands at {self.name} can't be kept in a sandbox from here",
                hint="turn the sandbox off for this place",
            )
        if new.arguments:
            raise BadRequest(f"the shell of a terminal at {self.name} takes no arguments")
        terminal = RemoteTerminal(self.connection, new, new_id())
        self._terminals[terminal.id] = terminal
        try:
            await terminal.open()
        except BaseException:
            self._terminals.pop(terminal.id, None)
            self.connection.post("close", terminal=terminal.id)
            raise
        terminal.subscribe(self._closed, TerminalClosedEvent)
        if listeners is not None:
            terminal.listeners.join(listeners)
        terminal.opened()
        return terminal

    def _closed(self, event: TerminalEvent) -> None:
        self._terminals.pop(event.terminal, None)

    async def load(self) -> dict[str, object]:
        """How many terminals there are in this session, how many are busy, and the machine's load."""
        return dict(await self.connection.call("load"))

    async def directory(self, path: Path) -> Path:
        """`path` there, made absolute. DirectoryUnavailable if nobody can enter it."""
        return Path(text(await self.connection.call("directory", path=path_text(path)), "path"))

    # Audience

    def on_output(self, header: Header, data: bytes) -> None:
        if (terminal := self._terminals.get(text(header, "terminal"))) is not None:
            terminal.on_output(header, data)

    def on_event(self, header: Header) -> None:
        if (terminal := self._terminals.get(text(header, "terminal"))) is not None:
            terminal.on_event(header)

    def on_lost(self) -> None:
        for each in list(self._terminals.values()):
            each.lost()

    def on_gone(self, error: TarmacError) -> None:
        for each in list(self._terminals.values()):
            each.gone(error)
        self._terminals.clear()

    def have(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for each in self._terminals.values():
            found |= each.have()
        return found
