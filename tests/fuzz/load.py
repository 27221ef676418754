"""Short commands beside a busy machine: what they print must all arrive, with the right exit code.

run_load() → LoadCount        `python -m tests.fuzz --load 20000` prints it

The load is CPU hogs, a reader of the disk and floods through pseudo-terminals: the kernel then hands over what a shell
prints late, after it says that the shell is back at its prompt.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tarmac.terminals import Result, Settings, Terminal
from tarmac.terminals.open import make_terminal
from tarmac.terminals.process import prctl
from tarmac.terminals.terminal import NewTerminal

PATIENCE = 60.0
FRESH_EVERY = 40  # commands in one terminal: the first one of a shell is a case of its own
HOGS = (
    "while :; do :; done",
    "while :; do find /usr -type f 2>/dev/null | head -n 4000 | xargs cat >/dev/null 2>&1; done",
    "exec script -qc 'yes' /dev/null >/dev/null",
)
# A program that asks the terminal something, waits a moment for the answer, and prints a word.
ASKS = (
    "import sys,termios,tty,select,os;"
    "m=termios.tcgetattr(0);tty.setcbreak(0);sys.stdout.write('\\x1b'+{query!r});sys.stdout.flush();"
    "select.select([0],[],[],{wait});os.read(0,99) if select.select([0],[],[],0)[0] else None;"
    "termios.tcsetattr(0,termios.TCSADRAIN,m);print({word!r});sys.exit({code})"
)


@dataclass(slots=True)
class LoadCount:
    """What came of it."""

    commands: Counter[str] = field(default_factory=Counter)  # by shell
    evidence: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    told: int = 0  # thousands of commands

    def table(self) -> str:
        total = sum(self.commands.values())
        shells = ", ".join(f"{shell} {number:,}" for shell, number in sorted(self.commands.items()))
        evidence = ", ".join(f"{word} {number:,}" for word, number in self.evidence.most_common())
        lines = [f"{total:,} commands in {self.seconds:.0f} s ({shells}); evidence: {evidence}"]
        return "\n".join([*lines, *self.failures[:20], f"{len(self.failures)} wrong"])


@contextmanager
def load(hogs: int) -> Iterator[None]:
    """Keep the machine busy with that many programs."""
    prctl.prepare()
    running = [
        subprocess.Popen(
            ["sh", "-c", HOGS[n % len(HOGS)]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=partial(prctl.die_with_parent, signal.SIGKILL),
        )
        for n in range(hogs)
    ]
    try:
        yield
    finally:
        for each in running:
            try:
                os.killpg(each.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            each.wait()


async def run_load(shells: list[str], *, commands: int, terminals: int, hogs: int, seed: int, count: LoadCount) -> None:
    """Run so many commands in several terminals at once, beside so many hogs."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tarmac load ") as folder, load(hogs):
        share = -(-commands // terminals)
        async with asyncio.TaskGroup() as group:
            for number in range(terminals):
                shell = shells[number % len(shells)]
                rng = random.Random(f"{seed}:{number}")
                group.create_task(_drive(shell, share, rng, Path(folder) / str(number), count))
    count.seconds += time.monotonic() - began


async def _drive(shell: str, commands: int, rng: random.Random, folder: Path, count: LoadCount) -> None:
    folder.mkdir()
    settings = Settings(spool_directory=folder / "output", shell_integration_timeout=PATIENCE)
    while commands > 0:
        terminal = await make_terminal(NewTerminal(cwd=folder, shell=shell, settings=settings))
        try:
            for number in range(min(commands, FRESH_EVERY)):
                commands -= 1
                await _one(terminal, shell, rng, first=number == 0, count=count)
        finally:
            await terminal.aclose()
        if (total := sum(count.commands.values())) // 1000 > count.told:
            count.told = total // 1000
            print(f"{total:,} commands, {len(count.failures)} wrong", flush=True)


async def _one(terminal: Terminal, shell: str, rng: random.Random, *, first: bool, count: LoadCount) -> None:
    word, code = f"w{rng.randrange(10**9)}", rng.choice((0, 1, 18, 127))
    wait = rng.choice((0, 0.05, 0.1, 0.18, 0.2, 0.21, 0.25, 0.3))
    if first and rng.random() < 0.5:
        query = rng.choice(("[6n", "[c"))
        script = ASKS.format(query=query, wait=rng.choice((0, 0.01, 0.2)), word=word, code=code)
        command = f'{sys.executable} -c "{script}"'
    elif rng.random() < 0.5:
        command = f"sleep {wait}; echo {word}; sh -c 'exit {code}'"
    else:
        command = f"sh -c 'sleep {wait}; echo {word}; exit {code}'"
    result = await terminal.run(command, timeout=PATIENCE, on_timeout="kill")
    count.commands[shell] += 1
    count.evidence[result.evidence] += 1
    if not _is_right(result, word, code):
        kept = result.output_bytes
        count.failures.append(
            f"{shell}: {command!r}: {result.output!r} ({kept} bytes), {result.exit_code}, {result.reason}, "
            f"{result.evidence}, {result.notes}"
        )


def _is_right(result: Result, word: str, code: int) -> bool:
    return (result.output, result.exit_code, result.reason) == (f"{word}\n", code, "done")
