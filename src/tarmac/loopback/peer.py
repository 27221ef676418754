"""Whether a connection to this machine's own address comes from a process of one of our terminals.

(client address, server address) → the row of /proc/net/tcp → a socket's inode → is it open in an agent's process?

An agent must not approve its own commands, token or not. An agent's processes are those below us, and those with the
birthmark of any Tarmac's terminal. A connection whose other end is gone already is refused, too: a process could send
a request and exit before anybody looks. Linux only: elsewhere nothing is known, and the token alone counts.
"""

# ruff: noqa: PTH208
# (names in /proc: a Path would cost more than the question)

import os
import socket
import struct
from enum import Enum
from typing import Final

from tarmac.terminals.process import birthmark, processes

Address = tuple[str, int]
TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
MOST_KNOWN: Final = 512
_PR_SET_DUMPABLE: Final = 4
_known: set[tuple[Address, int]] = set()  # connections of people; the kernel gives no inode twice


class Peer(Enum):
    """Who is on the other end."""

    ELSEWHERE = "another machine"
    PERSON = "a process that does not run in our terminals"
    AGENT = "a process that runs in one of our terminals"
    GONE = "nobody any more"
    UNKNOWN = "nobody can tell on this system"


def peer_of(client: Address, server: Address) -> Peer:
    """Who holds the other end of the connection from `client` to `server`."""
    if not processes.has_proc():
        return Peer.UNKNOWN
    if not (client[0].startswith("127.") or client[0] in ("::1", server[0])):
        return Peer.ELSEWHERE
    inode = _inode(client, server)
    if not inode:
        return Peer.GONE
    if (client, inode) in _known:
        return Peer.PERSON
    us = os.getpid()
    below = {each.pid for each in processes.descendants(us)}
    others = {each.pid for each in processes.everyone()} - below - {us}
    if any(_holds(pid, inode) for pid in (*below, *filter(birthmark.is_marked, others))):
        return Peer.AGENT
    if _inode(client, server) != inode:
        return Peer.GONE
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known.add((client, inode))
    return Peer.PERSON


def _inode(client: Address, server: Address) -> int:
    """Of the socket at the client's end; 0: it is closed, or not of this machine."""
    wanted = {
        (_hex4(client), _hex4(server)),
        (_mapped(client), _mapped(server)),
    }
    for table in TABLES:
        try:
            rows = processes.read(table).decode().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if (fields[1], fields[2]) in wanted:
                return int(fields[9])
    return 0


def _hex4(address: Address) -> str:
    """As the kernel prints it: 127.0.0.1:80 is 0100007F:0050."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"


def _mapped(address: Address) -> str:
    """The same address of a socket for both families."""
    return f"0000000000000000FFFF0000{_hex4(address)}"


def _holds(pid: int, inode: int) -> bool:
    name = f"socket:[{inode}]"
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for fd in fds:
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}") == name:
                return True
        except OSError:
            continue
    return False


def make_unreadable() -> None:
    """No other process of this user may read our memory and environment, where tokens are (Linux)."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_DUMPABLE, 0)
