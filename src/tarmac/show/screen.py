"""Print a task to standard output, with a status line at the bottom of a terminal.

say(text) appends. status(line) draws the status line. typing(text) draws what the person types, in its place. On a
terminal the line is erased before anything is printed. In a pipe there is no line. While the person types, output is
printed in whole lines above.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tarmac.show.look import Look, width

WIPE = "\r\x1b[K"
LONGEST = 400  # characters of a line that are shown again
EVERY = 0.1  # seconds between two drawings of the line


class Screen:
    """One stream, one writer."""

    def __init__(self, stream: IO[str], look: Look) -> None:
        self.look = look
        self.broken = False  # nobody reads it any more
        self._stream = stream
        self._at_start = True  # of a line
        self._line = ""  # the one that is not at its end
        self._drawn = ""
        self._wanted = ""
        self._typed = ""  # by the person, so far
        self._rest = ""  # of what was said since they began: a line that is not at its end
        self._timer: asyncio.TimerHandle | None = None
        self._holds = False
        self._held: list[str] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """A person is asked something: what else is said meanwhile would get between their keys."""
        self.quiet()
        self._holds = True
        try:
            yield
        finally:
            self._holds = False
            held, self._held = self._held, []
            self.put("".join(held))

    def say(self, text: str) -> None:
        """Print it, whatever is under way; while somebody types an answer, when they have."""
        if self._holds:
            self._held.append(text)
        else:
            self.put(text)

    def put(self, text: str) -> None:
        """Print it now: for who asks, while `say` is held back."""
        if self._typed:
            lines, end, self._rest = (self._rest + text).rpartition("\n")
            text = lines + end
        if not text:
            return
        self._at_start = text.endswith("\n")
        self._line = text.rpartition("\n")[2] if "\n" in text else (self._line + text)[-LONGEST:]
        self._write((WIPE if self._drawn else "") + text)
        self._drawn = ""
        if self._typed:
            self._draw()  # at once: they look at it
        else:
            self._later()

    def status(self, line: str) -> None:
        """What is under way; "": nothing."""
        self._wanted = line
        if self.look.live and line != self._drawn and not self._holds:
            self._later()

    def typing(self, text: str) -> None:
        """What the person types while others have the screen; "": nothing any more."""
        if text and not self._typed and not self._at_start:
            self.put("\n")
        self._typed = text
        if not text:
            rest, self._rest = self._rest, ""
            self.put(rest)
        self._draw()

    def interrupted(self) -> None:
        """Ctrl-C was pressed: the `^C` that the terminal shows for it is wiped away, where it would be in between."""
        if self.look.live and self._at_start and not self._holds:
            self._write(WIPE)
            self._drawn = ""

    def entered(self) -> None:
        """The person pressed Enter: by their terminal's echo, a new line has begun."""
        self._at_start, self._line = True, ""

    def again(self) -> None:
        """Others wrote here meanwhile: what was drawn is gone, and the line that one was to go on with is elsewhere."""
        self._drawn = ""
        if not self._at_start:
            self._write(self._line)
        self._later()

    def quiet(self) -> None:
        """Wipe the line: somebody else will write, or it is the end."""
        self._wanted = ""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._drawn:
            self._write(WIPE)
            self._drawn = ""

    def _later(self) -> None:
        if self._timer is None and self.look.live:
            try:
                self._timer = asyncio.get_running_loop().call_later(EVERY, self._draw)
            except RuntimeError:  # no event loop: nothing is under way
                pass

    def _draw(self) -> None:
        self._timer = None
        line = self._bottom()
        if self._at_start and not self._holds and line != self._drawn:
            self._write(WIPE + self.look.paint("1;34" if self._typed else "2", line))
            self._drawn = line

    def _bottom(self) -> str:
        """The last line: what is typed, its end where it is long; else what is under way."""
        if not self._typed:
            return self._wanted
        kept = self._typed
        while width(kept) > self.look.columns - 4:
            kept = kept[1:]
        return f"❯ {kept}"

    def _write(self, text: str) -> None:
        if self.broken:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (BrokenPipeError, ValueError):  # the reader is gone, or the stream closed
            self.broken = True
