"""The tape of a terminal: everything it printed, by absolute offset, with the last 1 MiB in memory.

terminal ─write()→ Tape ─follow(offset)→ Printed | Resized | CommandBegan | CommandEnded | Gap …

A reader pulls at its own pace. The tape knows no readers, so none of them can delay the terminal. A reader that
falls more than 1 MiB behind gets a Gap.

A mark stands before the byte of the same offset. A reader that comes back with only an offset may get the marks at
that offset twice.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from tarmac.errors import BadRequest
from tarmac.terminals.bell import Bell
from tarmac.terminals.output.follow import Gap

CAPACITY = 1 << 20
BLOCK = 32 << 10  # smaller writes share a block
READ_SIZE = 128 << 10  # larger ones are new pages of the kernel each time: twice the work
FRAME = 0.008  # while much is printed a reader is woken so often; the first byte after a pause wakes it at once
RECENT_WRITES = 40
MOST_MARKS = 2000  # of the last thousand commands
LAST_DRAWN = 64 << 10
LONGEST_LINE = 16 << 10
PLACED = re.compile(rb"\x1b\[\d*;?\d*[Hf]")  # the cursor sent to a place of the screen


class Printed(NamedTuple):
    """Bytes for viewers, and the offset of the first one."""

    offset: int
    data: bytes


class Resized(NamedTuple):
    """The terminal has this size from here on."""

    offset: int
    rows: int
    columns: int


class CommandBegan(NamedTuple):
    """What follows is printed while command `number` runs."""

    offset: int
    number: int


class CommandEnded(NamedTuple):
    """Command `number` has ended."""

    offset: int
    number: int


class Snapshot(NamedTuple):
    """The terminal at `offset`. Paint `data` on an empty terminal of this size, then go on from `offset`."""

    offset: int
    rows: int
    columns: int
    data: bytes


TapeMark = Resized | CommandBegan | CommandEnded
TapePiece = Printed | TapeMark | Gap


class Tape:
    """One terminal's byte stream."""

    def __init__(self, *, rows: int, columns: int, capacity: int = CAPACITY) -> None:
        self.start = 0  # the oldest byte in memory
        self.end = 0
        self.first_size = rows, columns  # at `start`
        self.size = rows, columns
        self.before_drop: Callable[[], None] | None = None  # the oldest bytes are about to go
        self._capacity = capacity
        self._blocks: deque[bytes | bytearray] = deque()  # without a gap, from `_first` up to `end`
        self._first = 0
        self._open = bytearray()  # the last block, if small writes may still share it
        self._alternate = False  # whether a full-screen program had the terminal before the first block
        self._marks: deque[TapeMark] = deque()
        self._dropped_marks = 0
        self._writes: deque[int] = deque(maxlen=RECENT_WRITES)  # where the last writes began
        self._closed = False
        self._news = Bell()
        self._due = 0.0  # when readers may be woken next
        self._timer: asyncio.TimerHandle | None = None
        self._last_read = 0, 0, b""  # readers that keep up read the same: it is copied once

    # The terminal writes

    def write(self, data: bytes) -> None:
        self._writes.append(self.end)
        size = len(data)
        self.end += size
        if self._blocks and 0 < len(self._open) <= BLOCK - size:
            self._open += data
        else:
            self._open = bytearray(data if size < BLOCK else b"")
            self._blocks.append(self._open or data)
        if self.end - self.start > self._capacity:
            if self.before_drop is not None:
                self.before_drop()
            self._drop_before(self.end - self._capacity)
        self._tell()

    def resize(self, rows: int, columns: int) -> None:
        if (rows, columns) != self.size:
            self.size = rows, columns
            self._mark(Resized(self.end, rows, columns))

    def command_began(self, number: int) -> None:
        self._mark(CommandBegan(self.end, number))

    def command_ended(self, number: int) -> None:
        self._mark(CommandEnded(self.end, number))

    def clear(self) -> None:
        """Forget what was printed. Offsets go on."""
        self._drop_before(self.end)
        self._alternate = False

    def close(self) -> None:
        """Nothing more will be printed: readers come to an end."""
        self._closed = True
        self._wake()

    def _mark(self, mark: TapeMark) -> None:
        self._marks.append(mark)
        if len(self._marks) > MOST_MARKS:  # commands that print nothing
            self._drop_mark()
            self._drop_before(max(self.start, self._marks[0].offset))
        self._tell()

    def _tell(self) -> None:
        """Wake all readers together, once in a frame."""
        if not self._news.waiters or self._timer is not None:
            return
        if (early := self._due - time.monotonic()) > 0:
            self._timer = asyncio.get_running_loop().call_later(early, self._wake)
        else:
            self._wake()

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = time.monotonic() + FRAME
        self._news.ring()

    def _drop_mark(self) -> None:
        mark = self._marks.popleft()
        self._dropped_marks += 1
        if isinstance(mark, Resized):
            self.first_size = mark.rows, mark.columns

    def _drop_before(self, offset: int) -> None:
        self.start = offset
        while self._blocks and self._first + len(self._blocks[0]) <= offset:
            block = self._blocks.popleft()
            self._alternate = _alternate_after(block, self._alternate)
            self._first += len(block)
        while self._marks and self._marks[0].offset < offset:
            self._drop_mark()

    # Readers

    @property
    def alternate_at_start(self) -> bool:
        """Whether a full-screen program had the terminal at `start`."""
        passed = self.start - self._first
        return _alternate_after(self._blocks[0][:passed], self._alternate) if passed else self._alternate

    @property
    def drawn(self) -> bool:
        """Whether a program paints the terminal: it has the alternate screen, or places the cursor."""
        return self.alternate or PLACED.search(self.since_command()[-LAST_DRAWN:]) is not None

    @property
    def alternate(self) -> bool:
        """Whether a full-screen program has the terminal."""
        return _alternate_after(self.read(self.start, self.end), self.alternate_at_start)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, as far as they are in memory."""
        start = max(start, self.start)
        found: list[memoryview] = []
        end = self.end
        for block in reversed(self._blocks):
            begin = end - len(block)
            if begin < stop and end > start:
                found.append(memoryview(block)[max(start - begin, 0) : stop - begin])
            if begin <= start:
                break
            end = begin
        return b"".join(reversed(found))

    def _read_once(self, start: int, stop: int) -> bytes:
        if self._last_read[:2] != (start, stop):
            self._last_read = start, stop, self.read(start, stop)
        return self._last_read[2]

    def recent(self) -> bytes:
        """What the last 40 writes wrote."""
        return self.read(self._writes[0], self.end) if self._writes else b""

    def since_command(self) -> bytes:
        """What was printed since the last command began."""
        begun = (mark.offset for mark in reversed(self._marks) if isinstance(mark, CommandBegan))
        return self.read(next(begun, self.start), self.end)

    def last_line(self, offset: int) -> bytes | None:
        """What was printed from the left edge on, up to `offset`; None if nobody can tell."""
        data = self.read(offset - LONGEST_LINE, offset)
        begin = data.rfind(b"\n") + 1
        if begin:
            return data[begin:] if data[:begin].endswith(b"\r\n") else None
        return data if len(data) == offset else None

    def since_reset(self) -> bytes:
        """What paints the terminal as it is: all since the last full reset, else since the first whole line."""
        data = self.read(self.start, self.end)
        reset = data.rfind(b"\x1bc")
        return data[reset:] if reset >= 0 else data[data.find(b"\n") + 1 :] if self.start else data

    def pieces(self, start: int) -> list[Printed | TapeMark]:
        """All that is in memory from `start` on."""
        found: list[Printed | TapeMark] = []
        offset = max(start, self.start)
        for mark in self._marks:
            if mark.offset > offset:
                found.append(Printed(offset, self.read(offset, mark.offset)))
                offset = mark.offset
            if mark.offset == offset:
                found.append(mark)
        if self.end > offset:
            found.append(Printed(offset, self.read(offset, self.end)))
        return found

    async def follow(self, offset: int) -> AsyncIterator[TapePiece]:
        """Everything from `offset` on, until the terminal is closed."""
        if not 0 <= offset <= self.end:
            raise BadRequest(f"the tape has no offset {offset}", hint=f"it goes from 0 to {self.end}")
        passed = self._dropped_marks + sum(mark.offset < offset for mark in self._marks)
        while True:
            if offset < self.start:
                lost, offset = self.start - offset, self.start
                yield Gap(lost)
                continue
            passed = max(passed, self._dropped_marks)
            index = passed - self._dropped_marks
            mark = self._marks[index] if index < len(self._marks) else None
            if mark is not None and mark.offset <= offset:
                passed += 1
                yield mark
                continue
            stop = min(offset + READ_SIZE, self.end if mark is None else mark.offset)
            if stop > offset:
                at, offset = offset, stop
                yield Printed(at, self._read_once(at, stop))
                if offset < self.end:
                    await asyncio.sleep(0)  # behind: let the others run, too
            elif self._closed:
                return
            else:
                await self._news.wait()


def _alternate_after(data: bytes | bytearray, before: bool) -> bool:
    """Whether the alternate screen is shown after `data`."""
    if b"\x1b[?1049" not in data:
        return before
    return data.rfind(b"\x1b[?1049h") > data.rfind(b"\x1b[?1049l")
