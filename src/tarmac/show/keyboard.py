"""A person's keyboard: one line at a time, without blocking the event loop; and one line that nobody sees.

What was typed before a question was on the screen is thrown away: it can't have been an answer to it.
"""

import asyncio
import os
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

LONGEST = 64 << 10
AGAIN = 0.2  # seconds


class Keyboard:
    """The terminal behind a descriptor (standard input)."""

    def __init__(self, fd: int = 0) -> None:
        self.fd = fd
        self._held = b""

    def forget(self) -> None:
        """Throw away what was typed so far."""
        self._held = b""
        try:
            termios.tcflush(self.fd, termios.TCIFLUSH)
        except termios.error:
            pass

    async def line(self) -> str | None:
        """The next line, without its end; None: end of input (Ctrl-D, or the terminal hung up)."""
        while b"\n" not in self._held:
            await self._ready()
            if not self._ours():
                await asyncio.sleep(AGAIN)  # in the background: what is typed is for somebody else
                continue
            try:
                data = os.read(self.fd, 4096)
            except BlockingIOError:
                continue
            except OSError:
                return None
            if not data:
                left, self._held = self._held, b""
                return left.decode("utf-8", "replace") if left else None
            self._held = (self._held + data)[-LONGEST:]
        line, _, self._held = self._held.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What is typed meanwhile does not show."""
        before = termios.tcgetattr(self.fd)
        off = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
        termios.tcsetattr(self.fd, termios.TCSADRAIN, off)
        try:
            yield
        finally:
            termios.tcsetattr(self.fd, termios.TCSADRAIN, before)

    def _ours(self) -> bool:
        """Whether we are in the foreground: who reads a terminal from the background is stopped by it."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:  # no terminal: nobody else reads it
            return True

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self.fd, _set, ready)
        except PermissionError:  # a regular file: always ready
            return
        try:
            await ready
        finally:
            loop.remove_reader(self.fd)


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


@asynccontextmanager
async def editor(fd: int) -> AsyncIterator[None]:
    """While another program has the terminal: its modes are as they were, afterwards."""
    before = termios.tcgetattr(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
