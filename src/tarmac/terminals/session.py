"""One live shell: its PTY, its marks, its integration. Facts go up to its owner, one call each.

bytes → MarkParser → output, start, end, prompt, …   (owner.on_…)
owner → load(command), hand_over(), heal()            (one typed line each)

It knows nothing of executions, timeouts or people. When the shell dies it says so and is of no more use: the
terminal opens another.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from tarmac.errors import TarmacError
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.terminals import processes, waiting
from tarmac.terminals.bell import Bell
from tarmac.terminals.child import USED_UP, used_up
from tarmac.terminals.environment import COOKIE
from tarmac.terminals.pty import Pty
from tarmac.terminals.settings import Settings
from tarmac.terminals.shells import Shell
from tarmac.vt.marks import Mark, MarkParser, Query
from tarmac.vt.replies import answer

Turn = Literal["ours", "theirs", "was theirs"]
TURNS: dict[bytes, Turn] = {b"0": "ours", b"1": "theirs", b"3": "was theirs"}
ANSWER_PATIENCE = 1.0  # how long a question may wait for its program to listen


class Owner(Protocol):
    """Who is told what the shell does."""

    def on_output(self, data: bytes) -> None: ...
    def on_forged(self, mark: Mark) -> None: ...
    def on_started(self, number: int) -> None: ...
    def on_refused(self, number: int, why: str) -> None: ...
    def on_ended(self, number: int, status: int, pipestatus: tuple[int, ...]) -> None: ...
    def on_prompt(self, number: int, status: int, turn: Turn, pipestatus: tuple[int, ...], *, sure: bool) -> None: ...
    def on_person_ran(self, command: str) -> None: ...
    def on_exit(self, status: int) -> None: ...


class Session:
    """A shell on a PTY. `start()` runs it; `prompted` is set whenever it stands at its prompt."""

    def __init__(self, shell: Shell, settings: Settings, *, owner: Owner, env: Mapping[str, str]) -> None:
        self.shell = shell
        self.version = ""
        self.integrated = False
        self.exit_status: int | None = None
        self.pid = -1
        self.prompted = False  # at its prompt, since the last line was typed
        self.where: bytes | None = None  # the directory by its own word
        self.pty = Pty(rows=settings.rows, columns=settings.columns)
        self._owner = owner
        self._env = env
        self._nonce = b"@" + os.urandom(12).hex().encode()
        self._cwd_link = b""
        self._line = b""
        self._loaded = 0
        self._traced = False  # `set -x` was on when the last command ended
        self._prompt_call = b""
        self._known: tuple[bytes, bytes | None, Path | None] = (b"", None, None)
        self._parser = MarkParser(self._nonce)
        self._folder: Path | None = None
        self._in = -1
        self._children = -1
        self._questions: list[tuple[float, bytes]] = []
        self._changed = Bell()  # a prompt, or the end

    def start(self, *, cwd: Path, start_up_files: bool) -> None:
        try:
            self._folder = scratch_dir(self._env)
            argv, env = self.shell.start_up(
                folder=self._folder, nonce=self._nonce, start_up_files=start_up_files, env=self._env
            )
            self._in = os.open(self._folder / "in", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.pid = self.pty.start(argv, cwd=cwd, env=env, on_data=self._data, on_exit=self._exited)
            self._cwd_link = b"/proc/%d/cwd" % self.pid
            try:
                self._children = os.open(f"/proc/{self.pid}/task/{self.pid}/children", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                pass
        except OSError as error:
            self.close()
            if error.errno in USED_UP and not isinstance(error, TarmacError):
                raise used_up(error, "cannot open a terminal") from error
            raise
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self.exit_status is None and self.pid > 0

    # Lines we type

    def load(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool) -> None:
        """Make the shell run `command`, in bytes `data` (after moving to `cwd`)."""
        self._line, fields = self.shell.load(number, command, data, cwd=cwd, jobs=jobs, traced=self._traced)
        if fields:
            # Written over and then cut to length: cutting to nothing first makes ext4 flush it to the disk on close.
            os.pwrite(self._in, fields, 0)
            os.ftruncate(self._in, len(fields))
        self._loaded = number
        self._type(self._line)

    def load_again(self) -> None:
        """Type the line once more; the number in the file keeps the command from running twice."""
        self._type(self._line)

    def heal(self) -> None:
        """Define our functions again."""
        assert self._folder is not None
        self._type(self.shell.heal(self._folder))

    def first_exports(self) -> str:
        """What the shell exported when its start-up files were done, as `export -p` tells it."""
        assert self._folder is not None
        try:
            return (self._folder / "in.env").read_text("utf-8", "surrogateescape")
        except OSError:
            return ""

    def hand_over(self) -> None:
        """Line editor and history on, for a person's next line."""
        self._type(self.shell.hand_over)

    def take_back(self) -> None:
        """Line editor and history off again."""
        self.prompted = False
        self.pty.write(self.shell.take_back)

    def take_back_plainly(self) -> None:
        """The same in a shell that has no line editor on."""
        self.pty.forget_input()
        self.pty.write(self.shell.take_back_plainly)

    def ask(self, number: int) -> None:
        """Have the shell say the status of what it ran last as the end of command `number`."""
        self._type(self.shell.ask(number))

    def _type(self, line: bytes) -> None:
        self.prompted = False
        self.pty.make_sane()
        self.pty.write(line)

    # What it tells

    def _data(self, data: bytes) -> None:
        for piece in self._parser.feed(data):
            if isinstance(piece, bytes):
                self._owner.on_output(piece)
            elif isinstance(piece, Query):
                self._question(piece)
            elif piece.trusted:
                self._mark(piece)
            else:
                self._owner.on_forged(piece)
        if self._questions:
            self._answer()

    def _mark(self, mark: Mark) -> None:
        try:
            match mark.kind, mark.fields:
                case "C", (number,):
                    self._owner.on_started(int(number))
                case "D", (number, statuses, traced, where):
                    self._traced = bool(traced)
                    self.where = where
                    status, *pipestatus = map(int, statuses.split())
                    self.prompted = True  # what is typed now waits for the prompt's own hooks
                    self._owner.on_ended(int(number), status, tuple(pipestatus))
                case "A", (number, person, now, ended, statuses, inner, traced, where):
                    self._traced = bool(traced)
                    self.where = where
                    self.integrated = True
                    self._questions.clear()
                    if person == b"0" and ended == number:
                        said = statuses
                    else:  # a person's command; or our hook did not run before this prompt
                        said = inner if person == b"0" and inner else now
                    sure = person != b"0" or ended == number or bool(inner)
                    status, *pipestatus = map(int, said.split())
                    if int(number) == self._loaded:  # else the prompt of the command before, late; or a stale one
                        self.prompted = person == b"0"
                    self._owner.on_prompt(int(number), status, TURNS.get(person, "ours"), tuple(pipestatus), sure=sure)
                    self._changed.ring()
                case "X", (number, why):
                    self._owner.on_refused(int(number), why.decode("ascii", "replace"))
                case "E", (_, command):
                    self._owner.on_person_ran(command.decode("utf-8", "replace"))
                case "P", (_, version):
                    self.version = version.removeprefix(b"Version=").decode("ascii", "replace")
                case _:
                    pass
        except ValueError:
            self._owner.on_forged(mark)  # ours by its nonce, but no sense in it: code in that same shell plays with us

    def _exited(self, status: int) -> None:
        self.exit_status = status
        for piece in self._parser.flush():
            if isinstance(piece, bytes):
                self._owner.on_output(piece)
        self._changed.ring()
        self._owner.on_exit(status)

    # Questions of programs to the terminal

    def _question(self, query: Query) -> None:
        reply = answer(query, rows=self.pty.rows, columns=self.pty.columns)
        if reply:
            self._questions.append((asyncio.get_running_loop().time() + ANSWER_PATIENCE, reply))

    def _answer(self) -> None:
        """Answer once the program listens for keys. In line mode the answer would wait and be typed into the shell."""
        if not self._questions or not self.alive:
            return
        loop = asyncio.get_running_loop()
        if self.pty.canonical():
            self._questions = [each for each in self._questions if each[0] > loop.time()]
            if self._questions:
                loop.call_later(0.01, self._answer)
            return
        replies = b"".join(reply for _, reply in self._questions)
        self._questions.clear()
        self.pty.write(replies)

    # Asking the kernel

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

    async def learn_prompt(self) -> None:
        """Remember how the shell waits for its next line, once: a `read` in a command waits differently."""
        for _ in range(20):
            await asyncio.sleep(0.0005)
            call = self._call()
            if call.startswith(b"0 0x0 ") or not self.alive:  # read(0, …)
                self._prompt_call = call
                break

    def _call(self) -> bytes:
        """The system call the shell is in, with its first arguments; empty when it runs, or nobody may know."""
        try:
            return b" ".join(processes.read(f"/proc/{self.pid}/syscall").split()[:4])
        except OSError:
            return b""

    def at_prompt(self) -> bool:
        """Whether the shell waits for its next line: blocked in the very call that it was in at an earlier prompt."""
        return self._prompt_call.startswith(b"0 ") and self.in_front() and self._call() == self._prompt_call

    def reads_terminal(self) -> bool:
        """Whether the shell itself is blocked reading the terminal: at its prompt, or in its `read`."""
        seen = waiting.probe(self.pty.master, self.pid) if self.alive else None
        return seen is not None and seen.process.pid == self.pid

    def replaced(self) -> bool:
        """Whether `exec` put another program in the shell's place."""
        return self._folder is not None and str(self._folder / "rc") not in processes.command_line(self.pid)

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
        try:
            return os.readlink(self._cwd_link).endswith(b" (deleted)") and os.stat(self._cwd_link).st_nlink == 0
        except OSError:
            return False

    async def until_prompted(self, seconds: float) -> bool:
        """Wait for the prompt or the end of the shell."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not self.prompted and self.alive and (left := end - loop.time()) > 0:
            await self._changed.wait(left)
        return self.prompted

    async def end(self, *, grace: float, busy: bool = False) -> None:
        """End the shell and all it started; then nothing of it is left."""
        crowded = self.alive and (busy or self.has_children())
        if self.alive:
            if crowded:
                _kill(self.pid, signal.SIGSTOP)  # or it goes on with `a; b; c` while we end a
                await processes.end(lambda: processes.descendants(self.pid), grace=grace)
            # At its prompt it is hung up, and its EXIT trap runs; in the middle of a command it is killed.
            for number, seconds in ((signal.SIGKILL if busy else signal.SIGHUP, 0.2), (signal.SIGKILL, 2.0)):
                if self.alive:
                    _kill(self.pid, number)
                    _kill(self.pid, signal.SIGCONT)
                    await self._until_dead(seconds)
        if crowded:
            await self.sweep()
        self.close()

    async def sweep(self) -> None:
        """After the shell's death: what it left behind went to init, and is found by session and cookie."""
        cookie = f"{COOKIE}={self._env.get(COOKIE, '')}".encode()

        def find() -> set[processes.Process]:
            return processes.sweep(session=self.pid, cookie=cookie, exclude={os.getpid()})

        if await asyncio.get_running_loop().run_in_executor(None, find):
            await processes.end(find, grace=0.2)

    async def _until_dead(self, seconds: float) -> None:
        self.prompted = False
        while self.alive and seconds > 0:
            before = asyncio.get_running_loop().time()
            self.prompted = False
            await self.until_prompted(seconds)
            seconds -= asyncio.get_running_loop().time() - before

    def close(self) -> None:
        self.pty.close()
        for fd in (self._in, self._children):
            if fd >= 0:
                os.close(fd)
        self._in = self._children = -1
        if self._folder is not None:
            remove_scratch(self._folder)
            self._folder = None


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
