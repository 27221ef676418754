"""A shell as the kernel sees it: its directory, its children, its foreground process, and what that waits for.

Nothing here trusts what the shell prints. Its marks are in `session.py`.
"""

import asyncio
import os
from pathlib import Path

from tarmac.terminals.process import processes, tty_probe
from tarmac.terminals.process.processes import read
from tarmac.terminals.process.pty import Pty
from tarmac.terminals.process.tty_probe import ReadHidden, Waiting
from tarmac.terminals.shell.command_file import ShellFiles

_LONGEST = 1024
_UNIFIED, _LEGACY = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"


class OomCounter:
    """How often the kernel killed a process of the cgroup that `pid` is in."""

    def __init__(self, pid: int) -> None:
        self._fd = _open(pid)

    def read(self) -> bytes:
        """What the cgroup tells, for `kills_in`; empty when it tells nothing."""
        try:
            return os.pread(self._fd, _LONGEST, 0) if self._fd >= 0 else b""
        except OSError:
            return b""

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def kills_in(told: bytes) -> int:
    """The count in what a cgroup told."""
    _, found, rest = told.partition(b"oom_kill ")
    return int(rest.split(None, 1)[0]) if found else 0


def _open(pid: int) -> int:
    """Its cgroup's memory.events (version 2) or memory.oom_control (version 1); -1 where there is neither."""
    try:
        lines = read(f"/proc/{pid}/cgroup").decode(errors="surrogateescape").splitlines()
    except OSError:
        return -1
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            file = f"{_UNIFIED}{path}/memory.events"
        elif "memory" in controllers.split(","):
            file = f"{_LEGACY}{path}/memory.oom_control"
        else:
            continue
        try:
            return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    return -1


class ShellProcess:
    """The process of a live shell, on its terminal."""

    read_hidden: ReadHidden | None = None  # asks an ancestor of the shell, where we are none

    def __init__(self, pty: Pty, files: ShellFiles) -> None:
        self.pty = pty
        self.files = files
        self.pid = -1
        self.exit_status: int | None = None
        self.where: bytes | None = None  # the directory by the shell's own word
        self.companions: set[processes.Process] = set()  # what its start-up files left running
        self._adopted = b""  # a shell in the place of the one we started: how it was started
        self._cwd_link = b""
        self._children = -1
        self._oom: OomCounter | None = None
        self._prompt_call = b""
        self._known: tuple[bytes, bytes | None, Path | None] = (b"", None, None)

    @property
    def alive(self) -> bool:
        return self.exit_status is None and self.pid > 0

    def _look_at(self, pid: int) -> None:
        """Whom we ask the kernel about."""
        self.pid = pid
        self._cwd_link = b"/proc/%d/cwd" % pid
        if self._children >= 0:
            os.close(self._children)
            self._children = -1
        try:
            self._children = os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            pass

    def _look_inside(self) -> None:
        """The shell in the sandbox is the only child of the process we started."""
        inner = os.pread(self._children, 32, 0).split() if self._children >= 0 else []
        if inner:
            self._look_at(int(inner[0]))

    def learn_companions(self) -> None:
        """Remember what runs before any command: a prompt's daemon, an agent for keys. It is no command's job."""
        if self.has_children():
            self.companions = processes.descendants(self.pid)
        if self._oom is not None:
            self._oom.close()
        self._oom = OomCounter(self.pid)

    def oom_kills(self) -> bytes:
        """What its cgroup tells of processes that the kernel killed for want of memory: see `kills_in`."""
        return self._oom.read() if self._oom is not None else b""

    def jobs(self) -> set[processes.Process]:
        """What commands have started and still runs, in front and in the background."""
        if not self.has_children():
            return set()
        found = processes.descendants(self.pid)
        for each in self.companions & found:
            found -= {each} | processes.descendants(each.pid)
        return found

    def has_children(self) -> bool:
        """Whether the shell has any child; True when nobody can tell."""
        if self._children < 0:
            return True
        try:
            return bool(os.pread(self._children, 16, 0))
        except OSError:
            return True

    def in_front(self) -> bool:
        """Whether the shell itself is the terminal's foreground group."""
        return self.pty.foreground() == self.pid

    def in_front_of_it(self) -> list[processes.Process]:
        """What it started that is in the terminal's foreground group: the program of a prompt hook, say."""
        group = self.pty.foreground()
        below = [each for _, each in processes.below(self.pid) if each is not None]
        return [each.process for each in below if each.alive and each.group == group]

    def busy_with(self) -> str:
        """The name of the program in front of it; empty: none."""
        return next((processes.name(each.pid) for each in self.in_front_of_it()), "")

    def has_died(self) -> bool:
        """Whether the shell is dead by the kernel's word; what it printed may not all have been read yet."""
        return processes.look(self.pid) is None

    async def learn_prompt(self) -> None:
        """Remember how the shell waits for its next line, once: a `read` in a command waits differently."""
        for _ in range(20):
            await asyncio.sleep(0.0005)
            call = self._call()
            if call.startswith(b"0 0x0 ") or self.files.has_pipe or not self.alive:  # read(0, …)
                self._prompt_call = call
                break

    def _call(self) -> bytes:
        """The system call the shell is in, with its first arguments; empty when it runs, or nobody may know."""
        try:
            return b" ".join(processes.read(f"/proc/{self.pid}/syscall").split()[:4])
        except OSError:
            pass
        if self.read_hidden is None:
            return b""
        try:
            return b" ".join(self.read_hidden(self.pid, "syscall", 0, 4096).split()[:4])
        except OSError:
            return b""

    def at_prompt(self) -> bool:
        """Whether the shell waits for its next line: blocked in the very call that it was in at an earlier prompt."""
        if self.files.has_pipe:
            return self._reads_pipe()
        return self._prompt_call.startswith(b"0 ") and self.in_front() and self._call() == self._prompt_call

    def _reads_pipe(self) -> bool:
        match self._call().split():
            case [b"0", fd, *_]:
                try:
                    return os.readlink(f"/proc/{self.pid}/fd/{int(fd, 16)}") == str(self.files.folder / "pipe")
                except OSError:
                    return False
        return False

    def probe(self) -> Waiting | None:
        """Who in the foreground waits for input, by the kernel's word."""
        return tty_probe.probe(self.pty.master, self.pid, read_hidden=self.read_hidden)

    def waits(self) -> bool:
        """Whether the shell itself is blocked reading: its next line, or in its `read`."""
        return self.reads_terminal() or (self.files.has_pipe and self._reads_pipe())

    def reads_terminal(self) -> bool:
        """Whether the shell itself is blocked reading the terminal: at its prompt, or in its `read`."""
        seen = self.probe() if self.alive else None
        return seen is not None and seen.process.pid == self.pid

    def replaced(self) -> bool:
        """Whether `exec` put another program in the shell's place."""
        image = self._image()
        if self._adopted:
            return image != self._adopted
        return bool(image) and os.fsencode(self.files.folder) not in image

    def _image(self) -> bytes:
        """How the program that is there was started: its words and its environment."""
        try:
            return b"".join(processes.read(f"/proc/{self.pid}/{each}") for each in ("cmdline", "environ"))
        except OSError:
            return b""

    def directory(self) -> Path | None:
        """Where the shell is: the kernel's word; by the shell's own name for it where both agree."""
        try:
            kernel = os.readlink(self._cwd_link)
        except OSError:
            return Path(os.fsdecode(self.where)) if self.where else None
        if (kernel, self.where) != self._known[:2]:
            self._known = (kernel, self.where, self._name_of(kernel))
        return self._known[2]

    def _name_of(self, kernel: bytes) -> Path:
        if self.where is None or self.where == kernel:
            return Path(os.fsdecode(kernel))
        try:
            same = os.path.samefile(self.where, self._cwd_link)
        except (OSError, ValueError):
            same = kernel == os.path.realpath(self.where) + b" (deleted)"
        return Path(os.fsdecode(self.where if same else kernel))

    def directory_is_gone(self) -> bool:
        """Whether somebody deleted the directory it stands in."""
        try:
            return os.readlink(self._cwd_link).endswith(b" (deleted)") and os.stat(self._cwd_link).st_nlink == 0
        except OSError:
            return False
