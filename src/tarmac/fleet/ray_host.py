"""The host of one node of a Ray cluster, as an actor. Ray itself is not imported here.

connect() → a connection · receive(connection, bytes) · send(connection) → bytes, when there are some

There is one actor for each node, not for each terminal. An actor is a process of 100 MB. A terminal in it costs a few
kilobytes.
"""

import asyncio
import os

from tarmac.terminals.host.byte_stream import MemoryStream, memory_streams
from tarmac.terminals.host.host import Host


class RayHost:
    """Keeps the terminals of one node."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._host: Host | None = None
        self._streams: dict[int, MemoryStream] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._numbers = 0

    async def connect(self) -> int:
        if self._host is None:
            self._host = await Host().__aenter__()
        near, far = memory_streams()
        self._numbers += 1
        self._streams[self._numbers] = near
        task = asyncio.get_running_loop().create_task(self._host.serve(far))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return self._numbers

    async def receive(self, connection: int, data: bytes) -> None:
        if (stream := self._streams.get(connection)) is not None:
            stream.write(data)

    async def send(self, connection: int) -> bytes:
        """The next bytes for the client; b"" at the end."""
        stream = self._streams.get(connection)
        data = await stream.read() if stream is not None else b""
        if not data:
            self._streams.pop(connection, None)
        return data

    async def end(self, connection: int) -> None:
        if (stream := self._streams.pop(connection, None)) is not None:
            stream.abort()

    async def load(self) -> dict[str, float]:
        sessions = self._host.sessions.values() if self._host is not None else ()
        terminals = [each for session in sessions for each in session.terminals.values()]
        return {
            "terminals": len(terminals),
            "busy": sum(each.busy for each in terminals),
            "limit": self._limit,
            "load": round(os.getloadavg()[0], 2),
            "cores": os.cpu_count() or 1,
            "pid": os.getpid(),
        }

    async def leave(self) -> None:
        """End all terminals."""
        if self._host is not None:
            host, self._host = self._host, None
            await host.__aexit__()
