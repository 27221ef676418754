"""How a stream may be written to: in colour or not, how wide, whether lines can be drawn again."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

# Colours are red, green, magenta, cyan and bold blue: what can be read on black and on white. No yellow (it warns
# better), no white, no bright ones (tests/show/test_look.py). What must be read is not faint.
NARROWEST = 20
UNSEEN = 100  # columns of what is read later, from a file or a pipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Plain lines of a pipe, unless somebody looks."""

    colour: bool = False
    columns: int = UNSEEN
    live: bool = False  # a terminal: what is still growing can be shown and taken back

    def paint(self, code: str, text: str) -> str:
        """`text`, in the colour of an SGR code; each line by itself, so that a cut one colours nothing else."""
        if not self.colour or not text:
            return text
        return "\n".join(f"\x1b[{code}m{line}\x1b[m" if line else line for line in text.split("\n"))


def look_of(stream: IO[str], environ: Mapping[str, str]) -> Look:
    """What `stream` is. (NO_COLOR and TERM=dumb are the person's wish.)"""
    try:
        tty = stream.isatty()
        columns = os.get_terminal_size(stream.fileno()).columns if tty else 0
    except (OSError, ValueError):
        tty, columns = False, 0
    dumb = environ.get("TERM") == "dumb"
    return Look(
        colour=tty and not environ.get("NO_COLOR") and not dumb,
        columns=max(NARROWEST, columns) if columns else UNSEEN,
        live=tty and not dumb,
    )
