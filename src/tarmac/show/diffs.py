"""PURE: a unified diff, or a file's new content, in colour and within bounds."""

from tarmac.show.columns import cut, width
from tarmac.show.harmless import harmless
from tarmac.show.look import Look

GUTTER = "  "


def diff_lines(diff: str, look: Look, *, most: int) -> list[str]:
    """Its lines, painted; of a long one the beginning and the end, and how much is between."""
    lines = [line for line in harmless(diff).rstrip("\n").split("\n") if not line.startswith(("--- ", "+++ "))]
    return [_painted(line, look) for line in bounded(lines, most)]


def content_lines(content: str, look: Look, *, most: int) -> list[str]:
    """A new file's lines, each one added."""
    lines = [f"+{line}" for line in harmless(content).rstrip("\n").split("\n")]
    return [_painted(line, look) for line in bounded(lines, most)]


def bounded(lines: list[str], most: int) -> list[str]:
    """At most so many of them, the last ones among them, and a line that says what is missing."""
    if len(lines) <= most:
        return lines
    tail = most // 4
    head = most - tail - 1
    return [*lines[:head], f"… {len(lines) - head - tail:,} lines more …", *lines[len(lines) - tail :]]


def counted(diff: str) -> tuple[int, int]:
    """Lines added and removed."""
    lines = diff.split("\n")
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    return added, sum(line.startswith("-") and not line.startswith("--- ") for line in lines)


def _painted(line: str, look: Look) -> str:
    room = look.columns - 1 - len(GUTTER)
    shown = cut(line, room) if look.live and width(line) > room else line
    colour = {"+": "32", "-": "31", "@": "36", "…": "2"}.get(line[:1])
    return GUTTER + (look.paint(colour, shown) if colour else shown)
