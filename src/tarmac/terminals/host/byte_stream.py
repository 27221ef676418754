"""A stream of bytes in both directions. A host and its client need nothing else of a connection."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Protocol

MOST = 256 << 10  # bytes that a read returns at most


class ByteStream(Protocol):
    """One connection. `read` returns b"" once, at its end. A broken connection looks like one that ended."""

    async def read(self) -> bytes: ...
    def write(self, data: bytes) -> None:
        """Queue `data` to be sent. After the end of the connection it is discarded."""

    async def drain(self) -> None:
        """Wait while the other side is far behind."""

    def abort(self) -> None:
        """End it at once; what is not sent yet is lost."""

    async def aclose(self) -> None:
        """Send what is left, within a moment, and end it."""


class AsyncioStream:
    """Over an asyncio reader and writer: sockets, and the pipes of a child process."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        first: bytes = b"",
        ended: Callable[[], None] | None = None,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._first = first  # read already
        self._ended = ended

    async def read(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            return await self._reader.read(MOST)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            pass

    def abort(self) -> None:
        self._writer.transport.abort()
        reading = getattr(self._reader, "_transport", None)  # that of a pipe is another one
        if reading is not None:
            reading.close()
        self._over()

    async def aclose(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._writer.drain()
        except (OSError, TimeoutError):
            pass
        self.abort()

    def _over(self) -> None:
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended()


async def stream_of_socket(sock: socket.socket, *, first: bytes = b"") -> AsyncioStream:
    """Over a connected socket. `first` was read from it already."""
    reader, writer = await asyncio.open_unix_connection(sock=sock, limit=MOST)
    return AsyncioStream(reader, writer, first=first)


async def stream_of_pipes(reads: int, writes: int, *, ended: Callable[[], None] | None = None) -> AsyncioStream:
    """Over two descriptors, which may be pipes or sockets. Both are closed with it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MOST)
    source = os.fdopen(reads, "rb", buffering=0)
    sink = os.fdopen(writes, "wb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), sink)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    return AsyncioStream(reader, writer, ended=ended)


class MemoryStream:
    """One end of a connection within this process; see `memory_streams`."""

    def __init__(self) -> None:
        self._received: list[bytes] = []
        self._news = asyncio.Event()
        self._over = False
        self.other: MemoryStream | None = None

    async def read(self) -> bytes:
        while not self._received and not self._over:
            self._news.clear()
            await self._news.wait()
        data, self._received = b"".join(self._received), []
        return data

    def write(self, data: bytes) -> None:
        if self.other is not None and not self._over:
            self.other._received.append(data)
            self.other._news.set()

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def abort(self) -> None:
        for each in (self, self.other):
            if each is not None:
                each._over = True
                each._news.set()

    async def aclose(self) -> None:
        self.abort()


def memory_streams() -> tuple[MemoryStream, MemoryStream]:
    """Two ends of one connection: what is written to one is read from the other."""
    one, two = MemoryStream(), MemoryStream()
    one.other, two.other = two, one
    return one, two
