"""Type keys, and return what they changed.

type(keys, wait) → at a prompt: whole commands are run · in a program: it gets the keys → until it ends, asks, or `wait`
view() → PaneView: the new text as a screen would show it, and the state

A caller of tmux guesses how long a command takes, and sleeps that long. Here `wait` is only an upper limit. The call
returns when the shell is back, or when the kernel says that the program waits for input.

Keys typed ahead (`python3\\nprint(1)\\n`) are kept until the program asks for them or has ended, as a terminal keeps
them.
"""

import asyncio
import getpass
import os
import socket
import time
from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from tarmac.errors import ExecutionEnded, TerminalClosed
from tarmac.terminals.execution import Execution
from tarmac.terminals.pane.typed_commands import key_bytes, split_typed
from tarmac.terminals.terminal import Terminal
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
