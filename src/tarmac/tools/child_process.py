"""Run a helper program (ripgrep, the PDF reader), and never leave it behind."""

import asyncio
import os
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from tarmac.terminals.process.confinement import Confined

LONGEST_LINE = 1 << 20


class Helper(Protocol):
    """What there is of a running program."""

    stdout: asyncio.StreamReader | None
    stderr: asyncio.StreamReader | None

    async def wait(self) -> int: ...


def program(name: str) -> str | None:
    """The path of a program: beside our own Python, else on PATH, never in the current directory."""
    for place in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        path = Path(place) / name
        if os.access(path, os.X_OK):
            return str(path)
    import shutil

    found = shutil.which(name)
    return found if found and Path(found).is_absolute() else None


@asynccontextmanager
async def running(argv: Sequence[str], *, cwd: Path | None = None) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process with its output on pipes. It is killed and awaited on exit."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        env=_environment(),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            try:
                process.kill()
            except ProcessLookupError:
                pass
        await process.communicate()  # read the rest, or the pipes would stay open


@asynccontextmanager
async def confined_running(argv: Sequence[str], rules: Confined, *, cwd: Path) -> AsyncIterator[Helper]:
    """The same for a program that the kernel keeps to these rules."""
    async with AsyncExitStack() as stack:
        ends: list[int] = []  # for the program
        stack.callback(_close, ends)
        out, err = await _pipe(stack, ends), await _pipe(stack, ends)

        def start(words: list[str], passed: tuple[int, ...]) -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                words,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=ends[0],
                stderr=ends[1],
                env=_environment(),
                pass_fds=passed,
            )

        process = rules.start(start, list(argv), cwd)
        _close(ends)
        try:
            yield _ConfinedHelper(process, out, err)
        finally:
            process.kill()  # does nothing to one that has ended
            await asyncio.to_thread(process.wait)


class _ConfinedHelper:
    def __init__(
        self, process: "subprocess.Popen[bytes]", stdout: asyncio.StreamReader, stderr: asyncio.StreamReader
    ) -> None:
        self._process = process
        self.stdout: asyncio.StreamReader | None = stdout
        self.stderr: asyncio.StreamReader | None = stderr

    async def wait(self) -> int:
        return await asyncio.to_thread(self._process.wait)


async def _pipe(stack: AsyncExitStack, ends: list[int]) -> asyncio.StreamReader:
    """What we read; the other end is added to `ends`."""
    ours, theirs = os.pipe()
    ends.append(theirs)
    file = stack.enter_context(os.fdopen(ours, "rb", 0))
    reader = asyncio.StreamReader(LONGEST_LINE)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    stack.callback(transport.close)
    return reader


def _close(ends: list[int]) -> None:
    while ends:
        os.close(ends.pop())


def _environment() -> dict[str, str]:
    return {name: value for name in ("PATH", "HOME", "LANG", "TMPDIR") if (value := os.environ.get(name))}
