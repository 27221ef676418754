"""The terminals of this process as clients see them: live rows, who has which keyboard, and what a page watches.

terminal.watch(offset) ─Snapshot, Printed, marks→ Viewer ─frames→ page
                                                         ←ack─

A Viewer is one terminal that one page watches. At most 256 KiB are unacknowledged. The tape keeps 1 MiB. A page that
falls further behind gets a new snapshot. The terminal never waits for a page.
"""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from tarmac.app import App
from tarmac.errors import BadRequest, TarmacError, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.server import shapes
from tarmac.server.shapes import Json
from tarmac.terminals import events
from tarmac.terminals.output.follow import Gap
from tarmac.terminals.output.tape import CommandBegan, CommandEnded, Printed, Resized, Snapshot, TapePiece
from tarmac.terminals.terminal import Terminal

LINE_KEPT: Final = 30.0  # seconds for a client that was cut off to come back to its half-typed line


class ClientLike(Protocol):
    """A connected client, as the state needs it."""

    id: str

    def tell(self, frame: Json) -> None: ...


@dataclass(slots=True)
class KeyboardHold:
    """Who has the keyboard of a terminal."""

    client: ClientLike | None = None
    epoch: int = 0


class LiveTerminals:
    """Those of some apps. `changed` is told of each whose row is another."""

    def __init__(
        self, apps: Callable[[], Iterable[App]], tell: Callable[[Json], object], changed: Callable[[TerminalId], object]
    ) -> None:
        self._apps = apps
        self._tell = tell
        self._changed = changed
        self._numbers: dict[TerminalId, int] = {}
        self._holds: dict[TerminalId, KeyboardHold] = {}
        self._awaits: dict[TerminalId, events.AwaitingInput] = {}
        self._last_tasks: dict[TerminalId, TaskId] = {}  # whose each is, or was before it was released
        self._abandoned: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Wait for nobody any more."""
        for each in self._abandoned:
            each.cancel()
        await asyncio.gather(*self._abandoned, return_exceptions=True)

    def left(self, client: ClientLike) -> None:
        """A client is gone, and with it its hold of keyboards. What it typed stays for a while: it may come back."""
        for id, hold in self._holds.items():
            if hold.client is client:
                hold.client = None
                self._changed(id)
                dropping = asyncio.create_task(self._drop_line_later(id, hold))
                self._abandoned.add(dropping)
                dropping.add_done_callback(self._abandoned.discard)

    async def _drop_line_later(self, id: TerminalId, hold: KeyboardHold) -> None:
        epoch = hold.epoch
        await asyncio.sleep(LINE_KEPT)
        if hold.epoch == epoch and self._holds.get(id) is hold:
            with suppress(TarmacError):  # its shell has just ended
                await self._drop_line(id)

    def get(self, id: str) -> Terminal:
        """The terminal of that id, in whichever workspace."""
        for app in self._apps():
            try:
                return app.registry.get(id)
            except TerminalNotFound:
                continue
        raise TerminalNotFound(f"terminal {id} is not there any more", hint="it was closed")

    def rows(self) -> list[Json]:
        """All of them, as rows."""
        return [self.row(each) for app in self._apps() for each in app.registry.listing()]

    def number(self, id: TerminalId) -> int:
        """How binary frames name it."""
        return self._numbers.setdefault(id, len(self._numbers) + 1)

    def row(self, terminal: Terminal) -> Json:
        hold = self._holds.get(terminal.id, KeyboardHold())
        return shapes.terminal_row(
            terminal,
            number=self.number(terminal.id),
            last_task=self._last_tasks.get(terminal.id),
            awaits=self._awaits.get(terminal.id),
            holder=hold.client.id if hold.client else None,
            epoch=hold.epoch,
        )

    def heard(self, event: events.TerminalEvent) -> None:
        """What the terminals tell."""
        id = event.terminal
        match event:
            case events.DataWritten():
                if self._awaits.pop(id, None) is None:
                    return
            case events.AwaitingInput():
                self._awaits[id] = event
            case events.CommandFinished():
                self._awaits.pop(id, None)
            case events.TerminalClosedEvent():
                for kept in (self._awaits, self._holds, self._last_tasks):
                    kept.pop(id, None)
                self._tell({"type": "terminal_gone", "terminal": id})
                return
        try:
            if (task := self.get(id).task) is not None:
                self._last_tasks[id] = task
        except TerminalNotFound:  # it is just being opened
            pass
        self._changed(id)

    async def close(self, id: str) -> None:
        """End it and all that runs in it."""
        for app in self._apps():
            await app.registry.kill(id)

    def focus(self, id: str) -> None:
        """The person looks at it."""
        for app in self._apps():
            try:
                app.registry.focus(id)
            except TerminalNotFound:
                continue

    # Keyboards

    def take(self, id: str, client: ClientLike) -> int:
        """The keyboard is this client's; the epoch that its input must carry."""
        terminal = self.get(id)
        hold = self._holds.setdefault(terminal.id, KeyboardHold())
        if hold.client is not None and hold.client is not client:
            hold.client.tell({"type": "taken", "terminal": id, "epoch": hold.epoch})
        hold.client, hold.epoch = client, hold.epoch + 1
        self._changed(terminal.id)
        return hold.epoch

    def held(self, id: str, epoch: int) -> Terminal:
        """The terminal, if that epoch still has its keyboard."""
        terminal = self.get(id)
        hold = self._holds.get(terminal.id, KeyboardHold())
        if hold.client is None or hold.epoch != epoch:
            raise BadRequest(f"the keyboard of {id} is not yours", hint="take it first")
        return terminal

    async def give(self, id: str, epoch: int) -> None:
        """The keyboard is the agent's again. A half-typed line is dropped, so that nothing is added to it."""
        terminal = self.held(id, epoch)
        self._holds[terminal.id].client = None
        await self._drop_line(terminal.id)

    async def _drop_line(self, id: TerminalId) -> None:
        terminal = self.get(id)
        if terminal.held and terminal.current is None:
            await terminal.type(b"\x03")
        self._changed(id)

    def resize(self, id: str, epoch: int, *, rows: int, columns: int, always: bool = False) -> None:
        """Only who has the keyboard decides, and not while the agent's own command draws.

        `always`: also then. A page can scroll a terminal of another size, a person's own terminal can't.
        """
        terminal = self.held(id, epoch)
        if terminal.current is not None and not terminal.current.by_person and not always:
            return
        terminal.resize(rows=rows, columns=columns)
        self._changed(terminal.id)

    async def secret(self, id: str, text: str) -> None:
        """Type a secret, if one is asked for right now. It is kept nowhere."""
        terminal = self.get(id)
        if terminal.current is None:
            raise BadRequest(f"nothing runs in {id}: nothing was typed")
        await terminal.current.send_secret(text, timeout=2)
        self._awaits.pop(terminal.id, None)
        self._changed(terminal.id)


WINDOW: Final = 256 << 10  # bytes that a page has not acknowledged
LARGEST_FRAME: Final = 64 << 10  # a page acknowledges every 64 KiB: with less than that open, a frame has room
HEAD: Final = struct.Struct(">BIQ")
SIZE: Final = struct.Struct(">HH")


class FrameKind(IntEnum):
    """The first byte of a binary frame."""

    SNAPSHOT = 1
    DATA = 2
    RESIZED = 3
    MARK = 4


class Viewer:
    """Call `run` once; `ack` meanwhile."""

    def __init__(self, terminal: Terminal, number: int, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._terminal = terminal
        self._number = number
        self._send = send
        self._sent = 0  # the offset behind the last byte
        self._acked = 0
        self._painted = 0  # where the last snapshot was taken
        self._snapshot = 0  # its bytes
        self._room = asyncio.Event()

    async def run(self, offset: int | None) -> None:
        """Show the terminal from `offset` on, until it is closed."""
        tape = self._terminal.tape
        if offset is not None and tape.start <= offset <= tape.end:
            self._sent = self._acked = self._painted = offset
        async for piece in self._terminal.watch(offset):
            await self._show(piece)

    def ack(self, offset: int) -> None:
        """The page has drawn all up to `offset`."""
        if self._acked < offset <= self._sent:
            self._acked = offset
        if offset >= self._painted:
            self._snapshot = 0
        self._room.set()

    @property
    def unacknowledged(self) -> int:
        return self._snapshot + self._sent - max(self._acked, self._painted)

    async def _show(self, piece: Snapshot | TapePiece) -> None:
        match piece:
            case Snapshot(offset=offset, rows=rows, columns=columns, data=data):
                self._sent = self._painted = offset
                self._snapshot = len(data)
                await self._frame(FrameKind.SNAPSHOT, offset, SIZE.pack(rows, columns) + data)
            case Printed(offset=offset, data=data):
                for start in range(0, len(data), LARGEST_FRAME):
                    part = data[start : start + LARGEST_FRAME]
                    await self._until_room(len(part))
                    self._sent = offset + start + len(part)
                    await self._frame(FrameKind.DATA, offset + start, part)
            case Resized(offset=offset, rows=rows, columns=columns):
                await self._frame(FrameKind.RESIZED, offset, SIZE.pack(rows, columns))
            case CommandBegan(offset=offset, number=number):
                await self._mark(offset, {"command": number, "what": "start"})
            case CommandEnded(offset=offset, number=number):
                await self._mark(offset, {"command": number, "what": "end"})
            case Gap():
                pass  # a snapshot follows

    async def _until_room(self, size: int) -> None:
        while self.unacknowledged and self.unacknowledged + size > WINDOW:
            self._room.clear()
            await self._room.wait()

    async def _mark(self, offset: int, about: dict[str, object]) -> None:
        number = about["command"]
        past = next((each for each in reversed(self._terminal.history) if each.number == number), None)
        current = self._terminal.current
        if past is not None:
            about |= {"text": past.command, "exit_code": past.exit_code}
        elif current is not None and current.number == number:
            about |= {"text": current.command}
        await self._frame(FrameKind.MARK, offset, json.dumps(about).encode())

    async def _frame(self, kind: FrameKind, offset: int, payload: bytes) -> None:
        await self._send(HEAD.pack(kind, self._number, offset) + payload)
