"""A program that talks to the daemon, as the daemon sees it: who may, its frames, its descriptors.

    refusal(peer): → its parent → … → init: is one of them a shell of the daemon, or has it the mark of a terminal?

Processes of the same user may talk to the daemon, unless an agent's shell has started them. An agent can clear its
environment and its birthmark, but not its ancestors. Every shell is a subreaper, so its processes stay below it, also
after `setsid` and a second fork. A shell that belongs to another program is known by two facts: it leads a session, and
its parent has terminals open. The watchdog beside the parent shows that.

This protects against an agent's mistakes. A hostile program of the same user could trace or kill the daemon anyway.
"""

import array
import os
import socket
import struct
from collections.abc import Collection, Iterator

from tarmac.terminals.daemon import Refusal
from tarmac.terminals.daemon.kept_shell import KeptShell
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.process import birthmark
from tarmac.terminals.process.processes import Stat, command_line, entries, stat
from tarmac.terminals.process.watchdog import SCRIPT

MOST_FDS = 8  # beside one frame
SEND_PATIENCE = 5.0  # a client that does not read for so long is let go


class RequestRejected(Exception):
    """A request is not done; the client is told why."""

    def __init__(self, code: Refusal, what: str, number: int = 0) -> None:
        super().__init__(what)
        self.code, self.what, self.number = code, what, number


class AttachedClient:
    """A connected program, and the terminal it has."""

    def __init__(self, stream: socket.socket, pid: int) -> None:
        self.stream = stream
        self.pid = pid
        self.parser = FrameParser()
        self.fds: list[int] = []  # received, and of no frame yet
        self.shell: KeptShell | None = None

    def receive(self) -> list[Frame] | None:
        """The frames that have come; None: it is gone."""
        room = MOST_FDS * struct.calcsize("i")
        try:
            data, extra, _, _ = self.stream.recvmsg(1 << 18, socket.CMSG_SPACE(room), socket.MSG_CMSG_CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        for level, kind, raw in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(raw[: len(raw) - len(raw) % found.itemsize])
                self.fds += found
        return self.parser.feed(data) if data else None

    def send(self, frame: Frame, fds: tuple[int, ...] = ()) -> None:
        data = encode(frame)
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.stream.settimeout(SEND_PATIENCE)
        try:
            sent = self.stream.sendmsg([data], extra)
            if sent < len(data):
                self.stream.sendall(data[sent:])
        except OSError:
            pass  # its end is seen by the next read
        finally:
            self.stream.setblocking(False)

    def take_fds(self, number: int | None = None) -> list[int]:
        """The descriptors that came with this frame: so many, or all."""
        count = len(self.fds) if number is None else number
        if len(self.fds) < count:
            raise RequestRejected(Refusal.BAD_REQUEST, f"{count} descriptors belong to this request")
        found, self.fds = self.fds[:count], self.fds[count:]
        return found

    def close(self) -> None:
        self.stream.close()
        for each in self.fds:
            os.close(each)
        self.fds = []


_MOST_ANCESTORS = 200
_COOKIE = f"{birthmark.COOKIE}=".encode()


def refusal(pid: int, shells: Collection[int]) -> str:
    """Why the process may not talk to the daemon, which has these `shells`; empty if it may."""
    chain = list(_ancestors(pid))
    if not chain:
        return "it is gone"
    for place, each in enumerate(chain):
        if each.process.pid in shells:
            return f"it was started in a terminal (its shell is process {each.process.pid})"
        if birthmark.is_marked(each.process.pid) or any(one.startswith(_COOKIE) for one in entries(each.process.pid)):
            return f"process {each.process.pid}, which started it, belongs to a terminal"
        parent = chain[place + 1] if place + 1 < len(chain) else None
        if parent is not None and each.session == each.process.pid and _has_terminals(parent.process.pid):
            return f"process {each.process.pid} was started by a program that has terminals open"
    return ""


def _ancestors(pid: int) -> Iterator[Stat]:
    """The process itself, its parent, and so on, without init."""
    for _ in range(_MOST_ANCESTORS):
        found = stat(pid) if pid > 1 else None
        if found is None:
            return
        yield found
        pid = found.parent


def _has_terminals(pid: int) -> bool:
    """Whether it is a daemon, or a watchdog runs beside it: see process/watchdog.py."""
    if any("tarmac.terminals.daemon.process import main" in word for word in command_line(pid)[:6]):
        return True
    return any(command_line(each)[-1:] == [SCRIPT] for each in _children(pid))


def _children(pid: int) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                yield from map(int, file.read().split())
        except OSError:
            continue
