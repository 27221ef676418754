"""A place without a Python for our host: a PTY here around `ssh -tt` or `exec -it`, and a shell there.

_begin() → typed: nonce, number, the command in plain letters → loop there → mark C … output … mark D, status, directory
                                                                → Ctrl-C … mark P, its prompt → the loop again

The integration is typed into an interactive bash or sh, and its marks carry a nonce. So exit codes and directories have
evidence. A relay can't tell whether a command waits for input, or what runs in the background. Nothing stays there: if
the connection breaks, the shell ends.
"""

import asyncio
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from tarmac.errors import (
    ConnectionLost,
    DirectoryUnavailable,
    ExecutionEnded,
    InputClosed,
    PlaceUnavailable,
    SandboxUnavailable,
)
from tarmac.fleet.transport import CommandTransport
from tarmac.terminals import events
from tarmac.terminals.bell import Bell
from tarmac.terminals.environment import QUIET
from tarmac.terminals.events import Listeners
from tarmac.terminals.execution import Execution
from tarmac.terminals.open import new_id
from tarmac.terminals.process.processes import Process
from tarmac.terminals.process.pty import Pty, Queries
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Ending
from tarmac.terminals.shell.dialects import shell_elsewhere
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import NewTerminal, Provider, Terminal
from tarmac.vt.marks import Mark, MarkParser, Query

CONNECT_PATIENCE = 20.0  # seconds until the shell there must answer
LONGEST_LINE = 800  # characters that are typed at once; a terminal in line mode takes 4,095
GRACE = 1.0  # seconds between Ctrl-C, Ctrl-\ and the end of the connection
READY = b"TARMAC-READY"
START = (
    f"printf '{READY.decode()}\\n'; unset ENV; command -v bash >/dev/null 2>&1 && "
    "exec bash --norc --noprofile --noediting -i; exec sh -i"
)
# Typed line by line, each short enough for a terminal in line mode. `n` is the nonce: a line without it is no command,
# but input that nobody read. An interactive bash would print a word when it is left.
INTEGRATION = r"""
__tarmac_m() { printf '\033]633;%s;%s;%s\007' "$1" "$__tarmac_n" "$2"; }
__tarmac_p() { __tarmac_m P "$__tarmac_k;$1"; }
__tarmac_e() { return $1; }
__tarmac_run() { __tarmac_k=${1#?}; __tarmac_c=; while IFS= read -r __tarmac_l; do
case $__tarmac_l in '!') break;; esac; __tarmac_c=$__tarmac_c$__tarmac_l; done
__tarmac_c=$(printf '%b_' "$__tarmac_c"); __tarmac_c=${__tarmac_c%_}
case $1 in e*) stty echo 2>/dev/null;; esac; __tarmac_m C "$__tarmac_k"; __tarmac_e "$__tarmac_s"
command eval "$__tarmac_c"
__tarmac_s=$?; stty -echo 2>/dev/null; __tarmac_m D "$__tarmac_k;$__tarmac_s;$PWD"; }
__tarmac_loop() { __tarmac_s=$?; __tarmac_z=0; while [ $__tarmac_z -lt 99 ]; do
if IFS= read -r __tarmac_l; then __tarmac_z=0; else __tarmac_z=$((__tarmac_z + 1)); fi
case $__tarmac_l in "$__tarmac_n "*) __tarmac_run "${__tarmac_l#* }";; esac; done; exit; }
[ -z "$BASH_VERSION" ] || eval 'exit() { builtin exit "$@" 2>/dev/null; }'
__tarmac_k=0; trap '__tarmac_m X $?' EXIT; unset HISTFILE; PS2=; PS4='+ '
PS1='$(__tarmac_p $?)'; stty -echo 2>/dev/null; __tarmac_m B "$PWD"; __tarmac_e 0; __tarmac_loop
"""


class RelayMachine:
    """A place with nothing of ours on it. Each terminal has a connection of its own."""

    def __init__(self, transport: CommandTransport, why: PlaceUnavailable) -> None:
        """`why`: what the place lacks."""
        self.transport, self.why = transport, why
        self._home = Path("/")

    @property
    def name(self) -> str:
        return self.transport.name

    async def __aenter__(self) -> Self:
        """Check that a shell answers there. If not, the error says that, and what the place lacks."""
        try:
            async with asyncio.timeout(CONNECT_PATIENCE):
                async with RelayShell(self.transport, rows=24, columns=80) as shell:
                    self._home = await shell.ready({})
        except (PlaceUnavailable, ConnectionLost, TimeoutError) as error:
            what = getattr(error, "what", "no shell answered in time")
            raise PlaceUnavailable(
                f"{self.why.what}, and no shell works there: {what}", trouble=self.why.trouble, hint=self.why.hint
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        """The callers close the terminals that they opened."""

    def check_directory(self, path: Path | None) -> Path:
        return self._home if path is None else self._home / path

    def nearest_directory(self, path: Path) -> Path:
        return path

    def shell(self, name: str | None) -> Shell:
        return shell_elsewhere(name)

    async def open(self, new: NewTerminal, *, listeners: Listeners | None = None) -> Terminal:
        if new.settings.sandbox is not None:
            raise SandboxUnavailable(
                f"commands at {self.name} can't be kept in a sandbox from here",
                hint="turn the sandbox off for this place",
            )
        terminal = RelayTerminal(self.transport, new)
        try:
            await terminal.open()
        except BaseException:
            await terminal.aclose()
            raise
        if listeners is not None:
            terminal.listeners.join(listeners)
        terminal.opened()
        return terminal


class RelayShell:
    """One connection with a shell at its end. `heard` gets output and marks. `ended` gets the client's wait status."""

    def __init__(self, transport: CommandTransport, *, rows: int, columns: int) -> None:
        self._transport = transport
        self.pty = Pty(rows=rows, columns=columns)
        self._parser = MarkParser(b"@" + os.urandom(12).hex().encode())
        self._queries = Queries(self.pty)
        self._first = b""  # what came before the integration
        self._news = Bell()
        self._where: Path | None = None
        self.status: int | None = None  # of the client program
        self.listener: RelayTerminal | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def alive(self) -> bool:
        return self.status is None

    async def ready(self, environ: Mapping[str, str]) -> Path:
        """Connect, and type the integration. Returns the directory there. ConnectionLost if no shell answers."""
        transport = self._transport
        command = [f"exec sh -c {shlex.quote(START)}"] if transport.shell else ["sh", "-c", START]
        ours = {**(transport.environ if transport.environ is not None else os.environ), "TERM": "xterm-256color"}
        try:
            self.pty.start(
                [*transport.tty_argv, *command], cwd=Path("/"), env=ours, on_data=self._data, on_exit=self._exited
            )
        except OSError as error:
            raise ConnectionLost(f"`{transport.tty_argv[0]}` can't be started: {error.strerror}") from None
        await self._until(lambda: READY in self._first)
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environ.items())
        self.pty.write(f"__tarmac_n={self._parser.nonce.decode()}\n{exports}{INTEGRATION.lstrip()}".encode())
        await self._until(lambda: self._where is not None)
        assert self._where is not None
        return self._where

    async def _until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + CONNECT_PATIENCE
        while not true():
            left = end - time.monotonic()
            if not self.alive or left <= 0:
                said = self._first.decode("utf-8", "replace").strip().splitlines()
                what = said[-1] if said else f"its client ended with status {self.status}"
                if self.alive:
                    what = "its shell does not answer"
                raise ConnectionLost(f"{self._transport.name}: {what}", hint="try its client by hand")
            await self._news.wait(left)

    def run(self, number: int, data: bytes, *, echo: bool) -> None:
        """Have the shell run a command. With `echo`, its input is shown, as on a terminal."""
        lines = b"\n".join(plain_lines(data))
        self.pty.write(b"%s %c%d\n%s\n!\n" % (self._parser.nonce, b"e" if echo else b"q", number, lines))

    def loop(self) -> None:
        """The shell shows its prompt: have it wait for commands again."""
        self.pty.write(b" __tarmac_loop\n")

    def _data(self, data: bytes) -> None:
        if self._where is None:
            self._first = (self._first + data)[-4096:]
            self._news.ring()
        for piece in self._parser.feed(data):
            if isinstance(piece, Query):
                self._queries.ask(piece)
            elif isinstance(piece, bytes):
                if self.listener is not None:
                    self.listener.on_output(piece)
            elif not piece.trusted:
                if self.listener is not None:
                    self.listener.on_forged(piece)
            elif piece.kind == "B":
                self._where = _directory(piece.fields)
                self._news.ring()
            elif self.listener is not None:
                self.listener.on_mark(piece)
        if self._queries.open:
            self._queries.answer()

    def _exited(self, status: int) -> None:
        self.status = status
        self._news.ring()
        if self.listener is not None:
            self.listener.on_exit(self, status)

    async def aclose(self) -> None:
        """Hang up: the client ends, and the shell there with it."""
        self.listener = None
        child = self.pty.child
        if child is not None and self.alive:
            for number in (signal.SIGHUP, signal.SIGKILL):
                if not self.alive:
                    break
                os.kill(child.pid, number)
                end = time.monotonic() + GRACE
                while self.alive and (left := end - time.monotonic()) > 0:
                    await self._news.wait(left)
        self.pty.close()


class RelayTerminal(Terminal):
    """See `Terminal`. Opened by `RelayMachine.open`."""

    elsewhere = True

    def __init__(self, transport: CommandTransport, new: NewTerminal) -> None:
        super().__init__(new, id=new_id())
        self.provider: Provider = "pty"
        self.shell = shell_elsewhere(None)
        self._transport = transport
        self._relay: RelayShell | None = None
        self._number = 0  # of what the shell was last given; our own questions count too
        self._begun = self._over = False
        self._status: int | None = None
        self._left: int | None = None  # the status with which the shell itself left
        self._news = Bell()
        self._quiet = False  # what runs is a question of ours
        self._echo = new.provider == "pty"
        self._typed = b""

    async def open(self) -> None:
        await self._connect(self.cwd)

    async def _connect(self, cwd: Path) -> None:
        relay = RelayShell(self._transport, rows=self.settings.rows, columns=self.settings.columns)
        try:
            environ = {**QUIET, **{name: value for name, value in self.settings.environment.items() if value}}
            home = await relay.ready(environ)
        except BaseException:
            await relay.aclose()
            raise
        relay.listener, self._relay = self, relay
        self._left = None
        self.initial_cwd = self.cwd = home
        await self._go_to(cwd)

    # State

    @property
    def alive(self) -> bool:
        return not self._closed and self._relay is not None and self._relay.alive

    @property
    def held(self) -> bool:
        return False

    @property
    def has_jobs(self) -> bool:
        return False  # nobody can tell

    @property
    def quality(self) -> str:
        return "relay"

    # Commands

    def _check_directory(self, path: Path) -> Path:
        return path if path.is_absolute() else self.cwd / path  # the shell there looks

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        fresh = not self.alive
        if fresh:
            if self._relay is not None:
                await self._relay.aclose()
            await self._connect(self.cwd)
        if cwd is not None and cwd != self.cwd:
            await self._go_to(cwd)
        execution = self._new_execution(command, echo=True)
        execution.fresh_shell = fresh
        execution.begin()
        self._typed = b""
        self._give(data)
        return execution

    def _give(self, data: bytes) -> None:
        assert self._relay is not None
        self._number += 1
        self._begun = self._over = False
        self._relay.run(self._number, data, echo=self._echo)

    async def _go_to(self, cwd: Path) -> None:
        """Change the directory there. DirectoryUnavailable if the shell can't."""
        self._quiet = True
        try:
            self._give(b"cd -- " + shlex.quote(str(cwd)).encode("utf-8", "surrogateescape") + b" 2>/dev/null")
            end = time.monotonic() + CONNECT_PATIENCE
            while not self._over and self.alive and (left := end - time.monotonic()) > 0:
                await self._news.wait(left)
        finally:
            self._quiet = False
        if not self._over:
            raise ConnectionLost(f"the shell at {self._transport.name} does not answer", hint="open a new terminal")
        if self._status != 0:
            raise DirectoryUnavailable(f"{cwd} at {self._transport.name} can't be entered")

    # What the shell tells

    def on_output(self, data: bytes) -> None:
        if self._begun and not self._over and not self._quiet and self.current is not None:
            self.current.feed(data)
            self._wrote(data)

    def on_forged(self, mark: Mark) -> None:
        if self.current is not None:
            self.current.forged_marks += 1
        self.on_output(mark.raw)

    def on_mark(self, mark: Mark) -> None:
        try:
            match mark.kind, mark.fields:
                case "C", (number,) if int(number) == self._number:
                    self._begun = True
                case "D", (number, status, *where) if int(number) == self._number and not self._over:
                    self._moved(_directory(where))
                    self._ended(int(status))
                case "P", (number, status):
                    if self._relay is not None:
                        self._relay.loop()
                    if int(number) == self._number and not self._over:  # it was aborted before its end
                        self._ended(int(status), ran=self._begun)
                case "X", (status,):
                    self._left = int(status)
                    self._begun = False  # what comes now is said by the client
                case _:
                    pass
        except ValueError:
            self.on_forged(mark)

    def on_exit(self, relay: RelayShell, status: int) -> None:
        if self._relay is relay and not self._over:
            self._ended(self._left, connected=self._left is not None)
        self._news.ring()

    def _ended(self, status: int | None, *, ran: bool = True, connected: bool = True) -> None:
        self._over, self._status = True, status
        self._news.ring()
        execution = self.current
        if execution is None or self._quiet:
            return
        if not connected:
            why = "the client ended, and the shell there did not say how the command ended"
            reason = execution.cause or "connection lost"
            ending = Ending(reason=reason, evidence="unknown", cwd=self.cwd, notes=(why,))
        elif not ran:
            ending = Ending(reason=execution.cause or "not run", evidence="unknown", cwd=self.cwd)
        else:
            reason = execution.cause or ("done" if self._left is None else "terminal closed")
            ending = Ending(reason=reason, evidence="mark", cwd=self.cwd, exit_code=status)
        execution.finish(ending)
        self._finished_execution(execution)
        self._tell_idle()

    # Runner: what an Execution asks for

    def waiting(self, execution: Execution) -> Waiting | None:
        return None  # nobody can tell

    def send_input(self, execution: Execution, data: bytes) -> None:
        if self.current is not execution or self._relay is None:
            raise ExecutionEnded(f"`{execution.command[:60]}` is not running any more; nothing was sent")
        execution.typed(data, hidden=False)
        self._relay.pty.write(data)
        self._typed = data[-1:]

    def close_input(self, execution: Execution) -> None:
        """Send Ctrl-D. In the middle of a line, the first one only ends the line."""
        if self.current is execution and self._relay is not None:
            self._relay.pty.write(b"\x04" if self._typed in (b"", b"\n", b"\r") else b"\x04\x04")

    async def interrupt(self, execution: Execution) -> None:
        r"""Send Ctrl-C, again if the command goes on, then Ctrl-\. What still runs after that is left running.

        Bash loses a Ctrl-C that comes while it starts the next program of a loop.
        """
        for key in (b"\x03", b"\x03", b"\x1c"):
            if self.current is not execution or self._relay is None or not self._relay.alive:
                return
            self._relay.pty.write(key)
            if await execution.ended(GRACE):
                return

    async def kill(self, execution: Execution) -> None:
        await self.interrupt(execution)
        if execution.running and self.current is execution and self._relay is not None:
            relay, self._relay = self._relay, None
            await relay.aclose()
            if not self._over:
                self._ended(None, connected=False)

    # The rest

    async def type(self, data: bytes | str) -> None:
        if self.current is None:
            raise InputClosed(
                f"no command runs in {self.id}",
                hint="at another place a person can answer commands, but not use the shell itself",
            )
        self.send_input(self.current, data.encode() if isinstance(data, str) else data)

    def resize(self, *, rows: int, columns: int) -> None:
        super().resize(rows=rows, columns=columns)
        if self._relay is not None:
            self._relay.pty.resize(rows, columns)
        self.tape.resize(rows, columns)

    async def reset(self, cwd: Path) -> None:
        async with self._turn:
            self._check_open()
            if self._relay is not None:
                await self._relay.aclose()
            self.moves = 0
            self.tape.clear()
            await self._connect(cwd)

    async def environment(self) -> dict[str, str | None]:
        return {}  # only a host knows what the shell began with

    def tree(self, *, own: bool) -> set[Process]:
        return set()  # they are not of this machine

    def _guard(self) -> None:
        """No watchdog is needed: the client ends with its PTY, and the PTY ends with us."""

    async def _close(self) -> None:
        execution = self.current
        if self._relay is not None:
            await self._relay.aclose()
        if execution is not None and execution.running:
            ending = Ending(reason=execution.cause or "terminal closed", evidence="unknown", cwd=self.cwd)
            execution.finish(ending)
            self._finished_execution(execution)
        self.spools.clear()
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))


def plain_lines(data: bytes) -> Iterator[bytes]:
    """PURE: encode bytes as letters, digits and escapes for `printf %b`.

    A terminal or shell reads nothing else into them.
    """
    line = bytearray()
    for byte in data:
        line += bytes([byte]) if chr(byte).isascii() and chr(byte).isalnum() else b"\\0%03o" % byte
        if len(line) > LONGEST_LINE:
            yield bytes(line)
            line.clear()
    yield bytes(line)


def _directory(fields: Sequence[bytes]) -> Path:
    return Path(os.fsdecode(b";".join(fields)))
