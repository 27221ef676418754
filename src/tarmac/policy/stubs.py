"""Empty folders that stand in for names which may not be made in a workspace, while a sandbox lives.

stand_in(folder) → Stub, or None when something else is there;  Stub.close() removes the folder after the last user

A read-only mount needs something to lie on. Several sandboxes of one workspace share a stub: each holds a lock on it,
and who can have it alone is the last. To remove it earlier would take the mount away under the others. A stub is known
by its odd mode, so that one left by a Tarmac that was killed is found again, and goes with the next.
"""

import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path

MODE = 0o500  # nobody's choice, and left alone by every common umask
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Stub:
    """One of them, in use."""

    folder: Path
    fd: int

    def close(self) -> None:
        """Give it up, and remove it if nobody else uses it."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.folder.rmdir()
        except OSError:
            pass  # another sandbox has it, or it is no longer empty
        finally:
            os.close(self.fd)


def stand_in(folder: Path) -> Stub | None:
    """A stub at `folder`, made or shared; None when there is something of somebody's."""
    for _ in range(_TRIES):
        try:
            folder.mkdir(MODE)
        except FileExistsError:
            pass
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # its last user has just gone
        except OSError:
            return None
        try:
            found = os.fstat(fd)
            if stat.S_IMODE(found.st_mode) != MODE or os.listdir(fd):  # noqa: PTH208
                os.close(fd)
                return None
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.path.samestat(found, os.stat(folder, follow_symlinks=False)):
                return Stub(folder, fd)
        except OSError:
            pass  # it is being removed at this moment
        os.close(fd)
    return None
