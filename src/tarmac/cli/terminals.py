"""`tarmac terminals`: those that outlive the program: listed, attached to, and ended. `/attach t1` in a session, too.

Attached, the person has a terminal for themselves, raw, until they press Ctrl-]:
tape → the person's screen · their keys → the terminal, which is theirs until its next prompt
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from tarmac.cli.exit_status import FAILED, complain
from tarmac.cli.own_stdin import every_key, pieces
from tarmac.cli.parser import parse as parse_arguments
from tarmac.cli.parser import suggest
from tarmac.errors import BadRequest, TarmacError
from tarmac.policy.visible import shortened, visible
from tarmac.terminals import LeftTerminal, Terminal, attach_terminal, end_terminal, events, list_terminals
from tarmac.terminals.output.tape import Printed, Resized, Snapshot

if TYPE_CHECKING:
    from tarmac.server.joined_terminal import JoinedTerminal


ACTIONS = ("list", "attach", "end")
WHICH = "`tarmac terminals` lists them"
LONGEST_COMMAND = 50


def main(arguments: list[str]) -> int:
    """List, attach or end; the exit code."""
    options, words = parse_arguments("terminals", arguments)
    action, rest = (words[0], words[1:]) if words else ("list", [])
    if action not in ACTIONS:
        hint = suggest(action, ACTIONS) or "`tarmac terminals` takes list, attach ID or end ID"
        raise BadRequest(f"`{action}` is not a command of `tarmac terminals`", hint=hint)
    if "json" in options and action == "attach":
        raise BadRequest("`terminals attach` takes no --json", hint="`tarmac terminals list --json`")
    match action, rest:
        case "list", []:
            return asyncio.run(_list(json_wanted="json" in options))
        case "list", [word, *_]:
            raise BadRequest(f"`terminals list` takes no `{word}`", hint="`tarmac terminals list` lists all")
        case "attach", [word]:
            return asyncio.run(_attach(word))
        case "attach", _:
            raise BadRequest("`terminals attach` takes the id or the name of one terminal", hint=WHICH)
        case "end", []:
            raise BadRequest("`terminals end` takes the ids or the names of terminals", hint=WHICH)
    return asyncio.run(_end(rest, json_wanted="json" in options))


async def _list(*, json_wanted: bool) -> int:
    found = await list_terminals()
    if json_wanted:
        print(json.dumps([each.as_dict() for each in found], indent=2))
        return 0
    if not found:
        print("No terminal outlives its program here.")
        return 0
    for each in found:
        name = f" ({visible(each.name)})" if each.name != each.id else ""
        task = f", task {each.task}" if each.task else ""
        print(f"{each.id}{name}  {_state(each)}")
        print(f"    in {visible(str(each.cwd))}{task}")
    return 0


def _state(left: LeftTerminal) -> str:
    command = f"`{shortened(visible(left.command), LONGEST_COMMAND)}`" if left.command else "nothing yet"
    if left.host is not None:
        return f"in use by process {left.host}; last command: {command}"
    if not left.alive and left.status is None:
        return f"lost with the terminal daemon; last command: {command}. Attaching opens a new shell"
    if not left.alive:
        return f"its shell ended with status {left.status}; last command: {command}"
    what = f"runs {command}" if left.running else f"idle; last command: {command}"
    return f"{what}; ends in {_span(left.expires or 0)} unless a program attaches"


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


async def _id_of(word: str) -> str:
    """The id of the terminal with that id or that name."""
    found = await list_terminals()
    if any(each.id == word for each in found):
        return word
    match [each.id for each in found if each.name == word]:
        case [id]:
            return id
        case [_, _, *_] as several:
            raise BadRequest(f"{len(several)} terminals are named `{word}`", hint=f"take an id: {', '.join(several)}")
    return word  # who looks for it says that there is none


async def _attach(word: str) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadRequest("`terminals attach` needs a terminal", hint="`tarmac terminals --json` shows its state")
    id = await _id_of(word)
    terminal = await attach_terminal(id)
    ended = asyncio.Event()

    def hear(event: events.TerminalEvent) -> None:
        if isinstance(event, events.ShellEnded | events.TerminalClosedEvent):
            ended.set()

    terminal.subscribe(hear)
    if not terminal.alive:
        ended.set()
    gone = asyncio.create_task(ended.wait())
    shown = asyncio.create_task(attach(terminal))
    try:
        await asyncio.wait((gone, shown), return_when=asyncio.FIRST_COMPLETED)
    finally:
        over = ended.is_set()
        for each in (gone, shown):
            each.cancel()
        results = await asyncio.gather(gone, shown, return_exceptions=True)
        await (terminal.aclose() if over else terminal.leave())
    if isinstance(results[1], ScreenGone):
        return 1
    print(
        f"\r\n{id}: its shell has ended."
        if over
        else f"\r\n{id} goes on. `tarmac terminals attach {id}` comes back to it."
    )
    return 0


async def _end(words: list[str], *, json_wanted: bool) -> int:
    """One that can't be ended is told, and the others are ended."""
    code = 0
    for word in dict.fromkeys(words):
        try:
            id = await _id_of(word)
            await end_terminal(id)
        except TarmacError as error:
            code = complain(error.what, hint=error.hint, code=FAILED)
        else:
            print(json.dumps({"ended": id}) if json_wanted else f"{id} was ended.")
    return code


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
