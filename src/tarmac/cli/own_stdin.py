"""Pass our own standard input on to a command.

Keys     stdin and stdout are a terminal: each key is passed on, Ctrl-C too, and the size follows
Stream   a pipe, a file, a socket: the shell opens it as the command's standard input
Nothing  /dev/null, or closed: the end of input

A stream is not typed into the terminal. There a byte 3 would be Ctrl-C, a line would be cut at 4,096 bytes, and all of
it would be echoed. Instead the shell opens /proc/OUR-PID/fd/0, so the command takes no more than it reads. Some streams
can't be opened this way: a socket, another user's pipe, a file that was partly read. They are copied into a pipe.
"""

import asyncio
import itertools
import os
import select
import shlex
import signal
import stat
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Protocol

from tarmac.errors import ExecutionEnded, InputClosed, TarmacError
from tarmac.terminals import Execution, Terminal
from tarmac.terminals.bell import until_ready
from tarmac.terminals.shell.pty_terminal import PtyTerminal

PROBE_EVERY = (0.02, 0.05, 0.1, 0.2, 0.5)
IN_BETWEEN = 0.01


class Feed(Protocol):
    """One way to give a command its input."""

    def wrap(self, command: str) -> str:
        """The command as the shell must be given it."""

    async def feed(self, execution: Execution) -> None:
        """Give it its input, for as long as it runs."""


class Nothing:
    """The end of input, said again whenever the command waits for a line."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def wrap(self, command: str) -> str:
        return command

    async def feed(self, execution: Execution) -> None:
        if self._terminal.provider == "exec":
            execution.close_input()
            return
        for pause in itertools.chain(PROBE_EVERY, itertools.repeat(PROBE_EVERY[-1])):
            if await execution.ended(pause):
                return
            # Twice: if it is the shell at its prompt, we read its word that the command has ended in between.
            if self._waits(execution) and not await execution.ended(IN_BETWEEN) and self._waits(execution):
                execution.close_input()

    def _waits(self, execution: Execution) -> bool:
        if self._terminal.elsewhere:
            found = execution.waiting
            return found is not None and found.wants in ("line", "secret")
        session = self._terminal.session if isinstance(self._terminal, PtyTerminal) else None
        seen = session.probe() if session is not None and session.alive else None
        return seen is not None and seen.wants in ("line", "secret")


class Stream:
    """What comes on our standard input, read by the command itself."""

    def __init__(self, terminal: Terminal, path: str, *, into: int = -1) -> None:
        self._terminal = terminal
        self._path = path
        self._into = into  # our pipe, when it has to be copied

    def wrap(self, command: str) -> str:
        return f"eval {shlex.quote(' ' + command)} <{self._path}"  # the space: it may begin with a dash

    async def feed(self, execution: Execution) -> None:
        if self._terminal.provider == "exec":
            execution.close_input()  # of its own pipe, which nobody reads; on a terminal a password may be typed
        if self._into < 0:
            return
        try:
            async for piece in pieces(0):
                await write(self._into, piece)
        finally:
            os.close(self._into)


class Sent:
    """What comes on our standard input, sent to a process at another place, through a pipe there."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def wrap(self, command: str) -> str:
        return command

    async def feed(self, execution: Execution) -> None:
        try:
            async for piece in pieces(0):
                await execution.send(piece)
                await self._terminal.until_taken(execution)
            execution.close_input()
        except (ExecutionEnded, InputClosed):  # it has read enough
            pass


class Keys:
    """A person's keys."""

    def wrap(self, command: str) -> str:
        return command

    async def feed(self, execution: Execution) -> None:
        async for keys in pieces(0):
            try:
                await execution.send(keys)
            except InputClosed:  # a program that reads nothing: a person will notice, and type Ctrl-C
                continue
            except ExecutionEnded:
                return


def is_stream() -> bool:
    """Whether our standard input is a pipe, a file or a socket."""
    try:
        found = os.fstat(0)
    except OSError:
        return False
    return not stat.S_ISCHR(found.st_mode)


@contextmanager
def own_input(terminal: Terminal) -> Iterator[Feed]:
    """How a command in `terminal` should get our standard input."""
    try:
        found = os.fstat(0)
    except OSError:
        yield Nothing(terminal)
        return
    if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():  # a background job: the keys are somebody else's
        yield Nothing(terminal)
    elif os.isatty(0) and os.isatty(1) and terminal.provider == "pty" and terminal.quality != "none":
        with every_key(0):
            yield Keys()
    elif stat.S_ISCHR(found.st_mode) and os.path.samestat(found, os.stat(os.devnull)):
        yield Nothing(terminal)
    elif terminal.elsewhere:
        yield Sent(terminal)
    elif _can_be_opened(found):
        yield Stream(terminal, f"/proc/{os.getpid()}/fd/0")
    else:
        ours, into = os.pipe()
        try:
            yield Stream(terminal, f"/proc/{os.getpid()}/fd/{ours}", into=into)
        finally:
            os.close(ours)


def _can_be_opened(found: os.stat_result) -> bool:
    """Whether opening our standard input again gives the same bytes."""
    if stat.S_ISREG(found.st_mode) and os.lseek(0, 0, os.SEEK_CUR) != 0:
        return False
    try:
        os.close(os.open("/proc/self/fd/0", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@contextmanager
def every_key(fd: int) -> Iterator[None]:
    """Our terminal in raw mode: every key is passed on. The mode is always restored."""
    before = termios.tcgetattr(fd)
    try:
        tty.setraw(fd, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


@contextmanager
def same_size(terminal: Terminal) -> Iterator[None]:
    """`terminal` takes on the size of ours whenever that changes."""
    if not os.isatty(1):
        yield
        return

    def follow() -> None:
        columns, rows = os.get_terminal_size(1)
        try:
            terminal.resize(rows=rows, columns=columns)
        except (TarmacError, OSError):  # no size, or no terminal any more
            pass

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, follow)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


READ_SIZE = 64 << 10
SURE_TO_FIT = 4096  # a pipe that says it is writable takes a page


async def pieces(fd: int) -> AsyncIterator[bytes]:
    """What comes in on `fd`, until its end."""
    while True:
        await until_ready(fd)
        try:
            data = os.read(fd, READ_SIZE)
        except BlockingIOError:  # somebody else made it non-blocking, and took what was there
            continue
        except OSError:  # a terminal that hung up
            return
        if not data:
            return
        yield data


async def lines(fd: int) -> AsyncIterator[bytes]:
    """The lines of `fd`, without their ends, however long."""
    held = bytearray()
    async for piece in pieces(fd):
        begun = len(held)
        held += piece
        start = 0
        while (end := held.find(b"\n", max(start, begun))) >= 0:
            yield bytes(held[start:end])
            start = end + 1
        del held[:start]
    if held:
        yield bytes(held)


async def write(fd: int, data: bytes) -> None:
    """Write all of `data`, as fast as it is read. BrokenPipeError when nobody reads any more."""
    left = memoryview(data)
    while left:
        at_once = not await until_ready(fd, write=True)
        try:
            left = left[os.write(fd, left if at_once else left[:SURE_TO_FIT]) :]
        except BlockingIOError:
            continue


async def until_unread(fd: int) -> None:
    """Wait until the other end of `fd`, a pipe or a socket, is closed."""
    if sys.platform != "linux":
        await asyncio.Event().wait()  # the next write tells
    with select.epoll() as hung_up:  # a loop would also wake for each byte that `fd` can take
        try:
            hung_up.register(fd, 0)
        except PermissionError:  # a regular file: there is no other end
            await asyncio.Event().wait()
        await until_ready(hung_up.fileno())
