"""How often the kernel has killed a process for want of memory, by the count of its cgroup."""

import os

from tarmac.terminals.process.processes import read

_LONGEST = 1024
_UNIFIED, _LEGACY = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"


class OomCounter:
    """The count of the cgroup that `pid` is in; one that can't be read always says None."""

    def __init__(self, pid: int) -> None:
        self._fd = _open(pid)

    def read(self) -> int | None:
        """Kills so far."""
        if self._fd < 0:
            return None
        try:
            _, found, rest = os.pread(self._fd, _LONGEST, 0).partition(b"oom_kill ")
        except OSError:
            return None
        return int(rest.split(None, 1)[0]) if found else None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _open(pid: int) -> int:
    """Its cgroup's memory.events (version 2) or memory.oom_control (version 1); -1 where there is neither."""
    try:
        lines = read(f"/proc/{pid}/cgroup").decode(errors="surrogateescape").splitlines()
    except OSError:
        return -1
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            file = f"{_UNIFIED}{path}/memory.events"
        elif "memory" in controllers.split(","):
            file = f"{_LEGACY}{path}/memory.oom_control"
        else:
            continue
        try:
            return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    return -1
