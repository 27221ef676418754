"""A program that tries to break out. `tarmac doctor --confinement` runs it, with and without rules around it.

python -I -S -c <this text> '{"workspace": …, …}' → one JSON line for each attack: {"attack", "aim", "done", "error"}

It attacks only what the doctor planted for it. It stands alone: the standard library, and nothing of Tarmac.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from enum import StrEnum

MARK = b"written by the intruder"


class Aim(StrEnum):
    """What an attack needs. That decides which part of a confinement stops it."""

    FILE = "file"
    PROCESS = "process"  # another one
    CALL = "call"  # of the system, which no confined program makes
    AMOUNT = "amount"
    PRIVILEGE = "privilege"


def main(places: dict[str, str]) -> None:
    for name, (aim, attack) in attacks(places).items():
        try:
            attack()
            said: dict[str, object] = {"attack": name, "aim": aim, "done": True, "error": ""}
        except (OSError, MemoryError) as error:
            number = error.errno if isinstance(error, OSError) else errno.ENOMEM
            said = {"attack": name, "aim": aim, "done": False, "error": errno.errorcode.get(number or 0, str(error))}
        print(json.dumps(said), flush=True)


def attacks(places: dict[str, str]) -> dict[str, tuple[Aim, Callable[[], object]]]:
    """By name, in the order in which they are made: those that destroy come last."""
    inside, outside, victim = places["inside"], places["outside"], int(places["victim"])
    libc = ctypes.CDLL(None, use_errno=True)

    def read(path: str) -> Callable[[], object]:
        return lambda: _read(path)

    def write(path: str, flags: int = os.O_CREAT) -> Callable[[], object]:
        return lambda: _write(path, flags)

    def checked(result: int) -> None:
        if result < 0:
            raise OSError(ctypes.get_errno(), "")

    def tcp() -> None:
        with socket.socket() as made:
            made.connect(("127.0.0.1", int(places["tcp"])))
            made.sendall(MARK)

    def udp() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as made:
            made.sendto(MARK, ("127.0.0.1", int(places["udp"])))

    def unix() -> None:
        with socket.socket(socket.AF_UNIX) as made:
            made.connect(places["unix"])
            made.sendall(MARK)

    def through_a_pair() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ours, theirs:
            ours.sendto(MARK, places["unix_datagrams"])

    def flags() -> None:
        fd = os.open(inside, os.O_RDONLY)
        try:
            before = bytearray(8)
            fcntl.ioctl(fd, 0x80086601, before)  # FS_IOC_GETFLAGS
            fcntl.ioctl(fd, 0x40086602, bytes(before))  # FS_IOC_SETFLAGS
        finally:
            os.close(fd)

    def memory() -> None:
        time.sleep(0.2)  # limits are set a moment after the start
        mmap.mmap(-1, 5 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()

    def files() -> None:
        opened: list[int] = []
        try:
            for _ in range(5000):
                opened.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 (those before the error count)
        finally:
            for fd in opened:
                os.close(fd)

    def privileges() -> None:
        if libc.prctl(39, 0, 0, 0, 0) == 1:  # PR_GET_NO_NEW_PRIVS
            raise OSError(errno.EPERM, "")

    def shared_memory() -> None:
        checked(libc.shmget(0x7A7A, 4096, 0o1600))  # made anew
        libc.shmctl(libc.shmget(0x7A7A, 4096, 0), 0, None)

    return {
        "read a file outside the workspace": (Aim.FILE, read(outside)),
        "read a private key in the home": (Aim.FILE, read(places["key"])),
        "read .env in the workspace": (Aim.FILE, read(places["env"])),
        "read a file that .tarmacignore hides": (Aim.FILE, read(places["ignored"])),
        "read a secret through a link in the workspace": (Aim.FILE, read(places["link"])),
        "read /etc/shadow": (Aim.FILE, read("/etc/shadow")),
        "read another process's environment": (Aim.PROCESS, read(f"/proc/{victim}/environ")),
        "connect to a TCP port": (Aim.CALL, tcp),
        "send a UDP packet": (Aim.CALL, udp),
        "connect to a socket file": (Aim.CALL, unix),
        "send to a socket file through a pair of sockets": (Aim.CALL, through_a_pair),
        "trace another process": (Aim.CALL, lambda: checked(libc.ptrace(16, victim, None, None))),  # PTRACE_ATTACH
        "use shared memory": (Aim.CALL, shared_memory),
        "take 5 GiB of memory": (Aim.AMOUNT, memory),
        "open 5,000 files": (Aim.AMOUNT, files),
        "gain privileges by a setuid program": (Aim.PRIVILEGE, privileges),
        "make a file in the workspace": (Aim.FILE, write(os.path.join(os.path.dirname(inside), "new"))),  # noqa: PTH118, PTH120
        "make a file outside the workspace": (Aim.FILE, write(os.path.join(os.path.dirname(outside), "new"))),  # noqa: PTH118, PTH120
        "make a file in /tmp": (Aim.FILE, write(places["temporary"])),
        "make a folder": (Aim.FILE, lambda: os.mkdir(inside + ".d")),  # noqa: PTH102
        "make a link": (Aim.FILE, lambda: os.symlink(outside, inside + ".l")),  # noqa: PTH211
        "change a mode": (Aim.CALL, lambda: os.chmod(inside, 0o600)),  # noqa: PTH101
        "change an owner": (Aim.CALL, lambda: os.chown(inside, os.getuid(), os.getgid())),
        "change a time": (Aim.CALL, lambda: os.utime(inside, (1, 1))),
        "set an attribute": (Aim.CALL, lambda: os.setxattr(inside, "user.intruder", MARK)),
        "set a file's flags": (Aim.CALL, flags),
        "append to a file in the workspace": (Aim.FILE, write(inside, os.O_APPEND)),
        "append to a file outside the workspace": (Aim.FILE, write(outside, os.O_APPEND)),
        "empty a file": (Aim.FILE, lambda: os.truncate(inside, 0)),
        "rename a file": (Aim.FILE, lambda: os.rename(inside, inside + ".moved")),  # noqa: PTH104
        "delete a file": (Aim.FILE, lambda: os.unlink(places["doomed"])),  # noqa: PTH108
        "end another process": (Aim.PROCESS, lambda: os.kill(victim, signal.SIGKILL)),
    }


def _read(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123
        file.read(1)


def _write(path: str, flags: int) -> None:
    fd = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        os.write(fd, MARK)
    finally:
        os.close(fd)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
