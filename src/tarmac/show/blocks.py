"""Text that only grows, made of blocks, with Markdown rendered while it streams.

stream(text) in the middle of a line · block(kind, lines) whole lines · both return what is to be printed now
pieces of text → MarkdownStream.feed() → rendered blocks (whole lines) · `partial`: the block that still grows

An empty line stands between blocks of different kinds. A block of Markdown ends at a blank line, or where a code fence
closes. A finished block is printed once and never changes, so the terminal's own scrollback stays right. The block that
still grows is shown as plain text until it ends. Long code and long lists are given out in parts: no key waits until a
thousand lines are rendered.
"""

import re
from typing import NamedTuple

from tarmac.show.look import Look, cut, harmless, wrapped

LONGEST = 20_000  # characters of one block; a longer one is cut at a line end
PART = 2_000  # characters of code or of a list that are rendered at once: some 10 ms
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")
_TOP_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s")


class MarkdownBlock(NamedTuple):
    """Markdown that can be rendered by itself."""

    text: str
    part: bool = False  # of a code block: its blank lines count
    first: bool = True  # False: it goes on with the code or the list of the block before


class BlockSplitter:
    """PURE: split Markdown that arrives in pieces into whole blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # whole lines of the block that grows
        self._rest = ""  # a line without its end
        self._fence = ""  # what closes the code block we are in
        self._opened = ""  # the line that opened it, if a part was given out
        self._goes_on = False  # what it begins with was given out
        self._size = 0

    @property
    def partial(self) -> str:
        """The block that still grows."""
        return "\n".join([*self._lines, self._rest])

    def feed(self, text: str) -> list[MarkdownBlock]:
        """Take the next piece; return the blocks that are whole now."""
        *lines, self._rest = (self._rest + text).split("\n")
        blocks = []
        for line in lines:
            if self._is_cut_before(line):
                blocks.append(self._part() if self._fence else self._take())
                self._goes_on = True
            if self._line(line):
                blocks.append(self._take())
        return blocks

    def finish(self) -> list[MarkdownBlock]:
        """The text has ended: return what is left."""
        if self._rest:
            self._lines.append(self._rest)
            self._rest = ""
        is_something = any(line.strip() for line in self._lines)
        blocks = [self._take()] if is_something else []
        self._nothing()
        return blocks

    def _is_cut_before(self, line: str) -> bool:
        """Whether the block is long, and what comes before this line can be rendered by itself."""
        if self._size < PART:
            return False
        if self._fence:
            return not self._closes(line)
        return bool(_TOP_ITEM.match(line) and _TOP_ITEM.match(self._lines[0]))

    def _closes(self, line: str) -> bool:
        found = _FENCE.match(line)
        return bool(found and found[1].startswith(self._fence) and not found[2].strip())

    def _line(self, line: str) -> bool:
        """Add a line; True: it ends the block."""
        if self._fence:
            self._add(line)
            return self._closes(line)
        if found := _FENCE.match(line):
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

    def _part(self) -> MarkdownBlock:
        """The code that has come. More of it follows."""
        opened = self._opened or self._lines[0]
        lines = [opened, *self._lines] if self._opened else self._lines
        part = MarkdownBlock("\n".join([*lines, self._fence]), part=True, first=not self._goes_on)
        self._lines, self._size, self._opened = [], 0, opened
        return part

    def _take(self) -> MarkdownBlock:
        lines = [self._opened, *self._lines] if self._opened else self._lines
        block = MarkdownBlock("\n".join(lines), part=bool(self._opened), first=not self._goes_on)
        self._nothing()
        return block

    def _nothing(self) -> None:
        self._lines, self._size, self._fence, self._opened, self._goes_on = [], 0, "", "", False


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

    def _rendered(self, blocks: list[MarkdownBlock]) -> str:
        printed = ""
        for block in blocks:
            items = _ITEM.match(block.text) and _ITEM.match(self._last.split("\n")[-1] if self._last else "")
            apart = self._last and block.first and not items
            printed += ("\n" if apart else "") + render(block.text, self.look, part=block.part)
            self._last = block.text
        return printed


def render(markdown: str, look: Look, *, part: bool = False) -> str:
    """A block of Markdown as text for a terminal, with a line end after each line. `part`: it is code that goes on."""
    from tarmac.show.rich_markdown import rendered

    lines = [line.rstrip() for line in rendered(harmless(markdown), look).split("\n")]
    if part:  # blank lines at its ends count
        return "".join(f"{line}\n" for line in lines[:-1])
    while lines and not _SGR.sub("", lines[-1]).strip():
        lines.pop()
    while lines and not _SGR.sub("", lines[0]).strip():
        lines.pop(0)
    return "".join(f"{line}\n" for line in lines)


TOGETHER = {"tool", "output", "note", "todos"}  # kinds that stand under each other without an empty line


class Blocks:
    """Where one stream stands: the kind of what was told last, and whether its line is at its end."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._open = False  # in the middle of a line
        self._last = ""  # the kind of what was told last
        self._streams = False  # somebody is in the middle of what they say
        self._held = ""  # line ends that count only if more follows

    def stream(self, text: str) -> str:
        """The next piece of what somebody says."""
        text = self._held + text
        if not self._streams:
            text = text.lstrip("\r\n")
        words = text.rstrip("\r\n")
        line, end, _ = text[len(words) :].partition("\n")
        now = words + line + end if end and (words or self._open) else words
        self._held = text[len(now) :]
        if not now:
            return ""
        gap = "" if self._streams else self._gap("text")
        self._streams, self._open = True, not now.endswith("\n")
        return gap + harmless(now)

    def end_stream(self) -> str:
        """They have said it."""
        self._held, self._streams = "", False
        return self._break()

    def block(self, kind: str, text: str, *, apart: bool = False) -> str:
        """Whole lines of one kind; an empty line before what is of another, or is to stand apart."""
        if not text:
            return ""
        close = (kind == self._last and not apart) or (kind in TOGETHER and self._last in TOGETHER)
        gap = self._break() if close else self._gap(kind)
        self._last, self._open, self._streams, self._held = kind, False, False, ""
        return gap + text

    def typed(self) -> str:
        """The person typed a line of their own, below what was told."""
        rest = self._break()
        self._last, self._streams = "user", False
        return rest

    def whole(self, text: str) -> str:
        """What was said, all at once; on a screen as rendered Markdown."""
        if not self.look.live:
            return f"{harmless(text.strip())}\n"
        stream = MarkdownStream(self.look)
        return stream.feed(text) + stream.finish()

    def note(self, colour: str, text: str) -> str:
        """A remark, in lines that fit where somebody looks."""
        text = harmless(text.rstrip())
        if self.look.live:
            text = "\n".join(wrapped(text, self.look.columns - 1, indent="  "))
        return self.look.paint(colour, text) + "\n"

    def gutter(self, text: str) -> str:
        """Blocks that belong to what stands above them; long ones go on in the next."""
        lines = wrapped(text, self.look.columns - 5, indent="  ") if self.look.live else text.split("\n")
        return "".join(f"  {self.look.paint('2', '│')} {line}".rstrip() + "\n" for line in lines)

    def fit(self, text: str) -> str:
        return cut(text, self.look.columns - 3) if self.look.live else text

    def _gap(self, kind: str) -> str:
        gap = self._break() + ("\n" if self._last else "")
        self._last = kind
        return gap

    def _break(self) -> str:
        """The end of a line that is not at its end."""
        was, self._open = self._open, False
        return "\n" if was else ""
