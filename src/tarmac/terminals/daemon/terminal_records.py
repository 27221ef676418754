"""The stored facts about a terminal and its commands, so that another program can continue with them.

    terminal.json   one TerminalRecord: the shell, its nonce, its folder; written when a shell starts
    commands        one record for each start (CommandRecord) and each end (EndRecord)

A start is written before the command goes to the shell. An end may be written a moment later. A program that attaches
in between reads the end from the journal. Only the owner can read these files, because the nonce is a secret.

A record of `commands` is `length u32 · kind u8 · numbers · texts, with NUL between them`. As JSON it would take a fifth
of a round trip. A reader skips kinds that it does not know. A kill can tear the last record. The next program cuts it
off before it writes.
"""

import errno
import json
import os
import struct
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, Self

from tarmac.errors import StateUnavailable

MOST_RECORDS = 2000  # then only the last are kept
KEPT_COMMANDS = 50
_HEAD = struct.Struct("<IB")
_START = struct.Struct("<IBBIQddq")  # head; flags, number, offset, began, started_at, typed_line
_END = struct.Struct("<IBBIQdQq")  # head; flags, number, offset, duration, output_bytes, exit_code
_NONE = -(1 << 62)  # in the place of a number that is not there


class RecordKind(IntEnum):
    START = 1
    END = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalRecord:
    """A terminal, and the shell that it has now. It is stored as a JSON object. Unknown fields are ignored."""

    id: str
    name: str
    task: str | None
    origin: str
    cookie: str
    shell: str  # its path
    cwd: str
    nonce: str
    folder: str  # of the shell's private files
    pid: int  # of the shell; in a sandbox, of the one inside
    spools: str = ""  # the folder of its output; it is named by the cookie of the first shell
    version: str = ""
    wrapped: bool = False  # it runs in a sandbox
    adopted: str = ""  # how the shell was started that start-up files put in the place of ours
    prompt_call: str = ""  # the system call in which it waits for its next line
    companions: list[list[int]] = field(default_factory=list)  # pid and start of what start-up files left running
    created: float = field(default_factory=time.time)
    sessions: list[str] = field(default_factory=list)  # those it was associated with
    changed: dict[str, str | None] | None = None  # what its commands changed in the environment, without secrets

    def as_json(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Self:
        names = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in found.items() if name in names})


class CommandRecord(NamedTuple):
    """A command that is about to be given to the shell, or that a person has run in it."""

    number: int
    command: str
    offset: int  # of the journal
    cwd: str
    by_person: bool = False  # stored when it has ended; until the next command the journal tells it, too
    move: str = ""
    internal: bool = False
    began: float = 0.0  # time.time()
    started_at: float = 0.0  # time.monotonic(), which is the machine's
    typed_line: int | None = None  # it is typed as it is, and this is its line in the shell's count
    traced: bool = False
    fresh: bool = False
    jobs: bool = False  # something has run in the background

    def encode(self) -> bytes:
        number, command, offset, cwd, by_person, move, internal, began, started_at, typed, traced, fresh, jobs = self
        flags = by_person | internal << 1 | traced << 2 | fresh << 3 | jobs << 4
        texts = f"{cwd}\0{move}\0{command}".encode("utf-8", "surrogateescape")
        line = _NONE if typed is None else typed
        size = _START.size + len(texts)
        return _START.pack(size, RecordKind.START, flags, number, offset, began, started_at, line) + texts

    @classmethod
    def decode(cls, data: bytes) -> Self:
        _, _, flags, number, offset, began, started_at, line = _START.unpack_from(data)
        cwd, move, command, *_ = _texts(data[_START.size :])
        return cls(
            number=number,
            command=command,
            offset=offset,
            cwd=cwd,
            by_person=bool(flags & 1),
            move=move,
            internal=bool(flags & 2),
            began=began,
            started_at=started_at,
            typed_line=None if line == _NONE else line,
            traced=bool(flags & 4),
            fresh=bool(flags & 8),
            jobs=bool(flags & 16),
        )


class EndRecord(NamedTuple):
    """How a command ended."""

    number: int
    reason: str
    evidence: str
    cwd: str
    offset: int = 0  # of the journal
    exit_code: int | None = None
    pipestatus: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    output_bytes: int = 0
    by_person: bool = False
    duration: float = 0.0

    def encode(self) -> bytes:
        number, reason, evidence, cwd, offset, exit_code, pipestatus, notes, output_bytes, by_person, duration = self
        statuses = " ".join(map(str, pipestatus)) if len(pipestatus) > 1 else ""  # else the exit code says it
        texts = f"{reason}\0{evidence}\0{cwd}\0{statuses}\0".encode("utf-8", "surrogateescape")
        if notes:
            texts += "\0".join(notes).encode("utf-8", "surrogateescape")
        code = _NONE if exit_code is None else exit_code
        size = _END.size + len(texts)
        return _END.pack(size, RecordKind.END, by_person, number, offset, duration, output_bytes, code) + texts

    @classmethod
    def decode(cls, data: bytes) -> Self:
        _, _, flags, number, offset, duration, output_bytes, code = _END.unpack_from(data)
        reason, evidence, cwd, statuses, *notes = _texts(data[_END.size :])
        return cls(
            number=number,
            reason=reason,
            evidence=evidence,
            cwd=cwd,
            offset=offset,
            exit_code=None if code == _NONE else code,
            pipestatus=tuple(map(int, statuses.split())),
            notes=tuple(each for each in notes if each),
            output_bytes=output_bytes,
            by_person=bool(flags & 1),
            duration=duration,
        )


def _texts(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogateescape").split("\0")


class StoredCommand(NamedTuple):
    """A command as the file tells it; `end` is None when its program did not come to store one."""

    start: CommandRecord
    end: EndRecord | None


class Records:
    """The stored facts of one terminal, for the program that has it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fd = -1
        self._count = 0

    def store(self, record: TerminalRecord) -> None:
        """Put it in the place of the one before. StateUnavailable: the disk does not take it."""
        try:
            _replace(self._folder / "terminal.json", json.dumps(record.as_json()).encode())
        except OSError as error:
            raise _unavailable(error) from error

    def append(self, *records: CommandRecord | EndRecord) -> None:
        """Add facts, in one write."""
        try:
            if self._fd < 0:
                self._open()
            _write(self._fd, b"".join([each.encode() for each in records]))
            self._count += len(records)
            if self._count > MOST_RECORDS:
                self._shorten()
        except OSError as error:
            self.close()  # half a record would hide those after it: it is cut off when the file is opened again
            raise _unavailable(error) from error

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._folder / "commands", flags, 0o600)
        kept = list(_split(_read(self._folder)))
        self._count = len(kept)
        os.ftruncate(self._fd, sum(map(len, kept)))

    def _shorten(self) -> None:
        kept = deque(_split(_read(self._folder)), maxlen=2 * KEPT_COMMANDS)
        _replace(self._folder / "commands", b"".join(kept))
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _unavailable(error: OSError) -> StateUnavailable:
    return StateUnavailable(f"cannot store what another program needs: {error.strerror}")


def read_terminal(folder: Path) -> TerminalRecord | None:
    """The stored terminal; None when there is none, or no sense in it."""
    try:
        return TerminalRecord.of_json(json.loads((folder / "terminal.json").read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def read_commands(folder: Path) -> list[StoredCommand]:
    """The last stored commands, oldest first. A record that was torn by a kill is left out."""
    found: dict[int, StoredCommand] = {}
    for data in deque(_split(_read(folder)), maxlen=2 * KEPT_COMMANDS):
        with suppress(ValueError):  # garbage
            match data[_HEAD.size - 1]:
                case RecordKind.START:
                    start = CommandRecord.decode(data)
                    found[start.number] = StoredCommand(start, None)
                case RecordKind.END:
                    end = EndRecord.decode(data)
                    if end.number in found:
                        found[end.number] = StoredCommand(found[end.number].start, end)
    return list(found.values())


def _read(folder: Path) -> bytes:
    try:
        return (folder / "commands").read_bytes()
    except OSError:
        return b""


def _split(data: bytes) -> Iterator[bytes]:
    """The whole records. What comes after the first that is not whole is of no use."""
    at = 0
    smallest = {RecordKind.START: _START.size, RecordKind.END: _END.size}
    while at + _HEAD.size <= len(data):
        size, kind = _HEAD.unpack_from(data, at)
        if size < smallest.get(kind, _HEAD.size) or at + size > len(data):
            return
        yield data[at : at + size]
        at += size


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(path.name + ".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _write(fd, data)
    finally:
        os.close(fd)
    new.rename(path)


def _write(fd: int, data: bytes) -> None:
    """All of it, or OSError."""
    if os.write(fd, data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
