"""PURE: a unified diff, or a file's new content, in colour and within bounds."""

from tarmac.show.columns import folded
from tarmac.show.harmless import harmless
from tarmac.show.look import Look

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
