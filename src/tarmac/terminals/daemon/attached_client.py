"""A program that talks to the daemon, as the daemon sees it."""

import array
import os
import socket
import struct

from tarmac.terminals.daemon import Refusal
from tarmac.terminals.daemon.kept_shell import KeptShell
from tarmac.terminals.frames import Frame, FrameParser, encode

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
