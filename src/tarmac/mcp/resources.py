"""Outputs and screens as resources: `tarmac://terminals/t3/2` is what command 2 in terminal t3 printed.

`tarmac://terminals/t3/screen` is what terminal t3 shows now.
What is longer than one reading is read on with `?from=BYTES`; each reading says where the next begins.

events of terminals ─→ ResourceChanges ─at most once a second for each terminal→ listener(address) …

The first change after a pause is told at once, and the last one of a second is never lost.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tarmac.errors import BadRequest, ToolFailed
from tarmac.events import TerminalId
from tarmac.policy.visible import shortened
from tarmac.terminals import events
from tarmac.terminals.execution import Execution
from tarmac.terminals.terminal import Terminal
from tarmac.tools import terminal_access, terminal_status
from tarmac.tools.execute_command import short
from tarmac.tools.tool import Bench
from tarmac.vt.fold import show_invisibles
from tarmac.vt.text import clean

ROOT: Final = "tarmac://"
TEMPLATES: Final = {  # name, what it is
    "tarmac://terminals/{id}/{number}{?from}": ("output of a command", "All that one command printed in a terminal"),
    "tarmac://terminals/{id}{?from}": ("output of a terminal", "All that the last command printed in a terminal"),
    "tarmac://terminals/{id}/screen": ("screen of a terminal", "What a terminal shows now, row by row"),
}
MOST_BYTES: Final = 4 << 20  # of one reading; of more the end is given, and how to read the rest is said
MOST_KEPT: Final = 100  # outputs of commands that ran without a terminal, and of terminals that are gone
_TERMINAL = re.compile(r"tarmac://terminals/([^/?]+)(?:/(\d{1,12}))?")
_SCREEN = re.compile(r"tarmac://terminals/([^/?]+)/screen")
_LOOSE = re.compile(r"tarmac://outputs/(\d{1,12})")
_FROM = re.compile(r"from=(\d{1,18})")
Read = Callable[[int, int], tuple[int, bytes]]  # from a byte, so many → where they begin, and they


@dataclass(frozen=True, slots=True)
class ListedOutput:
    """One that can be read."""

    uri: str
    name: str
    size: int | None  # in bytes; of a screen nobody knows


class Outputs:
    """What can be read in one workspace."""

    def __init__(self) -> None:
        self._loose: dict[int, tuple[str, Path]] = {}  # of commands without a terminal: line, file
        self._begun: dict[tuple[str, int], Execution] = {}  # by terminal and number: they outlive their terminals
        self._count = 0

    def begun(self, terminal: Terminal) -> None:
        """A command was started: what it prints can be read when its terminal is closed, too."""
        if terminal.current is not None:
            self._begun[terminal.id, terminal.current.number] = terminal.current
        if len(self._begun) > MOST_KEPT:
            del self._begun[next(iter(self._begun))]

    def keep(self, command: str, path: Path) -> str:
        """Remember where a longer output is; its URI."""
        self._count += 1
        self._loose[self._count] = (command, path)
        self._loose.pop(self._count - MOST_KEPT, None)
        return f"{ROOT}outputs/{self._count}"

    def listing(self, bench: Bench) -> list[ListedOutput]:
        """All there is now, oldest first."""
        found = [
            ListedOutput(uri_of(terminal, each), f"{terminal.id}: {short(each.command)}", each.output_bytes)
            for terminal in terminal_access.visible_to(bench)
            for each in terminal.executions
            if each.output_bytes
        ]
        for terminal in terminal_access.visible_to(bench):
            if terminal.current is not None and terminal.tape.alternate:
                name = f"{terminal.id}: the screen of {short(terminal.current.command)}"
                found.append(ListedOutput(f"{ROOT}terminals/{terminal.id}/screen", name, None))
        for number, (command, path) in self._loose.items():
            if path.exists():
                found.append(ListedOutput(f"{ROOT}outputs/{number}", short(command), path.stat().st_size))
        return found

    def check_known(self, bench: Bench, uri: str) -> None:
        """BadRequest, ToolFailed for a resource that is not there."""
        check_address(uri)
        if screen := _SCREEN.fullmatch(uri):
            terminal_access.own(bench, screen[1])
        elif (terminal := _TERMINAL.fullmatch(uri.partition("?")[0])) and terminal[2]:
            self._execution(bench, terminal[1], int(terminal[2]))
        elif terminal:
            terminal_access.readable(bench, terminal[1])

    async def read(self, bench: Bench, uri: str) -> str:
        """The text behind a URI. BadRequest, ToolFailed when there is none."""
        check_address(uri)
        if screen := _SCREEN.fullmatch(uri):
            return (await terminal_status.screen(terminal_access.own(bench, screen[1]), None, full=True)).output
        bare, _, query = uri.partition("?")
        wanted = _FROM.fullmatch(query)
        terminal, loose = _TERMINAL.fullmatch(bare), _LOOSE.fullmatch(bare)
        first = int(wanted[1]) if wanted else None
        if loose:
            command, path = self._loose.get(int(loose[1]), ("", Path()))
            if not command or not path.exists():
                raise BadRequest(f"there is no output {uri} any more")
            return await asyncio.to_thread(_page, partial(_file, path), path.stat().st_size, first, bare)
        assert terminal is not None
        execution = self._execution(bench, terminal[1], int(terminal[2]) if terminal[2] else None)
        if execution.output_bytes and execution.spool.start == execution.spool.end:  # short, and its terminal is gone
            return show_invisibles((await execution.so_far()).output)
        return await asyncio.to_thread(_page, execution.spool.read, execution.output_bytes, first, bare)

    def _execution(self, bench: Bench, id: str, number: int | None) -> Execution:
        try:
            terminal = terminal_access.readable(bench, id)
        except ToolFailed:
            if number is None or (id, number) not in self._begun:
                raise
            return self._begun[id, number]
        found = next((each for each in reversed(terminal.executions) if number in (None, each.number)), None)
        if found is None:
            raise BadRequest(f"terminal {terminal.id} has no command {number or ''} to read")
        return found


def check_address(uri: str) -> None:
    """BadRequest for an address that can be nobody's, in any workspace."""
    bare, asked, query = uri.partition("?")
    if _SCREEN.fullmatch(uri):
        return
    if not (_TERMINAL.fullmatch(bare) or _LOOSE.fullmatch(bare)) or (asked and not _FROM.fullmatch(query)):
        raise BadRequest(f"there is no resource {shortened(uri, 200)}", hint="resources/list shows those there are")


def uri_of(terminal: Terminal, execution: Execution) -> str:
    return f"{ROOT}terminals/{terminal.id}/{execution.number}"


def _page(read: Read, total: int, first: int | None, uri: str) -> str:
    """One reading: of its end, or from where it was asked for, in whole lines as far as there are any."""
    if first is not None and first > total:
        raise BadRequest(f"{uri} has no more than {total:,} bytes")
    begin = offset = max(total - MOST_BYTES, 0) if first is None else first
    data, kept = b"", None
    while len(data) < MOST_BYTES and offset < total:
        start, piece = read(offset, min(1 << 20, MOST_BYTES - len(data)))
        kept = start if kept is None else kept
        data += piece
        offset = start + len(piece) if piece else total
    if offset < total and (cut := data.rfind(b"\n") + 1):
        offset -= len(data) - cut
        data = data[:cut]
    begin = begin if kept is None else kept
    if begin > (first or 0) and (cut := data.find(b"\n") + 1):  # not where somebody asked to begin: a whole line
        begin, data = begin + cut, data[cut:]
    rows = [show_invisibles(clean(data))]
    if first is None and begin:
        rows.insert(0, f"[the first {begin:,} bytes are left out; {uri}?from=0 begins with what is kept of them]\n")
    elif first is not None and begin > first:
        rows.insert(0, f"[bytes {first:,} to {begin:,} are not kept any more]\n")
    if offset < total:
        rows.append(f"[{total - offset:,} bytes follow: {uri}?from={offset}]\n")
    return "".join(rows)


def _file(path: Path, offset: int, size: int) -> tuple[int, bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        return offset, file.read(size)


EVERY: Final = 1.0  # seconds between two words on one terminal
SOON: Final = 0.05  # seconds until the first one: what is printed together is told together
Listener = Callable[[str], None]


class ResourceChanges:
    """The changes of one workspace. Without listeners nothing is kept."""

    def __init__(self, terminal_of: Callable[[TerminalId], Terminal | None]) -> None:
        """`terminal_of`: the terminal of an id, if the clients of this workspace may see it."""
        self._terminal_of = terminal_of
        self._listeners: list[Listener] = []
        self._changed: dict[TerminalId, set[int]] = {}  # the commands that printed something or ended, not yet told
        self._timers: dict[TerminalId, asyncio.TimerHandle] = {}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the address of each resource that changes. The returned function ends that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
            if not self._listeners:
                self.close()

        return unsubscribe

    def close(self) -> None:
        for each in self._timers.values():
            each.cancel()
        self._timers.clear()
        self._changed.clear()
        self._listeners.clear()

    def heard(self, event: events.TerminalEvent) -> None:
        """Something happened in a terminal."""
        if not self._listeners:
            return
        match event:
            case events.CommandStarted(number=number) | events.CommandFinished(number=number):
                self._change(event.terminal, {number})
            case events.AwaitingInput(number=number):
                self._change(event.terminal, {number})
            case events.DataWritten():
                self._change(event.terminal, None)
            case events.TerminalClosedEvent():  # it is not among the others any more
                self._note(event.terminal, set())

    def _change(self, id: TerminalId, numbers: set[int] | None) -> None:
        terminal = self._terminal_of(id)
        if terminal is None:
            return
        if numbers is None:
            numbers = {terminal.current.number} if terminal.current is not None else set()
        self._note(id, numbers)

    def _note(self, id: TerminalId, numbers: set[int]) -> None:
        self._changed.setdefault(id, set()).update(numbers)
        if id not in self._timers:
            self._timers[id] = asyncio.get_running_loop().call_later(SOON, self._tell, id)

    def _tell(self, id: TerminalId) -> None:
        numbers = self._changed.pop(id, None)
        if numbers is None:  # a whole second without news
            del self._timers[id]
            return
        self._timers[id] = asyncio.get_running_loop().call_later(EVERY, self._tell, id)
        for address in addresses(id, numbers):
            for listener in self._listeners[:]:
                listener(address)


def addresses(id: TerminalId, numbers: set[int]) -> list[str]:
    """The resources that change when these commands print something; without any, the screen alone."""
    terminal = f"tarmac://terminals/{id}"
    printed = [terminal, *(f"{terminal}/{number}" for number in sorted(numbers))] if numbers else []
    return [*printed, f"{terminal}/screen"]
