"""Processes that write a log, to be killed. Run as a program: it forks a writer for each path on its standard input.

in:  a folder         out: "pid N", "<seq> <text>" once that is durable, "gone" when the writer is
"""

import asyncio
import os
import random
import sys
import time
from pathlib import Path

from tarmac.events import TaskId
from tarmac.tasks.events import UserSaid
from tarmac.tasks.log import TaskLog, create_log, open_log


async def write(folder: Path) -> None:
    """Three callers append as fast as they can; now and then a text that needs a blob."""
    if folder.exists():
        async with open_log(folder) as log:
            await asyncio.gather(*(_write(log, each) for each in range(3)))
    else:
        async with create_log(folder, TaskId("t")) as log:
            await asyncio.gather(*(_write(log, each) for each in range(3)))


async def _write(log: TaskLog, who: int) -> None:
    dice = random.Random(time.monotonic_ns() + who)
    while True:
        text = f"{who}-{dice.randrange(1 << 40)}-"
        text += "x" * dice.choice((0, 10, 100, 300, 1000, 3000, 10_000, 30_000))
        seq = await log.append(UserSaid(at=time.time(), text=text))
        os.write(1, f"{seq} {text[:40].rstrip('x')} {len(text)}\n".encode())


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os.write(1, f"pid {os.getpid()}\n".encode())
            asyncio.run(write(Path(line.rstrip("\n"))))
        os.waitpid(pid, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    main()
