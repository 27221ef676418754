"""A terminal of a joined task, in this process: its screen comes in, keys and sizes go out.

async with task.attached("t1") as terminal:
    async for piece in terminal.watch(): …
    await terminal.type(b"ls\\r")

It has what `/attach` needs of a Terminal. Its keyboard is ours until another window takes it.
"""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator

from tarmac.errors import TarmacError
from tarmac.events import TerminalId
from tarmac.server.app_connection import AppConnection, Json
from tarmac.server.viewer import SIZE, FrameKind
from tarmac.terminals.output.tape import Printed, Resized, Snapshot


class JoinedTerminal:
    """One of them, while it is looked at."""

    def __init__(self, connection: AppConnection, row: Json) -> None:
        self.id = TerminalId(row["id"])
        self.size: tuple[int, int] = (row["rows"], row["columns"])
        self.ended = ""  # why nothing more comes
        self._connection = connection
        self._epoch = 0
        self._pieces: asyncio.Queue[Snapshot | Printed | Resized | None] = asyncio.Queue()

    async def take(self) -> None:
        """Have its keyboard. Who had it is told."""
        self._epoch = (await self._connection.request("take", terminal=self.id))["epoch"]

    async def watch(self) -> AsyncIterator[Snapshot | Printed | Resized]:
        """The terminal as it is now, then all that it prints, until it is gone."""
        await self._connection.request("watch", terminal=self.id)
        begun = False
        while not self.ended and (piece := await self._pieces.get()) is not None:
            begun = begun or isinstance(piece, Snapshot)  # before it comes the rest of an earlier look
            if begun:
                yield piece
            match piece:
                case Snapshot(offset=offset):
                    self._connection.post("ack", terminal=self.id, offset=offset)
                case Printed(offset=offset, data=data):
                    self._connection.post("ack", terminal=self.id, offset=offset + len(data))

    async def type(self, data: bytes) -> None:
        self._connection.post("input", terminal=self.id, epoch=self._epoch, raw=base64.b64encode(data).decode())

    def resize(self, *, rows: int, columns: int) -> None:
        self.size = (rows, columns)
        self._connection.post("resize", terminal=self.id, epoch=self._epoch, rows=rows, columns=columns)

    def drawn(self, kind: int, offset: int, payload: bytes) -> None:
        """The next binary frame."""
        match kind:
            case FrameKind.SNAPSHOT:
                rows, columns = SIZE.unpack_from(payload)
                self._pieces.put_nowait(Snapshot(offset, rows, columns, payload[SIZE.size :]))
            case FrameKind.DATA:
                self._pieces.put_nowait(Printed(offset, payload))
            case FrameKind.RESIZED:
                self._pieces.put_nowait(Resized(offset, *SIZE.unpack_from(payload)))

    def end(self, why: str) -> None:
        """Nothing more comes."""
        self.ended = self.ended or why
        self._pieces.put_nowait(None)

    async def leave(self) -> None:
        """Give the keyboard back, and look away."""
        with contextlib.suppress(TarmacError):  # it is gone, or another window has the keyboard
            await self._connection.request("unwatch", terminal=self.id)
            await self._connection.request("give", terminal=self.id, epoch=self._epoch)
