"""A program that is killed at a random moment while its terminal works, and the check of what the next one finds.

    Hosts().start(…)      a program that runs commands, one after another
    kill_and_check(…)     kills it, attaches, compares

The command prints numbered lines and exits with a code that follows from its number. So a lost or doubled byte, and a
wrong code, are seen. It pauses now and then, so that most kills find it in the middle.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.terminals.daemon.conftest import wait_gone

from tarmac.terminals import Settings, Terminal, attach_terminal, list_terminals
from tarmac.terminals.execution import Execution
from tarmac.terminals.open import make_terminal
from tarmac.terminals.process.processes import look
from tarmac.terminals.terminal import NewTerminal

SHELL = "bash"
LINES = 400
BETWEEN_PAUSES = 40  # lines
PAUSE = 0.02  # seconds
LONGEST = 0.4  # seconds until the kill, at most; a command takes about 0.25


def command(number: int) -> str:
    """Prints LINES lines, each with the number, and ends with a code from 0 to 99."""
    return (
        f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo {number}:$i:abcdefghijklmnopqrstuvwxyz; "
        f"[ $((i % {BETWEEN_PAUSES})) -gt 0 ] || sleep {PAUSE}; done; "
        f"(exit {number % 100})"
    )


def expected(number: int) -> bytes:
    return b"".join(b"%d:%d:abcdefghijklmnopqrstuvwxyz\r\n" % (number, each) for each in range(1, LINES + 1))


async def host(id: str, first: int) -> None:
    """Run commands until somebody kills us."""
    settings = Settings(start_up_files=False, outlive=True)
    new = NewTerminal(cwd=Path.cwd(), shell=SHELL, settings=settings)
    terminal = await (attach_terminal(id) if id else make_terminal(new))
    print(os.getpid(), terminal.id, flush=True)
    await work(terminal, first)


async def work(terminal: Terminal, first: int) -> None:
    number = first
    while True:
        result = await terminal.run(command(number), timeout=None)
        assert result.exit_code == number % 100, result
        number += 1


@dataclass
class Tally:
    """What the kills showed."""

    kills: int = 0
    running: int = 0  # the command went on, and its end came after the attachment or in between
    ended: int = 0  # it had ended before the kill
    not_run: int = 0
    wrong: list[str] = field(default_factory=list)
    attach_seconds: list[float] = field(default_factory=list)


def number_of(execution: Execution) -> int:
    return int(execution.command.partition("echo ")[2].partition(":")[0])


class Hosts:
    """A process that has imported everything, and forks a program whenever one is wanted: that takes milliseconds."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.terminals.daemon.killed_host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=Path(__file__).parents[3],
        )
        return self

    def start(self, id: str, first: int) -> tuple[int, str]:
        """The pid of a new program, and the id of its terminal: the one given, or a new one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{id or '-'} {first}\n")
        pid, id = self._process.stdout.readline().split()
        return int(pid), id

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)


def serve() -> None:
    """Fork a program for each line of input."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        id, first = line.split()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asyncio.run(host(id if id != "-" else "", int(first)))
            os._exit(1)


async def kill_and_check(hosts: Hosts, tally: Tally, moments: random.Random, id: str) -> str:
    """One kill; the id of the terminal, which goes on."""
    pid, id = await asyncio.to_thread(hosts.start, id, tally.kills * 1000 + 1)
    await asyncio.sleep(moments.uniform(0, LONGEST))  # the moment is what is random
    os.kill(pid, signal.SIGKILL)  # ProcessLookupError: it had found something wrong, and left
    wait_gone(pid)
    tally.kills += 1
    before = time.perf_counter()
    terminal = await attach_terminal(id)
    tally.attach_seconds.append(time.perf_counter() - before)
    try:
        for execution in [each for each in terminal.executions if each.command.startswith("i=0;")]:
            await check(tally, execution)
        probe = await terminal.run("echo still $((40 + 2))", timeout=60)
        if (probe.output, probe.exit_code) != ("still 42\n", 0):
            tally.wrong.append(f"after kill {tally.kills}: {probe}")
    finally:
        await terminal.leave()
    return id


async def check(tally: Tally, execution: Execution) -> None:
    number = number_of(execution)
    was_running = execution.running
    result = await execution.result(timeout=60)
    data = b""
    while piece := execution.spool.read(len(data), 1 << 20)[1]:
        data += piece
    if result.reason == "not run":
        tally.not_run += 1
        if data:
            tally.wrong.append(f"command {number} was not run and printed {data[:80]!r}")
        return
    tally.running += was_running
    tally.ended += not was_running
    if result.exit_code != number % 100 or result.reason != "done":
        tally.wrong.append(f"command {number}: {result.reason}, exit code {result.exit_code}")
    if data != expected(number):
        tally.wrong.append(f"command {number}: {len(data)} bytes instead of {len(expected(number))}")


async def end(id: str) -> None:
    """End the terminal, so that its daemon leaves."""
    for each in await list_terminals():
        if each.id == id:
            terminal = await attach_terminal(id)
            shell = terminal.session.pid if terminal.session is not None else 0
            await terminal.aclose()
            assert look(shell) is None


async def long_run(kills: int) -> None:
    """`python -m tests.terminals.daemon.killed_host 1000`, with TARMAC_STATE_DIR set to an empty folder."""
    tally, moments, id = Tally(), random.Random(kills), ""
    with Hosts() as hosts:
        for _ in range(kills):
            id = await kill_and_check(hosts, tally, moments, id)
        await end(id)
    times = sorted(tally.attach_seconds)
    middle, late = times[len(times) // 2], times[len(times) * 99 // 100]
    print(
        f"{tally.kills} kills: {tally.running} commands went on, {tally.ended} had ended, {tally.not_run} were not run"
    )
    print(f"wrong: {tally.wrong or 'nothing'}; attached in {middle * 1000:.1f} ms (median), {late * 1000:.1f} (p99)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(long_run(int(sys.argv[1])))
    else:
        serve()
