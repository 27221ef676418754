"""Where an argument between tags ends, as its text comes; and its text as JSON, as far as it is certain.

What counts: </argument>, <tool> and </tool>. The next argument's tag directly after </argument> ends it. Else the
tool's closing tag does: the first after which none is left without its opening, which only the end of the message can
tell (for a value of one line it is simply the first).
"""

import json
import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from tarmac.models.xmlvalues import VERBATIM, Schema, is_text, property_of

LONGEST_TAG = 200  # a tag of more characters is none
_NAME = r"[A-Za-z_][\w.-]*"
_ARGUMENT = re.compile(rf"<({_NAME})(?:\s[^<>]*)?>")
_BLANKS = re.compile(r"\s*")
_PARTIAL = re.compile(r"</?[\w.-]*(?:\s[^<>]*)?\Z")


class Ending(NamedTuple):
    """Places in the text."""

    value: int  # where the value ends
    tag: int  # where its closing tag ends
    end: int  # where to go on
    closes: bool  # the tool's end, too
    whole: bool = True  # False: the message was cut off


def argument_tag(text: str, *, final: bool) -> re.Match[str] | Literal[False] | None:
    """The tag of an argument that `text` begins with; False: more of it must come to tell."""
    if found := _ARGUMENT.match(text[:LONGEST_TAG]):
        return found
    waits = not final and len(text) < LONGEST_TAG and (not text or _PARTIAL.match(text))
    return False if waits else None


def first_word(text: str, start: int) -> int:
    """Where blanks end."""
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def closing(name: str) -> str:
    """The pattern of a closing tag."""
    return rf"</{re.escape(name)}[ \t]{{0,8}}>"


class Value:
    """An argument that is being read. The text it is given begins where the value does."""

    def __init__(self, name: str, tool: str, schema: Schema) -> None:
        self.name = name
        self.streams = is_text(property_of(schema, name), schema)
        own, opened, closed = closing(name), rf"<{re.escape(tool)}[ \t]{{0,8}}>", closing(tool)
        self._tokens = re.compile(f"(?P<own>{own})|(?P<opened>{opened})|(?P<closed>{closed})")
        self._tool_end = re.compile(rf"{closed}\s*\Z")
        self._at = 0  # how far was looked
        self._certain = 0  # how far it is surely value
        self._given = 0  # how far it was given as JSON
        self._first = True
        self._blanks = ""
        self._lines = False  # there was a newline in what was forgotten
        self._depth = 0
        self._close: tuple[int, int] | None = None  # the last </argument>
        self._lone: tuple[int, int] | None = None  # the last </tool>, where there was no </argument> before it
        self._ends: list[tuple[Ending, int]] = []  # possible ones, each with its place among the following
        self._tags: list[int] = []  # +1 <tool>, -1 </tool>: since the first possible end

    @property
    def held(self) -> bool:
        """A closing tag was seen: what comes is given when another is, or the end."""
        return self._close is not None

    def scan(self, text: str, begins_next: Callable[[str], bool], *, final: bool, complete: bool) -> Ending | None:
        """The end, once it is known."""
        while token := self._tokens.search(text, self._at):
            if token.lastgroup == "own":
                start = first_word(text, token.end())
                following = argument_tag(text[start : start + LONGEST_TAG], final=final)
                if following is False:
                    self._certain = self._limit(token.start())
                    return None
                if following and self._depth <= 0 and not self._ends and begins_next(following[1]):
                    return self._ended(Ending(token.start(), token.end(), token.end(), closes=False))
                self._close = token.span()
            elif found := self._tool_tag(text, token):
                return self._ended(found)
            self._at = token.end()
        if final:
            return self._ended(self._at_last(text, complete))
        tail = text.rfind("<", self._at)
        partial = tail >= 0 and len(text) - tail < LONGEST_TAG and ">" not in text[tail:]
        self._at = tail if partial else len(text)
        self._certain = self._limit(self._at)
        if self._lone and not self._close and not text[self._lone[1] :].strip():
            self._certain = self._lone[0]  # it may be the end: the other tag was forgotten
        return None

    def _tool_tag(self, text: str, token: re.Match[str]) -> Ending | None:
        opened = token.lastgroup == "opened"
        self._depth += 1 if opened else -1
        if self._ends or (not opened and self._close):
            self._tags.append(1 if opened else -1)
        if not opened and self._close is None:
            self._lone = token.span()
        if opened or self._close is None:
            return None
        value, tag = self._close
        found = Ending(value, tag, token.end(), closes=True)
        one_line = not self._lines and "\n" not in text[:value]
        if one_line and not self._ends and not text[tag : token.start()].strip():
            return found
        self._ends.append((found, len(self._tags)))
        return None

    def _at_last(self, text: str, complete: bool) -> Ending:
        deepest = [0]  # from each tag to the last: how far closings outnumber openings, at worst
        for tag in reversed(self._tags):
            deepest.append(min(tag, tag + deepest[-1]))
        deepest.reverse()
        for found, place in self._ends:
            if deepest[place] >= 0:
                return found
        if complete and self._close and not text[self._close[1] :].strip():  # only the tool's closing tag is missing
            return Ending(*self._close, len(text), closes=True)
        if complete and (tool_end := self._tool_end.search(text)):  # only the argument's is
            return Ending(tool_end.start(), tool_end.start(), len(text), closes=True)
        return Ending(len(text), len(text), len(text), closes=False, whole=False)

    def _limit(self, place: int) -> int:
        """No end can be before this."""
        if self._ends:
            return self._ends[0][0].value
        return self._close[0] if self._close else place

    def _ended(self, found: Ending) -> Ending:
        self._certain = found.value
        return found

    def json(self, text: str, *, ended: bool) -> str:
        """What can be given now of a JSON string, after its opening quote."""
        piece = text[self._given : self._certain]
        if self._first and self.name in VERBATIM:
            if piece in ("", "\r") and not ended:
                return ""
            piece = re.sub(r"\A\r?\n", "", piece)
        elif self.name not in VERBATIM:
            piece = self._blanks + piece
            piece = piece.lstrip() if self._first else piece
            kept = piece.rstrip()
            self._blanks = piece[len(kept) :]
            if not kept and not ended:
                self._given = self._certain
                self._blanks = "" if self._first else self._blanks
                return ""
            piece = kept
        self._first = False
        self._given = self._certain
        return json.dumps(piece, ensure_ascii=False)[1:-1] + ('"' if ended else "")

    def forget(self, text: str) -> int:
        """How much of the text is not needed any more."""
        if not self.streams or self._close is not None:
            return 0
        gone = self._given
        self._lines = self._lines or "\n" in text[:gone]
        self._at, self._certain, self._given = self._at - gone, self._certain - gone, 0
        if self._lone:
            self._lone = (self._lone[0] - gone, self._lone[1] - gone) if gone <= self._lone[0] else None
        return gone
