"""All that commands printed, as resources: `tarmac://terminals/t3/2` is what command 2 in terminal t3 printed."""

import asyncio
import re
from pathlib import Path
from typing import Final

from tarmac.dataclass import dataclass
from tarmac.errors import BadRequest
from tarmac.terminals.execution import Execution
from tarmac.terminals.terminal import Terminal
from tarmac.tools import terminals
from tarmac.tools.command import short
from tarmac.tools.tool import Bench
from tarmac.vt.fold import show_invisibles
from tarmac.vt.text import clean

ROOT: Final = "tarmac://"
TEMPLATES: Final = {
    "tarmac://terminals/{id}/{number}": "All that one command printed in a terminal",
    "tarmac://terminals/{id}": "All that the last command printed in a terminal",
}
MOST_BYTES: Final = 4 << 20  # of one reading; of more the end is given, and said
MOST_KEPT: Final = 100  # outputs of commands that ran without a terminal
_TERMINAL = re.compile(r"tarmac://terminals/([^/]+)(?:/(\d+))?")
_LOOSE = re.compile(r"tarmac://outputs/(\d+)")


@dataclass(frozen=True, slots=True)
class Listed:
    """One that can be read."""

    uri: str
    name: str
    size: int


class Outputs:
    """What can be read in one workspace."""

    def __init__(self) -> None:
        self._loose: dict[int, tuple[str, Path]] = {}  # of commands without a terminal: line, file
        self._count = 0

    def keep(self, command: str, path: Path) -> str:
        """Remember where a longer output is; its URI."""
        self._count += 1
        self._loose[self._count] = (command, path)
        self._loose.pop(self._count - MOST_KEPT, None)
        return f"{ROOT}outputs/{self._count}"

    def listing(self, bench: Bench) -> list[Listed]:
        """All there is now, oldest first."""
        found = [
            Listed(uri_of(terminal, each), f"{terminal.id}: {short(each.command)}", each.output_bytes)
            for terminal in terminals.visible_to(bench)
            for each in terminal.executions
            if each.output_bytes
        ]
        for number, (command, path) in self._loose.items():
            if path.exists():
                found.append(Listed(f"{ROOT}outputs/{number}", short(command), path.stat().st_size))
        return found

    async def read(self, bench: Bench, uri: str) -> str:
        """The text behind a URI. BadRequest, ToolFailed when there is none."""
        if loose := _LOOSE.fullmatch(uri):
            command, path = self._loose.get(int(loose[1]), ("", Path()))
            if not command or not path.exists():
                raise BadRequest(f"there is no output {uri} any more")
            return await asyncio.to_thread(_file, path)
        wanted = _TERMINAL.fullmatch(uri)
        if wanted is None:
            raise BadRequest(f"there is no resource {uri}", hint="resources/list shows those there are")
        terminal = terminals.readable(bench, wanted[1])
        number = int(wanted[2]) if wanted[2] else None
        execution = next((each for each in reversed(terminal.executions) if number in (None, each.number)), None)
        if execution is None:
            raise BadRequest(f"terminal {terminal.id} has no command {number} to read")
        return await asyncio.to_thread(_printed, execution)


def uri_of(terminal: Terminal, execution: Execution) -> str:
    return f"{ROOT}terminals/{terminal.id}/{execution.number}"


def _printed(execution: Execution) -> str:
    total = execution.output_bytes
    first = max(total - MOST_BYTES, 0)
    data, offset = b"", first
    while offset < total:
        start, piece = execution.spool.read(offset, 1 << 20)
        if not piece:
            break
        data += piece
        offset = start + len(piece)
    return _text(data, left_out=total - len(data))


def _file(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - MOST_BYTES, 0))
        return _text(file.read(MOST_BYTES), left_out=max(size - MOST_BYTES, 0))


def _text(data: bytes, *, left_out: int) -> str:
    notice = f"[the first {left_out:,} bytes are left out]\n" if left_out else ""
    return notice + show_invisibles(clean(data))
