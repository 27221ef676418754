"""The screen of a live terminal: an emulator that reads the tape, made when somebody looks.

TerminalScreen.look() → settle() → the emulator reads on from its offset → ScreenLook → describe(), for a model

A program has settled when four things hold for 20 ms without a break: all its output was read, all input was read, it
is blocked reading this terminal, and it was awake since the keys were written. Without the last, a busy kernel deceives
us: it hands keys over late, and the program still sleeps in its old read. A program that redraws by itself (`top`)
settles between two redraws.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from tarmac.terminals.output.tape import Printed, Resized, Snapshot, Tape
from tarmac.terminals.process import processes, tty_probe
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.vt.cells import width_of
from tarmac.vt.screen import Emulator, Picture, import_emulator, new_emulator

if TYPE_CHECKING:
    from tarmac.terminals.execution import Execution
    from tarmac.terminals.shell.session import Session

STILL = 0.02
SAMPLE = 0.002
LEAST_SAMPLES = 4
LONGEST_SETTLING = 2.0
# Programs take Escape for the beginning of another key: vim for 100 ms, curses and an old-fashioned vim for a second.
AFTER_ESCAPE = 1.1  # when nothing was printed yet
ESCAPE_SHOWN = 0.13  # when something was, such as `^[`
ESCAPE_ALONE = 0.09  # what is printed later than this is the reaction
UNREAD = 1.0  # for this long we wait until the program wakes up for a key
QUIET = 0.15  # without output, where the kernel can't tell
DROP_AFTER = 60.0  # seconds without a look
REMEMBERED = 4  # looks, for differences
MOST_CHANGED = 0.4  # of the rows; above this all of them are shown

# They read the terminal all the time and hand it on: what waits behind them can't be seen.
RELAYS = tty_probe.RELAYS | {"ssh", "mosh-client", "telnet", "docker", "podman", "kubectl", "script", "socat", "nc"}


class Settled(StrEnum):
    """Why the screen was looked at when it was."""

    KERNEL = "kernel"  # the program waits for input
    QUIET = "quiet"  # nothing was printed for a while; more can't be known here (ssh, a container)
    DEADLINE = "deadline"  # it was still busy
    ENDED = "ended"  # the command has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenLook(Picture):
    """A screen, and how it came to be looked at."""

    changed: tuple[int, ...] | None  # rows that differ from the look it is compared with; None: there is none
    hash: str
    settled: Settled
    seconds: float  # from the keys, or the call, until it had settled
    waiting: Waiting | None  # what the program waits for


class TerminalScreen:
    """One terminal's emulator, while somebody looks."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._emulator: Emulator | None = None
        self._offset = 0
        self._looks: OrderedDict[str, ScreenLook] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self._used = 0.0

    async def look(
        self,
        session: "Session | None",
        execution: "Execution | None",
        *,
        since: str | None,
        limit: float = LONGEST_SETTLING,
    ) -> ScreenLook:
        """Wait until the program has settled, then look. ScreenUnavailable: pyghostty is not installed."""
        start = time.monotonic()
        await self._load()
        settled, waiting = Settled.QUIET, None
        if session is not None and session.alive:
            settled, waiting = await settle(session, execution, self._tape, limit=limit)
        return await self.show(since=since, settled=settled, waiting=waiting, start=start)

    async def show(self, *, since: str | None, settled: Settled, waiting: Waiting | None, start: float) -> ScreenLook:
        """Look now, at a program that is known to have settled."""
        await self._load()
        picture = self.current().picture()
        if waiting is not None and waiting.wants is Wants.SECRET:
            picture = without_secret(picture)
        return self._remember(picture, since, settled, time.monotonic() - start, waiting)

    def _remember(
        self, picture: Picture, since: str | None, settled: Settled, seconds: float, waiting: Waiting | None
    ) -> ScreenLook:
        values = {each.name: getattr(picture, each.name) for each in fields(Picture)}
        key = f"{hash(picture) & 0xFFFFFFFFFFFFFFFF:016x}"
        before = self._looks.get(since or "")
        look = ScreenLook(
            **values,
            changed=differences(before, picture) if before is not None else None,
            hash=key,
            settled=settled,
            seconds=seconds,
            waiting=waiting,
        )
        self._looks.pop(key, None)
        self._looks[key] = look
        if len(self._looks) > REMEMBERED:
            self._looks.popitem(last=False)
        return look

    def look_of(self, hash: str) -> ScreenLook | None:
        """An earlier look, if it is among the last ones."""
        return self._looks.get(hash)

    async def snapshot(self) -> Snapshot:
        """What a viewer paints first. ScreenUnavailable: pyghostty is not installed."""
        await self._load()
        data = self.current().repaint()
        return Snapshot(self._tape.end, *self._tape.size, data)

    async def application_cursor(self) -> bool:
        """Whether the program wants arrow keys as `ESC O A`."""
        await self._load()
        return self.current().application_cursor

    def current(self) -> Emulator:
        """The emulator, with everything fed to it that is on the tape. `_load` comes first."""
        if self._emulator is None or self._offset < self._tape.start:
            self.close()
            self._emulator = new_emulator(*self._tape.first_size)
            self._offset = self._tape.start
            if self._tape.alternate_at_start:
                self._emulator.feed(b"\x1b[?1049h")
        for piece in self._tape.pieces(self._offset):
            match piece:
                case Printed(data=data):
                    self._emulator.feed(data)
                case Resized(rows=rows, columns=columns):
                    self._emulator.resize(rows, columns)
        self._offset = self._tape.end
        # A full-screen program draws only what changes: what the ring drops is needed.
        self._tape.before_drop = self._catch_up if self._emulator.alternate else None
        self._used = time.monotonic()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DROP_AFTER, self._drop)
        return self._emulator

    def _catch_up(self) -> None:
        used = self._used
        self.current()
        self._used = used

    def _drop(self) -> None:
        self._timer = None
        if (left := self._used + DROP_AFTER - time.monotonic()) > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._drop)
        elif self._emulator is not None and self._emulator.alternate and self._tape.start:
            self._timer = asyncio.get_running_loop().call_later(DROP_AFTER, self._drop)  # it can't be made again
        else:
            self.close()

    def close(self) -> None:
        if self._emulator is not None:
            self._emulator.close()
            self._emulator = None
        self._tape.before_drop = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @staticmethod
    async def _load() -> None:
        await asyncio.get_running_loop().run_in_executor(None, import_emulator)


async def settle(
    session: "Session", execution: "Execution | None", tape: Tape, *, limit: float = LONGEST_SETTLING
) -> tuple[Settled, Waiting | None]:
    """Wait until the program in front has reacted to what was typed, `limit` seconds at most."""
    start = time.monotonic()
    printed, printed_at = tape.end, start
    still, samples, before = start, 0, None
    while True:
        await asyncio.sleep(SAMPLE)
        now = time.monotonic()
        if (execution is not None and not execution.running) or not session.alive:
            return Settled.ENDED, None
        if tape.end != printed:
            printed, printed_at, samples = tape.end, now, 0
        seen = _waits(session)
        if seen is None or (execution is not None and not _awoken(seen, execution, now)):
            samples = 0
        elif seen.name in RELAYS or seen.wants is Wants.UNKNOWN:
            if now - printed_at >= QUIET:
                return Settled.QUIET, seen
        else:
            woken = None if seen.timed else processes.sleeps(seen.process.pid, seen.thread)
            state = (seen.process, seen.thread, woken)
            if not samples or state != before:
                still, samples, before = now, 0, state
            samples += 1
            needed = _needed(seen, execution)
            if samples >= LEAST_SAMPLES and now - still >= needed:
                await session.until_read()  # a busy kernel hands output over late
                if tape.end == printed:
                    return Settled.KERNEL, seen
        if now - start >= limit:
            return Settled.DEADLINE, seen


def _needed(seen: Waiting, execution: "Execution | None") -> float:
    """How long this wait must last. One that ends by itself may be no wait for the next key."""
    if not seen.timed:
        return STILL
    if execution is not None and execution.escaped:
        printed = execution.last_output - execution.last_input
        if printed < ESCAPE_ALONE:
            return AFTER_ESCAPE if printed < 0 else ESCAPE_SHOWN
    # vim leaves the keyboard mode and waits 100 ms for late answers of the terminal before it ends.
    return STILL if seen.wants is Wants.KEYS else QUIET


def _awoken(seen: Waiting, execution: "Execution", now: float) -> bool:
    """Whether it may have read what was typed. The kernel hands that over late when the machine is busy."""
    if execution.asleep is None or now - execution.last_input > UNREAD:
        return True
    if seen.wants is not Wants.KEYS and not execution.line_typed:
        return True  # who reads lines sleeps until the line is whole
    return tty_probe.sleep_of(seen) != execution.asleep


def _waits(session: "Session") -> Waiting | None:
    if session.pty.has_unread_output() or session.pty.has_unread_input():
        return None
    return session.probe()


def differences(before: Picture, now: Picture) -> tuple[int, ...] | None:
    """The rows that differ; None when they can't be compared."""
    if (before.rows, before.columns, before.alternate) != (now.rows, now.columns, now.alternate):
        return None
    return tuple(
        row
        for row in range(now.rows)
        if before.lines[row] != now.lines[row]
        or [each for each in before.highlighted if each.row == row]
        != [each for each in now.highlighted if each.row == row]
    )


def without_secret(picture: Picture) -> Picture:
    """The same without the row in which a secret is typed."""
    row = picture.cursor[0] if picture.cursor is not None else picture.rows - 1
    lines = tuple("(withheld: a secret is asked for)" if n == row else line for n, line in enumerate(picture.lines))
    spans = tuple(each for each in picture.highlighted if each.row != row)
    return replace(picture, lines=lines, highlighted=spans)


def describe(look: ScreenLook) -> str:
    """The screen for a model: all rows, or the changed ones. Rows and columns begin with 1."""
    waits = {Wants.LINE: "a line awaited", Wants.SECRET: "a secret awaited", Wants.KEYS: "keys awaited"}
    program = f" {look.waiting.name}" if look.waiting is not None else ""
    head = [f"screen {look.rows}×{look.columns}{program}"]
    if look.title:
        head.append(f"title {look.title!r}")
    if look.waiting is not None:
        head.append(waits.get(look.waiting.wants, "input awaited"))
    if look.cursor is not None:
        head.append(f"cursor {look.cursor[0] + 1},{look.cursor[1] + 1}")
    head.append(f"settled: {look.settled} {look.seconds * 1000:.0f} ms")
    changed = look.changed
    if changed is not None and len(changed) > MOST_CHANGED * look.rows:
        changed = None
    lines = [f"[{' · '.join(head)}]"]
    for what, rows in groupby(range(look.rows), partial(_kind, look, changed)):
        first, *rest = rows
        if what is None:
            lines += [_row(look, each) for each in (first, *rest)]
        elif rest:
            lines.append(f"[{what}: rows {first + 1}–{rest[-1] + 1}]")
        else:
            lines.append(f"[{what}: row {first + 1}]")
    return "\n".join(lines)


def _kind(look: ScreenLook, changed: tuple[int, ...] | None, row: int) -> str | None:
    """Why a row is not shown; None: it is."""
    if look.cursor is not None and row == look.cursor[0]:
        return None
    if changed is not None and row not in changed:
        return "unchanged"
    if any(each.row == row for each in look.highlighted):
        return None
    if not look.lines[row]:
        return "empty"
    return "like the row above" if row and look.lines[row] == look.lines[row - 1] else None


def _row(look: ScreenLook, row: int) -> str:
    mark = "▸" if look.cursor is not None and row == look.cursor[0] else " "
    return f"{mark}{row + 1:>2} │ {_marked(look, row)}".rstrip()


def _marked(look: ScreenLook, row: int) -> str:
    """A row with ‹ › around highlighted text and ▮ where the cursor is."""
    marks: list[tuple[int, int, str]] = []
    for span in look.highlighted:
        if span.row == row:
            marks += [(span.start, 1, "‹"), (span.end, 0, "›")]
    if look.cursor is not None and look.cursor[0] == row:
        marks.append((look.cursor[1], 2, "▮"))
    marks.sort()
    text: list[str] = []
    column = 0
    for character in look.lines[row]:
        while marks and marks[0][0] <= column and width_of[character]:
            text.append(marks.pop(0)[2])
        text.append(character)
        column += width_of[character]
    for at, _, mark in marks:
        text.append(" " * (at - column) if mark == "▮" else "")
        text.append(mark)
        column = max(column, at)
    return "".join(text)
