"""The least that anybody could do: the same bash and a blocking read loop, without marks, without promises.

BarePty.run(b"make")  types `make; echo <sentinel>$?` on a terminal with echo off and reads until the sentinel.
read_pipe("make")     starts `bash -c make` and reads its pipe to the end.

Both would be fooled, stopped or flooded by many commands; that is what Tarmac is for, and what its ratio buys.
"""

import fcntl
import os
import secrets
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

READ_SIZE = 65536


class BarePty:
    """Bash on a PTY; see the top of this file. Use `bare_pty()`, which ends it."""

    def __init__(self, options: Sequence[str], env: Mapping[str, str]) -> None:
        self.master, slave = os.openpty()
        modes = termios.tcgetattr(slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

        def take_terminal() -> None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self._sentinel = secrets.token_hex(12).encode()
        self._shell = subprocess.Popen(
            ["bash", "--noediting", *options, "-i"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
            preexec_fn=take_terminal,  # forks as Tarmac forks, so that starting costs both the same
        )
        os.close(slave)
        self.pid = self._shell.pid

    def run(self, command: bytes) -> None:
        """Run it and forget its output; the status is not looked at."""
        self.write(command)
        self.read()

    def write(self, command: bytes) -> None:
        """Type it."""
        os.write(self.master, b"%s; echo %s$?\n" % (command, self._sentinel))

    def read(self) -> None:
        """Read until it has ended."""
        seen = b""
        while self._sentinel not in seen:
            seen = seen[-len(self._sentinel) :] + os.read(self.master, READ_SIZE)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._shell.wait()
        os.close(self.master)


@contextmanager
def bare_pty(*options: str, env: Mapping[str, str]) -> Iterator[BarePty]:
    """Such a bash, with its start-up files unless the options say otherwise."""
    pty = BarePty(options, env)
    try:
        yield pty
    finally:
        pty.close()


def read_pipe(command: str, *, env: Mapping[str, str]) -> int:
    """Run it in a fresh bash and forget its output; how many bytes there were."""
    total = 0
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, bufsize=0, env=env) as process:
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), READ_SIZE):
            total += len(data)
    return total
