"""Run a program of ours (ripgrep, the PDF reader) and read its lines, within a time and without leaving it behind."""

import asyncio
import os
import sys
import sysconfig
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

LONGEST_LINE = 1 << 20


def program(name: str) -> str | None:
    """Where a program that came with our own Python is, else the system's; never one in the current directory."""
    for place in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        path = Path(place) / name
        if os.access(path, os.X_OK):
            return str(path)
    import shutil

    found = shutil.which(name)
    return found if found and Path(found).is_absolute() else None


@asynccontextmanager
async def running(argv: Sequence[str], *, cwd: Path | None = None) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process with its output on pipes; killed, and its end awaited, on the way out."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        env={name: value for name in ("PATH", "HOME", "LANG", "TMPDIR") if (value := os.environ.get(name))},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            try:
                process.kill()
            except ProcessLookupError:
                pass
        await process.communicate()  # what is left in its pipes is read, or they would stay open
