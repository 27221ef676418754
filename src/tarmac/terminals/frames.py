"""Frames: how Tarmac's processes talk about terminals, over any stream of bytes.

    kind u8 · request u32 · header length u32 · body length u32 · header (JSON) · body (bytes)

`encode(frame)` → bytes → `FrameParser.feed()` → [Frame …]

A receiver ignores kinds and header fields that it does not know, so an older peer understands a newer one.
A read may cut a frame anywhere. Lengths are checked first: a peer that sends garbage gets `BadFrame`, and no memory.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from tarmac.errors import BadFrame

_HEAD = struct.Struct(">BIII")
_encode_json = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps would make an encoder for each frame
_decode_json = json.JSONDecoder().decode
MOST_HEADER = 1 << 20
MOST_BODY = 16 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    kind: int
    request: int = 0  # which request it belongs to; 0: none
    header: Mapping[str, object] = field(default_factory=dict)
    body: bytes = b""


def encode(frame: Frame) -> bytes:
    header = _encode_json(frame.header).encode() if frame.header else b""
    if len(header) > MOST_HEADER or len(frame.body) > MOST_BODY:
        raise BadFrame(f"a frame of {len(header) + len(frame.body)} bytes is too long")
    return _HEAD.pack(frame.kind, frame.request, len(header), len(frame.body)) + header + frame.body


class FrameParser:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        unread: bytes | bytearray = data
        if self._unread:
            self._unread += data
            unread = self._unread
        frames: list[Frame] = []
        start = 0
        while (found := self._frame_at(unread, start)) is not None:
            frame, start = found
            frames.append(frame)
        if unread is self._unread:
            del self._unread[:start]
        else:
            self._unread += data[start:]
        return frames

    @property
    def half(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return bool(self._unread)

    @staticmethod
    def _frame_at(unread: bytes | bytearray, start: int) -> tuple[Frame, int] | None:
        if len(unread) - start < _HEAD.size:
            return None
        kind, request, header_length, body_length = _HEAD.unpack_from(unread, start)
        if header_length > MOST_HEADER or body_length > MOST_BODY:
            raise BadFrame(f"a frame claims {header_length} + {body_length} bytes: these are not frames")
        middle = start + _HEAD.size + header_length
        end = middle + body_length
        if len(unread) < end:
            return None
        header = _read_header(bytes(unread[start + _HEAD.size : middle]))
        return Frame(kind, request, header, bytes(unread[middle:end])), end


def _read_header(data: bytes) -> Mapping[str, object]:
    if not data:
        return {}
    try:
        header = _decode_json(data.decode())
    except (ValueError, RecursionError):
        raise BadFrame("the header of a frame is not JSON") from None
    if not isinstance(header, dict):
        raise BadFrame("the header of a frame is not an object")
    return header
