"""Our standard input and output as a connection of their own: nothing else in this process may read or write them.

The descriptors are moved away; in their place stand /dev/null and standard error. So a command we start does not eat
the editor's messages, and a stray print does not end up among ours.
"""

import asyncio
import atexit
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tarmac.acp.rpc_peer import Handler, RpcPeer

T = TypeVar("T")


@dataclass(slots=True)
class FdReader:
    """A descriptor that does not block, to read from."""

    fd: int

    async def read(self, n: int = -1) -> bytes:
        return await _when_ready(self.fd, asyncio.get_running_loop().add_reader, lambda: os.read(self.fd, max(n, 1)))


@dataclass(slots=True)
class FdWriter:
    """A descriptor that does not block, to write to."""

    fd: int
    data: bytes = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        view = memoryview(self.data)
        self.data = b""
        while view:
            write = partial(os.write, self.fd, view)
            view = view[await _when_ready(self.fd, asyncio.get_running_loop().add_writer, write) :]

    def close(self) -> None:
        pass  # the process ends with it


async def _when_ready(fd: int, watch: Callable[..., None], act: Callable[[], T]) -> T:
    """Do it as soon as it does not block; a regular file never does."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return act()
        except BlockingIOError:
            pass
        except InterruptedError:
            continue
        ready: asyncio.Future[None] = loop.create_future()
        watch(fd, _set, ready)
        try:
            await ready
        finally:
            loop.remove_reader(fd)
            loop.remove_writer(fd)


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


def take_stdio() -> tuple[int, int]:
    """Move standard input and output away, for us alone."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    for fd in (incoming, outgoing):
        os.set_inheritable(fd, False)
        if os.get_blocking(fd):
            os.set_blocking(fd, False)
            atexit.register(os.set_blocking, fd, True)  # a terminal is shared with the shell that started us
    return incoming, outgoing


def stdio_peer(handler: Handler, *, name: str) -> RpcPeer:
    """A peer on our standard input and output."""
    incoming, outgoing = take_stdio()
    return RpcPeer(FdReader(incoming), FdWriter(outgoing), handler, name=name)
