"""One running command: iterate it, await it, answer it, interrupt it, leave it.

provider ─feed(bytes)→ Execution → spool (all of it, on disk) → listeners, each at its own pace, by offset
                                 → HeadTail (both ends, in memory) → Result.output
provider ─finish(Ending)→ everybody who waits

A listener never blocks the command. It reads the spool at its own pace, and gets a Gap where the oldest bytes were
dropped.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Unpack

from tarmac.errors import ExecutionEnded
from tarmac.terminals.answers import Secrets, send_secret
from tarmac.terminals.bell import HEARTBEAT, Alarm, Bell, stopped_since
from tarmac.terminals.output.follow import Gap, as_text, follow
from tarmac.terminals.output.spool import Spool
from tarmac.terminals.output.tape import PLACED
from tarmac.terminals.process.tty_probe import Sleep, Waiting
from tarmac.terminals.result import NOTHING, Ending, Reason, Rendered, Result, render, signal_name
from tarmac.terminals.settings import OnTimeout, Settings, check_on_timeout, check_timeout, short
from tarmac.terminals.wait_conditions import Conditions, Happened, waiting_for
from tarmac.vt.buffer import HeadTail
from tarmac.vt.marks import NO_HINTS
from tarmac.vt.text import clean

if TYPE_CHECKING:
    from tarmac.events import TerminalId
    from tarmac.terminals.events import Kind, Listener
    from tarmac.terminals.output.terminal_screen import ScreenLook
    from tarmac.terminals.process.processes import Process


FOREVER = float("inf")
BEGIN_PATIENCE = 2.0
LONGEST_PROMPT = 4096
LONGEST_SCREEN = 16384
READ_BACK = 1 << 18


class Runner(Protocol):
    """Runs executions: a terminal of any provider."""

    id: "TerminalId"
    cwd: Path
    alarm: Alarm

    @property
    def closed(self) -> bool: ...
    @property
    def current(self) -> "Execution | None": ...
    def subscribe(self, listener: "Listener", *kinds: "Kind") -> Callable[[], None]: ...
    def tree(self, *, own: bool) -> "set[Process]": ...
    def written_since_last_command(self) -> bytes: ...
    async def look(self, *, since: str | None = None) -> "ScreenLook": ...
    def send_input(self, execution: "Execution", data: bytes) -> None: ...
    async def withdraw(self, execution: "Execution") -> None: ...
    def close_input(self, execution: "Execution") -> None: ...
    async def interrupt(self, execution: "Execution") -> None: ...
    async def kill(self, execution: "Execution") -> None: ...
    def waiting(self, execution: "Execution") -> Waiting | None: ...


class Execution:
    """A command in a terminal, from its start to its end."""

    ending: Ending | None = None
    ended_at: float | None = None
    began = False
    read = False  # a caller has had its result
    shown = 0  # how many of its bytes a caller has had while it ran
    cause: Reason | None = None  # why we ended it, if we did
    fresh_shell = False
    forged_marks = 0
    hints = NO_HINTS  # of a shell that runs in it
    inputs = 0  # how often something was typed into it
    last_input = 0.0
    asleep: Sleep | None = None  # the sleep of its reader when input was typed: until it ends, the input is unread
    line_typed = False  # the last input ended with Enter
    escaped = False  # the last key was Escape: the program waits a moment for the rest of a key sequence
    refused = False  # its shell could not run it in its directory
    signalled = False  # something of it got a signal of ours
    handled_signal = False  # and was able to act on it before it ended
    streamed = False  # a caller had all its output while it ran, so its result need not say what is kept
    follower: Callable[[], None] | None = None  # is called at once when it has printed something, and when it has ended
    secrets: Secrets | None = None  # those typed into it, to be kept out of its output
    _asks_from = 0  # the offset of the question after the last typed line
    _spool: Spool | None = None
    _kept: HeadTail | None = None  # made with the first byte: many commands print nothing
    _total = 0
    _rendered: Rendered | None = None
    _left: Reason | None = None

    def __init__(
        self,
        *,
        number: int,
        command: str,
        by_person: bool,
        runner: Runner,
        settings: Settings,
        make_spool: Callable[[], Spool],
        notes: tuple[str, ...] = (),
        internal: bool = False,
    ) -> None:
        self.number = number
        self.command = command
        self.by_person = by_person
        self.internal = internal  # our own question to the shell, which nobody is told of
        self.cwd_before = runner.cwd
        self._make_spool = make_spool
        self.notes: list[str] = list(notes)
        self.started_at = self.last_output = time.monotonic()
        self._runner = runner
        self._settings = settings
        self._ended = Bell()  # it ended, or was left
        self._news = Bell()  # it ended, was left, began, or printed something

    # What a caller does

    @property
    def running(self) -> bool:
        return self.ending is None

    @property
    def spool(self) -> Spool:
        """All it printed, on disk."""
        if self._spool is None:
            self._spool = self._make_spool()
        return self._spool

    @property
    def output_bytes(self) -> int:
        return self._total

    async def send(self, data: str | bytes) -> None:
        """Type into it. Raises ExecutionEnded when nothing can read it any more."""
        if self.ending is not None:
            raise ExecutionEnded(
                f"`{short(self.command)}` has ended ({self.ending.reason}, exit code {self.ending.exit_code}): "
                "nothing was sent",
                hint="start a new command",
            )
        await self.until_begun()
        self._runner.send_input(self, data.encode() if isinstance(data, str) else data)

    async def send_secret(
        self, text: str, *, prompt: "str | re.Pattern[str] | None" = None, timeout: float = 10.0
    ) -> None:
        """Type a secret and Enter once the program asks for one. Before that, the terminal would show it.

        A program asks if the kernel says that it reads a line with the echo off. One that reads keys and draws its own
        feedback (`sudo` with feedback, pinentry) counts if its question matches `prompt`. Raises SecretNotAsked.
        """
        await send_secret(self, text, prompt=prompt, timeout=timeout)

    @property
    def waiting(self) -> Waiting | None:
        """What input it waits for, according to the kernel, and the text of its question; else None."""
        return self._runner.waiting(self) if self.ending is None and self.began else None

    async def waiting_for(self, **conditions: Unpack[Conditions]) -> Happened:
        """Wait until it ends, prints `pattern`, wants `input`, is `quiet` for so long, or listens on `port`."""
        return await waiting_for(self._runner, self, **conditions)

    async def screen(self, *, since: str | None = None) -> "ScreenLook":
        """What a full-screen program shows, once it has reacted to what was sent. See `Terminal.look`."""
        if self.ending is None:
            await self.until_begun()
        return await self._runner.look(since=since)

    def prompt(self) -> str:
        """The last line with text since the last answer. A drawn screen does not count."""
        size = min(self._total - self._asks_from, LONGEST_SCREEN)
        if size <= 0 or self._kept is None:
            return ""
        data = self._kept.last(size)
        if PLACED.search(data):
            return ""
        lines = clean(data[-LONGEST_PROMPT:]).split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")

    def close_input(self) -> None:
        """Say that no more input comes: Ctrl-D on a terminal, end of file on a pipe."""
        if self.ending is None:
            self._runner.close_input(self)

    async def interrupt(self) -> None:
        """Send Ctrl-C, then terminate, then kill. Nothing is sent after the end."""
        if self.ending is None:
            self.cause = self.cause or "interrupted"
            await self.until_begun()
            if not await self._withdrawn():
                await self._runner.interrupt(self)

    async def kill(self) -> None:
        """End it and everything it started, at once."""
        if self.ending is None:
            self.cause = self.cause or "killed"
            await self.until_begun()
            if not await self._withdrawn():
                await self._runner.kill(self)

    async def _withdrawn(self) -> bool:
        """Whether it had not begun, and now never will."""
        if not self.began and self.ending is None:
            await self._runner.withdraw(self)
        return self.ending is not None

    def leave(self, reason: Reason = "left running") -> None:
        """Stop waiting for it; it goes on in the background."""
        self._left = reason
        self._wake()

    @property
    def left(self) -> bool:
        """Whether it was left to go on in the background."""
        return self._left is not None

    async def until_begun(self, seconds: float = BEGIN_PATIENCE) -> None:
        """Wait (a moment) until the shell has loaded it: before that a Ctrl-C would hit our loader, not the command."""
        end = time.monotonic() + seconds
        while not self.began and self.ending is None and (left := end - time.monotonic()) > 0:
            await self._news.wait(left)

    async def ended(self, seconds: float) -> bool:
        """Wait up to `seconds` for its end."""
        end = time.monotonic() + seconds
        while self.ending is None and (now := time.monotonic()) < end:
            tick = min(end, now + HEARTBEAT)
            await self._ended.wait(tick - now)
            end += stopped_since(tick)
        return self.ending is not None

    async def result(
        self, timeout: float | None = None, *, on_timeout: OnTimeout = "leave", idle_timeout: float | None = None
    ) -> Result:
        """Wait for its end. After `timeout` (or `idle_timeout` without output), return what is known so far."""
        check_timeout(timeout)
        check_timeout(idle_timeout, "idle_timeout")
        check_on_timeout(on_timeout)
        return await self.checked_result(timeout, on_timeout, idle_timeout)

    async def checked_result(self, timeout: float | None, on_timeout: OnTimeout, idle_timeout: float | None) -> Result:
        """`result()`, for callers that have checked its arguments."""
        limit = time.monotonic() + timeout if timeout is not None else FOREVER
        self._left = None
        thawed = 0.0
        while self.ending is None and self._left is None:
            due = limit
            if idle_timeout is not None:
                due = min(due, max(self.last_output, self.started_at, thawed) + idle_timeout)
            now = time.monotonic()
            if due <= now:
                break
            tick = min(due, now + HEARTBEAT)
            await self._ended.wait_with(self._runner.alarm, tick)
            if stopped := stopped_since(tick):
                limit += stopped
                thawed = time.monotonic()
        if self.ending is None:  # what the terminal holds is read before the timeout counts
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        if self.ending is not None:
            return await self._final()
        if self._left is not None:
            return await self._so_far(self._left)
        await self._runner.withdraw(self)
        if self.ending is not None:
            return await self._final()
        awaiting = self.waiting
        if time.monotonic() < limit:
            return await self._so_far("awaiting input" if awaiting else "idle", awaiting)
        if on_timeout == "leave":
            return await self._so_far("awaiting input" if awaiting else "left running", awaiting)
        self.cause = "awaiting input" if awaiting else "timeout"
        await (self._runner.interrupt(self) if on_timeout == "interrupt" else self._runner.kill(self))
        if self.ending is None:  # beyond our means: a process that even SIGKILL does not end (uninterruptible sleep)
            return await self._so_far(self._left or self.cause, awaiting)
        return await self._final(awaiting)

    def __aiter__(self) -> AsyncIterator[str | Gap]:
        """Its text as it comes, from the first byte; see `follow`."""
        return as_text(self.follow())

    def follow(self, offset: int = 0) -> AsyncIterator[bytes | Gap]:
        """Its raw bytes as they come, at most ten times a second, from `offset` to the end."""
        return follow(self, offset, interval=self._settings.display_interval)

    # What its provider does

    def typed(self, data: bytes, *, hidden: bool) -> None:
        """Something is typed into it. `hidden`: the terminal does not show it."""
        self.inputs += 1
        self.last_input = time.monotonic()
        self.escaped = data[-1:] == b"\x1b"
        if hidden:
            if self.secrets is None:
                self.secrets = Secrets()
            self.secrets.typed(data)
        self.line_typed = data[-1:] in (b"\n", b"\r")
        if self.line_typed:
            self._asks_from = self._total

    def keep_secret(self, text: str) -> None:
        """Mask `text` in what it prints from now on."""
        if self.secrets is None:
            self.secrets = Secrets()
        self.secrets.keep(text.encode("utf-8", "surrogateescape"))

    def note(self, text: str) -> None:
        """Something its result must say, once."""
        if text not in self.notes:
            self.notes.append(text)

    def asks(self) -> None:
        """It began to wait for input: wake those who wait for that."""
        self._news.ring()

    async def news(self, seconds: float | None) -> None:
        """Wait until it prints, asks or ends, or until `seconds` have passed."""
        if self.ending is None:
            await self._news.wait(seconds)

    def begin(self) -> None:
        """The start mark was seen: what comes now is its output."""
        self.began = True
        self._news.ring()

    def feed(self, data: bytes) -> None:
        self.last_output = time.monotonic()
        if self._kept is None:
            self._kept = HeadTail(self._settings.output_memory, head_share=self._settings.output_head_share)
        self._kept.feed(data)
        self._total += len(data)
        self.spool.write(data)
        self._news.ring()
        if self.follower is not None:
            self.follower()

    def finish(self, ending: Ending, *, at: float | None = None) -> None:
        if self.ending is not None:
            return
        self.ended_at = at or time.monotonic()
        self.ending = ending
        if self._kept is not None:
            lines = self._kept.head.count(b"\n") + self._kept.tail.count(b"\n") + self._kept.dropped_lines
            limits = self._settings.output_line_limit, self._settings.output_character_limit
            self.spool.worth_keeping = lines > limits[0] or self._total > limits[1]
            self.spool.close()
        self._wake()
        if self.follower is not None:
            self.follower()

    def _wake(self) -> None:
        self._ended.ring()
        self._news.ring()

    def forget_output(self) -> None:
        """Forget its output, because another reader has all of it."""
        self.read, self._kept, self._rendered = True, None, NOTHING
        if self._spool is not None:
            self._spool.remove()

    # Results

    async def _final(self, awaiting: Waiting | None = None) -> Result:
        assert self.ending is not None
        if self._rendered is None:
            if self._kept is None and self._total:
                self._read_back()
            self._rendered = NOTHING if self._kept is None else await self._render()
            if self._rendered.truncated:  # this also covers bytes that are not text
                self.spool.worth_keeping = True
            self._kept = None  # the text is made: let go of the bytes
        self.read = True
        ended = self.ending
        return self._result(self._rendered, ended, duration=(self.ended_at or 0) - self.started_at, awaiting=awaiting)

    @classmethod
    def of_past(
        cls,
        *,
        number: int,
        command: str,
        by_person: bool,
        runner: Runner,
        settings: Settings,
        spool: Spool | None,
        ending: Ending,
        duration: float,
    ) -> "Execution":
        """A command that ran under another program. Its output is read from its spool on demand."""

        def no_spool() -> Spool:
            return Spool(Path(os.devnull))

        past = cls(
            number=number,
            command=command,
            by_person=by_person,
            runner=runner,
            settings=settings,
            make_spool=(lambda: spool) if spool is not None else no_spool,
        )
        past.began = past.read = True
        past.ending = ending
        past.ended_at = past.started_at + duration
        past._total = spool.end if spool is not None else 0
        return past

    def _read_back(self) -> None:
        self._kept = HeadTail(self._settings.output_memory, head_share=self._settings.output_head_share)
        offset = self.spool.start
        while data := self.spool.read(offset, READ_BACK)[1]:
            self._kept.feed(data)
            offset += len(data)

    async def _render(self) -> Rendered:
        return NOTHING if self._kept is None else await render(self._kept, self._settings)

    async def so_far(self, reason: Literal["left running", "idle"] = "left running") -> Result:
        """What is known now, without waiting. `reason` says why we do not wait."""
        if self.ending is not None:
            return await self._final()
        awaiting = self.waiting
        return await self._so_far("awaiting input" if awaiting else reason, awaiting)

    async def _so_far(self, reason: Reason, awaiting: Waiting | None = None) -> Result:
        rendered = await self._render()
        if self._total:
            self.spool.flush()
        self.shown = self._total
        ending = Ending(reason=reason, evidence="unknown", cwd=self._runner.cwd)
        return self._result(rendered, ending, duration=time.monotonic() - self.started_at, awaiting=awaiting)

    def _result(self, rendered: Rendered, ending: Ending, *, duration: float, awaiting: Waiting | None) -> Result:
        notes = [*self.notes, *ending.notes]
        path = None
        if self._total:
            path = self.spool.path if self.spool.error is None else None
            if self.spool.error is not None:
                notes.append(f"the output could not all be kept on disk: {self.spool.complaint}")
            elif self.spool.start and not self.streamed:
                kept = self.spool.end - self.spool.start
                notes.append(f"only the last {kept:,} of {self.spool.end:,} bytes are kept on disk")
        return Result(
            command=self.command,
            output=rendered.text,
            exit_code=ending.exit_code,
            signal=signal_name(ending.exit_code),
            reason=ending.reason,
            duration=duration,
            cwd=ending.cwd,
            truncated=rendered.truncated,
            evidence=ending.evidence,
            output_path=path,
            output_bytes=self._total,
            pipestatus=ending.pipestatus if len(ending.pipestatus) > 1 else (),
            binary=rendered.binary,
            forged_marks=self.forged_marks,
            fresh_shell=self.fresh_shell,
            awaiting=str(awaiting.wants) if awaiting else None,
            prompt=awaiting.prompt if awaiting else "",
            notes=tuple(notes),
            overwritten=rendered.overwritten,
        )
