"""What an idle terminal weighs: memory of the host, and of its bash (PSS: shared pages by their share)."""

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks import fresh
from benchmarks.home import private_home
from benchmarks.rounds import Row
from tarmac.terminals import open_terminal
from tarmac.terminals.pty_terminal import PtyTerminal


def measure(*, quick: bool) -> Iterator[Row]:
    count = 10 if quick else 50
    with private_home():
        found = fresh.run(__name__, str(count))
    yield Row(what=f"{count} idle terminals: host memory each", ours=found["host"] / 1024, unit="KB")
    yield Row(what=f"{count} idle terminals: bash (PSS) each", ours=found["shell"] / 1024, unit="KB")


# In a process of its own


async def _weigh(count: int) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        await (await stack.enter_async_context(open_terminal(shell="bash"))).run(":")  # what is loaded once
        before = fresh.resident()
        shells = []
        for _ in range(count):
            terminal = await stack.enter_async_context(open_terminal(shell="bash"))
            await terminal.run(":")
            assert isinstance(terminal, PtyTerminal) and terminal.session is not None
            shells.append(_pss(terminal.session.pid))
        return {"host": (fresh.resident() - before) / count, "shell": sum(shells) / count}


def _pss(pid: int) -> int:
    found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    fresh.answer(asyncio.run(_weigh(int(sys.argv[1]))))
