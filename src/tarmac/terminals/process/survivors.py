"""End what a killed host left running, found by the birthmarks and cookies of its terminals.

Terminals that outlive their program have no host in their cookie, so they are never among them.
"""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from tarmac.paths import state_dir
from tarmac.terminals.process import birthmark
from tarmac.terminals.process.processes import Process, command_line, entries, everyone, look, name
from tarmac.terminals.process.signals import end
from tarmac.terminals.settings import Settings

GRACE = 1.0  # seconds between SIGTERM and SIGKILL
LONGEST = 200  # characters of a command line that are told


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that was left running."""

    pid: int
    command: str
    ended: bool = True  # False: it could not be ended


async def end_survivors(host: int, settings: Settings) -> list[Survivor]:
    """End what the Tarmac with the process id `host` left running, if that one is dead."""
    if look(host) is not None:
        return []
    folder = settings.spool_directory or state_dir(os.environ) / "output"
    marks = {mark for cookie in cookies(folder, host) if (mark := birthmark.of(cookie)) is not None}

    def find() -> set[Process]:
        return {each for each in everyone() if each.pid != os.getpid() and _belongs(each.pid, host, marks)}

    found = {each: _words(each.pid) for each in find()}
    if not found:
        return []
    left = await end(find, grace=GRACE)
    return [
        Survivor(each.pid, words, ended=each not in left)
        for each, words in sorted(found.items(), key=lambda item: item[0].started)
    ]


def cookies(folder: Path, host: int) -> list[str]:
    """The cookies of the terminals that a Tarmac had, by the names of their folders."""
    try:
        return [each for each in os.listdir(folder) if _host(each) == str(host)]  # noqa: PTH208
    except OSError:
        return []


def _host(cookie: str) -> str:
    """The process id in terminal.pid.random."""
    return cookie.rpartition(".")[0].rpartition(".")[2]


def _belongs(pid: int, host: int, marks: set[int]) -> bool:
    if marks and birthmark.read_mark(pid) in marks:
        return True
    start = f"{birthmark.COOKIE}=".encode()
    values = (each.removeprefix(start) for each in entries(pid) if each.startswith(start))
    return any(_host(os.fsdecode(value)) == str(host) for value in values)


def _words(pid: int) -> str:
    words = shlex.join(command_line(pid)) or name(pid)
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
