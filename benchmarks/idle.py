"""What an idle terminal of a registry weighs: memory of the host and of its bash (PSS: shared pages by their share)."""

import asyncio
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import fresh
from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row
from tarmac.terminals import Settings, TerminalRegistry
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Terminal


def measure(*, quick: bool) -> Iterator[Row]:
    count = 10 if quick else 500
    with private_home():
        found = fresh.run(__name__, str(count))
    goal = Goal("≤", 64, of="ours")
    yield Row(what=f"{count} idle terminals: host memory each", ours=found["host"] / 1024, unit="KB", goal=goal)
    yield Row(what=f"{count} idle terminals: bash (PSS) each", ours=found["shell"] / 1024, unit="KB")


# In a process of its own


async def _weigh(count: int) -> dict[str, float]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # five descriptors each
    settings = Settings(max_terminals=count + 1, max_per_task=count + 1, warm_pool=0)
    async with TerminalRegistry(settings) as terminals:
        await (await terminals.open(shell="bash")).run(":")  # what is loaded once
        before = fresh.resident()
        shells = []
        for _ in range(count):
            terminal = await terminals.get_or_create(cwd="/", task="A", shell="bash")
            await terminal.start("read x")  # or it would be reused
            shells.append(terminal)
        for terminal in shells:
            assert terminal.current is not None
            await terminal.current.send("\n")
            await terminal.current.result()
        weight = (fresh.resident() - before) / count
        return {"host": weight, "shell": sum(map(_pss, shells)) / count}


def _pss(terminal: Terminal) -> int:
    assert isinstance(terminal, PtyTerminal) and terminal.session is not None
    pid = terminal.session.pid
    found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    fresh.answer(asyncio.run(_weigh(int(sys.argv[1]))))
