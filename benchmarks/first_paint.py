"""The session at the terminal: its first paint, and how soon a key appears while a model streams 200 words a second.

The first paint is CPU time, until the status line is drawn; its floor is `import asyncio, prompt_toolkit`. A key is
wall time, from the write to the terminal until its character is in what the session prints. Every key is another
character, so no earlier one can be taken for it, and some words pass between two keys. The floor is the same session
while nothing streams. The model says prose, lists, and code of many lines.
"""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared

READY = b"(shift-tab)"
CURSOR = b"\x1b[6n"  # where is the cursor?
PACE = 0.005  # seconds between two words
APART = 0.037  # seconds between two keys: no multiple of the pace, so they meet the stream at any moment
LIMIT = 60.0  # seconds for anything to appear
KEYS = [chr(0x100 + number) for number in range(0x80)]  # letters that nothing else prints


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home() as home:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the first paint is that of compiled imports
        os.environ["PYTHONPYCACHEPREFIX"] = str(home / "bytecode")
        script = home / "script.toml"
        script.write_text(f"[[turn]]\ntext = {json.dumps(_said() * (2 if quick else 5))}\npace = {PACE}\n")
        paints = [(_first_paint(script), _imported()) for _ in range(3 if quick else 11)][1:]  # the first compiles
        yield compared(
            "`tarmac` until its editor is drawn | import prompt_toolkit, CPU",
            [one for one, _ in paints],
            [other for _, other in paints],
            unit="ms",
            goal=Goal("≤", 250, of="ours"),
        )
        count = 10 if quick else len(KEYS)
        idle, busy = _Session(script), _Session(script)
        try:
            for session in (idle, busy):
                session.until(READY)
            busy.type("go\r")
            busy.until(b"word word")
            pairs = [(busy.echo(key), idle.echo(key)) for key in KEYS[:count]]
        finally:
            idle.close()
            busy.close()
        ours = [one for one, _ in pairs]
        yield compared(
            "a key until it is drawn, while a model streams 200 words a second",
            ours,
            [other for _, other in pairs],
            unit="ms",
            goal=Goal("≤", 30, of="ours"),
            note=f"95 of 100 within {sorted(ours)[int(len(ours) * 0.95) - 1]:.0f} ms, worst {max(ours):.0f}",
        )


def _said() -> str:
    """Some 700 words: prose, a list, and more code than a screen has lines."""
    prose = "word " * 40 + "\n\n"
    code = 'def word(x: int) -> str:\n    return f"{x} word" + "a" * 3  # a comment\n\n' * 20
    return prose * 5 + "- word word word word\n" * 40 + f"\n```python\n{code}```\n\n"


def _imported() -> float:
    """The CPU milliseconds of a Python that imports what the editor is made of."""
    process = subprocess.Popen([sys.executable, "-c", "import asyncio, prompt_toolkit"])
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return (used.ru_utime + used.ru_stime) * 1e3


def _first_paint(script: Path) -> float:
    session = _Session(script)
    try:
        session.until(READY)
    finally:
        used = session.close()
    return used


class _Session:
    """`tarmac` on a terminal of its own. It answers where the cursor is, as terminals do."""

    def __init__(self, script: Path) -> None:
        self._pid, self._fd = pty.fork()
        if not self._pid:
            os.chdir(script.parent)
            os.execv(sys.executable, [sys.executable, "-m", "tarmac", "run", "--script", str(script)])
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def until(self, wanted: bytes) -> None:
        seen, end = b"", time.monotonic() + LIMIT
        while wanted not in seen:
            if not select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{wanted!r} was not drawn within {LIMIT:g} s: {seen[-2000:]!r}")
            seen = seen[-4096:] + self._read()

    def _read(self) -> bytes:
        piece = os.read(self._fd, 65536)
        for _ in range(piece.count(CURSOR)):
            os.write(self._fd, b"\x1b[20;1R")
        return piece

    def echo(self, key: str) -> float:
        """Milliseconds until a key is drawn."""
        end = time.monotonic() + APART
        while select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]:  # what is printed meanwhile
            self._read()
        began = time.perf_counter()
        self.type(key)
        self.until(key.encode())
        return (time.perf_counter() - began) * 1e3

    def close(self) -> float:
        """End it; the CPU milliseconds that it used."""
        os.kill(self._pid, 9)
        os.close(self._fd)
        _, _, used = os.wait4(self._pid, 0)
        return (used.ru_utime + used.ru_stime) * 1e3
