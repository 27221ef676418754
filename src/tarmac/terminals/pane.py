"""A pane: a terminal for callers that type keys and look at the screen, as with tmux.

Pane.type(keys, wait) → at a prompt: whole commands are run · in a program: it gets the keys
                      → returns when the command ends or asks for input, after `wait` seconds at the latest
Pane.view() → PaneView: the new text as a screen would show it, and the state
main([FOLDER, OPTIONS]) → a pane behind a socket, in the background; CALL is one request: {"keys": …, "wait": …}

A caller of tmux guesses how long a command takes, and sleeps that long. Here `wait` is only an upper limit. The call
returns when the shell is back, or when the kernel says that the program waits for input. Keys typed ahead
(`python3\\nprint(1)\\n`) are kept until the program asks for them or has ended, as a terminal keeps them.

A shell decides line by line whether a command is complete: quotes, here-documents and loops continue. We ask bash
(`bash -n`, which runs nothing).

Sandboxes of evaluations have no stream that stays open: each `exec` is a process of its own. So the server lives in
the sandbox, and a call is 20 lines of Python without imports worth mentioning.
"""

import asyncio
import contextlib
import getpass
import json
import os
import re
import shutil
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path

from tarmac.errors import BadRequest, ExecutionEnded, TarmacError, TerminalClosed
from tarmac.terminals.execution import Execution
from tarmac.terminals.open import open_terminal
from tarmac.terminals.settings import Settings
from tarmac.terminals.terminal import Terminal
from tarmac.vt.keys import keys
from tarmac.vt.text import clean

MOST_DRAWN = 64 << 10
MOST_TEXT = 10_000  # characters of one view: head and tail of what is longer
JOBS_PAUSE = 0.1  # between two looks whether a job in the background has ended
INTERRUPT, END_OF_INPUT = b"\x03", b"\x04"


class PaneState(StrEnum):
    PROMPT = "prompt"  # the shell waits for a command
    RUNNING = "running"
    INPUT = "input"  # the program waits for somebody to type
    ENDED = "ended"  # the shell has; the next command opens a new one


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneView:
    """What is new in a pane."""

    text: str
    screen: str  # the last rows of all that was shown
    state: PaneState
    exit_code: int | None  # of the last command that has ended; None: none has, or nobody knows
    seconds: float  # that this command took, or has run
    question: str = ""
    drawn: bytes = b""  # what a full-screen program painted: for an emulator

    @property
    def status(self) -> str:
        """One line for a model."""
        match self.state:
            case PaneState.RUNNING:
                return f"[still running after {self.seconds:.1f} s]"
            case PaneState.INPUT:
                return "[the program waits for input]"
            case PaneState.ENDED:
                return "[the shell has ended; the next command opens a new one]"
            case PaneState.PROMPT:
                return "" if self.exit_code is None else f"[exit code {self.exit_code} after {self.seconds:.1f} s]"


class Pane:
    """One terminal, as a person at a keyboard has it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._line = ""  # typed at the prompt, without Enter
        self._ahead: deque[str] = deque()  # commands typed ahead
        self._execution: Execution | None = None
        self._last: Execution | None = None  # the last one that ended
        self._shown = ""  # of the running command's output
        self._new: list[str] = []
        self._rows: deque[str] = deque(maxlen=terminal.settings.rows)
        self._after = terminal.tape.end  # what comes later was printed in the background

    async def type(self, text: str, *, wait: float = 0.0) -> None:
        """Type `text`, or the key that it names, and wait for the effect, `wait` seconds at most."""
        until = time.monotonic() + wait
        data = key_bytes(text)
        await self._collect()
        if self._execution is not None:
            await self._send(data)
        elif data == INTERRUPT:
            self._show(self._prompt() + self._line + "^C\n")
            self._line = ""
            self._ahead.clear()
        elif data == END_OF_INPUT:
            self._ahead.append("exit")
        elif data:
            commands, self._line = await split_typed(self._line + data.decode("utf-8", "surrogateescape"))
            self._ahead.extend(commands)
        else:
            await self._await_jobs(until)
        await self._advance(until)

    async def view(self) -> PaneView:
        """What is new since the last view."""
        await self._collect()
        execution = self._execution
        waiting = execution.waiting if execution is not None else None
        if self._terminal.closed or not self._terminal.alive:
            state = PaneState.ENDED
        elif execution is None:
            state = PaneState.PROMPT
        else:
            state = PaneState.RUNNING if waiting is None else PaneState.INPUT
        told = execution or self._last
        text = "".join(self._new)
        self._new.clear()
        foot = self._prompt() + self._line if state is PaneState.PROMPT else ""
        return PaneView(
            text=_bounded(text) + foot,
            screen="".join(self._rows) + foot,
            state=state,
            exit_code=self._last.ending.exit_code if self._last is not None and self._last.ending else None,
            seconds=0.0 if told is None else (told.ended_at or time.monotonic()) - told.started_at,
            question=waiting.prompt if waiting is not None else "",
            drawn=self._terminal.tape.since_command()[-MOST_DRAWN:] if self._drawn else b"",
        )

    @property
    def _drawn(self) -> bool:
        return self._execution is not None and self._execution.ending is None and self._terminal.tape.drawn

    async def _send(self, data: bytes) -> None:
        if self._execution is None or not data:
            return
        try:
            await self._execution.send(data)
        except (ExecutionEnded, TerminalClosed):  # it went meanwhile: as on a terminal, nobody reads the keys
            pass

    async def _advance(self, until: float) -> None:
        """Continue until all typed text is used, the program asks for more, or the time is over."""
        while not self._terminal.closed:
            await self._collect()
            if self._execution is None:
                if not self._ahead:
                    return
                command = self._ahead.popleft()
                if not command.strip():
                    continue
                self._show(f"{self._prompt()}{command}\n")
                self._execution, self._shown = await self._terminal.start(command), ""
                continue
            left = until - time.monotonic()
            happened = await self._execution.waiting_for(input=True, timeout=max(left, 0.001))
            if happened.what == "input":
                if not self._ahead:
                    return
                await self._send(self._ahead.popleft().encode("utf-8", "surrogateescape") + b"\n")
            elif happened.what == "timeout":
                return

    async def _await_jobs(self, until: float) -> None:
        """Empty input means waiting: at a prompt, for the jobs in the background."""
        while self._terminal.has_jobs and time.monotonic() < until:  # noqa: ASYNC110 (nobody tells of a job's end)
            await asyncio.sleep(min(JOBS_PAUSE, until - time.monotonic()))

    async def _collect(self) -> None:
        """Take over what was printed."""
        if self._execution is None:
            if self._terminal.tape.end > self._after:
                data = self._terminal.tape.read(self._after, self._terminal.tape.end)
                whole, _, _prompt = clean(data).rpartition("\n")
                self._show(whole.replace(self._prompt(), "") + "\n" if whole else "")
            self._after = self._terminal.tape.end
            return
        execution = self._execution
        ended = execution.ending is not None
        output = (await execution.so_far()).output
        self._show(output[_common_lines(self._shown, output) :])
        self._shown = output
        if ended:
            self._last, self._execution = execution, None
            self._after = self._terminal.tape.end

    def _show(self, text: str) -> None:
        if text:
            self._new.append(text)
            whole = (self._rows.pop() if self._rows and not self._rows[-1].endswith("\n") else "") + text
            self._rows.extend(whole.splitlines(keepends=True)[-self._terminal.settings.rows :])

    def _prompt(self) -> str:
        sign = "#" if os.geteuid() == 0 else "$"
        return f"{_USER}@{_HOST}:{self._terminal.cwd}{sign} "


def _common_lines(before: str, now: str) -> int:
    """Where the first character is that was not there before; the beginning of its line where a line was rewritten."""
    if now.startswith(before):
        return len(before)
    same = next((at for at, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), len(now))
    return now.rfind("\n", 0, same) + 1


def _bounded(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    half = MOST_TEXT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


_USER, _HOST = _user(), socket.gethostname()


MOST_QUESTIONS = 40  # put to bash for one command; a longer one is taken whole
PATIENCE = 5.0
_ESCAPED = re.compile(r"(?:(?:[CMS]-)+\S+|\^[A-Za-z\[\]\\_?@])")
_NAMED = frozenset(
    "Enter Escape Tab BTab Space BSpace DC IC Up Down Left Right Home End PageUp PPage PgUp PageDown NPage PgDn".split()
) | {f"F{number}" for number in range(1, 13)}
_UNFINISHED = re.compile(rb"unexpected end of file|unexpected EOF while looking|delimited by end-of-file")
_DELIMITER = re.compile(rb"delimited by end-of-file \(wanted `([^\n]*)'\)")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_PLAIN = re.compile(r"[\w ./=,:@%+-]*(?<!\\)")  # needs no shell to see that it is complete
_KEYWORDS = frozenset("if while until for case select function do then else { ( [[ !".split())


def key_bytes(text: str) -> bytes:
    """The bytes of `text`, as `tmux send-keys` takes it: one name of a key is that key, all else is typed."""
    if text in _NAMED or (len(text) < 12 and _ESCAPED.fullmatch(text)):
        try:
            return keys(text)
        except BadRequest:
            pass
    return text.encode("utf-8", "surrogateescape")


async def split_typed(text: str) -> tuple[list[str], str]:
    """The complete commands in `text`, and what is left: the beginning of another one."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rest = lines.pop()  # no Enter after it yet
    commands: list[str] = []
    while lines:
        size = await _first_command(lines)
        if size is None:
            return commands, "\n".join([*lines, rest])
        commands.append("\n".join(lines[:size]))
        del lines[:size]
    return commands, rest


async def _first_command(lines: Sequence[str]) -> int | None:
    """How many lines the first command has; None: it is not complete."""
    if _PLAIN.fullmatch(lines[0]) and (lines[0].split() or [""])[0] not in _KEYWORDS:
        return 1
    size = 1
    for _ in range(MOST_QUESTIONS):
        unfinished, delimiter = await _ask_bash("\n".join(lines[:size]) + "\n")
        unfinished = unfinished or _CONTINUED.search(lines[size - 1]) is not None  # bash -n does not mind
        if not unfinished:
            return size
        if delimiter is not None:  # nothing in a here-document ends it but its delimiter
            size = next((at for at in range(size, len(lines)) if lines[at].strip("\t") == delimiter), len(lines))
        size += 1
        if size > len(lines):
            return None
    return len(lines)


async def _ask_bash(code: str) -> tuple[bool, str | None]:
    """Whether bash would read on, and the end of a here-document that it waits for."""
    if (bash := shutil.which("bash")) is None:
        return False, None
    process = await asyncio.create_subprocess_exec(
        bash,
        "-n",
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await asyncio.wait_for(process.communicate(code.encode("utf-8", "surrogateescape")), PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()
        return False, None
    delimiter = _DELIMITER.search(said)
    return _UNFINISHED.search(said) is not None, delimiter[1].decode("utf-8", "surrogateescape") if delimiter else None


SOCKET = "pane"
TIME_TO_LIVE = 4 * 3600.0  # seconds without a call
LOOK_EVERY = 5.0
MOST_REQUEST = 64 << 20
CALL = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() if len(sys.argv) > 2 else sys.stdin.buffer.read())
s.shutdown(socket.SHUT_WR)
while data := s.recv(65536):
    sys.stdout.buffer.write(data)
"""


async def serve(folder: Path, options: Mapping[str, object], opened: int) -> None:
    """Keep a pane until somebody ends it, or its shell ends; `opened` is told when it can be used."""
    done = asyncio.Event()
    settings = Settings(
        rows=int(str(options.get("rows", 40))),
        columns=int(str(options.get("columns", 160))),
        environment={str(name): str(value) for name, value in _mapping(options.get("environment")).items()},
        spool_directory=folder / "output",
    )
    cwd = options.get("cwd")
    async with open_terminal(cwd=Path(str(cwd)) if cwd else None, settings=settings) as terminal:
        pane = Pane(terminal)
        turn = asyncio.Lock()
        used = [time.monotonic()]

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                request = _mapping(json.loads(await reader.read(MOST_REQUEST)))
                async with turn:
                    reply = await _reply(pane, request, done)
                used[0] = time.monotonic()
            except (TarmacError, ValueError) as error:
                reply = {"error": str(error)}
            with contextlib.suppress(ConnectionError):
                writer.write(json.dumps(reply).encode())
                await writer.drain()
            writer.close()

        server = await asyncio.start_unix_server(answer, path=folder / SOCKET)
        _tell(opened, encode_view(await pane.view()))
        async with server:
            await _until_unwanted(done, used, (folder, terminal.initial_cwd))


async def _until_unwanted(done: asyncio.Event, used: list[float], folders: tuple[Path, ...]) -> None:
    """Until somebody ends it. A sandbox that goes takes its folders along, and a caller may simply not come back."""
    while not done.is_set() and time.monotonic() < used[0] + TIME_TO_LIVE and all(each.is_dir() for each in folders):
        try:
            await asyncio.wait_for(done.wait(), LOOK_EVERY)
        except TimeoutError:
            pass


async def _reply(pane: Pane, request: Mapping[str, object], done: asyncio.Event) -> dict[str, object]:
    if request.get("end"):
        done.set()
        return {}
    if "keys" in request:
        await pane.type(str(request["keys"]), wait=float(str(request.get("wait", 0))))
    return encode_view(await pane.view())


def encode_view(view: PaneView) -> dict[str, object]:
    """A view as JSON can carry it."""
    return asdict(view) | {"drawn": view.drawn.decode("latin-1")}


def decode_view(values: Mapping[str, object]) -> PaneView:
    known = {each.name: values[each.name] for each in fields(PaneView) if each.name in values}
    drawn = str(known.get("drawn", "")).encode("latin-1")
    return PaneView(**{**known, "state": PaneState(str(known["state"])), "drawn": drawn})  # type: ignore[arg-type]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _tell(opened: int, value: Mapping[str, object]) -> None:
    os.write(opened, json.dumps(value).encode() + b"\n")
    os.close(opened)


def main(arguments: list[str]) -> int:
    """Start a server in the background and wait until its terminal is open."""
    folder, options = Path(arguments[0]), _mapping(json.loads(arguments[1]) if len(arguments) > 1 else {})
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        with os.fdopen(reading, "rb") as told:
            line = told.readline()
        sys.stdout.buffer.write(line)
        return 0 if line else 1
    os.close(reading)
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd, stream in enumerate((quiet, quiet, log)):
        os.dup2(stream, fd)
    try:
        asyncio.run(serve(folder, options, writing))
    except TarmacError as error:
        with contextlib.suppress(OSError):
            _tell(writing, {"error": str(error)})
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
