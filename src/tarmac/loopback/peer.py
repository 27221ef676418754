"""Find out whose process is at the other end of a connection: a person's, or an agent's.

(client address, server address) → the row of /proc/net/tcp → its user and inode → who has it open → an agent's process?

unix socket → SO_PEERCRED → the process, and those above it: is one of them an agent's?

An agent must not approve its own commands, even with a token. Nor may another user of the machine, who can see a token
on the command line of the browser that was opened with it. An agent's processes are those below us, and those that a
terminal of any Tarmac has started. The birthmark shows that, their own or a parent's
(terminals/daemon/peers.py). A connection whose other end is gone is refused too, because a process could send
a request and exit before we look. Linux only: elsewhere nothing is known, and the token alone counts.
"""

# ruff: noqa: PTH208
# (names in /proc: a Path would cost more than the question)

import os
import socket
import struct
from enum import Enum
from typing import Final

from tarmac.terminals.daemon.peers import refusal
from tarmac.terminals.process import processes

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
    STRANGER = "a process of another user"
    UNKNOWN = "nobody can tell on this system"


def peer_of(client: Address, server: Address) -> Peer:
    """Who holds the other end of the connection from `client` to `server`."""
    if not processes.has_proc():
        return Peer.UNKNOWN
    if not (client[0].startswith("127.") or client[0] in ("::1", server[0])):
        return Peer.ELSEWHERE
    inode, user = _socket_at(client, server)
    if not inode:
        return Peer.GONE
    if user not in _own_users():
        return Peer.STRANGER
    if (client, inode) in _known:
        return Peer.PERSON
    us = os.getpid()
    holders = [each.pid for each in processes.everyone() if each.pid != us and _holds(each.pid, inode)]
    below = {each.pid for each in processes.descendants(us)} if holders else set()
    if any(pid in below or refusal(pid, ()) for pid in holders):
        return Peer.AGENT
    if _socket_at(client, server)[0] != inode:
        return Peer.GONE
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known.add((client, inode))
    return Peer.PERSON


def peer_of_socket(connection: socket.socket, *, below_us: bool) -> Peer:
    """Who is at the other end of a unix socket. `below_us`: what descends from this process is an agent's.

    The kernel tells who called connect(), or to the one who connected, who called listen().
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return Peer.UNKNOWN
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, user, _ = struct.unpack("3i", raw)
    if user != os.geteuid():
        return Peer.STRANGER
    if pid == os.getpid():
        return Peer.PERSON
    if processes.stat(pid) is None:
        return Peer.GONE
    below = below_us and pid in {each.pid for each in processes.descendants(os.getpid())}
    return Peer.AGENT if below or refusal(pid, ()) else Peer.PERSON


def _own_users() -> tuple[int, ...]:
    """Whose processes may be the person's: theirs, root's, and those of who ran us with sudo."""
    sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return (os.geteuid(), 0, *((int(sudo),) if sudo.isdecimal() else ()))


def _socket_at(client: Address, server: Address) -> tuple[int, int]:
    """The inode and the user of the socket at the client's end; 0: it is closed, or not of this machine."""
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
                return int(fields[9]), int(fields[7])
    return 0, 0


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
    """No other process of this user may read our memory and environment, or open our pipes (Linux)."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_DUMPABLE, 0)
