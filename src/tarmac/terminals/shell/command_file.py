"""The private files of a shell: its integration, the command it is to run, and the pipe it may read from.

They lie in a folder of their own below TMPDIR. A command may delete that (`rm -rf $TMPDIR/tarmac-*`): then it is made
again before the next command.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from tarmac.errors import StateUnavailable
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.terminals.shell.shells import quote

ZSH_FILES = (".zshenv", ".zprofile", ".zshrc", ".zlogin")
_RUN = """\
ZDOTDIR=${{__tarmac_theirs-{theirs}}}
if [[ -r $ZDOTDIR/{name} ]]; then 'builtin' '.' "$ZDOTDIR/{name}"; fi
__tarmac_theirs=${{ZDOTDIR-{theirs}}} ZDOTDIR={ours}
"""


class ShellFiles:
    """The folder of one shell, the file with its command, and its pipe if it reads one."""

    def __init__(self, env: Mapping[str, str], *, own_zdotdir: bool) -> None:
        self._env = env
        self._own_zdotdir = own_zdotdir
        self._folder: Path | None = None
        self._command = -1
        self._pipe = -1

    @property
    def folder(self) -> Path:
        assert self._folder is not None
        return self._folder

    @property
    def has_pipe(self) -> bool:
        return self._pipe >= 0

    def create(self) -> Mapping[str, str]:
        """Make the folder; the environment for the shell."""
        self._folder = scratch_dir(self._env)
        return private_zdotdir(self.folder, self._env) if self._own_zdotdir else self._env

    def open(self, *, pipe: bool) -> None:
        """Make what is needed for commands."""
        self._command = create(self.folder / "in")
        if pipe:
            self.open_pipe()

    def take_over(self, folder: Path, command: int, pipe: int = -1) -> None:
        """Go on with the folder of a shell that another program started, and with the descriptors it had."""
        self._folder, self._command, self._pipe = folder, command, pipe

    def descriptors(self) -> list[int]:
        """The file of commands, locked as long as somebody holds it, and the pipe if there is one."""
        return [each for each in (self._command, self._pipe) if each >= 0]

    def leave(self) -> None:
        """Close the descriptors; the files stay for the shell."""
        for each in self.descriptors():
            os.close(each)
        self._folder, self._command, self._pipe = None, -1, -1

    def open_pipe(self) -> None:
        os.mkfifo(self.folder / "pipe", 0o600)
        self._pipe = os.open(self.folder / "pipe", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def write_command(self, data: bytes) -> None:
        write_over(self._command, data)

    def write_pipe(self, line: bytes) -> None:
        os.write(self._pipe, line)

    def withdraw(self) -> None:
        """What was given is gone: a shell that comes to read it finds nothing to run."""
        try:
            write_over(self._command, b"")
        except OSError:
            pass  # its number is used up all the same
        if self._pipe >= 0:
            try:
                os.read(self._pipe, 4096)
            except BlockingIOError:
                pass

    def restore(self, write: Callable[[Path], None]) -> None:
        """Make the folder again if it was deleted; `write` puts the integration into it. OSError: it can't be made."""
        if self._folder is None or self._command < 0 or os.fstat(self._command).st_nlink:
            return
        try:
            self._folder.mkdir(mode=0o700)
        except FileExistsError:
            check_private(self._folder)
        write(self._folder)
        os.close(self._command)
        self._command = -1
        self._command = create(self._folder / "in")
        if self._own_zdotdir:
            private_zdotdir(self._folder, self._env)
        if self._pipe >= 0:
            self.close_pipe()
            self.open_pipe()

    def exports(self) -> str:
        """What the shell exported when its start-up files were done, as it told it."""
        try:
            return (self.folder / "in.env").read_text("utf-8", "surrogateescape")
        except OSError:
            return ""

    def close(self) -> None:
        """Remove everything."""
        if self._command >= 0:
            os.close(self._command)
            self._command = -1
        self.close_pipe()
        if self._folder is not None:
            remove_scratch(self._folder)
            self._folder = None


def private_zdotdir(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Make a private ZDOTDIR in `folder`; the environment with it.

    Its files run the user's own, which see the place they know. A zsh that a command starts keeps what it writes there
    (completion dumps, histories) to itself.
    """
    place = folder / "private-zdotdir"
    place.mkdir()
    theirs = env.get("ZDOTDIR") or env.get("HOME", "/")
    for name in ZSH_FILES:
        text = _RUN.format(name=name, theirs=quote(theirs), ours=quote(str(place)))
        (place / name).write_text(text)
    return {**env, "ZDOTDIR": str(place)}


def write_over(fd: int, data: bytes) -> None:
    """Written over and then cut to length: cutting to nothing first makes ext4 flush it to the disk on close."""
    done = 0
    while done < len(data):  # an almost full disk takes a part: half a command must never run
        done += os.pwrite(fd, data[done:] if done else data, done)
    os.ftruncate(fd, len(data))


def create(path: Path) -> int:
    """Make the file, and lock it: as long as we live, nobody takes its folder for one left behind (sweep_scratch)."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a disk without locks
        pass
    return fd


def check_private(folder: Path) -> None:
    """OSError unless the folder is ours alone: somebody else may have made one of that name."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise FileExistsError(errno.EEXIST, "somebody else has made a folder of that name", str(folder))


def no_room(error: OSError) -> StateUnavailable:
    """What to tell when it can't be written."""
    return StateUnavailable(
        f"cannot write what the shell is to read: {error.strerror}", hint="make room, or set TMPDIR to another disk"
    )
