"""A stream of bytes in both directions. A host and its client need nothing else of a connection."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Protocol, cast

from tarmac.terminals.bell import Bell

MOST = 256 << 10  # bytes that a read returns at most


class ByteStream(Protocol):
    """One connection. `read` returns b"" once, at its end. A broken connection looks like one that ended."""

    async def read(self) -> bytes: ...
    async def receive(self, take: Callable[[bytes], bool]) -> None:
        """Call `take` with all that comes, until the end, or until it returns False."""
        while (data := await self.read()) and take(data):
            pass

    def write(self, data: bytes) -> None:
        """Queue `data` to be sent. After the end of the connection it is discarded."""

    @property
    def full(self) -> bool:
        """Whether the other side is far behind."""
        return False

    async def drain(self) -> None:
        """Wait while the other side is far behind."""

    def abort(self) -> None:
        """End it at once; what is not sent yet is lost."""

    async def aclose(self) -> None:
        """Send what is left, within a moment, and end it."""


class SocketStream(asyncio.Protocol, ByteStream):
    """Over a socket. What comes is taken at once: to wake a task for it costs as much as to read it."""

    def __init__(self, *, ended: Callable[[], None] | None = None) -> None:
        self._closed = ended
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._take: Callable[[bytes], bool] | None = None
        self._error: Exception | None = None
        self._ended = self._paused = False
        self._news = Bell()  # bytes, room to write, or the end

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._take is None:
            self._unread += data
            if len(self._unread) > MOST and self._transport is not None:
                self._transport.pause_reading()
            self._news.ring()
            return
        try:
            more = self._take(data)
        except Exception as error:
            self._error, more = error, False
        if not more:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._closed is not None:
            self._closed()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._news.ring()

    def _end(self) -> None:
        self._ended, self._take = True, None
        self._news.ring()

    # What its owner does

    async def read(self) -> bytes:
        while not self._unread and not self._ended:
            await self._news.wait()
        data = bytes(self._unread)
        self._unread.clear()
        if self._transport is not None:
            self._transport.resume_reading()
        return data

    async def receive(self, take: Callable[[bytes], bool]) -> None:
        if self._unread and not take(await self.read()):
            return
        self._take = take
        try:
            while not self._ended:
                await self._news.wait()
        finally:
            self._take = None
        if self._error is not None:
            raise self._error

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    @property
    def full(self) -> bool:
        return self._paused and not self._ended

    async def drain(self) -> None:
        while self.full:
            await self._news.wait()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def aclose(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self.drain()
        except TimeoutError:
            pass
        self.abort()


class AsyncioStream(ByteStream):
    """Over an asyncio reader and writer: pipes, and those of a child process."""

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
        self._aborted = False

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

    @property
    def full(self) -> bool:
        transport = self._writer.transport
        return transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            pass

    def abort(self) -> None:
        if self._aborted:  # asyncio's pipes fail when they are aborted again
            return
        self._aborted = True
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


async def stream_of_socket(
    sock: socket.socket, *, first: bytes = b"", ended: Callable[[], None] | None = None
) -> SocketStream:
    """Over a connected socket. `first` was read from it already."""
    _, stream = await asyncio.get_running_loop().create_connection(lambda: SocketStream(ended=ended), sock=sock)
    if first:
        stream.data_received(first)
    return stream


async def stream_of_pipes(reads: int, writes: int, *, ended: Callable[[], None] | None = None) -> ByteStream:
    """Over two descriptors, which may be pipes or sockets, or both the same socket. Both are closed with it."""
    if os.path.sameopenfile(
        reads, writes
    ):  # asyncio takes a socket that it only writes to for closed once it is readable
        os.close(writes)
        sock = socket.socket(fileno=reads)
        sock.setblocking(False)
        return await stream_of_socket(sock, ended=ended)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MOST)
    source = os.fdopen(reads, "rb", buffering=0)
    sink = os.fdopen(writes, "wb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), sink)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    return AsyncioStream(reader, writer, ended=ended)


class MemoryStream(ByteStream):
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
