"""One terminal that one page watches: binary frames, limited to what the page has acknowledged.

terminal.watch(offset) ─Snapshot, Printed, marks→ Viewer ─frames→ page
                                                         ←ack─

At most 256 KiB are unacknowledged. The tape keeps 1 MiB. A page that falls further behind gets a new snapshot. The
terminal never waits for a page.
"""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Final

from tarmac.terminals.output.follow import Gap
from tarmac.terminals.output.tape import CommandBegan, CommandEnded, Printed, Resized, Snapshot, TapePiece
from tarmac.terminals.terminal import Terminal

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
