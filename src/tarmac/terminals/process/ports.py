"""Find the TCP ports that processes listen on.

/proc/PID/net/tcp{,6} → listening sockets by inode → /proc/PID/fd → {port: pid}

A process in a container may have a network of its own, so the table is read for each network. Linux only. Elsewhere no
ports are found.
"""

# ruff: noqa: PTH208
# (many names in /proc: a Path would cost more than reading them)

import os
from collections.abc import Iterable

from tarmac.terminals.process.processes import read

_LISTENING = b" 0A "


def listening(pids: Iterable[int], *, port: int | None = None) -> dict[int, int]:
    """The ports (or that one port) that these processes listen on, each with the pid of one that does."""
    networks: dict[str, list[int]] = {}
    for pid in sorted(pids):
        networks.setdefault(_network(pid), []).append(pid)
    found: dict[int, int] = {}
    for members in networks.values():
        sockets = _sockets(members, port)
        for pid in members if sockets else ():
            for inode in _inodes(pid):
                if inode in sockets:
                    found.setdefault(sockets[inode], pid)
    return found


def _network(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _sockets(members: list[int], port: int | None) -> dict[bytes, int]:
    """The listening sockets of a network, by inode. Any of its members that still lives can tell."""
    found: dict[bytes, int] = {}
    for table in ("tcp", "tcp6"):
        for pid in members:
            try:
                lines = read(f"/proc/{pid}/net/{table}").splitlines()
            except OSError:
                continue
            for line in lines[1:]:
                if _LISTENING in line:
                    fields = line.split()
                    number = int(fields[1].rpartition(b":")[2], 16)
                    if port is None or number == port:
                        found[fields[9]] = number
            break
    return found


def _inodes(pid: int) -> Iterable[bytes]:
    """The inodes of a process's sockets."""
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for fd in fds:
        try:
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if link.startswith("socket:["):
            yield link[8:-1].encode()
