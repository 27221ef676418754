"""Wait until something happens in a terminal: a command ends, prints, asks, falls quiet, or listens on a port.

waiting_for(terminal, pattern=…, port=…) → the terminal's events ring → which of them came first, with the evidence

The caller polls nothing. Output, ends and questions come as events; only for ports the kernel's table is looked at
again and again, as it tells nobody.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, TypedDict, Unpack

from tarmac.errors import BadRequest, TerminalClosed
from tarmac.events import TerminalId
from tarmac.terminals import events
from tarmac.terminals.bell import HEARTBEAT, Bell, stopped_since
from tarmac.terminals.process.processes import read
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.settings import check_timeout
from tarmac.vt.text import LiveText

if TYPE_CHECKING:
    from tarmac.terminals.execution import Execution, Runner


What = Literal["ended", "pattern", "input", "quiet", "port", "closed", "timeout"]

KEPT = 8 << 10  # characters that were searched in vain: a match may begin in them
MOST_OUTPUT = 256 << 10  # of what was printed before
SETTLE = 0.05  # a match at the very end of the output may still grow
PORTS_SOON, PORTS_SELDOM = 0.05, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """What came first, and the evidence for it."""

    what: What
    terminal: TerminalId
    after: float  # seconds
    match: re.Match[str] | None = field(default=None, compare=False)  # of `pattern`
    waiting: Waiting | None = None  # of `input`: what is wanted, and the question
    port: int | None = None
    pid: int | None = None  # who listens there
    exit_code: int | None = None  # of `ended`
    reason: str = ""

    @property
    def text(self) -> str:
        """What matched, or what is asked."""
        if self.match is not None:
            return self.match.group()
        return self.waiting.prompt if self.waiting else ""


class Conditions(TypedDict, total=False):
    """What may be waited for. With none of them: the end of the command."""

    ended: bool  # the command ends [true]; false goes on waiting for what it left in the background
    pattern: str | re.Pattern[str]  # its clean output matches, from its beginning on
    input: bool  # it wants somebody to type
    secrets: bool  # of `input`: a secret counts too [true]
    quiet: float  # nothing was printed for so many seconds
    port: int | bool  # it listens on this port, or on any
    timeout: float | None  # [30 s]


async def waiting_for(
    terminal: "Runner", execution: "Execution | None" = None, **conditions: Unpack[Conditions]
) -> Happened:
    """Wait for the first of `conditions`, in this execution, or in what runs in the terminal now."""
    with _Watch(terminal, execution, conditions) as watch:
        return await watch.first()


async def first_of(
    terminals: Iterable[tuple["Runner", "Execution | None"]], **conditions: Unpack[Conditions]
) -> Happened:
    """The first of `conditions` that comes true in any of these terminals, each with what ran in it."""
    each = [asyncio.ensure_future(waiting_for(terminal, running, **conditions)) for terminal, running in terminals]
    if not each:
        raise BadRequest("there is no terminal to wait for", hint="open one, or name one")
    try:
        done, _ = await asyncio.wait(each, return_when=asyncio.FIRST_COMPLETED)
        return min((task.result() for task in done), key=lambda happened: happened.after)
    finally:
        for task in each:
            task.cancel()
        await asyncio.gather(*each, return_exceptions=True)


class _Watch:
    """One wait, from its beginning to its end."""

    def __init__(self, terminal: "Runner", execution: "Execution | None", wanted: Conditions) -> None:
        if terminal.closed:
            raise TerminalClosed(f"terminal {terminal.id} is closed", hint="open another one")
        self._terminal = terminal
        self._execution = execution or terminal.current
        self._pattern = _compiled(wanted.get("pattern"))
        self._input = wanted.get("input", False)
        self._secrets = wanted.get("secrets", True)
        self._quiet = wanted.get("quiet")
        self._port = _port(wanted.get("port"))
        self._limit = wanted.get("timeout", 30.0)
        check_timeout(self._limit)
        check_timeout(self._quiet, "quiet")
        others = self._pattern or self._input or self._quiet is not None or self._port is not None
        # Where nothing runs, its end is no news: what it left in the background may still do the rest.
        self._ended = wanted.get("ended", True) and (self._execution is not None or not others)
        if not (others or self._ended):
            raise BadRequest("there is nothing to wait for", hint="pattern=, input=, quiet=, port= or ended=True")
        self._since = time.monotonic()
        self._printed = self._since if self._execution is None else self._execution.last_output
        self._live = LiveText()
        self._text = ""
        self._asks = True  # look once at the beginning, then when told
        self._closed = False
        self._ports_at, self._ports_pause = self._since, PORTS_SOON
        self._bell = Bell()
        self._unsubscribe: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        if self._pattern is not None:
            self._text = self._live.feed(printed_so_far(self._terminal, self._execution))
        self._unsubscribe = self._terminal.subscribe(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        self._unsubscribe()

    def _hear(self, event: events.TerminalEvent) -> None:
        match event:
            case events.DataWritten(data=data):
                self._printed = event.at
                if self._pattern is not None:
                    self._text += self._live.feed(data)
                elif self._quiet is None:
                    return
            case events.AwaitingInput():
                self._asks = True
            case events.TerminalClosedEvent():
                self._closed = True
            case events.CommandFinished():
                pass
            case _:
                return
        self._bell.ring()

    async def first(self) -> Happened:
        while True:
            now = time.monotonic()
            if happened := self._look(now):
                return happened
            pause = self._pause(now)
            await self._bell.wait(pause)
            if stopped := stopped_since(now + pause):
                self._since += stopped
                self._printed += stopped

    def _look(self, now: float) -> Happened | None:
        ended = self._execution is None or self._execution.ending is not None
        return (
            self._matched(now, final=ended and self._ended)
            or (self._happened("ended") if ended and self._ended else None)
            or self._listens(now)
            or self._wants_input()
            or (self._happened("closed") if self._closed else None)
            or self._silent(now)
            or (self._happened("timeout") if self._limit is not None and now >= self._since + self._limit else None)
        )

    def _pause(self, now: float) -> float:
        """Until when nothing can happen that nobody would tell us; no longer than until the next look at the clock."""
        times = [now + HEARTBEAT]
        if self._limit is not None:
            times.append(self._since + self._limit)
        if self._quiet is not None:
            times.append(self._printed + self._quiet)
        if self._port is not None:
            times.append(self._ports_at)
        if self._pattern is not None and now < self._printed + SETTLE:
            times.append(self._printed + SETTLE)
        return max(min(times) - now, 0.001)

    def _happened(
        self,
        what: What,
        *,
        match: re.Match[str] | None = None,
        waiting: Waiting | None = None,
        port: int | None = None,
        pid: int | None = None,
    ) -> Happened:
        ending = self._execution.ending if self._execution is not None else None
        return Happened(
            what=what,
            terminal=self._terminal.id,
            after=time.monotonic() - self._since,
            match=match,
            waiting=waiting,
            port=port,
            pid=pid,
            exit_code=ending.exit_code if ending else None,
            reason=ending.reason if ending else "",
        )

    def _matched(self, now: float, *, final: bool) -> Happened | None:
        found = self._pattern.search(self._text) if self._pattern is not None else None
        if found is None:
            self._text = self._text[-KEPT:]
            return None
        grows = found.end() == len(self._text) and now < self._printed + SETTLE and not final
        return None if grows else self._happened("pattern", match=found)

    def _listens(self, now: float) -> Happened | None:
        if self._port is None or now < self._ports_at:
            return None
        self._ports_at = now + self._ports_pause
        self._ports_pause = min(self._ports_pause * 1.3, PORTS_SELDOM)
        anybody = self._port is True
        tree = self._terminal.tree(own=anybody)
        found = listening([each.pid for each in tree], port=None if self._port is True else self._port)
        for port, pid in sorted(found.items()):
            return self._happened("port", port=port, pid=pid)
        return None

    def _wants_input(self) -> Happened | None:
        if not (self._input and self._asks) or self._execution is None:
            return None
        self._asks = False
        seen = self._execution.waiting
        if seen is None or (seen.wants == "secret" and not self._secrets):
            return None
        return self._happened("input", waiting=seen)

    def _silent(self, now: float) -> Happened | None:
        if self._quiet is None or now < self._printed + self._quiet:
            return None
        return self._happened("quiet")


def printed_so_far(terminal: "Runner", execution: "Execution | None") -> bytes:
    """What a command has printed; without one, what came after the last one was given to the terminal."""
    if execution is not None:
        if not execution.output_bytes:
            return b""
        spool = execution.spool
        _, data = spool.read(max(spool.start, spool.end - MOST_OUTPUT), MOST_OUTPUT)
        return data
    return terminal.written_since_last_command()


def _compiled(pattern: str | re.Pattern[str] | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, re.MULTILINE) if isinstance(pattern, str) else pattern
    except re.error as error:
        raise BadRequest(f"{pattern!r} is not a pattern: {error}", hint="re.escape() makes one of any text") from error


def _port(port: int | bool | None) -> int | Literal[True] | None:
    if port is None or port is False:
        return None
    if port is True:
        return True
    if not 0 < port < 65536:
        raise BadRequest(f"there is no port {port}")
    return port


# ruff: noqa: PTH208
# (many names in /proc: a Path would cost more than reading them)


_LISTENING = b" 0A "


def listening(pids: Iterable[int], *, port: int | None = None) -> dict[int, int]:
    """The ports (or that one port) that these processes listen on, each with the pid of one that does."""
    networks: dict[str, list[int]] = {}
    for pid in sorted(pids):
        networks.setdefault(_network(pid), []).append(pid)
    found: dict[int, int] = {}
    for members in networks.values():
        sockets = _sockets(members, port)
        for pid in members if sockets else ():
            for inode in _inodes(pid):
                if inode in sockets:
                    found.setdefault(sockets[inode], pid)
    return found


def _network(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _sockets(members: list[int], port: int | None) -> dict[bytes, int]:
    """The listening sockets of a network, by inode. Any of its members that still lives can tell."""
    found: dict[bytes, int] = {}
    for table in ("tcp", "tcp6"):
        for pid in members:
            try:
                lines = read(f"/proc/{pid}/net/{table}").splitlines()
            except OSError:
                continue
            for line in lines[1:]:
                if _LISTENING in line:
                    fields = line.split()
                    number = int(fields[1].rpartition(b":")[2], 16)
                    if port is None or number == port:
                        found[fields[9]] = number
            break
    return found


def _inodes(pid: int) -> Iterable[bytes]:
    """The inodes of a process's sockets."""
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for fd in fds:
        try:
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if link.startswith("socket:["):
            yield link[8:-1].encode()
