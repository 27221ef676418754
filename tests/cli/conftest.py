"""How these tests run `tarmac`: as its users do, as a process of its own, with a limit on its time."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

TARMAC = [sys.executable, "-m", "tarmac"]
PATIENCE = 120.0  # seconds: a busy machine is no fault


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


def tarmac(*arguments: str, stdin: str | bytes | int = subprocess.DEVNULL, **environ: str) -> Outcome:
    """Run `tarmac` to its end; `stdin` is text for it, or a descriptor."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    source = given if isinstance(given, int) else subprocess.PIPE
    with subprocess.Popen(
        [*TARMAC, *arguments], stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environ() | environ
    ) as process:
        try:
            out, err = process.communicate(None if isinstance(given, int) else given, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.terminate()  # so that it ends what it started
            raise
    return Outcome(process.returncode, out.decode(), err.decode())


def _environ() -> dict[str, str]:
    """Ours, but without asyncio's debug mode, which tells of slow callbacks on standard error."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONASYNCIODEBUG"}


@contextmanager
def running(*arguments: str, stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """`tarmac` while it runs, its output in a pipe; killed at the end of the block if it still does."""
    process = subprocess.Popen(
        [*TARMAC, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, env=_environ()
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
            if process.stdin and not process.stdin.closed:
                process.stdin.close()


def read_until(fd: int, wanted: bytes, *, seconds: float = PATIENCE) -> bytes:
    """What comes on `fd` until `wanted` is in it."""
    seen, end = b"", time.monotonic() + seconds
    while wanted not in seen:
        ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
        assert ready, f"{wanted!r} did not come; there was {seen!r}"
        try:
            piece = os.read(fd, 65536)
        except OSError:  # a terminal whose last user is gone
            piece = b""
        assert piece, f"{wanted!r} did not come before the end; there was {seen!r}"
        seen += piece
    return seen


OFFER = b"Enter accepts it and leaves"  # what a task that is done ends with
PROMPT = "❯ ".encode()


class Screen:
    """A terminal with `tarmac` on it, and a person's hands."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self.master = master
        self.process = process

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def until(self, wanted: bytes) -> bytes:
        return read_until(self.master, wanted)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def rest(self) -> bytes:
        """All that comes until `tarmac` has ended; the process is reaped. A task that is done is accepted by Enter."""
        seen, accepted = b"", 0
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            ready, _, _ = select.select([self.master], [], [], 0.05)
            if ready:
                seen += os.read(self.master, 65536)
                if seen.count(OFFER) > accepted and PROMPT in seen.rpartition(OFFER)[2]:
                    accepted = seen.count(OFFER)
                    self.type(b"\r")
            elif self.process.poll() is not None:
                return seen
        raise AssertionError(f"it did not end; there was {seen!r}")

    def modes(self) -> list[object]:
        return termios.tcgetattr(self.master)


@contextmanager
def on_a_screen(
    *arguments: str, rows: int = 30, columns: int = 90, stdin: int | None = None, stdout: int | None = None
) -> Iterator[Screen]:
    """`tarmac` on a terminal of its own, as a person's shell would start it, or beside pipes."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [*TARMAC, *arguments],
        stdin=slave if stdin is None else stdin,
        stdout=slave if stdout is None else stdout,
        stderr=slave,
        env=_environ(),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0),
    )
    try:
        yield Screen(master, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        os.close(master)
        os.close(slave)


def alive(pid: int) -> bool:
    """Whether the process still runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
