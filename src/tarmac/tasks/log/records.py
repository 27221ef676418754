"""The lines of a log: events as JSON, each with its number before it and a checksum behind.

event → encode() → {"kind":"user_said","at":1763200000.5,"text":"…"}, and contents too large for a line → blobs
      → frame()  → {"seq":7,"kind":"user_said","at":1763200000.5,"text":"…","crc":"1c291ca3"}
bytes → Scanner  → events; decode() gives None for a kind (or a shape) that this version does not know

The checksum (CRC-32) covers all bytes before it. Numbers count from 0, the header, without a gap. So a missing,
doubled or misplaced line is always noticed. A broken line reads as `RecordLost` if a good line follows it. If none
follows, it is the torn tail of a write that was never confirmed.

Any text goes through unharmed. Lone surrogates of odd file names take the slower way through `json`.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar
from zlib import crc32

import msgspec

from tarmac.errors import StateUnavailable
from tarmac.tasks import events
from tarmac.tasks.events import RecordLost, TaskEvent, UnknownEvent

INLINE: Final = 16 << 10  # a body up to this size is kept as it is
LONG: Final = 2 << 10  # in a larger one, each text over this goes to a blob
START: Final = 160  # characters of such a text that stay in the record, for people who read it

_TEXT: Final = b'{"$text":'  # inside of a text the quotes would be escaped

T = TypeVar("T")
Fetch = Callable[[str], bytes | None]


def kind_of(event_type: type) -> str:
    """Its name in records: UserSaid → user_said."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event_type.__name__).lower()


KINDS: Final[dict[str, type[TaskEvent]]] = {
    kind_of(each): each
    for each in vars(events).values()
    if isinstance(each, type) and issubclass(each, TaskEvent) and each not in (TaskEvent, UnknownEvent, RecordLost)
}


def encode(event: TaskEvent) -> tuple[bytes, dict[str, bytes]]:
    """The body of its record, and the contents that must be kept as blobs, by their hashes."""
    if isinstance(event, UnknownEvent):
        return event.body, {}
    start = _STARTS.get(type(event))
    if start is None:
        raise TypeError(f"{type(event).__name__} is not a fact that a log keeps")
    try:
        body = start + _ENCODER.encode(event)[1:]
        if len(body) <= INLINE:
            return body, {}
    except UnicodeEncodeError:
        pass
    tree = msgspec.to_builtins(event, enc_hook=_plain)
    blobs: dict[str, bytes] = {}
    if _length(tree) > INLINE:
        tree = _lift(tree, blobs)
    return start + json.dumps(tree, separators=(",", ":")).encode()[1:], blobs


def decode(record: bytes, kind: bytes, fetch: Fetch | None = None) -> TaskEvent | None:
    """The event behind a record (or the body of one); None for a kind, or a shape, that this version does not know.

    `fetch` gives the content of a blob, None when it is gone.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return None
    if _TEXT not in record:
        try:
            return decoder.decode(record)
        except msgspec.DecodeError:
            pass  # a lone surrogate, or a shape we do not know: the slow road tells
    try:
        return msgspec.convert(_restore(json.loads(record), fetch), KINDS[kind.decode()], dec_hook=_rich)
    except (ValueError, RecursionError):  # msgspec.ValidationError is a ValueError
        return None


def unknown(kind: bytes, body: bytes) -> UnknownEvent:
    """What stands for a record we can't read, so that nothing of it is lost."""
    try:
        at = _AT.decode(body).at
    except msgspec.DecodeError:
        at = 0.0
    return UnknownEvent(at=at, kind=kind.decode(), body=body)


def to_plain(value: object) -> bytes:
    """Any of our dataclasses as JSON."""
    return json.dumps(msgspec.to_builtins(value, enc_hook=_plain), separators=(",", ":")).encode()


def from_plain(data: bytes, wanted: type[T]) -> T:
    """A dataclass back from JSON; ValueError when it is none."""
    return msgspec.convert(json.loads(data), wanted, dec_hook=_rich)


# Large texts


def _lift(value: object, blobs: dict[str, bytes]) -> object:
    """`value` with each long text replaced by {"$text": hash}; no event has a field of that name."""
    match value:
        case str() if len(value) > LONG:  # also what json escapes to six times its size
            data = value.encode("utf-8", "surrogatepass")
            name = sha256(data).hexdigest()
            blobs[name] = data
            return {"$text": name, "size": len(data), "start": value[:START]}
        case dict():
            return {key: _lift(each, blobs) for key, each in value.items()}
        case list() | tuple():
            return [_lift(each, blobs) for each in value]
    return value


def _restore(value: object, fetch: Fetch | None) -> object:
    match value:
        case {"$text": str(name), "start": str(start), "size": int(size)}:
            data = fetch(name) if fetch else None
            if data is not None:
                return data.decode("utf-8", "surrogatepass")
            return f"{start}\n[the rest of these {size:,} bytes is lost: the blob {name} is gone or damaged]"
        case dict():
            return {key: _restore(each, fetch) for key, each in value.items()}
        case list():
            return [_restore(each, fetch) for each in value]
    return value


def _length(value: object) -> int:
    match value:
        case str():
            return len(value)
        case dict():
            return sum(map(_length, value.values()))
        case list() | tuple():
            return sum(map(_length, value))
    return 8


# What msgspec does not know by itself


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a record")


def _rich(wanted: type, value: object) -> object:
    if wanted is Path:
        return Path(str(value))
    raise ValueError(f"{value!r} is not of type {wanted.__name__}")


class _At(msgspec.Struct):
    at: float = 0.0


_AT: Final = msgspec.json.Decoder(_At)
_ENCODER: Final = msgspec.json.Encoder(enc_hook=_plain)
_DECODERS: Final = {kind.encode(): msgspec.json.Decoder(each, dec_hook=_rich) for kind, each in KINDS.items()}
_STARTS: Final = {each: f'{{"kind":"{kind}",'.encode() for kind, each in KINDS.items()}


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
