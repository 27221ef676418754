"""Raw terminal bytes to text in which only cursor movement is left.

bytes → decode → drop escape sequences → drop the alternate screen → drop controls → str

What comes out holds printable characters, newline, carriage return, tab, backspace and
the few sequences that move the cursor or erase. Any split of the bytes gives the same
text: a half sequence is held back (never more than a few hundred characters).

The surprise: a string (OSC, DCS, APC, PM, SOS) also ends at a newline. No string that
matters has one, and so a program that forgets the terminator hides the rest of one
line, not the rest of its output. Sixel images do have newlines; they end at the first
character that no sixel has, such as a space. Images may be megabytes; after 4 MiB
without an end we take it for output. An ESC ends any sequence and starts the next,
so only the last ESC of a chunk can be unfinished.
"""

import codecs
import re

ESC = "\x1b"
LONGEST_STRING = 4 << 20

_SIXEL = r'\r\n!"#$0-9;?-~-'
_STRING_END = r"\x07\x18\x1a\x1b\n"
_STRING = rf"P[0-9;]{{0,64}}q[{_SIXEL}]{{0,{LONGEST_STRING}}}|[\]PX^_k][^{_STRING_END}]{{0,{LONGEST_STRING}}}"

# What the page acts on: cursor movement, erasing, and the modes among which the alternate screen is found.
_KEPT = r"\[[0-9;]{0,255}[@A-HJKPX`adefsu]|\[\?[0-9;]{0,254}[hl]|[78DEMc]"

# Every ESC that does not begin a kept sequence goes, with as much as belongs to it. Colours first: they are most.
_NOISE = re.compile(
    rf"\x1b(?:\[[0-9;:]{{0,256}}m|(?!{_KEPT})(?:\[[0-?]{{0,256}}[ -/]{{0,16}}[@-~]?|(?:{_STRING})[\x07\x18\x1a]?"
    r"|[ -/]{0,16}[0-~]?))"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]{0,256}[ -/]{0,16}|P[0-9;]{0,64}|[ -/]{0,16})")
_OPEN_STRING = re.compile(
    rf"\x1b(?:P[0-9;]{{0,64}}q(?P<sixel>[{_SIXEL}]{{0,{LONGEST_STRING}}})"
    rf"|[\]PX^_k](?P<other>[^{_STRING_END}]{{0,{LONGEST_STRING}}}))"
)
_ENDS = {"sixel": re.compile(f"[^{_SIXEL}]"), "other": re.compile(f"[{_STRING_END}]")}

_MODE = re.compile(r"\x1b(?:\[\?([0-9;]{0,254})([hl])|c)")
_ALTERNATE = {"47", "1047", "1049"}

_JUNK = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x9f]+")
_JUNK_BYTES = bytes({*range(0x20), 0x7F} - set(b"\t\n\r\b\x1b"))  # with \v and \f, which become newlines


class Sieve:
    """Incremental; one for each stream."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # an escape sequence that has not ended yet
        self._string = ""  # the kind of string we are inside of: a key of _ENDS
        self._room = 0  # how much longer that string may get
        self._alternate = False

    def feed(self, data: bytes) -> str:
        text = self._strain(self._decoder.decode(data))
        return _without_junk(text) if _may_have_junk(data) else text

    def finish(self) -> str:
        """What was held back and is text after all: U+FFFD for half a character; half a sequence is nothing."""
        return self._strain(self._decoder.decode(b"", final=True))

    def _strain(self, text: str) -> str:
        if self._held:
            text = self._held + text
            self._held = ""
        if self._string:
            text = self._after_string(text)
        if ESC in text:
            text = _NOISE.sub("", self._hold_unfinished(text))
        if self._alternate or ESC in text:
            text = self._main_screen_only(text)
        return text

    def _hold_unfinished(self, text: str) -> str:
        """Cut off the last sequence if it has not ended, and remember it."""
        start = text.rfind(ESC)
        if _UNFINISHED.fullmatch(text, start):
            self._held = text[start:]
        elif (opened := _OPEN_STRING.match(text, start)) and opened.end() == len(text):
            self._string = opened.lastgroup or ""
            self._room = LONGEST_STRING - len(opened[self._string])
        else:
            return text
        return text[:start]

    def _after_string(self, text: str) -> str:
        """What follows the string we are in; nothing as long as it goes on."""
        if end := _ENDS[self._string].search(text, 0, self._room):
            self._string = ""
            return text[end.start() :]
        if len(text) > self._room:
            self._string = ""
            return text[self._room :]
        self._room -= len(text)
        return ""

    def _main_screen_only(self, text: str) -> str:
        """Leave out what is drawn on the alternate screen: an editor's or pager's picture is not output."""
        kept: list[str] = []
        start = 0
        for mode in _MODE.finditer(text):
            if not self._alternate:
                kept.append(text[start : mode.start()])
            start = mode.end()
            if mode[2] is None:  # a full reset: it leaves the alternate screen, and the page wants to see it
                start, self._alternate = mode.start(), False
            elif not _ALTERNATE.isdisjoint(mode[1].split(";")):
                self._alternate = mode[2] == "h"
        if not self._alternate:
            kept.append(text[start:])
        return "".join(kept)


def _may_have_junk(data: bytes) -> bool:
    """A quick look that may say yes too often. C1 controls are C2 80 … C2 9F, perhaps cut in the middle."""
    if len(data.translate(None, _JUNK_BYTES)) != len(data):
        return True
    return not data.isascii() and (b"\xc2" in data or 0x80 <= data[0] < 0xC0)


def _without_junk(text: str) -> str:
    return _JUNK.sub("", text).replace("\v", "\n").replace("\f", "\n")


def is_binary(data: bytes) -> bool:
    """Judge by the first 4 KiB: a NUL, or more than one byte in eight that no text has.

    A character cut at either end is no sign, nor are eight odd bytes (a short line in Latin-1).
    """
    sample = data[:4096]
    if 0 in sample:
        return True
    inner = sample[next((i for i, byte in enumerate(sample[:3]) if not 0x80 <= byte < 0xC0), 3) :]
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(inner)
    undecodable = text.count("\ufffd") - inner.count(b"\xef\xbf\xbd")
    controls = len(sample) - len(sample.translate(None, bytes(set(_JUNK_BYTES) - set(b"\a\f"))))
    return undecodable + controls > max(8, len(sample) / 8)
