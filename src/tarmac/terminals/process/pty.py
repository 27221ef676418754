"""One pseudo-terminal: one descriptor, one session, one reader, one writer.

At each wake-up the reader drains several reads within a budget, then lets others run. So a flood of output never
starves the event loop, and a slow viewer never stops the program. Signals go to the foreground group through the
kernel (TIOCSIG). A typed Ctrl-C would flush output that nobody has read yet.

Only this module answers the questions that programs ask their terminal. Viewers never do. Answers are fixed, harmless
facts. A report with text that a program chose (its title) would arrive as typed input.
"""

import asyncio
import errno
import fcntl
import os
import re
import signal
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tarmac.errors import InputClosed
from tarmac.terminals.process.child import Child, ChildProcess, used_up
from tarmac.vt.marks import Query

_COLOUR = re.compile(rb"\x1b\](1[0-2]|4;\d+);\?")
_MODE = re.compile(rb"\x1b\[\?(\d+)\$p")
FOREGROUND, BACKGROUND = b"rgb:dcdc/dcdc/dcdc", b"rgb:1e1e/1e1e/1e1e"

_FIXED = {
    b"\x1b[c": b"\x1b[?62;22c",  # a VT220 with colour
    b"\x1b[0c": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>1;10;0c",
    b"\x1b[>0c": b"\x1b[>1;10;0c",
    b"\x1b[5n": b"\x1b[0n",  # all is well
    b"\x1b[>q": b"\x1bP>|tarmac\x1b\\",
    b"\x1b[>0q": b"\x1bP>|tarmac\x1b\\",
}


def answer(query: Query, *, rows: int, columns: int) -> bytes:
    """The bytes to send back; empty when the question is not answered.

    The cursor is said to be in the first column of the last row: where it is after a program's newline. There is
    no screen model behind this (`vt/screen.py` will be one).
    """
    raw = query.raw
    if raw in _FIXED:
        return _FIXED[raw]
    if raw == b"\x1b[6n":
        return b"\x1b[%d;1R" % rows
    if raw == b"\x1b[?6n":
        return b"\x1b[?%d;1R" % rows
    if raw == b"\x1b[18t":
        return b"\x1b[8;%d;%dt" % (rows, columns)
    if colour := _COLOUR.match(raw):
        which = colour.group(1)
        return b"\x1b]%s;%s\x1b\\" % (which, BACKGROUND if which == b"11" else FOREGROUND)
    if mode := _MODE.match(raw):
        return b"\x1b[?%s;0$y" % mode.group(1)  # not recognised
    return b""


READ_SIZE = 65536
READS_A_WAKE_UP = 16
BYTES_A_WAKE_UP = 512 << 10
LONGEST_DRAIN = 4 << 20  # after the shell's death, from jobs that still print
MOST_UNSENT = 1 << 20
TCGETS = getattr(termios, "TCGETS", 0x40487413)  # tcgetattr as bytes, which is quicker to compare
_ROOM = bytes(72)
QUERY_PATIENCE = 1.0  # how long a question may wait for its program to listen
FENCE_PATIENCE = 1.0  # a fence comes back within this, unless a program threw it away (tcflush)
FENCE_AGAIN = 0.005
TIOCSIG = 0x40045436  # Linux; not in the termios module


class Pty:
    """`on_data` gets what the terminal shows, `on_exit` the shell's wait status after the last of it."""

    def __init__(self, *, rows: int, columns: int) -> None:
        self.master, self.slave = open_pair()
        os.set_blocking(self.master, False)
        self.path = os.ttyname(self.slave)
        self.rows, self.columns = rows, columns
        self.resize(rows, columns)
        self._sane, self._sane_bytes = make_sane(self.slave)
        self.child: ChildProcess | None = None
        self._unsent = bytearray()
        self._reading = False
        self._closed = False
        self._on_data: Callable[[bytes], None] = lambda data: None
        self._on_exit: Callable[[int], None] = lambda status: None

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_data: Callable[[bytes], None],
        on_exit: Callable[[int], None],
        on_death: Callable[[Callable[[], None]], None] | None = None,
    ) -> int:
        """Run `argv` on this terminal; its pid. The terminal is its controlling one. `on_death`: see `Child.watch`."""
        self._on_data, self._on_exit = on_data, on_exit
        self.child = self.fork(argv, cwd=cwd, env=env)
        self.child.watch(self._exited, on_death=on_death)
        self.resume()
        return self.child.pid

    def fork(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> ChildProcess:
        """Start the process; this terminal is its controlling one."""
        slave = self.slave

        def take_terminal() -> None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        return Child(argv, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, prepare=take_terminal)

    # Reading

    def read(self) -> bytes:
        """What was printed; OSError: nothing, for now or for ever."""
        return os.read(self.master, READ_SIZE)

    def resume(self) -> None:
        if not self._reading and not self._closed:
            asyncio.get_running_loop().add_reader(self.master, self._readable)
            self._reading = True

    def pause(self) -> None:
        """Read no more for now: the kernel's buffer fills and the program waits."""
        if self._reading:
            asyncio.get_running_loop().remove_reader(self.master)
            self._reading = False

    def _readable(self) -> None:
        chunks: list[bytes] = []
        size = 0
        for _ in range(READS_A_WAKE_UP):
            try:
                data = self.read()
            except (BlockingIOError, InterruptedError):
                break
            except OSError:  # EIO: the other side is closed everywhere; waitpid reports the end itself
                self.pause()
                break
            chunks.append(data)
            size += len(data)
            if len(data) < 1024 or size >= BYTES_A_WAKE_UP:
                break  # the queue is empty, or others want to run
        if chunks:
            self._on_data(chunks[0] if len(chunks) == 1 else b"".join(chunks))

    def _exited(self, status: int) -> None:
        left = LONGEST_DRAIN
        while left > 0 and not self._closed:
            try:
                data = self.read()
            except OSError:
                break
            if not data:
                break
            left -= len(data)
            self._on_data(data)
        self._on_exit(status)

    def print_behind(self, mark: bytes) -> int:
        """Print `mark` as a program on this terminal would; how many bytes of it the kernel took.

        It is read after everything that was printed before it. What a program prints may lie in a buffer of the kernel
        where neither `read` nor FIONREAD sees it yet. The descriptor is a new one, as the shell's must stay blocking.
        """
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            return os.write(fd, mark)
        except OSError:
            return 0
        finally:
            os.close(fd)

    # Writing

    def write(self, data: bytes) -> None:
        """Type `data`; what the kernel does not take now is sent when it does."""
        if self._closed:
            raise InputClosed("this terminal is closed")
        check_room(len(self._unsent), len(data))
        if not self._unsent:
            try:
                sent = os.write(self.master, data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                if error.errno == errno.EIO:
                    return  # the shell is gone; its end is on the way
                raise
            if sent == len(data):
                return
            data = data[sent:]
            asyncio.get_running_loop().add_writer(self.master, self._writable)
        self._unsent += data

    def _writable(self) -> None:
        try:
            sent = os.write(self.master, self._unsent[:READ_SIZE])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._unsent.clear()
        else:
            del self._unsent[:sent]
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self.master)

    def forget_input(self) -> None:
        """Throw away what was typed and read by nobody."""
        if self._unsent:
            self._unsent.clear()
            asyncio.get_running_loop().remove_writer(self.master)
        termios.tcflush(self.slave, termios.TCIFLUSH)

    # Control

    @property
    def closed(self) -> bool:
        return self._closed

    def make_sane(self) -> bool:
        """Undo `stty raw`, `stty -echo` and the like; True when something was undone."""
        try:
            if fcntl.ioctl(self.slave, TCGETS, _ROOM) == self._sane_bytes:
                return False
            termios.tcsetattr(self.slave, termios.TCSANOW, self._sane)
        except (OSError, termios.error):  # hung up: the shell has just died
            return False
        return True

    def hide_input(self) -> None:
        """Echo nothing of the next line that is typed; `make_sane` undoes it."""
        try:
            modes = termios.tcgetattr(self.slave)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        except termios.error:
            pass

    def canonical(self) -> bool:
        """Whether the terminal collects whole lines (ICANON): a program that wants an answer does not let it."""
        try:
            return bool(termios.tcgetattr(self.slave)[3] & termios.ICANON)
        except termios.error:
            return True

    def hides_input(self) -> bool:
        """Whether whole lines are read without showing them: a secret is asked for."""
        try:
            local: int = termios.tcgetattr(self.slave)[3]
        except termios.error:
            return False
        return bool(local & termios.ICANON) and not local & termios.ECHO

    def has_unread_input(self) -> bool:
        """Whether something typed lies there that nobody has read; of a line, only when it is whole."""
        return _waits_in(self.slave) if not self._unsent else True

    def has_unread_output(self) -> bool:
        return _waits_in(self.master)

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed (ECHO), not the program that reads it."""
        try:
            return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)
        except termios.error:
            return True

    def keys_are_signals(self) -> bool:
        """Whether Ctrl-C means a signal (ISIG), not a key like others."""
        try:
            return bool(termios.tcgetattr(self.slave)[3] & termios.ISIG)
        except termios.error:
            return True

    def foreground(self) -> int:
        try:
            return os.tcgetpgrp(self.master)
        except OSError:
            return -1

    def signal(self, number: signal.Signals) -> None:
        """INT, QUIT or TSTP to the foreground group, as its key would; the key itself where keys are just keys."""
        if number is signal.SIGINT and not self.keys_are_signals():
            self.write(b"\x03")
            return
        try:
            fcntl.ioctl(self.master, TIOCSIG, number.value)
        except OSError:
            group = self.foreground()
            if group > 1:
                try:
                    os.killpg(group, number)
                except (ProcessLookupError, PermissionError):
                    pass

    def resize(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        """Hang up. What runs on it gets SIGHUP; ending it for sure is the owner's work."""
        if self._closed:
            return
        self.pause()
        if self._unsent:
            asyncio.get_running_loop().remove_writer(self.master)
        self._closed = True
        if self.child is not None:
            self.child.forget()
        os.close(self.master)
        os.close(self.slave)


def open_pair() -> tuple[int, int]:
    """A new PTY: master and slave."""
    try:
        return os.openpty()
    except OSError as error:
        raise used_up(error, "cannot open a terminal") from error


def make_sane(slave: int) -> tuple[list[Any], bytes]:
    """Set ordinary modes, but Ctrl-S freezes nothing, and Ctrl-C does not throw unread output away; what was set."""
    modes = termios.tcgetattr(slave)
    modes[0] = (modes[0] | termios.ICRNL) & ~termios.IXON
    modes[0] |= getattr(termios, "IUTF8", 0x4000)
    modes[3] |= termios.NOFLSH
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    return modes, fcntl.ioctl(slave, TCGETS, _ROOM)


class Queries:
    """Questions of programs to their terminal (`ESC [ 6 n`): answered once the program listens, or never."""

    muted = False  # what is read was read before, by a program that has answered it

    def __init__(self, pty: Pty) -> None:
        self._pty = pty
        self.open: list[tuple[float, bytes]] = []

    def ask(self, query: Query) -> None:
        reply = answer(query, rows=self._pty.rows, columns=self._pty.columns)
        if reply and not self.muted:
            self.open.append((asyncio.get_running_loop().time() + QUERY_PATIENCE, reply))

    def forget(self) -> None:
        """The command has ended: or the next one gets the answers."""
        self.open.clear()

    def answer(self) -> None:
        """Answer once the program listens for keys. In line mode the answer would wait and be typed into the shell."""
        if not self.open or self._pty.closed:
            return
        loop = asyncio.get_running_loop()
        if self._pty.canonical():
            self.open = [each for each in self.open if each[0] > loop.time()]
            if self.open:
                loop.call_later(0.01, self.answer)
            return
        replies = b"".join(reply for _, reply in self.open)
        self.open.clear()
        self._pty.write(replies)


class Fences:
    """Marks of ours that the terminal gives back after everything that was printed before them."""

    def __init__(self, pty: Pty, nonce: bytes, *, first: int = 0) -> None:
        self._pty = pty
        self._nonce = nonce
        self._last = first
        self._then: dict[int, Callable[[], None]] = {}

    def when_read(self, then: Callable[[], None]) -> None:
        """Call `then` once everything that was printed on the terminal before now has been read."""
        self._last = number = self._last + 1
        self._then[number] = then
        self._print(b"\x1b]633;F;%s;%d\x07" % (self._nonce, number))
        asyncio.get_running_loop().call_later(FENCE_PATIENCE, self.passed, number)

    async def until_read(self) -> None:
        """Wait until everything that was printed on the terminal before now has been read."""
        read = asyncio.Event()
        self.when_read(read.set)
        await read.wait()

    def passed(self, number: int) -> None:
        """The fence came back, or its time is up."""
        if (then := self._then.pop(number, None)) is not None:
            then()

    def _print(self, rest: bytes) -> None:
        if self._pty.closed:
            return
        took = self._pty.print_behind(rest)
        rest = rest[took:]
        if rest:  # the kernel's buffer is full and being read; or Ctrl-S stopped the output
            if not took:
                self._pty.make_sane()
            asyncio.get_running_loop().call_later(FENCE_AGAIN, self._print, rest)


def check_room(unsent: int, more: int) -> None:
    """Refuse input, before any of it is sent, that would have to wait for a program which does not read."""
    if unsent + more > MOST_UNSENT:
        what = (
            f"the program has not read the last {unsent:,} bytes sent to it" if unsent else "that is too much at once"
        )
        raise InputClosed(
            f"{what}: {more:,} bytes more were not sent", hint=f"at most {MOST_UNSENT:,} bytes wait; or use a file"
        )


def _waits_in(fd: int) -> bool:
    try:
        return fcntl.ioctl(fd, termios.FIONREAD, bytes(4)) != bytes(4)
    except OSError:
        return False
