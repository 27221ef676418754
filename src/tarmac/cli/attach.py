"""`/attach t1`: the person has a terminal of the task for themselves, raw, until they press Ctrl-].

tape → the person's screen · their keys → the terminal, which is theirs until its next prompt
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from tarmac.cli.own_stdin import every_key, pieces
from tarmac.errors import TarmacError
from tarmac.terminals import Terminal
from tarmac.terminals.output.tape import Printed, Resized, Snapshot

if TYPE_CHECKING:
    from tarmac.server.joined_terminal import JoinedTerminal

LEAVE = b"\x1d"  # Ctrl-]
ALTERNATE = b"\x1b[?1049h"  # the full-screen mode begins
CLEAR = b"\x1b[H\x1b[2J"
# Leave the full-screen mode, show the cursor; no colour, no mouse, no bracketed paste.
RESET = b"\x1b[?1049l\x1b[?25h\x1b[m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\r\n"
# An answer to the session's editor that arrives late. (`1;2` to `1;8` are F3 with a modifier.)
CURSOR_REPORT = re.compile(rb"\x1b\[(?!1;[2-8]R)\d+;\d+R")
EVERY = 0.3  # seconds between two looks at the size of the screen


class ScreenGone(Exception):
    """The person's own terminal went away."""


async def attach(terminal: "Terminal | JoinedTerminal", typed: bytes = b"") -> bytes:
    """Show the terminal and pass keys to it until the person leaves, or it is closed. ScreenGone if they are gone.

    `typed` are keys that were pressed for it before; those behind the leaving key are returned.
    """
    before = _size(terminal)
    try:
        with every_key(sys.stdin.fileno()):
            _take_size(terminal)
            showing, following = asyncio.create_task(_show(terminal)), asyncio.create_task(_follow_size(terminal))
            typing = asyncio.create_task(_type(terminal, typed))
            jobs = (typing, showing, following)
            try:
                await asyncio.wait((typing, showing), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for job in jobs:
                    job.cancel()
                await asyncio.gather(*jobs, return_exceptions=True)
                _resize(terminal, *before)
            _write(RESET)
    except OSError as error:
        raise ScreenGone from error
    rest = typing.result() if not typing.cancelled() and not typing.exception() else b""
    if rest is None:
        raise ScreenGone
    return rest


async def _show(terminal: "Terminal | JoinedTerminal") -> None:
    """Paint it, then all that it prints. After a resize the visible rows are painted again, in their new size."""
    _write(f"\x1b]2;{terminal.id}: Ctrl-] leaves it\a".encode())
    painted, again = (0, 0), True
    while again:
        again = False
        async for piece in terminal.watch():
            match piece:
                case Snapshot(rows=rows, columns=columns, data=data):
                    _write(CLEAR + (_visible(piece) if any(painted) else data))
                    painted = (rows, columns)
                case Printed(data=data):
                    _write(data)
                case Resized(rows=rows, columns=columns) if (rows, columns) != painted:
                    again = True
                    break


def _visible(snapshot: Snapshot) -> bytes:
    """What paints the rows of a snapshot without its history, which is on the person's screen already."""
    return b"\r\n".join(snapshot.data.rpartition(ALTERNATE)[2].split(b"\r\n")[-snapshot.rows :])


async def _type(terminal: "Terminal | JoinedTerminal", typed: bytes) -> bytes | None:
    """Until the person leaves: what they typed behind that key. None: their terminal is gone."""
    async for keys in _keys(typed):
        wanted, left, rest = CURSOR_REPORT.sub(b"", keys).partition(LEAVE)
        if wanted:
            await terminal.type(wanted)
        if left:
            return rest
    return None


async def _keys(typed: bytes) -> AsyncIterator[bytes]:
    if typed:
        yield typed
    async for keys in pieces(sys.stdin.fileno()):
        yield keys


async def _follow_size(terminal: "Terminal | JoinedTerminal") -> None:
    while True:
        await asyncio.sleep(EVERY)
        _take_size(terminal)


def _take_size(terminal: "Terminal | JoinedTerminal") -> None:
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    if (rows, columns) != _size(terminal):
        _resize(terminal, rows, columns)


def _size(terminal: "Terminal | JoinedTerminal") -> tuple[int, int]:
    return terminal.tape.size if isinstance(terminal, Terminal) else terminal.size


def _resize(terminal: "Terminal | JoinedTerminal", rows: int, columns: int) -> None:
    try:
        terminal.resize(rows=rows, columns=columns)
    except (TarmacError, OSError):  # closed meanwhile
        pass


def _write(data: bytes) -> None:
    sys.stdout.flush()
    fd = sys.stdout.fileno()
    while data:
        data = data[os.write(fd, data) :]
