"""The file in which a shell finds the command it is to run."""

import fcntl
import os

from tarmac.errors import StateUnavailable


def write_over(fd: int, data: bytes) -> None:
    """Written over and then cut to length: cutting to nothing first makes ext4 flush it to the disk on close."""
    done = 0
    while done < len(data):  # an almost full disk takes a part: half a command must never run
        done += os.pwrite(fd, data[done:] if done else data, done)
    os.ftruncate(fd, len(data))


def lock(fd: int) -> None:
    """As long as we live, nobody takes its folder for one that was left behind (paths.sweep_scratch)."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a disk without locks
        pass


def no_room(error: OSError) -> StateUnavailable:
    """What to tell when it can't be written."""
    return StateUnavailable(
        f"cannot write what the shell is to read: {error.strerror}", hint="make room, or set TMPDIR to another disk"
    )
