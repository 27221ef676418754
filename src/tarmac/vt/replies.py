"""What a terminal answers to the questions of programs. Exactly one place answers: viewers never do.

Only harmless, fixed facts are given. Reports that would echo text a program chose (title, DECRQSS, clipboard)
are never answered: the answer would arrive as typed input.
"""

import re

from tarmac.vt.marks import Query

_COLOUR = re.compile(rb"\x1b\](1[0-2]|4;\d+);\?")
_MODE = re.compile(rb"\x1b\[\?(\d+)\$p")
FOREGROUND, BACKGROUND = b"rgb:dcdc/dcdc/dcdc", b"rgb:1e1e/1e1e/1e1e"

_FIXED = {
    b"\x1b[c": b"\x1b[?62;22c",  # a VT220 with colour
    b"\x1b[0c": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>1;10;0c",
    b"\x1b[>0c": b"\x1b[>1;10;0c",
    b"\x1b[5n": b"\x1b[0n",  # all is well
    b"\x1b[>q": b"\x1bP>|tarmac\x1b\\",
    b"\x1b[>0q": b"\x1bP>|tarmac\x1b\\",
}


def answer(query: Query, *, rows: int, columns: int) -> bytes:
    """The bytes to send back; empty when the question is not answered.

    The cursor is said to be in the first column of the last row: where it is after a program's newline. There is
    no screen model behind this (`vt/screen.py` will be one).
    """
    raw = query.raw
    if raw in _FIXED:
        return _FIXED[raw]
    if raw == b"\x1b[6n":
        return b"\x1b[%d;1R" % rows
    if raw == b"\x1b[?6n":
        return b"\x1b[?%d;1R" % rows
    if raw == b"\x1b[18t":
        return b"\x1b[8;%d;%dt" % (rows, columns)
    if colour := _COLOUR.match(raw):
        which = colour.group(1)
        return b"\x1b]%s;%s\x1b\\" % (which, BACKGROUND if which == b"11" else FOREGROUND)
    if mode := _MODE.match(raw):
        return b"\x1b[?%s;0$y" % mode.group(1)  # not recognised
    return b""
