"""The screen that an emulator paints of any bytes, and what stands out on it."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarmac.vt.screen import PLAIN, Picture, Span, highlights, new_emulator

PIECES = st.lists(
    st.text(alphabet="abchlr 中é", max_size=12).map(str.encode)
    | st.sampled_from(
        [b"\r\n", b"\x1b[H", b"\x1b[3;4H", b"\x1b[2J", b"\x1b[7m", b"\x1b[0m", b"\x1b[44m", b"\x1b[K", b"\x1b[A",
         b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25l", b"\x1b[?25h", b"\x1b]2;name\x07", b"\x1b[?1h", b"\x1b[L",
         b"\x1b[?2004h", b"\x1b[2;5r"]
    ),
    max_size=25,
)  # fmt: skip


def painted(data: bytes, *, rows: int = 6, columns: int = 20) -> Picture:
    emulator = new_emulator(rows, columns)
    try:
        emulator.feed(data)
        return emulator.picture()
    finally:
        emulator.close()


def test_rows_cursor_title_and_highlighted_text_are_told() -> None:
    """T28."""
    data = b"\x1b]2;demo\x07\x1b[?1049h\x1b[Hfirst\r\n\x1b[7mchosen\x1b[0m\r\nlast\x1b[3;3H"
    assert painted(data, rows=4) == Picture(
        rows=4,
        columns=20,
        lines=("first", "chosen", "last", ""),
        cursor=(2, 2),
        alternate=True,
        title="demo",
        highlighted=(Span(1, 0, 6),),
    )


@settings(deadline=None, max_examples=50)
@given(PIECES, st.integers(1, 7))
def test_the_picture_is_the_same_however_the_bytes_are_cut(pieces: list[bytes], size: int) -> None:
    """T28."""
    data = b"".join(pieces)
    emulator = new_emulator(6, 20)
    for start in range(0, len(data), size):
        emulator.feed(data[start : start + size])
    assert emulator.picture() == painted(data)
    emulator.close()


@settings(deadline=None, max_examples=100)
@given(PIECES)
@example([b"\x1b[2;5r", b"\r\n", b"\x1b[?1049h", b"a"])  # the margins of one screen are those of the other, too
@example([b"\x1b[?25l", b"\x1b[?1049h", b"\x1b[?25h"])  # the cursor is hidden on one screen, and shown on the other
@example([b"\x1b[2;5r", b"\x1b[?6h", b"\r\n"])  # the cursor's place counts from the margin
def test_what_repaints_a_screen_paints_the_same(pieces: list[bytes]) -> None:
    """T26: a viewer that attaches sees what the terminal shows."""
    emulator = new_emulator(6, 20)
    emulator.feed(b"".join(pieces))
    picture = emulator.picture()
    assert painted(emulator.repaint()) == picture
    emulator.close()


def test_text_that_looks_like_the_end_of_a_mode_is_painted_as_text() -> None:
    """T26: `1h` is all that is shown, and a mode ends with it."""
    emulator = new_emulator(4, 20)
    emulator.feed(b"\x1b[?1h\x1b[?2004h1h")
    copy = new_emulator(4, 20)
    copy.feed(emulator.repaint())
    assert copy.picture().lines[0] == "1h"
    assert copy.repaint() == emulator.repaint()
    emulator.close()
    copy.close()


def test_a_viewer_that_attaches_while_vim_runs_has_the_shell_behind_it() -> None:
    """T26: the main screen comes back when the program ends."""
    emulator = new_emulator(4, 20)
    emulator.feed(b"$ vim\r\n\x1b[?1049h\x1b[Hediting")
    copy = new_emulator(4, 20)
    copy.feed(emulator.repaint())
    assert copy.picture().lines[0] == "editing"
    copy.feed(b"\x1b[?1049l")
    assert copy.picture().lines[0] == "$ vim"
    emulator.close()
    copy.close()


def test_a_selected_entry_stands_out_and_the_window_around_it_does_not() -> None:
    window, chosen = (False, "47"), (False, "41")
    rows = [
        [("     ", PLAIN), ("┌────────┐", window)],
        [("     ", PLAIN), ("│ ", window), ("Apple ", chosen), (" │", window)],
        [("     ", PLAIN), ("│ Banana │", window)],
        [("     ", PLAIN), ("│ Cherry │", window)],
        [("     ", PLAIN), ("└────────┘", window)],
    ]
    assert highlights(rows) == (Span(1, 7, 13),)


def test_columns_of_wide_characters_count_twice() -> None:
    assert painted("中文 \x1b[7mx\x1b[0m".encode()).highlighted == (Span(0, 5, 6),)


def test_a_viewer_that_attaches_late_can_scroll_back() -> None:
    """T26: more than a thousand lines of history are painted, also in a wide terminal."""
    emulator = new_emulator(40, 120)
    emulator.feed(b"".join(b"line %d\r\n" % number for number in range(1, 1201)))
    painted = emulator.repaint()
    emulator.close()
    assert painted.startswith(b"\x1b[Hline 1\r\nline 2\r\n")
