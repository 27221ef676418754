"""Our own standard input and output, in an event loop and without blocking it.

The descriptors are shared with whoever started us, so they are not made non-blocking: we ask if they are ready, then
move no more than is sure to fit. A regular file can't be asked, and is always ready.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable

READ_SIZE = 64 << 10
SURE_TO_FIT = 4096  # a pipe that says it is writable takes a page


async def pieces(fd: int) -> AsyncIterator[bytes]:
    """What comes in on `fd`, until its end."""
    loop = asyncio.get_running_loop()
    while True:
        await _ready(fd, loop.add_reader, loop.remove_reader)
        try:
            data = os.read(fd, READ_SIZE)
        except BlockingIOError:  # somebody else made it non-blocking, and took what was there
            continue
        except OSError:  # a terminal that hung up
            return
        if not data:
            return
        yield data


async def lines(fd: int) -> AsyncIterator[bytes]:
    """The lines of `fd`, without their ends, however long."""
    held = bytearray()
    async for piece in pieces(fd):
        begun = len(held)
        held += piece
        start = 0
        while (end := held.find(b"\n", max(start, begun))) >= 0:
            yield bytes(held[start:end])
            start = end + 1
        del held[:start]
    if held:
        yield bytes(held)


async def write(fd: int, data: bytes) -> None:
    """Write all of `data`, as fast as it is read. BrokenPipeError when nobody reads any more."""
    loop = asyncio.get_running_loop()
    left = memoryview(data)
    while left:
        at_once = not await _ready(fd, loop.add_writer, loop.remove_writer)
        try:
            left = left[os.write(fd, left if at_once else left[:SURE_TO_FIT]) :]
        except BlockingIOError:
            continue


async def _ready(fd: int, add: Callable[[int, Callable[[], None]], object], remove: Callable[[int], object]) -> bool:
    """Wait until `fd` is ready; False when it always is."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        add(fd, set_ready)
    except PermissionError:  # a regular file
        await asyncio.sleep(0)
        return False
    try:
        await ready
    finally:
        remove(fd)
    return True
