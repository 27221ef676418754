"""A terminal of a joined task, in this process: its screen comes in, keys and sizes go out.

async with task.attached("t1") as terminal:
    async for piece in terminal.watch(): …
    await terminal.type(b"ls\\r")

It has what `/attach` needs of a Terminal. Its keyboard is ours until another window takes it.

PassedOnTerminal is the same for a page of this process: its verbs go there, and the frames come back to it.
"""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.events import TerminalId
from tarmac.server.live_terminals import HEAD, SIZE, FrameKind
from tarmac.server.unix_socket import AppConnection, Json, connect
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


class PassedOnTerminal:
    """A terminal of another process, for one page of ours, on a connection of its own.

    So the other process sees the page as any window of its own: what it has acknowledged, and that it has the keyboard.
    """

    def __init__(
        self,
        id: str,
        theirs: str,
        number: int,
        *,
        send: Callable[[bytes], Awaitable[None]],
        tell: Callable[[Json], object],
        known: Callable[[str], object],
    ) -> None:
        """`id` and `number`: as the page has it; `known` is told as whom the other process knows it."""
        self._id, self._theirs, self._number = id, theirs, number
        self._send, self._tell, self._known = send, tell, known
        self._connection: AppConnection | None = None
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()  # bounded by what the page acknowledges
        self._sending: asyncio.Task[None] | None = None
        self.lost = False  # the other process is gone

    async def open(self, socket: Path) -> None:
        """Connect. PeerGone, PeerRefused."""
        channel = await connect(socket)
        self._connection = AppConnection(channel, heard=self._heard, drawn=self._frames.put_nowait, lost=self._lost)
        await self._connection.open("web")
        self._sending = asyncio.create_task(self._pass_on())

    async def do(self, verb: Json) -> Json | None:
        """Make a verb of the page there. One without an `id` is not waited for."""
        assert self._connection is not None
        fields = {name: value for name, value in verb.items() if name not in ("do", "id")}
        fields["terminal"] = self._theirs
        if verb.get("id") is None:
            self._connection.post(verb["do"], **fields)
            return None
        return await self._connection.request(verb["do"], **fields)

    def _lost(self) -> None:
        self.lost = True

    async def _pass_on(self) -> None:
        while True:
            frame = await self._frames.get()
            kind, _, offset = HEAD.unpack_from(frame)
            await self._send(HEAD.pack(kind, self._number, offset) + frame[HEAD.size :])

    def _heard(self, frame: Json) -> None:
        match frame:
            case {"type": "welcome", "page": str(page)}:
                self._known(page)
            case {"type": "taken", "terminal": self._theirs}:
                self._tell({**frame, "terminal": self._id})
            case {"type": "trouble"}:
                self._tell(frame)

    async def aclose(self) -> None:
        """Look away, and give the keyboard back."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        if self._connection is not None:
            await self._connection.aclose()
