"""Text that only grows, made of blocks: an empty line between what is of different kinds, words that stream in between.

stream(text) in the middle of a line · block(kind, lines) whole lines · both return what is to be printed now
"""

from tarmac.show.columns import cut, wrapped
from tarmac.show.harmless import harmless
from tarmac.show.look import Look
from tarmac.show.markdown import MarkdownStream

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

    def note(self, colour: str, text: str, *, indent: str = "  ") -> str:
        """A remark, in lines that fit where somebody looks."""
        text = harmless(text.rstrip())
        if self.look.live:
            text = "\n".join(wrapped(text, self.look.columns - 1, indent=indent))
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
