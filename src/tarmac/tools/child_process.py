"""Run a helper program (ripgrep, the PDF reader), and never leave it behind."""

import asyncio
import os
import sys
import sysconfig
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

LONGEST_LINE = 1 << 20


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
        await process.communicate()  # read the rest, or the pipes would stay open
