"""An endless page of lines with a cursor. Text is put on it, moved over and erased.

Only the last `rows` lines, the screen, can still change. Lines above are settled, kept as blocks of text, and never
looked at again. Lines are not wrapped. Text at the end of the page is appended without a look at its characters. Only a
line that is edited in the middle is split into cells.

Movements take the two numbers of their escape sequence, 0 where there is none.
"""

from tarmac.vt.cells import TAB, Line, as_text, columns_in, is_simple, part, put_on_last, to_cells, width_of

END = -1  # a column: the end of the last line, wherever that is; there text is simply appended
COLUMNS = 200  # how far past the end of a line the cursor may be sent
LONG = 4096  # longer lines are not shifted about: no screen is that wide, and it would cost too much


class Page:
    """See above. While the column is END, the row is the last one and its line is a str."""

    def __init__(self, *, rows: int) -> None:
        self._rows = rows
        self._done: list[str] = []  # blocks of settled lines, each line with its newline
        self._screen: list[Line] = [""]
        self._pieces: list[str] = []  # belong to the end of the last line: a line of megabytes grows in small steps
        self._row = 0  # may lie below the last line; the lines between are made when something is written there
        self._column = END
        self._saved = (0, 0)
        self.settled = 0  # how many lines have left the screen

    def text(self) -> str:
        self._done = ["".join(self._done)]
        return self._done[0] + "\n".join(self.screen())

    def screen(self) -> list[str]:
        """The lines that may still change, at least one."""
        self._join_pieces()
        return [as_text(line) for line in self._screen]

    def release(self) -> str:
        """Hand over the settled lines and forget them."""
        block = "".join(self._done)
        self._done.clear()
        return block

    def forget_line(self) -> None:
        """Let go of the last line's text."""
        self._pieces.clear()
        self._screen[-1] = ""
        if self._row == len(self._screen) - 1:
            self._column = END

    # ── writing ──────────────────────────────────────────────────────────────────

    def at_end(self) -> bool:
        """True if text can simply be appended to the page."""
        if self._column == 0 and self._row == len(self._screen) - 1 and not self._screen[-1] and not self._pieces:
            self._screen[-1] = ""
            self._column = END
        return self._column == END

    def append(self, text: str) -> None:
        if "\n" not in text:
            self._pieces.append(text)
            return
        first, *rest = text.rsplit("\n", self._rows)
        self._pieces.append(first)
        self._join_pieces()
        if len(rest) == self._rows:  # `first` may be many lines, and all of them have left the screen
            self.settled += first.count("\n")
            self._settle(len(self._screen))
        self._screen += rest
        self._scroll()
        self._row = len(self._screen) - 1

    def _join_pieces(self) -> None:
        if self._pieces:
            self._screen[-1] = "".join([as_text(self._screen[-1]), *self._pieces])
            self._pieces.clear()

    def _settle(self, count: int) -> None:
        """The top `count` lines leave the screen for good."""
        gone = [as_text(line) for line in self._screen[:count]]
        del self._screen[:count]
        self._done.append("\n".join(gone) + "\n")
        self.settled += count

    def _scroll(self) -> None:
        excess = len(self._screen) - self._rows
        if excess > 0:
            self._settle(excess)
            self._row -= excess

    def current_line(self) -> str | None:
        """The last line, if the cursor is on it and each of its characters is surely one column wide."""
        self._join_pieces()
        if self._row != len(self._screen) - 1 or len(self._screen[-1]) > LONG:
            return None
        line = as_text(self._screen[-1])
        return line if is_simple(line) else None

    def replace_line(self, line: str, column: int) -> None:
        """Put `line` in the place of `current_line()`."""
        self._screen[-1] = line
        self._column = END if column == len(line) else column

    @property
    def at_home(self) -> bool:
        """True if the cursor is in the screen's top left corner."""
        return self._row == 0 and self._column == 0

    def write(self, text: str) -> None:
        """Print `text`, which has no control characters, at the cursor."""
        column, row = self._column, self._row
        if column == END:
            self._pieces.append(text)
            return
        if column == 0 and row < len(self._screen) and not self._screen[row]:
            if self.at_end():
                self._pieces.append(text)
                return
            if row < len(self._screen) - 1 and is_simple(text):
                self._screen[row] = text
                self._column = len(text)
                return
        line = self._screen[row] if row < len(self._screen) else ""
        cells = line if isinstance(line, list) else self._cells()
        if column > len(cells):
            cells.extend(" " * (column - len(cells)))
        new: Line = text
        if not text.isascii() and not is_simple(text):
            base = next((at for at, character in enumerate(text) if width_of[character]), len(text))
            if base and column:
                put_on_last(cells, text[:base], column)
                text = text[base:]
            new = to_cells(text)
        end = column + len(new)
        if column < len(cells) and new:
            part(cells, column)
            part(cells, end)
        cells[column:end] = new
        self._column = end

    def _cells(self) -> list[str]:
        """The cells of the line the cursor is on, which is made if it is not there yet."""
        self._reach()
        line = self._screen[self._row]
        if not isinstance(line, list):
            if self._row == len(self._screen) - 1:
                self._join_pieces()
                line = self._screen[self._row]
            line = self._screen[self._row] = to_cells(as_text(line))
        if self._column == END:
            self._column = len(line)
        return line

    def _reach(self) -> None:
        """Make the lines down to the cursor."""
        while len(self._screen) <= self._row:
            self._join_pieces()
            self._screen.append("")
            self._scroll()

    # ── moving ───────────────────────────────────────────────────────────────────

    def _settle_column(self) -> int:
        """Know the column as a number before the cursor leaves the end of the line."""
        if self._column == END:
            self._join_pieces()
            self._column = columns_in(self._screen[-1])
        return self._column

    def carriage_return(self, _: int, __: int) -> None:
        self._column = 0

    def line_feed(self, _: int, __: int) -> None:
        self._row += 1
        self._column = 0
        self._reach()
        self.at_end()

    def tab(self, _: int, __: int) -> None:
        if self._column == END:
            self._pieces.append("\t")
            return
        cells = self._cells()
        stop = (self._column // TAB + 1) * TAB
        if self._column >= len(cells):
            cells.extend(" " * (self._column - len(cells)))
            cells.extend(["\t"] + [""] * (stop - self._column - 1))
        self._column = stop

    def up(self, count: int, _: int) -> None:
        if self._column == END:
            self._settle_column()
        self._row = max(0, self._row - (count or 1))

    def down(self, count: int, _: int) -> None:
        self._settle_column()
        self._row = min(self._row + (count or 1), self._rows - 1)

    def left(self, count: int, _: int) -> None:
        self._column = max(0, self._settle_column() - (count or 1))

    def right(self, count: int, _: int) -> None:
        self.to_column(self._settle_column() + (count or 1) + 1, 0)

    def to_column(self, number: int, _: int) -> None:
        """A line that is longer than the screen may be walked to its end, but not beyond."""
        here = self._settle_column()
        column = (number or 1) - 1
        if column >= COLUMNS:
            self._join_pieces()
            width = columns_in(self._screen[self._row]) if self._row < len(self._screen) else 0
            column = min(column, max(width, here, COLUMNS - 1))
        self._column = column

    def to_row(self, number: int, _: int) -> None:
        self._settle_column()
        self._row = min((number or 1) - 1, self._rows - 1)

    def next_line(self, count: int, _: int) -> None:
        self.down(count, 0)
        self._column = 0

    def previous_line(self, count: int, _: int) -> None:
        self.up(count, 0)
        self._column = 0

    def place(self, row: int, column: int) -> None:
        self._row = min((row or 1), self._rows) - 1
        self._column = min((column or 1), COLUMNS) - 1

    def save(self, _: int, __: int) -> None:
        self._saved = (self._row, self._settle_column())

    def restore(self, _: int, __: int) -> None:
        self._row, self._column = self._saved

    # ── erasing ──────────────────────────────────────────────────────────────────

    def erase_line(self, which: int, _: int) -> None:
        if self._row >= len(self._screen) or (self._column == END and which == 0):
            return
        if which == 2 or self._column == which == 0:
            self._erase_whole_line()
            return
        cells = self._cells()
        column = self._column
        if which == 0 and column < len(cells):
            part(cells, column)
            del cells[column:]
        elif which == 1 and cells and len(cells) <= LONG:
            part(cells, column + 1)
            cells[: column + 1] = " " * (column + 1) if column + 1 < len(cells) else ""

    def _erase_whole_line(self) -> None:
        self._join_pieces()
        if line := self._screen[self._row]:
            if self._column == END:
                self._column = columns_in(line)
            self._screen[self._row] = ""

    def erase_screen(self, which: int, _: int) -> None:
        if which >= 2:
            self.clear(0, 0)
            return
        self.erase_line(which, 0)
        if which == 0 and self._row < len(self._screen) - 1:
            self._join_pieces()
            del self._screen[self._row + 1 :]
        elif which == 1:
            self._join_pieces()
            for row in range(min(self._row, len(self._screen))):
                self._screen[row] = ""

    def clear(self, _: int, __: int) -> None:
        """Begin a new screen below what there is."""
        self._join_pieces()
        if count := len(self._screen) - (not self._screen[-1]):
            self._settle(count)
        self._screen = [""]
        self._row, self._column = 0, END

    def erase_characters(self, count: int, _: int) -> None:
        if self._row >= len(self._screen):
            return
        cells = self._cells()
        count = min(count or 1, LONG)
        end = self._column + count
        if end >= len(cells):
            self.erase_line(0, 0)
            return
        part(cells, self._column)
        part(cells, end)
        cells[self._column : end] = " " * count

    def delete_characters(self, count: int, _: int) -> None:
        if self._row >= len(self._screen):
            return
        cells = self._cells()
        end = self._column + (count or 1)
        if self._column < len(cells) <= LONG:
            part(cells, self._column)
            part(cells, end)
            del cells[self._column : end]

    def insert_characters(self, count: int, _: int) -> None:
        if self._row >= len(self._screen):
            return
        cells = self._cells()
        if self._column < len(cells) <= LONG:
            part(cells, self._column)
            cells[self._column : self._column] = " " * min(count or 1, COLUMNS)
