"""Ask the kernel what the foreground process waits for.

tcgetpgrp(master) → its processes, below the shell → each thread's system call → is it blocked on *this* terminal?
tcgetattr(master) → and what does it want: a line, a secret, keys?

A thread waits for input when it sleeps in read, select, poll or epoll and the terminal is among its descriptors. A wait
with a timeout (`read -t 5`, `top`) is `timed`. It may be only a look at the keyboard between two pieces of work, so
monitor.py looks twice. Sleeping, computing, a lock, a pipe or a socket is not waiting for input.

Two things would surprise. One waiting thread is enough, even while others compute, because it would read the input. And
"keys" may be a relay (ssh, tmux, script). It always waits, and nobody can see behind it.

Some processes can't be inspected: setuid programs, 32-bit programs, and all of them on a hardened kernel or macOS. For
these the terminal's mode decides, and only if no program has that mode by default: see `_by_mode`. io_uring is not
seen. A Go program that keeps /dev/tty open is seen too often, because Go's runtime polls every open descriptor.
"""

# ruff: noqa: PTH110, PTH208
# (names in /proc, asked for again and again: a Path would cost more than the question)

import fcntl
import os
import struct
import sys
import termios
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tarmac.terminals.process.processes import Process, Stat, below, has_proc, name, read, sleeps, stat

RELAYS = frozenset(["tmux: client", "screen"])  # they hand the terminal to a server, which reads it in their stead
SHELLS = frozenset(["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "pwsh", "rbash", "sh", "tcsh", "zsh"])

_TIOCGPTN = 0x80045430  # Linux: the number N of /dev/pts/N, from its master
_TIOCPTYGNAME = 0x40807453  # macOS: the slave's path (not tried)
_SLAVE_MAJOR = 136  # of every /dev/pts/N, N being the minor
_DEV_TTY = os.makedev(5, 0)
_READABLE = 0x41  # POLLIN | POLLRDNORM; the same bits in epoll
_MOST_POLLED = 4096  # descriptors looked at in one call
_MOST_NESTED = 3  # an epoll may watch an epoll

# Each machine's numbers of the calls in which a thread can wait for input. Only x86-64 has been tried.
_GENERIC = {
    "read": {63, 65, 286},  # read, readv, preadv2
    "poll": {73},  # ppoll
    "select": {72},  # pselect6
    "epoll": {22, 441},  # epoll_pwait, epoll_pwait2
}
_X86_64 = {
    "read": {0, 19, 327},
    "poll": {7, 271},  # poll, ppoll
    "restart": {219},  # under this number a poll goes on after a stop; other calls do, too
    "select": {23, 270},  # select, pselect6
    "epoll": {232, 281, 441},  # epoll_wait, epoll_pwait, epoll_pwait2
}
_MACHINES = {"x86_64": _X86_64, "aarch64": _GENERIC, "riscv64": _GENERIC}
_IN_MILLISECONDS = {7}  # poll; ppoll has a pointer to its timeout
_BY_POINTER = {441}  # epoll_pwait2
_CALLS = {number: call for call, numbers in _MACHINES.get(os.uname().machine, {}).items() for number in numbers}


class Wants(StrEnum):
    """What would satisfy the one who waits."""

    LINE = "line"
    SECRET = "secret"  # a line that is not shown
    KEYS = "keys"  # single keys: an editor, a pager, a REPL, a shell's own prompt, a relay
    UNKNOWN = "unknown"  # it has taken the keyboard over and sleeps; more we may not see


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody in the foreground waits for input on the terminal."""

    wants: Wants
    process: Process
    name: str
    prompt: str = ""  # what the terminal shows as the question; monitor.py knows it
    timed: bool = field(default=False, compare=False)  # it goes on by itself after a while
    thread: int = field(default=0, compare=False)
    scripted: bool = field(default=False, compare=False)  # it runs a script: what is typed is an answer, no command

    @property
    def is_shell(self) -> bool:
        """Whether what is typed might be run as a command: it is a shell, and does not run a script."""
        return self.name in SHELLS and not self.scripted


class Sleep(NamedTuple):
    """One sleep of a thread that waits. With another number the thread was awake meanwhile."""

    process: Process
    thread: int
    number: int


def sleep_of(waiting: Waiting | None) -> Sleep | None:
    """The sleep in which it waits; None where the kernel does not tell."""
    number = sleeps(waiting.process.pid, waiting.thread) if waiting is not None else 0
    return Sleep(waiting.process, waiting.thread, number) if waiting is not None and number else None


class _Hidden(Exception):
    """We may not look into that process, or would not understand what we see."""


ReadHidden = Callable[[int, str, int, int], bytes]  # pid, the file below /proc/PID, offset, size


def probe(master: int, shell: int, *, read_hidden: ReadHidden | None = None) -> Waiting | None:
    """Who in the foreground of this terminal waits for input, and for what; None when nobody does.

    `master` is the PTY's master side, `shell` the process at the root of its session. If anything
    moved while we looked the answer is None: ask again. `read_hidden` asks an ancestor of the shell, as some kernels
    show a system call to ancestors only (Yama).
    """
    try:
        before = _foreground(master)
        terminal = slave_device(master)
    except (OSError, termios.error):
        return None  # hung up
    group, mode = before
    members: list[Stat] = []
    hidden: list[Stat] = []
    found: Waiting | None = None
    for member in _members(group, shell):
        members.append(member)
        try:
            if reader := _reader(member, terminal, group, read_hidden):
                thread, timed = reader
                comm = name(member.process.pid)
                found = Waiting(_wants(mode), member.process, comm, timed=timed or mode.impatient, thread=thread)
                break
        except _Hidden:
            hidden.append(member)
    else:
        found = _by_mode(mode, hidden, members)
    try:
        return found if _foreground(master) == before else None
    except (OSError, termios.error):
        return None


def slave_path(master: int) -> str:
    """The path of a PTY's other side, as os.ptsname of later Pythons."""
    if sys.platform == "darwin":
        return fcntl.ioctl(master, _TIOCPTYGNAME, bytes(128)).partition(b"\0")[0].decode()
    return f"/dev/pts/{_number(master)}"


def slave_device(master: int) -> int:
    """The device number (st_rdev) of a PTY's other side; on Linux without touching the file system."""
    if sys.platform == "darwin":
        return os.stat(slave_path(master)).st_rdev
    return os.makedev(_SLAVE_MAJOR, _number(master))


def _number(master: int) -> int:
    answer: tuple[int] = struct.unpack("i", fcntl.ioctl(master, _TIOCGPTN, bytes(4)))
    return answer[0]


class _Mode(NamedTuple):
    """What the terminal does with keys."""

    local: int
    impatient: bool  # a read comes back after a moment, with nothing (VMIN 0, VTIME)


def _foreground(master: int) -> tuple[int, _Mode]:
    """The foreground group, and the modes of the terminal, both of the slave's side."""
    modes = termios.tcgetattr(master)
    local: int = modes[3]
    impatient = not local & termios.ICANON and modes[6][termios.VMIN] in (0, b"\0")
    return os.tcgetpgrp(master), _Mode(local, impatient)


def _wants(mode: _Mode) -> Wants:
    if not mode.local & termios.ICANON:
        return Wants.KEYS
    return Wants.LINE if mode.local & termios.ECHO else Wants.SECRET


def _members(group: int, shell: int) -> Iterator[Stat]:
    """The living, not stopped processes that may read the keyboard; the leader first, who is most often the one.

    They are the foreground group, and what it started in sessions of their own (`su -c`): there is no job control.
    """
    if group <= 0:
        return
    firsts = [each for pid in {group: None, shell: None} if (each := stat(pid))]
    rest = (each for pid, each in below(shell) if each and pid != group)
    front: dict[int, int] = {}  # who else is in front: pid and session
    for source in (firsts, rest):
        for each in source:
            if each.group == group or each.session != front.get(each.parent, each.session):
                if each.process.pid != shell:
                    front[each.process.pid] = firsts[0].session
                if each.alive and each.state not in "Tt":
                    yield each


def _by_mode(mode: _Mode, hidden: list[Stat], members: list[Stat]) -> Waiting | None:
    """The best to be said of processes we may not look into, or that have others read for them.

    Only those asleep, and with no child in the foreground they may be waiting for instead (`sudo make`).
    Lines with the echo off is a mode kept only while asking for a secret. No lines at all: it reads
    the keyboard key by key, or relays it, and we can't tell when. With lines and echo, the mode of every
    ordinary moment, nothing can be said, and nothing is.
    """
    parents = {each.parent for each in members}
    if _wants(mode) is Wants.KEYS:
        for each in members:
            if each.state == "S" and (comm := name(each.process.pid)) in RELAYS:
                return Waiting(Wants.KEYS, each.process, comm)
    asleep = [each for each in hidden if each.state == "S" and each.process.pid not in parents]
    if not asleep or _wants(mode) is Wants.LINE:
        return None
    wants = Wants.SECRET if _wants(mode) is Wants.SECRET else Wants.UNKNOWN
    return Waiting(wants, asleep[0].process, name(asleep[0].process.pid))


def _reader(member: Stat, terminal: int, group: int, read_hidden: ReadHidden | None) -> tuple[int, bool] | None:
    """The thread of the process that is blocked reading the terminal, and whether only for a time."""
    pid = member.process.pid
    devices = (terminal, _DEV_TTY) if member.group == group else (terminal,)
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError as error:
        if has_proc():
            return None  # it has gone
        raise _Hidden from error
    hidden = False
    for thread in threads:
        task = f"/proc/{pid}/task/{thread}"
        try:
            fds, timed = _read_set(task, read_hidden)
            if any(_is_terminal(task, fd, devices) for fd in fds):
                return int(thread), timed
        except _Hidden:
            hidden = True
    if hidden:
        raise _Hidden
    return None


def _read_set(task: str, read_hidden: ReadHidden | None) -> tuple[Iterable[int], bool]:
    """The descriptors this thread is blocked on until they can be read, and whether it will give up by itself.

    None when it is blocked on other things.
    """
    try:
        fields = read(f"{task}/syscall").split()
    except ProcessLookupError:
        return (), False
    except FileNotFoundError:
        if os.path.exists(task):
            raise _Hidden from None  # a kernel that does not tell
        return (), False
    except OSError as error:
        fields = _asked(task, "syscall", read_hidden, error).split()
    if len(fields) < 9:
        return (), False  # it runs, or is blocked outside of a system call
    first, second, third, fourth, fifth, _ = (int(field, 16) for field in fields[1:7])
    if not _CALLS or int(fields[7], 16) < 1 << 32:  # the stack of a 32-bit program: its numbers mean other calls
        raise _Hidden
    number = int(fields[0])
    match _CALLS.get(number):
        case "read":
            return (first,), False
        case "poll":
            return _polled(task, first, second, read_hidden), _ends(third) if number in _IN_MILLISECONDS else third != 0
        case "restart" if b"poll" in _where(task):
            return _polled(task, first, second, read_hidden), _ends(third)
        case "select":
            return _selected(task, first, second, read_hidden), fifth != 0
        case "epoll":
            return _watched(task, first), fourth != 0 if number in _BY_POINTER else _ends(fourth)
    return (), False


def _ends(milliseconds: int) -> bool:
    """Whether a timeout is one: a C int, and less than 0 is for ever."""
    return not milliseconds & 1 << 31


def _where(task: str) -> bytes:
    """The function in the kernel that it sleeps in."""
    try:
        return read(f"{task}/wchan")
    except OSError:
        return b""


def _asked(
    task: str, file: str, read_hidden: ReadHidden | None, error: OSError, offset: int = 0, size: int = 4096
) -> bytes:
    """What an ancestor reads there."""
    if read_hidden is None:
        raise _Hidden from error
    _, _, pid, *rest = task.split("/")
    try:
        return read_hidden(int(pid), "/".join([*rest, file]), offset, size)
    except OSError:
        raise _Hidden from error


def _polled(task: str, pointer: int, count: int, read_hidden: ReadHidden | None) -> list[int]:
    raw = _memory(task, pointer, min(count, _MOST_POLLED) * 8, read_hidden)
    return [fd for fd, events, _ in struct.iter_unpack("ihh", raw) if fd >= 0 and events & _READABLE]


def _selected(task: str, count: int, pointer: int, read_hidden: ReadHidden | None) -> list[int]:
    if not pointer:
        return []  # it only wants to write, or to sleep
    count = min(count, _MOST_POLLED)
    bits = int.from_bytes(_memory(task, pointer, (count + 63) // 64 * 8, read_hidden), "little")
    return [fd for fd in range(count) if bits >> fd & 1]


def _watched(task: str, epoll: int, depth: int = 0) -> list[int]:
    """What an epoll watches for reading, as `tfd: 0 events: 19 …` in its fdinfo."""
    found: list[int] = []
    try:
        lines = read(f"{task}/fdinfo/{epoll}").splitlines()
    except FileNotFoundError:
        return found
    except OSError as error:
        raise _Hidden from error
    for line in lines:
        match line.split():
            case [b"tfd:", fd, b"events:", events, *_] if int(events, 16) & _READABLE:
                found.append(int(fd))
                if depth < _MOST_NESTED and _link(task, int(fd)) == "anon_inode:[eventpoll]":
                    found += _watched(task, int(fd), depth + 1)
    return found


def _memory(task: str, pointer: int, size: int, read_hidden: ReadHidden | None) -> bytes:
    if not size:
        return b""
    pointer &= (1 << 56) - 1  # arm64 may keep a tag in the upper byte
    try:
        fd = os.open(f"{task}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            raw = os.pread(fd, size, pointer)
        finally:
            os.close(fd)
    except OSError as error:
        raw = _asked(task, "mem", read_hidden, error, pointer, size)
    if len(raw) < size:
        raise _Hidden
    return raw


def _link(task: str, fd: int) -> str:
    try:
        return os.readlink(f"{task}/fd/{fd}")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _Hidden from error


def _is_terminal(task: str, fd: int, devices: tuple[int, ...]) -> bool:
    """Whether the descriptor is this terminal, by its own name or as /dev/tty (for the foreground, that is it).

    The name is asked first, as a stat of whatever it is may hang with a dead file server.
    """
    if _link(task, fd).rpartition("/")[2] not in (str(os.minor(devices[0])), "tty", "console"):
        return False
    try:
        return os.stat(f"{task}/fd/{fd}").st_rdev in devices
    except OSError:
        return False
