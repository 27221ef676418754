"""How text appears on a person's terminal: made harmless, measured in columns, broken to fit, and painted.

harmless("a\\x1b]52;c;…\\x07b")  → "a⟨U+001B⟩]52;c;…⟨U+0007⟩b"
width, cut, wrapped, folded      for harmless text: no controls, no tabs
look_of(stream, environ) → Look  in colour or not, how wide, whether lines can be drawn again
diff_lines, content_lines        a unified diff, or a file's new content, in colour and within bounds

What a model says and a command prints is made harmless, so that it can do nothing but appear. Accents, joiners of emoji
and the icons of patched fonts stay as they are. Text that must be read exactly before it runs goes through the stricter
`tarmac.policy.visible`.
"""

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from tarmac.vt.cells import is_simple, to_cells, width_of

TAB = 4
BAR = "▌"  # before each line of a question, and nowhere else
_LIKE_BARS = frozenset("▉▊▋▌▍▎▏▐▕")  # what could be taken for one; progress bars end with them
_ODD = re.compile(r"[^\n\x20-\x7e]")
_NEEDED = "\u200c\u200d"  # scripts and emoji are joined by them; they hide nothing


def harmless(text: str) -> str:
    """`text`, with every control, and all that would turn its direction or hide, as a mark; tabs as blanks."""
    if "\t" in text:
        text = "\n".join(_untabbed(line) for line in text.split("\n"))
    return _ODD.sub(_mark, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on one line: blanks and ends of lines become one blank."""
    return harmless(" ".join(text.split()))


def _untabbed(line: str) -> str:
    return line.expandtabs(TAB) if line.isascii() else line.replace("\t", " " * TAB)


def _mark(found: re.Match[str]) -> str:
    character = found[0]
    if character in _LIKE_BARS:
        return "░"
    if character.isprintable() or character in _NEEDED or unicodedata.category(character) == "Co":
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that was no text
        return f"⟨byte {ord(character) - 0xDC00:02X}⟩"
    return f"⟨U+{ord(character):04X}⟩"


def width(text: str) -> int:
    """The columns that one line takes."""
    return len(text) if is_simple(text) else sum(width_of[each] for each in text)


def cut(text: str, columns: int) -> str:
    """One line in at most so many columns; `…` where something is missing."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    cells = to_cells(text)[: columns - 1]
    kept = "".join(cells)
    return f"{kept if width(kept) < columns else kept[:-1]}…"  # half of a wide character is none


def padded(text: str, columns: int) -> str:
    """Exactly so many columns."""
    text = cut(text, columns)
    return text + " " * (columns - width(text))


def wrapped(text: str, columns: int, *, indent: str = "") -> list[str]:
    """Lines of at most so many columns, broken between words where that can be; blanks inside lines stay."""
    return [part for line in text.split("\n") for part in _broken(line, max(columns, 8), indent)]


def _broken(line: str, columns: int, indent: str) -> list[str]:
    lines: list[str] = []
    while width(line) > columns:
        head = "".join(to_cells(line)[:columns])
        if width(head) > columns or not line.startswith(head):  # through the middle of a wide character
            head = head[:-1]
        if not line[len(head) :].startswith(" "):
            space = head.rstrip(" ").rfind(" ")
            if head[:space].strip() and space > 0:
                head = head[:space]
        head = head or line[0]
        lines.append(head.rstrip(" ") or head)
        line = indent + line[len(head) :].lstrip(" ")
    return [*lines, line]


def folded(line: str, columns: int) -> list[str]:
    """One line in pieces of at most so many columns; every character of it is there."""
    pieces: list[str] = []
    piece, used = "", 0
    for character in line:
        wide = width_of[character]
        if used + wide > max(columns, 2):
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + character, used + wide
    return [*pieces, piece]


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


GUTTER = "  "


def diff_lines(diff: str, look: Look, *, most: int) -> list[str]:
    """Its lines, painted; of a long one the beginning and the end, and how much is between."""
    lines = harmless(diff).rstrip("\n").split("\n")
    if lines[0].startswith("--- ") and lines[1:2] and lines[1].startswith("+++ "):
        lines = lines[2:]  # the names: anything like them below is a line of the file
    return [part for line in bounded(lines, most) for part in _painted(line, look)]


def content_lines(content: str, look: Look, *, most: int) -> list[str]:
    """A new file's lines, each one added."""
    lines = [f"+{line}" for line in harmless(content).rstrip("\n").split("\n")]
    return [part for line in bounded(lines, most) for part in _painted(line, look)]


def bounded(lines: list[str], most: int) -> list[str]:
    """At most so many of them, the last ones among them, and a line that says what is missing."""
    if len(lines) <= most:
        return lines
    tail = most // 4
    head = most - tail - 1
    return [*lines[:head], f"… {len(lines) - head - tail:,} lines more …", *lines[len(lines) - tail :]]


def counts(changed: list[tuple[str, str, bool]]) -> str:
    """`+3 −1`: the lines added and removed in all files; each is a path, a diff or content, and whether it is new."""
    added = removed = 0
    for _, diff, new in changed:
        if new:
            added += diff.count("\n") + (not diff.endswith("\n"))
        else:
            plus, minus = counted(diff)
            added, removed = added + plus, removed + minus
    return f"+{added} −{removed}"


def counted(diff: str) -> tuple[int, int]:
    """Lines added and removed."""
    lines = diff.split("\n")
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    return added, sum(line.startswith("-") and not line.startswith("--- ") for line in lines)


def _painted(line: str, look: Look) -> list[str]:
    """One line, in as many as the screen needs: a change that is cut off at the edge is not seen."""
    parts = folded(line, look.columns - 1 - len(GUTTER)) if look.live else [line]
    colour = {"+": "32", "-": "31", "@": "36", "…": "2"}.get(line[:1])
    return [GUTTER + (look.paint(colour, part) if colour else part) for part in parts]
