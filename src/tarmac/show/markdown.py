"""Render Markdown while it streams.

pieces of text → MarkdownStream.feed() → rendered blocks (whole lines) · `partial`: the block that still grows

A block ends at a blank line, or where a code fence closes. A finished block is printed once and never changes, so
the terminal's own scrollback stays right. The block that still grows is shown as plain text until it ends.
"""

import re

from tarmac.show.columns import wrapped
from tarmac.show.harmless import harmless
from tarmac.show.look import Look

LONGEST = 20_000  # characters of one block; a longer one is cut at a line end and rendered in parts
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")


class BlockSplitter:
    """PURE: split Markdown that arrives in pieces into whole blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # whole lines of the block that grows
        self._rest = ""  # a line without its end
        self._fence = ""  # what closes the code block we are in
        self._size = 0

    @property
    def partial(self) -> str:
        """The block that still grows."""
        return "\n".join([*self._lines, self._rest])

    def feed(self, text: str) -> list[str]:
        """Take the next piece; return the blocks that are whole now."""
        *lines, self._rest = (self._rest + text).split("\n")
        return [self._take() for line in lines if self._line(line)]

    def finish(self) -> list[str]:
        """The text has ended: return what is left."""
        if self._rest:
            self._lines.append(self._rest)
            self._rest = ""
        return [self._take()] if any(line.strip() for line in self._lines) else self._nothing()

    def _line(self, line: str) -> bool:
        """Add a line; True: it ends the block."""
        found = _FENCE.match(line)
        if self._fence:
            self._add(line)
            if found and found[1].startswith(self._fence) and not found[2].strip():
                self._fence = ""
                return True
        elif found:
            self._add(line)
            self._fence = found[1]
        elif line.strip():
            self._add(line)
        elif self._lines:
            return True
        return self._size > LONGEST and not self._fence

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _take(self) -> str:
        block = "\n".join(self._lines)
        self._nothing()
        return block

    def _nothing(self) -> list[str]:
        self._lines, self._size, self._fence = [], 0, ""
        return []


class MarkdownStream:
    """One answer of a model, as rendered text for a terminal."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._splitter = BlockSplitter()
        self._last = ""  # the block that was rendered last

    @property
    def partial(self) -> list[str]:
        """The lines of the block that still grows, wrapped for the screen."""
        text = harmless(self._splitter.partial[-LONGEST:]).strip("\n")
        return [part for line in text.split("\n") for part in wrapped(line, self.look.columns - 1)] if text else []

    def feed(self, text: str) -> str:
        """Take the next piece; return what can be printed now."""
        return self._rendered(self._splitter.feed(text))

    def finish(self) -> str:
        """Return the rest."""
        printed = self._rendered(self._splitter.finish())
        self._last = ""
        return printed

    def _rendered(self, blocks: list[str]) -> str:
        printed = ""
        for block in blocks:
            together = _ITEM.match(block) and _ITEM.match(self._last.split("\n")[-1] if self._last else "")
            printed += ("\n" if self._last and not together else "") + render(block, self.look)
            self._last = block
        return printed


def render(markdown: str, look: Look) -> str:
    """A block of Markdown as text for a terminal, with a line end after each line."""
    from tarmac.show.rich_markdown import rendered

    lines = [line.rstrip() for line in rendered(harmless(markdown), look).split("\n")]
    while lines and not _SGR.sub("", lines[-1]).strip():
        lines.pop()
    while lines and not _SGR.sub("", lines[0]).strip():
        lines.pop(0)
    return "".join(f"{line}\n" for line in lines)
