"""The person at the terminal: where they read what they are asked, and their keyboard, for one question at a time.

Standard input and output are that terminal, as a rule. `tarmac run … | tee log` has it too: then they are asked on the
terminal itself (/dev/tty), past the pipe, which gets the question and its answer once it is answered.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext

from tarmac.show.keyboard import Keyboard
from tarmac.show.look import look_of
from tarmac.show.screen import Screen

TTY = "/dev/tty"


def is_attended(*, as_json: bool, input_read: bool = False) -> bool:
    """Whether a person can be asked: they sit at a terminal of ours, in its foreground, and no program reads along.

    `input_read`: standard input was the text of the task, so it says nothing about who is there.
    """
    if as_json or not (sys.stdin.isatty() or (input_read and sys.stdout.isatty())):
        return False
    if sys.stdin.isatty() and sys.stdout.isatty():
        return True
    try:
        tty = os.open(TTY, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(tty) == os.getpgrp()  # a background job's keys are somebody else's
    except OSError:
        return False
    finally:
        os.close(tty)


@contextmanager
def at_terminal(told: Screen) -> Iterator["Person"]:
    """Whoever sits there, while `told` is written to."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        yield Person(Keyboard(sys.stdin.fileno()), told, told)
        return
    with open(TTY, "r+b", buffering=0) as keys:  # noqa: PTH123
        fd = sys.stdin.fileno() if sys.stdin.isatty() else keys.fileno()
        if sys.stdout.isatty():
            yield Person(Keyboard(fd), told, told)
            return
        with open(TTY, "w", encoding="utf-8", errors="replace") as shown:  # noqa: PTH123
            yield Person(Keyboard(fd, shared=True), Screen(shown, look_of(shown, os.environ)), told)


class Person:
    """Their keyboard, and the screen they are asked on."""

    def __init__(self, keyboard: Keyboard, asking: Screen, told: Screen) -> None:
        self.keyboard = keyboard
        self.screen = asking  # the same as `told`, or the terminal beside a pipe
        self._told = told
        self._hands = asyncio.Lock()
        self._hearing: asyncio.Task[None] | None = None
        self.heard: Callable[[str], Awaitable[None]] | None = None  # who takes lines that are typed meanwhile
        self.unseen: Callable[[], bool] = bool  # whether such a line may be a secret

    @property
    def beside(self) -> bool:
        """They read on another screen than the one that is written to."""
        return self.screen is not self._told

    @asynccontextmanager
    async def attention(self) -> AsyncIterator[Keyboard]:
        """The keyboard, for one question at a time; what else is told waits."""
        async with self._hands:
            await self.rest()
            with self._told.held(), self.screen.held() if self.beside else nullcontext():
                yield self.keyboard
            self.listen()

    def again(self) -> None:
        """We were stopped, and go on."""
        self.keyboard.again()
        self._told.again()
        if self.beside:
            self.screen.again()

    def listen(self) -> None:
        """Take lines that are typed while it works."""
        if self._hearing is None and self.heard is not None:
            self._hearing = asyncio.create_task(self._hear(self.heard))

    async def _hear(self, heard: Callable[[str], Awaitable[None]]) -> None:
        while (line := await self._line()) is not None:
            if line.strip() and not self._hands.locked():
                await heard(line.strip())

    async def _line(self) -> str | None:
        """The next one; on a screen that is drawn it stands below what is told, however much that is."""
        if self.beside or not self._told.look.live:
            return await self.keyboard.line()
        return await self.keyboard.watched(lambda text: self._told.typing("" if self.unseen() else text))

    async def rest(self) -> None:
        """Take nothing."""
        hearing, self._hearing = self._hearing, None
        if hearing is not None:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
