"""PURE: a line as it is typed key by key, with what is shown of it, and the keys that take it back.

keys ─feed→ text to show · `done` with Enter · Backspace, Ctrl-W, Ctrl-U take back · Ctrl-D ends it
"""

import codecs
import re

from tarmac.show.columns import width

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])")  # an arrow key, say: it does nothing here
_CUT = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?$")


class Line:
    """One line."""

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
