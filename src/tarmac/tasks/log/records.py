"""The lines of a log: a body with its number before it and a checksum behind.

{"seq":7,"kind":"user_said","at":1763200000.5,"text":"…","crc":"1c291ca3"}

The checksum (CRC-32) covers all bytes before it. Numbers count from 0, the header, without a gap. So a missing,
doubled or misplaced line is always noticed. A broken line reads as `RecordLost` if a good line follows it. If none
follows, it is the torn tail of a write that was never confirmed.
"""

import re
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import msgspec

from tarmac.errors import StateUnavailable
from tarmac.tasks.events import RecordLost, TaskEvent
from tarmac.tasks.log.codec import Fetch, decode, unknown

FORMAT: Final = 1  # of lines; a reader refuses a higher one. Kinds have no version: they are only added to
_MOST_LOST: Final = 1_000_000  # records in a row; a higher number is another log's, or nobody's
_END: Final = len(',"crc":"00000000"}')
_START: Final = re.compile(rb'\{"seq":(\d{1,18}),"kind":"(\w{1,100})",')


class Header(msgspec.Struct, frozen=True):
    """The first record of a log."""

    format: int
    task: str
    at: float
    by: str = ""  # which Tarmac made it


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A place in a log that does not hold what was written there."""

    offset: int
    size: int
    first: int  # the record that should be there
    lost: int  # how many records are gone; 0: only junk in between
    why: str


def frame(seq: int, body: bytes) -> bytes:
    """The line of a record."""
    line = b'{"seq":%d,%b' % (seq, body[1:-1])
    return b'%b,"crc":"%08x"}\n' % (line, crc32(line))


def header_line(task: str, *, at: float, by: str) -> bytes:
    body = msgspec.json.encode({"kind": "header", "format": FORMAT, "task": task, "at": at, "by": by})
    return frame(0, body)


class Scanner:
    """Lines in, events out. It can start anywhere that it once stopped: at `offset`, expecting `seq`."""

    __slots__ = ("_bad", "_bad_why", "_fetch", "damage", "header", "offset", "seq")

    def __init__(self, *, seq: int = 0, offset: int = 0, fetch: Fetch | None = None) -> None:
        self.seq = seq  # the next record's
        self.offset = offset  # behind the last good one
        self.header: Header | None = None
        self.damage: list[Damage] = []
        self._fetch = fetch
        self._bad = 0  # bytes since then that are no good
        self._bad_why = ""

    def scan(self, data: bytes) -> list[TaskEvent]:
        """The events of the whole lines in `data`, which begins at `offset`: what follows no good line is not used."""
        found: list[TaskEvent] = []
        self._bad, self._bad_why = 0, ""
        fetch = self._fetch
        lines = data.split(b"\n")
        rest = lines.pop()
        for line in lines:  # each without its newline; this is what opening a long task does most
            whole = line[-_END:] == b',"crc":"%08x"}' % crc32(line[:-_END])
            start = b'{"seq":%d,"kind":"' % self.seq
            if whole and line.startswith(start) and not self._bad:  # the next one, as nearly all are
                event = decode(line, line[len(start) : line.find(b'"', len(start))], fetch)
                if event:
                    found.append(event)
                    self.seq += 1
                    self.offset += len(line) + 1
                    continue
            self._look_closer(line, found, whole=whole)
        if rest:
            self._mistrust(len(rest), "the line is not complete")
        return found

    def _look_closer(self, line: bytes, found: list[TaskEvent], *, whole: bool) -> None:
        """A header, a kind we do not know, or trouble."""
        start = _START.match(line)
        if start is None or not whole:
            self._mistrust(len(line) + 1, "the checksum is wrong" if start else "no record")
            return
        seq, kind = start.groups()
        if (int(seq) != self.seq or self._bad) and not self._catch_up(int(seq), len(line) + 1, found):
            return
        if self.seq:
            event = decode(line, kind, self._fetch)
            found.append(event or unknown(kind, b'{"kind":"%b",%b}' % (kind, line[start.end() : -_END])))
        else:
            self._open(line)
        self.seq += 1
        self.offset += len(line) + 1

    def torn(self, size: int) -> Damage | None:
        """What a log of `size` bytes has behind its last good record."""
        if size <= self.offset:
            return None
        return Damage(
            offset=self.offset,
            size=size - self.offset,
            first=self.seq,
            lost=0,
            why=self._bad_why or "the line is not complete",
        )

    def _open(self, line: bytes) -> None:
        try:
            self.header = msgspec.json.decode(line, type=Header)
        except msgspec.DecodeError as error:
            raise StateUnavailable(f"the header of this log makes no sense: {error}") from None
        if self.header.format > FORMAT:
            raise StateUnavailable(
                f"this log has format {self.header.format}, and this Tarmac knows {FORMAT}", hint="use a newer Tarmac"
            )

    def _mistrust(self, size: int, why: str) -> None:
        self._bad += size
        self._bad_why = self._bad_why or why

    def _catch_up(self, seq: int, size: int, found: list[TaskEvent]) -> bool:
        """A good record after bad bytes or a gap: what should stand before it is gone. False: it is none of ours."""
        if seq < self.seq:
            self._mistrust(size, f"record {seq} is there a second time")
            return False
        if seq - self.seq > _MOST_LOST:
            self._mistrust(size, f"record {seq} can't be here")
            return False
        why = self._bad_why or "nothing is there"
        place = Damage(offset=self.offset, size=self._bad, first=self.seq, lost=seq - self.seq, why=why)
        self.damage.append(place)
        found.extend(RecordLost(at=0.0, seq=each, why=why) for each in range(max(self.seq, 1), seq))
        self.seq = seq
        self.offset += self._bad
        self._bad, self._bad_why = 0, ""
        return True
