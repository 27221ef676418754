"""The person at the terminal: where they read questions, and their keyboard, for one question at a time.

Usually standard input and output are that terminal. With `tarmac run … | tee log`, questions are asked on /dev/tty
instead. The pipe gets the question together with its answer.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext

from tarmac.show.columns import wrapped
from tarmac.show.dialog import Choices
from tarmac.show.line_keyboard import LineKeyboard
from tarmac.show.look import Look, look_of
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
        yield Person(LineKeyboard(sys.stdin.fileno()), told, told)
        return
    with open(TTY, "r+b", buffering=0) as keys:  # noqa: PTH123
        fd = sys.stdin.fileno() if sys.stdin.isatty() else keys.fileno()
        if sys.stdout.isatty():
            yield Person(LineKeyboard(fd), told, told)
            return
        with open(TTY, "w", encoding="utf-8", errors="replace") as shown:  # noqa: PTH123
            yield Person(LineKeyboard(fd, shared=True), Screen(shown, look_of(shown, os.environ)), told)


def prompt_for(choices: Choices, look: Look) -> str:
    """PURE: the choices as a prompt; words are last, on a line of their own."""
    if choices.text:
        return "  type it as you want it, or Enter to leave it: "
    keys = " · ".join(f"{key} {what}".strip() for key, what in choices.keys)
    lines = wrapped(keys, look.columns - 5) if keys else []
    if choices.words:
        lines.append(f"or {choices.words}" if keys else choices.words)
    return "\n".join(f"  {line}" for line in lines) + ": "


class Person:
    """Their keyboard, and the screen they are asked on."""

    def __init__(self, keyboard: LineKeyboard, asking: Screen, told: Screen) -> None:
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
    async def attention(self) -> AsyncIterator[LineKeyboard]:
        """The keyboard, for one question at a time; what else is told waits."""
        async with self._hands:
            await self.rest()
            with self._told.held(), self.screen.held() if self.beside else nullcontext():
                yield self.keyboard
            self.listen()

    # An Asker, while it has their attention

    @property
    def look(self) -> Look:
        return self.screen.look

    def print(self, text: str) -> None:
        """Print whole lines, past what is held back."""
        self.screen.put(text if text.endswith("\n") else text + "\n")

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Let another program have the terminal during the block."""
        with self.keyboard.lend():
            yield

    async def ask(self, choices: Choices, typing: Callable[[], object] = bool) -> str | None:
        """The next line that is an answer; None: the input has ended."""
        while True:
            line = await (self._secret(choices) if choices.secret else self._asked_line(choices, typing))
            self.screen.entered()
            if line is None and not choices.secret:
                self.screen.put("\n")
            if line is None or line.strip() or choices.secret or choices.text:
                return line

    async def _asked_line(self, choices: Choices, typing: Callable[[], object]) -> str | None:
        self.screen.put(self.look.paint("1", prompt_for(choices, self.look)))
        if typing is bool:
            return await self.keyboard.line()
        return await self.keyboard.noticed(typing, self.screen.put)

    async def _secret(self, choices: Choices) -> str | None:
        with self.keyboard.unseen():
            self.keyboard.forget()
            self.screen.put(f"\n{choices.head}\n  {choices.words}: ")
            try:
                return await self.keyboard.line()
            finally:
                self.screen.put("\n")

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
