"""Our own environment, as others can look at it: /proc/PID/environ is what we were started with, keys and all.

A command has them neither in its environment nor, with this, in that of its parent: the names that no command may see
are taken out of the C library's environment, and overwritten where the kernel reads them. `os.environ` is a copy of
Python's own and keeps them, for the model. For programs that are ours (doors) alone: who embeds Tarmac may need theirs.
"""

import os
import sys
from pathlib import Path

from tarmac.terminals.environment import COOKIE, any_of
from tarmac.terminals.settings import Settings

_FIELDS_BEFORE = 2  # of /proc/PID/stat: pid and name, which may hold blanks
_ENV_START, _ENV_END = 50, 51  # proc(5)


def wipe_own_environment(settings: Settings) -> None:
    """Take what no command may see out of what others see of us. Where that can't be done, nothing happens."""
    if sys.platform != "linux":
        return
    import ctypes  # here, for the many who open no terminal

    secret = any_of(settings.secret_variables)
    start, end = _block()
    if start >= end:
        return
    at = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name = os.fsdecode(entry.partition(b"=")[0])
        if name and secret.match(name) and name != COOKIE:
            os.unsetenv(name)  # the pointer first, then what it pointed to
            ctypes.memset(at, 0, len(entry))
        at += len(entry) + 1


def _block() -> tuple[int, int]:
    """Where the environment that we were started with is in our memory; nowhere, if the kernel does not say."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[_ENV_START - _FIELDS_BEFORE - 1]), int(fields[_ENV_END - _FIELDS_BEFORE - 1])
    except (OSError, ValueError, IndexError):
        return 0, 0
