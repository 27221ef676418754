"""A person's keyboard: read one line at a time without blocking the event loop, or one line without echo.

A terminal gives whole lines. We read and echo single keys in two cases: the first key matters (`noticed`), or others
write to the screen (`watched`). Keys that were typed before a question was on the screen are thrown away, because they
can't be an answer to it.
"""

import asyncio
import codecs
import os
import re
import select
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tarmac.show.columns import width

LONGEST = 64 << 10
AGAIN = 0.2  # seconds
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])")  # an arrow key, say: it does nothing here
_CUT = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?$")


class InputLine:
    """A line as it is typed key by key.

    keys ─feed→ text to show · `done` with Enter · Backspace, Ctrl-W, Ctrl-U take back · Ctrl-D ends it
    """

    def __init__(self) -> None:
        self.text = ""
        self.done = False
        self.ended = False  # by Ctrl-D, with nothing typed
        self.rest = b""  # what was typed behind it
        self._held = ""  # an escape sequence that may go on
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, keys: bytes) -> str:
        """The next keys; what to show for them."""
        typed = _ESCAPE.sub("", self._held + self._decoder.decode(keys))
        cut = _CUT.search(typed)
        self._held, typed = (typed[cut.start() :], typed[: cut.start()]) if cut else ("", typed)
        shown = ""
        for place, key in enumerate(typed):
            shown += self._key(key)
            if self.done:
                self.rest = (typed[place + 1 :] + self._held).encode()
                break
        return shown

    def _key(self, key: str) -> str:
        match key:
            case "\r" | "\n":
                self.done = True
                return "\n"
            case "\x04":
                self.done, self.ended = True, not self.text
                return "\n" if self.text else ""
            case "\x7f" | "\x08":
                return self._erase(len(self.text) - 1)
            case "\x17":
                return self._erase(self.text.rstrip(" ").rfind(" ") + 1)
            case "\x15":
                return self._erase(0)
            case _ if key.isprintable():
                self.text += key
                return key
        return ""

    def _erase(self, kept: int) -> str:
        """Keep so many characters; a mark on a letter goes with its letter."""
        kept = max(kept, 0)
        while kept and not width(self.text[kept:]):
            kept -= 1
        columns, self.text = width(self.text[kept:]), self.text[:kept]
        return "\b \b" * columns


class LineKeyboard:
    """The terminal behind a descriptor (standard input)."""

    def __init__(self, fd: int = 0, *, shared: bool = False) -> None:
        self.fd = fd
        self._shared = shared  # with who reads our output: a pager takes keys as well
        self._held = b""
        self._modes: list[Any] | None = None  # of the terminal, while they are not the person's
        self.lent = False  # another program has it: so has it Ctrl-C

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
            if not (data := await self._read()):
                left, self._held = self._held, b""
                return left.decode("utf-8", "replace") if left else None
            self._held = (self._held + data)[-LONGEST:]
        line, _, self._held = self._held.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def noticed(self, begun: Callable[[], object], show: Callable[[str], None]) -> str | None:
        """The next line, and `begun` with its first key; `show` prints what the person should see of it."""

        def each(_: InputLine, shown: str) -> None:
            begun()
            show(shown)

        return await self._keys(each)

    async def watched(self, changed: Callable[[str], None]) -> str | None:
        """The next line; `changed` is told what it is so far, and that it is nothing any more."""
        try:
            return await self._keys(lambda line, _: changed(line.text))
        finally:
            changed("")

    async def _keys(self, each: Callable[[InputLine, str], object]) -> str | None:
        """The next line, key by key: with each the line so far, and what is to be shown for it."""
        line = InputLine()
        with self._without(termios.ECHO | termios.ICANON):
            while not line.done:
                data, self._held = self._held or await self._read(), b""
                if not data:
                    return None
                each(line, line.feed(data))
        self._held = line.rest
        return line.text if not line.ended else None

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What is typed meanwhile does not show."""
        with self._without(termios.ECHO):
            yield

    def again(self) -> None:
        """We were stopped (Ctrl-Z), and go on: the shell has set the terminal as it likes it."""
        if self._modes is not None:
            self._set(self._modes)

    @contextmanager
    def _without(self, flags: int) -> Iterator[None]:
        before = termios.tcgetattr(self.fd)
        self._modes = [*before[:3], before[3] & ~flags, *before[4:]]
        self._set(self._modes)
        try:
            yield
        finally:
            self._modes = None
            self._set(before)

    def _set(self, modes: list[Any]) -> None:
        """Unless we are in the background: then they are somebody else's, and who sets them is stopped."""
        if self._ours():
            termios.tcsetattr(self.fd, termios.TCSADRAIN, modes)

    async def _read(self) -> bytes:
        """The next bytes; none: the end of input."""
        away = False
        while True:
            await self._ready()
            if not self._ours():
                away = True
                await asyncio.sleep(AGAIN)  # in the background: what is typed is for somebody else
                continue
            if away:
                away = False
                self.again()
            if not select.select([self.fd], [], [], 0)[0]:
                continue  # it was for the shell that gave us the terminal, and who reads now waits for ever
            try:
                return os.read(self.fd, 4096)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    @contextmanager
    def lend(self) -> Iterator[None]:
        """While another program has the terminal: its modes are as they were, afterwards."""
        before = termios.tcgetattr(self.fd)
        self.lent = True
        try:
            yield
        finally:
            self.lent = False
            self._set(before)

    @property
    def taken(self) -> bool:
        """Whether a pager behind our pipe has it: such a program takes keys one by one."""
        if not self._shared or self._modes is not None:
            return False
        try:
            return not termios.tcgetattr(self.fd)[3] & termios.ICANON
        except termios.error:
            return True

    def _ours(self) -> bool:
        """Whether we are in the foreground: who reads a terminal from the background is stopped by it."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp() and not self.taken
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
