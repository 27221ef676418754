"""One live shell: its PTY, its marks, its integration. It reports each fact to its owner, with one call.

bytes → MarkParser → output, start, end, prompt, …   (owner.on_…)
owner → load(command), hand_over(), heal()            (one typed line each)

It knows nothing of executions, timeouts or people. When the shell dies, the session says so and can't
be used any more. The terminal opens another.
"""

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tarmac.errors import StateUnavailable, TarmacError
from tarmac.terminals.bell import Bell
from tarmac.terminals.environment import COOKIE, hidden
from tarmac.terminals.process import birthmark, processes, signals
from tarmac.terminals.process.child import USED_UP, used_up
from tarmac.terminals.process.pty import Fences, Pty, Queries
from tarmac.terminals.settings import Sandbox, Settings, Wrapped
from tarmac.terminals.shell.command_file import ShellFiles, no_room
from tarmac.terminals.shell.shell_process import ShellProcess
from tarmac.terminals.shell.shells import INTEGRATION, Shell
from tarmac.vt.marks import Mark, MarkParser, Query

Turn = Literal["ours", "theirs", "was theirs"]
TURNS: dict[bytes, Turn] = {b"0": "ours", b"1": "theirs", b"3": "was theirs"}


class Owner(Protocol):
    """Receives what the shell does."""

    def on_output(self, data: bytes) -> None: ...
    def on_forged(self, mark: Mark) -> None: ...
    def on_started(self, number: int) -> None: ...
    def on_not_started(self) -> None: ...
    def on_refused(self, number: int, why: str) -> None: ...
    def on_ended(self, number: int, status: int, pipestatus: tuple[int, ...]) -> None: ...
    def on_answered(self, number: int, status: int | None, pipestatus: tuple[int, ...]) -> None: ...
    def on_prompt(
        self, number: int, status: int, turn: Turn, pipestatus: tuple[int, ...], *, sure: bool, discarded: bool = False
    ) -> None: ...
    def on_prompt_text(self) -> None: ...
    def on_handed_over(self) -> None: ...
    def on_person_ran(self, command: str) -> None: ...
    def on_exit(self, status: int) -> None: ...


EDITOR_PATIENCE = 0.15  # seconds after its prompt's mark until a line editor listens
LAST_SHOWN = 1000


@dataclass(slots=True)
class Typed:
    """A command that was typed as it is."""

    number: int
    line: int  # the shell's own count of lines when this one runs
    command: str
    data: bytes
    move: bytes  # where it moves first; then the start mark comes after the move
    refused: bool = False  # a prompt came, and it had not run


class Session(ShellProcess):
    """A shell on a PTY. `start()` runs it; `prompted` is set whenever it stands at its prompt."""

    def __init__(
        self,
        shell: Shell,
        settings: Settings,
        *,
        owner: Owner,
        env: Mapping[str, str],
        pty: Pty | None = None,
        nonce: bytes = b"",
    ) -> None:
        pty = pty or Pty(rows=settings.rows, columns=settings.columns)
        super().__init__(pty, ShellFiles(env, own_zdotdir=settings.zdotdir))
        self.shell = shell
        self.version = ""
        self.integrated = False
        self.prompted = False  # at its prompt, since the last line was typed
        self.prompt_to_come = False  # only the end mark has come: the prompt's own is still to come
        self.fresh = True  # it has run no command yet
        self.has_had_jobs = False  # in the background: it may print about them before its prompt
        self.shown = b""  # what it showed last before its first prompt
        self._owner = owner
        self._env = env
        self._sandbox = settings.sandbox
        self._hidden = hidden(settings)
        self._wrapped: Wrapped | None = None
        self._nonce = nonce or b"@" + os.urandom(12).hex().encode()
        self._line = b""
        self._loaded = 0
        self._lines: int | None = None  # executed so far, when at a calm prompt where plain words may be typed
        self._typed: Typed | None = None  # the command that was typed as it is, until its end
        self._traced = False  # `set -x` was on when the last command ended
        self._entering = False  # fish draws its prompt and our private line: nobody needs to see them
        self._parser = MarkParser(self._nonce)
        self._queries = Queries(self.pty)
        self._changed = Bell()  # a prompt, or the end
        self._fences = Fences(self.pty, self._nonce)
        self.when_read = self._fences.when_read
        self.until_read = self._fences.until_read

    def start(self, *, cwd: Path, start_up_files: bool) -> None:
        try:
            base = self.files.create()
            argv, env = self.shell.start_up(
                folder=self.files.folder,
                nonce=self._nonce,
                start_up_files=start_up_files,
                env=base,
                hidden=self._hidden,
            )
            self.files.open(pipe=self.shell.pipe)
            if self._sandbox is not None:
                argv = self._wrap(self._sandbox, argv, cwd=cwd, env=env)
            self.pid = self.pty.start(
                argv, cwd=cwd, env=env, on_data=self._data, on_exit=self._exited, on_death=self.when_read
            )
            self._look_at(self.pid)
        except OSError as error:
            self.close()
            if isinstance(error, TarmacError):
                raise
            if error.errno in USED_UP - {errno.ENOSPC}:
                raise used_up(error, "cannot open a terminal") from error
            raise no_room(error) from error  # the PTY is open by now, so it is the disk
        except BaseException:
            self.close()
            raise

    def _wrap(self, sandbox: Sandbox, argv: list[str], *, cwd: Path, env: Mapping[str, str]) -> list[str]:
        """The command line in a sandbox. The shell may read our folder, but write only its own files there.

        If it could write to the folder, a symlink there would make us write elsewhere.
        """
        theirs = [self.files.folder / name for name in ("in.env", "now.env")]
        for each in theirs:
            each.touch(0o600)
        self._wrapped = sandbox.wrap(argv, cwd=cwd, env=env, show=[self.files.folder, INTEGRATION], write=theirs)
        return self._wrapped.argv

    def exports_file(self) -> Path | None:
        """The file in which a shell in a sandbox must report its exported variables; None: any file."""
        return self.files.folder / "now.env" if self._wrapped is not None else None

    # Lines we type

    def load(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool) -> None:
        """Make the shell run `command`, in bytes `data`, after moving to `cwd`. Raises StateUnavailable if it can't."""
        try:
            self._give(number, command, data, cwd=cwd, jobs=jobs)
        except StateUnavailable:  # what another program needs could not be stored
            raise
        except OSError as error:
            raise no_room(error) from error

    def _give(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool) -> None:
        line = b""
        if self._lines is not None and not jobs and self.shell.may_type(command):
            # A move that is typed along changes `$?` and `$_`. Those of a shell that has run nothing do not matter.
            line = data if not cwd else self.shell.moving(number, cwd, data) if self.fresh else b""
        if line and self._lines is not None:
            self._typed = Typed(number, self._lines + 1, command, data, cwd)
            self._type(b" %s\n" % line)
        else:
            self._typed = None
            self._load(number, command, data, cwd=cwd, jobs=jobs)

    def _load(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool, guard: bytes = b"") -> None:
        self._restore_folder()
        loading = self.shell.load(number, command, data, cwd=cwd, jobs=jobs, traced=self._traced)
        if loading.fields:
            self.files.write_command(loading.fields + guard)
        if loading.script:
            (self.files.folder / self.shell.name).write_bytes(loading.script)
        self._line = loading.line
        self._loaded = number
        self._type(self._line)

    def _restore_folder(self) -> None:
        if self._wrapped is None:
            self.files.restore(lambda folder: self.shell.write(folder, self._nonce, self._hidden))

    def withdraw(self) -> None:
        """Take back the last command, as far as the shell has not read it."""
        self.files.withdraw()
        self.pty.forget_input()

    def load_again(self) -> None:
        """The command did not start. Loading it again can't run it twice: the file has a number."""
        typed = self._typed
        if typed is None:
            self.heal()
            self._type(self._line)
        elif not typed.refused:  # the shell waits for more: an alias made an unfinished line of it
            self.pty.signal(signal.SIGINT)
        else:
            self._typed = None
            self.pty.forget_input()
            self._load(typed.number, typed.command, typed.data, cwd=typed.move, jobs=False, guard=b"%d\0" % typed.line)

    def heal(self) -> None:
        """Define our functions again."""
        if not self.files.has_pipe:
            self._type(self.shell.heal(self.files.folder))
        elif not self.at_prompt():
            self.pty.write(self.shell.heal(self.files.folder))

    def inject(self, shell: Shell) -> None:
        """Another shell has replaced ours, and is in its line editor: load our integration into it."""
        self.shell = shell
        shell.write(self.files.folder, self._nonce, self._hidden)
        self._adopted = self._image()
        if shell.pipe and not self.files.has_pipe:
            self.files.open_pipe()
        elif not shell.pipe:
            self.files.close_pipe()
        self.pty.write(shell.inject(self.files.folder))

    def hand_over(self) -> None:
        """Turn line editor and history on, for a person's next line."""
        self._type(self.shell.hand_over)

    def take_back(self) -> None:
        """Turn line editor and history off again."""
        self.prompted = False
        self._when_it_listens(lambda: self.pty.write(self.shell.take_back), or_else=not self.shell.marks_early)

    def take_back_plainly(self) -> None:
        """The same in a shell whose line editor is off."""
        self.pty.forget_input()
        self.pty.write(self.shell.take_back_plainly)

    def ask(self, number: int) -> None:
        """Make the shell report the status of what it ran last, as the end of command `number`."""
        self._type(self.shell.ask(number) if self._typed is None else self.shell.ask_typed(number), hidden=True)

    def end_hook(self) -> str:
        """End what a prompt hook runs. Returns what to say of it.

        After a Ctrl-C bash and fish would begin all their hooks again.
        """
        if name := self.busy_with():
            signals.signal_all(set(self.in_front_of_it()), signal.SIGTERM)
            return f"a prompt hook hung in `{name}`, which was ended"
        self.pty.signal(signal.SIGINT)
        return "a prompt hook hung, and was interrupted"

    def _type(self, line: bytes, *, hidden: bool = False) -> None:
        self.prompted = False
        self._lines = None
        self.pty.make_sane()
        if hidden:
            self.pty.hide_input()
        if self.files.has_pipe:
            self.files.write_pipe(line)
        else:
            self.pty.write(line)

    def _when_it_listens(self, then: Callable[[], None], *, or_else: bool = True) -> None:
        """Call `then` when the line editor listens; after a while even if it does not, unless `or_else` is false."""
        loop = asyncio.get_running_loop()
        end = loop.time() + EDITOR_PATIENCE

        def look() -> None:
            late = loop.time() > end
            if not self.alive or (late and not or_else):
                return
            if late or not self.shell.marks_early or not self.pty.canonical():
                then()
            else:
                loop.call_later(0.002, look)

        look()

    # What it reports

    def _data(self, data: bytes) -> None:
        if not self.integrated:
            self.shown = (self.shown + data)[-LAST_SHOWN:]
        for piece in self._parser.feed(data):
            if isinstance(piece, bytes):
                if not self._entering:
                    self._owner.on_output(piece)
            elif isinstance(piece, Query):
                self._queries.ask(piece)
            elif piece.trusted:
                self._mark(piece)
            else:
                self._owner.on_forged(piece)
        if self._queries.open:
            self._queries.answer()

    def _mark(self, mark: Mark) -> None:
        self._entering = self._entering and mark.kind == "F"
        try:
            match mark.kind, mark.fields:
                case "S", (line,):
                    if self._typed is not None and int(line) == self._typed.line and not self._typed.move:
                        self._owner.on_started(self._typed.number)
                case "C", (number,):
                    self._owner.on_started(int(number))
                case "D", (number, statuses, traced, where):
                    self._traced = bool(traced)
                    self.where = where
                    status, *pipestatus = map(int, statuses.split())
                    self._typed = None
                    self._queries.forget()
                    self.prompted = self.prompt_to_come = True  # what is typed now waits for the prompt's own hooks
                    self._owner.on_ended(int(number), status, tuple(pipestatus))
                case "A", (number, person, now, ended, statuses, inner, traced, where, *lines):
                    if lines and self._typed is not None and self._typed_ended(self._typed, now, where, *lines):
                        return
                    self._traced = bool(traced)
                    self.where = where
                    if self._wrapped is not None and not self.integrated:
                        self._look_inside()
                    self.integrated = True
                    self.prompt_to_come = False
                    self._queries.forget()
                    if person == b"0" and ended == number:
                        said = statuses
                    else:  # a person's command; or our hook did not run before this prompt
                        said = inner if person == b"0" and inner else now
                    sure = person != b"0" or ended == number or bool(inner)
                    status, *pipestatus = map(int, said.split())
                    if self.shell.pipe:
                        self._enter(person)
                    elif int(number) == self._loaded:  # else a late prompt of the command before, or a stale one
                        self.prompted = person == b"0"
                        self._calm(*lines)
                    turn = TURNS.get(person, "ours")
                    self._prompt(int(number), status, turn, tuple(pipestatus), sure=sure, discarded=inner == b"-")
                case "B", (number,):
                    self.integrated = self.prompted = True
                    self.prompt_to_come = False
                    self._owner.on_prompt(int(number), 0, "ours", (), sure=False)
                    self._changed.ring()
                case "Q", ():
                    self._owner.on_prompt_text()
                case "F", (number,):
                    self._fences.passed(int(number))
                case "R", (number, statuses, attributes, where):
                    self.where = where
                    self.pty.make_sane()
                    status, *pipestatus = map(int, statuses.split())
                    self._typed = None
                    self._queries.forget()
                    self._lines = None  # our question counts as a line, too
                    self.prompted = self.prompt_to_come = True
                    known = b"r" not in attributes.replace(b"scalar", b"")  # read-only: it could not be stored
                    self._owner.on_answered(int(number), status if known else None, tuple(pipestatus) if known else ())
                case "X", (number, why):
                    self._owner.on_refused(int(number), why.decode("ascii", "replace"))
                case "E", (_, command):
                    self._owner.on_person_ran(command.decode("utf-8", "replace"))
                case "P", (_, version):
                    self.version = version.removeprefix(b"Version=").decode("ascii", "replace")
                case _:
                    pass
        except ValueError:
            self._owner.on_forged(mark)  # it has our nonce, but no sense: code in that same shell made it

    def _prompt(
        self, number: int, status: int, turn: Turn, pipestatus: tuple[int, ...], *, sure: bool, discarded: bool
    ) -> None:
        def tell() -> None:
            self._owner.on_prompt(number, status, turn, pipestatus, sure=sure, discarded=discarded)
            self._changed.ring()

        if turn == "theirs":  # their keys are for the line editor
            self._owner.on_handed_over()
            self._when_it_listens(tell)
        else:
            tell()

    def _enter(self, person: bytes) -> None:
        """The shell shows its own prompt. Unless that is for a person, the private key makes it read the pipe again."""
        self.prompted = False
        if person != b"0":
            return
        try:
            self._restore_folder()
        except OSError:
            return  # without a pipe it would be back at once; the next command will say why it can't run
        self._entering = not self.has_children()  # else it might be a job that prints
        self._when_it_listens(lambda: self.pty.write(self.shell.enter))

    def _calm(self, line: bytes = b"", before: bytes = b"", calm: bytes = b"") -> None:
        """Note whether the next command may be typed, and the count of lines that identifies it."""
        self._lines = int(line) if self.prompted and calm and line == before else None

    def _typed_ended(self, typed: "Typed", now: bytes, where: bytes, line: bytes, before: bytes, calm: bytes) -> bool:
        """Whether the prompt that came is the one right after a typed command."""
        if int(line) != typed.line:
            typed.refused = int(line) < typed.line
            self._owner.on_not_started()
            return False
        self.where = where
        self._queries.forget()
        sure = line == before
        if sure:
            self._typed = None
            self.prompted = True
            self._calm(line, before, calm)
        self._owner.on_prompt(typed.number, int(now), "ours", (), sure=sure)
        self._changed.ring()
        return True

    def _exited(self, status: int) -> None:
        self.exit_status = status
        self._queries.forget()
        for piece in self._parser.flush():
            if isinstance(piece, bytes):
                self._owner.on_output(piece)
        self._changed.ring()
        self._owner.on_exit(status)

    # Ends

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
                await signals.end(lambda: processes.descendants(self.pid), grace=grace)
            # At its prompt it is hung up, and its EXIT trap runs; in the middle of a command it is killed.
            for number, seconds in ((signal.SIGKILL if busy else signal.SIGHUP, 0.2), (signal.SIGKILL, 2.0)):
                if self.alive:
                    _kill(self.pid, number)
                    _kill(self.pid, signal.SIGCONT)
                    await self.until_dead(seconds)
        if crowded:
            await self.sweep()
        self.close()

    async def sweep(self) -> None:
        """End what a dead shell left behind. It went to init, and is found by session and cookie."""
        cookie = self._env.get(COOKIE, "")

        def find() -> set[processes.Process]:
            return birthmark.orphans(cookie, session=self.pid)

        if await asyncio.get_running_loop().run_in_executor(None, find):
            await signals.end(find, grace=0.2)

    async def until_dead(self, seconds: float) -> None:
        self.prompted = False
        while self.alive and seconds > 0:
            before = asyncio.get_running_loop().time()
            self.prompted = False
            await self.until_prompted(seconds)
            seconds -= asyncio.get_running_loop().time() - before

    def close(self) -> None:
        self.pty.close()
        if self._children >= 0:
            os.close(self._children)
            self._children = -1
        if self._oom is not None:
            self._oom.close()
        if self._wrapped is not None:
            self._wrapped.close()
            self._wrapped = None
        self.files.close()


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
