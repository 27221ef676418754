"""Events ⇄ the JSON bodies of records.

event → encode() → {"kind": …, "at": …, …} + contents too large for a line → blobs.py
record → decode() → event, or None for a kind (or a shape) that this version does not know

Any text goes through unharmed, lone surrogates of odd file names too: those take the slower road through `json`.
"""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tarmac.tasks import events
from tarmac.tasks.events import RecordLost, TaskEvent, UnknownEvent

INLINE: Final = 16 << 10  # a body up to this size is kept as it is
LONG: Final = 2 << 10  # in a larger one, each text over this goes to a blob
START: Final = 160  # characters of such a text that stay in the record, for people who read it

_TEXT: Final = b'{"$text":'  # inside of a text the quotes would be escaped

T = TypeVar("T")
Fetch = Callable[[str], bytes | None]


def kind_of(event_type: type[TaskEvent]) -> str:
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
        raise TypeError(f"{type(event).__name__} is no fact that a log keeps")
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
    raise ValueError(f"{value!r} is no {wanted.__name__}")


class _At(msgspec.Struct):
    at: float = 0.0


_AT: Final = msgspec.json.Decoder(_At)
_ENCODER: Final = msgspec.json.Encoder(enc_hook=_plain)
_DECODERS: Final = {kind.encode(): msgspec.json.Decoder(each, dec_hook=_rich) for kind, each in KINDS.items()}
_STARTS: Final = {each: f'{{"kind":"{kind}",'.encode() for kind, each in KINDS.items()}
