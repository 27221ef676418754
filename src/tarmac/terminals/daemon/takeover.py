"""Continue with terminals that another program left behind, normally or by a crash.

    list_terminals() → LeftTerminal …
    attach_terminal(id) → ATTACH → read the journal again from the start of the last command → Terminal
    end_terminal(id)

The code that reads the shell's output the first time reads it again. So the state of the shell, the output and the exit
code come from the bytes, not from the memory of a killed program. Earlier commands come from the records, and their
output from their spools.
"""

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tarmac.errors import SandboxUnavailable, ShellFailed, TarmacError, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.paths import nearest_existing
from tarmac.terminals.daemon import RequestKind
from tarmac.terminals.daemon.connection import NoDaemon, RequestRefused, connect, daemon_folder, refused
from tarmac.terminals.daemon.journal import Journal
from tarmac.terminals.daemon.kept_terminal import KeptSession, KeptTerminal
from tarmac.terminals.daemon.terminal_records import (
    EndRecord,
    StoredCommand,
    TerminalRecord,
    read_commands,
    read_terminal,
)
from tarmac.terminals.execution import Execution
from tarmac.terminals.process import processes
from tarmac.terminals.result import Ending, Evidence, Reason
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.shell.state import Given, Loading
from tarmac.terminals.terminal import NewTerminal, Origin
from tarmac.vt.marks import Mark, MarkParser

MOST_PAST = 20  # earlier commands whose results can be read again
SCROLLBACK = 256 << 10  # bytes of their output that viewers see
TAKE_PATIENCE = 5.0  # for a shell to read a line that was typed before its program was killed
END_PATIENCE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftTerminal:
    """A terminal that the daemon has, or had."""

    id: TerminalId
    name: str
    task: TaskId | None
    sessions: tuple[str, ...]  # those it was associated with
    shell: str
    cwd: Path
    command: str  # the last one
    running: bool  # the last command had not ended when its program was last heard of
    host: int | None  # the program that has it now
    alive: bool  # its shell lives
    status: int | None  # of a shell that has ended: its exit code, or minus the signal
    idle: float  # seconds since the last program left it
    expires: float | None  # seconds until the daemon ends it; None: somebody has it
    created: float

    def as_dict(self) -> dict[str, object]:
        return {
            "id": self.id,
            "name": self.name,
            "task": self.task,
            "sessions": list(self.sessions),
            "shell": self.shell,
            "cwd": str(self.cwd),
            "command": self.command,
            "running": self.running,
            "host": self.host,
            "alive": self.alive,
            "status": self.status,
            "idle": round(self.idle, 3),
            "expires": None if self.expires is None else round(self.expires, 3),
            "created": self.created,
        }


async def list_terminals(*, session: str | None = None) -> list[LeftTerminal]:
    """The terminals that outlive their programs, oldest first; those of a session (a task, or a client), or all.

    Terminals that were lost with a killed daemon are listed too. `attach_terminal` opens a new shell for them.
    """
    found = await asyncio.to_thread(_find)
    return [each for each in found if session in (None, each.task, *each.sessions)]


def _find() -> list[LeftTerminal]:
    folder = daemon_folder(os.environ)
    try:
        names = sorted(os.listdir(folder / "terminals"))  # noqa: PTH208
    except OSError:
        return []
    live = _live(folder)
    found = []
    for name in names:
        record = read_terminal(folder / "terminals" / name)
        if record is not None:
            found.append(_describe(record, live.get(name), folder / "terminals" / name))
    return sorted(found, key=lambda each: each.created)


def _live(folder: Path) -> dict[str, dict[str, object]]:
    """What the daemon says of its terminals; nothing when none runs."""
    try:
        connection = connect(folder, start=False)
    except NoDaemon:
        return {}
    try:
        terminals = connection.request(RequestKind.LIST, {}).header.get("terminals")
    finally:
        connection.close()
    return {str(each["id"]): each for each in terminals} if isinstance(terminals, list) else {}


def _describe(record: TerminalRecord, live: dict[str, object] | None, folder: Path) -> LeftTerminal:
    commands = [each for each in read_commands(folder) if not each.start.internal]
    last = commands[-1] if commands else None
    cwd = record.cwd if last is None else last.start.cwd if last.end is None else last.end.cwd
    status = cast("int | None", live.get("status")) if live is not None else None
    alive = live is not None and status is None
    if alive:
        try:
            cwd = os.readlink(f"/proc/{record.pid}/cwd")
        except OSError:
            pass
    idle = float(cast("float", live.get("idle", 0))) if live is not None else max(time.time() - record.created, 0)
    host = cast("int | None", live.get("host")) if live is not None else None
    lives = float(cast("float", live.get("time_to_live", 0))) if live is not None else 0.0
    return LeftTerminal(
        id=TerminalId(record.id),
        name=record.name,
        task=TaskId(record.task) if record.task is not None else None,
        sessions=tuple(record.sessions),
        shell=record.shell,
        cwd=Path(cwd),
        command=last.start.command if last is not None else "",
        running=last is not None and last.end is None and alive,
        host=host,
        alive=alive,
        status=status,
        idle=idle,
        expires=None if host is not None else max(lives - idle, 0.0),
        created=record.created,
    )


async def attach_terminal(id: str, *, settings: Settings | None = None) -> KeptTerminal:
    """Continue with the terminal of that id. Leave it with `leave()`, or end it with `aclose()`.

    TerminalNotFound: there is none. TerminalBusy: another program has it. SandboxUnavailable: the settings have a
    sandbox, and its shell runs outside.
    """
    folder = daemon_folder(os.environ) / "terminals" / id
    record = read_terminal(folder) if id and "/" not in id and id not in (".", "..") else None
    if record is None:
        raise _not_found(id)
    if settings is not None and settings.sandbox is not None and not record.wrapped:
        raise SandboxUnavailable(
            f"the shell of terminal {id} runs outside the sandbox", hint="end it, or attach it without a sandbox"
        )
    commands = read_commands(folder)
    try:
        return await _attached(record, commands, settings, restores=False)
    except TerminalNotFound:  # by the daemon: it is another one than had the shell
        return await _attached(record, commands, settings, restores=True)


async def _attached(
    record: TerminalRecord, commands: list[StoredCommand], settings: Settings | None, *, restores: bool
) -> KeptTerminal:
    new = NewTerminal(
        cwd=Path(record.cwd),
        settings=settings or Settings(),
        name=record.name,
        origin=cast("Origin", record.origin),
        task=TaskId(record.task) if record.task is not None else None,
    )
    # What cleans up after a killed daemon still looks for the old cookie, and would end the new shell.
    cookie = "" if restores else record.cookie
    terminal = KeptTerminal(find_shell(record.shell), new, id=TerminalId(record.id), cookie=cookie)
    terminal.created, terminal.changed = record.created, record.changed
    terminal.sessions.update(record.sessions)
    await asyncio.get_running_loop().run_in_executor(None, terminal.keeper.connect)
    try:
        terminal.keeper.listen()
        takeover = _Takeover(terminal, record, commands)
        await (takeover.restore() if restores else takeover.run())
    except BaseException:
        terminal.keeper.close()
        raise
    terminal.opened()
    return terminal


async def end_terminal(id: str) -> None:
    """End the terminal of that id and all that runs in it. One that was lost with the daemon is forgotten.

    TerminalNotFound: there is none. TerminalBusy: another program has it.
    """
    left = next((each for each in await list_terminals() if each.id == id), None)
    if left is None:
        raise _not_found(id)
    if left.alive:
        try:
            terminal = await attach_terminal(id)
        except ShellFailed:  # it was left before its shell was ready
            pass
        else:
            await terminal.aclose()
            return
    await asyncio.to_thread(_forget, id)


async def end_terminals_of(task: str) -> None:
    """End those that a task left. One that another program has is left to it."""
    for left in await list_terminals():
        if left.task == task:
            with suppress(TarmacError):  # it may have ended meanwhile
                await end_terminal(left.id)


def _forget(id: str) -> None:
    connection = connect(daemon_folder(os.environ))
    try:
        connection.request(RequestKind.FORGET, {"id": id})
    except RequestRefused as error:
        raise refused(error, id) from None
    finally:
        connection.close()


def _not_found(id: str) -> TerminalNotFound:
    return TerminalNotFound(f"Terminal {id} not found", hint="`tarmac terminals list` shows those there are")


class _Takeover:
    """The steps that bring back one terminal. They run once, before anybody gets the terminal."""

    def __init__(self, terminal: KeptTerminal, record: TerminalRecord, commands: list[StoredCommand]) -> None:
        self._terminal = terminal
        self._record = record
        self._commands = commands

    async def run(self) -> None:
        terminal, record = self._terminal, self._record
        pty, child, held, drained_from = terminal.keeper.attach()
        session = KeptSession(
            terminal.shell,
            terminal.settings,
            owner=terminal.tracker,
            env=terminal.env,
            keeper=terminal.keeper,
            pty=pty,
            nonce=record.nonce.encode(),
        )
        if not held:
            pty.close()
            raise ShellFailed(f"terminal {record.id} was left before its shell was ready", hint="end it")
        session.take_over(record, held)
        terminal.take_over(session)
        terminal.tape.resize(pty.rows, pty.columns)
        last = next((each for each in reversed(self._commands) if not each.start.by_person), None)
        self._tell_past(replayed_after=last.start.number if last is not None else 0)
        pty.journal.recover()
        execution = self._begin(session, last) if last is not None else None
        self._replay(session, last, drained_from)
        session.go_on(child)
        if child.known is not None:
            await session.until_dead(END_PATIENCE)
        elif execution is not None:
            await self._settle(session, execution)

    async def restore(self) -> None:
        """Replace a shell that is gone: open one in its directory, with its variables and its output."""
        terminal = self._terminal
        self._tell_past()
        last = self._commands[-1] if self._commands else None
        if last is not None:
            terminal.numbers_used(last.start.number)
            terminal.cwd = nearest_existing(Path(last.start.cwd if last.end is None else last.end.cwd))
            if last.end is None and not last.start.internal:
                execution = terminal.begun_before(last.start)
                execution.begin()
                if output := self._printed(last):
                    execution.feed(output)
                    terminal.tape.write(output)
                note = "the terminal daemon ended, and its shells with it"
                terminal.tracker.end(execution, "daemon lost", "unknown", None, notes=(note,))
        terminal.set_variables(self._record.changed or {})
        await terminal.open()
        terminal.restored()

    def _printed(self, last: StoredCommand) -> bytes:
        """The output in the journal of a command whose shell is gone."""
        folder = terminal_journal(self._terminal)
        if not folder.is_dir():
            return b""
        journal = Journal(str(folder), (-1, -1))
        parser, output, began = MarkParser(self._record.nonce.encode()), bytearray(), False
        offset = max(last.start.offset, journal.start)
        while data := journal.read(offset, 1 << 18):
            offset += len(data)
            for piece in parser.feed(data):
                if isinstance(piece, Mark) and piece.trusted:
                    began = began or piece.kind in ("C", "S")
                elif isinstance(piece, bytes) and began:
                    output += piece
        return bytes(output)

    def _tell_past(self, *, replayed_after: int | None = None) -> None:
        """Restore the commands that had ended: their results, and what viewers saw of them.

        A person's commands with a higher number than `replayed_after` come from the journal.
        """
        terminal = self._terminal
        ended = [each for each in self._commands if each.end is not None and not each.start.internal]
        if replayed_after is not None:
            ended = [each for each in ended if not each.start.by_person or each.start.number < replayed_after]
        past = ended[-MOST_PAST:]
        sizes = {each.start.number: each.end.output_bytes for each in past if each.end is not None}
        spools = terminal.spools.take_over(sizes, name=self._record.spools or self._record.cookie)
        for each in past:
            assert each.end is not None
            spool = spools.get(each.start.number)
            ending = _ending(each.end)
            execution = Execution.of_past(
                number=each.start.number,
                command=each.start.command,
                by_person=each.start.by_person,
                runner=terminal,
                settings=terminal.settings,
                spool=spool,
                ending=ending,
                duration=each.end.duration,
            )
            terminal.remember(execution, each.start, each.end)
            if spool is not None:
                shown = spool.read(max(spool.end - SCROLLBACK // MOST_PAST, 0), SCROLLBACK)[1]
                terminal.tape.write(os.fsencode(each.start.command) + b"\r\n" + shown)

    def _begin(self, session: KeptSession, last: StoredCommand) -> Execution | None:
        """Restore the state in which the last command went to the shell; None: that command had ended."""
        terminal, start = self._terminal, last.start
        terminal.numbers_used(start.number)
        terminal.cwd = Path(start.cwd if last.end is None else last.end.cwd)
        session.loaded_before(start)
        if last.end is not None:
            return None
        execution = terminal.begun_before(start)
        move = os.fsencode(start.move)
        # `restarted`: should its shell have died before it began, it is not run again by us.
        given = Given(execution, os.fsencode(start.command), move, session.oom_kills(), restarted=True)
        terminal.tracker.state = Loading(given)
        return execution

    def _replay(self, session: KeptSession, last: StoredCommand | None, drained_from: int) -> None:
        journal = session.kept_pty.journal
        offset = last.start.offset if last is not None else 0
        shown = last.end.offset if last is not None and last.end is not None else offset
        if offset < journal.start:
            lost, offset = journal.start - offset, journal.start
            state = self._terminal.tracker.state
            if isinstance(state, Loading):
                state.given.execution.note(f"the first {lost:,} bytes it printed are not kept")
                self._terminal.tracker.on_started(state.given.execution.number)
        while offset < journal.end:
            stop = min(each for each in (shown, drained_from, journal.end) if each > offset)
            data = journal.read(offset, min(stop - offset, 1 << 18))
            if not data:
                break
            session.replay(data, answered=offset < drained_from, shown=offset < shown)
            offset += len(data)

    async def _settle(self, session: KeptSession, execution: Execution) -> None:
        """Decide about a command whose program was killed while sending it: it has begun, or it never will."""
        terminal = self._terminal
        end = time.monotonic() + TAKE_PATIENCE
        asleep = -1
        while isinstance(terminal.tracker.state, Loading) and session.alive and time.monotonic() < end:
            await session.until_read()
            if not isinstance(terminal.tracker.state, Loading):
                break
            now = processes.sleeps(session.pid)
            if session.waits() and not session.pty.has_unread_input():
                if now == asleep:
                    break
                asleep = now
            await asyncio.sleep(0.005)
        if isinstance(terminal.tracker.state, Loading) and session.alive:
            await terminal.withdraw(execution)
        if terminal.current is not None:
            terminal.monitor.watch()


def terminal_journal(terminal: KeptTerminal) -> Path:
    return terminal.keeper.folder / "journal"


def _ending(end: EndRecord) -> Ending:
    return Ending(
        reason=cast("Reason", end.reason),
        evidence=cast("Evidence", end.evidence),
        cwd=Path(end.cwd),
        exit_code=end.exit_code,
        pipestatus=end.pipestatus,
        notes=end.notes,
    )
