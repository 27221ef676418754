"""What a verdict looked at on the disk, so that it can be told later whether the verdict still holds.

While a line is judged, every path that is looked at is noted with what was found there. A remembered verdict holds as
long as all of them lead to the same files as before.
"""

import os
from contextvars import ContextVar

Found = tuple[int, int, int, int, int] | None  # device, inode, mode, links, and when it changed; None: nothing there
_noting: ContextVar[dict[str, Found] | None] = ContextVar("noting", default=None)


def begin() -> dict[str, Found]:
    """Note all that is looked at in this task from now on."""
    noted: dict[str, Found] = {}
    _noting.set(noted)
    return noted


def end() -> None:
    _noting.set(None)


def note(path: str) -> None:
    """`path` is being looked at."""
    noted = _noting.get()
    if noted is not None and path not in noted:
        noted[path] = _find(path)


def holds(noted: dict[str, Found]) -> bool:
    """Whether everything is still as it was noted."""
    return all(_find(path) == found for path, found in noted.items())


def _find(path: str) -> Found:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_nlink, found.st_mtime_ns
