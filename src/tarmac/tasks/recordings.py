"""Record the terminals of tasks with times: one asciicast file (version 2) a terminal, beside the task's log.

pool ─events→ Recordings ─every 50 ms at most→ tasks/ID/recordings/t1-….cast → the replay of the page, `asciinema play`

The bytes come from the tape. Of output that comes faster than 64 KiB in 50 ms only the end is recorded, and the
recording says how much is missing. So recording costs a fast command nothing.
"""

import asyncio
import codecs
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tarmac.errors import TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.tasks.log.reader import LOG, RECORDINGS
from tarmac.terminals import events
from tarmac.terminals.output.tape import Printed, Resized
from tarmac.terminals.terminal import Terminal

FRAME: Final = 0.05  # seconds: what is printed within has one time
MOST_IN_A_FRAME: Final = 64 << 10
MOST: Final = 8 << 20  # bytes of one recording
LONGEST_PROMPT: Final = 4096
_NO_NAME: Final = re.compile(r"[^\w.-]")


class Recordings:
    """Those of one pool's terminals. `tasks` is the folder with the tasks' folders."""

    def __init__(self, tasks: Path, terminal: Callable[[str], Terminal]) -> None:
        self._tasks = tasks
        self._terminal = terminal
        self._open: dict[TerminalId, _Recording] = {}

    def heard(self, event: events.TerminalEvent) -> None:
        """What the terminals tell."""
        id = event.terminal
        match event:
            case events.DataWritten():
                if (recording := self._open.get(id)) is not None:
                    recording.soon()
            case events.CommandStarted(command=command):
                try:
                    terminal = self._terminal(id)
                except TerminalNotFound:  # it is just being opened
                    return
                recording = self._open.get(id)
                if recording is not None and recording.task != terminal.task:
                    self._end(id)
                    recording = None
                if recording is None and (recording := self._begin(terminal)) is None:
                    return
                recording.mark(command)
            case events.TerminalClosedEvent():
                self._end(id)

    def close(self) -> None:
        """Write what is left."""
        for id in list(self._open):
            self._end(id)

    def _begin(self, terminal: Terminal) -> "_Recording | None":
        folder = self._tasks / (terminal.task or "")
        if terminal.task is None or not (folder / LOG).exists():  # a client of MCP has terminals, but no log
            return None
        self._open[terminal.id] = _Recording(terminal, TaskId(terminal.task), folder / RECORDINGS)
        return self._open[terminal.id]

    def _end(self, id: TerminalId) -> None:
        if (recording := self._open.pop(id, None)) is not None:
            recording.flush()


class _Recording:
    """One terminal while it belongs to one task."""

    def __init__(self, terminal: Terminal, task: TaskId, folder: Path) -> None:
        self.task = task
        self._terminal = terminal
        self._begun = time.time()
        self._path = folder / f"{_NO_NAME.sub('_', terminal.id)}-{self._begun * 1000:.0f}.cast"
        tape = terminal.tape
        line = tape.read(max(tape.start, tape.end - LONGEST_PROMPT), tape.end)
        self._offset = tape.end - len(line) + line.rfind(b"\n") + 1  # with the prompt
        self._size = tape.size
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timer: asyncio.TimerHandle | None = None
        self._since = self._begun  # when the first byte that is not written came
        self._bytes = 0
        self._over = False  # it is full, or the disk is
        header = {
            "version": 2,
            "width": self._size[1],
            "height": self._size[0],
            "timestamp": int(self._begun),
            "title": terminal.id,
        }
        self._write([header])

    def soon(self) -> None:
        """Something was printed."""
        if self._timer is None and not self._over:
            self._since = time.time()
            self._timer = asyncio.get_running_loop().call_later(FRAME, self.flush)

    def mark(self, command: str) -> None:
        """A command begins."""
        self.flush()
        self._write([self._event("m", command)])

    def flush(self) -> None:
        """Write what was printed since."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._over or self._terminal.task not in (self.task, None):  # None: it was just released
            return
        tape, found = self._terminal.tape, list[object]()
        start = max(self._offset, tape.start, tape.end - MOST_IN_A_FRAME)
        if start > self._offset:
            start += tape.read(start, tape.end).find(b"\n") + 1
            found.append(self._event("o", f"\x18\x1b[0m\r\n[{start - self._offset:,} bytes are not recorded]\r\n"))
        for piece in tape.pieces(start):
            match piece:
                case Printed(data=data):
                    if text := self._decoder.decode(data):
                        found.append(self._event("o", text))
                case Resized(rows=rows, columns=columns) if (rows, columns) != self._size:
                    self._size = rows, columns
                    found.append(self._event("r", f"{columns}x{rows}"))
        self._offset, self._since = tape.end, time.time()
        self._write(found)

    def _event(self, kind: str, data: str) -> list[object]:
        return [round(self._since - int(self._begun), 3), kind, data]

    def _write(self, found: list[object]) -> None:
        if self._over or not found:
            return
        data = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in found).encode("utf-8", "replace")
        self._bytes += len(data)
        if self._bytes > MOST:
            self._over = True
            data = (json.dumps(self._event("m", "the recording is full")) + "\n").encode()
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        except OSError:  # no room, or the task was deleted: the terminal must not suffer
            self._over = True


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """One recording of a task."""

    name: str
    bytes: int


def recordings_of(task: Path) -> list[RecordingFile]:
    """Those in a task's folder, oldest first."""
    try:
        with os.scandir(task / RECORDINGS) as entries:
            found = [(each.name, each.stat()) for each in entries if each.name.endswith(".cast")]
    except OSError:
        return []
    begun = {name: int(name.removesuffix(".cast").rpartition("-")[2]) for name, _ in found}
    return [RecordingFile(name, about.st_size) for name, about in sorted(found, key=lambda each: begun[each[0]])]


def read_recording(task: Path, name: str) -> bytes | None:
    """The file, if the task has one of that name."""
    if name not in {each.name for each in recordings_of(task)}:
        return None
    return (task / RECORDINGS / name).read_bytes()
