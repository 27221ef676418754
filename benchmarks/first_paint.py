"""The session at the terminal: its first paint, and how soon a key appears while a model streams 200 words a second.

The first paint is CPU time, until the status line is drawn. A key is wall time, from the write to the terminal until
its character is in what the session prints. Every key is another character, so no earlier one can be taken for it. The
floor is the same session while nothing streams.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared

READY = b"(shift-tab)"
CURSOR = b"\x1b[6n"  # where is the cursor?
PACE = 0.005  # seconds between two words
LIMIT = 60.0  # seconds for anything to appear
KEYS = [chr(0x100 + number) for number in range(0x80)]  # letters that nothing else prints


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home() as home:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the first paint is that of compiled imports
        os.environ["PYTHONPYCACHEPREFIX"] = str(home / "bytecode")
        script = home / "script.toml"
        paragraph = "word " * 40 + "\\n\\n"
        script.write_text(f'[[turn]]\ntext = "{paragraph * (40 if quick else 200)}"\npace = {PACE}\n')
        paints = [_first_paint(script) for _ in range(3 if quick else 11)]
        yield Row(
            what="`tarmac` until its editor is drawn, CPU",
            ours=median(paints[1:]),  # the first fills the cache of bytecode
            unit="ms",
            goal=Goal("≤", 250, of="ours"),
        )
        count = 10 if quick else len(KEYS) // 2
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
            piece = os.read(self._fd, 65536)
            for _ in range(piece.count(CURSOR)):
                os.write(self._fd, b"\x1b[20;1R")
            seen = seen[-4096:] + piece

    def echo(self, key: str) -> float:
        """Milliseconds until a key is drawn."""
        while select.select([self._fd], [], [], 0)[0]:  # what was printed before
            os.read(self._fd, 65536)
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
