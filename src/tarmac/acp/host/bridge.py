"""The MCP server that a hosted agent is given. It only connects its pipes to the host's private socket.

It runs by its path, `python -I -S bridge.py`, and an agent starts it for each session. So it imports nothing of Tarmac
and as little of Python as possible. $TARMAC_BRIDGE holds the secret, a blank and the socket. The secret works once.
"""

import _socket
import _thread
import os
import sys

SIZE = 1 << 16


def main() -> int:
    """Carry bytes both ways until one side ends; the exit code."""
    secret, _, place = os.environ.pop("TARMAC_BRIDGE", "").partition(" ")
    if not place:
        return _complain("this is started by an agent that `tarmac host` runs, and by nobody else")
    host = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        host.connect(place)
        host.send(f"{secret}\n".encode())
        answer = host.recv(SIZE)
    except OSError as error:
        return _complain(f"the host can't be reached: {error.strerror}")
    if answer[:1] != b"+":
        return _complain(answer.decode("utf-8", "replace").strip() or "the host refused the connection")
    _thread.start_new_thread(_send, (host,))
    _write(answer[1:])
    while data := _receive(host):
        _write(data)
    return 0


def _send(host: _socket.socket) -> None:
    """What the agent says, until it says no more; the host then says its last."""
    try:
        while data := os.read(0, SIZE):
            left = memoryview(data)
            while left:
                left = left[host.send(left) :]
        host.shutdown(_socket.SHUT_WR)
    except OSError:
        os._exit(0)


def _receive(host: _socket.socket) -> bytes:
    try:
        return host.recv(SIZE)
    except OSError:
        return b""


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(1, left) :]
        except OSError:  # nobody reads us
            os._exit(0)


def _complain(what: str) -> int:
    sys.stderr.write(f"tarmac: {what}\n")
    sys.stderr.flush()
    return 1


if __name__ == "__main__":
    os._exit(main())  # a thread may wait for an input that never comes
