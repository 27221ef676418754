"""One client's terminals in a host. They stay while the client is away, until its time to live is over.

CALL → _VERBS[verb] → a terminal → REPLY or FAILED
execution → OutputSender → OUTPUT … by offset, the last with its ending

Replies and events are numbered, and kept until the client has acknowledged them. Output stays in the terminal's own
spool. So a connection may break at any byte, and the next one continues from there.
"""

import asyncio
import json
import os
import platform
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from tarmac.errors import BadFrame, BadRequest, PlaceFailed, TarmacError, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.paths import check_directory, remove_scratch, scratch_dir
from tarmac.terminals import events
from tarmac.terminals.execution import Execution
from tarmac.terminals.frames import Frame, encode
from tarmac.terminals.host import file_verbs
from tarmac.terminals.host.byte_stream import ByteStream
from tarmac.terminals.host.wire_values import (
    COUNTED,
    VERSION,
    Header,
    HostFrameKind,
    ending_to_wire,
    error_to_wire,
    path_text,
    seconds,
    settings_from_wire,
    table,
    text,
    waiting_to_wire,
    whole,
)
from tarmac.terminals.open import Machine
from tarmac.terminals.output.terminal_screen import settle
from tarmac.terminals.result import Reason
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import NewTerminal, Provider, Terminal

READ_SIZE = 128 << 10
HOST_MEMORY = 64 << 10  # of a command's output: the client has the rest

TOLD = (
    events.AwaitingInput,
    events.ShellEnded,
    events.ShellReplaced,
    events.NoShellIntegration,
    events.TerminalClosedEvent,
)

Reply = tuple[dict[str, object], bytes]


class HostSession:
    """The terminals of one client, and how far it has heard of them."""

    def __init__(self, id: str, machine: Machine, *, time_to_live: float) -> None:
        self.id = id
        self.time_to_live = time_to_live
        self.left_at = time.monotonic()  # when its client was last connected
        self.terminals: dict[str, Terminal] = {}
        self.over = False
        self._machine = machine
        self._stream: ByteStream | None = None
        self._unheard: deque[bytes] = deque()  # counted frames that the client may not have
        self._heard = 0  # counted frames that it surely has
        self._last_call = 0
        self._latest: dict[str, tuple[Terminal, Execution]] = {}  # the last command of each, also of closed ones
        self._senders: dict[str, OutputSender] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._scratch: Path | None = None
        self._verbs: dict[object, Callable[[Header, bytes], Awaitable[Reply]]] = {
            "open": self._open,
            "start": self._start,
            "send": self._send_input,
            "close_input": self._close_input,
            "interrupt": self._interrupt,
            "kill": self._kill,
            "withdraw": self._withdraw,
            "reset": self._reset,
            "resize": self._resize,
            "environment": self._environment,
            "jobs": self._jobs,
            "settle": self._settle,
            "waiting_for": self._waiting_for,
            "directory": self._directory,
            "close": self._close,
            "load": self._load,
            "look": self._look,
            "read": self._read,
            "save": self._save,
            "remove": self._remove,
            "chmod": self._chmod,
            "search": self._search,
        }

    @property
    def connected(self) -> bool:
        return self._stream is not None

    # Connections

    def attach(self, stream: ByteStream, hello: Header) -> None:
        """Take a new connection of the client, and send what it has missed. End an older connection."""
        if self._stream is not None:
            self._stream.abort()
        self._stop_senders()
        self._hears(whole(hello, "seen", 0))
        self.time_to_live = seconds(hello, "ttl", self.time_to_live)
        self._stream = stream
        stream.write(encode(Frame(HostFrameKind.WELCOME, 0, self._welcome())))
        for data in self._unheard:
            stream.write(data)
        have = table(hello, "have")
        for id, (terminal, execution) in self._latest.items():
            if f"{id}/{execution.number}" in have or execution.number > whole(have, id, 0):
                self._follow(id, terminal, execution, whole(have, f"{id}/{execution.number}", 0))

    def detach(self, stream: ByteStream) -> None:
        """That connection is over. Its terminals go on."""
        if self._stream is stream:
            self._stream = None
            self.left_at = time.monotonic()
            self._stop_senders()

    def _welcome(self) -> dict[str, object]:
        return {
            "version": VERSION,
            "last_call": self._last_call,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "system": platform.system(),
            "machine": platform.node(),
            "home": path_text(Path.home()),
            "cwd": path_text(_here()),
            "time": time.time(),
        }

    def _hears(self, count: int) -> None:
        while self._heard < count and self._unheard:
            self._unheard.popleft()
            self._heard += 1

    def _send(self, frame: Frame) -> None:
        data = encode(frame)
        if frame.kind in COUNTED:
            self._unheard.append(data)
        if self._stream is not None:
            self._stream.write(data)

    # What the client says

    def receive(self, frame: Frame) -> None:
        match frame.kind:
            case HostFrameKind.CALL if frame.request > self._last_call:
                self._last_call = frame.request
                self._hears(whole(frame.header, "seen", 0))
                task = asyncio.get_running_loop().create_task(self._call(frame))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
            case HostFrameKind.ACK:
                self._hears(whole(frame.header, "seen", 0))
            case HostFrameKind.PING if self._stream is not None:
                self._stream.write(encode(Frame(HostFrameKind.PONG, frame.request)))
            case HostFrameKind.BYE:
                self.over = True

    async def _call(self, frame: Frame) -> None:
        verb = frame.header.get("verb")
        try:
            do = self._verb(verb)
            header, body = await do(frame.header, frame.body)
            self._send(Frame(HostFrameKind.REPLY, frame.request, header, body))
        except TarmacError as error:
            self._send(Frame(HostFrameKind.FAILED, frame.request, error_to_wire(error)))
        except Exception as error:  # a fault of ours, or of the machine: the client must not wait for ever
            self._send(Frame(HostFrameKind.FAILED, frame.request, error_to_wire(error)))

    def _verb(self, verb: object) -> "Callable[[Header, bytes], Awaitable[Reply]]":
        if verb not in self._verbs:
            raise PlaceFailed(
                f"the host there does not know `{verb}`", hint="it is older than this Tarmac: end it, and connect again"
            )
        return self._verbs[verb]

    # Verbs

    async def _open(self, given: Header, _: bytes) -> Reply:
        id = TerminalId(text(given, "terminal"))
        if id in self.terminals:
            raise BadRequest(f"there is a terminal {id} already")
        provider = text(given, "provider", "pty")
        if provider not in ("pty", "exec"):
            raise BadRequest(f"provider is 'pty' or 'exec', not {provider!r}")
        self._scratch = self._scratch or scratch_dir(os.environ)
        settings = replace(
            settings_from_wire(table(given, "settings")), spool_directory=self._scratch, output_memory=HOST_MEMORY
        )
        shell = given.get("shell")
        cwd = given.get("cwd")
        task = given.get("task")
        new = NewTerminal(
            cwd=Path(cwd) if isinstance(cwd, str) else _here(),
            settings=settings,
            shell=shell if isinstance(shell, str) else None,
            provider=cast(Provider, provider),
            name=id,
            task=TaskId(task) if isinstance(task, str) else None,
            without=text(given, "without", ""),
        )
        terminal = await self._machine.open(new)
        if self.over:
            await terminal.aclose()
            raise PlaceFailed("the session is over")
        self.terminals[id] = terminal
        terminal.subscribe(lambda event: self._hear(id, event), *TOLD)
        return {
            "cwd": path_text(terminal.cwd),
            "shell": terminal.shell.path,
            "version": terminal.shell_version,
            "quality": terminal.quality,
            "provider": terminal.provider,
            "stands_in": getattr(terminal, "stands_in", ""),
        }, b""

    def _hear(self, id: str, event: events.TerminalEvent) -> None:
        match event:
            case events.AwaitingInput(number=number):
                current = self.terminals[id].current
                waiting = current.waiting if current is not None else None
                self._tell(id, "waiting", number=number, waiting=waiting_to_wire(waiting))
            case events.ShellEnded(status=status):
                self._tell(id, "shell_ended", status=status)
            case events.ShellReplaced(why=why):
                self._tell(id, "shell_replaced", why=why, cwd=path_text(self.terminals[id].cwd))
            case events.NoShellIntegration(why=why):
                self._tell(id, "no_integration", why=why)
            case events.TerminalClosedEvent(reason=reason):
                self._tell(id, "closed", reason=reason)

    def _tell(self, id: str, event: str, **details: object) -> None:
        self._send(Frame(HostFrameKind.EVENT, 0, {"terminal": id, "event": event, **details}))

    async def _start(self, given: Header, body: bytes) -> Reply:
        id = text(given, "terminal")
        terminal = self._terminal(given)
        cwd = given.get("cwd")
        command = os.fsdecode(body)
        execution = await terminal.start(
            command, cwd=Path(cwd) if isinstance(cwd, str) else None, input_open=given.get("input") is not False
        )
        if (before := self._latest.get(id)) is not None:  # who starts another one has all of it
            before[1].forget_output()
        self._latest[id] = (terminal, execution)
        self._follow(id, terminal, execution, 0)
        return {"number": execution.number, "fresh_shell": execution.fresh_shell}, b""

    def _follow(self, id: str, terminal: Terminal, execution: Execution, offset: int) -> None:
        if (before := self._senders.pop(id, None)) is not None:
            before.stop()
        if self._stream is not None:
            self._senders[id] = OutputSender(self._stream, terminal, id, execution, offset)

    def _stop_senders(self) -> None:
        for sender in self._senders.values():
            sender.stop()
        self._senders.clear()

    # Files

    async def _look(self, _: Header, body: bytes) -> Reply:
        wanted = json.loads(body)
        found = await asyncio.to_thread(file_verbs.look, wanted["paths"], wanted["folders"])
        return {}, json.dumps(found, separators=(",", ":")).encode()

    async def _read(self, given: Header, _: bytes) -> Reply:
        data = await asyncio.to_thread(file_verbs.read, Path(text(given, "path")), whole(given, "most"))
        return {"found": data is not None}, data or b""

    async def _save(self, given: Header, body: bytes) -> Reply:
        return await asyncio.to_thread(file_verbs.save, Path(text(given, "path")), body, given), b""

    async def _remove(self, given: Header, _: bytes) -> Reply:
        await asyncio.to_thread(file_verbs.remove, Path(text(given, "path")), given)
        return {}, b""

    async def _chmod(self, given: Header, _: bytes) -> Reply:
        await asyncio.to_thread(file_verbs.chmod, Path(text(given, "path")), given)
        return {}, b""

    async def _search(self, _: Header, body: bytes) -> Reply:
        return await asyncio.to_thread(file_verbs.search, body)

    # Input, and the end of commands

    async def _send_input(self, given: Header, body: bytes) -> Reply:
        await self._execution(given).send(body)
        return {}, b""

    async def _close_input(self, given: Header, _: bytes) -> Reply:
        self._execution(given).close_input()
        return {}, b""

    async def _interrupt(self, given: Header, _: bytes) -> Reply:
        execution = self._execution(given)
        self._blame(execution, given)
        await execution.interrupt()
        return {}, b""

    async def _kill(self, given: Header, _: bytes) -> Reply:
        execution = self._execution(given)
        self._blame(execution, given)
        await execution.kill()
        return {}, b""

    @staticmethod
    def _blame(execution: Execution, given: Header) -> None:
        if execution.running and (cause := given.get("cause")) is not None:
            execution.cause = execution.cause or cast(Reason, cause)

    async def _withdraw(self, given: Header, _: bytes) -> Reply:
        execution = self._execution(given)
        if execution.running:
            await self._terminal(given).withdraw(execution)
        return {"began": execution.began, "running": execution.running}, b""

    async def _reset(self, given: Header, _: bytes) -> Reply:
        terminal = self._terminal(given)
        await terminal.reset(check_directory(Path(text(given, "cwd"))))
        return {"cwd": path_text(terminal.cwd)}, b""

    async def _resize(self, given: Header, _: bytes) -> Reply:
        self._terminal(given).resize(rows=whole(given, "rows"), columns=whole(given, "columns"))
        return {}, b""

    async def _environment(self, given: Header, _: bytes) -> Reply:
        return {"environment": await self._terminal(given).environment()}, b""

    async def _jobs(self, given: Header, _: bytes) -> Reply:
        return {"jobs": self._terminal(given).has_jobs}, b""

    async def _settle(self, given: Header, _: bytes) -> Reply:
        terminal = self._terminal(given)
        if not isinstance(terminal, PtyTerminal) or terminal.session is None or not terminal.session.alive:
            return {"settled": "ended"}, b""
        limit = seconds(given, "limit", 2.0)
        current = terminal.current
        settled, waiting = await settle(terminal.session, current, terminal.tape, limit=limit)
        printed = current.output_bytes if current is not None else 0
        return {"settled": str(settled), "waiting": waiting_to_wire(waiting), "printed": printed}, b""

    async def _waiting_for(self, given: Header, _: bytes) -> Reply:
        wanted = {
            name: value
            for name, value in table(given, "conditions").items()
            if name in ("ended", "pattern", "input", "secrets", "quiet", "port", "timeout")
        }
        happened = await self._terminal(given).waiting_for(**wanted)  # type: ignore[arg-type]
        return {
            "what": happened.what,
            "after": happened.after,
            "text": happened.text,
            "waiting": waiting_to_wire(happened.waiting),
            "port": happened.port,
            "pid": happened.pid,
            "exit_code": happened.exit_code,
            "reason": happened.reason,
        }, b""

    async def _directory(self, given: Header, _: bytes) -> Reply:
        return {"path": path_text(self._machine.check_directory(Path(text(given, "path")).expanduser()))}, b""

    async def _close(self, given: Header, _: bytes) -> Reply:
        id = text(given, "terminal")
        terminal = self.terminals.get(id)
        if terminal is not None:
            await terminal.aclose()
            self.terminals.pop(id, None)
        return {}, b""

    async def _load(self, given: Header, _: bytes) -> Reply:
        busy = sum(each.busy for each in self.terminals.values())
        return {"terminals": len(self.terminals), "busy": busy, "load": os.getloadavg()[0]}, b""

    def _terminal(self, given: Header) -> Terminal:
        id = text(given, "terminal")
        if id not in self.terminals:
            raise TerminalNotFound(f"Terminal {id} not found", hint="it was closed")
        return self.terminals[id]

    def _execution(self, given: Header) -> Execution:
        number = whole(given, "number")
        for each in reversed(self._terminal(given).executions):
            if each.number == number:
                return each
        raise BadFrame(f"there is no command {number} in that terminal")

    # The end

    async def aclose(self) -> None:
        """Close its terminals and forget it."""
        self.over = True
        self._stop_senders()
        for task in list(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await asyncio.gather(*(each.aclose() for each in self.terminals.values()), return_exceptions=True)
        self.terminals.clear()
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None
        if self._scratch is not None:
            remove_scratch(self._scratch)


class OutputSender:
    """Sends what a command prints to a connection, by offset, and its end. It waits while the client is far behind."""

    def __init__(self, stream: ByteStream, terminal: Terminal, id: str, execution: Execution, offset: int) -> None:
        self._stream = stream
        self._terminal = terminal
        self._key: dict[str, object] = {"terminal": id, "number": execution.number}
        self._execution = execution
        self._offset = offset
        self._over = self._due = False
        self._catching_up: asyncio.Task[None] | None = None
        execution.follower = self._news
        if offset < execution.output_bytes or not execution.running:
            self._soon()  # not before the reply: the client knows the command by it

    def stop(self) -> None:
        self._over = True
        self._execution.follower = None
        if self._catching_up is not None:
            self._catching_up.cancel()

    def _news(self) -> None:
        """It printed something, or it ended. The end of a shell is told before the end of its command."""
        if self._execution.running or not self._terminal.alive:
            self._soon()
        else:
            self._send()

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._due_now)

    def _due_now(self) -> None:
        self._due = False
        self._send()

    def _send(self) -> None:
        execution = self._execution
        if self._over or self._catching_up is not None:
            return
        header, data = {**self._key, "offset": self._offset}, b""
        if self._offset < execution.output_bytes:
            start, data = execution.spool.read(self._offset, READ_SIZE)
            if not data:
                start = execution.output_bytes
            header["offset"], self._offset = start, start + len(data)
        elif execution.running:
            return
        if not execution.running and self._offset >= execution.output_bytes:
            header |= {"ending": ending_to_wire(execution), "jobs": self._terminal.has_jobs}
            self.stop()
        self._stream.write(encode(Frame(HostFrameKind.OUTPUT, 0, header, data)))
        if self._over:
            return
        if self._stream.full:
            self._catching_up = asyncio.get_running_loop().create_task(self._catch_up())
        elif self._offset < execution.output_bytes or not execution.running:
            self._soon()

    async def _catch_up(self) -> None:
        await self._stream.drain()
        self._catching_up = None
        self._soon()


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path("/")
