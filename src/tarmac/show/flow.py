"""The output of one running command: its first lines, its last ones, and how many are between.

bytes → LiveText (what a reader would have seen) → lines → shown | counted

In a pipe the first lines are printed as they come. On a screen nothing is printed before the command ends; until
then `latest` has the lines to show. All of the output is in the spool.
"""

from collections import deque

from tarmac.show.columns import cut, width
from tarmac.show.harmless import harmless
from tarmac.show.look import Look
from tarmac.vt.live import LiveText

HEAD = 12
TAIL = 6
BAR = "│"
MOST_AT_ONCE = 4000  # characters of a line that are looked at


class Flow:
    """What is shown of one command."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._text = LiveText()
        self._partial = ""
        self._shown = 0
        self._held: list[str] = []  # the first lines, on a screen
        self._kept: deque[str] = deque(maxlen=TAIL)
        self._passed = 0  # lines after the first ones

    def feed(self, data: bytes) -> str:
        """Take the next bytes; return what to print now, whole lines only."""
        return self._take(self._text.feed(data))

    def finish(self) -> str:
        """The command has ended: return the last lines, and how many were left out."""
        printed = self._take(self._text.finish())
        if self._partial:
            printed += self._line(self._partial)
            self._partial = ""
        printed = "".join(map(self._gutter, self._held)) + printed
        self._held = []
        if missing := self._passed - len(self._kept):
            printed += self._gutter(self.look.paint("2", f"… {missing:,} line{'s' * (missing > 1)} not shown …"))
        return printed + "".join(self._gutter(line) for line in self._kept)

    @property
    def latest(self) -> list[str]:
        """The newest lines, for a part of the screen that is drawn again."""
        newest = [self._cut(harmless(self._partial[-MOST_AT_ONCE:]))] if self._partial.strip() else []
        if self._passed:
            return [*self._kept, *newest]
        return [*self._held, *newest]

    @property
    def passed(self) -> int:
        """How many lines came after the first ones."""
        return self._passed

    def _take(self, text: str) -> str:
        *lines, self._partial = (self._partial + text).split("\n")
        self._partial = self._partial[-MOST_AT_ONCE * 4 :]
        head = max(HEAD - self._shown, 0)
        printed = "".join(self._line(line) for line in lines[:head])
        if len(rest := lines[head:]) > TAIL:  # of much at once, only what may be shown is looked at
            self._passed += len(rest) - TAIL
            rest = rest[-TAIL:]
        return printed + "".join(self._line(line) for line in rest)

    def _line(self, line: str) -> str:
        line = self._cut(harmless(line[:MOST_AT_ONCE]))
        if self._shown < HEAD:
            self._shown += 1
            if self.look.live:
                self._held.append(line)
                return ""
            return self._gutter(line)
        self._passed += 1
        self._kept.append(line)
        return ""

    def _cut(self, line: str) -> str:
        room = self.look.columns - 5
        return cut(line, room) if self.look.live and width(line) > room else line

    def _gutter(self, line: str) -> str:
        return f"  {self.look.paint('2', BAR)} {line}".rstrip(" ") + "\n"
