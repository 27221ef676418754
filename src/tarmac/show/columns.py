"""PURE: how wide text is on a screen, cut and broken to fit. For harmless text: no controls, no tabs."""

from tarmac.vt.cells import is_simple, to_cells, width_of


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
