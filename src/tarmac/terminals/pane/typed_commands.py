"""Split text that was typed at a prompt into the commands that a shell would read.

    "cd src\\nmake\\npytest" → split_typed() → ["cd src", "make"], "pytest"

A shell decides line by line whether a command is complete: quotes, here-documents and loops continue. We ask bash
(`bash -n`, which runs nothing).
"""

import asyncio
import re
import shutil
from collections.abc import Sequence

from tarmac.errors import BadRequest
from tarmac.vt.keys import keys

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
