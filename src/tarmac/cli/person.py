"""The person at the terminal: where they read questions, and their keyboard, for one question at a time.

Usually standard input and output are that terminal. With `tarmac run … | tee log`, questions are asked on /dev/tty
instead. The pipe gets the question together with its answer.

The keyboard is read without blocking the event loop, one line at a time, or one line without echo. A terminal gives
whole lines. We read and echo single keys in two cases: the first key matters (`noticed`), or others write to the screen
(`watched`). Keys that were typed before a question was on the screen are thrown away, because they can't be an answer
to it.
"""

import asyncio
import codecs
import os
import re
import select
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any

from tarmac.show.look import Look, look_of, width, wrapped
from tarmac.show.question import Choices
from tarmac.show.screen import Screen
from tarmac.terminals.bell import until_ready

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
            await until_ready(self.fd)
            if not self._ours():
                away = True
                await asyncio.sleep(AGAIN)  # in the background: what is typed is for somebody else
                continue
            if away:
                away = False
                self.again()
            if not select.select([self.fd], [], [], 0)[0]:
                continue  # it was for the shell that gave us the terminal, and who reads now waits forever
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
