"""What a terminal shows: rows of text, the cursor, and what is highlighted.

bytes → Emulator.feed() → picture(), for a model · repaint(), for a viewer

The emulator is Ghostty's, from the optional package pyghostty. Its import takes up to a second, so nothing here is
imported before somebody looks. Its own `style()` of single cells takes half a second for a screen. We read the
colours from the escape sequences that it writes instead.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tarmac.errors import ScreenUnavailable
from tarmac.vt.cells import is_simple, width_of

SCROLLBACK_LINES = 2000
ROOM = 32 << 10  # bytes for the text of a screen; more as they are needed
_SEQUENCE = re.compile(r"\x1b(?:\[([0-9;:]*)m|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")
_SEQUENCES = re.compile(f"(?:{_SEQUENCE.pattern})*")
_ENTERS_ALTERNATE = re.compile(rb"\x1b\[\?(?:\d+;)*(?:47|1047|1049)(?:;\d+)*h")
# The alternate screen is cleared when it is entered again; and with 2026 a viewer would wait for the end of an update.
_NOT_AGAIN = re.compile(r"\x1b\[\?(?:47|1047|1049|2026)h")


@dataclass(frozen=True, slots=True)
class Span:
    """Highlighted text in one row: a selected entry, a button, a status line. Columns begin with 0."""

    row: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A terminal's screen at one moment. Rows and columns begin with 0."""

    rows: int
    columns: int
    lines: tuple[str, ...]  # one for each row, without spaces at the end
    cursor: tuple[int, int] | None  # row and column; None: hidden
    alternate: bool  # a full-screen program has it
    title: str
    highlighted: tuple[Span, ...]


class Emulator(Protocol):
    """A terminal without a window."""

    def feed(self, data: bytes) -> None: ...
    def resize(self, rows: int, columns: int) -> None: ...
    def picture(self) -> Picture: ...
    def repaint(self) -> bytes:
        """What paints the same on an empty terminal of this size: history, both screens, modes, title, cursor."""
        ...

    @property
    def alternate(self) -> bool: ...
    @property
    def application_cursor(self) -> bool:
        """Whether arrow keys are sent as `ESC O A` (DECCKM)."""
        ...

    def close(self) -> None: ...


def import_emulator() -> None:
    """Import what `new_emulator` needs; ScreenUnavailable if it is not installed. Slow the first time."""
    try:
        import pyghostty.core  # noqa: F401
    except (ImportError, OSError) as error:
        raise ScreenUnavailable(
            f"screens of full-screen programs need pyghostty, which can't be imported: {error}",
            hint="install it with: pip install 'tarmac[screen]'",
        ) from error


def new_emulator(rows: int, columns: int) -> Emulator:
    """An empty screen of that size."""
    import_emulator()
    return GhosttyEmulator(rows, columns)


class GhosttyEmulator:
    """See `Emulator`."""

    def __init__(self, rows: int, columns: int) -> None:
        from pyghostty._ffi import ffi, lib
        from pyghostty.core import Terminal

        self._terminal: Any = Terminal(columns, rows, scrollback=SCROLLBACK_LINES)
        # Without room for them, some 500 lines are kept. A cell takes 8 bytes. The memory is used as lines come.
        room = ffi.new("size_t*", (rows + SCROLLBACK_LINES) * (columns + 64) * 8 * 2)
        lib.ghostty_terminal_set(self._terminal._t[0], lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, room)
        self._rows, self._columns = rows, columns
        self._room = ROOM
        self._main = b""  # what paints the main screen, while the alternate one is shown

    def feed(self, data: bytes) -> None:
        start = 0
        for entry in _ENTERS_ALTERNATE.finditer(data):
            self._terminal.feed(data[start : entry.start()])
            start = entry.start()
            if not self.alternate:
                self._main = self._paint()  # its modes are those of the alternate screen, too
        self._terminal.feed(data[start:] if start else data)

    def resize(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self._terminal.resize(columns, rows)

    @property
    def alternate(self) -> bool:
        return bool(self._terminal.get("active_screen", "int"))

    @property
    def application_cursor(self) -> bool:
        return bool(self._terminal.mode(1))

    def picture(self) -> Picture:
        column, row = self._terminal.cursor
        rows = [_styled(line) for line in self._vt(extras=False, history=False).split("\r\n")]
        lines = ["".join(text for text, _ in each).rstrip() for each in rows]
        lines += [""] * (self._rows - len(lines))
        return Picture(
            rows=self._rows,
            columns=self._columns,
            lines=tuple(lines),
            cursor=(row, column) if self._terminal.get("cursor_visible", "bool") else None,
            alternate=self.alternate,
            title=self._title(),
            highlighted=highlights(rows),
        )

    def repaint(self) -> bytes:
        title = self._title()
        named = f"\x1b]2;{title}\x07".encode() if title else b""
        modes = _NOT_AGAIN.sub("", self._modes())
        hidden = b"" if self._terminal.get("cursor_visible", "bool") else b"\x1b[?25l"
        return named + (self._main if self.alternate else b"") + self._paint(modes) + hidden

    def close(self) -> None:
        self._terminal.close()

    def _paint(self, modes: str = "") -> bytes:
        """The screen that is shown, with its history. Modes come last: in some of them it could not be painted."""
        rows = self._vt(extras=False, history=True)
        column, row = self._terminal.cursor
        if "\x1b[?6h" in modes:  # the cursor's place counts from the margins
            row, column = (place - _margin(modes, kind) for place, kind in ((row, "r"), (column, "s")))
        total = self._terminal.get("total_rows", "size_t")
        blank = "\r\n" * (total - rows.count("\r\n") - 1)  # empty rows at the end are left out
        enter = "\x1b[?1049h" if self.alternate else ""
        return f"{enter}\x1b[H{rows}{blank}{modes}\x1b[0m\x1b[{row + 1};{column + 1}H".encode()

    def _modes(self) -> str:
        """Modes and margins. They are written around the rows that are shown."""
        rows, whole = (self._vt(extras=each, history=False) for each in (False, True))
        start = 0
        while not (whole.startswith(rows, start) and _SEQUENCES.fullmatch(whole, start + len(rows))):
            sequence = _SEQUENCE.match(whole, start)
            if sequence is None:
                return ""
            start = sequence.end()
        return whole[:start] + whole[start + len(rows) :]

    def _title(self) -> str:
        from pyghostty._ffi import ffi

        title = self._terminal.get("title", "GhosttyString")
        text: bytes = ffi.buffer(title.ptr, title.len)[:] if title.len else b""
        return "".join(each for each in text.decode("utf-8", "replace") if each.isprintable())

    def _vt(self, *, extras: bool, history: bool) -> str:
        """The screen as text with escape sequences; with `extras`, also modes and margins."""
        from pyghostty._ffi import check, ffi, lib
        from pyghostty.core import init_sized

        options = init_sized("GhosttyFormatterTerminalOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
        if extras:
            options.extra.modes = options.extra.scrolling_region = options.extra.keyboard = True
        if not history:
            selection = init_sized("GhosttySelection")
            first = self._terminal.ref(0, 0)
            last = self._terminal.ref(self._columns - 1, self._rows - 1)
            selection.start, selection.end = first[0], last[0]
            options.selection = selection
        formatter = ffi.new("GhosttyFormatter*")
        check(lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._terminal._t[0], options[0]), "formatter")
        try:
            used = ffi.new("size_t*")
            buffer = ffi.new("uint8_t[]", self._room)
            failed = lib.ghostty_formatter_format_buf(formatter[0], buffer, len(buffer), used)
            if failed and used[0] > len(buffer):  # to ask for the size first takes as long as to write it
                self._room = used[0] + ROOM
                buffer = ffi.new("uint8_t[]", self._room)
                failed = lib.ghostty_formatter_format_buf(formatter[0], buffer, len(buffer), used)
            check(failed, "format")
            return bytes(ffi.buffer(buffer, used[0])).decode()
        finally:
            lib.ghostty_formatter_free(formatter[0])


def _margin(modes: str, kind: str) -> int:
    """The first row (`r`) or column (`s`) within the margins that `modes` set."""
    found = re.search(rf"\x1b\[(\d+);\d+{kind}", modes)
    return int(found[1]) - 1 if found else 0


Style = tuple[bool, str]  # inverse, and the background
PLAIN: Style = (False, "")


def _styled(line: str) -> list[tuple[str, Style]]:
    """A row as pieces of text of one style each."""
    pieces: list[tuple[str, Style]] = []
    style = PLAIN
    done = 0
    for found in _SEQUENCE.finditer(line):
        if found.start() > done:
            pieces.append((line[done : found.start()], style))
        done = found.end()
        if found[1] is not None:
            style = _after(style, found[1])
    if done < len(line):
        pieces.append((line[done:], style))
    return pieces


def _after(style: Style, parameters: str) -> Style:
    """The style after `ESC [ parameters m`."""
    inverse, background = style
    codes = iter(re.split("[;:]", parameters or "0"))
    for code in codes:
        match code:
            case "" | "0":
                inverse, background = PLAIN
            case "7":
                inverse = True
            case "27":
                inverse = False
            case "49":
                background = ""
            case "38" | "48" | "58":
                kind = next(codes, "")
                colour = [next(codes, "") for _ in range(3 if kind == "2" else 1)]
                background = ",".join(colour) if code == "48" else background
            case _ if re.fullmatch("4[0-7]|10[0-7]", code):
                background = code
    return inverse, background


def highlights(rows: Sequence[Sequence[tuple[str, Style]]]) -> tuple[Span, ...]:
    """The text that stands out: inverse in its row, or in another style than what is above and below it."""
    cells = [[style for text, style in row for _ in range(_width(text))] for row in rows]
    found: list[Span] = []
    for number, row in enumerate(rows):
        usual = Counter(cells[number]).most_common(1)[0][0] if cells[number] else PLAIN
        column = 0
        for text, style in row:
            start, column = column, column + _width(text)
            if not text.strip() or (style == PLAIN and usual == PLAIN):
                continue
            around = [cells[each][start:column] for each in (number - 1, number + 1) if 0 <= each < len(cells)]
            alone = all(style not in each for each in around)
            if alone or (style[0] and style != usual):
                if found and (found[-1].row, found[-1].end) == (number, start):
                    found[-1] = Span(number, found[-1].start, column)
                else:
                    found.append(Span(number, start, column))
    return tuple(found)


def _width(text: str) -> int:
    return len(text) if is_simple(text) else sum(width_of[each] for each in text)
