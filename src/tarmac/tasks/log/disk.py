"""Write and sync files, and turn OSError into errors for the user."""

import errno
import fcntl
import os
import sys
from pathlib import Path

from tarmac.errors import StateUnavailable

FULL = (errno.ENOSPC, errno.EDQUOT)


def sync(fd: int) -> None:
    """What was written to `fd` survives a power cut from here on."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone stops at the drive's own cache
    else:
        os.fdatasync(fd)


def sync_folder(path: Path) -> None:
    """The names in a folder survive a power cut from here on."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, offset: int) -> None:
    """All of `data` at `offset`; pwrite may take a part of it."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        offset += written
        rest = rest[written:]


def unavailable(path: Path, error: OSError, wish: str = "written") -> StateUnavailable:
    """The error for a person."""
    if error.errno in FULL:
        return StateUnavailable(
            f"the disk is full: {path} can't be {wish}",
            hint="make room and go on: nothing that was recorded before is lost or damaged",
        )
    return StateUnavailable(f"{path} can't be {wish}: {error.strerror or error}")
