"""What it costs to ask the kernel whether a running command waits for input, with 500 other processes on the machine.

And how soon it is told: from the moment it blocks, as seen by somebody who asks all the time, to the event.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row
from tarmac.terminals import Terminal, events, open_terminal
from tarmac.terminals.process import tty_probe
from tarmac.terminals.shell.pty_terminal import PtyTerminal

WAITS = {
    "a waiting `read`": "read x",
    "a waiting program, two shells deep": "bash -c 'sh -c \"cat; :\"; :'",
    "a `make -j8` that works": "for i in 1 2 3 4 5 6 7 8; do sh -c 'sleep 1000; :' & done; wait",
}


def measure(*, quick: bool) -> Iterator[Row]:
    others, rounds = (50, 20) if quick else (500, 300)
    with private_home(), processes(others):
        for what, command in WAITS.items():
            took = asyncio.run(_cost(command, rounds))
            name = f"probe of {what}, {others} other processes: CPU"
            yield Row(what=name, ours=took * 1e6, unit="µs", goal=Goal("≤", 1000, of="ours"))
        soon = asyncio.run(_delays(3 if quick else 20))
        yield Row(
            what="from blocking to AwaitingInput",
            ours=median(soon) * 1e3,
            unit="ms",
            goal=Goal("≤", 500, of="ours"),
            note=f"at most {max(soon) * 1e3:.0f} ms",
        )


@contextmanager
def processes(count: int) -> Iterator[None]:
    """So many processes that sleep, in a group of their own."""
    leader = os.fork()
    if not leader:
        os.setpgid(0, 0)
        for _ in range(count - 1):
            if not os.fork():
                break
        while True:
            signal.pause()
    try:
        time.sleep(0.2)  # until they are there: nothing tells us
        yield
    finally:
        os.killpg(leader, signal.SIGKILL)
        os.waitpid(leader, 0)


async def _cost(command: str, rounds: int) -> float:
    async with open_terminal(shell="bash") as terminal:
        execution = await terminal.start(command)
        await execution.ended(0.5)
        session = terminal.session if isinstance(terminal, PtyTerminal) else None
        assert session is not None and execution.running
        times = []
        for _ in range(rounds):
            start = time.process_time()
            tty_probe.probe(session.pty.master, session.pid)
            times.append(time.process_time() - start)
        return median(times)


async def _delays(count: int) -> list[float]:
    async with open_terminal(shell="bash") as terminal:
        return [await _delay(terminal, number) for number in range(count)]


async def _delay(terminal: Terminal, number: int) -> float:
    """Of a command that works for a while and then asks."""
    assert isinstance(terminal, PtyTerminal) and terminal.session is not None
    told = asyncio.Event()
    unsubscribe = terminal.subscribe(lambda event: told.set() if isinstance(event, events.AwaitingInput) else None)
    execution = await terminal.start(f"sleep 0.{number % 10}7; read -p 'Go? ' x")
    while (
        seen := tty_probe.probe(terminal.session.pty.master, terminal.session.pid)
    ) is None or not execution.prompt():
        await execution.ended(0.002)
    start = time.monotonic()
    assert seen.wants == "line"
    await told.wait()
    took = time.monotonic() - start
    unsubscribe()
    await execution.send("yes\n")
    await execution.result(10)
    return took
