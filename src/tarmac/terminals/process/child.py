"""Start a process and learn how it ended: the part that the PTY and the pipe provider share.

The child leads its own session and is a child-subreaper, so that whatever it starts stays its descendant
(processes.py). One that is to start nothing that lasts may do without: then there is no fork, whose cost grows with our
size. Its end comes from `waitpid`, woken by a pidfd: no polling, and nobody else's children are touched.
"""

import asyncio
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tarmac.errors import DirectoryUnavailable, OutOfTerminals, ShellFailed
from tarmac.terminals.process import birthmark, prctl

if TYPE_CHECKING:
    from tarmac.terminals.process.confinement import Confined

USED_UP = {errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EAGAIN, errno.ENOMEM}

# A host may have been told to ignore these (`nohup`, `&` in a script). Its commands must not inherit that.
RESET = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def used_up(error: OSError, what: str) -> OutOfTerminals:
    """The error for PTYs, descriptors, processes or memory used up, told apart by errno."""
    hints = {
        errno.EMFILE: "this process has too many files open: close terminals, or raise `ulimit -n`",
        errno.ENFILE: "the machine has too many files open",
        errno.ENOSPC: "all PTYs are in use: close terminals, or raise kernel.pty.max",
        errno.EAGAIN: "the limit on processes is reached: end some, or raise `ulimit -u`",
        errno.ENOMEM: "there is no memory left",
    }
    return OutOfTerminals(f"{what}: {os.strerror(error.errno or 0)}", hint=hints.get(error.errno or 0, ""))


class ChildProcess(Protocol):
    """A process whose end somebody tells us: the kernel, or the terminal daemon."""

    pid: int
    status: int | None

    def watch(
        self, on_exit: Callable[[int], None], *, on_death: Callable[[Callable[[], None]], None] | None = None
    ) -> None: ...
    def kill(self) -> None: ...
    def forget(self) -> None: ...


class Child:
    """A running process; `on_exit(status)` is called once, with the exit code or minus the signal."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
        prepare: Callable[[], None] | None = None,
        keeps_orphans: bool = True,
        confined: "Confined | None" = None,
    ) -> None:
        prctl.prepare()
        birthmark.prepare()
        mark = birthmark.of(env.get(birthmark.COOKIE, ""))

        def before_exec() -> None:  # runs between fork and exec: no allocation-heavy work, no locks
            for number in RESET:
                signal.signal(number, signal.SIG_DFL)
            prctl.become_subreaper()
            if mark is not None:
                birthmark.put(mark)
            if prepare:
                prepare()

        def start(words: list[str], passed: tuple[int, ...] = ()) -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                words,
                cwd=cwd,
                env=dict(env),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=passed,
                start_new_session=True,
                preexec_fn=before_exec if (keeps_orphans or prepare) and confined is None else None,
            )

        try:
            self._popen = start(list(argv)) if confined is None else confined.start(start, list(argv), cwd)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            if error.filename and Path(os.fsdecode(error.filename)) == cwd:
                raise DirectoryUnavailable(f"cannot start in {cwd}: {error.strerror}") from error
            raise ShellFailed(
                f"cannot start {argv[0]}: {error.strerror}", hint="is it installed and executable?"
            ) from error
        except subprocess.SubprocessError as error:
            raise ShellFailed(f"cannot start {argv[0]}: {error}") from error
        except OSError as error:
            if error.errno in USED_UP:
                raise used_up(error, f"cannot start {argv[0]}") from error
            raise ShellFailed(f"cannot start {argv[0]}: {error.strerror}", hint="is it a program?") from error
        self.pid = self._popen.pid
        if mark is not None and not (keeps_orphans or prepare):
            birthmark.put(mark, pid=self.pid)
        if confined is not None:
            confined.limit(self.pid)
        self.status: int | None = None
        self._pidfd = -1

    def watch(
        self, on_exit: Callable[[int], None], *, on_death: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        """Call `on_exit` in the event loop when the process has ended.

        `on_death` is called before the process is reaped, with a function that reaps it. Until then nobody else can
        have its pid.
        """
        loop = asyncio.get_running_loop()

        def reap() -> None:
            status = self._popen.poll() if self.status is None else None
            if status is None:
                return
            self._unwatch(loop)
            self.status = status
            on_exit(status)

        def died() -> None:
            if on_death is None:
                reap()
            else:
                loop.remove_reader(self._pidfd)
                on_death(reap)

        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            # macOS, or no descriptor left: a thread waits instead.
            def wait() -> None:
                self._popen.wait()
                try:
                    loop.call_soon_threadsafe(reap)
                except RuntimeError:  # the loop is closed: nobody is interested any more
                    pass

            threading.Thread(target=wait, daemon=True, name=f"tarmac-wait-{self.pid}").start()
        else:
            loop.add_reader(self._pidfd, died)

    def _unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._pidfd >= 0:
            loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def kill(self) -> None:
        """SIGKILL the process itself, if it still lives."""
        if self.status is None:
            self._popen.send_signal(signal.SIGKILL)

    def forget(self) -> None:
        """Stop watching; the process is reaped if it has ended."""
        self._unwatch(asyncio.get_running_loop())
        self.status = self._popen.poll() if self.status is None else self.status
        if self.status is None:
            self._popen.returncode = -signal.SIGKILL  # killed, unreapable (uninterruptible sleep): silence its warning
