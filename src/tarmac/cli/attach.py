"""`/attach t1`: the person has a terminal of the task for themselves, raw, until they press Ctrl-].

tape → the person's screen · their keys → the terminal, which is theirs until its next prompt
"""

import asyncio
import os
import re
import sys

from tarmac.cli.own_stdin import every_key, pieces
from tarmac.errors import TarmacError
from tarmac.terminals import Terminal
from tarmac.terminals.output.tape import Printed, Snapshot

LEAVE = b"\x1d"  # Ctrl-]
CLEAR = b"\x1b[H\x1b[2J"
# Leave the full-screen mode, show the cursor; no colour, no mouse, no bracketed paste.
RESET = b"\x1b[?1049l\x1b[?25h\x1b[m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\r\n"
# An answer to the session's editor that arrives late. (`1;2` to `1;8` are F3 with a modifier.)
CURSOR_REPORT = re.compile(rb"\x1b\[(?!1;[2-8]R)\d+;\d+R")
EVERY = 0.3  # seconds between two looks at the size of the screen


class ScreenGone(Exception):
    """The person's own terminal went away."""


async def attach(terminal: Terminal) -> None:
    """Show the terminal and pass keys to it until the person leaves, or it is closed. ScreenGone if they are gone."""
    before = terminal.tape.size
    try:
        with every_key(sys.stdin.fileno()):
            jobs = [asyncio.create_task(each) for each in (_type(terminal), _show(terminal), _follow_size(terminal))]
            try:
                await asyncio.wait(jobs[:2], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for job in jobs:
                    job.cancel()
                ended = await asyncio.gather(*jobs, return_exceptions=True)
                _resize(terminal, *before)
            _write(RESET)
    except OSError as error:
        raise ScreenGone from error
    if ended[0] is False:
        raise ScreenGone


async def _show(terminal: Terminal) -> None:
    async for piece in terminal.watch():
        match piece:
            case Snapshot(data=data):
                _write(f"\x1b]2;{terminal.id}: Ctrl-] leaves it\a".encode() + CLEAR + data)
            case Printed(data=data):
                _write(data)


async def _type(terminal: Terminal) -> bool:
    """Until the person leaves. False: their terminal is gone."""
    async for keys in pieces(sys.stdin.fileno()):
        typed, left, _ = CURSOR_REPORT.sub(b"", keys).partition(LEAVE)
        if typed:
            await terminal.type(typed)
        if left:
            return True
    return False


async def _follow_size(terminal: Terminal) -> None:
    while True:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        if (rows, columns) != terminal.tape.size:
            _resize(terminal, rows, columns)
        await asyncio.sleep(EVERY)


def _resize(terminal: Terminal, rows: int, columns: int) -> None:
    try:
        terminal.resize(rows=rows, columns=columns)
    except (TarmacError, OSError):  # closed meanwhile
        pass


def _write(data: bytes) -> None:
    sys.stdout.flush()
    fd = sys.stdout.fileno()
    while data:
        data = data[os.write(fd, data) :]
