"""Listening sockets, and the names under which a server may be addressed."""

import errno
import socket

from tarmac.errors import BadRequest

LOOPBACK = "127.0.0.1"


def listen(port: int, *, host: str = LOOPBACK, hint: str) -> socket.socket:
    """A listening socket. Port 0 chooses a free port."""
    # asyncio sets TCP_NODELAY only for this protocol number; without it every call waits 40 ms for an acknowledgement
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        why = "another program uses it" if error.errno == errno.EADDRINUSE else error.strerror
        raise BadRequest(f"can't listen on port {port}: {why}", hint=hint) from None
    return made


def own_names(port: int) -> tuple[str, ...]:
    """What a Host header may say: a page of another name that leads here (DNS rebinding) says something else."""
    return (f"{LOOPBACK}:{port}", f"localhost:{port}", f"[::1]:{port}")
