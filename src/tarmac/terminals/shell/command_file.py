"""The file in which a shell finds the command it is to run."""

import errno
import fcntl
import os
import stat
from pathlib import Path

from tarmac.errors import StateUnavailable


def write_over(fd: int, data: bytes) -> None:
    """Written over and then cut to length: cutting to nothing first makes ext4 flush it to the disk on close."""
    done = 0
    while done < len(data):  # an almost full disk takes a part: half a command must never run
        done += os.pwrite(fd, data[done:] if done else data, done)
    os.ftruncate(fd, len(data))


def create(path: Path) -> int:
    """Make the file, and lock it: as long as we live, nobody takes its folder for one left behind (sweep_scratch)."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a disk without locks
        pass
    return fd


def check_private(folder: Path) -> None:
    """OSError unless the folder is ours alone: somebody else may have made one of that name."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise FileExistsError(errno.EEXIST, "somebody else has made a folder of that name", str(folder))


def no_room(error: OSError) -> StateUnavailable:
    """What to tell when it can't be written."""
    return StateUnavailable(
        f"cannot write what the shell is to read: {error.strerror}", hint="make room, or set TMPDIR to another disk"
    )
