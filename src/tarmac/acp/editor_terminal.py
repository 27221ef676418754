"""A terminal of the editor, by terminal/* of ACP v1. One approved command runs there, visible to the person (ADR 197).

start ─ terminal/create → its id, shown in the call ─ terminal/wait_for_exit … terminal/output → Execution ─ release

It belongs to the pool while its command runs, so it can be read, waited for and killed by its id. The protocol can't
type into it, and can't press Ctrl-C. Every request to the editor has a timeout.
"""

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tarmac.acp.rpc_peer import RpcPeer
from tarmac.errors import BadRequest, InputClosed, PeerGone, TarmacError, ToolFailed
from tarmac.events import TaskId
from tarmac.paths import check_directory, remove_scratch, scratch_dir
from tarmac.terminals import environment, events
from tarmac.terminals.execution import Execution
from tarmac.terminals.open import new_id
from tarmac.terminals.process.processes import Process
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Ending
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.terminal import NewTerminal, Terminal

ANSWERS: Final = 10.0  # seconds that the editor has for an answer
AFTER_KILL: Final = 3.0  # and to tell that what it killed has ended
FIRST_LOOK, LATER_LOOKS = 0.3, 2.0  # seconds between two looks at a running command's output
LINGER: Final = 1.0  # seconds that one whose command has ended can still be read as an open one
NOTE: Final = "it ran by itself in a terminal of the editor: `cd` and variables do not last"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+-]+")


class EditorTerminal(Terminal):
    """For one command. `shown` is told the editor's id of it."""

    provider = "editor"

    def __init__(
        self, peer: RpcPeer, session: TaskId, *, cwd: Path, settings: Settings, shown: Callable[[str], None]
    ) -> None:
        super().__init__(NewTerminal(cwd=cwd, settings=settings, task=session), id=new_id())
        self.shell = find_shell(None)  # for which it was judged
        self._peer, self._session, self._shown = peer, session, shown
        self._theirs: str | None = None  # its id at the editor
        self._folder: Path | None = None
        self._watching: asyncio.Task[None] | None = None
        self._lingering: asyncio.Task[None] | None = None
        self._killed = 0.0  # when
        self._fed = ""  # what the command has printed, as far as we have it
        self._truncated = False

    async def open(self) -> None:
        """There is nothing to open before its command."""

    # The command

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        if self._numbers:
            raise BadRequest("a terminal of the editor runs one command", hint="open another one")
        self.cwd = cwd or check_directory(self.cwd)
        creating = asyncio.ensure_future(self._ask("terminal/create", self._wanted(data), timeout=ANSWERS))
        try:
            created = await asyncio.shield(creating)
        except asyncio.CancelledError:  # it may begin all the same: then it must end
            await asyncio.wait([creating], timeout=AFTER_KILL)
            if creating.done() and not creating.cancelled() and creating.exception() is None:
                self._theirs = _id_of(creating.result())
            raise
        self._theirs = _id_of(created)
        if self._theirs is None:
            raise ToolFailed("The editor opened a terminal and did not say which: nothing is known of the command.")
        self._shown(self._theirs)
        execution = self._new_execution(command, notes=(NOTE,))
        execution.begin()
        self._watching = asyncio.create_task(self._watch(execution))
        return execution

    def _wanted(self, data: bytes) -> dict[str, object]:
        """Two plain words, the shell and a file: editors differ in whether a shell reads what they are given."""
        self._folder = scratch_dir(os.environ)
        file = self._folder / "command"
        file.write_bytes(data + b"\n")
        for word in (self.shell.path, str(file)):
            if not _PLAIN.fullmatch(word):
                raise ToolFailed(f"The editor's terminals can't be used: {word!r} is not a plain path (TMPDIR?).")
        secret = [
            name
            for name in os.environ
            if any(fnmatchcase(name, each) for each in self.settings.secret_variables) and name.isidentifier()
        ]
        env = {**environment.QUIET, **dict.fromkeys(secret, ""), **self.settings.environment}
        return {
            "command": self.shell.path,
            "args": [str(file)],
            "cwd": str(self.cwd),
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "outputByteLimit": self.settings.output_memory,
        }

    async def _watch(self, execution: Execution) -> None:
        """Follow it to its end, look at its output meanwhile; then it is of no more use."""
        ending: Ending
        waiting = asyncio.ensure_future(self._ask("terminal/wait_for_exit", {}, timeout=None))
        try:
            pause = FIRST_LOOK
            while not (await asyncio.wait([waiting], timeout=pause))[0]:
                if self._killed and time.monotonic() > self._killed + AFTER_KILL:
                    break
                await self._look(execution)
                pause = min(pause * 1.5, LATER_LOOKS)
            known = waiting.done() and waiting.exception() is None
            told = "" if known else "the editor does not tell whether it has ended"
            if waiting.done() and (error := waiting.exception()) is not None:
                told = f"the editor does not tell how it ended: {error}"
            await self._look(execution, last=True)
            ending = self._ending(execution, waiting.result() if known else None, told)
        except asyncio.CancelledError:
            ending = self._ending(execution, None, "its terminal was closed before it had ended")
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        execution.finish(ending)
        self._finished_execution(execution)
        if not self.closed:
            self._lingering = asyncio.create_task(self._linger())

    async def _linger(self) -> None:
        await asyncio.sleep(LINGER)
        await self.aclose()

    def _ending(self, execution: Execution, status: object, told: str) -> Ending:
        notes = [told] if told else []
        code, signal_told = exit_of(status)
        if signal_told:
            notes.append(f"it was ended by {signal_told}")
        if self._truncated:
            notes.append("the editor kept only the last part of what it printed")
        reason = execution.cause or ("done" if not told else "terminal closed")
        return Ending(
            reason=reason, evidence="unknown" if told else "told", cwd=self.cwd, exit_code=code, notes=tuple(notes)
        )

    async def _look(self, execution: Execution, *, last: bool = False) -> None:
        """Take in what is new. A screen that is drawn anew is taken in as a whole, at the end."""
        try:
            found = await self._ask("terminal/output", {}, timeout=ANSWERS)
        except TarmacError as error:
            if last:
                execution.notes.append(f"the editor does not tell its output: {error}")
            return
        text = found.get("output") if isinstance(found, dict) else None
        if not isinstance(text, str):
            return
        self._truncated = isinstance(found, dict) and found.get("truncated") is True
        if text.startswith(self._fed):
            new, self._fed = text[len(self._fed) :], text
        elif last:
            new = f"\n[all of it, as the editor shows it:]\n{text}"
        else:
            return
        if new:
            data = new.encode("utf-8", "replace")
            execution.feed(data)
            self._wrote(data)

    async def _ask(self, method: str, params: dict[str, object], *, timeout: float | None) -> object:
        """A request about this terminal; every failure is one of ours."""
        ours = {} if self._theirs is None else {"terminalId": self._theirs}
        try:
            return await self._peer.request(method, {"sessionId": self._session, **ours, **params}, timeout=timeout)
        except TimeoutError:
            raise PeerGone(f"the editor did not answer {method} within {timeout:g} s") from None

    # What can be done with it

    @property
    def held(self) -> bool:
        return False

    @property
    def has_jobs(self) -> bool:
        return False

    @property
    def quality(self) -> str:
        return "none"

    async def type(self, data: bytes | str) -> None:
        raise InputClosed("only the person can type in a terminal of the editor")

    async def reset(self, cwd: Path) -> None:
        """Nothing lasts here."""

    async def environment(self) -> dict[str, str | None]:
        return {}

    def tree(self, *, own: bool) -> set[Process]:
        return set()  # they are the editor's

    def send_input(self, execution: Execution, data: bytes) -> None:
        raise InputClosed("only the person can type in a terminal of the editor", hint="ask them to, or end it")

    def close_input(self, execution: Execution) -> None:
        """It has none of ours."""

    def waiting(self, execution: Execution) -> Waiting | None:
        return None  # nobody can tell from here

    async def interrupt(self, execution: Execution) -> None:
        """The protocol knows no Ctrl-C."""
        await self.kill(execution)

    async def kill(self, execution: Execution) -> None:
        """The editor ends it; after a while we no longer wait for its word."""
        self._killed = self._killed or time.monotonic()
        try:
            await self._ask("terminal/kill", {}, timeout=AFTER_KILL)
        except TarmacError:
            pass
        if not await execution.ended(2 * AFTER_KILL) and self._watching is not None:
            self._watching.cancel()
            await execution.ended(AFTER_KILL)

    async def aclose(self) -> None:
        if self._lingering is not None and self._lingering is not asyncio.current_task():
            self._lingering.cancel()
        await super().aclose()

    async def _close(self) -> None:
        execution = self.current
        if execution is not None:
            execution.cause = execution.cause or "terminal closed"
            await self.kill(execution)
        if self._theirs is not None:
            try:
                await self._ask("terminal/release", {}, timeout=AFTER_KILL)
            except TarmacError:
                pass
        if self._folder is not None:
            remove_scratch(self._folder)
        self.spools.clear()
        self._emit(events.TerminalClosedEvent(at=time.monotonic(), terminal=self.id, reason="closed"))


def _id_of(created: object) -> str | None:
    id = created.get("terminalId") if isinstance(created, dict) else None
    return id if isinstance(id, str) and id else None


def exit_of(status: object) -> tuple[int | None, str]:
    """PURE: an exit code as shells tell it, and the signal's name where it has no number here."""
    found = status if isinstance(status, dict) else {}
    code, name = found.get("exitCode"), found.get("signal")
    if isinstance(name, str) and name:
        plain = name.upper().removeprefix("SIG")
        number = signal.Signals.__members__.get(f"SIG{plain}")
        if number is None and plain.isdecimal() and 0 < int(plain) < 65:
            return 128 + int(plain), ""
        return (128 + number, "") if number is not None else (None, name[:40])
    if isinstance(code, int) and not isinstance(code, bool) and 0 <= code < 1 << 32:
        return code, ""
    return None, ""
