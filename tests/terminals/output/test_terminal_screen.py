"""The screen of a terminal: when a program has settled, what has changed, what a viewer paints."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.errors import ScreenUnavailable
from tarmac.terminals import open_terminal
from tarmac.terminals.output.tape import Snapshot, Tape
from tarmac.terminals.output.terminal_screen import ScreenLook, Settled, TerminalScreen, describe
from tarmac.terminals.process.tty_probe import Wants
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.vt.keys import keys
from tarmac.vt.screen import Span, new_emulator

Require = Callable[[str], None]


@pytest.mark.shell
async def test_a_program_has_settled_when_it_waits_for_keys(tmp_path: Path, require: Require) -> None:
    """T28: by the kernel's word."""
    require("less")
    (tmp_path / "numbers").write_text("".join(f"line {n}\n" for n in range(1, 500)))
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        execution = await terminal.start("TERM=xterm less numbers")
        first = await execution.screen()
        assert (first.settled, first.lines[0], first.changed) == (Settled.KERNEL, "line 1", None)
        assert first.waiting is not None
        assert (first.waiting.wants, first.waiting.name) == (Wants.KEYS, "less")
        await execution.send(keys("G"))
        last = await execution.screen(since=first.hash)
        assert last.lines[38] == "line 499"
        assert last.changed == tuple(range(40))
        again = await execution.screen(since=last.hash)
        assert (again.changed, again.hash) == ((), last.hash)
        await execution.send("q")
        assert (await execution.screen()).settled is Settled.ENDED


@pytest.mark.shell
async def test_keys_that_the_kernel_hands_over_late_are_waited_for(
    tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T28: on a busy machine a key reaches the program long after it was written, and until then it sleeps on."""
    require("less")
    (tmp_path / "numbers").write_text("".join(f"line {n}\n" for n in range(1, 500)))
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        execution = await terminal.start("TERM=xterm less numbers")
        assert (await execution.screen()).lines[0] == "line 1"
        assert isinstance(terminal, PtyTerminal)
        assert terminal.session is not None
        pty, loop = terminal.session.pty, asyncio.get_running_loop()
        written = pty.write
        monkeypatch.setattr(pty, "write", lambda data: loop.call_later(0.25, written, data))
        await execution.send(keys("G"))
        assert (await execution.screen()).lines[38] == "line 499"
        await execution.kill()


@pytest.mark.shell
async def test_a_program_that_computes_is_looked_at_when_the_time_is_up(tmp_path: Path) -> None:
    """T28: nothing hangs."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        execution = await terminal.start("printf ready; while :; do :; done")
        await execution.waiting_for(pattern="ready", timeout=10)
        look = await terminal.look(limit=0.3)
        assert look.settled is Settled.DEADLINE
        assert "ready" in [each.rstrip() for each in look.lines]  # the prompt's path may be longer than a line
        await execution.kill()


@pytest.mark.shell
async def test_keys_are_in_the_form_that_the_program_asked_for(tmp_path: Path) -> None:
    """T28: application cursor keys."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        await terminal.run(r"printf '\033[?1h'")
        assert keys("Up", application_cursor=await terminal.screen.application_cursor()) == b"\x1bOA"
        await terminal.run(r"printf '\033[?1l'")
        assert keys("Up", application_cursor=await terminal.screen.application_cursor()) == b"\x1b[A"


@pytest.mark.shell
async def test_a_viewer_paints_what_the_terminal_shows(tmp_path: Path, require: Require) -> None:
    """T26, T28: also in the middle of a full-screen program, and when its start has left the tape."""
    require("less")
    (tmp_path / "numbers").write_text("".join(f"line {n}\n" for n in range(1, 500)))
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        await terminal.run("echo before")
        execution = await terminal.start("TERM=xterm less numbers")
        look = await execution.screen()
        first = await anext(terminal.watch())
        assert isinstance(first, Snapshot)
        viewer = new_emulator(first.rows, first.columns)
        viewer.feed(first.data)
        assert viewer.picture().lines == look.lines
        viewer.feed(b"\x1b[?1049l")
        assert "before" in viewer.picture().lines
        viewer.close()
        await execution.kill()


async def test_what_a_full_screen_program_drew_long_ago_is_still_on_the_screen() -> None:
    """T28: an editor draws only what changes, and its first lines leave the tape."""
    tape = Tape(rows=4, columns=20, capacity=2000)
    screen = TerminalScreen(tape)
    tape.write(b"\x1b[?1049h\x1b[Htitle")
    assert screen.current().picture().lines[0] == "title"
    for number in range(1000):
        tape.write(b"\x1b[3;1H%4d" % number)
    assert tape.start > 0
    assert screen.current().picture().lines == ("title", "", " 999", "")
    screen.close()


async def test_a_screen_made_late_knows_that_a_full_screen_program_has_the_terminal() -> None:
    """T28."""
    tape = Tape(rows=4, columns=20, capacity=2000)
    tape.write(b"\x1b[?1049h\x1b[Htitle")
    for number in range(1000):
        tape.write(b"\x1b[3;1H%4d" % number)
    screen = TerminalScreen(tape)
    picture = screen.current().picture()
    assert (picture.alternate, picture.lines[2]) == (True, " 999")
    screen.close()


async def test_without_the_emulator_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T28."""
    monkeypatch.setitem(sys.modules, "pyghostty", None)
    monkeypatch.setitem(sys.modules, "pyghostty.core", None)
    tape = Tape(rows=4, columns=20)
    with pytest.raises(ScreenUnavailable) as raised:
        await TerminalScreen(tape).snapshot()
    assert raised.value.hint == "install it with: pip install 'tarmac[screen]'"


@pytest.mark.shell
async def test_viewers_attach_without_the_emulator_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T26."""
    monkeypatch.setitem(sys.modules, "pyghostty", None)
    monkeypatch.setitem(sys.modules, "pyghostty.core", None)
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        await terminal.run("echo before")
        assert b"before\r\n" in (await terminal.snapshot()).data


def look(lines: tuple[str, ...], *, changed: tuple[int, ...] | None = None) -> ScreenLook:
    return ScreenLook(
        rows=len(lines),
        columns=20,
        lines=lines,
        cursor=(1, 3),
        alternate=True,
        title="",
        highlighted=(Span(0, 2, 4),),
        changed=changed,
        hash="",
        settled=Settled.KERNEL,
        seconds=0.021,
        waiting=None,
    )


def test_a_first_look_has_every_row_and_a_later_one_those_that_changed() -> None:
    """T28."""
    lines = ("a [x] b", "中文字 end", "~", "~", "~", "", "last")
    assert describe(look(lines)).splitlines() == [
        "[screen 7×20 · cursor 2,4 · settled: kernel 21 ms]",
        "  1 │ a ‹[x›] b",
        "▸ 2 │ 中文▮字 end",
        "  3 │ ~",
        "[like the row above: rows 4–5]",
        "[empty: row 6]",
        "  7 │ last",
    ]
    assert describe(look(lines, changed=(6,))).splitlines()[1:] == [
        "[unchanged: row 1]",
        "▸ 2 │ 中文▮字 end",
        "[unchanged: rows 3–6]",
        "  7 │ last",
    ]
