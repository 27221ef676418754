"""Columns: how text falls into the cells of a line.

A cell is a character and the marks on it. A character wider than one column (CJK,
emoji, a tab) is followed by empty cells, so an index is a column and "".join gives
the text back.

Approximated: an emoji built with joiners counts as its parts, as in xterm; a
character of ambiguous width counts as narrow.
"""

import re
import unicodedata

TAB = 8

Line = str | list[str]  # a list of cells once it has been edited

# Anything that might not be exactly one column wide. Leaving a narrow character in is only slower.
_ODD = re.compile(
    "[^\n\r\x1b -~\u00a0-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u2319\u2500-\u25fc\u2713-\u2718\u2800-\u28ff\ufffd]"
)

# What leaves the cursor where it is: colours, erasing, modes of the keyboard, titles, character sets, the bell.
_STAYS = re.compile(
    r"\x1b(?:\[[0-9;:]*m|\[[0-9]*[JK]|\[\?(?:1|12|25|2004)[hl]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0AB]|[=>])|\x07"
)
_MOVE = re.compile(r"\x1b\[([0-9]+)([AG])")


class _Widths(dict[str, int]):
    def __missing__(self, character: str) -> int:
        width = self[character] = measure(character)
        return width


def measure(character: str) -> int:
    """How many columns one character takes: 0 for a mark that sits on the one before it."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


width_of = _Widths()  # at most one entry for each character of Unicode that was ever seen


def is_simple(text: str) -> bool:
    """True if every character of `text` surely takes one column. Controls but tab are not looked at."""
    if text.isascii():
        return "\t" not in text
    return not _ODD.search(text)


def to_cells(text: str) -> list[str]:
    """The cells of a line that begins with `text`."""
    if is_simple(text):
        return list(text)
    cells: list[str] = []
    marks: list[str] = []  # joined once: a megabyte of accents on one letter must stay linear
    for character in text:
        width = width_of[character]
        if not width:
            marks.append(character)
            continue
        if marks:
            put_on_last(cells, "".join(marks), len(cells))
            marks.clear()
        cells.append(character)
        if character == "\t":
            cells.extend([""] * (TAB - 1 - (len(cells) - 1) % TAB))
        elif width == 2:
            cells.append("")
    if marks:
        put_on_last(cells, "".join(marks), len(cells))
    return cells


def put_on_last(cells: list[str], marks: str, column: int) -> None:
    """Attach combining marks to the character before `column`; with none there they get a cell of their own."""
    at = column - 1
    while at >= 0 and not cells[at]:
        at -= 1
    if at < 0:
        cells.append(marks)
    else:
        cells[at] += marks


def cursor_after(text: str, columns: int) -> tuple[int, int] | None:
    """How many rows down the cursor is, and in which column, after `text` was written from the left edge.

    None: the text moves the cursor in a way not known here. After the last column of a row the column is `columns`.
    """
    row = column = 0
    pieces = _MOVE.split(_STAYS.sub("", text))
    for characters, number, how in zip(pieces[::3], [*pieces[1::3], ""], [*pieces[2::3], ""], strict=True):
        for character in characters:
            if character == "\n":
                row += 1
            elif character == "\r":
                column = 0
            elif character == "\b":
                column = max(min(column, columns - 1) - 1, 0)
            elif character == "\t":
                column = max(column, min(column - column % TAB + TAB, columns - 1))
            elif character < " " or character == "\x7f":
                return None
            elif width := width_of[character]:
                if column + width > columns:
                    row, column = row + 1, 0
                column += width
        if how == "A":
            row, column = row - int(number), min(column, columns - 1)
        elif how == "G":
            column = min(max(int(number), 1), columns) - 1
    return row, column


def columns_in(line: Line) -> int:
    """How many columns a line takes."""
    return len(line) if isinstance(line, list) or is_simple(line) else len(to_cells(line))


def as_text(line: Line) -> str:
    return line if isinstance(line, str) else "".join(line)


def part(cells: list[str], column: int) -> None:
    """Make `column` a boundary: a wide character that lies across it becomes spaces, as on a screen."""
    if 0 <= column < len(cells) and not cells[column]:
        start, end = column, column
        while not cells[start]:
            start -= 1
        while end < len(cells) and not cells[end]:
            end += 1
        cells[start:end] = " " * (end - start)
