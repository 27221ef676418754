"""Read git's index: which files a repository tracks, and which of them are submodules.

All versions (2, 3 and 4), both lengths of hashes, and split indexes, whose entries stand in a second file. Nothing is
asked of git itself: it would believe the repository's configuration first.
"""

import struct
from pathlib import Path

GITLINK = 0o160000  # the mode of a submodule
MOST_BYTES = 64 << 20
_FIXED = 40  # bytes of times, numbers, mode and size, before the hash


class Unreadable(Exception):
    """It is no index that we know how to read."""


def read_index(folder: Path, *, hash_size: int = 20) -> list[tuple[int, str]]:
    """Mode and name of each entry; none where there is no index yet."""
    path = folder / "index"
    if not path.is_file():
        return []
    try:
        found, shared = _entries(path, hash_size)
        if shared:
            found += _entries(folder / f"sharedindex.{shared}", hash_size)[0]
    except (struct.error, IndexError, OSError) as error:
        raise Unreadable(str(error)) from error
    return found


def _entries(path: Path, hash_size: int) -> tuple[list[tuple[int, str]], str]:
    """The entries of one file, and the hash in the name of the shared one, if there is one."""
    if path.stat().st_size > MOST_BYTES:
        raise Unreadable("it is too long")
    data = path.read_bytes()
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise Unreadable(f"it is of version {version}")
    found: list[tuple[int, str]] = []
    at, before = 12, b""
    for _ in range(count):
        start = at
        mode: int = struct.unpack_from(">I", data, at + 24)[0]
        flags: int = struct.unpack_from(">H", data, at + _FIXED + hash_size)[0]
        at += _FIXED + hash_size + (4 if flags & 0x4000 else 2)
        kept = 0
        if version == 4:
            kept, at = _varint(data, at)
        end = data.index(b"\0", at)
        before = (before[: len(before) - kept] if version == 4 else b"") + data[at:end]
        if before:
            found.append((mode, before.decode("utf-8", "surrogateescape")))
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
    while at + 8 <= len(data) - hash_size:
        name, size = struct.unpack_from(">4sI", data, at)
        if name == b"link":
            return found, data[at + 8 : at + 8 + hash_size].hex()
        at += 8 + size
    return found, ""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number as git packs it, seven bits a byte; and where the next begins."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
